//! A loop that works while it leads, and survives the loss of its lease.
//!
//! Start it twice, each with a name, and end the one that leads. After Ctrl-C or `kill -TERM`, the other one continues from
//! the last step within seconds; after `kill -KILL`, when the lease has ended. After `kill -STOP` and later `kill -CONT`, the
//! writes of the one that wakes up are refused. With `cargo dev` running:
//!
//! ```sh
//! export AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8000 AWS_REGION=us-east-1
//! export AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local LEASES_TABLE=Leases CHILDREN_TABLE=Children
//! cargo run -p fencepost --example leader ann
//! ```
//!
//! The work is to count: one item of `CHILDREN_TABLE` holds the number of steps and the name of the last leader.

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::Client;
use fencepost::lease::{LeaseTerms, Unfinished};
use fencepost::{Error, Failure, FailureKind, FencingToken, Record, Rng, Source, Store, Table};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::signal::ctrl_c;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;
use tracing::{info, warn};

/// The key of the lease, and of the item that is written under it.
const LEADER: &str = "example-leader";
/// The number of steps before a leader gives the lease back.
const TURN: u64 = 30;
/// The duration of a step without its write. Real work would be here.
const STEP: Duration = Duration::from_millis(500);

/// The progress of the work. The next leader continues from this item, and not from the memory of the previous leader.
#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "childId")]
struct Progress {
    steps: u64,
    by: String,
}

/// The end of a turn in which the lease was not lost.
enum Turn {
    /// All steps were made.
    Over,
    /// The fence refused a write: another process leads.
    Fenced,
    /// A failure that repeating cannot repair.
    Broken(Failure),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    tracing_subscriber::fmt().with_target(false).init();
    let setting = |name| {
        let how = "`cargo dev --dynamodb-only` starts a DynamoDB that has the tables, and prints what to export";
        std::env::var(name).map_err(|_| format!("the environment does not say {name}: {how}"))
    };
    let name = std::env::args().nth(1).unwrap_or_else(|| format!("leader-{}", std::process::id()));
    // The whole default chain of the SDK: profiles, container endpoints, the metadata of the machine.
    let store = Store::new(&Client::new(&aws_config::load_defaults(BehaviorVersion::latest()).await));
    let leases = store.leases(setting("LEASES_TABLE")?);
    let progress: Table<Progress> = store.table(setting("CHILDREN_TABLE")?);

    let mut told_to_end = signal(SignalKind::terminate())?;
    loop {
        let stop = async {
            tokio::select! {
                _ = ctrl_c() => {}
                _ = told_to_end.recv() => {}
            }
        };
        let terms = LeaseTerms::default();
        match leases.campaign(LEADER, &name, terms, stop, |token| lead(&progress, &name, token)).await {
            Ok(Turn::Over) => info!(name, "my turn is over, and the lease is given back"),
            Ok(Turn::Fenced) => warn!(name, "somebody else leads: what I wanted to write was refused, and I follow"),
            Ok(Turn::Broken(failure)) | Err(Error::Failed(failure)) => return Err(failure.into()),
            Err(Error::Refused(Unfinished::Stopped)) => {
                info!(name, "I was told to end, and the lease is given back");
                return Ok(());
            }
            // The work was cancelled at some `await`. The outcome of a write in flight is unknown here. But it was
            // under the token: it was applied before the first write of the next leader or never will be.
            Err(Error::Refused(lost)) => warn!(name, "{lost}, and I follow"),
        }
        // Another one may lead now. The pause is never the same, so that followers do not all come at once.
        sleep(Duration::from_millis(500 + Rng::system().next_u64() % 500)).await;
    }
}

/// The work of a leader. Each write is under the token. If the lease is lost, this future is dropped at an `await`.
async fn lead(progress: &Table<Progress>, name: &str, token: FencingToken) -> Turn {
    info!(name, token = token.number(), "I lead");
    let progress = progress.fenced_by(&token);
    for _ in 0..TURN {
        sleep(STEP).await;
        match step(&progress, name).await {
            Ok(Progress { steps, .. }) => info!(name, token = token.number(), steps, "a step"),
            Err(Failure { kind: FailureKind::Fenced, .. }) => return Turn::Fenced,
            // The outcome is unknown. The next step starts from the table. This one counts once or not at all.
            Err(failure) if failure.is_outcome_unknown() => warn!(name, %failure, "perhaps a step"),
            Err(failure) if failure.is_retryable() => warn!(name, %failure, "no step"),
            Err(failure) => return Turn::Broken(failure),
        }
    }
    Turn::Over
}

/// Makes one step beyond the progress in the table.
async fn step(progress: &Table<Progress>, name: &str) -> Result<Progress, Failure> {
    let further = |now: Option<&Progress>| Progress { steps: now.map_or(0, |now| now.steps) + 1, by: name.to_owned() };
    let written = progress.upsert_with_retry(LEADER, further).await?;
    Ok(written.item().expect("it is written").value)
}
