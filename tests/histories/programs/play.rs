//! Plays a program on the public surface of the crate. What a client did and what it was told goes into [`Note`]s.

use super::edits::{Clause, Edit, Within};
use super::kinds::{InAttempt, KINDS, item_of, key_of};
use super::plan::{self, Answer, Change, LeaseOp, Op, Row, Task, Transaction};
use super::records::Subject;
use super::told::{Decision, Does, Note, Outcome, Shown, Told};
use super::values::{Draw, Drawn, Odd};
use crate::harness::faults::Freezing;
use crate::histories::scene::{self, Begun, with_few_attempts};
use fencepost::lease::Lease;
use fencepost::{
    Attempt, Call, Deadline, Error, FencingToken, IdempotencyClaim, IdempotencyError, Item, ItemVersion, Key, Reads,
    Store, Table,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

pub type Scene = scene::Scene<Own, Note>;

/// The versions that a decision makes.
type Made = Vec<(Row, ItemVersion)>;

pub const LEASES: &str = "PlayLeases";
pub const LEADERS: &str = "PlayLeaders";
pub const RECORDS: &str = "PlayRecords";

/// The state that the clients of a program share.
#[derive(Default)]
pub struct Own {
    /// The number of the next decision. No two have the same one.
    decisions: AtomicU64,
    /// The whole value that a decision leaves in a row.
    pub values: Mutex<HashMap<(Row, u64), Box<dyn Any + Send>>>,
    /// How often each operation and option was played.
    pub played: Mutex<BTreeMap<&'static str, usize>>,
}

impl Own {
    pub fn plays(&self, name: &'static str) {
        *self.played.lock().expect("no panic").entry(name).or_default() += 1;
    }
}

/// The notes on one operation while it is under way.
pub struct Noted<'a> {
    pub own: &'a Own,
    decisions: Mutex<Vec<Decision>>,
    pub is_odd: Mutex<bool>,
}

impl Noted<'_> {
    pub fn next(&self) -> u64 {
        1_000 + self.own.decisions.fetch_add(1, Relaxed)
    }

    pub fn decided(&self, id: u64, looks: Vec<Shown>, does: Vec<(Row, Does)>) {
        self.decisions.lock().expect("no panic").push(Decision { id, looks, does });
    }

    /// The item of this value, which a decision leaves.
    pub fn made<T: Subject>(&self, row: Row, value: &T) -> Does {
        self.own.values.lock().expect("no panic").insert((row, value.by()), Box::new(value.clone()));
        item_of(value).map_or(Does::Impossible, Does::Write)
    }

    pub fn drawn<T: Subject>(&self, seed: u64, by: u64) -> T {
        let mut draw = Draw::new(seed);
        let value = T::drawn(&mut draw);
        *self.is_odd.lock().expect("no panic") |= draw.is_odd;
        value.with(by, draw.small())
    }

    pub fn changed<T: Subject>(&self, change: Change, now: &T, by: u64) -> T {
        match change.draw {
            Some(seed) => self.drawn(seed, by),
            None => now.clone().with(by, u32::try_from(by % 12).expect("small")),
        }
    }
}

/// One client at work.
pub struct Player {
    pub client: scene::Client<Own, Note>,
    pub store: Store,
    remembers: bool,
    known: Mutex<BTreeMap<Row, ItemVersion>>,
    pub lease: Mutex<Option<Lease>>,
}

