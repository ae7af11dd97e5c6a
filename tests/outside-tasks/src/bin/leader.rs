//! One of several processes leads, works under its token, and gives the lease back when it is told to stop.
//!
//! It writes its token beside each step. Where the file that `BLOCKED_BY` names exists, a step blocks the only thread of the
//! process, as a library may.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use fencepost::lease::{LeaseTerms, Unfinished};
use fencepost::{Error, Failure, FailureKind, FencingToken, Record, Store, Table};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::env::var;
use std::path::Path;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

const LENGTH: Duration = Duration::from_secs(3);

#[derive(Serialize, Deserialize, Record)]
#[record(key = "job")]
struct Progress {
    tokens: Vec<u64>,
}

/// Works until the lease is lost.
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
        match progress.upsert_with_retry("nightly", step).await {
            Ok(_) => {}
            Err(Error::Failed(failure)) if failure.is_retryable() || failure.is_outcome_unknown() => {}
            Err(error) => return Err(error.into()),
        }
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = Config::builder().behavior_version(BehaviorVersion::latest()).region(Region::new("eu-west-1"));
    let config = config.credentials_provider(Credentials::new("local", "local", None, None, "local"));
    let store = Store::new(&Client::from_conf(config.endpoint_url(var("ENDPOINT")?).build()));
    let (leases, progress) = (store.leases("Leases"), store.table("Progress"));
    let (name, terms) = (var("NAME")?, LeaseTerms::new(LENGTH)?);
    let mut terminate = signal(SignalKind::terminate())?;
    loop {
        let stop = async {
            terminate.recv().await;
        };
        match leases.campaign("leader", &name, terms, stop, |token| work(&progress, token)).await {
            Err(Error::Refused(Unfinished::Stopped)) => return Ok(()),
            // Another process leads.
            Err(Error::Refused(_)) | Ok(Err(Failure { kind: FailureKind::Fenced, .. })) => println!("follows"),
            Ok(Err(failure)) | Err(Error::Failed(failure)) => return Err(failure.into()),
        }
    }
}
