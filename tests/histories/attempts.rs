//! Histories of changes with a different answer for each attempt. The network delivers second copies of refused
//! attempts soon and throttles the next attempt. Each caller must get the answer of the committed attempt, or
//! *unknown*. The answers of a client's decisions depend on the state that they see.

use super::history::{Claim, History, contradiction, says_not_applied};
use super::scene::{self, Begun, rates, with_few_attempts, work_together};
use crate::harness::engine::{Asked, Engine, store};
use crate::harness::faults::{Applied, Broken, Freezing, Rates, network_that_breaks};
use crate::harness::total::Total;
use fencepost::testing::edit_or_update;
use fencepost::{Attempt, Call, Edit, Error, Failure, Item, Key, Reads, Record, Table, UpdateError, Versioned};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;
use tokio::time::Instant;

const SHELVES: &str = "Shelves";
const NOTES: &str = "Notes";
const KEY: &str = "id";
/// The number of shelves in a history.
const COUNT: usize = 2;
/// The highest stock of a shelf. It is low to make refusals common.
const MOST: i64 = 10;

/// A shelf. The level follows from the stock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Shelf {
    stock: i64,
    level: String,
    /// The operation of the last update. An add leaves it unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<u64>,
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

type Scene = scene::Scene<(), Operation>;

fn shelf_id(scene: &str, shelf: usize) -> String {
    format!("{shelf}-{scene}")
}

/// The id of an operation's note at a shelf.
fn note_id(scene: &str, number: u64, shelf: usize) -> String {
    format!("{number}-{shelf}-{scene}")
}

/// The effect in the answer to a change.
#[derive(Clone, Debug, PartialEq)]
enum Answer {
    /// The shelf, the amount and the decision of a take.
    Took(usize, i64, u64),
    /// The version, the stock and the last update of shelf 0, after this change or a later one.
    Left(u64, i64, Option<u64>),
}

#[derive(Clone, Debug, PartialEq)]
enum Told {
    Applied(Answer),
    /// Applied, with no further claim.
    Added,
    NotApplied,
    Unknown,
}

#[derive(Debug)]
struct Operation {
    number: u64,
    what: &'static str,
    began: Instant,
    ended: Instant,
    told: Told,
}

struct Client {
    client: scene::Client<(), Operation>,
    shelves: Table<Shelf>,
}

impl Client {
    fn new(scene: &Arc<Scene>, number: u64) -> Self {
        let client = scene::Client::new(scene, &scene.network, number);
        let shelves = client.open().with_policy(with_few_attempts()).table(SHELVES).remembering_items();
        Client { client, shelves }
    }

    async fn work(self, turns: u64) {
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
                let changed = edit_or_update(&self.shelves.in_call(call), &self.key(0), &change(-amount), update).await;
                told(changed.map(|shelf| left(&shelf)), |error| {
                    if let UpdateError::Failed(failure) = error { Some(failure) } else { None }
                })
            }
            _ => match self.shelves.in_call(call).edit(&key, &change(amount)).await {
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
            attempt.edit_blind(item, &change(-amount).and_set("taken", &decision))?;
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
            attempt.edit_blind(giving, &change(-amount).and_set("taken", &decision))?;
            attempt.edit_blind(taking, &change(amount))?;
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

fn change(by: i64) -> Edit {
    Edit::add("stock", by, 0..=MOST).bands("level", "stock", [(0..=4, "low"), (5..=MOST, "high")])
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
    if says_not_applied(failure) { Told::NotApplied } else { Told::Unknown }
}

/// Creates a full shelf before the faults begin.
async fn create(engine: &Engine, scene: &str, shelf: usize) {
    let table = store(&engine.client(), || SystemTime::UNIX_EPOCH, || 7).table::<Shelf>(SHELVES);
    table.create(&Key::from(shelf_id(scene, shelf)), &Shelf::of(MOST, None)).await.expect("a free key and no fault");
}

const TOLD_ANOTHER: &str = "told another answer than that of the attempt that was committed";

struct Attempts {
    scene: String,
    done: Vec<Operation>,
    /// The shelves before all writes, and the applied writes.
    first: Vec<Value>,
    applied: Vec<Applied>,
}

impl History for Attempts {
    const TABLES: &'static [(&'static str, &'static str)] = &[(SHELVES, KEY), (NOTES, KEY)];
    const SAMPLE: u64 = 100;

    /// Many second copies, most of them soon, and much throttling. The other faults come in a storm or in a breeze.
    async fn play(engine: &Engine, seed: u64, broken: Broken) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let most = Rates {
            dropped: 20,
            answer_lost: 80,
            applied_500: 30,
            held: 30,
            transaction_conflict: 60,
            ..Rates::default()
        };
        let most = Rates {
            frozen: 10,
            in_progress: 40,
            mismatch: 40,
            tokens_forgotten: 60,
            mixed_reasons: 100,
            garbled: 30,
            ..most
        };
        let rates = rates(&mut rng, 0..=8, most);
        let rates = Rates { second_copy: 250, copied_soon: 800, throttled: 350, ..rates };
        let (clients, turns) = (rng.u64(2..=5), rng.u64(3..=8));
        let network = network_that_breaks(engine, rates, broken, rng);
        let name = format!("{seed}-{broken:?}");
        let scene = Scene::new(seed, name, network, ());
        for shelf in 0..COUNT {
            create(engine, &scene.name, shelf).await;
        }
        let first = (0..COUNT).map(|shelf| engine.row(SHELVES, KEY, &shelf_id(&scene.name, shelf))).collect();
        work_together((0..clients).map(|number| Client::new(&scene, number).work(turns))).await;
        let applied = scene.network.applied().clone();
        Attempts { scene: scene.name.clone(), done: scene.take_done(), first, applied }
    }

    fn violations(&self, _: &Engine, _: &[Asked]) -> Vec<String> {
        let (effects, states) = self.played();
        self.done.iter().filter_map(|operation| self.check(operation, &effects, &states)).collect()
    }

    fn judged(&self) -> Vec<String> {
        Vec::new()
    }

    fn total(&self) -> Total {
        let (effects, _) = self.played();
        let count = |such: &dyn Fn(&Operation) -> bool| self.done.iter().filter(|operation| such(operation)).count();
        let applied = |what: &str| count(&|o| o.what.starts_with(what) && matches!(o.told, Told::Applied(_)));
        let by_copy = |of: fn(&Told) -> bool| {
            count(&|o| of(&o.told) && effects.iter().any(|e| e.applied.op == o.number && e.applied.is_copy_of_refused))
        };
        Total::of(&[
            ("takes", applied("take")),
            ("moves", applied("move")),
            ("addsOrUpdates", applied("add or update")),
            ("adds", count(&|operation| operation.what == "add" && matches!(operation.told, Told::Added))),
            ("toldNotApplied", count(&|operation| operation.told == Told::NotApplied)),
            ("unknown", count(&|operation| operation.told == Told::Unknown)),
            ("copiesOfEarlierAttempts", by_copy(|told| *told != Told::NotApplied)),
            ("refusalsMadeUntrue", by_copy(|told| *told == Told::NotApplied)),
        ])
    }

    fn assert_enough_happened(total: &Total) {
        let enough = total.least(&["takes", "moves", "addsOrUpdates", "adds", "toldNotApplied"]);
        assert!(enough * 2 > total["histories"], "little happened: {total}");
        assert!(total["copiesOfEarlierAttempts"] > 0, "no copy of an earlier attempt was ever applied: {total}");
    }
}

/// The effect of an applied write on the shelves.
struct Effect<'a> {
    applied: &'a Applied,
    /// The change of each stock.
    changed: [i64; COUNT],
}

