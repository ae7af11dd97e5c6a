//! Seeded histories of two Regions: clients of both race at the same items, and answers get lost.
//!
//! `FENCEPOST_HISTORIES=10000` says how many are played, `FENCEPOST_SEED=7` replays one. Reading order: [`super::worker`],
//! [`run`], [`violations`].

use super::network::{Regions, is_conflict};
use super::worker::{self, Change, ITEMS, LEASES, Notes, Told, Worker};
use crate::adoption::world::{KEY, TABLE};
use crate::harness::engine::Engine;
use crate::harness::faults::{Network, Rates};
use crate::harness::seeds::{self, Broke};
use crate::harness::states::number;
use crate::harness::total::Total;
use judges::linearizable;
use serde_json::Value;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

const WORKERS: u64 = 4;

/// Answers are lost now and then.
fn lossy() -> Rates {
    Rates { dropped: 30, answer_lost: 80, garbled: 60, held: 30, ..Rates::default() }
}

/// Plays the history of a seed. Fails with the broken rules.
fn run(engine: &Engine, seed: u64, rates: Rates, denied: u64) -> Result<Total, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        let (regions, notes) = (Regions::new(engine, rates, denied, seed), Arc::<Mutex<Notes>>::default());
        let worker = |client| Worker::new(client, &regions, &notes);
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
        let (notes, log) = (notes.lock().expect("no panic"), regions.network.log());
        let found = [violations(engine, &regions.network, &notes), worker::violations(&notes.seen)].concat();
        if !found.is_empty() {
            return Err(found.join("; "));
        }
        let count = |is: fn(&Told) -> bool| {
            let all = notes.changes.iter().map(|change| &change.told).chain(&notes.turns);
            all.filter(|told| is(told)).count()
        };
        Ok(Total::of(&[
            ("histories", 1),
            ("requests", log.len()),
            ("acknowledged", count(|told| matches!(told, Told::Applied(_)))),
            ("notApplied", count(|told| matches!(told, Told::Saw(_) | Told::NotApplied | Told::Fenced))),
            ("fenced", count(|told| *told == Told::Fenced)),
            ("unknown", count(|told| *told == Told::Unknown) + notes.unknown_leases),
            ("tokens", notes.tokens.len()),
            ("conflicts", log.iter().filter(|sent| is_conflict(sent)).count()),
            ("lost", log.writes().with(|sent| sent.executed() > 0 && !sent.is_acknowledged()).len()),
        ]))
    })
}

fn explore(seeds: Range<u64>, rates: Rates, denied: u64) -> Result<Total, Broke> {
    seeds::explore(seeds, |seed| run(&Engine::embedded(&[(TABLE, KEY), (LEASES, "leaseKey")]), seed, rates, denied))
}

/// Each broken rule, as a sentence.
fn violations(engine: &Engine, network: &Network, notes: &Notes) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(["free", "fenced"].iter().filter_map(|item| wrong_balance(engine, notes, item)));
    found.extend(ITEMS.iter().filter_map(|item| wrong_versions(network, item)));
    found.extend(wrong_turns(network, notes));
    found.extend(wrong_tokens(network, notes));
    found.extend(wrong_fences(network, notes));
    if !network.log().of("GetItem").with(|sent| sent.request.body["ConsistentRead"] != true).is_empty() {
        found.push("a read did not ask for consistency".to_owned());
    }
    found
}

/// The rows left by the writes to an item, in their order.
fn states(network: &Network, table: &str, id: Option<&str>) -> Vec<Value> {
    let applied = network.applied();
    let rows = applied.iter().flat_map(|applied| &applied.rows);
    let of_item = rows.filter(|touched| touched.step.table == table && id.is_none_or(|id| touched.step.id == id));
    of_item.map(|touched| touched.row.clone()).collect()
}

/// Each change has a digit of the balance.
fn wrong_balance(engine: &Engine, notes: &Notes, item: &str) -> Option<String> {
    let mut rest = number(&engine.row(TABLE, KEY, item), "balance").unwrap_or_default();
    let balance = rest;
    for Change { number, told, .. } in notes.changes.iter().filter(|change| change.item == item) {
        let times = balance >> (2 * number) & 3;
        let may_be = match told {
            Told::Applied(_) => 1..=1,
            Told::Unknown => 0..=1,
            _ => 0..=0,
        };
        if !may_be.contains(&times) {
            return Some(format!("{item}: change {number} was told {told:?}, and was applied {times} times"));
        }
        rest -= times << (2 * number);
    }
    (rest != 0).then(|| format!("{item}: nobody asked for {rest:x}"))
}

/// Each write raises the version by one, also a create after a delete.
fn wrong_versions(network: &Network, item: &str) -> Option<String> {
    let versions = states(network, TABLE, Some(item)).into_iter().map(|row| number(&row, "version"));
    let versions: Vec<_> = versions.collect();
    let is_right = versions.iter().zip(1..).all(|(version, expected)| *version == Some(expected));
    (!is_right).then(|| format!("{item}: its versions were {versions:?}"))
}

/// The item of the turns has one state for each turn told as applied. The unknown ones and the first create may each
/// have made one more.
fn wrong_turns(network: &Network, notes: &Notes) -> Option<String> {
    let applied = notes.turns.iter().filter(|told| matches!(told, Told::Applied(_))).count();
    let unknown = notes.turns.iter().filter(|told| **told == Told::Unknown).count();
    let made = states(network, TABLE, Some("turns")).len();
    let is_right = (applied..=applied + unknown + 1).contains(&made);
    (!is_right).then(|| format!("{applied} turns and {unknown} unknown ones made {made} states"))
}

/// Tokens rise with each acquire.
fn wrong_tokens(network: &Network, notes: &Notes) -> Option<String> {
    let mut told = notes.tokens.clone();
    told.sort_unstable();
    if told.windows(2).any(|two| two[0] == two[1]) {
        return Some(format!("two holders have one token: {told:?}"));
    }
    let stored: Vec<_> = states(network, LEASES, None).iter().map(|row| number(row, "token")).collect();
    let is_right = stored.is_sorted() && stored.iter().all(Option::is_some);
    (!is_right).then(|| format!("the tokens of the lease were {stored:?}"))
}

/// The fence of an item is the token of its last write, and never falls.
fn wrong_fences(network: &Network, notes: &Notes) -> Option<String> {
    let states = states(network, TABLE, Some("fenced"));
    let fences: Vec<_> = states.iter().skip(1).map(|row| number(row, "_fence")).collect();
    if !fences.is_sorted() || fences.iter().any(Option::is_none) {
        return Some(format!("the fences of the item were {fences:?}"));
    }
    let is_wrong = |change: &&Change| {
        let Told::Applied(Some(at)) = change.told else { return false };
        let state = states.iter().find(|row| number(row, "version") == Some(at.version.get()));
        change.token.is_some() && state.and_then(|row| number(row, "_fence")) != change.token
    };
    let wrong = notes.changes.iter().find(is_wrong)?;
    Some(format!("{wrong:?} left another fence than its token"))
}

#[test]
fn changes_adds_leases_and_fences_hold_over_two_regions_whose_answers_get_lost() {
    let Some(total) = seeds::play(60, |seeds| explore(seeds, lossy(), 0)) else { return };
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
