//! The exactly-once core: rows, conditions, sends, and the judge that finds out what became of a write.
//!
//! A row remembers the ids of its recent writes in one map (`memory`), and one pure function (`judge`) reads it for
//! updates, deletes, adds and transactions.
//!
//! One engine (`change`) settles every change: `refusal` judges it, `settle` says what follows, and `attempts` knows the
//! earlier attempts that may still be applied.
//!
//! It does not know typed tables, HTTP or Lambda.

pub(crate) mod attempts;
pub(crate) mod batch;
pub(crate) mod change;
pub(crate) mod condition;
pub(crate) mod deliver;
pub(crate) mod fate;
mod hedge;
pub(crate) mod item;
pub(crate) mod judge;
pub(crate) mod memory;
mod patience;
pub(crate) mod refusal;
pub(crate) mod row;
pub(crate) mod seen_rows;
pub(crate) mod send;
pub(crate) mod settle;
