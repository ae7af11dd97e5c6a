//! The items of a history and the answers to calls on them.

use crate::adoption::world::{Account, Regional};
use fencepost::{ItemVersion, Versioned};

/// The item of all, the one of creates and deletes, and the one under a lease.
pub const ITEMS: [&str; 3] = ["free", "turns", "fenced"];

/// The answer to a call.
#[derive(Clone, PartialEq, Debug)]
pub enum Told {
    /// Applied, with the state after it if the answer shows one.
    Applied(Option<ItemVersion>),
    /// Not applied, or only read. This was there at some moment of the call; nothing if `None`.
    Saw(Option<Versioned<Account<Regional>>>),
    /// Not applied. The answer shows nothing of the item.
    NotApplied,
    /// The same, because the lease is another's.
    Fenced,
    /// The outcome is unknown.
    Unknown,
}
