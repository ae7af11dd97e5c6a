//! The function `delete-mapping`: delayed deletes of host mappings, from a queue.
//!
//! The table decides which instances a task deletes (see `fencepost::lww`). So a task may arrive late, twice, and after
//! newer ones. Tasks for one address are folded into the newest, which does the work of the others too.

pub mod task;

use crate::function::{Environment, Event, Function, queue};
use crate::mapping::{MAPPINGS_TABLE, Mapping};
use fencepost::http::{Ip, Problem};
use fencepost::lambda::{Done, Outcome};
use fencepost::lww::{Deletion, LwwTable};
use fencepost::{Call, Failure, FailureKind, Source, Store};
use futures_util::stream::{StreamExt, iter};
use std::collections::{BTreeMap, BTreeSet};
use task::{Task, newest_of_each, parse_task};

/// The function.
pub const FUNCTION: Function = Function {
    name: "delete-mapping",
    event: Event::Sqs {
        message: "Deletes the instance behind an address, also late, twice or out of order.",
        start: |store, environment| {
            Ok(queue(App::from_env(store, environment)?, |app, bodies, call| Box::pin(handle(app, bodies, call))))
        },
    },
    variables: &[MAPPINGS_TABLE],
};

/// The number of writes of a batch that are in flight at once. It handles a batch of 10 in three round trips, and does
/// not throttle the table for other callers when many batches arrive at once.
const CONCURRENCY: usize = 4;

/// The state of the function between batches.
#[derive(Debug)]
pub struct App {
    mappings: LwwTable<Mapping>,
}

impl App {
    /// Creates the function on this table.
    #[must_use]
    pub fn new(mappings: LwwTable<Mapping>) -> Self {
        App { mappings }
    }

    /// Creates the function from its environment.
    pub fn from_env(store: &Store, environment: &Environment) -> Result<Self, Source> {
        Ok(App::new(store.lww_table(MAPPINGS_TABLE.required(environment)?)))
    }
}

/// Does the tasks of one batch, with one write per address. Returns one outcome for each message, in their order.
///
/// A task fails if the deadline of the invocation ends it, or if the table is throttled. A malformed task fails alone.
/// A failed task may come again at any time.
pub async fn handle(app: &App, bodies: &[&str], call: &Call) -> Vec<Outcome> {
    let now = app.mappings.store().now();
    let parsed: Vec<_> = bodies.iter().map(|body| parse_task(body, now)).collect();
    let tasks = parsed.iter().enumerate().filter_map(|(place, task)| Some((place, task.as_ref().ok()?)));
    let newest = newest_of_each(tasks.clone());
    let writes = tasks.filter(|(place, task)| newest.get(&task.ip) == Some(place));
    let writes: Vec<_> = writes.map(|(place, task)| async move { (place, delete(app, task, call).await) }).collect();
    let mut written: BTreeMap<_, _> = iter(writes).buffer_unordered(CONCURRENCY).collect().await;
    let is_done = |place: &usize| matches!(written.get(place), Some(Ok(_)));
    let done: BTreeSet<Ip> = newest.into_iter().filter(|(_, place)| is_done(place)).map(|(ip, _)| ip).collect();
    let outcome = |(place, task): (usize, Result<Task, Problem>)| {
        let ip = task?.ip;
        match written.remove(&place) {
            Some(Ok(deletion)) => Ok(Done { key: ip.to_string(), outcome: deletion.word() }),
            Some(Err(failure)) => Err(failure.into()),
            None if done.contains(&ip) => Ok(Done { key: ip.to_string(), outcome: "folded" }),
            None => {
                Err(Failure::of(FailureKind::OutcomeUnknown { source: "the newest task of its address failed".into() })
                    .into())
            }
        }
    };
    parsed.into_iter().enumerate().map(outcome).collect()
}

async fn delete(app: &App, task: &Task, call: &Call) -> Result<Deletion, Failure> {
    app.mappings.in_call(call).delete(task.ip.to_string(), &task.instance).await
}
