//! Programs over the whole public surface, drawn at random and played under every fault.
//!
//! [`plan`] draws a program, [`play`] plays it on the types of [`records`], and [`judge`] compares what the clients were
//! told with what happened. A broken program is made smaller before it is printed.

use super::history::{self, By, History};
use super::scene::{Scene, TTL, work_together};
use crate::harness::engine::{Engine, Step, embedded_with_indexed_tables, store};
use crate::harness::faults::{Applied, Broken, ONE_PAYLOAD, Touched, network_that_breaks};
use crate::harness::total::Total;
use catalog::{KINDS, Row, key_of};
use kinds::PLAYED;
use plan::Program;
use player::{KEY_NAME, LEADERS, LEASES, Own, Player, RECORDS, Scene as Stage};
use rows::{Ended, ends_at};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

mod catalog;
mod edits;
mod fields;
mod judge;
mod kinds;
mod leases;
mod plan;
mod play;
mod player;
mod records;
mod rows;
mod rules;
mod single;
mod surface;
mod told;
mod values;
mod writing;

/// A finished program, with how often it played each operation and option.
struct Programs {
    ended: Ended,
    played: BTreeMap<&'static str, usize>,
}

/// The rows that a program names.
fn rows_of(program: &Program) -> Vec<Row> {
    let rows: BTreeSet<_> =
        program.clients.iter().flat_map(|client| &client.tasks).flat_map(|task| task.op.rows()).collect();
    // A listing shows both rows of its partition.
    let kinds: BTreeSet<_> = rows.iter().map(|row| row.kind).collect();
    kinds.into_iter().flat_map(|kind| [0, 1].map(|key| Row { kind, key })).collect()
}

/// Creates the tables of all kinds.
fn tables(engine: &Engine) {
    for kind in KINDS {
        let (names, kinds) = kind.key();
        let parts = || names.iter().zip(kinds.chars());
        let role = |(name, role): (&&str, &str)| json!({"AttributeName": name, "KeyType": role});
        let mut attributes: Vec<_> =
            parts().map(|(name, of)| json!({"AttributeName": name, "AttributeType": of.to_string()})).collect();
        let mut table = json!({
            "TableName": kind.table(),
            "KeySchema": names.iter().zip(["HASH", "RANGE"]).map(role).collect::<Vec<_>>(),
            "BillingMode": "PAY_PER_REQUEST",
        });
        if kind.table() == "PlaySortedText" {
            attributes.extend(["n", "by"].map(|name| json!({"AttributeName": name, "AttributeType": "N"})));
            let index = |name, keys: &[(&str, &str)]| {
                let keys = keys.iter().map(|(name, role)| json!({"AttributeName": name, "KeyType": role}));
                let keys: Vec<_> = keys.collect();
                json!([{"IndexName": name, "KeySchema": keys, "Projection": {"ProjectionType": "ALL"}}])
            };
            table["LocalSecondaryIndexes"] = index("byN", &[("id", "HASH"), ("n", "RANGE")]);
            let several = [("id", "HASH"), ("line", "HASH"), ("n", "RANGE"), ("by", "RANGE")];
            table["GlobalSecondaryIndexes"] = index("byLine", &several);
        }
        table["AttributeDefinitions"] = json!(attributes);
        engine.raw("CreateTable", &table);
    }
    for (table, key) in [(LEASES, KEY_NAME), (LEADERS, "shard"), (RECORDS, KEY_NAME)] {
        engine.create_table(table, key);
    }
}

impl Programs {
    /// Plays a program to its end, on rows of its own.
    async fn of(engine: &Engine, program: &Program, broken: Broken) -> Self {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let name = format!("{}-{}", program.seed, RUNS.fetch_add(1, Relaxed));
        let network = network_that_breaks(engine, program.rates, broken, fastrand::Rng::with_seed(program.seed));
        let scene =
            Scene::new(program.seed, name, network, Own { has_no_skew: broken == Broken::NoSkew, ..Own::default() });
        let rows = rows_of(program);
        let ttl = tokio::spawn(act_as_ttl(scene.clone(), rows.clone(), program.ttl));
        let players = program.clients.iter().zip(0..).map(|(client, number)| {
            let player = Player::new(&scene, number, client);
            player.work(client.tasks.clone())
        });
        work_together(players.collect::<Vec<_>>().into_iter()).await;
        ttl.abort();
        let (applied, notes, log) = (scene.network.applied().clone(), scene.take_done(), scene.network.log());
        let beliefs = std::mem::take(&mut *scene.beliefs.lock().expect("no panic"));
        let log_length = log.len() as u64;
        let (program, name, not_read_back) = (program.clone(), scene.name.clone(), Vec::new());
        let observed = scene.observed.load(Relaxed);
        let start = scene.start;
        let mut ended = Ended { program, scene: name, start, rows, applied, notes, beliefs, log, not_read_back };
        let calm = store(&engine.client(), || SystemTime::UNIX_EPOCH + super::scene::EPOCH, || 7);
        // Some leave too late, and are not sent.
        if observed < log_length {
            ended.not_read_back.push(format!("observers were told of {observed} of {log_length} requests"));
        }
        for row in &ended.rows {
            let by = ended.left_whole(*row);
            let (key, json) = key_of(*row, &scene.name);
            let raw = engine.row_at(KINDS[row.kind].table(), &json);
            ended.not_read_back.extend(PLAYED[row.kind].reads_back(&calm, *row, (key, raw), by, &scene).await);
        }
        Programs { ended, played: std::mem::take(&mut *scene.played.lock().expect("no panic")) }
    }

