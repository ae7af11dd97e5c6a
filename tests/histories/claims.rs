//! Checks an answer about a change against the effects of the change, for all kinds of histories.

use crate::harness::faults::Applied;
use tokio::time::Instant;

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
