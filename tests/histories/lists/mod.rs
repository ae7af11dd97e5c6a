//! Histories of several lists: transactions read some of them and append to others, under every fault. Judges that know
//! nothing of the protocol say whether this was serializable.
//!
//! Reading order: [`client`], then [`Lists`]. The rules broken at the end show that each judge notices.

use super::history::History;
use super::scene::{STORM, Scene, rates, work_together};
use crate::harness::engine::{Asked, Engine};
use crate::harness::faults::{Applied, Broken, Rates, network_that_breaks};
use crate::harness::states::version;
use crate::harness::total::Total;
use client::{Client, KEY, LISTS, Operation, Rule, TABLE, Touched, id};
use fencepost::ItemVersion;
use judges::cycles::{self, List, Told, Transaction};
use judges::linearizable::Seen;
use judges::register::{self, Op, SeenOf, Shown};
use serde_json::Value;
use tokio::time::Instant;

mod client;

const TOLD_ANOTHER: &str = "told a list that was never stored at its version";

struct Lists {
    scene: String,
    done: Vec<Operation>,
    applied: Vec<Applied>,
}

impl History for Lists {
    const TABLES: &'static [(&'static str, &'static str)] = &[(TABLE, KEY)];
    const SAMPLE: u64 = 80;
    type Rule = Rule;
    const NOTHING: Rule = Rule::Wire(Broken::Nothing);

    async fn play(engine: &Engine, seed: u64, rule: Rule) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let most = Rates { held: 60, second_copy: 80, transaction_conflict: 100, frozen: 20, ..STORM };
        let rates = rates(&mut rng, 1..=8, most);
        let (clients, turns) = (rng.u64(2..=5), rng.u64(2..=6));
        let broken = if let Rule::Wire(broken) = rule { broken } else { Broken::Nothing };
        let network = network_that_breaks(engine, rates, broken, rng);
        let scene = Scene::new(seed, format!("{seed}-{rule:?}"), network, rule);
        for list in LISTS {
            client::create(engine, &scene.name, list).await;
        }
        work_together((0..clients).map(|number| Client::new(&scene, number).work(turns))).await;
        let applied = scene.network.applied().clone();
        Lists { scene: scene.name.clone(), done: scene.take_done(), applied }
    }

    fn violations(&self, engine: &Engine, _: &[Asked]) -> Vec<String> {
        let transactions: Vec<_> = self.done.iter().map(transaction).collect();
        let last = LISTS.map(|list| (list, entries_of(&engine.row(TABLE, KEY, &id(&self.scene, list)))));
        let anomalies = cycles::anomalies(&transactions, &last);
        let mut found: Vec<_> = anomalies.iter().map(ToString::to_string).collect();
        found.extend(self.done.iter().filter_map(|operation| self.told_another(operation)));
        found
    }

    /// The objections of the register judge to each list.
    fn judged(&self) -> Vec<String> {
        LISTS.iter().filter_map(|list| register::judge(Some(Vec::new()), self.seen(list)).err()).collect()
    }

    fn total(&self) -> Total {
        let count = |such: &dyn Fn(&Operation) -> bool| self.done.iter().filter(|operation| such(operation)).count();
        let committed = |operation: &Operation, of: usize| {
            let appended = operation.lists.values().filter(|touched| touched.append.is_some()).count();
            operation.told == Told::Committed && appended == of
        };
        let has_landed = |operation: &Operation| self.applied.iter().any(|applied| applied.op == operation.number);
        Total::of(&[
            ("looks", count(&|operation| committed(operation, 0))),
            ("appends", count(&|operation| committed(operation, 1))),
            ("appendsToTwo", count(&|operation| committed(operation, 2))),
            ("appendsThatRestOnAnother", count(&|o| committed(o, 1) && o.lists.len() == 2)),
            ("toldNotCommitted", count(&|operation| operation.told == Told::NotCommitted)),
            ("unknown", count(&|operation| operation.told == Told::Unknown)),
            ("unknownThatLanded", count(&|operation| operation.told == Told::Unknown && has_landed(operation))),
        ])
    }

    fn assert_enough_happened(total: &Total) {
        let enough = total.least(&["looks", "appends", "appendsToTwo", "appendsThatRestOnAnother"]);
        assert!(enough > total["histories"], "little happened: {total}");
        assert!(total["toldNotCommitted"] > 0, "nobody gave up: {total}");
        total.assert_unknown_is_worth_its_name();
    }
}

