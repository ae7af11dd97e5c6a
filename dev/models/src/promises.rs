//! What every world keeps, and what some world of each model must show, or a promise could hold without it.

use crate::front::millis;
use crate::state::{Caller, End, Kind, Said, Scene, World};
use crate::table::Stored;
use std::time::SystemTime;

pub const ONCE: &str = "no change is applied twice";
pub const APPLIED: &str = "told applied: applied exactly once";
pub const COMMITTED: &str = "what is told is what was committed";
pub const NOT_APPLIED: &str = "told not applied: never applied";
pub const UNKNOWN: &str = "unknown only while an answer is missing or an attempt is open";
pub const HOLDERS: &str = "no two processes believe in one lease";
pub const GREATEST: &str = "what is seen is the greatest of all that arrived";
pub const SUPERSEDED: &str = "told superseded: not registered afterwards";
pub const TRUE: &str = "told new or deleted: applied";

pub const TOKENS: &str = "tokens rise";
/// A required write is applied only under the token of the last acquire.
pub const REQUIRED: &str = "a required write is never applied after the next acquire";
/// No late copy of an acquire takes the lease again after its release.
pub const AGAIN: &str = "what was acquired and released is not acquired again by a late copy";
pub const FENCED: &str = "the tokens that the item sees never fall";
pub const SUM: &str = "the sum of stock, holds and orders is exact";
pub const SOLD_OUT: &str = "told sold out: what is gone belongs to other orders that are placed";
pub const DECIDED: &str = "a decision is applied to the state that it was made on";

/// A condition on a world.
pub type Holds = fn(&Scene, &World) -> bool;

/// The promises. They hold in each state.
pub const PROMISES: [(&str, Holds); 16] = [
    (SUM, Scene::has_exact_sums),
    (ONCE, |_, world| changes(world).all(|caller| caller.applied.len() <= 1)),
    (APPLIED, |_, world| {
        changes(world).all(|caller| !matches!(caller.end, Some(End::Applied(_))) || caller.applied.len() == 1)
    }),
    (COMMITTED, |_, world| {
        changes(world).all(|caller| match (&caller.end, &*caller.applied) {
            (Some(End::Applied(told)), [applied]) => {
                let is_same =
                    |told: Option<_>, applied: Option<_>| applied.is_none() || told.is_none() || told == applied;
                let is_attempt = told.id == applied.id || applied.id.is_none();
                is_attempt && told.does == applied.does && is_same(told.at, applied.at)
            }
            _ => true,
        })
    }),
    (NOT_APPLIED, |_, world| {
        let is_denied = |end: &Option<End>| matches!(end, Some(End::NotApplied | End::Replayed | End::SoldOut));
        let is_wrong = |caller: &Caller| is_denied(&caller.end) && !caller.applied.is_empty();
        changes(world).all(|caller| !is_wrong(caller) || caller.is_excused)
    }),
    (UNKNOWN, |_, world| {
        let is_fair = |caller: &Caller| caller.met.loss || caller.met.open;
        changes(world).all(|caller| caller.end != Some(End::Unknown) || is_fair(caller))
    }),
    (HOLDERS, |scene, world| scene.lease.apart > scene.lease.skew || believers(world) <= 1),
    (TOKENS, |_, world| world.history.broken != Some(TOKENS)),
    (REQUIRED, |_, world| world.history.broken != Some(REQUIRED)),
    (AGAIN, |_, world| world.history.broken != Some(AGAIN)),
    (FENCED, |_, world| world.history.broken != Some(FENCED)),
    (DECIDED, |_, world| world.history.broken != Some(DECIDED)),
    (SOLD_OUT, |_, world| {
        world.callers.iter().all(|caller| caller.end != Some(End::SoldOut) || world.is_sold_out(caller))
    }),
    (GREATEST, |_, world| {
        let is_of_instances = world.callers.iter().any(|caller| matches!(caller.kind, Kind::Register(..)));
        let seen = world.rows[0].as_ref().and_then(Stored::instance).filter(|instance| instance.live.is_some());
        let greatest = world.history.greatest.filter(|(_, is_deleted)| !is_deleted);
        !is_of_instances || seen.map(|seen| seen.order_key) == greatest.map(|(key, _)| key)
    }),
    (SUPERSEDED, |_, world| {
        let is_told = |caller: &Caller| {
            matches!(caller.kind, Kind::Register(..)) && caller.end == Some(End::Instance(Said::Superseded))
        };
        let mut callers = world.callers.iter();
        callers.all(|one| !is_told(one) || one.applied.len() == one.applied_then || one.is_excused)
    }),
    (TRUE, |_, world| {
        let is_told = |end: &Option<End>| matches!(end, Some(End::Instance(Said::New | Said::Deleted)));
        world.callers.iter().all(|caller| !is_told(&caller.end) || !caller.applied.is_empty())
    }),
];

