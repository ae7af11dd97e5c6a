//! Edits: `builder.rs` makes one, `satisfies.rs` says what it asks of an item, and `room.rs` whether it fits into one.

mod bounds;
mod builder;
mod room;
mod satisfies;

pub use bounds::Bounds;
pub use builder::{AttributePath, Edit};
pub use room::{Room, room};
pub use satisfies::{Resolve, Unmet};
