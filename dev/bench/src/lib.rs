//! Measures the cost of Fencepost: the parts of `cargo dev bench`. [`run`] plays them.
//!
//! - `scenes` plays the games of the crate `crowds` on virtual time.
//! - `update` measures an update against a read and a write on the bare SDK, over HTTP.
//! - `function` measures the size, start and memory of a function, as a `process` on a Runtime API of its own.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a command-line tool: its tables go to the terminal"
)]

mod function;
mod process;
mod scenes;
mod table;
mod update;

use function::Programs;
use std::process::Command;
use table::Outcome;

/// A part by its name, with its seconds on two cores.
type Part = (&'static str, u64, fn(Option<&Programs>) -> Outcome<String>);
const PARTS: [Part; 6] = [
    ("function", 4, function::table),
    ("update", 3, |_| update::table()),
    ("crowds", 20, |_| Ok(scenes::of_strategies())),
    ("adds", 19, |_| Ok(scenes::of_adds())),
    ("pace", 30, |_| Ok(scenes::of_pace())),
    ("orders", 30, |_| Ok(scenes::of_orders())),
];

/// Does the work named by the arguments after the program's name.
///
/// # Errors
/// The arguments mean nothing, or a part has failed.
pub fn run(arguments: &[&str]) -> Outcome<()> {
    let (only, paths) = match arguments {
        ["engine"] => return Ok(process::runtime()?.block_on(process::serve_engine())?),
        [part, paths @ ..] if PARTS.iter().any(|(name, ..)| name == part) => (Some(*part), paths),
        paths => (None, paths),
    };
    let programs = match paths {
        [] => None,
        [device_state, baseline] => Some(Programs { device_state: device_state.into(), baseline: baseline.into() }),
        _ => return Err("usage: bench [PART] [DEVICE_STATE BASELINE]".into()),
    };
    println!("{}", machine());
    let mut failed = Vec::new();
    for (name, seconds, measure) in PARTS.into_iter().filter(|(name, ..)| only.is_none_or(|only| only == *name)) {
        eprintln!("{name}: about {seconds} s");
        match measure(programs.as_ref()) {
            Ok(table) => print!("\n{table}"),
            Err(reason) => {
                println!("\n{name}: missing: {reason}");
                failed.push(name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("these parts have failed: {}", failed.join(", ")).into()) }
}

/// The code and the machine of this run, as far as they are known.
fn machine() -> String {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success());
        output
            .map_or_else(|| format!("no {program}"), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = said("git", &["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--dirty"]);
    let rustc = said("rustc", &["--version"]);
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or(std::env::consts::ARCH, |(_, model)| model.trim());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("Commit {commit}, {rustc}, {cores} cores of {model}")
}