/// The parts of a stored shelf: version, stock and the number of the last update.
type State = (u64, i64, Option<u64>);

fn shelf_of(row: &Value) -> State {
    let number = |name: &str| row[name]["N"].as_str().and_then(|number| number.parse::<i64>().ok());
    let (version, by) = (number("_version").expect("a version"), number("by"));
    (u64::try_from(version).expect("positive"), number("stock").expect("a stock"), by.and_then(|by| by.try_into().ok()))
}

impl Attempts {
    /// Each applied write with an effect, and all states of the first shelf. A burn has none.
    fn played(&self) -> (Vec<Effect<'_>>, Vec<State>) {
        let mut now: Vec<_> = self.first.iter().map(shelf_of).collect();
        let (mut effects, mut states) = (Vec::new(), vec![now[0]]);
        for applied in &self.applied {
            let (mut changed, mut updated) = ([0; COUNT], false);
            for shelf in 0..COUNT {
                let Some(row) = applied.left_in(SHELVES, &shelf_id(&self.scene, shelf)) else { continue };
                let after = shelf_of(row);
                changed[shelf] = after.1 - now[shelf].1;
                updated |= after.2 != now[shelf].2;
                now[shelf] = after;
                if shelf == 0 {
                    states.push(after);
                }
            }
            if updated || changed != [0; COUNT] {
                effects.push(Effect { applied, changed });
            }
        }
        (effects, states)
    }

    fn check(&self, operation: &Operation, effects: &[Effect], states: &[State]) -> Option<String> {
        let mine: Vec<_> = effects.iter().filter(|effect| effect.applied.op == operation.number).collect();
        let applied: Vec<_> = mine.iter().map(|effect| effect.applied).collect();
        let claim = match operation.told {
            Told::Applied(_) | Told::Added => Claim::Applied,
            Told::NotApplied => Claim::NotApplied,
            Told::Unknown => Claim::Nothing,
        };
        let why = contradiction(claim, (operation.began, operation.ended), &applied, true);
        let is_another = || match (&operation.told, &mine[..]) {
            (Told::Applied(answer), [effect]) => !self.is_answer_of(operation, answer, effect, states),
            _ => false,
        };
        let why = why.or_else(|| is_another().then_some(TOLD_ANOTHER))?;
        let did: Vec<_> = mine.iter().map(|effect| (effect.changed, &effect.applied.rows)).collect();
        Some(format!("{why}: {operation:?} did {did:?}"))
    }

    fn is_answer_of(&self, operation: &Operation, answer: &Answer, effect: &Effect, states: &[State]) -> bool {
        match *answer {
            Answer::Left(version, stock, by) => {
                let made = effect.applied.left_in(SHELVES, &shelf_id(&self.scene, 0)).map(|row| shelf_of(row).0);
                made.is_some_and(|made| made <= version) && states.contains(&(version, stock, by))
            }
            Answer::Took(shelf, amount, decision) => {
                let left = |table: &str, id: &str| effect.applied.left_in(table, id).cloned().unwrap_or_default();
                let shows = |value: &Value, number: String| value["N"] == number.as_str();
                let note = &left(NOTES, &note_id(&self.scene, operation.number, shelf))["amount"];
                let (notes, moves) = (operation.what.contains("note"), operation.what == "move");
                shows(&left(SHELVES, &shelf_id(&self.scene, shelf))["taken"], decision.to_string())
                    && (!notes || shows(note, amount.to_string()))
                    && effect.changed[shelf] == -amount
                    && effect.changed[1 - shelf] == if moves { amount } else { 0 }
            }
        }
    }
}

#[test]
fn each_change_is_answered_by_the_attempt_that_was_committed_under_every_fault() {
    Attempts::holds();
}
