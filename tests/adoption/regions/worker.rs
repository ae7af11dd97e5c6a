//! One client of a Region: its actions, its answers, and its view of the items for a judge without other knowledge.

use super::network::Regions;
use crate::adoption::world::{Account, Regional, TABLE, account, deposit};
use crate::harness::states::version;
use fencepost::lease::{LeaseHeld, LeaseTerms};
use fencepost::{
    Call, Deadline, Edit, Error, Exists, Failure, FencingToken, ItemVersion, Store, Table, UpdateError, Versioned,
};
use judges::linearizable::Seen;
use judges::register::{self, Op, SeenOf, Shown, Value};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

pub const LEASES: &str = "Leases";
/// How much each client does.
const EACH: u64 = 6;

/// The item of all, the one of creates and deletes, and the one under a lease.
pub const ITEMS: [&str; 3] = ["free", "turns", "fenced"];

/// The answer to a call.
#[derive(Clone, PartialEq, Debug)]
pub enum Told {
    /// Applied, with the state after it if the answer shows one.
    Applied(Option<ItemVersion>),
    /// Not applied, or only read. This was there at some moment of the call; nothing if `None`.
    Saw(Option<Versioned<Account<Regional>>>),
    /// Not applied. The answer shows nothing of the item.
    NotApplied,
    /// The same, because the lease is another's.
    Fenced,
    /// The outcome is unknown.
    Unknown,
}

/// The balance of an account.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Balance(pub i64);

impl Value for Balance {
    type Amount = i64;

    fn plus(&self, amount: &i64) -> Option<Self> {
        self.0.checked_add(*amount).map(Balance)
    }
}

/// One change. The balance shows whether it was applied, and how often.
#[derive(Clone, Debug)]
pub struct Change {
    pub item: &'static str,
    pub number: u64,
    /// The token of its lease, if it was made under one.
    pub token: Option<u64>,
    pub told: Told,
}

/// The notes of the clients of one history.
#[derive(Default)]
pub struct Notes {
    pub changes: Vec<Change>,
    /// Creates and deletes of the item of the turns.
    pub turns: Vec<Told>,
    /// The item and the view of each call.
    pub seen: Vec<(&'static str, SeenOf<Balance>)>,
    /// The tokens of the acquired leases.
    pub tokens: Vec<u64>,
    /// Renewals and releases with an unknown outcome.
    pub unknown_leases: usize,
}

/// The amount of a change: a one in a digit of its own, in base four. A change that is applied twice leaves a two.
fn amount(number: u64) -> i64 {
    1 << (2 * number)
}

/// A client that changes each of the `ITEMS`.
pub struct Worker {
    client: u64,
    regions: Arc<Regions>,
    store: Store,
    accounts: Table<Account<Regional>>,
    notes: Arc<Mutex<Notes>>,
}

impl Worker {
    pub fn new(client: u64, regions: &Arc<Regions>, notes: &Arc<Mutex<Notes>>) -> Self {
        let store = regions.store(client % 2);
        let accounts = store.table(TABLE);
        Worker { client, regions: regions.clone(), store, accounts, notes: notes.clone() }
    }

    /// Creates all items. If this fails, the changes of an item are refused, and all rules still hold.
    pub async fn opens_accounts(&self) {
        for item in ITEMS {
            self.creates(item, 0).await;
        }
    }

    pub async fn works(self) {
        for number in self.client * EACH..(self.client + 1) * EACH {
            let longest = if self.regions.network.below(10) == 0 { 120_000 } else { 400 };
            sleep(Duration::from_millis(self.regions.network.below(longest))).await;
            match self.regions.network.below(12) {
                0..=3 => self.updates("free", number, None).await,
                4..=5 => self.adds("free", number).await,
                6..=7 => self.changes_under_a_lease(number).await,
                8 => {
                    let told = self.creates("turns", i64::try_from(number).expect("small")).await;
                    self.notes().turns.push(told);
                }
                9 => {
                    let told = self.deletes("turns").await;
                    self.notes().turns.push(told);
                }
                _ => self.reads(ITEMS[usize::try_from(self.regions.network.below(3)).expect("small")]).await,
            }
        }
    }

    /// Reads all items.
    pub async fn looks(&self) {
        for item in ITEMS {
            self.reads(item).await;
        }
    }

    async fn reads(&self, item: &'static str) {
        let began = Instant::now();
        let told = match self.accounts.in_call(&self.call()).get(item).await {
            Ok(read) => Told::Saw(read),
            Err(failure) => by_failure(&failure),
        };
        self.note(item, self.client, began, Op::Read, &told);
    }

    async fn creates(&self, item: &'static str, balance: i64) -> Told {
        let began = Instant::now();
        let told = match self.accounts.in_call(&self.call()).create(item, &account(balance)).await {
            Ok(created) => Told::Applied(Some(created.at)),
            Err(Error::Refused(Exists(now))) => Told::Saw(Some(*now)),
            Err(Error::Failed(failure)) => by_failure(&failure),
        };
        self.note(item, self.client, began, Op::Create(Balance(balance)), &told);
        told
    }

    async fn deletes(&self, item: &'static str) -> Told {
        let began = Instant::now();
        let told = match self.accounts.in_call(&self.call()).delete(item).await {
            Ok(_) => Told::Applied(None),
            Err(UpdateError::NotFound) => Told::Saw(None),
            Err(UpdateError::Failed(failure)) => by_failure(&failure),
        };
        self.note(item, self.client, began, Op::Delete, &told);
        told
    }

