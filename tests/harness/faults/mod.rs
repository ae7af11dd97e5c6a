//! The faults of the test kit between the real SDK and the engine, and the rules of Fencepost that a test can break
//! there.
//!
//! A seed replays exactly: it decides all chance, under tokio's paused clock.

mod breaking;
mod broken;
mod seam;

use super::engine::store;
use aws_sdk_dynamodb::Client;
use fencepost::Store;
use std::sync::Arc;
use std::time::SystemTime;

pub use breaking::leave_out;
pub use broken::Broken;
pub use fencepost_test::{Applied, Freezing, Network, Rates, Touched, Wire};
pub use seam::{ONE_PAYLOAD, is_burn, network_that_breaks, take_lost_answers};

/// A store over this client, under this clock, with the random numbers of the network.
pub fn store_on(
    network: &Arc<Network>,
    client: &Client,
    now: impl Fn() -> SystemTime + Send + Sync + 'static,
) -> Store {
    let chance = network.clone();
    store(client, now, move || chance.rng.lock().expect("no panic while drawing").u64(..))
}
