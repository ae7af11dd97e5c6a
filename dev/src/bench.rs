//! `cargo dev bench`: builds each measured program separately, and runs the benchmarks on them.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use tokio::process::Command;

use crate::{failure::Failure, process::Group};

/// Builds the function, the baseline and the benchmarks, and runs the benchmarks.
///
/// Each program is built by a separate cargo with `-p`, so that features of tests and tools do not leak into a measured
/// program. The benchmarks are in the folder `dev/bench`. They are optimised, but with a profile that compiles faster
/// than a release.
///
/// # Errors
/// A program does not compile, or the benchmarks fail.
pub async fn run(workspace: &Path) -> Result<(), Failure> {
    let target = target_directory();
    for package in ["device-state", "baseline"] {
        cargo(workspace, &["build", "--release", "-p", package], &target, &[]).await?;
    }
    let bootstraps = ["device-state", "baseline"].map(|name| target.join("release").join(name));
    cargo(workspace, &["run", "--profile", "histories", "-p", "bench", "--"], &target, &bootstraps).await
}

async fn cargo(workspace: &Path, words: &[&str], target: &Path, paths: &[PathBuf]) -> Result<(), Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace).args(words).args(paths.iter().map(AsRef::<OsStr>::as_ref));
    command.env("CARGO_TARGET_DIR", target);
    let mut cargo = Group::spawn(&mut command)
        .map_err(|error| Failure::new(format!("cargo does not start ({error}): is it on the PATH?")))?;
    match cargo.ended().await {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Failure::new(format!("`cargo {}` has failed: correct what it says above.", words.join(" ")))),
    }
}

/// The target directory that holds the running program.
fn target_directory() -> PathBuf {
    crate::tools().parent().map_or_else(|| crate::workspace().join("target"), Path::to_owned)
}
