//! The command line of `cargo dev`.

use clap::{Parser, Subcommand, value_parser};
use std::path::PathBuf;

/// Runs every function of this workspace on this machine, on an embedded DynamoDB
#[derive(Parser, Debug)]
#[command(bin_name = "cargo dev", args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
#[command(after_help = "Tables and environment come from template.yaml. Ctrl-C stops everything.")]
pub struct Args {
    #[command(subcommand)]
    /// What to do instead.
    pub instead: Option<Instead>,
    /// Where the functions answer
    #[arg(long, value_name = "N", default_value_t = 9000, value_parser = value_parser!(u16).range(1..))]
    pub port: u16,
    /// Serve the functions with `cargo lambda watch` (cargo-lambda 1.9 or newer), as processes, and pick up edits
    ///
    /// Its port also answers what a page of any web site sends, so it takes no `--endpoint`: those tables may be worth keeping.
    #[arg(long, conflicts_with = "endpoint")]
    pub watch: bool,
    /// Create the tables, print the functions' environment, run no function
    #[arg(long, conflicts_with_all = ["port", "watch"])]
    pub dynamodb_only: bool,
    /// The DynamoDB that the functions use.
    #[command(flatten)]
    pub engine: Engine,
}

/// What `cargo dev` does instead of running the functions.
#[derive(Subcommand, Clone, Copy, Debug)]
pub enum Instead {
    /// Measure what contention costs, and print Markdown tables
    Bench,
}

/// The DynamoDB that the functions use: the one inside this process, or one that runs already.
#[derive(clap::Args, Clone, Debug)]
pub struct Engine {
    /// Where the embedded DynamoDB answers
    #[arg(id = "dynamodb-port", long, value_name = "N", default_value_t = 8000, value_parser = value_parser!(u16).range(1..))]
    pub port: u16,
    /// Keep the tables in DIR from run to run (default: in memory, gone at the end)
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The embedded DynamoDB answers containers of Docker too, so that `sam local` reaches it
    #[arg(long)]
    pub containers: bool,
    /// Throttle each item of the embedded DynamoDB beyond N write units a second, as DynamoDB does beyond 1,000, so that
    /// you see a hot key (in memory only)
    #[arg(long, value_name = "N", conflicts_with = "data", value_parser = value_parser!(u32).range(1..))]
    pub item_write_units: Option<u32>,
    /// Answer N of 100 writes with HTTP 500 after they were carried out, to try your programs in any language (in memory only)
    #[arg(long, value_name = "N", conflicts_with = "data", default_value_t = 0, value_parser = value_parser!(u8).range(0..=100))]
    pub lose_answers: u8,
    /// Use the DynamoDB at URL instead of the embedded one. It is sent placeholders for credentials, over http
    #[arg(long, value_name = "URL", value_parser = address)]
    #[arg(conflicts_with_all = ["dynamodb-port", "data", "containers", "item_write_units", "lose_answers"])]
    pub endpoint: Option<String>,
}

impl Default for Engine {
    fn default() -> Self {
        Engine { port: 8000, data: None, containers: false, item_write_units: None, lose_answers: 0, endpoint: None }
    }
}

fn address(url: &str) -> Result<String, &'static str> {
    match url.strip_prefix("http://") {
        Some(host) if !host.is_empty() => Ok(url.to_owned()),
        _ => Err("it takes a URL such as http://127.0.0.1:8000"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        for (line, word) in [
            ("--port 0", "port"),
            ("--endpoint db:8000", "--endpoint"),
            ("--endpoint http://", "--endpoint"),
            ("--endpoint https://dynamodb.eu-west-1.amazonaws.com", "--endpoint"),
            ("--endpoint http://db --data there", "--data"),
            ("--endpoint http://db --dynamodb-port 1", "--dynamodb-port"),
            ("--endpoint http://db --containers", "--containers"),
            ("--endpoint http://db --item-write-units 1", "--item-write-units"),
            ("--data there --item-write-units 1", "--data"),
            ("--item-write-units 0", "--item-write-units"),
            ("--data there --lose-answers 1", "--data"),
            ("--lose-answers 101", "--lose-answers"),
            ("--port 1 --dynamodb-only", "--port"),
            ("--watch --dynamodb-only", "--watch"),
            ("--watch --endpoint http://db", "--endpoint"),
            ("--port 1 bench", "bench"),
            ("bench --port 1", "--port"),
        ] {
            let failure = Args::try_parse_from(["dev"].into_iter().chain(line.split_whitespace()));
            let failure = failure.expect_err("must be refused");
            assert!(failure.exit_code() == 2 && failure.to_string().contains(word), "{line}: {failure}");
        }
    }
}
