//! Typed tables: [`Record`], [`Key`], [`Table`] and the operations on one item.
//!
//! `handle.rs` has the table of the public interface, and the same without the type of its values, for use in changes.
//! `update.rs` reads items, and changes one by a decision, at a version. `editing.rs` changes one by an [`Edit`], at any
//! version.

mod bounds;
pub(crate) mod commit;
pub(crate) mod edit;
mod editing;
pub(crate) mod handle;
pub(crate) mod key;
pub(crate) mod prepare;
mod record;
pub(crate) mod room;
pub(crate) mod stand;
mod update;
mod value;

pub use bounds::Bounds;
pub use edit::{AttributePath, Edit, Edited};
pub use editing::NotEdited;
pub use handle::Table;
pub use key::{Key, KeyPart};
pub use record::Record;
pub use update::Exists;
