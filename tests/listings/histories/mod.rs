//! Seeded listings: among random changes, under faults, and of as many items as there may be.

use super::messages::engine;
use crate::harness::engine::Engine;
use crate::harness::seeds::{Broke, explore};
use std::ops::{AddAssign, Range};

mod counted;
mod faults;
mod live;

/// Runs these seeds on one engine, each with an empty log.
fn explored<T: Default + AddAssign>(
    seeds: Range<u64>,
    run: impl Fn(&Engine, u64) -> Result<T, String>,
) -> Result<T, Broke> {
    let engine = engine();
    explore(seeds, |seed| {
        engine.take_log();
        run(&engine, seed)
    })
}
