//! Plays a program on the public surface of the crate. What a client did and what it was told goes into [`Note`]s.

use super::edits::Edit;
use super::kinds::{InAttempt, played};
use super::plan::{Answer, LeaseOp, Op, Task, Transaction};
use super::player::{KEY_NAME, Made, Noted, Own, Player, RECORDS, observed};
use super::told::{Note, Outcome, Told};
use super::values::{Draw, Drawn, Odd};
use crate::harness::faults::Freezing;
use crate::histories::scene::Begun;
use fencepost::{Attempt, Call, Deadline, Error, FencingToken, IdempotencyClaim, IdempotencyError, Item, Reads};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::pin::pin;
use std::sync::Mutex;
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

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
    pub async fn work(mut self, tasks: Vec<Task>) {
        for task in tasks {
            tokio::time::sleep(Duration::from_millis(task.after)).await;
            if let Op::OneShots(row, count) = task.op {
                let shot = Task { op: Op::Edit(row, Edit::one_more(row, true)), ..task };
                let own = self.store.clone();
                for _ in 0..count {
                    self.store = observed(&self.client);
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
        let noted =
            Noted { own, scene: &self.client.scene.name, decisions: Mutex::default(), is_odd: Mutex::default() };
        let under = self.lease.lock().expect("no panic").as_ref().map(|lease| lease.token().number());
        let ahead = self.ahead();
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
            under,
            ahead: ahead.max(self.ahead()),
            told,
            decisions,
            is_odd,
        });
    }

    async fn perform(&self, task: &Task, call: &Call, noted: &Noted<'_>) -> Told {
        match &task.op {
            Op::Transact(of) => self.transact(of, task, call, noted).await,
            Op::Once(of) => self.once(of, task, call, noted).await,
            Op::Newest(op) => self.newest(op, call, noted).await,
            Op::Lease(op) if !matches!(op, LeaseOp::UnderLease(_)) => self.lease(*op, call, noted).await,
            // The others belong to one table.
            op => {
                let row = op.rows()[0];
                played(self, row.kind).perform(self, task, row, call, noted).await
            }
        }
    }

    fn reads(&self, of: &Transaction, task: &Task) -> (Reads, Vec<Box<dyn InAttempt>>, Option<Item<FencingToken>>) {
        self.client.scene.plays("Reads::new");
        let mut reads = Reads::new();
        let items = of
            .rows
            .iter()
            .map(|(row, read, ..)| played(self, row.kind).read(self, &mut reads, *row, *read, task))
            .collect();
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

    async fn once(&self, of: &Transaction, task: &Task, call: &Call, noted: &Noted<'_>) -> Told {
        let (reads, items, lease) = self.reads(of, task);
        for name in [
            "Store::idempotency",
            "Idempotency::with_key_name",
            "Idempotency::in_call",
            "Idempotency::change",
            "IdempotencyClaim::new",
            "IdempotencyClaim::lasting",
        ] {
            noted.own.plays(name);
        }
        let claim = IdempotencyClaim::new(&["play", &self.client.scene.name], &["payload"]).expect("a scope");
        // Repeats of one request ask for other times.
        let retention = IdempotencyClaim::RETENTION + Duration::from_hours(task.after.min(9_000));
        let claim = claim.lasting(retention).expect("at most 400 days");
        let records = self.store.idempotency::<Receipt>(RECORDS).with_key_name(KEY_NAME).in_call(call);
        let receipt = |attempt: &mut Attempt| {
            let (id, _) = Self::decide(of, &items, lease, attempt, noted)?;
            let mut draw = Draw::new(id);
            let receipt = Receipt::drawn(id, &mut draw);
            *noted.is_odd.lock().expect("no panic") |= draw.is_odd;
            Ok(receipt)
        };
        match records.change(&claim, reads, receipt).await {
            Ok(fencepost::Answer::New(receipt)) => Told { decision: Some(receipt.id), ..Told::of(Outcome::Applied) },
            Ok(fencepost::Answer::Replayed(receipt)) => {
                Told::of(if receipt == Receipt::drawn(receipt.id, &mut Draw::new(receipt.id)) {
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

impl Receipt {
    /// The answer of a decision.
    fn drawn(id: u64, draw: &mut Draw) -> Self {
        Receipt { id, note: Drawn::drawn(draw), json: Drawn::drawn(draw), ratio: Drawn::drawn(draw) }
    }
}
