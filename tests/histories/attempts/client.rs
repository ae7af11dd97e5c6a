//! One client over a wire of its own. The answers of its decisions depend on the state that they see.

use crate::harness::engine::{Engine, store};
use crate::harness::faults::Freezing;
use crate::histories::scene::{self, Begun, patient};
use fencepost::testing::add_or_update;
use fencepost::{Add, Attempt, Call, Error, Failure, Item, Key, Reads, Record, Table, UpdateError, Versioned};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;
use tokio::time::Instant;

pub const SHELVES: &str = "Shelves";
pub const NOTES: &str = "Notes";
pub const KEY: &str = "id";
/// The number of shelves in a history.
pub const COUNT: usize = 2;
/// The highest stock of a shelf. It is low to make refusals common.
const MOST: i64 = 10;

/// A shelf. The level follows from the stock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shelf {
    pub stock: i64,
    level: String,
    /// The operation of the last update. An add leaves it unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<u64>,
    /// The decision of the last take or move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    taken: Option<u64>,
}

impl Record for Shelf {
    const PARTITION_KEY: &'static str = KEY;
    const ATTRIBUTES: &'static [&'static str] = &["stock", "level", "by", "taken"];
}

impl Shelf {
    fn of(stock: i64, by: Option<u64>) -> Self {
        Shelf { stock, level: if stock < 5 { "low" } else { "high" }.to_owned(), by, taken: None }
    }
}

/// The row that a transaction creates beside the shelves, with the amount that it took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Note {
    amount: i64,
}

impl Record for Note {
    const PARTITION_KEY: &'static str = KEY;
    const ATTRIBUTES: &'static [&'static str] = &["amount"];
}

pub type Scene = scene::Scene<(), Operation>;

pub fn shelf_id(scene: &str, shelf: usize) -> String {
    format!("{shelf}-{scene}")
}

/// The id of an operation's note at a shelf.
pub fn note_id(scene: &str, number: u64, shelf: usize) -> String {
    format!("{number}-{shelf}-{scene}")
}

/// The effect in the answer to a change.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The shelf, the amount and the decision of a take.
    Took(usize, i64, u64),
    /// The version, the stock and the last update of shelf 0, after this change or a later one.
    Left(u64, i64, Option<u64>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Applied(Answer),
    /// Applied, with no further claim.
    Added,
    NotApplied,
    Unknown,
}

#[derive(Debug)]
pub struct Operation {
    pub number: u64,
    pub what: &'static str,
    pub began: Instant,
    pub ended: Instant,
    pub told: Told,
}

pub struct Client {
    client: scene::Client<(), Operation>,
    shelves: Table<Shelf>,
}

impl Client {
    pub fn new(scene: &Arc<Scene>, number: u64) -> Self {
        let client = scene::Client::new(scene, &scene.network, number);
        let shelves = client.open().with_policy(patient()).table(SHELVES).remembering_items();
        Client { client, shelves }
    }

    pub async fn work(self, turns: u64) {
        for _ in 0..turns {
            self.client.pause(60).await;
            let Begun { number, began, call } = self.client.begin(3000);
            let what = match self.client.below(8) {
                0 | 1 => "take with a note",
                2 => "take from either with a note",
                3 => "move",
                4 | 5 => "add or update",
                _ => "add",
            };
            let told = Freezing::new(&self.client.network, self.perform(what, number, &call)).await;
            self.client.scene.note(Operation { number, what, began, ended: Instant::now(), told });
        }
    }

    async fn perform(&self, what: &str, number: u64, call: &Call) -> Told {
        let amount = 1 + i64::try_from(self.client.below(6)).expect("small");
        let shelf = self.client.pick(COUNT);
        let key = self.key(shelf);
        match what {
            "take with a note" => self.take(number, amount, &[shelf], call).await,
            "take from either with a note" => self.take(number, amount, &[shelf, 1 - shelf], call).await,
            "move" => self.move_from(number, shelf, amount, call).await,
            "add or update" => {
                // The value shows an update: it leaves an odd stock and its number.
                let update =
                    |shelf: &Shelf| Ok::<_, Infallible>(Some(Shelf::of(shelf.stock / 4 * 2 + 1, Some(number))));
                let changed = add_or_update(&self.shelves.in_call(call), &self.key(0), &change(-amount), update).await;
                told(changed.map(|shelf| left(&shelf)), |error| {
                    if let UpdateError::Failed(failure) = error { Some(failure) } else { None }
                })
            }
            _ => match self.shelves.in_call(call).add(&key, &change(amount)).await {
                // Answers about the other shelf are not checked.
                Ok(added) if shelf == 0 => Told::Applied(left(&added.item.expect("nobody deletes a shelf"))),
                Ok(_) => Told::Added,
                Err(UpdateError::Failed(failure)) => by_failure(&failure),
                Err(_) => Told::NotApplied,
            },
        }
    }

