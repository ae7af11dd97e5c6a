//! Races that are played for real and recorded for the page in `docs/races/`.
//!
//! [`stories`] plays. [`recordings`] has every recorded play as text. A test compares the file with a fresh play, so that
//! the page cannot show what did not happen. The page itself is in `docs/races/`, without a framework. It opens from a file.

mod picture;
mod recording;
pub mod stories;

pub use picture::pictures;
pub use recording::recordings;

use std::path::{Path, PathBuf};

/// The files that a play makes, each with its text: the recordings and the pictures.
#[must_use]
pub fn files() -> Vec<(PathBuf, String)> {
    let races = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/races");
    let files = pictures().into_iter().chain([("plays.js".to_owned(), recordings())]);
    files.map(|(name, text)| (races.join(name), text)).collect()
}
