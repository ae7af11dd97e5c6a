//! Runs one of the functions by name, as its own binary does: `function device-state`.
//!
//! The tests need the functions as processes, and cargo builds a binary for them only from their own package. One thing
//! is different: the function waits ten minutes for each answer. A test then sees one request for each step, however
//! slow the machine is.

use fencepost::lambda::{Error, serve, serve_queue};
use fencepost::{RetryPolicy, Source, Store};
use std::time::Duration;

/// The same set-up with a store that waits for its answers.
fn patient<A>(from_env: fn(&Store) -> Result<A, Source>) -> impl FnOnce(&Store) -> Result<A, Source> {
    let mut policy = RetryPolicy::default();
    let long = Duration::from_mins(10);
    (policy.hedge_after, policy.min_send_limit) = (long, long);
    (policy.send_limit, policy.max_send_limit) = (long, long);
    move |store| from_env(&store.with_policy(policy))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    match std::env::args().nth(1).as_deref() {
        Some("device-state") => {
            serve(patient(functions::device_state::App::from_env), functions::device_state::handle).await
        }
        Some("delete-mapping") => {
            serve_queue(patient(functions::delete_mapping::App::from_env), functions::delete_mapping::handle).await
        }
        Some("ensure-child") => {
            serve(patient(functions::ensure_child::App::from_env), functions::ensure_child::handle).await
        }
        Some("host-mapping") => {
            serve(patient(functions::host_mapping::App::from_env), functions::host_mapping::handle).await
        }
        Some("inventory") => serve(patient(functions::inventory::App::from_env), functions::inventory::handle).await,
        Some("lease") => serve(patient(functions::lease::App::from_env), functions::lease::handle).await,
        Some("place-order") => {
            serve(patient(functions::place_order::App::from_env), functions::place_order::handle).await
        }
        other => Err(format!("no function is called {other:?}").into()),
    }
}
