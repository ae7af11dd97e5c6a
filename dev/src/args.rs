//! The command line of `cargo dev`.

use std::{ffi::OsString, path::PathBuf};

use lexopt::{Arg, Parser, ValueExt};

use crate::failure::Failure;

/// The output of `cargo dev --help`.
pub const HELP: &str = "\
Runs every function of this workspace on this machine, on an embedded DynamoDB.

Usage: cargo dev [options]
       cargo dev bench      measures what contention costs, and prints Markdown tables

  --port N           where the functions answer (default 9000)
  --watch            serve the functions with `cargo lambda watch` (cargo-lambda 1.9 or newer), as processes, and pick
                     up edits
  --dynamodb-port N  where the embedded DynamoDB answers (default 8000)
  --data DIR         keep the tables in DIR from run to run (default: in memory, gone at the end)
  --containers       the embedded DynamoDB answers containers of Docker too, so that `sam local` reaches it
  --item-write-units N
                     throttle each item of the embedded DynamoDB beyond N write units a second, as DynamoDB does beyond
                     1,000, so that you see a hot key (in memory only)
  --dynamodb-only    create the tables, print the functions' environment, run no function
  --endpoint URL     use the DynamoDB at URL instead of the embedded one. AWS_REGION, and AWS_ACCESS_KEY_ID or
                     AWS_PROFILE, are taken from the environment; without them placeholders are sent.
                     Temporary credentials are good until they expire: then start this again.
                     `cargo dev` is compiled without TLS. For https, use `cargo run -p dev --features tls --`
  --help             print this

Tables and environment come from template.yaml. Ctrl-C stops everything.
";

/// The command that the user asked for.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    /// Print [`HELP`].
    Help,
    /// Measure the cost of the functions and the crate.
    Bench,
    /// Run the functions.
    Run(Args),
    /// Run a DynamoDB with the tables but no function.
    DynamoDbOnly(Engine),
}

/// The options for running the functions.
#[derive(Debug, PartialEq, Eq)]
pub struct Args {
    /// The port of the functions.
    pub port: u16,
    /// Whether `cargo lambda watch` serves them, and not this process.
    pub watch: bool,
    /// The DynamoDB that the functions use.
    pub engine: Engine,
}

/// The DynamoDB that the functions use.
#[derive(Debug, PartialEq, Eq)]
pub enum Engine {
    /// The one inside this process.
    Embedded {
        /// The port of the engine.
        port: u16,
        /// The folder for the tables. Without one, the tables are in memory.
        data: Option<PathBuf>,
        /// Whether it answers containers too.
        containers: bool,
        /// The write units a second that an item takes. Without a number, nothing is throttled.
        item_write_units: Option<u32>,
    },
    /// A DynamoDB that runs already.
    Existing {
        /// Its address, with `http://` or `https://`.
        endpoint: String,
    },
}

/// Reads the arguments that follow the program's name.
///
/// # Errors
/// A usage failure if an argument is unknown, malformed or contradicts another.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, Failure> {
    let mut port = None;
    let mut dynamodb_only = false;
    let mut watch = false;
    let mut containers = false;
    let mut dynamodb_port = None;
    let mut data = None;
    let mut item_write_units = None;
    let mut endpoint = None;

    let mut parser = Parser::from_args(arguments);
    let mut first = true;
    while let Some(argument) = parser.next().map_err(Failure::usage)? {
        let first = std::mem::take(&mut first);
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Help),
            Arg::Long("port") => port = Some(port_number(&mut parser, "--port")?),
            Arg::Long("watch") => watch = true,
            Arg::Long("containers") => containers = true,
            Arg::Long("dynamodb-only") => dynamodb_only = true,
            Arg::Value(word) if word == "bench" && first => return bench(&mut parser),
            Arg::Long("dynamodb-port") => {
                dynamodb_port = Some(port_number(&mut parser, "--dynamodb-port")?);
            }
            Arg::Long("data") => {
                data = Some(PathBuf::from(parser.value().map_err(Failure::usage)?));
            }
            Arg::Long("item-write-units") => item_write_units = Some(units(&mut parser)?),
            Arg::Long("endpoint") => endpoint = Some(address(&mut parser)?),
            unknown => return Err(Failure::usage(unknown.unexpected())),
        }
    }

    if dynamodb_only && (port.is_some() || watch) {
        return Err(Failure::usage(
            "--dynamodb-only runs no function, so --port and --watch have no meaning beside it",
        ));
    }
    let engine = match endpoint {
        Some(_) if data.is_some() || dynamodb_port.is_some() || containers || item_write_units.is_some() => {
            return Err(Failure::usage(
                "--endpoint uses a DynamoDB that runs already, so --data, --dynamodb-port, --containers and \
                 --item-write-units have no meaning beside it",
            ));
        }
        Some(endpoint) => Engine::Existing { endpoint },
        None if data.is_some() && item_write_units.is_some() => {
            return Err(Failure::usage("--item-write-units keeps its tables in memory, not in the folder of --data"));
        }
        None => Engine::Embedded { port: dynamodb_port.unwrap_or(8000), data, containers, item_write_units },
    };
    Ok(if dynamodb_only {
        Command::DynamoDbOnly(engine)
    } else {
        Command::Run(Args { port: port.unwrap_or(9000), watch, engine })
    })
}

