//! Histories of one item that another program writes too. For each style of writing, they confirm the promises and the
//! warnings of `docs/adoption.md`.
//!
//! Reading order: [`neighbour`] (the other program), [`writer`] (Fencepost), then [`Mixed`].

use super::history::History;
use super::scene::{ALL_HAS_ARRIVED, STORM, rates};
use crate::harness::engine::Engine;
use crate::harness::faults::{Applied, Broken, Rates, network_that_breaks};
use crate::harness::total::Total;
use crate::histories::audit::breaches;
use fencepost::Record;
use fencepost::maintenance::Audit;
use item::{Operation, State, Timeline, Told, happened};
use judges::linearizable::NO_ORDER;
use judges::register::{self, Op};
use neighbour::Style;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use writer::{ANY, Counts, FOREIGN, KEY, NOBODY, NOTES, Own, Scene, TABLE, Tally, VERSIONED, Writer};

mod item;
mod neighbour;
mod writer;

const LOST_UPDATE: &str = "a write undid what it had not read";
const UNDONE: &str = "an old row was put back over a change of Fencepost";

/// Histories where the `Record` says `OTHERS` and the other program writes in `Style::ALL[STYLE]`.
struct Mixed<const OTHERS: u8, const STYLE: usize> {
    applied: Vec<Applied>,
    start: Instant,
    done: Vec<Operation>,
    key: String,
    row: Value,
}

const UPDATES: usize = 0;
const PUTS: usize = 1;
const DELETES: usize = 2;
const RECREATES: usize = 3;
const CLOBBERS: usize = 4;
const PUTS_RAW: usize = 5;
const COPIES_THROUGH: usize = 6;
const OVERWRITES: usize = 7;

impl<const OTHERS: u8, const STYLE: usize> History for Mixed<OTHERS, STYLE> {
    const TABLES: &'static [(&'static str, &'static str)] = &[(TABLE, KEY), (NOTES, KEY)];
    const SAMPLE: u64 = 30;

    async fn play(engine: &Engine, seed: u64, broken: Broken) -> Self {
        let (style, mut rng) = (Style::ALL[STYLE], fastrand::Rng::with_seed(seed));
        // Where the other program removes rows, a create may be applied twice, unless versions and values are demanded.
        let creates = style != Style::Deletes || OTHERS == ANY || broken == Broken::CreatesToo;
        // Tokens are forgotten after ten minutes, not before. Half of the second copies come shortly before their
        // signature ends: almost ten minutes after the first copy, if a clock is ahead.
        let most = Rates { held: 60, second_copy: 200, copied_last: 500, transaction_conflict: 80, ..STORM };
        let most =
            Rates { in_progress: 60, mismatch: 60, tokens_forgotten: 0, mixed_reasons: 0, unprocessed: 0, ..most };
        let rates = rates(&mut rng, 1..=8, most);
        let (writers, neighbours, turns) = (rng.u64(1..=4), rng.u64(1..=3), rng.u64(3..=9));
        let (hours, begins_foreign) = (rng.u32(..4) == 0, !creates || rng.bool());
        let network = network_that_breaks(engine, rates, broken, rng);
        let name = format!("tally-{seed}-{OTHERS}-{style:?}-{creates}");
        let scene = Scene::new(seed, name, network, Own { hours, creates });
        if begins_foreign {
            neighbour::found(&scene);
        }
        let sweep = tokio::spawn(neighbour::sweep(scene.clone()));
        let mut working = tokio::task::JoinSet::new();
        for client in 0..writers {
            working.spawn(Writer::<OTHERS>::new(&scene, client).work(turns));
        }
        for _ in 0..neighbours {
            working.spawn(neighbour::work(scene.clone(), style, turns));
        }
        working.join_all().await;
        sleep(ALL_HAS_ARRIVED).await;
        sweep.abort();
        let (applied, row) = (scene.network.applied().clone(), engine.row(TABLE, KEY, &scene.name));
        Mixed { applied, start: scene.start, done: scene.take_done(), key: scene.name.clone(), row }
    }

