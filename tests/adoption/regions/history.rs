//! Seeded histories of two Regions: clients of both race at the same items, and answers get lost.
//!
//! `FENCEPOST_HISTORIES=10000` says how many are played, `FENCEPOST_SEED=7` replays one.

use super::judged::{self, Balance};
use super::network::{Network, Rates};
use crate::adoption::world::{Account, KEY, Regional, TABLE, account, deposit};
use crate::harness::engine::Engine;
use crate::harness::seeds::{self, Broke};
use fencepost::lease::{AcquireError, LeaseError};
use fencepost::{Add, Call, Deadline, Failure, ItemVersion, Key, LeaseTerms, Store, Table};
use judges::linearizable;
use judges::register::{Op, SeenOf};
use std::error::Error;
use std::fmt;
use std::ops::{AddAssign, Range};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

const LEASES: &str = "Leases";
const WORKERS: u64 = 4;
const EACH: u64 = 6;
const ITEMS: [&str; 3] = ["free", "fenced", "turns"];

/// Answers are lost now and then.
const LOSSY: Rates = Rates { dropped: 30, answer_lost: 80, garbled: 60, held: 30, conflict_denied: 0 };

/// What a client was told of one change.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Told {
    Applied,
    NotApplied,
    Unknown,
}

/// One change. It adds the power of two with its number to a balance, so that the balance shows which changes were applied,
/// and how often.
#[derive(Clone, Debug)]
struct Change {
    item: &'static str,
    number: u64,
    told: Told,
}

#[derive(Default)]
struct Notes {
    changes: Vec<Change>,
    /// Creates and deletes of the item that comes and goes.
    turns: Vec<Told>,
    /// What each call saw, and of which item.
    seen: Vec<(&'static str, SeenOf<Balance>)>,
    tokens: Vec<u64>,
    unknown_leases: u64,
}

/// What histories were made of.
#[derive(Default, Debug)]
struct Total {
    histories: u64,
    acknowledged: u64,
    not_applied: u64,
    unknown: u64,
    tokens: u64,
    conflicts: u64,
    lost: u64,
}

impl AddAssign for Total {
    fn add_assign(&mut self, other: Self) {
        self.histories += other.histories;
        self.acknowledged += other.acknowledged;
        self.not_applied += other.not_applied;
        self.unknown += other.unknown;
        self.tokens += other.tokens;
        self.conflicts += other.conflicts;
        self.lost += other.lost;
    }
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// What became of a change by its result.
fn told<T, E: Error>(result: &Result<T, E>) -> Told {
    let Err(error) = result else { return Told::Applied };
    let unknown = error.to_string().starts_with("outcome unknown");
    if unknown { Told::Unknown } else { Told::NotApplied }
}

/// One client. Its changes go to the item of all, to the item under a lease, and to one that comes and goes.
struct Worker {
    client: u64,
    network: Arc<Network>,
    store: Store,
    accounts: Table<Account<Regional>>,
    notes: Arc<Mutex<Notes>>,
}

impl Worker {
    async fn works(self) {
        for number in self.client * EACH..(self.client + 1) * EACH {
            tokio::time::sleep(Duration::from_millis(self.network.below(400))).await;
            let began = Instant::now();
            match self.network.below(12) {
                0..=3 => {
                    let key = Key::from("free");
                    let changed = self.accounts.update_with_retry(&key, &self.call(), deposit(1 << number)).await;
                    self.note("free", number, began, &changed.map(|changed| changed.at));
                }
                4..=5 => {
                    let add = Add::to("balance", 1 << number).within(0..=i64::MAX);
                    let added = self.accounts.add(&Key::from("free"), &add, &self.call()).await;
                    self.note("free", number, began, &added.map(|added| added.at));
                }
                6..=7 => self.changes_under_a_lease(number).await,
                8 => {
                    let created = self.accounts.create(&Key::from("turns"), &account(1), &self.call()).await;
                    self.notes.lock().expect("no panic").turns.push(told(&created));
                    self.saw("turns", began, Op::Create(Balance(1)), &created.map(|created| Some(created.at)));
                }
                9 => {
                    let deleted = self.accounts.delete(&Key::from("turns"), &self.call()).await;
                    self.notes.lock().expect("no panic").turns.push(told(&deleted));
                    self.saw("turns", began, Op::Delete, &deleted.map(|_| None));
                }
                _ => {
                    let item = usize::try_from(self.network.below(3)).expect("few");
                    self.reads(ITEMS[item]).await;
                }
            }
        }
    }

