//! A test that is played with many seeds.

use crate::dynamo::Dynamo;
use crate::seeds::{HISTORIES, SEED, asked};

/// Plays a test once for each of these seeds, each time under paused time of its own. `FENCEPOST_SEED` plays one of them
/// again, and `FENCEPOST_HISTORIES` plays so many.
///
/// A test that fails prints its seed.
///
/// ```
/// fencepost_test::for_each_seed(3, async |db| {
///     db.create_table("Counters", "id");
///     db.lose_answer().of("PutItem").with_probability(0.5);
///     // ... the program under test, with `db.client()`
/// });
/// ```
///
/// # Panics
/// Where the test does.
pub fn for_each_seed(sample: u64, test: impl AsyncFn(Dynamo)) {
    let seeds = match asked(SEED) {
        Some(seed) => seed..seed + 1,
        None => 0..asked(HISTORIES).unwrap_or(sample),
    };
    for seed in seeds {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async { test(Dynamo::chosen(seed)).await });
    }
}
