//! A test that is played with many seeds.

use crate::dynamo::Dynamo;
use crate::seeds::asked_seeds;

/// Plays a test once for each of these seeds, each time under paused time of its own. `FENCEPOST_SEED` plays one of them
/// again, and `FENCEPOST_HISTORIES` says how many are played (`10000`) or which (`10000..20000`).
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
    for seed in asked_seeds().unwrap_or(0..sample) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async { test(Dynamo::chosen(seed)).await });
    }
}
