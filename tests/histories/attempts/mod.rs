//! Histories of changes with a different answer for each attempt. The network delivers second copies of refused
//! attempts soon and throttles the next attempt. Each caller must get the answer of the committed attempt, or
//! *unknown*.
//!
//! Reading order: [`client`], then [`Attempts`].

use super::claims::{Claim, contradiction};
use super::history::History;
use super::scene::{Scene, rates, work_together};
use crate::harness::engine::{Asked, Engine};
use crate::harness::faults::{Applied, Broken, Rates, network_that_breaks};
use crate::harness::total::Total;
use client::{Answer, COUNT, Client, KEY, NOTES, Operation, SHELVES, Told, note_id, shelf_id};
use serde_json::Value;

mod client;

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
    type Rule = Broken;
    const NOTHING: Broken = Broken::Nothing;

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
            client::create(engine, &scene.name, shelf).await;
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
