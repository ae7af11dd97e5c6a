//! Typed tables: [`Record`], [`Key`], [`Table`], and the operations on one item.
//!
//! `update.rs` changes an item by a decision, at a version. `adding.rs` changes numbers by an [`Add`], at any version.

pub(crate) mod add;
mod adding;
pub(crate) mod commit;
mod handle;
mod key;
pub(crate) mod prepare;
mod record;
mod update;

pub use add::{Add, AddPath, Added};
pub use handle::Table;
pub use key::{Key, KeyPart};
pub use record::Record;
pub use update::Decision;
