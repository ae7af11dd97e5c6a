//! The function `delete-mapping`: deletes of host mappings that come late, through a queue.
//!
//! What a task deletes and what it leaves alone is decided by the table (see `fencepost::newest`), so a task may arrive
//! late, twice, and after newer ones. Tasks for one address are folded: the newest says all that the others say.

pub mod task;

use aws_sdk_dynamodb::Client;
use fencepost::http::Problem;
use fencepost::newest::{Deletion, Newest};
use fencepost::request::Ip;
use fencepost::runtime::{Done, Outcome};
use fencepost::timestamp::Timestamp;
use fencepost::{Call, Failure, Key, Source};
use futures_util::stream::{StreamExt, iter};
use std::collections::{BTreeMap, BTreeSet};
use task::{Mapping, Task, newest_of_each, parse_task};

/// How many writes of a batch are on their way at once: enough for a batch of 10 in three round trips, and few enough
/// not to throttle the table for everybody else when many batches come at once.
const CONCURRENCY: usize = 4;

/// What the function keeps between batches.
#[derive(Debug)]
pub struct App {
    mappings: Newest<Mapping>,
}

impl App {
    /// A function on this table, whose clock is the table's.
    #[must_use]
    pub fn new(mappings: Newest<Mapping>) -> Self {
        App { mappings }
    }

    /// As the environment says: `MAPPINGS_TABLE`.
    ///
    /// # Errors
    /// A sentence that names the variable.
    pub fn from_env(client: &Client) -> Result<Self, Source> {
        let table = std::env::var("MAPPINGS_TABLE").map_err(|_| "MAPPINGS_TABLE must name the table of mappings")?;
        Ok(App::new(Newest::new(client, table)))
    }
}

/// Does the tasks of one batch: one write for each address. Gives one outcome for each message, in their order.
///
/// A task that comes too late for the invocation's deadline, or meets a throttled table, fails; a malformed one fails
/// alone. Whatever failed may come again at any time.
pub async fn handle(app: &App, bodies: &[&str], call: &Call) -> Vec<Outcome> {
    let now = Timestamp::from(app.mappings.ambient().now());
    let parsed: Vec<_> = bodies.iter().map(|body| parse_task(body, now)).collect();
    let tasks = parsed.iter().enumerate().filter_map(|(place, task)| Some((place, task.as_ref().ok()?)));
    let newest = newest_of_each(tasks.clone());
    let writes = tasks.filter(|(place, task)| newest.get(&task.ip) == Some(place));
    let writes = writes.map(|(place, task)| async move { (place, delete(app, task, call).await) });
    let mut written: BTreeMap<_, _> = iter(writes).buffer_unordered(CONCURRENCY).collect().await;
    let is_done = |place: &usize| matches!(written.get(place), Some(Ok(_)));
    let done: BTreeSet<Ip> = newest.into_iter().filter(|(_, place)| is_done(place)).map(|(ip, _)| ip).collect();
    let outcome = |(place, task): (usize, Result<Task, Problem>)| {
        let ip = task?.ip;
        match written.remove(&place) {
            Some(Ok(deletion)) => Ok(Done { key: ip.to_string(), outcome: deletion.word() }),
            Some(Err(failure)) => Err(failure.into()),
            None if done.contains(&ip) => Ok(Done { key: ip.to_string(), outcome: "folded" }),
            None => Err(Failure::OutcomeUnknown { source: "the newest task of its address failed".into() }.into()),
        }
    };
    parsed.into_iter().enumerate().map(outcome).collect()
}

async fn delete(app: &App, task: &Task, call: &Call) -> Result<Deletion, Failure> {
    app.mappings.delete(&Key::from(task.ip.to_string().as_str()), &task.fence, call).await
}
