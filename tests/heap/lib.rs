//! How much memory one request may take: the worst bodies and stored items that are known.
//!
//! The functions answer real events. Their requests go through the real SDK to canned answers, so that an engine does not
//! count. See `cases` for the routes and their bounds.
#![cfg(test)]

mod cases;
mod functions;

use cases::{Base, CASES};
use functions::Functions;

/// The most heap at one moment of an invocation, in bytes. A function has 128 MB.
const PEAK: u64 = 72_000_000;
/// The most allocations of an invocation, which stand for its time.
const ALLOCATIONS: u64 = 2_000_000;

#[test]
#[expect(clippy::print_stdout, reason = "what was measured goes into docs/benchmarks.md")]
fn the_worst_bodies_and_stored_items_that_are_known_take_less_than_a_function_has() {
    let functions = Functions::new();
    let base = Base::made_by(&functions);
    for case in CASES {
        let tries: Vec<_> = (0..3).map(|_| case.play(&functions, &base)).collect();
        let took = &tries[0];
        let (peak, count) = (took.heap.bytes_max, took.heap.count_total);
        let time = tries.iter().map(|took| took.time).min().unwrap_or_default();
        let what = format!("{}, {}: {} kB, {count} allocations, {time:?}", case.function, case.name, peak / 1000);
        println!("{what}, {} with {} bytes", took.status, took.answer.len());
        assert!(took.status != 500 && peak <= PEAK && count <= ALLOCATIONS, "{what}");
    }
}
