//! What is stored and what is sent: items, rows, and the conditions of writes. The rules about them are those of the
//! package `fencepost-core`.
//!
//! It does not know typed tables, HTTP or Lambda.

pub(crate) mod condition;
pub(crate) mod item;
pub(crate) mod row;
