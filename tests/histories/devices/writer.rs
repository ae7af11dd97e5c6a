//! One client that writes, deletes and creates, over a wire of its own.

use super::record::{Ledger, Operation, TABLE, Told, at, by_failure, state_of};
use crate::harness::faults::{Applied, Freezing, Network, Wire};
use fencepost::error::{CreateError, DeleteError, UpdateError, VersionedUpdateError};
use fencepost::{Call, Deadline, Decision, ItemVersion, Key, RetryPolicy, Table};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

/// One client: its own SDK client, table handle and wire.
pub struct Writer {
    table: Table<Ledger>,
    pub wire: Wire,
    network: Arc<Network>,
    numbers: Arc<AtomicU64>,
    done: Arc<Mutex<Vec<Operation>>>,
    key: String,
    known: Option<ItemVersion>,
}

impl Writer {
    pub fn new(
        network: &Arc<Network>,
        key: &str,
        numbers: &Arc<AtomicU64>,
        done: &Arc<Mutex<Vec<Operation>>>,
        start: Instant,
    ) -> Self {
        let wire = Wire::new(network);
        let base = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
        let mut policy = RetryPolicy::default();
        policy.max_attempts = 12;
        let store = network.store(&wire.client(), move || base + start.elapsed()).with_policy(policy);
        let table = store.table(TABLE);
        let (network, numbers, done) = (network.clone(), numbers.clone(), done.clone());
        Writer { table, wire, network, numbers, done, key: key.to_owned(), known: None }
    }

    pub async fn work(mut self, operations: u64, deletes: bool) {
        for turn in 0..operations {
            sleep(Duration::from_millis(self.network.below(60))).await;
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            self.wire.works_on(number);
            let drawn = self.network.below(10);
            let what = match (deletes, drawn) {
                (true, _) if turn % 2 == 1 => "create",
                (true, 0..=6) => "delete at version",
                (true, _) => "delete",
                (false, 0..=6) => "update",
                (false, 7..=8) => "update at version",
                (false, _) => "get",
            };
            let began = Instant::now();
            let network = self.network.clone();
            let told = Freezing::new(&network, self.perform(what, number)).await;
            let operation = Operation { number, what, began, ended: Instant::now(), told };
            self.done.lock().expect("no panic").push(operation);
        }
    }

    pub async fn perform(&mut self, what: &str, number: u64) -> Told {
        let key = Key::from(self.key.as_str());
        let call = Call::new(Deadline::within(Duration::from_millis(200 + self.network.below(3000))));
        let append = |ledger: &Ledger| {
            let mut next = ledger.clone();
            next.operations.push(number);
            Decision::<Ledger, ()>::Put(next)
        };
        let told = match what {
            "update" => match self.table.update_with_retry(&key, &call, append).await {
                Ok(written) => Told::Applied(written.at),
                Err(UpdateError::NotFound) => Told::SawNothing,
                Err(UpdateError::Refused(())) => unreachable!("the decision never refuses"),
                Err(UpdateError::Failed(failure)) => by_failure(&failure),
            },
            "get" => match self.table.get(&key, &call).await {
                Ok(Some(current)) => at(&current),
                Ok(None) => Told::SawNothing,
                Err(failure) => by_failure(&failure),
            },
            "create" => {
                let value = Ledger { operations: vec![number] };
                match self.table.create(&key, &value, &call).await {
                    Ok(written) => Told::Applied(written.at),
                    Err(CreateError::Exists(current)) => at(&current),
                    Err(CreateError::Failed(failure)) => by_failure(&failure),
                }
            }
            "update at version" => {
                let Some(known) = self.known_version(&key, &call).await else { return Told::NotApplied };
                match self.table.update_at_version(&key, known, &call, append).await {
                    Ok(written) => Told::Applied(written.at),
                    Err(VersionedUpdateError::NotFound) => Told::SawNothing,
                    Err(VersionedUpdateError::Conflict(current)) => at(&current),
                    Err(VersionedUpdateError::Refused(())) => unreachable!("the decision never refuses"),
                    Err(VersionedUpdateError::Failed(failure)) => by_failure(&failure),
                }
            }
            "delete at version" => {
                let Some(known) = self.known_version(&key, &call).await else { return Told::NotApplied };
                deleted(known, self.table.delete_at_version(&key, known, &call).await)
            }
            _ => match self.table.delete(&key, &call).await {
                // Which state it deleted is its own affair; the timeline knows the incarnation.
                Ok(version) => {
                    let incarnation = self.incarnation_of(version.get());
                    Told::Applied(ItemVersion { version, incarnation })
                }
                Err(error) => deleted_not(error),
            },
        };
        if let Told::Applied(at) | Told::Saw(at) = &told {
            self.known = Some(*at);
        }
        told
    }

    async fn known_version(&self, key: &Key, call: &Call) -> Option<ItemVersion> {
        match self.known {
            Some(known) => Some(known),
            None => self.table.get(key, call).await.ok().flatten().map(|current| current.at),
        }
    }

    fn incarnation_of(&self, version: u64) -> fencepost::Incarnation {
        let applied = self.network.applied.lock().expect("no panic");
        let number = version.to_string();
        let same = |applied: &&Applied| applied.row()["_version"]["N"].as_str() == Some(&number);
        state_of(applied.iter().rev().find(same).expect("a delete that was told applied was applied").row())
            .expect("a row")
            .incarnation
    }
}

fn deleted(known: ItemVersion, result: Result<fencepost::Version, DeleteError<Ledger>>) -> Told {
    match result {
        Ok(version) => Told::Applied(ItemVersion { version, ..known }),
        Err(error) => deleted_not(error),
    }
}

fn deleted_not(error: DeleteError<Ledger>) -> Told {
    match error {
        DeleteError::NotFound => Told::SawNothing,
        DeleteError::Conflict(current) => at(&current),
        DeleteError::Failed(failure) => by_failure(&failure),
    }
}
