//! The one shape of all histories: clients race under every fault, and afterwards nothing may contradict what they were
//! told.
//!
//! A history follows from its seed alone. `FENCEPOST_HISTORIES=10000` says how many are played (a plain `cargo test` runs a
//! sample), `FENCEPOST_SEED=7` replays one.

use crate::harness::engine::{Asked, Engine, embedded_with_indexed_tables, with_indexed_tables};
use crate::harness::faults::take_lost_answers;
use crate::harness::seeds::{self, Broke};
use crate::harness::total::Total;
use judges::linearizable;
use std::ops::Range;

/// How many histories one engine sees. No two of them touch the same rows, and an engine keeps all rows in memory.
const HISTORIES_OF_AN_ENGINE: usize = 500;

/// How many of each kind are played on another engine.
const ELSEWHERE: u64 = 25;

/// By whom a history is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    All,
    /// By the independent judge alone.
    Judge,
}

/// A kind of histories. A value is a history that is over: all copies have arrived.
pub trait History: Sized {
    /// The tables, each with its partition key.
    const TABLES: &'static [(&'static str, &'static str)];
    /// How many a plain `cargo test` plays.
    const SAMPLE: u64;
    /// Which rule is broken on purpose.
    type Rule: Copy + Sync;
    /// None is.
    const NOTHING: Self::Rule;
    /// Plays the history of a seed.
    fn play(engine: &Engine, seed: u64, rule: Self::Rule) -> impl Future<Output = Self>;

    /// What does not hold; each in a sentence. `asked` is all that the engine was asked.
    fn violations(&self, engine: &Engine, asked: &[Asked]) -> Vec<String>;

    /// What an independent judge says against it, from what the clients were told.
    fn judged(&self) -> Vec<String>;

    /// What a history that holds was made of.
    fn total(&self) -> Total;

    /// Fails where too little happened to show anything.
    fn assert_enough_happened(total: &Total);

    /// Plays the history of a seed and checks it. The judge is asked last, because it says least about the reason.
    fn run(engine: &Engine, seed: u64, rule: Self::Rule, by: By) -> Result<Total, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        engine.take_log();
        take_lost_answers();
        let ended = runtime.block_on(Self::play(engine, seed, rule));
        let asked = engine.take_log();
        let mut found = if by == By::All { ended.violations(engine, &asked) } else { Vec::new() };
        if found.is_empty() {
            found = ended.judged();
        }
        if !found.is_empty() {
            return Err(found.join("; "));
        }
        let mut total = Total::of(&[("histories", 1), ("requests", asked.len()), ("lostAnswers", take_lost_answers())]);
        total += ended.total();
        Ok(total)
    }

    /// The first of these seeds whose history breaks, and how; else what they were made of.
    fn explore(seeds: Range<u64>, rule: Self::Rule, by: By) -> Result<Total, Broke> {
        let mut total = Total::default();
        for first in seeds.clone().step_by(HISTORIES_OF_AN_ENGINE) {
            let next = first.saturating_add(HISTORIES_OF_AN_ENGINE as u64).min(seeds.end);
            let engine = embedded_with_indexed_tables(Self::TABLES);
            total += seeds::explore(first..next, |seed| Self::run(&engine, seed, rule, by))?;
        }
        Ok(total)
    }

    /// Plays the sample, or what the environment asks for. Every history must hold.
    fn holds() {
        let Some(total) = seeds::play(Self::SAMPLE, |seeds| Self::explore(seeds, Self::NOTHING, By::All)) else {
            return;
        };
        println!("{total}");
        assert!(total["lostAnswers"] > 0, "no answer was lost: {total}");
        Self::assert_enough_happened(&total);
        Self::holds_elsewhere();
    }

    /// Plays a few on the engine that `DYNAMODB_ENDPOINT` names, if it names one.
    ///
    /// That engine answers while time stands still, as the embedded one does. So a seed tells the same story there.
    fn holds_elsewhere() {
        if std::env::var("DYNAMODB_ENDPOINT").is_err() {
            return;
        }
        let engine = with_indexed_tables(Self::TABLES);
        let played = seeds::explore(0..ELSEWHERE, |seed| Self::run(&engine, seed, Self::NOTHING, By::All));
        println!("on another engine: {}", played.expect("this seed holds there"));
    }

    /// Breaks a rule, and looks for the harm that it prevents among these seeds.
    fn is_noticed(rule: Self::Rule, seeds: Range<u64>, harm: &str) {
        let is_harm =
            |why: &str| why.split("; ").any(|found| found.trim_start_matches("it panicked: ").starts_with(harm));
        seeds::is_noticed(seeds, |seeds| Self::explore(seeds, rule, By::All), is_harm);
    }

    /// Breaks a rule, and looks for a history among these seeds that the judge alone would not accept.
    fn is_noticed_by_the_judge(rule: Self::Rule, seeds: Range<u64>) {
        let is_harm = |why: &str| why.starts_with(linearizable::NO_ORDER);
        seeds::is_noticed(seeds, |seeds| Self::explore(seeds, rule, By::Judge), is_harm);
    }
}