    fn violations(&self, _: &Engine) -> Vec<String> {
        let timeline = self.timeline();
        let untrue = self.done.iter().filter(|operation| !timeline.tells_true_versions(operation));
        let mut found: Vec<_> = untrue.map(|operation| format!("told another version: {operation:?}")).collect();
        found.extend(timeline.0.iter().filter_map(|state| self.lost_update(state).or_else(|| Self::undone(state))));
        if OTHERS == ANY || OTHERS == VERSIONED && Style::ALL[STYLE].is_checked() {
            let audit = Audit::of(Tally::<OTHERS>::SETTINGS);
            found.extend(breaches((TABLE, false), &audit, self.start, &self.applied));
        }
        if timeline.0.last().is_some_and(|last| *last.row != self.row) {
            found.push(format!("the row was not left by its last commit: {}", self.row));
        }
        found
    }

    /// The item's clients are those of Fencepost and the other program.
    fn judged(&self) -> Vec<String> {
        let timeline = self.timeline();
        let mut seen: Vec<_> = self.done.iter().filter_map(Operation::seen).collect();
        // The outcome of a second copy of a refused write is unknown.
        let copied = timeline.0.iter().filter(|state| state.applied.is_copy_of_refused);
        seen.extend(copied.filter_map(|State { applied, before, after, .. }| {
            self.operation(applied.op)?.may_come_again([before.as_ref(), after.as_ref()])
        }));
        let foreign = timeline.0.iter().filter(|state| state.applied.op >= FOREIGN && state.is_effect());
        seen.extend(foreign.map(|state| happened(state.applied, FOREIGN, Op::Put(state.after.clone()))));
        // And somebody reads the row at the end.
        seen.extend(timeline.0.last().map(State::read_at_the_end));
        register::judge(None, seen).err().into_iter().collect()
    }

