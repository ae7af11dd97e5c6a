//! The command line of `bench`.

use crate::figure::Measured;
use crate::measure::function::Programs;
use lexopt::{Arg, Parser};
use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;

const USAGE: &str = "bench [--report DIR] [PART] [DEVICE_STATE BASELINE]";
const PARTS: [&str; 8] = ["function", "crowds", "adds", "units", "orders", "leases", "connections", "roots"];

/// What is asked for.
#[derive(Debug)]
pub enum Command {
    /// Serve the engine, as a process of its own.
    Engine,
    /// Print how long a client takes to make, in nanoseconds.
    Client,
    /// Measure.
    Measure(Args),
}

/// What to measure.
#[derive(Debug)]
pub struct Args {
    /// The folder of the report. Without one, there is no report.
    pub report: Option<PathBuf>,
    /// The only part that is wanted.
    pub part: Option<String>,
    /// The programs.
    pub programs: Measured<Programs>,
}

/// Reads the arguments that follow the program's name.
///
/// # Errors
/// An argument is unknown, or one of two paths is missing.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, Box<dyn Error>> {
    let (mut report, mut part, mut paths) = (None, None, Vec::new());
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("report") => report = Some(PathBuf::from(parser.value()?)),
            Arg::Value(word) if word == "engine" => return Ok(Command::Engine),
            Arg::Value(word) if word == "client" => return Ok(Command::Client),
            Arg::Value(word) => match word.to_str() {
                Some(name) if PARTS.contains(&name) && part.is_none() => part = Some(name.to_owned()),
                _ => paths.push(PathBuf::from(word)),
            },
            unknown => return Err(unknown.unexpected().into()),
        }
    }
    let programs = match <[PathBuf; 2]>::try_from(paths) {
        Ok([device_state, baseline]) => Ok(Programs { device_state, baseline }),
        Err(paths) if paths.is_empty() => Err("no release build of device-state and baseline was given".to_owned()),
        Err(_) => return Err(format!("usage: {USAGE}").into()),
    };
    Ok(Command::Measure(Args { report, part, programs }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Args {
        match parse(line.split_whitespace().map(OsString::from)) {
            Ok(Command::Measure(args)) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_report_a_part_and_the_programs_are_read() {
        let args = parsed("--report there adds a b");
        assert_eq!((args.report, args.part.as_deref()), (Some(PathBuf::from("there")), Some("adds")));
        assert_eq!(args.programs.expect("two paths").baseline, PathBuf::from("b"));
        assert!(parsed("adds").report.is_none());
    }

    #[test]
    fn without_programs_the_reason_is_known() {
        assert!(parsed("").programs.expect_err("none").contains("no release build"));
    }

    #[test]
    fn one_path_or_an_unknown_option_is_refused() {
        for line in ["device-state", "a b c", "--reprot there", "--report"] {
            assert!(parse(line.split_whitespace().map(OsString::from)).is_err(), "{line}");
        }
    }

    #[test]
    fn every_part_can_be_named() {
        let names: Vec<_> = crate::parts::all(Err(String::new())).iter().map(|part| part.name).collect();
        assert_eq!(names, PARTS);
    }
}
