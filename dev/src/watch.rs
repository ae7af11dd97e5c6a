//! Serves the functions with `cargo lambda watch`.

use std::{
    collections::BTreeMap,
    env, io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{net::TcpStream, process::Command, time::sleep};

use crate::{
    dynamodb::{DynamoDb, HIDDEN},
    failure::Failure,
    process::{self, Group},
    template::Function,
};

/// The default log level of the functions. `cargo lambda watch` asks the runtime to handle one request at a time. The
/// runtime warns about this at each start. So this level hides its warnings.
const LOG_LEVEL: &str = "info,lambda_runtime::runtime=error";

/// The functions answer on this machine only.
pub(crate) const LOCALHOST: &str = "127.0.0.1";

/// Checks that cargo-lambda is there, before anything slow is done.
///
/// # Errors
/// It is not.
pub async fn check_installed() -> Result<(), Failure> {
    let asked = Command::new("cargo-lambda").args(["lambda", "--version"]).stdin(Stdio::null()).output().await;
    asked.map(drop).map_err(|error| missing(&error))
}

fn missing(error: &io::Error) -> Failure {
    Failure::new(format!(
        "cargo-lambda does not start ({error}): install it with `pip install cargo-lambda`, or as \
         https://www.cargo-lambda.info describes."
    ))
}

/// Builds all functions at once, in exactly the way that `cargo lambda watch` will ask cargo for.
///
/// `cargo lambda watch` starts each function with `cargo run --color auto --manifest-path Cargo.toml --bin NAME` in the
/// root of the workspace. Cargo decides the features of dependencies from the packages that are *selected*. Without
/// `-p`, those are all members. So this build also names binaries only. Every unit is then the same. So the first
/// request finds its function compiled.
///
/// # Errors
/// Cargo does not start or the functions do not compile.
pub async fn build(functions: &[Function]) -> Result<(), Failure> {
    let command = |cargo: &mut Command| {
        cargo.args(["build", "--color", "auto", "--manifest-path", "Cargo.toml"]);
        for function in functions {
            cargo.args(["--bin", &function.name]);
        }
    };
    process::cargo(command, || "The functions do not compile: correct what cargo says above and run this again.".into())
        .await
}

/// A running `cargo lambda watch`. Dropping it stops it and the functions.
pub struct Watch {
    group: Group,
    port: u16,
}

impl Watch {
    /// Starts `cargo lambda watch` with the environment from the template and the engine.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(
        workspace: &Path,
        port: u16,
        functions_environment: &BTreeMap<String, String>,
        dynamodb: &DynamoDb,
    ) -> Result<Self, Failure> {
        let mut command = Command::new("cargo-lambda");
        command
            .current_dir(workspace)
            .args(["lambda", "watch", "--invoke-address", LOCALHOST, "--invoke-port", &port.to_string()])
            // Otherwise every page in a browser could read and change the data of the functions.
            .arg("--disable-cors")
            .envs(functions_environment)
            .envs(dynamodb.environment())
            .stdin(Stdio::null());
        if ["AWS_LAMBDA_LOG_LEVEL", "RUST_LOG", "POWERTOOLS_LOG_LEVEL"].iter().all(|name| env::var_os(name).is_none()) {
            command.env("AWS_LAMBDA_LOG_LEVEL", LOG_LEVEL);
        }
        for name in HIDDEN {
            command.env_remove(name);
        }
        let ignore_file = write_ignore_file(workspace, dynamodb).map_err(|error| {
            Failure::new(format!("The target directory cannot be written ({error}): make it writable."))
        })?;
        command.env("CARGO_LAMBDA_IGNORE_FILE", ignore_file);
        match Group::spawn(&mut command) {
            Ok(group) => Ok(Self { group, port }),
            Err(error) => Err(missing(&error)),
        }
    }

    /// Waits until the functions answer requests.
    ///
    /// # Errors
    /// The program ends before that.
    pub async fn serving(&mut self) -> Result<(), Failure> {
        let port = self.port;
        let answers = async {
            while TcpStream::connect((LOCALHOST, port)).await.is_err() {
                sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            ended = self.group.ended() => Err(failure(ended)),
            () = answers => Ok(()),
        }
    }

    /// Waits until the program ends, which it should not do by itself.
    pub async fn ended(&mut self) -> Failure {
        failure(self.group.ended().await)
    }
}

/// Lists the files with changes other than edits. A change to any other file restarts the functions.
fn write_ignore_file(workspace: &Path, dynamodb: &DynamoDb) -> io::Result<PathBuf> {
    let mut patterns = vec!["/.git/".to_owned(), "*.md".to_owned()];
    if let Some(file) = &dynamodb.file {
        let file = file.canonicalize()?;
        if let Ok(inside) = file.strip_prefix(workspace.canonicalize()?) {
            patterns.push(format!("/{}*", inside.display()));
        }
    }
    let folder = crate::tools();
    let list = folder.join("watch-ignore");
    std::fs::create_dir_all(folder)?;
    std::fs::write(&list, patterns.join("\n") + "\n")?;
    Ok(list)
}

fn failure(ended: io::Result<std::process::ExitStatus>) -> Failure {
    let how = match ended {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    Failure::new(format!("`cargo lambda watch` has ended ({how}): correct what it says above and run this again."))
}
