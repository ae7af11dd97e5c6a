//! Typed tables: [`Record`], [`Key`], [`Table`] and the operations on one item.
//!
//! `handle.rs` has the table of the public interface, and the same without the type of its values, for use in changes.
//! `update.rs` reads items, and changes one by a decision, at a version. `editing.rs` changes one by an [`Edit`], at any
//! version. An edit is made in `edit.rs`, from the fields of `field.rs`. `holder.rs` takes parts of items and settles holds.

pub(crate) mod commit;
mod decision;
mod edit;
mod editing;
pub mod field;
pub(crate) mod handle;
mod holder;
mod holds;
pub(crate) mod key;
mod open;
mod record;
mod settle;
mod update;
mod value;

pub use decision::{Decision, Upserted};
pub use edit::{Condition, Edit};
pub use editing::{Edited, NotEdited, NotEditedReason, Undecodable};
pub use handle::Table;
pub use holds::Holds;
pub use key::{Key, KeyPart};
pub use record::Record;
pub use settle::HoldSweep;
pub use update::Exists;