    async fn changes_under_a_lease(&self, number: u64) {
        let leases = self.store.leases(LEASES);
        let terms = LeaseTerms::new(Duration::from_secs(2)).expect("long enough");
        let mut lease = match leases.acquire("k", "worker", terms, &self.call()).await {
            Ok(lease) => lease,
            // Another worker holds it, or the other Region writes and answers get lost until there is no time.
            Err(
                AcquireError::Held { .. }
                | AcquireError::Failed(Failure::Unavailable { .. } | Failure::OutcomeUnknown { .. }),
            ) => return,
            Err(error) => panic!("nothing else is in the way: {error:?}"),
        };
        self.notes.lock().expect("no panic").tokens.push(lease.token().number());
        // A worker may be late: then only the fence stands between it and the next holder.
        tokio::time::sleep(Duration::from_millis(self.network.below(4000))).await;
        let (began, fenced) = (Instant::now(), self.accounts.fenced_by(lease.token()));
        let changed = fenced.update_with_retry(&Key::from("fenced"), &self.call(), deposit(1 << number)).await;
        self.note("fenced", number, began, &changed.map(|changed| changed.at));
        let renewed = leases.renew(&mut lease, terms, &self.call()).await;
        let released = leases.release(lease, &self.call()).await;
        for result in [renewed, released] {
            let is_unknown = matches!(&result, Err(LeaseError::Failed(Failure::OutcomeUnknown { .. })));
            self.notes.lock().expect("no panic").unknown_leases += u64::from(is_unknown);
        }
    }

    /// A call with little time or much.
    fn call(&self) -> Call {
        Call::new(Deadline::within(Duration::from_millis(500 + self.network.below(10_000))))
    }

    async fn reads(&self, item: &'static str) {
        let began = Instant::now();
        let Ok(read) = self.accounts.get(&Key::from(item), &self.call()).await else { return };
        let seen = judged::seen(self.client, began, Op::Read, Some(judged::saw(read)));
        self.notes.lock().expect("no panic").seen.push((item, seen));
    }

    /// Notes what a deposit was told.
    fn note<E: Error>(&self, item: &'static str, number: u64, began: Instant, made: &Result<ItemVersion, E>) {
        self.notes.lock().expect("no panic").changes.push(Change { item, number, told: told(made) });
        self.saw(item, began, Op::Add(1 << number), &made.as_ref().map(|at| Some(*at)));
    }

    /// Notes for the judge what a change was told. A refusal is told nothing that others need.
    fn saw<E: Error>(
        &self,
        item: &'static str,
        began: Instant,
        op: Op<Balance>,
        made: &Result<Option<ItemVersion>, E>,
    ) {
        let done = match (told(made), made) {
            (Told::NotApplied, _) => return,
            (Told::Applied, Ok(at)) => Some(judged::done(*at)),
            _ => None,
        };
        self.notes.lock().expect("no panic").seen.push((item, judged::seen(self.client, began, op, done)));
    }
}

/// Plays the history of a seed. Says what does not hold.
fn run(engine: &Engine, seed: u64, rates: Rates) -> Result<Total, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        let network = Network::new(engine, rates, seed);
        let notes = Arc::<Mutex<Notes>>::default();
        let worker = |client: u64| {
            let store = network.store(usize::from(client % 2 == 1));
            let accounts = store.table(TABLE);
            Worker { client, network: network.clone(), store, accounts, notes: notes.clone() }
        };
        let call = Call::new(Deadline::within(Duration::from_mins(10)));
        let first = worker(WORKERS);
        for item in ITEMS {
            let began = Instant::now();
            let created = first.accounts.create(&Key::from(item), &account(0), &call).await;
            // Without an item, the changes of this history are refused, which holds as well.
            first.saw(item, began, Op::Create(Balance(0)), &created.map(|created| Some(created.at)));
        }
        let mut workers: JoinSet<()> = (0..WORKERS).map(|client| worker(client).works()).collect();
        while let Some(done) = workers.join_next().await {
            done.map_err(|error| error.to_string())?;
        }
        // All copies arrive.
        tokio::time::sleep(Duration::from_mins(10)).await;
        for item in ITEMS {
            first.reads(item).await;
        }
        let notes = notes.lock().expect("no panic");
        let mut found: Vec<_> = holds(engine, &network, &notes).err().into_iter().collect();
        found.extend(judged::violations(&notes.seen, &ITEMS));
        if !found.is_empty() {
            return Err(found.join("; "));
        }
        let count = |told| {
            let all = notes.changes.iter().map(|change| change.told).chain(notes.turns.iter().copied());
            u64::try_from(all.filter(|is| *is == told).count()).expect("few")
        };
        Ok(Total {
            histories: 1,
            acknowledged: count(Told::Applied),
            not_applied: count(Told::NotApplied),
            unknown: count(Told::Unknown),
            tokens: u64::try_from(notes.tokens.len()).expect("few"),
            conflicts: network.totals().conflicts,
            lost: network.totals().lost,
        })
    })
}

