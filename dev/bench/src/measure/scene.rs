//! What all parts on virtual time share.

use std::time::Duration;

/// The time that a request takes in each direction.
pub const HOP: Duration = Duration::from_millis(5);
/// The seeds of crowds and connections: 0 up to this one, exclusively.
pub const SEEDS: u64 = 10;