/// The examples, each with the models that must show it.
pub const EXAMPLES: [(&str, &[&str], Holds); 16] = [
    ("an unknown", &["one-item", "transactions", "leases", "holds"], |_, world| ends(world, &End::Unknown)),
    ("applied although an answer was missing", &["one-item", "transactions", "holds"], |_, world| {
        changes(world).any(|caller| matches!(caller.end, Some(End::Applied(_))) && caller.met.loss)
    }),
    ("a burn", &["one-item", "transactions"], |_, world| world.callers.iter().any(|caller| caller.met.burn)),
    ("a hedge", &["one-item", "transactions"], |_, world| world.callers.iter().any(|caller| caller.met.hedge)),
    ("a ticket", &["one-item"], |_, world| world.callers.iter().any(|caller| caller.met.ticket)),
    ("the answer of an earlier attempt", &["one-item", "transactions"], |_, world| {
        world.callers.iter().any(|caller| caller.met.earlier)
    }),
    ("applied after a burn", &["transactions"], |_, world| {
        changes(world).any(|caller| matches!(caller.end, Some(End::Applied(_))) && caller.met.burn)
    }),
    ("a copy of an open attempt, applied after the end", &["one-item"], |_, world| {
        world.callers.iter().any(|caller| caller.is_excused)
    }),
    ("two processes believe, because their clocks differ too much", &["leases"], |_, world| believers(world) > 1),
    ("a write under a lost lease is refused", &["leases"], |_, world| {
        changes(world).any(|caller| caller.end == Some(End::NotApplied))
    }),
    ("sold out", &["holds"], |_, world| ends(world, &End::SoldOut)),
    ("an order that is there already", &["holds"], |_, world| ends(world, &End::Replayed)),
    ("an order on the tombstone of a burn", &["holds"], |_, world| {
        let mut rows = world.rows.iter().flatten().filter_map(Stored::item);
        rows.any(|row| row.at.version.get() > 1 && row.placed_by.is_some())
    }),
    ("same", &["newest"], |_, world| ends(world, &End::Instance(Said::Same))),
    ("differs", &["newest"], |_, world| ends(world, &End::Instance(Said::Differs))),
    ("already gone", &["newest"], |_, world| ends(world, &End::Instance(Said::AlreadyGone))),
];

/// The calls that change an item. A renewal after a faster one is made again, and a release does the same each time.
fn changes(world: &World) -> impl Iterator<Item = &Caller> {
    world.callers.iter().filter(|caller| caller.kind.is_change())
}

fn ends(world: &World, end: &End) -> bool {
    world.callers.iter().any(|caller| caller.end.as_ref() == Some(end))
}

/// How many processes believe that they hold the lease, each by its own clock.
fn believers(world: &World) -> usize {
    let clock = |process: usize| millis(SystemTime::UNIX_EPOCH + world.now + world.history.ahead[process]);
    let believes = |process: &usize| world.history.held[*process].is_some_and(|held| clock(*process) < held.until);
    (0..world.history.held.len()).filter(believes).count()
}
