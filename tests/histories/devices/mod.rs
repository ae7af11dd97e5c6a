//! Histories of one item: edits (adds to a number, another label), changes, transactions, deletes, creates, TTL and every fault at once. Every promise
//! about the item is checked.
//!
//! Reading order: [`writer`], [`Devices`]. The rules broken at the end show that the checks and the independent judge
//! notice.

use super::history::{self, History};
use super::item::{Operation, State, Stored, Timeline, Told, happened, without_count_of_tickets, without_tickets};
use super::scene::{STORM, Scene, TTL, rates, work_together};
use crate::harness::engine::{Asked, Engine};
use crate::harness::faults::{Applied, Broken, Rates, is_burn, network_that_breaks};
use crate::harness::total::Total;
use fencepost::{ItemVersion, Record};
use judges::register::{self, Op};
use serde_json::Value;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::sleep;
use writer::{Amount, Ledger, NOTED, NOTES, Note, Own, REMEMBERED, TABLE, Writer, state_of};

mod writer;

/// The most ids in the row in these histories. A row forgets an id some commits after the R-th, because one write
/// forgets four at most, and bare adds and burns none.
const MOST_REMEMBERED: u64 = 3 * REMEMBERED;

struct Devices {
    key: String,
    applied: Vec<Applied>,
    done: Vec<Operation<Ledger>>,
    row: Value,
}

impl History for Devices {
    const TABLES: &'static [(&'static str, &'static str)] =
        &[(TABLE, Ledger::PARTITION_KEY), (NOTES, Note::PARTITION_KEY)];
    const SAMPLE: u64 = 40;

