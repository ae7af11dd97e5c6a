//! Finds cargo-lambda, or gets it into the target directory.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

use crate::{failure::Failure, process::Group};

/// The version that is fetched.
const VERSION: &str = "1.9.2";

/// The oldest version on the `PATH` that is good enough: major and minor.
const OLDEST: (u32, u32) = (1, 9);

/// The path of a cargo-lambda that works: one on the `PATH`, else the one in `tools`, else a new one in `tools`.
///
/// # Errors
/// Where there is none and neither uv, pip nor cargo can get it.
pub async fn find_or_get(tools: &Path) -> Result<PathBuf, Failure> {
    let fetched = tools.join("bin/cargo-lambda");
    for candidate in [Path::new("cargo-lambda"), &fetched] {
        if works(candidate).await {
            return Ok(candidate.to_owned());
        }
    }
    for way in ways(tools) {
        if !present(&way).await {
            continue;
        }
        eprintln!(
            "Getting cargo-lambda {VERSION} with {} ({}).",
            way.name, way.duration
        );
        if run(&way).await && works(&fetched).await {
            return Ok(fetched);
        }
    }
    Err(Failure::new(format!(
        "cargo-lambda {VERSION} is not to be had (the lines above say why): install it so that `cargo lambda --version` \
         answers, as https://www.cargo-lambda.info describes, and run this again."
    )))
}

/// One way to get the program into `tools/bin`.
struct Way {
    name: &'static str,
    /// Said beforehand.
    duration: &'static str,
    program: &'static str,
    /// Asked first, quietly: is this way open on this machine?
    probe: &'static [&'static str],
    arguments: Vec<String>,
}

/// The quick ways first. The Python wheel holds the finished program; its only dependency (zig, for cross-compiling)
/// is of no use to `watch` and is left out.
fn ways(tools: &Path) -> [Way; 3] {
    let requirement = format!("cargo-lambda=={VERSION}");
    let folder = tools.display().to_string();
    let arguments = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    [
        Way {
            name: "uv",
            duration: "about 15 MB, some seconds",
            program: "uv",
            probe: &["--version"],
            arguments: arguments(&[
                "pip",
                "install",
                "--no-deps",
                "--target",
                &folder,
                &requirement,
            ]),
        },
        Way {
            name: "pip",
            duration: "about 15 MB, some seconds",
            program: "python3",
            probe: &["-m", "pip", "--version"],
            arguments: arguments(&[
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-deps",
                "--upgrade",
                "--target",
                &folder,
                &requirement,
            ]),
        },
        Way {
            name: "cargo install",
            duration: "it compiles several hundred crates, once: five to fifteen minutes",
            program: "cargo",
            probe: &["--version"],
            arguments: arguments(&[
                "install",
                "--locked",
                "cargo-lambda",
                "--version",
                VERSION,
                "--root",
                &folder,
            ]),
        },
    ]
}

async fn present(way: &Way) -> bool {
    let mut probe = Command::new(way.program);
    probe
        .args(way.probe)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    succeeds(&mut probe).await
}

async fn run(way: &Way) -> bool {
    let mut command = Command::new(way.program);
    command
        .args(&way.arguments)
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .stdin(Stdio::null());
    succeeds(&mut command).await
}

async fn succeeds(command: &mut Command) -> bool {
    match Group::spawn(command) {
        Ok(mut group) => group.ended().await.is_ok_and(|status| status.success()),
        Err(_) => false,
    }
}

async fn works(program: &Path) -> bool {
    let answer = Command::new(program)
        .args(["lambda", "--version"])
        .stdin(Stdio::null())
        .output()
        .await;
    match answer {
        Ok(answer) if answer.status.success() => version(&String::from_utf8_lossy(&answer.stdout))
            .is_some_and(|version| version >= OLDEST),
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
        assert_eq!(
            version("cargo-lambda 1.9.2 (67129fc 2026-08-21Z)\n"),
            Some((1, 9))
        );
        assert_eq!(version("cargo-lambda 1.10.0"), Some((1, 10)));
        assert_eq!(version("cargo 1.95.0"), None);
        assert_eq!(version(""), None);
    }

    #[test]
    fn an_older_version_is_not_good_enough() {
        assert!(version("cargo-lambda 1.8.6") < Some(OLDEST));
        assert!(version("cargo-lambda 2.0.0") > Some(OLDEST));
    }
}