/// Reads the arguments after the word `bench`.
fn bench(parser: &mut Parser) -> Result<Command, Failure> {
    match parser.next().map_err(Failure::usage)? {
        None => Ok(Command::Bench),
        Some(Arg::Short('h') | Arg::Long("help")) => Ok(Command::Help),
        Some(unknown) => Err(Failure::usage(unknown.unexpected())),
    }
}

fn port_number(parser: &mut Parser, option: &str) -> Result<u16, Failure> {
    let value = parser.value().map_err(Failure::usage)?;
    match value.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(Failure::usage(format!("{option} takes a number from 1 to 65535"))),
    }
}

fn units(parser: &mut Parser) -> Result<u32, Failure> {
    let value = parser.value().map_err(Failure::usage)?;
    match value.parse() {
        Ok(units) if units > 0 => Ok(units),
        _ => Err(Failure::usage("--item-write-units takes a whole number from 1")),
    }
}

fn address(parser: &mut Parser) -> Result<String, Failure> {
    let url = parser.value().and_then(ValueExt::string).map_err(Failure::usage)?;
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    match host {
        Some(_) if url.starts_with("https") && !cfg!(feature = "tls") => Err(Failure::usage(
            "`cargo dev` is compiled without TLS: `cargo run -p dev --features tls -- --endpoint https://…` compiles it too",
        )),
        Some(host) if !host.is_empty() => Ok(url),
        _ => Err(Failure::usage("--endpoint takes a URL such as http://127.0.0.1:8000")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, Failure> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn help_wins_over_what_follows() {
        assert_eq!(parsed("--help --nonsense").expect("parses"), Command::Help);
        assert_eq!(parsed("-h").expect("parses"), Command::Help);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let https = "--endpoint https://dynamodb.eu-west-1.amazonaws.com";
        let without_tls: &[_] = if cfg!(feature = "tls") { &[] } else { &[(https, "--features tls")] };
        for (line, word) in [
            ("--prot 1", "--prot"),
            ("watch", "watch"),
            ("--port", "port"),
            ("--port 0", "port"),
            ("--port 65536", "port"),
            ("--port x", "port"),
            ("--dynamodb-port -1", "port"),
            ("--endpoint", "--endpoint"),
            ("--endpoint db:8000", "--endpoint"),
            ("--endpoint http://", "--endpoint"),
            ("--endpoint http://db --data there", "--data"),
            ("--endpoint http://db --dynamodb-port 1", "--dynamodb-port"),
            ("--endpoint http://db --containers", "--containers"),
            ("--endpoint http://db --item-write-units 1", "--item-write-units"),
            ("--data there --item-write-units 1", "--data"),
            ("--item-write-units 0", "--item-write-units"),
            ("--port 1 --dynamodb-only", "--port"),
            ("--watch --dynamodb-only", "--watch"),
            ("--port 1 bench", "bench"),
            ("bench --port 1", "--port"),
        ]
        .iter()
        .chain(without_tls)
        {
            let failure = parsed(line).expect_err("must be refused");
            assert!(failure.exit_code() == 2 && failure.to_string().contains(word), "{line}: {failure}");
        }
    }
}
