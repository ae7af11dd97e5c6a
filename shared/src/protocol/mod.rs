//! The exactly-once core: rows, conditions, sends, and the judge that finds out what became of a write.
//!
//! A row remembers the ids of its recent writes in one map (`memory`), and one pure function (`judge`) reads it for
//! updates, deletes, adds and transactions.
//!
//! It does not know typed tables, HTTP or Lambda.

pub(crate) mod after;
pub(crate) mod batch;
pub(crate) mod condition;
pub(crate) mod deliver;
mod hedge;
pub(crate) mod item;
pub(crate) mod judge;
pub(crate) mod memory;
mod patience;
pub(crate) mod row;
pub(crate) mod seen_rows;
pub(crate) mod send;