    /// Plays a program and judges it.
    fn judge(engine: &Engine, program: &Program, broken: Broken, by: By) -> Result<Total, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        engine.take_log();
        let ended = runtime.block_on(Self::of(engine, program, broken));
        let mut found = if by == By::All { ended.ended.violations() } else { Vec::new() };
        if found.is_empty() {
            found = ended.ended.judged();
        }
        if found.is_empty() { Ok(ended.total()) } else { Err(found.join("; ")) }
    }
}

/// What a violation is, without its circumstances.
fn kind_of(why: &str) -> &str {
    why.split([':', ',']).next().unwrap_or(why)
}

impl History for Programs {
    const TABLES: &'static [(&'static str, &'static str)] = &[];
    const SAMPLE: u64 = 300;

    async fn play(engine: &Engine, seed: u64, broken: Broken) -> Self {
        Self::of(engine, &Program::of(seed), broken).await
    }

    fn fill(engine: Engine) -> Engine {
        tables(&engine);
        engine
    }

    /// A broken program is made smaller, as long as it breaks in the same way.
    fn run(engine: &Engine, seed: u64, broken: Broken, by: By) -> Result<Total, String> {
        let mut program = Program::of(seed);
        let mut why = match Self::judge(engine, &program, broken, by) {
            Err(why) if broken == Broken::Nothing => why,
            outcome => return outcome,
        };
        // Each on an engine of its own, because the tokens of a program repeat.
        let breaks = |program: &Program, why: &str| {
            let engine = Self::fill(embedded_with_indexed_tables(Self::TABLES));
            let also = Self::judge(&engine, program, broken, by).err().filter(|also| kind_of(also) == kind_of(why))?;
            Some((program.clone(), also))
        };
        while let Some(smaller) = program.smaller().iter().find_map(|smaller| breaks(smaller, &why)) {
            (program, why) = smaller;
        }
        Err(format!("{why}\n{program}"))
    }

    fn violations(&self, _: &Engine) -> Vec<String> {
        self.ended.violations()
    }

    fn judged(&self) -> Vec<String> {
        self.ended.judged()
    }

    fn total(&self) -> Total {
        let mut total = Total::of(&[("histories", 1), ("requests", self.ended.log.len())]);
        for (name, count) in &self.played {
            total.count(name, *count);
        }
        let kinds: BTreeSet<_> = self.ended.rows.iter().map(|row| row.kind).collect();
        kinds.into_iter().flat_map(surface::options_of).for_each(|option| total.count(option, 1));
        total += self.ended.outcomes();
        total
    }

    fn assert_enough_happened(total: &Total) {
        let unplayed: Vec<_> = surface::ALL.iter().filter(|name| !total.has(name)).collect();
        assert!(unplayed.is_empty(), "no program plays these: {unplayed:?}");
        let some =
            total.least(&["toldApplied", "toldRefusedOrSeen", "toldReplayed", "toldFailed", "unknown", "dropped"]);
        assert!(some > 0, "something never happened: {total}");
    }
}

/// Removes rows that have ended. It looks less and less often while nobody begins an operation.
async fn act_as_ttl(scene: Arc<Stage>, rows: Vec<Row>, every: u64) {
    let (mut pause, mut last) = (every, 0);
    loop {
        sleep(Duration::from_millis(1 + scene.network.below(pause))).await;
        let begun = scene.numbers.load(Relaxed);
        pause = if begun == last { (2 * pause).min(every.max(5_000)) } else { every };
        last = begun;
        scene.remove_ended(&[(LEASES, scene.name.clone()), (LEADERS, scene.name.clone())], || true);
        for row in &rows {
            let (engine, table, key) = (&scene.network.engine, KINDS[row.kind].table(), key_of(*row, &scene.name).1);
            if ends_at(row.kind, &engine.row_at(table, &key)).is_some_and(|end| end < scene.now()) {
                engine.raw("DeleteItem", &json!({"TableName": table, "Key": key}));
                let step = Step { action: "DeleteItem", table: table.to_owned(), id: String::new(), key };
                let rows = vec![Touched { step, row: Value::Null }];
                scene.network.applied().push(Applied {
                    op: TTL,
                    time: Instant::now(),
                    rows,
                    is_copy_of_refused: false,
                });
            }
        }
    }
}

