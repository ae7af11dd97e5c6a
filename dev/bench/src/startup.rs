//! The steps that a function's start is made of, one by one. Each is timed in a process that has done nothing before.
#![expect(clippy::disallowed_methods, reason = "measures on the wall clock")]

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::Client;
use std::time::{Duration, Instant};

/// How long each step took.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    /// Loading region, credentials and settings with `aws_config`.
    pub config: Duration,
    /// Making the client, which loads the TLS roots.
    pub client: Duration,
}

/// Takes the steps as `fencepost::runtime::serve` does.
pub async fn take() -> Steps {
    let begun = Instant::now();
    let config = Box::pin(aws_config::defaults(BehaviorVersion::latest()).load()).await;
    let loaded = Instant::now();
    let _client = Client::new(&config);
    Steps { config: loaded - begun, client: loaded.elapsed() }
}
