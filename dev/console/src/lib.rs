//! Races that are played for real and recorded for the page in `docs/races/`.
//!
//! [`stories`] plays. [`recordings`] has every recorded play as text. A test compares the file with a fresh play, so that
//! the page cannot show what did not happen. The page itself is in `docs/races/`, without a framework. It opens from a file.

mod recording;
pub mod stories;

pub use recording::{file, recordings};