/// The number of an attribute, or 0 where it has none.
fn number(row: &serde_json::Value, name: &str) -> u64 {
    row[name]["N"].as_str().and_then(|number| number.parse().ok()).unwrap_or_default()
}

fn holds(engine: &Engine, network: &Network, notes: &Notes) -> Result<(), String> {
    let mut balances = 0;
    for item in ["free", "fenced"] {
        let balance = number(&engine.row(TABLE, KEY, item), "balance");
        balances += balance;
        for Change { number, told, .. } in notes.changes.iter().filter(|change| change.item == item) {
            let (is_applied, told) = (balance >> number & 1 == 1, *told);
            if (is_applied && told == Told::NotApplied) || (!is_applied && told == Told::Applied) {
                return Err(format!("{item}: change {number} was told {told:?}, and the balance is {balance:b}"));
            }
        }
        let known = notes.changes.iter().filter(|change| change.item == item).map(|change| 1_u64 << change.number);
        let known = known.fold(0, |all, bit| all | bit);
        if balance & !known != 0 {
            return Err(format!("{item}: something was applied twice: {balance:b} of {known:b}"));
        }
    }
    let sum = |counts: &[Told]| -> u64 {
        notes.changes.iter().filter(|change| counts.contains(&change.told)).map(|change| 1_u64 << change.number).sum()
    };
    if !(sum(&[Told::Applied])..=sum(&[Told::Applied, Told::Unknown])).contains(&balances) {
        return Err(format!("{balances:b} is held"));
    }
    // Each create and each delete raises the version by one.
    let turns = |counts: &[Told]| u64::try_from(notes.turns.iter().filter(|told| counts.contains(told)).count());
    let (least, most) = (turns(&[Told::Applied]).expect("few"), turns(&[Told::Applied, Told::Unknown]).expect("few"));
    let made = network.rows().iter().filter(|(step, _)| step.table == TABLE && step.id == "turns").count();
    let version = number(&engine.row(TABLE, KEY, "turns"), "version");
    if u64::try_from(made) != Ok(version) || !(least..=most + 1).contains(&version) {
        return Err(format!("{made} turns made version {version}, of {least} to {most} and the first"));
    }
    let mut tokens = notes.tokens.clone();
    tokens.sort_unstable();
    tokens.dedup();
    if tokens.len() != notes.tokens.len() {
        return Err(format!("two holders have one token: {:?}", notes.tokens));
    }
    let rows = network.rows();
    let fences = rows.iter().filter(|(step, _)| step.id == "fenced").map(|(_, row)| number(row, "_fence"));
    if !fences.is_sorted() {
        return Err("the fence of an item fell".to_owned());
    }
    Ok(())
}

fn explore(seeds: Range<u64>, rates: Rates) -> Result<Total, Broke> {
    seeds::explore(seeds, |seed| run(&Engine::embedded(&[(TABLE, KEY), (LEASES, "leaseKey")]), seed, rates))
}

#[test]
fn changes_adds_leases_and_fences_hold_over_two_regions_whose_answers_get_lost() {
    let Some(total) = seeds::play(60, |seeds| explore(seeds, LOSSY)) else { return };
    println!("{total}");
    let Total { histories, acknowledged, not_applied, unknown, tokens, conflicts, lost } = total;
    assert!(conflicts > histories && lost > histories && acknowledged > 5 * histories, "{total}");
    assert!(tokens > histories / 2 && not_applied > 0 && unknown > 0, "{total}");
}

#[test]
fn where_no_answer_is_lost_every_change_over_two_regions_is_known() {
    let Some(total) = seeds::play(20, |seeds| explore(seeds, Rates::default())) else { return };
    println!("{total}");
    assert!(total.conflicts > total.histories && (total.lost, total.unknown) == (0, 0), "{total}");
}

/// What the answer proves: of two writes in flight together, one at least was not applied.
#[test]
fn a_conflict_between_regions_that_is_taken_for_an_applied_write_is_noticed() {
    let lying = Rates { conflict_denied: 200, ..Rates::default() };
    for harm in ["was told Applied", linearizable::NO_ORDER] {
        seeds::is_noticed(0..200, |seeds| explore(seeds, lying), |why| why.contains(harm));
    }
}
