//! One client that adds, changes, deletes and creates, over a wire of its own, and the item that the writers race for, in
//! two builds of a program.

use crate::harness::faults::Freezing;
use crate::harness::states;
use crate::histories::item::{Asked, Calling, Operation, Stored, Told, by_failure};
use crate::histories::scene::{self, Begun, Client, with_few_attempts};
use fencepost::{Call, Edit, Error, ItemVersion, Key, NotEdited, Reads, Record, Settings, Table, UpdateError, Version};
use judges::register::{self, Value as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

pub const TABLE: &str = "Ledgers";
pub const NOTES: &str = "Notes";
/// The attribute that only today's build knows.
pub const NOTED: &str = "noted";
/// The highest stock. It is low to make refusals common.
pub const MOST: i64 = 10;
/// The number of writes that a ledger remembers.
pub const REMEMBERED: u64 = 12;

/// The form in which a build stores the ledger.
pub trait Build: Record + From<Ledger> + Into<Ledger> + Clone {}

impl Build for Ledger {}
impl Build for Today {}

/// The ledger in today's build, with an attribute unknown to the build before, and another window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Today {
    #[serde(flatten)]
    ledger: Ledger,
    /// The operation of the last change by this build. Adds, and all changes by the build before, leave it unchanged.
    noted: Option<u64>,
}

impl Record for Today {
    const PARTITION_KEY: &'static str = Ledger::PARTITION_KEY;
    const ATTRIBUTES: &'static [&'static str] = &["operations", "stock", "level", "label", NOTED];
    const SETTINGS: Settings = Ledger::SETTINGS.edit_window(4);
}

impl From<Ledger> for Today {
    fn from(ledger: Ledger) -> Self {
        Today { noted: ledger.operations.last().copied(), ledger }
    }
}

impl From<Today> for Ledger {
    fn from(today: Today) -> Self {
        today.ledger
    }
}

/// The ledger in the build before.
///
/// Every change leaves the number of its operation, which shows a change that is applied twice. An edit changes only the
/// stock, from which the level follows, or only the label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Record)]
#[record(key = "id", settings = Settings::own().remembered_writes(REMEMBERED).edit_window(REMEMBERED))]
pub struct Ledger {
    pub operations: Vec<u64>,
    pub stock: i64,
    pub level: String,
    pub label: u64,
}

/// The effect of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Stock(i64),
    /// Another label, while the level is low.
    Label(u64),
}

impl Ledger {
    fn of(stock: i64) -> Self {
        Ledger { operations: Vec::new(), stock, level: if stock < 5 { "low" } else { "high" }.to_owned(), label: 0 }
    }

    /// Whether the value follows the rules of the ledger.
    pub fn is_right(&self) -> bool {
        (0..=MOST).contains(&self.stock) && self.level == Ledger::of(self.stock).level
    }
}

impl register::Value for Ledger {
    type Amount = Amount;

    fn plus(&self, amount: &Amount) -> Option<Self> {
        let Ledger { operations, label, .. } = self.clone();
        match *amount {
            Amount::Stock(by) => {
                Some(Ledger { operations, label, ..Ledger::of(self.stock + by) }).filter(Ledger::is_right)
            }
            Amount::Label(label) => {
                Some(Ledger { label, ..self.clone() }).filter(|to| to != self && self.level == "low")
            }
        }
    }
}

impl Stored for Ledger {
    const COPIES_COUNT: bool = true;

    fn of(row: &Value) -> Option<Self> {
        if !is_live(row) {
            return None;
        }
        let number = |value: &Value| value["N"].as_str().and_then(|number| number.parse::<i64>().ok());
        let operations = row["operations"]["L"].as_array()?.iter().map(number);
        let operations = operations.map(|number| number.and_then(|number| number.try_into().ok()));
        let level = row["level"]["S"].as_str()?.to_owned();
        let label = number(&row["label"])?.try_into().ok()?;
        Some(Ledger { operations: operations.collect::<Option<_>>()?, stock: number(&row["stock"])?, level, label })
    }

    fn is_at(row: &Value, at: ItemVersion) -> bool {
        state_of(row) == Some(at)
    }

    fn judged(at: ItemVersion) -> Option<register::Version> {
        Some(states::version(at))
    }

    fn first(number: u64) -> Self {
        Ledger { operations: vec![number], ..Ledger::of(5) }
    }

    fn changed(&self, number: u64) -> Self {
        let operations = self.operations.iter().copied().chain([number]).collect();
        Ledger { operations, label: self.label, ..Ledger::of((self.stock + 3) % (MOST + 1)) }
    }

