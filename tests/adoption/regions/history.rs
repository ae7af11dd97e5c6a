//! Seeded histories of two Regions: clients of both race at the same items, and answers get lost.
//!
//! `FENCEPOST_HISTORIES=10000` says how many are played, `FENCEPOST_SEED=7` replays one. Reading order: [`super::worker`],
//! [`run`], [`checks`], [`judged`].

use super::network::Network;
use super::told::Told;
use super::worker::{LEASES, Notes, Worker};
use super::{checks, judged};
use crate::adoption::world::{KEY, TABLE};
use crate::harness::engine::Engine;
use crate::harness::faults::Rates;
use crate::harness::seeds::{self, Broke};
use crate::harness::total::Total;
use judges::linearizable;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

const WORKERS: u64 = 4;

/// Plays the history of a seed, where so many of a thousand conflicts are denied. Fails with the broken rules.
fn run(engine: &Engine, seed: u64, rates: Rates, denied: u64) -> Result<Total, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        let (network, notes) = (Network::denying(engine, rates, seed, denied), Arc::<Mutex<Notes>>::default());
        let worker = |client| Worker::new(client, &network, &notes);
        // One more of each Region than those who race.
        let others = [worker(WORKERS), worker(WORKERS + 1)];
        others[0].opens_accounts().await;
        let mut workers: JoinSet<()> = (0..WORKERS).map(|client| worker(client).works()).collect();
        while let Some(done) = workers.join_next().await {
            done.map_err(|error| error.to_string())?;
        }
        // Until the last held request has arrived.
        tokio::time::sleep(Duration::from_secs(700)).await;
        for other in others {
            other.looks().await;
        }
        let (notes, totals) = (notes.lock().expect("no panic"), network.totals());
        let found = [checks::violations(engine, &network, &notes), judged::violations(&notes.seen)].concat();
        if !found.is_empty() {
            return Err(found.join("; "));
        }
        let count = |is: fn(&Told) -> bool| {
            let all = notes.changes.iter().map(|change| &change.told).chain(&notes.turns);
            all.filter(|told| is(told)).count()
        };
        Ok(Total::of(&[
            ("histories", 1),
            ("requests", totals.requests),
            ("acknowledged", count(|told| matches!(told, Told::Applied(_)))),
            ("notApplied", count(|told| matches!(told, Told::Saw(_) | Told::NotApplied | Told::Fenced))),
            ("fenced", count(|told| *told == Told::Fenced)),
            ("unknown", count(|told| *told == Told::Unknown) + notes.unknown_leases),
            ("tokens", notes.tokens.len()),
            ("conflicts", totals.conflicts),
            ("lost", totals.lost),
        ]))
    })
}

fn explore(seeds: Range<u64>, rates: Rates, denied: u64) -> Result<Total, Broke> {
    seeds::explore(seeds, |seed| run(&Engine::embedded(&[(TABLE, KEY), (LEASES, "leaseKey")]), seed, rates, denied))
}

#[test]
fn changes_adds_leases_and_fences_hold_over_two_regions_whose_answers_get_lost() {
    let lossy = Rates { dropped: 30, answer_lost: 80, garbled: 60, held: 30, ..Rates::default() };
    let Some(total) = seeds::play(60, |seeds| explore(seeds, lossy, 0)) else { return };
    println!("{total}");
    let histories = total["histories"];
    let often = total["conflicts"] > histories && 2 * total["lost"] > histories;
    assert!(often && total["acknowledged"] > 5 * histories && total["tokens"] > histories / 2, "{total}");
    assert!(total.least(&["notApplied", "fenced", "unknown"]) > 0, "{total}");
}

#[test]
fn where_no_answer_is_lost_every_change_over_two_regions_is_known() {
    let Some(total) = seeds::play(20, |seeds| explore(seeds, Rates::default(), 0)) else { return };
    println!("{total}");
    assert!(total["conflicts"] > total["histories"] && total["lost"] + total["unknown"] == 0, "{total}");
}

/// A conflict proves that at least one of the two writes was not applied. A service that hides it must be noticed.
#[test]
fn a_conflict_between_regions_that_is_taken_for_an_applied_write_is_noticed() {
    for harm in ["and was applied 0 times", linearizable::NO_ORDER] {
        seeds::is_noticed(0..200, |seeds| explore(seeds, Rates::default(), 200), |why| why.contains(harm));
    }
}