    async fn play(engine: &Engine, seed: u64, broken: Broken) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let most = Rates { held: 60, second_copy: 80, throttled: 250, transaction_conflict: 80, ..STORM };
        let most = Rates { in_progress: 60, mismatch: 60, mixed_reasons: 100, unprocessed: 100, ..most };
        let rates = rates(&mut rng, 1..=8, most);
        let (writers, operations, hours) = (rng.u64(2..=8), rng.u64(2..=9), rng.u32(..4) == 0);
        // One in three histories has two builds.
        let mut builds = fastrand::Rng::with_seed(seed ^ 0x0B01_1D00);
        let builds = (builds.u32(..3) == 0).then(|| Mutex::new(builds));
        let network = network_that_breaks(engine, rates, broken, rng);
        let name = format!("ledger-{seed}-{broken:?}");
        let scene = Scene::new(seed, name, network, Own { hours, builds });
        let swept = scene.clone();
        let ttl = tokio::spawn(async move {
            loop {
                sleep(Duration::from_millis(swept.network.below(1_200_000))).await;
                swept.remove_ended(&[(TABLE, swept.name.clone())], || true);
            }
        });
        // The first create sees faults too: it is part of the history.
        Writer::new(&scene, 0).run("create").await;
        work_together((0..writers).map(|index| Writer::new(&scene, index).work(operations, index == 0))).await;
        ttl.abort();
        let applied = without_tickets(scene.network.applied().clone());
        let row = without_count_of_tickets(engine.row(TABLE, Ledger::PARTITION_KEY, &scene.name));
        Devices { key: scene.name.clone(), applied, done: scene.take_done(), row }
    }

    fn violations(&self, _: &Engine, _: &[Asked]) -> Vec<String> {
        let timeline = self.timeline();
        let mut found: Vec<_> = self.done.iter().filter_map(|operation| timeline.contradicts(operation)).collect();
        found.extend(self.done.iter().filter_map(contradicts_its_demand));
        found.extend(breaks_a_count(&timeline));
        found.extend(self.breaks_the_value(&timeline));
        found.extend(self.breaks_what_a_build_does_not_know(&timeline));
        let remembered = |row: &Value| row["_writes"]["M"].as_object().map_or(0, serde_json::Map::len);
        let most = timeline.0.iter().map(|state| remembered(state.row)).max().unwrap_or_default();
        if u64::try_from(most).expect("few") > MOST_REMEMBERED {
            found.push(format!("the row remembers {most} writes"));
        }
        if timeline.0.last().map_or(&Value::Null, |state| state.row) != &self.row {
            found.push(format!("the row was not left by its last commit: {}", self.row));
        }
        found
    }

    fn judged(&self) -> Vec<String> {
        let mut seen: Vec<_> = self.done.iter().filter_map(Operation::seen).collect();
        // The one exception: the outcome of a second copy of a refused add is unknown.
        let copied = |number: u64| self.applied.iter().any(|one| one.op == number && one.is_copy_of_refused);
        let is_refused = |operation: &&Operation<_>| !operation.is_told_applied() && !operation.is_unknown();
        let made_untrue =
            self.done.iter().filter(is_refused).filter(|refused| refused.adds() && copied(refused.number));
        seen.extend(made_untrue.filter_map(|add| add.may_come_again([None; 2])));
        let purges = self.applied.iter().filter(|applied| applied.op == TTL);
        seen.extend(purges.map(|purge| happened(purge, 1 << 32, Op::Purge)));
        register::judge(None, seen).err().into_iter().collect()
    }

    fn total(&self) -> Total {
        let timeline = self.timeline();
        let count = |such: &dyn Fn(&Operation<_>) -> bool| self.done.iter().filter(|one| such(one)).count();
        let landed = |operation: &Operation<_>| timeline.has_landed(operation);
        let states = |such: fn(bool, bool) -> bool| {
            timeline.0.iter().filter(|state| such(state.is_effect(), state.applied.op == TTL)).count()
        };
        let is_burned_note = |applied: &&Applied| applied.rows[0].step.table == NOTES && is_burn(applied);
        let is_label = |one: &Operation<_>| matches!(Ledger::amount(one.number), Amount::Label(_));
        let passed = self.done.iter().filter(|one| one.what == "add").map(|one| one.conflicts).sum::<u32>();
        let mut total = timeline.answers(&self.done);
        total += Total::of(&[
            ("commits", self.applied.len()),
            ("adds", count(&|one| one.what == "add" && landed(one))),
            ("labels", count(&|one| one.adds() && is_label(one) && landed(one))),
            ("addsInTransactions", count(&|one| one.adds() && one.what != "add" && landed(one))),
            ("byTheBuildBefore", count(&|one| one.by_before && landed(one))),
            ("burns", states(|is_effect, by_ttl| !is_effect && !by_ttl)),
            ("burnsOfCreates", self.applied.iter().filter(is_burned_note).count()),
            ("purges", states(|_, by_ttl| by_ttl)),
            ("windowsPassed", usize::try_from(passed).expect("few")),
            ("refused", count(&|one| matches!(one.told, Told::OutOfRange(..)))),
        ]);
        total
    }

    fn assert_enough_happened(total: &Total) {
        let enough = total.least(&["toldApplied", "toldNotApplied", "adds", "addsInTransactions"]);
        assert!(enough > total["histories"], "little happened: {total}");
        assert!(total["byTheBuildBefore"] * 2 > total["histories"], "hardly a rollback: {total}");
        let some = total.least(&["burns", "burnsOfCreates", "purges", "windowsPassed", "refused", "labels"]);
        assert!(some > 0, "something never happened: {total}");
        let told = total["toldApplied"] + total["toldNotApplied"] + total["unknown"];
        assert!(total["unknown"] * 40 < told, "unknown is for the rare case: {total}");
        assert!(total["refusalsMadeUntrue"] * 50 < total["refused"], "that is for the rare case: {total}");
        total.assert_unknown_is_worth_its_name();
    }
}

