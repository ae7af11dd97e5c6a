//! The requests of a change: the observed state of a key and the intended change make a conditional write.

mod write;

pub use write::{Prepared, Write, check_room, first_version, prunable};
