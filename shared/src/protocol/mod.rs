//! The exactly-once core: rows, conditions, sends, and the judge, which finds out the fate of a write.
//!
//! A row remembers the ids of its recent writes in one map (`memory`). One pure function (`judge`) reads the map for
//! updates, deletes, adds and transactions.
//!
//! One engine (`change`) settles every change: `refusal` judges it, `settle` gives the next action, and `attempts`
//! holds the open attempts.
//!
//! It does not know typed tables, HTTP or Lambda.

pub(crate) mod attempts;
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
mod ticket;
