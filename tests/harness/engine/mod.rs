//! The engine that a test asks, from the test kit: the embedded one in process, or the one that `DYNAMODB_ENDPOINT`
//! names.

use aws_sdk_dynamodb::Client;
use fencepost::{Clock, Rng, Store};
use std::time::SystemTime;

mod transactions;

pub use fencepost_test::{
    Asked, Engine, Step, Use, action_of, body_of, client_over, is_read, number, operation_of, response,
};

/// A store over this client, under this clock and with these random numbers.
pub fn store(
    client: &Client,
    now: impl Fn() -> SystemTime + Send + Sync + 'static,
    random: impl Fn() -> u64 + Send + Sync + 'static,
) -> Store {
    Store::new(client).with_clock(Clock::new(now)).with_rng(Rng::new(random))
}