#[test]
fn programs_over_the_whole_surface_are_told_the_truth() {
    Programs::holds();
}

const FENCE: &str = "the audit, fence";
const INCARNATION: &str = "the audit, incarnation";
const LEASE: &str = "the audit, lease";
const MEMORY: &str = "the audit, memory";
const NEWEST: &str = "the audit, newest";
const WRITE_ID: &str = "the audit, write-id";

/// The seeds of a rule begin at the first program that notices it.
#[test]
fn each_broken_rule_is_noticed() {
    Programs::notices(&[
        (Broken::NoJudge, 28..2028, history::APPLIED_TWICE),
        (Broken::LastWriterOnly, 80..2080, history::APPLIED_TWICE),
        (Broken::RowsDeleted, 898..2898, history::DENIED),
        (Broken::ThrottlingClears, 0..2000, history::DENIED),
        (Broken::AddOfAnyId, 0..2000, history::APPLIED_TWICE),
        (Broken::AddNeverLate, 12..2012, history::APPLIED_TWICE),
        (Broken::Forgets { after: 2 }, 0..2000, history::APPLIED_TWICE),
        (Broken::BurnLeavesNothing, 4228..6228, history::DENIED),
        (Broken::BurnAsAdd, 56..2056, history::NEVER_APPLIED),
        (Broken::BurnsIgnored, 56..2056, history::NEVER_APPLIED),
        (Broken::FreshIds, 0..2000, history::APPLIED_TWICE),
        (Broken::RevivedWithoutMemory, 1098..3098, history::DENIED),
        (Broken::TokenReused, 0..2000, ONE_PAYLOAD),
        (Broken::NoIdInTransactions, 1041..3041, history::APPLIED_TWICE),
        (Broken::GuardBeforeJudge, 144..2144, history::APPLIED_TWICE),
        (Broken::ConflictHidden, 145..2145, history::NEVER_APPLIED),
    ]);
}

#[test]
fn each_broken_rule_of_leases_and_of_the_newest_instance_is_noticed() {
    Programs::notices(&[
        (Broken::NoFence, 662..2662, FENCE),
        (Broken::NotRequired, 65..2065, rules::NOT_HELD),
        (Broken::LeasesDeleted, 79..2079, LEASE),
        (Broken::RenewalsUnchecked, 159..2159, LEASE),
        (Broken::HolderUnchecked, 930..2930, LEASE),
        (Broken::NoSkew, 0..2000, rules::TWO_BELIEVED),
        (Broken::NoCondition, 27..2027, NEWEST),
        (Broken::RowsDeleted, 50..2050, NEWEST),
        (Broken::OnlyEqual, 27..2027, NEWEST),
    ]);
}

/// Those of leases and of the newest instance are found above. These leave nothing in a row by which it differs from what a
/// sound writer leaves: `ThrottlingClears`, `NoIdInTransactions`, `NotRequired`, `TokenReused`, `AddNeverLate`,
/// `BurnLeavesNothing`, `BurnsIgnored`, `FreshIds`, `ConflictHidden`, `NoSkew`, `Unchecked`. `BurnAsAdd` may leave
/// something, which none of 20,000 programs shows.
#[test]
fn the_audit_finds_each_broken_rule_that_leaves_a_trace() {
    Programs::notices(&[
        (Broken::NoJudge, 28..2028, WRITE_ID),
        (Broken::LastWriterOnly, 80..2080, WRITE_ID),
        (Broken::GuardBeforeJudge, 144..2144, WRITE_ID),
        (Broken::AddOfAnyId, 0..2000, WRITE_ID),
        (Broken::Forgets { after: 2 }, 0..2000, MEMORY),
        (Broken::RowsDeleted, 0..2000, INCARNATION),
        (Broken::RevivedWithoutMemory, 0..2000, MEMORY),
    ]);
}

#[test]
fn the_independent_judge_notices_broken_rules() {
    Programs::notices_by_the_judge(&[
        (Broken::NoJudge, 0..2000),
        (Broken::AddOfAnyId, 0..2000),
        (Broken::RowsDeleted, 0..2000),
    ]);
}
