//! `cargo dev bench`: builds and runs the benchmarks in the folder `dev/crowds`.

use crate::{failure::Failure, process};

/// Runs the benchmarks, optimised with a profile that compiles faster than a release.
///
/// If this future is dropped, the benchmarks end.
///
/// # Errors
/// The benchmarks do not compile.
pub async fn run() -> Result<(), Failure> {
    let words = ["run", "--profile", "histories", "-p", "crowds", "--bin", "bench"];
    let failed = || format!("`cargo {}` has failed: correct what it says above.", words.join(" "));
    let command = |cargo: &mut tokio::process::Command| {
        cargo.args(words);
    };
    process::cargo(command, failed).await
}
