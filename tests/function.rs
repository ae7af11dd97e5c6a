//! Runs one of the functions by name, as its own binary does: `function device-state`.
//!
//! The tests need the functions as processes, and cargo builds a binary for them only from their own package. One thing
//! is different: the function waits ten minutes for each answer. A test then sees one request for each step, however
//! slow the machine is.

use fencepost::lambda::{serve, serve_queue, serve_schedule};
use fencepost::{RetryPolicy, Source, Store};
use functions::function::{Event, PROCESS, Queue, Task};
use std::time::Duration;

/// The same store, which waits for its answers.
fn patient(store: &Store) -> Store {
    let mut policy = RetryPolicy::default();
    let long = Duration::from_mins(10);
    (policy.hedge_after, policy.send_limit) = (long, long);
    store.with_policy(policy)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    let name = std::env::args().nth(1).unwrap_or_default();
    let function = functions::ALL.iter().find(|function| function.name == name);
    match &function.ok_or_else(|| format!("no function is called {name}"))?.event {
        Event::Http { start, .. } => serve(|store| start(&patient(store), PROCESS)).await,
        Event::Sqs { start, .. } => serve_queue(|store| start(&patient(store), PROCESS), Queue::take).await,
        Event::Schedule { start, .. } => serve_schedule(|store| start(&patient(store), PROCESS), Task::run).await,
    }
}
