//! Which mutant this process is. `.ci/mutants` puts this module into its copy of the crate, and into no other build.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

static CHOSEN: LazyLock<usize> =
    LazyLock::new(|| std::env::var("FENCEPOST_MUTANT").map_or(0, |number| number.parse().expect("a number")));

static LOG: LazyLock<Option<File>> = LazyLock::new(|| {
    let path = std::env::var_os("FENCEPOST_MUTANTS_REACHED")?;
    Some(OpenOptions::new().create(true).append(true).open(path).expect("a file to write to"))
});

static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

/// Whether this process is the mutant with this number. Notes the question, if a file is named for such notes.
pub fn on(number: usize) -> bool {
    if let Some(mut log) = LOG.as_ref()
        && !REACHED[number].swap(true, Ordering::Relaxed)
    {
        log.write_all(format!("{number}\n").as_bytes()).expect("the file can be written");
    }
    *CHOSEN == number
}
