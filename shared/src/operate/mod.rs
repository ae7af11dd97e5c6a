//! For operators of a table: [`explain`] says what a row tells about itself.

mod explain;

pub use explain::{Explanation, Kind, explain};
