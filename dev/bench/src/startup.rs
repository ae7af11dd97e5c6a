//! The step that a function's start is mostly made of, timed in a process that has done nothing before.
#![expect(clippy::disallowed_methods, reason = "measures on the wall clock")]

use std::time::{Duration, Instant};

/// How long making the client takes, as `fencepost::lambda::serve` does it. It loads the TLS roots.
pub fn client() -> Duration {
    let begun = Instant::now();
    let _client = fencepost::lambda::client_from_env();
    begun.elapsed()
}
