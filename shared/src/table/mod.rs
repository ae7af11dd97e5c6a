//! Typed tables: [`Record`], [`Key`], [`Table`] and the operations on one item.
//!
//! `handle.rs` has the table of the public interface. `raw.rs` has the same without the type of its values, for use in
//! changes. `update.rs` changes an item by a decision, at a version. `adding.rs` changes numbers by an [`Add`], at any
//! version. `query.rs` names the items of a partition, `pages.rs` lists them, and `get_many.rs` reads items by their
//! keys.

pub(crate) mod add;
mod adding;
mod bounds;
pub(crate) mod commit;
pub(crate) mod cursor;
mod fields;
mod get_many;
mod handle;
mod index;
mod key;
pub(crate) mod pages;
pub(crate) mod prepare;
mod query;
pub(crate) mod raw;
mod record;
mod update;

pub use crate::protocol::condition::Sort;
pub use add::{Add, AddPath, Added};
pub use adding::NotAdded;
pub use bounds::Bounds;
pub use cursor::{Cursor, InvalidCursor};
pub use handle::Table;
pub use index::{Index, Projection};
pub use key::{Key, KeyPart};
pub use pages::{Listed, Page, PageStream, Pages};
pub use query::Query;
pub use record::Record;
pub use update::Exists;
