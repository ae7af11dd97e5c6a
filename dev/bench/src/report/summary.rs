//! The most important figures of a run in sentences. What is missing has no sentence.

use super::found::Found;
use crate::measure::adds::{Adds, Way};
use crate::measure::connections::Connections;
use crate::measure::crowds::Crowds;
use crate::measure::function::Function;
use crate::measure::leases::{Leases, What};
use crate::measure::orders::{Orders, WAYS};
use crowds::connections::{Trouble, Way as Waiting};
use crowds::crowd::Strategy;
use crowds::leases::WAITERS;

/// The sentences, in the order of the parts.
#[must_use]
pub fn of<'a>(found: impl IntoIterator<Item = &'a Found>) -> Vec<String> {
    let sentence = |found: &Found| match found {
        Found::Function(found) => function(found),
        Found::Crowds(found) => crowds(found),
        Found::Adds(found) => adds(found),
        Found::Orders(found) => orders(found),
        Found::Leases(found) => leases(found),
        Found::Connections(found) => connections(found),
        Found::Units(_) | Found::Roots(_) => None,
    };
    found.into_iter().filter_map(sentence).collect()
}

fn function(Function { size, starts, memory, update }: &Function) -> Option<String> {
    let told = [
        size.as_ref().ok().map(|size| format!("has {} MB", size.ours)),
        starts.as_ref().ok().map(|starts| format!("starts in {} ms", starts.medians.ours)),
        memory.as_ref().ok().map(|memory| format!("takes at most {} MB of memory", memory.ours)),
    ];
    let told = told.into_iter().flatten().collect::<Vec<_>>();
    let function = (!told.is_empty()).then(|| format!("The function device-state {}.", listed(&told)));
    let update = update.as_ref().ok();
    let update = update.map(|update| format!("An update takes {} times as long as on the bare SDK.", update.ratio));
    let sentences: Vec<_> = function.into_iter().chain(update).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Some words with commas, and with "and" before the last.
fn listed(words: &[String]) -> String {
    match words {
        [first, second] => format!("{first} and {second}"),
        [rest @ .., last] if !rest.is_empty() => format!("{}, and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

fn crowds(crowds: &Crowds) -> Option<String> {
    let most = crowds.rows.iter().map(|row| row.callers).max()?;
    let of = |strategy| crowds.rows.iter().find(|row| row.callers == most && row.way == strategy);
    let (ours, naive, jitter) = (of(Strategy::Fencepost)?, of(Strategy::Naive)?, of(Strategy::FullJitter)?);
    Some(format!(
        "{most} writers at once on one item: {} requests for a change with Fencepost, {} with full jitter, {} with the naive \
         loop. In {} such crowds, {} of {} writers gave up with Fencepost, and {} of {} with the naive loop.",
        ours.requests, jitter.requests, naive.requests, crowds.seeds, ours.gave_up, ours.all, naive.gave_up, naive.all
    ))
}

fn adds(adds: &Adds) -> Option<String> {
    let most = adds.rows.iter().map(|row| row.callers).max()?;
    let of = |way: fn(Way) -> bool| adds.rows.iter().find(|row| row.callers == most && way(row.way));
    let (add, versioned) = (of(|way| matches!(way, Way::Add(_)))?, of(|way| way == Way::Versioned)?);
    Some(format!(
        "{most} callers at once on one number: {} requests for an add, if they share a client, and {} requests for a \
         versioned change. {} of {} adds were given up.",
        add.requests, versioned.requests, add.gave_up, add.all
    ))
}

fn orders(orders: &Orders) -> Option<String> {
    let lossy: Vec<_> = orders.rows.chunks(WAYS.len()).filter(|rows| rows[0].scene.losses).collect();
    let of = |index: usize| {
        let doubled = lossy.iter().filter_map(|rows| rows.get(index)).map(|row| row.doubled.to_string());
        doubled.collect::<Vec<_>>().join(" and ")
    };
    (!lossy.is_empty()).then(|| {
        format!("With 2 % of the answers lost, the usual way placed {} orders twice, and Fencepost {}.", of(0), of(1))
    })
}

fn leases(leases: &Leases) -> Option<String> {
    let of = |what| leases.rows.iter().find(|row| row.what == what);
    let (waiters, free) = (of(What::Waiters)?, of(What::AfterFree)?);
    Some(format!(
        "{WAITERS} callers who wait for one lease send {} requests and are done after {} ms. After a holder's death, the next \
         one has the lease {} ms after it is free.",
        waiters.requests, waiters.mean, free.mean
    ))
}

fn connections(connections: &Connections) -> Option<String> {
    let of = |way| connections.rows.iter().find(|row| row.trouble == Trouble::LateWrite && row.way == way);
    let (ours, other) = (of(Waiting::Fencepost)?, of(Waiting::HangUp)?);
    Some(format!(
        "If the answer to a write is 200 ms late, an update takes {} ms with Fencepost, and {} ms with timeouts that hang up.",
        ours.mean, other.mean
    ))
}
