//! The rules for the end of a history, by the states in the engine.

use super::network::Network;
use super::told::{ITEMS, Told};
use super::worker::{Change, LEASES, Notes};
use crate::adoption::world::{KEY, TABLE};
use crate::harness::engine::Engine;
use crate::harness::states::number;
use serde_json::Value;

/// Each broken rule, as a sentence.
pub fn violations(engine: &Engine, network: &Network, notes: &Notes) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(["free", "fenced"].iter().filter_map(|item| wrong_balance(engine, notes, item)));
    found.extend(ITEMS.iter().filter_map(|item| wrong_versions(network, item)));
    found.extend(wrong_turns(network, notes));
    found.extend(wrong_tokens(network, notes));
    found.extend(wrong_fences(network, notes));
    if network.totals().inconsistent > 0 {
        found.push("a read did not ask for consistency".to_owned());
    }
    found
}

/// The rows left by the writes to an item, in their order.
fn states(network: &Network, table: &str, id: Option<&str>) -> Vec<Value> {
    let rows = network.rows().into_iter();
    let of_item = rows.filter(|(step, _)| step.table == table && id.is_none_or(|id| step.id == id));
    of_item.map(|(_, row)| row).collect()
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
