//! One of several processes leads, works under its token, and gives the lease back when it is told to stop.
//!
//! Start it twice, each with a name, and end the one that leads. After `kill -TERM`, the other one goes on from the last step at
//! once; after `kill -KILL`, when the lease has ended. After `kill -STOP` and later `kill -CONT`, the writes of the one that wakes
//! up are refused. `cargo dev --dynamodb-only` starts a `DynamoDB` that has the tables, and prints what to export. Then:
//!
//! ```sh
//! NAME=ann cargo run -p fencepost --example leader
//! ```
//!
//! Each step writes its token into one item. Where the file that `BLOCKED_BY` names exists, a step blocks the only thread of the
//! process, as a library may.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program for the terminal, which may block its thread"
)]

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::Client;
use fencepost::lease::{LeaseTerms, Unfinished};
use fencepost::{Error, Failure, FailureKind, FencingToken, Record, Rng, Store, Table};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::env::var;
use std::path::Path;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

/// A process that dies is replaced after this time, and a second for clocks that differ.
const LENGTH: Duration = Duration::from_secs(3);

/// The progress of the work. The next leader goes on from this item, and not from the memory of the one before.
#[derive(Serialize, Deserialize, Record)]
#[record(key = "childId")]
struct Progress {
    tokens: Vec<u64>,
}

/// Works until the lease is lost: then this future is dropped at an `await`. The outcome of a write in flight is unknown then. But it
/// was under the token: it was applied before the first write of the next leader, or never will be.
async fn work(progress: &Table<Progress>, token: FencingToken) -> Result<Infallible, Failure> {
    println!("leads {}", token.number());
    let progress = progress.fenced_by(&token);
    loop {
        if var("BLOCKED_BY").is_ok_and(|file| Path::new(&file).exists()) {
            std::thread::sleep(4 * LENGTH);
        }
        let step = |now: Option<&Progress>| {
            let earlier = now.map(|now| &*now.tokens).unwrap_or_default();
            Progress { tokens: [earlier, &[token.number()]].concat() }
        };
        match progress.upsert_with_retry("example-leader", step).await {
            Ok(_) => {}
            // The next step begins with what is in the table. This one counts once or not at all.
            Err(Error::Failed(failure)) if failure.is_retryable() || failure.is_outcome_unknown() => {}
            Err(error) => return Err(error.into()),
        }
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::new(&Client::new(&aws_config::load_defaults(BehaviorVersion::latest()).await));
    let (leases, progress) = (store.leases(var("LEASES_TABLE")?), store.table(var("CHILDREN_TABLE")?));
    let (name, terms) = (var("NAME")?, LeaseTerms::new(LENGTH)?);
    let mut terminate = signal(SignalKind::terminate())?;
    loop {
        let stop = async {
            terminate.recv().await;
        };
        match leases.campaign("example-leader", &name, terms, stop, |token| work(&progress, token)).await {
            Err(Error::Refused(Unfinished::Stopped)) => return Ok(()),
            // Another process leads.
            Err(Error::Refused(_)) | Ok(Err(Failure { kind: FailureKind::Fenced, .. })) => println!("follows"),
            Ok(Err(failure)) | Err(Error::Failed(failure)) => return Err(failure.into()),
        }
        // Followers do not all come back at once.
        sleep(Duration::from_millis(Rng::system().next_u64() % 200)).await;
    }
}
