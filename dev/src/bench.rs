//! `cargo dev bench`: builds each measured program separately, and runs the benchmarks on them.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::{failure::Failure, process};

/// Builds the function, the baseline and the benchmarks, and runs the benchmarks.
///
/// Each program is built by a separate cargo with `-p`, so that features of tests and tools do not leak into a measured
/// program. The benchmarks are in the folder `dev/bench`. They are optimised, with a profile that compiles faster than
/// a release.
///
/// If a measured program does not compile, the other benchmarks are run all the same.
///
/// If this future is dropped, the benchmarks end.
///
/// # Errors
/// A program does not compile or a benchmark fails.
pub async fn run() -> Result<(), Failure> {
    let target = target_directory();
    let mut built = Ok(());
    for (package, binary) in [("functions", "device-state"), ("baseline", "baseline")] {
        let build = ["build", "--release", "-p", package, "--bin", binary];
        built = built.and(cargo(&build, &target, &[]).await);
    }
    // An older program may be there. Its figures would not be those of this code.
    let programs = if built.is_ok() { &["device-state", "baseline"][..] } else { &[] };
    let arguments: Vec<_> = programs.iter().map(|name| target.join("release").join(name)).collect();
    cargo(&["run", "--profile", "histories", "-p", "bench", "--"], &target, &arguments).await?;
    built
}

async fn cargo(words: &[&str], target: &Path, arguments: &[PathBuf]) -> Result<(), Failure> {
    let failed = || format!("`cargo {}` has failed: correct what it says above.", words.join(" "));
    let command = |cargo: &mut Command| {
        cargo.args(words).args(arguments).env("CARGO_TARGET_DIR", target);
    };
    process::cargo(command, failed).await
}

/// The target directory that holds the running program.
fn target_directory() -> PathBuf {
    crate::tools().parent().map_or_else(|| crate::workspace().join("target"), Path::to_owned)
}
