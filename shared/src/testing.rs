//! The pure parts of the protocol, public for property tests. Semantic versioning does not cover this module.

pub use crate::protocol::item::{Diff, diff};
pub use crate::protocol::judge::{Base, SeenRow, SentWrite, Verdict, judge};
pub use crate::protocol::memory::{Memory, Trace, WriteId};
