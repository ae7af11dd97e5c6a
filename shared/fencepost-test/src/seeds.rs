//! Playing seeded tests: how many, which one again, and whether any shows the harm that a broken rule does.

use std::fmt::{Debug, Display};
use std::ops::{AddAssign, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Names the one seed to play.
pub const SEED: &str = "FENCEPOST_SEED";

/// Says how many seeds to play, as `10000`, or which ones, as `10000..20000`.
const HISTORIES: &str = "FENCEPOST_HISTORIES";

/// A seed with a broken history and its failure.
pub type Broke = (u64, String);

/// The number that this variable holds, if it is set.
pub fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} takes a whole number")))
}

/// The seeds that `FENCEPOST_SEED` or else `FENCEPOST_HISTORIES` names, if one is set.
///
/// # Panics
/// If they hold neither a whole number nor a range of such numbers.
pub fn asked_seeds() -> Option<Range<u64>> {
    if let Some(seed) = asked(SEED) {
        return Some(seed..seed + 1);
    }
    let text = std::env::var(HISTORIES).ok()?;
    let (first, end) = text.split_once("..").unwrap_or(("0", &text));
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{HISTORIES} takes 10000, or 10000..20000"));
    Some(number(first)..number(end))
}

/// Plays these seeds until a history breaks. Returns the sum of the histories.
///
/// # Errors
/// The seed, with the message of its history or panic.
pub fn explore<T: Default + AddAssign>(seeds: Range<u64>, run: impl Fn(u64) -> Result<T, String>) -> Result<T, Broke> {
    let mut total = T::default();
    for seed in seeds {
        let outcome = catch_unwind(AssertUnwindSafe(|| run(seed)));
        let outcome = outcome.unwrap_or_else(|panic| Err(format!("it panicked: {}", said(panic.as_ref()))));
        total += outcome.map_err(|why| (seed, why))?;
    }
    Ok(total)
}

/// Plays the histories that `FENCEPOST_HISTORIES` names, or a sample of so many, on two threads. Returns the sum of the
/// histories. `None` where `FENCEPOST_SEED` had one of them replayed.
///
/// # Panics
/// With the seed of a history that breaks.
#[expect(clippy::print_stdout, reason = "a history that is replayed says what it was made of")]
pub fn play<T: Default + AddAssign + Display + Debug + Send>(
    sample: u64,
    explore: impl Fn(Range<u64>) -> Result<T, Broke> + Sync,
) -> Option<T> {
    if let Some(seed) = asked(SEED) {
        println!("{}", explore(seed..seed + 1).expect("this seed holds"));
        return None;
    }
    let Range { start, end } = asked_seeds().unwrap_or(0..sample);
    let half = start.midpoint(end);
    let explore = &explore;
    let mut total = T::default();
    std::thread::scope(|scope| {
        let running = [start..half, half..end].map(|seeds| scope.spawn(move || explore(seeds)));
        for thread in running {
            total += thread.join().expect("no panic outside a history").expect("replay with FENCEPOST_SEED=<seed>");
        }
    });
    Some(total)
}

/// Looks for the harm that a broken rule does among these seeds, which `explore` plays without the rule.
///
/// # Panics
/// If no seed shows it.
#[expect(clippy::print_stdout, reason = "a random test prints its seed")]
pub fn is_noticed<T>(
    seeds: Range<u64>,
    explore: impl Fn(Range<u64>) -> Result<T, Broke>,
    is_harm: impl Fn(&str) -> bool,
) {
    let mut seed = seeds.start;
    while let Err((broke, why)) = explore(seed..seeds.end) {
        if is_harm(&why) {
            println!("seed {broke}: {why}");
            return;
        }
        seed = broke + 1;
    }
    panic!("the histories do not show what the rule is for");
}

/// The message of a panic.
fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("see above")
}
