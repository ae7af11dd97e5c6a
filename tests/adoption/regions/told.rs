//! The items of a history, and what a call to one of them is told.

use crate::adoption::world::{Account, Regional};
use fencepost::{ItemVersion, Versioned};

/// The item of all, the one that comes and goes, and the one that a lease protects.
pub const ITEMS: [&str; 3] = ["free", "turns", "fenced"];

/// What a call was told.
#[derive(Clone, PartialEq, Debug)]
pub enum Told {
    /// Applied, and this is the state that it left, as far as that was told.
    Applied(Option<ItemVersion>),
    /// Not applied, or only read. This was there at some moment of the call; nothing if `None`.
    Saw(Option<Versioned<Account<Regional>>>),
    /// Not applied, and nothing is claimed about the item.
    NotApplied,
    /// The same, because the lease is another's.
    Fenced,
    /// Nobody knows.
    Unknown,
}
