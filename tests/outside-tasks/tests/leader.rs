//! One of several processes leads, works under its token, and gives the lease back when it is told to stop.

use fencepost::lease::{LeaseTerms, Leases, Unfinished};
use fencepost::{Error, Failure, FencingToken, Record, Store, Table};
use fencepost_test::Engine;
use serde::{Deserialize, Serialize};
use std::future::pending;
use std::time::Duration;
use tokio::time::{Instant, sleep};

#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "job")]
struct Progress {
    steps: u64,
    by: String,
}

/// Leads until it is told to stop, and follows while another one leads.
async fn run(
    leases: &Leases,
    progress: &Table<Progress>,
    name: &str,
    stop: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let work = async |token: FencingToken| -> Result<(), Failure> {
        let progress = progress.fenced_by(&token);
        loop {
            let step =
                |now: Option<&Progress>| Progress { steps: now.map_or(1, |now| now.steps + 1), by: name.to_owned() };
            progress.upsert_with_retry("nightly", step).await?;
            sleep(Duration::from_secs(1)).await;
        }
    };
    match leases.campaign("leader", name, LeaseTerms::default(), stop, work).await {
        Ok(worked) => worked,
        Err(Error::Refused(Unfinished::Stopped)) => Ok(()),
        Err(Error::Refused(_)) => Ok(()), // Lost: another process leads, and a caller may run it again.
        Err(Error::Failed(failure)) => Err(failure),
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_one_leads_as_soon_as_the_first_is_told_to_stop() {
    let engine = Engine::embedded(&[("Leases", "leaseKey"), ("Progress", "job")]);
    let start = |name: &'static str, seconds: Option<u64>| {
        let store = Store::new(&engine.client());
        tokio::spawn(async move {
            let stop = async {
                match seconds {
                    Some(seconds) => sleep(Duration::from_secs(seconds)).await,
                    None => pending().await,
                }
            };
            run(&store.leases("Leases"), &store.table("Progress"), name, stop).await
        })
    };
    let began = Instant::now();
    let (first, second) = (start("ann", Some(60)), start("bob", None));
    first.await.expect("no panic").expect("it was stopped");
    let progress: Table<Progress> = Store::new(&engine.client()).table("Progress");
    let steps = progress.get("nightly").await.expect("an answer").expect("it has begun").steps;
    while progress.get("nightly").await.expect("an answer").expect("it is there").by != "bob" {
        sleep(Duration::from_millis(100)).await;
    }
    assert!(began.elapsed() < Duration::from_secs(80), "a released lease is not waited for, {:?}", began.elapsed());
    let now = progress.get("nightly").await.expect("an answer").expect("it is there");
    assert_eq!(now.steps, steps + 1, "it goes on from the table");
    second.abort();
}
