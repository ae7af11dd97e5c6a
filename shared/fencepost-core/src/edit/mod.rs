//! Edits: `builder.rs` makes one, `satisfies.rs` says what it asks of an item, by the conditions of `compare.rs`, and
//! `room.rs` whether it fits into one.

mod bounds;
mod builder;
#[cfg(test)]
pub(crate) mod built;
mod compare;
mod room;
mod satisfies;

pub use bounds::Bounds;
pub use builder::{AttributePath, MAX_CONDITIONS, MAX_LEVELS, RawEdit, filter};
pub use compare::{brief, is_likely};
pub use room::{Room, room};
pub use satisfies::{Resolve, Unmet};