    async fn adds(&self, item: &'static str, number: u64) {
        let began = Instant::now();
        let add = Edit::add("balance", amount(number), 0..=i64::MAX);
        let told = match self.accounts.in_call(&self.call()).edit(item, &add).await {
            Ok(added) => {
                // The item may already show later changes. The judge gets it as a read of another client.
                if let Some(now) = added.item {
                    self.note(item, 100 + self.client, began, Op::Read, &Told::Saw(Some(now)));
                }
                Told::Applied(Some(added.at))
            }
            Err(UpdateError::NotFound) => Told::Saw(None),
            Err(UpdateError::Failed(failure)) => by_failure(&failure),
            Err(other) => panic!("no such thing happens here: {other}"),
        };
        self.note(item, self.client, began, Op::Add(amount(number)), &told);
        self.notes().changes.push(Change { item, number, token: None, told });
    }

    /// Adds by a decision, under a token if there is one.
    async fn updates(&self, item: &'static str, number: u64, token: Option<&FencingToken>) {
        let began = Instant::now();
        let accounts = token.map_or_else(|| self.accounts.clone(), |token| self.accounts.fenced_by(token));
        let mut op = Op::Add(amount(number));
        let told = match accounts.in_call(&self.call()).update_with_retry(item, deposit(amount(number))).await {
            Ok(updated) => {
                let to = updated.value.balance;
                op = Op::CompareAndSet { from: Balance(to - amount(number)), to: Balance(to) };
                Told::Applied(Some(updated.at))
            }
            Err(UpdateError::NotFound) => Told::Saw(None),
            Err(UpdateError::Failed(failure)) => by_failure(&failure),
        };
        self.note(item, self.client, began, op, &told);
        self.notes().changes.push(Change { item, number, token: token.map(FencingToken::number), told });
    }

    async fn changes_under_a_lease(&self, number: u64) {
        let leases = self.store.leases(LEASES);
        let terms = LeaseTerms::new(Duration::from_secs(2)).expect("long enough");
        let mut lease = match leases.in_call(&self.call()).acquire("k", "worker", terms).await {
            Ok(lease) => lease,
            // Another worker holds it, or the other Region writes and answers get lost until the time is over.
            Err(
                Error::Refused(LeaseHeld { .. })
                | Error::Failed(Failure::Unavailable { .. } | Failure::OutcomeUnknown { .. }),
            ) => return,
            Err(error) => panic!("nothing else is in the way: {error:?}"),
        };
        self.notes().tokens.push(lease.token().number());
        // A worker may be late: then only the fence stands between it and the next holder.
        sleep(Duration::from_millis(self.regions.network.below(4000))).await;
        self.updates("fenced", number, Some(lease.token())).await;
        let renewed = leases.in_call(&self.call()).renew(&mut lease, terms).await;
        let released = leases.in_call(&self.call()).release(lease).await;
        for result in [renewed, released] {
            let is_unknown = matches!(&result, Err(Error::Failed(Failure::OutcomeUnknown { .. })));
            self.notes().unknown_leases += usize::from(is_unknown);
        }
    }

    /// A call with little time or much.
    fn call(&self) -> Call {
        Call::new(Deadline::within(Duration::from_millis(500 + self.regions.network.below(10_000))))
    }

    fn notes(&self) -> std::sync::MutexGuard<'_, Notes> {
        self.notes.lock().expect("no panic while noting")
    }

    /// Notes the client's view of an item for the judge.
    fn note(&self, item: &'static str, client: u64, began: Instant, op: Op<Balance>, told: &Told) {
        let Some(seen) = seen(client, began, op, told) else { return };
        self.notes().seen.push((item, seen));
    }
}

fn by_failure(failure: &Failure) -> Told {
    match failure {
        Failure::Contention { .. } | Failure::Unavailable { .. } => Told::NotApplied,
        Failure::Fenced => Told::Fenced,
        Failure::OutcomeUnknown { .. } => Told::Unknown,
        _ => panic!("no such thing happens here: {failure}"),
    }
}

/// One client's view of an item, from its request until now. `None` if it was only told that nothing was done.
fn seen(client: u64, began: Instant, op: Op<Balance>, told: &Told) -> Option<SeenOf<Balance>> {
    let (op, told) = match told {
        Told::Applied(made) => (op, Some(register::Told::Done(made.map(version)))),
        Told::Saw(None) => (Op::Read, Some(register::Told::Saw(None))),
        Told::Saw(Some(now)) => {
            let shown = Shown { value: Balance(now.value.balance), at: Some(version(now.at)) };
            (Op::Read, Some(register::Told::Saw(Some(shown))))
        }
        Told::Unknown => (op, None),
        Told::NotApplied | Told::Fenced => return None,
    };
    Some(Seen { client, began: began.into_std(), ended: Instant::now().into_std(), op, told })
}

/// The judge's objections to each item. All items are absent at first.
pub fn violations(seen: &[(&'static str, SeenOf<Balance>)]) -> Vec<String> {
    let judge = |item: &str| {
        let of_item = seen.iter().filter(|(of, _)| *of == item).map(|(_, seen)| seen.clone());
        register::judge(None, of_item.collect()).err().map(|why| format!("{item}: {why}"))
    };
    ITEMS.into_iter().filter_map(judge).collect()
}