impl Devices {
    fn timeline(&self) -> Timeline<'_, Ledger> {
        Timeline::of(&self.applied, TABLE, &self.key)
    }

    fn operation(&self, number: u64) -> Option<&Operation<Ledger>> {
        self.done.iter().find(|operation| operation.number == number)
    }

    /// Every commit applies its operation to the value. Only a burn leaves the value unchanged.
    fn breaks_the_value(&self, timeline: &Timeline<'_, Ledger>) -> Option<String> {
        let is_wrong = |state: &&State<'_, Ledger>| {
            let operation = self.operation(state.applied.op);
            let expected = operation.and_then(|operation| operation.makes(state.before.as_ref()));
            let changes_nothing = state.is_burn || state.applied.op == TTL;
            let is_right = if state.is_effect() { state.after == expected } else { changes_nothing };
            !is_right || state.after.as_ref().is_some_and(|ledger| !ledger.is_right())
        };
        let wrong = timeline.0.iter().find(is_wrong)?;
        let (operation, before, after) = (self.operation(wrong.applied.op), &wrong.before, &wrong.after);
        Some(format!("the value is wrong: {operation:?} made {after:?} of {before:?}"))
    }

    /// The build before keeps attributes that it does not know. Today's build notes its changes, but not its adds.
    fn breaks_what_a_build_does_not_know(&self, timeline: &Timeline<'_, Ledger>) -> Option<String> {
        let mut before = &Value::Null;
        for state in &timeline.0 {
            let noted = &state.row[NOTED]["N"];
            let is_change = |one: &&Operation<_>| state.is_effect() && !one.what.starts_with("delete");
            if let Some(operation) = self.operation(state.applied.op).filter(is_change) {
                let kept = if operation.what == "create" { &Value::Null } else { before };
                let own = Value::from(operation.number.to_string());
                let expected = if operation.by_before || operation.adds() { kept } else { &own };
                if noted != expected {
                    return Some(format!("{operation:?} left {noted} noted after {before}"));
                }
            }
            before = noted;
        }
        None
    }
}

/// Every commit and every burn raises the version by one. A row keeps its incarnation until TTL removes it.
fn breaks_a_count(timeline: &Timeline<'_, Ledger>) -> Option<String> {
    let mut before: Option<ItemVersion> = None;
    for state in &timeline.0 {
        let (now, op) = (state_of(state.row), state.applied.op);
        let is_next = match (before, now) {
            (None, Some(now)) => now.version.get() == 1,
            (Some(before), Some(now)) => is_next(now, before),
            (_, None) => op == TTL,
        };
        if !is_next {
            return Some(format!("operation {op} left {now:?} after {before:?}"));
        }
        before = now;
    }
    None
}

fn is_next(now: ItemVersion, before: ItemVersion) -> bool {
    (now.incarnation, now.version.get()) == (before.incarnation, before.version.get() + 1)
}

/// The answer to an operation, against the state that the operation demanded.
fn contradicts_its_demand(operation: &Operation<Ledger>) -> Option<String> {
    let at = operation.asked.at?;
    let why = match &operation.told {
        Told::Applied(now, _) if !is_next(*now, at) => "applied to another state than it demanded",
        Told::Saw(there, _) if *there == at => "refused, though the state was what it demanded",
        _ => return None,
    };
    Some(format!("{why}: {operation:?}"))
}

#[test]
fn no_change_is_applied_twice_and_no_verdict_is_false_under_every_fault() {
    Devices::holds();
}

#[test]
fn each_broken_rule_is_noticed() {
    Devices::notices(&[
        (Broken::NoJudge, 20..2000, history::APPLIED_TWICE),
        (Broken::LastWriterOnly, 122..2006, history::APPLIED_TWICE),
        (Broken::RowsDeleted, 916..2890, history::DENIED),
        (Broken::ThrottlingClears, 142..2000, history::DENIED),
        (Broken::AddOfAnyId, 13..2000, history::APPLIED_TWICE),
        (Broken::AddNeverLate, 321..2321, history::APPLIED_TWICE),
        (Broken::Forgets { after: 2 }, 50..2050, history::APPLIED_TWICE),
        (Broken::Forgets { after: REMEMBERED - 1 }, 573..2573, history::APPLIED_TWICE),
        (Broken::BurnLeavesNothing, 1159..3195, history::DENIED),
        (Broken::BurnAsAdd, 3..2000, history::NEVER_APPLIED),
        (Broken::BurnsIgnored, 3..2000, history::NEVER_APPLIED),
        (Broken::FreshIds, 1..2000, history::APPLIED_TWICE),
        (Broken::RevivedWithoutMemory, 1..2093, history::DENIED),
    ]);
}

#[test]
fn the_independent_judge_notices_broken_rules() {
    Devices::notices_by_the_judge(&[
        (Broken::NoJudge, 20..2000),
        (Broken::AddOfAnyId, 13..2000),
        (Broken::RowsDeleted, 806..2800),
    ]);
}
