//! The exactly-once core: rows, conditions, sends, and the judge of what became of a write.
//!
//! It knows neither tables of typed values nor HTTP nor Lambda.

pub(crate) mod condition;
pub(crate) mod deliver;
pub(crate) mod item;
pub(crate) mod judge;
pub(crate) mod row;
pub(crate) mod send;
