//! The pure parts of the protocol, opened to property tests. Semantic versioning does not cover this module.

pub use crate::protocol::item::{Diff, diff};
pub use crate::protocol::judge::{Base, SLOTS, SeenRow, SentWrite, Verdict, WriteId, judge, slot_of};
