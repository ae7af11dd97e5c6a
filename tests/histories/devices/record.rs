//! The item that the writers race for, what they did, and what they were told.

use crate::harness::faults::Applied;
use fencepost::{Add, Failure, ItemVersion, Record, Settings, Versioned};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

pub const TABLE: &str = "Ledgers";
pub const NOTES: &str = "Notes";
/// The attribute that only today's build knows.
pub const NOTED: &str = "noted";
/// The highest stock. It is low, so that many adds are refused.
pub const MOST: i64 = 10;
/// How many writes a ledger remembers.
pub const REMEMBERED: u64 = 12;
/// Who removes rows that have ended.
pub const TTL: u64 = u64::MAX;

/// A build that keeps the ledger: what it stores of one.
pub trait Build: Record + From<Ledger> + Into<Ledger> + Clone {}

impl Build for Ledger {}
impl Build for Today {}

/// The ledger as today's build keeps it: with an attribute that the build before does not know, and another window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Today {
    #[serde(flatten)]
    ledger: Ledger,
    /// The operation of the last change by this build. An add leaves it alone, and so does all that the build before does.
    noted: Option<u64>,
}

impl Record for Today {
    const PARTITION_KEY: &'static str = Ledger::PARTITION_KEY;
    const ATTRIBUTES: &'static [&'static str] = &["operations", "stock", "level", NOTED];
    const SETTINGS: Settings = Ledger::SETTINGS.add_window(4);
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

/// The ledger as the build before keeps it.
///
/// Every change leaves the number of its operation, so that one applied twice is seen in the value itself. An add changes
/// the stock alone. The level follows from the stock.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Record)]
#[record(key = "id", settings = Settings::own().remembered_writes(REMEMBERED).add_window(REMEMBERED))]
pub struct Ledger {
    pub operations: Vec<u64>,
    pub stock: i64,
    pub level: String,
}

impl Ledger {
    /// The value that an operation creates.
    pub fn first(number: u64) -> Self {
        Ledger { operations: vec![number], ..Ledger::of(5) }
    }

    /// The value that an operation makes of this one.
    pub fn changed(&self, number: u64) -> Self {
        let mut operations = self.operations.clone();
        operations.push(number);
        Ledger { operations, ..Ledger::of((self.stock + 3) % (MOST + 1)) }
    }

    /// The value that the add of an operation makes of this one.
    pub fn added(&self, number: u64) -> Self {
        Ledger { operations: self.operations.clone(), ..Ledger::of(self.stock + amount(number)) }
    }

    fn of(stock: i64) -> Self {
        Ledger { operations: Vec::new(), stock, level: if stock < 5 { "low" } else { "high" }.to_owned() }
    }

    /// Whether this is a value that the rules of the ledger allow.
    pub fn is_right(&self) -> bool {
        (0..=MOST).contains(&self.stock) && self.level == Ledger::of(self.stock).level
    }

    /// The value of a stored row. `None` if there is no row, or only a tombstone.
    pub fn stored(row: &Value) -> Option<Self> {
        if !is_live(row) {
            return None;
        }
        let number = |value: &Value| value["N"].as_str().and_then(|number| number.parse::<i64>().ok());
        let operations = row["operations"]["L"].as_array()?.iter().map(number);
        let operations = operations.map(|number| number.and_then(|number| number.try_into().ok()));
        let level = row["level"]["S"].as_str()?.to_owned();
        Some(Ledger { operations: operations.collect::<Option<_>>()?, stock: number(&row["stock"])?, level })
    }
}

/// The row beside the ledger that some transactions put.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "id")]
pub struct Note {
    pub by: i64,
}

/// What the add of an operation adds: up to 6 either way, never nothing.
pub fn amount(number: u64) -> i64 {
    let drawn = i64::try_from(number * 7919 % 12).expect("small");
    if drawn < 6 { drawn - 6 } else { drawn - 5 }
}

/// The add of an operation.
pub fn add(number: u64) -> Add {
    Add::to("stock", amount(number), 0..=MOST).bands("level", "stock", [(0..=4, "low"), (5..=MOST, "high")])
}

/// The value that was told of an applied change, and its version. That of an add may be later than the one that the add made.
/// `None` where none was told.
pub type Shown = Option<(ItemVersion, Ledger)>;

/// What an operation was told.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// Applied, and this is the state that it left.
    Applied(ItemVersion, Shown),
    /// Applied; which state it left was not said.
    Landed,
    /// Not applied, and nothing is claimed about the row.
    NotApplied,
    /// Not applied (or only read); this was the row's state at some moment of the call.
    Saw(ItemVersion, Ledger),
    /// Not applied, because the stock was such at some moment of the call that its add would pass a bound.
    OutOfRange(ItemVersion, Ledger),
    /// Not applied (or only read); at some moment of the call nothing was there.
    SawNothing,
    /// Nobody knows.
    Unknown,
}

/// What an operation asks for at last.
#[derive(Clone, Debug, Default)]
pub struct AskedFor {
    /// What its last decision made of what, if it decided.
    pub decided: Option<(Ledger, Ledger)>,
    /// The state that it demands, if it demands one.
    pub at: Option<ItemVersion>,
}

#[derive(Debug)]
pub struct Operation {
    pub number: u64,
    /// Which client it was.
    pub client: u64,
    pub what: &'static str,
    pub began: Instant,
    pub ended: Instant,
    pub told: Told,
    pub asked: AskedFor,
    pub conflicts: u32,
    /// Whether the build before did it.
    pub by_before: bool,
}

impl Operation {
    pub fn adds(&self) -> bool {
        self.what.starts_with("add")
    }
}

pub fn by_failure(failure: &Failure) -> Told {
    match failure {
        Failure::Contention { .. } | Failure::Unavailable { .. } | Failure::Rejected { .. } => Told::NotApplied,
        // Some adds are told a version that the row does not have yet.
        Failure::CorruptItem { reason } if reason == "its version went down" => Told::NotApplied,
        Failure::OutcomeUnknown { .. } => Told::Unknown,
        _ => panic!("no such thing happens here: {failure}"),
    }
}

pub fn saw<L: Build>(versioned: Versioned<L>) -> Told {
    Told::Saw(versioned.at, versioned.value.into())
}

pub fn wrote<L: Build>(written: Versioned<L>) -> Told {
    Told::Applied(written.at, Some((written.at, written.value.into())))
}

/// The state that a stored row is in. `None` if there is no row.
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

/// A history that is over: all copies have arrived.
pub struct Ended {
    pub key: String,
    pub applied: Vec<Applied>,
    pub done: Vec<Operation>,
    /// The row as it is stored.
    pub row: Value,
}

/// What an operation makes of a value.
pub fn effect(operation: &Operation, before: Option<&Ledger>) -> Option<Ledger> {
    match operation.what {
        "create" => Some(Ledger::first(operation.number)),
        "delete" | "delete at version" => None,
        _ if operation.number == TTL => None,
        _ if operation.adds() => before.map(|ledger| ledger.added(operation.number)),
        _ => before.map(|ledger| ledger.changed(operation.number)),
    }
}
