//! `cargo dev bench`: builds what is measured, each by itself, and runs the measuring program on it.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use tokio::process::Command;

use crate::{failure::Failure, process::Group};

/// Builds the function, the floor and the measuring program, and runs that.
///
/// Each is built by a cargo of its own with `-p`: features of tests and tools do not leak into what is measured. The
/// measuring program is in the folder `dev/bench`; it is optimised, but not as slowly as a release.
///
/// # Errors
/// Where something does not compile, or the measurement ends early.
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