/// Polls the future so often, and drops it if it is not done then.
async fn dropped_after<F: Future>(polls: u32, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(move |context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

impl Player {
    pub fn new(scene: &Arc<Scene>, number: u64, of: &plan::Client) -> Self {
        let client = scene::Client::new(scene, &scene.network, number);
        let store = client.open();
        scene.plays("Store::with_time_limit");
        let store = store.with_time_limit(Duration::from_secs(30));
        let store = if of.few_attempts { store.with_policy(with_few_attempts()) } else { store };
        Player { client, store, remembers: of.remembers, known: Mutex::default(), lease: Mutex::default() }
    }

    pub async fn work(mut self, tasks: Vec<Task>) {
        for task in tasks {
            tokio::time::sleep(Duration::from_millis(task.after)).await;
            if let Op::OneShots(row, count) = task.op {
                let clauses = vec![Clause::Add(vec![KINDS[row.kind].number()], "1".to_owned(), Within::Any)];
                let shot = Task { op: Op::Edit(row, Edit { clauses, seen: true }), ..task };
                let own = self.store.clone();
                for _ in 0..count {
                    self.store = self.client.open();
                    self.run(&shot).await;
                }
                self.store = own;
            } else {
                self.run(&task).await;
            }
        }
    }

    async fn run(&self, task: &Task) {
        let Begun { number, began, .. } = self.client.begin(0);
        let call = Call::new(Deadline::within(Duration::from_millis(task.within)));
        let own: &Own = &self.client.scene;
        let noted = Noted { own, decisions: Mutex::default(), is_odd: Mutex::default() };
        let performed = Freezing::new(&self.client.network, self.perform(task, &call, &noted));
        let told = match task.dropped_after {
            Some(polls) => dropped_after(polls, performed).await.unwrap_or_else(|| Told::of(Outcome::Dropped)),
            None => performed.await,
        };
        for shown in &told.shown {
            if let Some(at) = shown.at {
                self.known.lock().expect("no panic").insert(shown.row, at);
            }
        }
        self.known.lock().expect("no panic").extend(told.made.iter().copied());
        let (decisions, is_odd) =
            (noted.decisions.into_inner().expect("no panic"), noted.is_odd.into_inner().expect("no panic"));
        let (client, ended) = (self.client.number, Instant::now());
        self.client.scene.note(Note {
            number,
            client,
            op: task.op.clone(),
            began,
            ended,
            within: task.within,
            told,
            decisions,
            is_odd,
        });
    }

    async fn perform(&self, task: &Task, call: &Call, noted: &Noted<'_>) -> Told {
        match &task.op {
            Op::Transact(of) => self.transact(of, task, call, noted).await,
            Op::Once(claim, of) => self.once(*claim, of, task, call, noted).await,
            Op::Newest(op) => self.newest(op, call, noted).await,
            Op::Lease(op) => match op {
                LeaseOp::WhileHeld(row) => KINDS[row.kind].perform(self, task, *row, call, noted).await,
                op => self.lease(*op, call, noted).await,
            },
            Op::GetMany(rows) => KINDS[rows[0].kind].perform(self, task, rows[0], call, noted).await,
            Op::Get(row)
            | Op::List(row, _)
            | Op::Create(row, _)
            | Op::Update(row, _)
            | Op::UpdateAt(row, _)
            | Op::DeleteAt(row)
            | Op::Delete(row)
            | Op::Edit(row, _)
            | Op::EditOrUpdate(row, ..)
            | Op::OneShots(row, _) => KINDS[row.kind].perform(self, task, *row, call, noted).await,
        }
    }

    pub fn table<T: Subject>(&self, task: &Task, call: &Call) -> Table<T> {
        let plays = |name| self.client.scene.plays(name);
        plays("Store::table");
        let mut table = self.store.table::<T>(T::TABLE);
        if self.remembers {
            plays("Table::remembering_items");
            table = table.remembering_items();
        }
        if self.client.number == 1 {
            plays("Table::with_tombstone_retention");
            table = table.with_tombstone_retention(Duration::from_hours(1));
        }
        if let (true, Some(lease)) = (task.is_fenced, &*self.lease.lock().expect("no panic")) {
            plays("Table::fenced_by");
            table = table.fenced_by(lease.token());
        }
        plays("Table::in_call");
        table.in_call(call)
    }

    pub fn key(&self, row: Row) -> Key {
        key_of(row, &self.client.scene.name).0
    }

    pub fn known(&self, row: Row) -> Option<ItemVersion> {
        self.known.lock().expect("no panic").get(&row).copied()
    }

    fn reads(&self, of: &Transaction, task: &Task) -> (Reads, Vec<Box<dyn InAttempt>>, Option<Item<FencingToken>>) {
        self.client.scene.plays("Reads::new");
        let mut reads = Reads::new();
        let items =
            of.rows.iter().map(|(row, read, ..)| KINDS[row.kind].read(self, &mut reads, *row, *read, task)).collect();
        let lease = self.lease.lock().expect("no panic");
        let lease = lease.as_ref().filter(|_| of.requires_lease).map(|lease| {
            self.client.scene.plays("Reads::lease");
            reads.lease("lease", lease.token())
        });
        (reads, items, lease)
    }

    /// One decision: the versions that it makes.
    fn decide(
        of: &Transaction,
        items: &[Box<dyn InAttempt>],
        lease: Option<Item<FencingToken>>,
        attempt: &mut Attempt,
        noted: &Noted<'_>,
    ) -> Result<(u64, Made), Error<()>> {
        let (id, mut looks, mut does, mut made) = (noted.next(), Vec::new(), Vec::new(), Vec::new());
        for ((_, _, looks_too, step), item) in of.rows.iter().zip(items) {
            if *looks_too {
                looks.push(item.look(attempt, noted)?);
            }
            if let Some((did, version)) = item.does(attempt, step, id, &mut looks, noted)? {
                does.push((item.row(), did));
                made.extend(version.map(|version| (item.row(), version)));
            }
        }
        if let Some(lease) = lease {
            noted.own.plays("Attempt::require");
            attempt.require(lease)?;
        }
        if of.check_rest {
            noted.own.plays("Attempt::check_rest");
            attempt.check_rest()?;
        }
        noted.decided(id, looks, does);
        if of.answer == Answer::Refuse { Err(Error::Refused(())) } else { Ok((id, made)) }
    }

    async fn transact(&self, of: &Transaction, task: &Task, call: &Call, noted: &Noted<'_>) -> Told {
        let (reads, items, lease) = self.reads(of, task);
        noted.own.plays("Store::transact_with_retry");
        noted.own.plays("Store::in_call");
        let store = self.store.in_call(call);
        let done = store.transact_with_retry(reads, |attempt| Self::decide(of, &items, lease, attempt, noted)).await;
        match done {
            Ok((id, made)) => Told { decision: Some(id), made, ..Told::of(Outcome::Applied) },
            Err(Error::Refused(())) => Told::of(Outcome::Refused),
            Err(Error::Failed(failure)) => failure.into(),
        }
    }

    async fn once(&self, claim: u8, of: &Transaction, task: &Task, call: &Call, noted: &Noted<'_>) -> Told {
        let (reads, items, lease) = self.reads(of, task);
        for name in ["Store::idempotency", "Idempotency::in_call", "Idempotency::change", "IdempotencyClaim::new"] {
            noted.own.plays(name);
        }
        let claim = IdempotencyClaim::new(&["play", &self.client.scene.name, &claim.to_string()], &["payload"]);
        let records = self.store.idempotency::<Receipt>(RECORDS).in_call(call);
        let receipt = |attempt: &mut Attempt| {
            let (id, _) = Self::decide(of, &items, lease, attempt, noted)?;
            let mut draw = Draw::new(id);
            let receipt = Receipt {
                id,
                note: Drawn::drawn(&mut draw),
                json: Drawn::drawn(&mut draw),
                ratio: Drawn::drawn(&mut draw),
            };
            *noted.is_odd.lock().expect("no panic") |= draw.is_odd;
            Ok(receipt)
        };
        match records.change(&claim, reads, receipt).await {
            Ok(fencepost::Answer::New(receipt)) => Told { decision: Some(receipt.id), ..Told::of(Outcome::Applied) },
            Ok(fencepost::Answer::Replayed(receipt)) => {
                let mut draw = Draw::new(receipt.id);
                let first = Receipt {
                    id: receipt.id,
                    note: Drawn::drawn(&mut draw),
                    json: Drawn::drawn(&mut draw),
                    ratio: Drawn::drawn(&mut draw),
                };
                Told::of(if receipt == first {
                    Outcome::Replayed(receipt.id)
                } else {
                    Outcome::Failed("replayed another answer".to_owned())
                })
            }
            Err(IdempotencyError::Refused(()) | IdempotencyError::KeyReused) => Told::of(Outcome::Refused),
            Err(IdempotencyError::Failed(failure)) => failure.into(),
        }
    }
}

/// The answer to a request with an idempotency key.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Receipt {
    id: u64,
    note: Option<String>,
    json: Value,
    ratio: Odd<f64>,
}
