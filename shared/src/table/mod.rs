//! Typed tables: [`Record`], [`Key`], [`Table`] and the operations on one item.
//!
//! `handle.rs` has the table of the public interface. `raw.rs` has the same without the type of its values, for use in
//! changes. `update.rs` changes an item by a decision, at a version. `adding.rs` changes numbers by an [`Add`], at any
//! version. `get_many.rs` reads items by their keys.

pub(crate) mod add;
mod adding;
mod bounds;
pub(crate) mod commit;
mod fields;
mod get_many;
mod handle;
mod key;
pub(crate) mod prepare;
pub(crate) mod raw;
mod record;
mod update;

pub use add::{Add, AddPath, Added};
pub use adding::NotAdded;
pub use bounds::Bounds;
pub use handle::Table;
pub use key::{Key, KeyPart};
pub use record::Record;
pub use update::Exists;
