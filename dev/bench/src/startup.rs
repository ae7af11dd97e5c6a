//! Measures the step that takes most of a function's start, in a process that has done nothing before.
#![expect(clippy::disallowed_methods, reason = "measures on the wall clock")]

use std::time::{Duration, Instant};

/// The time to create the client in the same way as `fencepost::lambda::serve`. It loads the TLS roots.
pub fn client() -> Duration {
    let begun = Instant::now();
    let _client = fencepost::lambda::client_from_env();
    begun.elapsed()
}
