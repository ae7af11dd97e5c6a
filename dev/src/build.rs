//! Compiles the functions in exactly the way that `cargo lambda watch` will ask cargo for.

use std::path::Path;

use tokio::process::Command;

use crate::{failure::Failure, process::Group, template::Function};

/// Builds all functions at once. Cargo shows its own progress on the terminal.
///
/// `cargo lambda watch` starts each function with `cargo run --color auto --manifest-path Cargo.toml --bin NAME` in the
/// root of the workspace. Cargo decides the features of dependencies from the packages that are *selected*. Without
/// `-p`, those are all members. So this build also names binaries only. Every unit is then the same. So the first
/// request finds its function compiled.
///
/// # Errors
/// Cargo does not start or the functions do not compile.
pub async fn functions(workspace: &Path, functions: &[Function]) -> Result<(), Failure> {
    // Cargo tells its children which cargo it is. cargo-lambda uses this variable too.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace).args(["build", "--color", "auto", "--manifest-path", "Cargo.toml"]);
    for function in functions {
        command.args(["--bin", &function.name]);
    }
    let mut cargo = Group::spawn(&mut command)
        .map_err(|error| Failure::new(format!("cargo does not start ({error}): is it on the PATH?")))?;
    match cargo.ended().await {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Failure::new("The functions do not compile: correct what cargo says above and run this again.")),
    }
}
