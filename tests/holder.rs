//! Holds a lease and writes under it until it may not: `holder item|transaction watched|blind CLOCK`.
//!
//! A separate process that the tests can stop. It writes one item, either fenced itself or in a transaction that
//! requires the lease; either while the lease is held, or without ever looking at its time. In the end it prints its
//! outcome.
//!
//! The file `CLOCK` says how many seconds its time of day is ahead of the machine's. With it, the test decides when the
//! lease has ended. It waits ten minutes for each answer: even on a slow machine, it sends each request once.
#![allow(clippy::print_stdout, reason = "the test reads how it ended")]
#![allow(clippy::disallowed_methods, reason = "it makes the clock of its store")]

use fencepost::lease::{LeaseTerms, Unfinished};
use fencepost::{Clock, Error, Failure, FencingToken, Reads, Record, RetryPolicy, Source, Store, Table, UpdateError};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The item, with the number of writes and the last token.
#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "itemId")]
struct Count {
    writes: u64,
    by: u64,
}

impl Count {
    fn one_more(&self, token: &FencingToken) -> Count {
        Count { writes: self.writes + 1, by: token.number() }
    }
}

struct Writer {
    items: Table<Count>,
    store: Store,
}

impl Writer {
    /// Writes the item, which refuses all but the newest holder.
    async fn item(&self, token: &FencingToken) -> Result<(), Failure> {
        let fenced = self.items.fenced_by(token);
        let one_more = |count: &Count| Ok::<_, Infallible>(Some(count.one_more(token)));
        match fenced.update_with_retry("item-1", one_more).await {
            Ok(_) => Ok(()),
            Err(UpdateError::Failed(failure)) => Err(failure),
            Err(error) => Err(Failure::Rejected { source: format!("{error:?}").into() }),
        }
    }

    /// Writes the item in a transaction that checks the lease.
    async fn transaction(&self, token: &FencingToken) -> Result<(), Failure> {
        let mut reads = Reads::new();
        let item = reads.item("item", &self.items, "item-1");
        let lease = reads.lease("lease", token);
        let written = self.store.transact_with_retry(reads, |attempt| {
            let Some(count) = attempt.get(item)? else { return Err(Error::Refused(())) };
            attempt.require(lease)?;
            attempt.update_at(item, &count.value.one_more(token))?;
            Ok(())
        });
        match written.await {
            Ok(()) => Ok(()),
            Err(Error::Failed(failure)) => Err(failure),
            Err(Error::Refused(())) => Err(Failure::Rejected { source: "there is no item".into() }),
        }
    }

    /// Writes until it fails; says how.
    async fn until_it_fails(&self, kind: &str, token: FencingToken) -> String {
        loop {
            let written = match kind {
                "item" => self.item(&token).await,
                _ => self.transaction(&token).await,
            };
            match written {
                Ok(()) => tokio::time::sleep(Duration::from_millis(5)).await,
                Err(Failure::Fenced) => return "fenced".to_owned(),
                Err(failure) => return format!("{failure:?}"),
            }
        }
    }
}

/// A store with the time of day ahead by the number in the file at each look.
fn store(clock: PathBuf) -> Store {
    let now = move || {
        let ahead = std::fs::read_to_string(&clock).expect("the clock's file").trim().parse().expect("seconds");
        SystemTime::now() + Duration::from_secs(ahead)
    };
    let mut policy = RetryPolicy::default();
    let long = Duration::from_mins(10);
    (policy.hedge_after, policy.send_limit) = (long, long);
    Store::new(&fencepost::lambda::client_from_env())
        .with_clock(Clock::new(now))
        .with_policy(policy)
        .with_time_limit(Duration::from_hours(2))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = || arguments.next().ok_or("holder item|transaction watched|blind CLOCK");
    let (kind, how, clock) = (argument()?, argument()?, argument()?);
    let store = store(clock.into());
    let leases = store.leases("Leases");
    let writer = Writer { items: store.table("Items"), store };
    let terms = LeaseTerms::new(Duration::from_hours(1))?;
    let ended = if how == "watched" {
        let work = |token| writer.until_it_fails(&kind, token);
        match Box::pin(leases.while_held("k", "stopped", terms, work)).await {
            Ok(ended) => ended,
            Err(Error::Refused(Unfinished::Lost)) => "lost".to_owned(),
            Err(error) => format!("{error:?}"),
        }
    } else {
        let lease = leases.acquire("k", "stopped", terms).await.map_err(|error| format!("{error:?}"))?;
        writer.until_it_fails(&kind, lease.token().clone()).await
    };
    println!("{ended}");
    Ok(())
}
