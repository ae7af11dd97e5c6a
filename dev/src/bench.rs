//! `cargo dev bench`: builds each measured program separately, and runs the benchmarks on them.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use tokio::process::Command;

use crate::{failure::Failure, process::Group};

/// Builds the function, the baseline and the benchmarks, and runs the benchmarks. A report goes to the folder `report`.
///
/// Each program is built by a separate cargo with `-p`, so that features of tests and tools do not leak into a measured
/// program. The benchmarks are in the folder `dev/bench`. They are optimised, but with a profile that compiles faster
/// than a release.
///
/// If a measured program does not compile, the other benchmarks are run all the same. Their report says what is missing.
///
/// If this future is dropped, the benchmarks are asked to end, and keep the part of the report that is finished.
///
/// # Errors
/// A program does not compile, or a benchmark fails.
pub async fn run(workspace: &Path, report: Option<&Path>) -> Result<(), Failure> {
    let target = target_directory();
    let mut built = Ok(());
    for (package, binary) in [("functions", "device-state"), ("baseline", "baseline")] {
        let build = ["build", "--release", "-p", package, "--bin", binary];
        built = built.and(cargo(workspace, &build, &target, &[]).await);
    }
    let mut arguments = report_argument(report)?;
    // An older program may be there, but its figures would not be those of this code.
    if built.is_ok() {
        arguments.extend(["device-state", "baseline"].map(|name| target.join("release").join(name).into()));
    }
    cargo(workspace, &["run", "--profile", "histories", "-p", "bench", "--"], &target, &arguments).await?;
    built
}

/// The option for the benchmarks. They run in the folder of the workspace, so the path is made absolute here.
fn report_argument(report: Option<&Path>) -> Result<Vec<OsString>, Failure> {
    let Some(report) = report else { return Ok(Vec::new()) };
    let absolute = std::path::absolute(report).map_err(|error| {
        Failure::usage(format!("--report takes a folder, and {} is none ({error})", report.display()))
    })?;
    Ok(vec!["--report".into(), absolute.into()])
}

async fn cargo(workspace: &Path, words: &[&str], target: &Path, arguments: &[OsString]) -> Result<(), Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace).args(words).args(arguments);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_the_report_is_the_one_of_the_caller() {
        let here = std::env::current_dir().expect("a folder");
        let expected: [OsString; 2] = ["--report".into(), here.join("there").into()];
        assert_eq!(report_argument(Some(Path::new("there"))).expect("a path"), expected);
        assert_eq!(report_argument(None).expect("nothing"), Vec::<OsString>::new());
        assert!(report_argument(Some(Path::new(""))).is_err());
    }
}