impl Lists {
    /// The mistake if the answer to a committed transaction shows a list that was never stored at its version.
    fn told_another(&self, operation: &Operation) -> Option<String> {
        let committed = operation.lists.iter().filter(|_| operation.told == Told::Committed);
        let told = committed.flat_map(|(list, Touched { read, at, append })| {
            let made = append.and_then(|append| append.makes).map(|at| (at, with(read, operation.number)));
            [at.map(|at| (at, read.clone())), made].into_iter().flatten().map(move |told| (*list, told))
        });
        let mut never = told.filter(|(list, (at, entries))| !self.had(list, *at, entries));
        never.next().map(|never| format!("{TOLD_ANOTHER}: {never:?} of {operation:?}"))
    }

    /// Whether a list had these entries at this version. It was empty at first.
    fn had(&self, list: List, at: ItemVersion, entries: &[u64]) -> bool {
        let key = id(&self.scene, list);
        let rows = self.applied.iter().filter_map(|applied| applied.left_in(TABLE, &key));
        let mut at_version = rows.filter(|row| row["_version"]["N"] == at.version.get().to_string().as_str());
        at_version.any(|row| entries_of(row) == entries) || (at.version.get() == 1 && entries.is_empty())
    }

    /// The clients' view of one list.
    fn seen(&self, list: &List) -> Vec<SeenOf<Vec<u64>>> {
        let of_list = |operation: &Operation| {
            let Touched { read, at, append } = operation.lists.get(list)?.clone();
            let Operation { number, client, began, ended, told, .. } = *operation;
            let op = match append {
                None => Op::Read,
                Some(_) => Op::CompareAndSet { to: with(&read, number), from: read.clone() },
            };
            let told = match (told, append) {
                (Told::NotCommitted, _) | (Told::Unknown, None) => return None,
                (Told::Unknown, Some(_)) => None,
                (Told::Committed, None) => Some(register::Told::Saw(Some(Shown { value: read, at: at.map(version) }))),
                (Told::Committed, Some(append)) => Some(register::Told::Done(append.makes.map(version))),
            };
            let [began, ended] = [began, ended].map(Instant::into_std);
            Some(Seen { client, began, ended, op, told })
        };
        self.done.iter().filter_map(of_list).collect()
    }
}

fn with(entries: &[u64], entry: u64) -> Vec<u64> {
    entries.iter().copied().chain([entry]).collect()
}

fn entries_of(row: &Value) -> Vec<u64> {
    let entries = row["entries"]["L"].as_array().expect("a list");
    entries.iter().map(|entry| entry["N"].as_str().expect("a number").parse().expect("small")).collect()
}

fn transaction(operation: &Operation) -> Transaction {
    let read = operation.lists.iter().map(|(list, touched)| (*list, touched.read.clone())).collect();
    let appends = |(list, touched): (&List, &Touched)| touched.append.map(|_| *list);
    let appended = operation.lists.iter().filter_map(appends).collect();
    Transaction { name: operation.number, told: operation.told, read, appended }
}

#[test]
fn transactions_over_several_lists_are_serializable_under_every_fault() {
    Lists::holds();
}

#[test]
fn the_judge_of_cycles_notices_write_skew_where_nothing_is_checked() {
    Lists::is_noticed(Rule::Unchecked, 0..2000, cycles::WRITE_SKEW);
}

#[test]
fn both_judges_notice_lost_updates_of_a_client_that_writes_without_a_condition() {
    Lists::is_noticed(Rule::Blind, 0..2000, "lost update");
    Lists::is_noticed_by_the_judge(Rule::Blind, 0..2000);
}

#[test]
fn both_judges_notice_dirty_reads_of_a_client_that_takes_back_half_of_what_it_did() {
    Lists::is_noticed(Rule::TakenBack, 0..2000, "dirty read");
    Lists::is_noticed_by_the_judge(Rule::TakenBack, 0..2000);
}

#[test]
fn both_judges_notice_double_appends_where_there_is_nothing_to_judge_by() {
    Lists::is_noticed(Rule::Wire(Broken::NoJudge), 0..2000, "double append");
    Lists::is_noticed_by_the_judge(Rule::Wire(Broken::NoJudge), 0..2000);
}