    fn amount(number: u64) -> Amount {
        match i64::try_from(number * 7919 % 15).expect("small") {
            drawn @ ..6 => Amount::Stock(drawn - 6),
            drawn @ 6..12 => Amount::Stock(drawn - 5),
            _ => Amount::Label(number % 3),
        }
    }
}

/// The row that some transactions put beside the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "id")]
pub struct Note {
    pub by: u64,
}

/// The edit of an operation. An add is up to 6 either way, never 0.
pub fn edit(number: u64) -> Edit {
    match Ledger::amount(number) {
        Amount::Stock(by) => {
            Edit::add("stock", by, 0..=MOST).bands("level", "stock", [(0..=4, "low"), (5..=MOST, "high")])
        }
        Amount::Label(label) => Edit::set("label", &label).only_if_changed().only_if("level", &"low"),
    }
}

/// The state of a stored row. `None` if there is no row.
pub fn state_of(row: &Value) -> Option<ItemVersion> {
    let version = row["_version"]["N"].as_str()?.parse().ok().and_then(fencepost::Version::new)?;
    let base64 = row["_incarnation"]["B"].as_str()?;
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&aws_smithy_types::base64::decode(base64).ok()?);
    Some(ItemVersion { version, incarnation: fencepost::Incarnation::from_bytes(bytes) })
}

pub fn is_live(row: &Value) -> bool {
    row.is_object() && row.get("_purgeAt").is_none()
}

/// The part of the scene for these histories alone.
pub struct Own {
    /// Whether the writers sometimes rest for hours, so that TTL removes tombstones.
    pub hours: bool,
    /// The random choice of builds, in a history with a canary and rollbacks.
    pub builds: Option<Mutex<fastrand::Rng>>,
}

type Scene = scene::Scene<Own, Operation<Ledger>>;

/// The client's present process. A restart forgets all that the process has seen.
#[derive(Clone)]
enum Process {
    Today(Table<Today>),
    Before(Table<Ledger>),
}

pub struct Writer {
    client: Client<Own, Operation<Ledger>>,
    process: Process,
    known: Option<ItemVersion>,
}

impl Writer {
    pub fn new(scene: &Arc<Scene>, number: u64) -> Self {
        let client = Client::new(scene, &scene.network, number);
        let table = open(&client);
        let table = if client.below(2) == 0 { table.remembering_items() } else { table };
        let mut writer = Writer { client, process: Process::Today(table), known: None };
        writer.deploy();
        writer
    }

    /// In some histories, a deployment goes back and forth between two builds.
    fn deploy(&mut self) {
        let Some(builds) = &self.client.scene.builds else { return };
        let mut rng = builds.lock().expect("no panic while drawing");
        match rng.u32(..6) {
            0 => self.process = Process::Today(open(&self.client).remembering_items()),
            1 | 2 => self.process = Process::Before(open(&self.client)),
            _ => {}
        }
    }

    pub async fn work(mut self, operations: u64, deletes: bool) {
        for turn in 0..operations {
            self.client.pause(60).await;
            if self.client.scene.hours && self.client.below(6) == 0 {
                sleep(Duration::from_mins(60 + self.client.below(240))).await;
            }
            let what = match (deletes, self.client.below(14)) {
                (true, _) if turn % 2 == 1 => "create",
                (true, 0..=9) => "delete at version",
                (true, _) => "delete",
                (false, 0..=2) => "update",
                (false, 3) => "update at version",
                (false, 4) => "get",
                (false, 5..=6) => "add with a note",
                (false, 7) => "add where no note is",
                (false, _) => "add",
            };
            self.run(what).await;
        }
    }

    /// Runs one operation and notes the answer.
    pub async fn run(&mut self, what: &'static str) {
        self.deploy();
        let begun = self.client.begin(3000);
        let asked = Mutex::default();
        let by_before = matches!(self.process, Process::Before(_));
        let told = match &self.process {
            Process::Today(table) => {
                Freezing::new(&self.client.network, self.perform(table, what, &begun, &asked)).await
            }
            Process::Before(table) => {
                Freezing::new(&self.client.network, self.perform(table, what, &begun, &asked)).await
            }
        };
        if let Told::Applied(at, _) | Told::Saw(at, _) | Told::OutOfRange(at, _) = &told {
            self.known = Some(*at);
        }
        let Begun { number, began, call } = begun;
        let (client, conflicts, ended) = (self.client.number, call.tally().conflicts, Instant::now());
        let asked = asked.into_inner().expect("no panic");
        let operation = Operation { number, client, what, began, ended, told, asked, conflicts, by_before };
        self.client.scene.note(operation);
    }

