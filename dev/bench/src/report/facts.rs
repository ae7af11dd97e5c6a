//! What a report says about the machine, the code and the moment of a run.
#![expect(clippy::disallowed_methods, reason = "reads the date of the run")]

use crate::figure::Measured;
use fencepost::Timestamp;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

/// A fact, or why it is not known.
pub type Fact = (&'static str, Measured<String>);

/// The facts about this machine and this moment. `programs` is the folder of the measured functions.
#[must_use]
pub fn gathered(programs: Option<&Path>) -> Vec<Fact> {
    vec![
        ("date", Ok(Timestamp::from(SystemTime::now()).to_string())),
        ("commit", commit()),
        ("rustc", said("rustc", &["--version"])),
        ("profile of the functions", programs.and_then(profile).ok_or_else(|| "no programs were given".to_owned())),
        ("profile of the benchmarks", own_profile()),
        ("processor", processor()),
        ("cores", cores()),
        ("memory", memory()),
        ("system", system()),
    ]
}

/// The commit of the workspace that holds this crate, and whether its files differ from it.
fn commit() -> Measured<String> {
    let folder = env!("CARGO_MANIFEST_DIR");
    let commit = said("git", &["-C", folder, "rev-parse", "HEAD"])?;
    let changed = said("git", &["-C", folder, "status", "--porcelain"])?;
    let changed = changed.lines().filter(|line| !line.trim().is_empty()).count();
    let files = if changed == 1 { "file differs" } else { "files differ" };
    Ok(if changed == 0 { format!("{commit}, clean") } else { format!("{commit}, and {changed} {files} from it") })
}

/// The profile is named by the folder of a program: `target/release/device-state`.
fn profile(program: &Path) -> Option<String> {
    Some(program.parent()?.file_name()?.to_string_lossy().into_owned())
}

fn own_profile() -> Measured<String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    profile(&own).ok_or_else(|| "this program has no folder".to_owned())
}

fn processor() -> Measured<String> {
    let named = |text: String| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let name = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(named);
    let name = name.map_or_else(|| said("sysctl", &["-n", "machdep.cpu.brand_string"]), Ok);
    name.map(|name| format!("{name} ({})", std::env::consts::ARCH))
}

fn cores() -> Measured<String> {
    std::thread::available_parallelism().map(|cores| cores.to_string()).map_err(|error| error.to_string())
}

fn memory() -> Measured<String> {
    let kilobytes = |text: String| {
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    let bytes = match std::fs::read_to_string("/proc/meminfo").ok().and_then(kilobytes) {
        Some(kilobytes) => kilobytes * 1024,
        None => said("sysctl", &["-n", "hw.memsize"])?.parse().map_err(|_| "hw.memsize is no number".to_owned())?,
    };
    let gigabytes = bytes / 100_000_000;
    Ok(format!("{}.{} GB", gigabytes / 10, gigabytes % 10))
}

fn system() -> Measured<String> {
    let kernel = said("uname", &["-s", "-r"])?;
    let named = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=").map(str::to_owned))?;
        Some(line.trim_matches('"').to_owned())
    };
    let name = std::fs::read_to_string("/etc/os-release").ok().and_then(named);
    Ok(name.map_or_else(|| kernel.clone(), |name| format!("{name}, {kernel}")))
}

/// What a program prints, without the line break at its end.
fn said(program: &str, arguments: &[&str]) -> Measured<String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program} does not start: {error}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program}: {}", complaint.lines().next().unwrap_or("it failed")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_is_the_folder_of_the_program() {
        assert_eq!(profile(Path::new("target/release/device-state")).as_deref(), Some("release"));
        assert_eq!(profile(Path::new("device-state")), None);
    }

    #[test]
    fn a_program_that_is_not_there_is_the_reason() {
        let reason = said("no-such-program-as-this", &[]).expect_err("it is not there");
        assert!(reason.starts_with("no-such-program-as-this does not start: "), "{reason}");
        let reason = said("git", &["no-such-command"]).expect_err("it fails");
        assert!(reason.starts_with("git: "), "{reason}");
    }
}