    fn key(&self, shelf: usize) -> Key {
        Key::from(shelf_id(&self.client.scene.name, shelf))
    }

    /// Takes this amount from the first of these shelves with enough stock, or the rest of the last one, and leaves a
    /// note.
    async fn take(&self, number: u64, most: i64, shelves: &[usize], call: &Call) -> Told {
        let notes = self.shelves.store().table::<Note>(NOTES);
        let mut reads = Reads::new();
        let items = shelves.iter().map(|&shelf| {
            let item = self.item(&mut reads, shelf);
            let note = Key::from(note_id(&self.client.scene.name, number, shelf));
            (shelf, item, reads.later(format!("note {shelf}"), &notes, &note))
        });
        let (items, decisions): (Vec<_>, _) = (items.collect(), Decisions::of(number));
        let store = self.shelves.store().in_call(call);
        let taken = store.transact_with_retry(reads, |attempt| {
            let mut last = None;
            for &(shelf, item, note) in &items {
                let amount = stock(attempt, item)?.min(most);
                last = Some((shelf, item, note, amount));
                if amount == most {
                    break;
                }
            }
            let (shelf, item, note, amount) = last.expect("a shelf");
            if amount <= 0 || attempt.get(note)?.is_some() {
                return Err(Error::Refused(()));
            }
            let decision = decisions.another();
            attempt.put_if_absent(note, &Note { amount })?;
            attempt.add(item, &change(-amount).set("taken", &decision))?;
            Ok(Answer::Took(shelf, amount, decision))
        });
        by_transaction(taken.await)
    }

    /// Moves this amount to the other shelf, or as much as there is and fits. The first add remembers.
    async fn move_from(&self, number: u64, from: usize, most: i64, call: &Call) -> Told {
        let (mut reads, decisions) = (Reads::new(), Decisions::of(number));
        let (giving, taking) = (self.item(&mut reads, from), self.item(&mut reads, 1 - from));
        let store = self.shelves.store().in_call(call);
        let moved = store.transact_with_retry(reads, |attempt| {
            let amount = stock(attempt, giving)?.min(MOST - stock(attempt, taking)?).min(most);
            if amount <= 0 {
                return Err(Error::Refused(()));
            }
            let decision = decisions.another();
            attempt.add(giving, &change(-amount).set("taken", &decision))?;
            attempt.add(taking, &change(amount))?;
            Ok(Answer::Took(from, amount, decision))
        });
        by_transaction(moved.await)
    }

    fn item(&self, reads: &mut Reads, shelf: usize) -> Item<Shelf> {
        reads.remembered(format!("shelf {shelf}"), &self.shelves, self.key(shelf))
    }
}

/// Numbers the decisions of an operation. No two have the same number.
struct Decisions(AtomicU64);

impl Decisions {
    fn of(number: u64) -> Self {
        Decisions(AtomicU64::new(number * 1000))
    }

    fn another(&self) -> u64 {
        self.0.fetch_add(1, Relaxed) + 1
    }
}

fn change(by: i64) -> Add {
    Add::to("stock", by, 0..=MOST).bands("level", "stock", [(0..=4, "low"), (5..=MOST, "high")])
}

fn stock(attempt: &Attempt, item: Item<Shelf>) -> Result<i64, Failure> {
    Ok(attempt.get(item)?.expect("nobody deletes a shelf").value.stock)
}

fn left(shelf: &Versioned<Shelf>) -> Answer {
    Answer::Left(shelf.version().get(), shelf.value.stock, shelf.value.by)
}

fn told<E>(result: Result<Answer, E>, failure: impl Fn(&E) -> Option<&Failure>) -> Told {
    match result {
        Ok(answer) => Told::Applied(answer),
        Err(error) => failure(&error).map_or(Told::NotApplied, by_failure),
    }
}

fn by_transaction(result: Result<Answer, Error<()>>) -> Told {
    told(result, |error| if let Error::Failed(failure) = error { Some(failure) } else { None })
}

fn by_failure(failure: &Failure) -> Told {
    match failure {
        Failure::Contention { .. } | Failure::Unavailable { .. } | Failure::Rejected { .. } => Told::NotApplied,
        Failure::OutcomeUnknown { .. } => Told::Unknown,
        _ => panic!("no such thing happens here: {failure}"),
    }
}

/// Creates a full shelf before the faults begin.
pub async fn create(engine: &Engine, scene: &str, shelf: usize) {
    let table = store(&engine.client(), || SystemTime::UNIX_EPOCH, || 7).table::<Shelf>(SHELVES);
    table.create(&Key::from(shelf_id(scene, shelf)), &Shelf::of(MOST, None)).await.expect("a free key and no fault");
}