    async fn perform<L: Build>(
        &self,
        table: &Table<L>,
        what: &str,
        Begun { number, call, .. }: &Begun,
        asked: &Mutex<Asked<Ledger>>,
    ) -> Told<Ledger> {
        let (key, number, known) = (self.client.scene.name.as_str(), *number, self.known);
        match what {
            "add" => self.add(table, key, number, call).await,
            "add with a note" => transact(table, key, number, true, call).await,
            "add where no note is" => transact(table, key, number, false, call).await,
            _ => match (Calling { table, key, number, call, known, asked }).perform(what).await {
                // A plain delete does not say which state it deleted. The engine knows the incarnation.
                Told::Applied(at, None) if what == "delete" => Told::Applied(self.state_left_by(number, at), None),
                told => told,
            },
        }
    }

    /// Adds with this client's knowledge, or as a new process that got a state: an old one or a future one.
    async fn add<L: Build>(&self, table: &Table<L>, key: &str, number: u64, call: &Call) -> Told<Ledger> {
        let below = |bound| self.client.below(bound);
        let added = match self.known {
            Some(known) if below(5) == 0 => {
                let version = Version::new(known.version.get() + below(4)).expect("small");
                let edit = edit(number).seen(ItemVersion { version, ..known });
                open::<L>(&self.client).in_call(call).edit(key, &edit).await
            }
            _ => table.in_call(call).edit(key, &edit(number)).await,
        };
        match added {
            Ok(added) => Told::Applied(added.at, added.item.map(|shown| (shown.at, shown.value.into()))),
            Err(UpdateError::NotFound) => Told::SawNothing,
            Err(UpdateError::Refused(
                NotEdited::OutOfRange(current) | NotEdited::NotAsDemanded(current) | NotEdited::Unchanged(current),
            )) => Told::OutOfRange(current.at, current.value.into()),
            Err(UpdateError::Failed(failure)) => by_failure(&failure),
            Err(other) => panic!("no such thing happens here: {other}"),
        }
    }

    fn state_left_by(&self, number: u64, at: ItemVersion) -> ItemVersion {
        let (applied, key) = (self.client.network.applied(), &self.client.scene.name);
        let of_delete = applied.iter().filter(|applied| applied.op == number);
        let mut states = of_delete.filter_map(|applied| state_of(applied.left_in(TABLE, key)?));
        let same = states.find(|state| state.version == at.version);
        same.expect("a delete that was told applied was applied")
    }
}

fn open<L: Build>(client: &Client<Own, Operation<Ledger>>) -> Table<L> {
    let store = client.open().with_policy(with_few_attempts());
    store.table(TABLE).with_tombstone_retention(Duration::from_hours(1))
}

/// An add in a transaction. Beside the create of a note it is bare, because the note remembers. Beside a check of a
/// note, the add itself must remember.
async fn transact<L: Build>(ledgers: &Table<L>, key: &str, number: u64, creates: bool, call: &Call) -> Told<Ledger> {
    let notes = ledgers.store().table::<Note>(NOTES);
    let mut reads = Reads::new();
    let note_key = Key::from(note_id(key, number));
    let (note, ledger) = if creates {
        (reads.later("note", &notes, &note_key), reads.later("ledger", ledgers, key))
    } else {
        (reads.item("note", &notes, &note_key), reads.remembered("ledger", ledgers, key))
    };
    let store = ledgers.store().in_call(call);
    let landed = store.transact_with_retry(reads, |attempt| {
        match attempt.get(ledger)? {
            None if attempt.knows(ledger) => return Err(Error::Refused(Box::new(Told::SawNothing))),
            Some(current) if current.value.clone().into().plus(&Ledger::amount(number)).is_none() => {
                return Err(Error::Refused(Box::new(Told::OutOfRange(current.at, current.value.into()))));
            }
            _ => attempt.edit_blind(ledger, &edit(number))?,
        }
        if creates {
            attempt.put_if_absent(note, &Note { by: number })?;
        } else {
            attempt.check(note)?;
        }
        Ok(Told::Landed)
    });
    match landed.await {
        Ok(told) => told,
        Err(Error::Refused(told)) => *told,
        Err(Error::Failed(failure)) => by_failure(&failure),
    }
}

/// Each operation has a note of its own.
fn note_id(key: &str, number: u64) -> String {
    format!("{key:?} {number}")
}
