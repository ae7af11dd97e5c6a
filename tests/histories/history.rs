//! The shape of all histories: clients race under every fault, and afterwards nothing may contradict their answers.
//!
//! A history follows from its seed alone. `FENCEPOST_HISTORIES=10000` plays so many instead of the sample of a plain
//! `cargo test`. `FENCEPOST_SEED=7` replays one.

use crate::harness::engine::{Engine, embedded_with_indexed_tables, with_indexed_tables};
use crate::harness::faults::{Applied, Broken, take_lost_answers};
use crate::harness::seeds::{self, Broke};
use crate::harness::total::Total;
use fencepost::{Failure, FailureKind};
use judges::linearizable;
use std::any::type_name;
use std::ops::Range;
use tokio::time::Instant;

/// The number of histories on one engine, which keeps all rows in memory. No two of them touch the same rows.
const HISTORIES_OF_AN_ENGINE: usize = 500;

/// The number of histories of each kind on another engine.
const ELSEWHERE: u64 = 25;

/// The checks of a history.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    All,
    /// The independent judge alone.
    Judge,
}

/// A kind of history. A value is a finished history: all copies have arrived.
pub trait History: Sized {
    /// The tables, each with its partition key.
    const TABLES: &'static [(&'static str, &'static str)];
    /// The number of histories in a plain `cargo test`.
    const SAMPLE: u64;

    fn play(engine: &Engine, seed: u64, broken: Broken) -> impl Future<Output = Self>;

    /// The broken promises, one sentence each.
    fn violations(&self, engine: &Engine) -> Vec<String>;

    /// The objections of an independent judge, which knows only the clients' answers.
    fn judged(&self) -> Vec<String> {
        Vec::new()
    }

    /// The contents of a sound history, in numbers.
    fn total(&self) -> Total;

    /// Fails if too little happened to show anything.
    fn assert_enough_happened(total: &Total);

    /// Creates tables of another form.
    fn fill(engine: Engine) -> Engine {
        engine
    }

    /// Plays the history of a seed and checks it. The judge comes last, because it says least about the reason.
    fn run(engine: &Engine, seed: u64, broken: Broken, by: By) -> Result<Total, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        engine.take_log();
        take_lost_answers();
        let ended = runtime.block_on(Self::play(engine, seed, broken));
        let requests = engine.take_log().len();
        let mut found = if by == By::All { ended.violations(engine) } else { Vec::new() };
        if found.is_empty() {
            found = ended.judged();
        }
        if !found.is_empty() {
            return Err(found.join("; "));
        }
        let mut total = Total::of(&[("histories", 1), ("requests", requests), ("lostAnswers", take_lost_answers())]);
        total += ended.total();
        Ok(total)
    }

    /// The first of these seeds with a broken history, and the reason. Otherwise the total of all histories.
    fn explore(seeds: Range<u64>, broken: Broken, by: By) -> Result<Total, Broke> {
        let mut total = Total::default();
        for first in seeds.clone().step_by(HISTORIES_OF_AN_ENGINE) {
            let next = first.saturating_add(HISTORIES_OF_AN_ENGINE as u64).min(seeds.end);
            let engine = Self::fill(embedded_with_indexed_tables(Self::TABLES));
            total += seeds::explore(first..next, |seed| Self::run(&engine, seed, broken, by))?;
        }
        Ok(total)
    }

    /// Plays the sample, or the histories that the environment names. Every history must hold.
    fn holds() {
        println!("{}:", type_name::<Self>());
        let Some(total) = seeds::play(Self::SAMPLE, |seeds| Self::explore(seeds, Broken::Nothing, By::All)) else {
            return;
        };
        println!("{total}");
        assert!(total["lostAnswers"] > 0, "no answer was lost: {total}");
        Self::assert_enough_happened(&total);
        Self::holds_elsewhere();
    }

    /// Plays a few histories on the engine at `DYNAMODB_ENDPOINT`, if that is set.
    ///
    /// Like the embedded engine, it answers while time stands still. A seed therefore plays the same history there.
    fn holds_elsewhere() {
        if std::env::var("DYNAMODB_ENDPOINT").is_err() {
            return;
        }
        let engine = Self::fill(with_indexed_tables(Self::TABLES));
        let played = seeds::explore(0..ELSEWHERE, |seed| Self::run(&engine, seed, Broken::Nothing, By::All));
        println!("on another engine: {}", played.expect("this seed holds there"));
    }

    /// Breaks each of these rules, and looks for this harm in the histories of these seeds.
    fn notices(rules: &[(Broken, Range<u64>, &str)]) {
        for (broken, seeds, harm) in rules {
            println!("{} without {broken:?}: {harm}", type_name::<Self>());
            let is_harm =
                |why: &str| why.split("; ").any(|found| found.trim_start_matches("it panicked: ").starts_with(harm));
            seeds::is_noticed(seeds.clone(), |seeds| Self::explore(seeds, *broken, By::All), is_harm);
        }
    }

    /// Breaks each of these rules, and looks for a history of these seeds that the judge alone rejects.
    fn notices_by_the_judge(rules: &[(Broken, Range<u64>)]) {
        for (broken, seeds) in rules {
            println!("{} without {broken:?}, by the judge", type_name::<Self>());
            let is_harm = |why: &str| why.starts_with(linearizable::NO_ORDER);
            seeds::is_noticed(seeds.clone(), |seeds| Self::explore(seeds, *broken, By::Judge), is_harm);
        }
    }
}

pub const APPLIED_TWICE: &str = "a change was applied twice";
pub const NEVER_APPLIED: &str = "told applied, but it was not";
pub const OUTSIDE: &str = "applied outside its call, and told so";
pub const DENIED: &str = "told not applied, but it was";

/// The claim of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// This call has applied the change.
    Applied,
    /// The change was not applied, and never will be.
    NotApplied,
    /// Nothing about this call.
    Nothing,
}

/// The mistake in a claim about a change with these effects. A change has one effect at most.
///
/// There is one exception, where a second copy `may_land`: the change was refused, no other request of it was pending,
/// and the network delivers the copy when the change fits.
pub fn contradiction(
    claim: Claim,
    (began, ended): (Instant, Instant),
    effects: &[&Applied],
    may_land: bool,
) -> Option<&'static str> {
    match (claim, effects) {
        (_, [_, _, ..]) => Some(APPLIED_TWICE),
        (Claim::Applied, []) => Some(NEVER_APPLIED),
        (Claim::Applied, [effect]) if effect.time < began || effect.time > ended => Some(OUTSIDE),
        (Claim::NotApplied, [effect]) if !(may_land && effect.is_copy_of_refused) => Some(DENIED),
        _ => None,
    }
}

/// Whether a failure says that nothing was applied. Otherwise the outcome is unknown.
pub fn says_not_applied(failure: &Failure) -> bool {
    match failure {
        Failure { kind: FailureKind::Contention { .. }, .. }
        | Failure { kind: FailureKind::Unavailable { .. }, .. }
        | Failure { kind: FailureKind::Rejected { .. }, .. }
        | Failure { kind: FailureKind::EditRefused { .. }, .. } => true,
        Failure { kind: FailureKind::OutcomeUnknown { .. }, .. } => false,
        _ => panic!("no such thing happens here: {failure}"),
    }
}