    fn total(&self) -> Total {
        let timeline = self.timeline();
        let states = |such: &dyn Fn(&State<'_>) -> bool| timeline.0.iter().filter(|one| such(one)).count();
        let count = |such: &dyn Fn(&Operation) -> bool| self.done.iter().filter(|one| such(one)).count();
        let has_incarnation = |state: &State<'_>| state.row.get("_incarnation").is_some();
        let is_adoption =
            |pair: &&[State<'_>]| pair[0].after.is_some() && !has_incarnation(&pair[0]) && has_incarnation(&pair[1]);
        Total::of(&[
            ("toldApplied", count(&Operation::is_told_applied)),
            ("toldNotApplied", count(&|operation| !operation.is_told_applied() && operation.told != Told::Unknown)),
            ("unknown", count(&|operation| operation.told == Told::Unknown)),
            ("ours", states(&|state| state.applied.op < FOREIGN && state.is_effect())),
            ("foreign", states(&|state| state.applied.op >= FOREIGN)),
            ("adoptions", timeline.0.windows(2).filter(is_adoption).count()),
            ("inTransactions", count(&|operation| operation.told == Told::Landed)),
            ("burns", states(&|state| state.applied.op < FOREIGN && !state.is_effect())),
        ])
    }

    fn assert_enough_happened(total: &Total) {
        assert!(total["inTransactions"] * 4 > total["histories"], "few transactions landed: {total}");
        let enough = total.least(&["ours", "foreign", "toldApplied"]);
        assert!(enough > total["histories"], "little happened: {total}");
        assert!(total["adoptions"] * 4 > total["histories"], "few rows were adopted: {total}");
        assert!(total["unknown"] > 0 && total["toldNotApplied"] > 0, "something never happened: {total}");
    }
}

impl<const OTHERS: u8, const STYLE: usize> Mixed<OTHERS, STYLE> {
    fn timeline(&self) -> Timeline<'_> {
        Timeline::of(&self.applied, TABLE, &self.key)
    }

    fn operation(&self, number: u64) -> Option<&Operation> {
        self.done.iter().find(|operation| operation.number == number)
    }

    /// A write that did not apply its operation to the value before it: it undid a write in between. If the other
    /// program demands nothing, only the writes of Fencepost are checked. Where Fencepost removes rows, versions start
    /// again, and the other program takes a new row for an old one.
    fn lost_update(&self, state: &State<'_>) -> Option<String> {
        let State { applied, before, after, .. } = state;
        let expected = if applied.op >= FOREIGN {
            let is_checked = Style::ALL[STYLE].is_checked() && OTHERS != ANY;
            let wrote = after.as_ref().filter(|_| is_checked)?;
            let read = before.clone().unwrap_or(Counts { operations: Vec::new(), count: 0 });
            let is_first = wrote.operations.len() == 1 && wrote.count == 0;
            Some(if is_first { Counts::first(applied.op) } else { read.changed(applied.op) })
        } else {
            self.operation(applied.op)?.makes(before.as_ref())
        };
        let is_right = !state.is_effect() || *after == expected;
        (!is_right).then(|| format!("{LOST_UPDATE}: operation {} made {after:?} of {before:?}", applied.op))
    }

    /// An old row that was put back without a change that had landed.
    fn undone(state: &State<'_>) -> Option<String> {
        let copies = Style::ALL[STYLE] == Style::CopiesThrough && state.applied.op >= FOREIGN;
        let (before, after) = (state.before.as_ref().filter(|_| copies)?, state.after.as_ref());
        let is_gone =
            |number: &&u64| **number < FOREIGN && after.is_none_or(|after| !after.operations.contains(number));
        before.operations.iter().find(is_gone).map(|number| format!("{UNDONE}: operation {number}"))
    }
}

#[test]
fn beside_writes_that_demand_the_version_nothing_is_applied_twice_or_lost() {
    Mixed::<VERSIONED, UPDATES>::holds();
    Mixed::<VERSIONED, PUTS>::holds();
    Mixed::<VERSIONED, DELETES>::holds();
}

#[test]
fn with_values_demanded_nothing_is_applied_twice_beside_deletes_creates_and_writes_that_demand_the_version() {
    Mixed::<ANY, DELETES>::holds();
    Mixed::<ANY, RECREATES>::holds();
    Mixed::<ANY, UPDATES>::holds();
    Mixed::<ANY, PUTS>::holds();
}

#[test]
fn with_values_demanded_nothing_is_applied_twice_beside_writes_that_demand_nothing() {
    Mixed::<ANY, CLOBBERS>::holds();
    Mixed::<ANY, OVERWRITES>::holds();
    Mixed::<ANY, PUTS_RAW>::holds();
}

#[test]
fn what_only_demands_versions_is_broken_by_programs_that_delete_or_demand_none() {
    let (twice, lost) = (NO_ORDER, LOST_UPDATE);
    Mixed::<VERSIONED, DELETES>::notices(&[(Broken::CreatesToo, 0..2000, twice)]);
    Mixed::<VERSIONED, RECREATES>::notices(&[(Broken::Nothing, 0..2000, twice)]);
    Mixed::<VERSIONED, CLOBBERS>::notices(&[(Broken::Nothing, 0..2000, lost)]);
    Mixed::<VERSIONED, PUTS_RAW>::notices(&[(Broken::Nothing, 0..2000, lost)]);
    Mixed::<VERSIONED, COPIES_THROUGH>::notices(&[(Broken::Nothing, 0..2000, twice)]);
}

#[test]
fn copies_of_old_rows_undo_changes_whatever_is_demanded() {
    Mixed::<ANY, COPIES_THROUGH>::notices(&[(Broken::Nothing, 0..2000, UNDONE)]);
}

#[test]
fn a_record_that_denies_its_neighbours_tells_them_untruths() {
    Mixed::<NOBODY, DELETES>::notices(&[(Broken::CreatesToo, 335..2335, NO_ORDER)]);
}
