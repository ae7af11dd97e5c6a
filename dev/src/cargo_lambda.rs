//! Finds cargo-lambda, or installs it into the target directory.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

use crate::{failure::Failure, process::Group};

/// The version to install.
const VERSION: &str = "1.9.2";

/// The oldest version on the `PATH` that works: major and minor.
const OLDEST: (u32, u32) = (1, 9);

/// Returns the path of a cargo-lambda that works: on the `PATH`, or in `tools`. If there is none, installs one into
/// `tools`.
///
/// # Errors
/// There is none, and neither uv, pip nor cargo can install it.
pub async fn find_or_get(tools: &Path) -> Result<PathBuf, Failure> {
    let fetched = tools.join("bin/cargo-lambda");
    for candidate in [Path::new("cargo-lambda"), &fetched] {
        if works(candidate).await {
            return Ok(candidate.to_owned());
        }
    }
    for way in ways() {
        if !succeeds(command(way.probe).stdout(Stdio::null()).stderr(Stdio::null())).await {
            continue;
        }
        let Way { name, duration, .. } = way;
        eprintln!("Getting cargo-lambda {VERSION} with {name} ({duration}).");
        if succeeds(command(&way.install).arg(tools)).await && works(&fetched).await {
            return Ok(fetched);
        }
    }
    Err(Failure::new(format!(
        "cargo-lambda {VERSION} is not to be had (the lines above say why): install it so that \
         `cargo lambda --version` answers, as https://www.cargo-lambda.info describes."
    )))
}

/// The shell command for the program that [`find_or_get`] found, up to the name of a subcommand.
pub fn invocation(program: &Path) -> String {
    if program == Path::new("cargo-lambda") {
        "cargo lambda".to_owned()
    } else {
        format!("{} lambda", program.display())
    }
}

/// One way to install the program into the folder `bin` of another folder.
struct Way {
    name: &'static str,
    /// How long this way takes. Printed before it starts.
    duration: &'static str,
    /// A command that succeeds if this way is available.
    probe: &'static str,
    /// The install command without its last word, the folder.
    install: String,
}

/// The ways, the quick ones first. The Python wheel contains the finished program. Its only dependency (zig, for
/// cross-compiling) is left out, because `watch` does not need it.
fn ways() -> [Way; 3] {
    let wheel = format!("--no-deps --only-binary :all: cargo-lambda=={VERSION} --target");
    [
        Way {
            name: "uv",
            duration: "about 15 MB, some seconds",
            probe: "uv --version",
            install: format!("uv pip install {wheel}"),
        },
        Way {
            name: "pip",
            duration: "about 15 MB, some seconds",
            probe: "python3 -m pip --version",
            install: format!("python3 -m pip install --quiet --upgrade {wheel}"),
        },
        Way {
            name: "cargo install",
            duration: "it compiles several hundred crates, once: five to fifteen minutes",
            probe: "cargo --version",
            install: format!("cargo install --locked cargo-lambda --version {VERSION} --root"),
        },
    ]
}

fn command(words: &str) -> Command {
    let mut words = words.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command
        .args(words)
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
        .stdin(Stdio::null());
    command
}

async fn succeeds(command: &mut Command) -> bool {
    match Group::spawn(command) {
        Ok(mut group) => group.ended().await.is_ok_and(|status| status.success()),
        Err(_) => false,
    }
}

async fn works(program: &Path) -> bool {
    let answer = Command::new(program).args(["lambda", "--version"]).stdin(Stdio::null()).output().await;
    match answer {
        Ok(answer) if answer.status.success() => {
            version(&String::from_utf8_lossy(&answer.stdout)).is_some_and(|version| version >= OLDEST)
        }
        _ => false,
    }
}

/// Reads major and minor from `cargo-lambda 1.9.2 (…)`.
fn version(line: &str) -> Option<(u32, u32)> {
    let mut parts = line.strip_prefix("cargo-lambda ")?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_first_words() {
        assert_eq!(version("cargo-lambda 1.9.2 (67129fc 2026-08-21Z)\n"), Some((1, 9)));
        assert_eq!(version("cargo-lambda 1.10.0"), Some((1, 10)));
        assert_eq!(version("cargo 1.95.0"), None);
        assert_eq!(version(""), None);
    }

    #[test]
    fn one_on_the_path_is_called_through_cargo_and_another_by_its_path() {
        assert_eq!(invocation(Path::new("cargo-lambda")), "cargo lambda");
        assert_eq!(invocation(Path::new("/tools/bin/cargo-lambda")), "/tools/bin/cargo-lambda lambda");
    }

    #[test]
    fn an_older_version_is_not_good_enough() {
        assert!(version("cargo-lambda 1.8.6") < Some(OLDEST));
        assert!(version("cargo-lambda 2.0.0") > Some(OLDEST));
    }
}
