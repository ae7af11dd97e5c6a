//! The command line of `fencepost`.

use crate::failure::Failure;
use fencepost::operate::Task;
use fencepost::{Names, Settings};
use lexopt::{Arg, Parser, ValueExt};
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// The output of `fencepost --help`.
pub const HELP: &str = "\
For the operators of a DynamoDB table that programs change with Fencepost.

Usage: fencepost explain --table NAME --key NAME=VALUE [--key NAME=VALUE]
                            says what one row tells about its past, and what is wrong with it
       fencepost explain --table NAME [--problems]
                            the same for each row, or for those with problems
       fencepost adopt   --table NAME [--write]
                            adopts the rows of other programs, which the first change of each would do otherwise
       fencepost sweep   --table NAME [--write]
                            removes tombstones whose time has passed, where TTL does not
       fencepost restamp --table NAME [--write]
                            gives each row of a restored table a new incarnation, so that old ETags answer 412.
                            Stop all writers before. See \"Restore\" in docs/operations.md

Without --write, nothing is written: the run only counts what it would write.

  --write            write. Each write is conditional, so it never overwrites a change
  --rate N           use at most N capacity units in a second, reads and writes together
  --state FILE       keep the place of the run in FILE. The same command goes on there after an interruption
  --json             one JSON object per line: rows, and at the end the counts
  --problems         explain only rows with problems
  --endpoint URL     another DynamoDB than that of the region
  --version-attribute NAME, --incarnation-attribute NAME, --writes-attribute NAME, --purge-attribute NAME,
  --buried-attribute NAME, --fence-attribute NAME
                     the names of Fencepost's attributes, if the Record of the table changes them
  --deletes HOW      expire, sweep, keep or remove, as in the Record. Without it, the marks in the rows tell
  --help             print this

The region and the credentials come from the environment or from the profile, as for other tools of AWS. Rows go to the
standard output, and progress to the standard error.
";

/// The command that the user asked for.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    /// Print [`HELP`].
    Help,
    /// Explain one row.
    Row(Row),
    /// Run over a whole table.
    Table(Whole),
}

/// The table, and how it is set up.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    /// The name of the table.
    pub table: String,
    /// The address of its DynamoDB. Without one, it is that of the region.
    pub endpoint: Option<String>,
    /// The names of Fencepost's attributes.
    pub names: Names,
    /// How its items are deleted, if the user says so.
    pub deletes: Option<Deletes>,
    /// Whether the output is JSON.
    pub json: bool,
}

/// How items are deleted, as the `Record` of the table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletes {
    /// TTL removes tombstones.
    Expire,
    /// A sweep removes tombstones.
    Sweep,
    /// Tombstones stay.
    Keep,
    /// Deletes leave no tombstones.
    Remove,
}

impl Target {
    /// The settings of the table, as far as a run goes by them.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let settings = match self.deletes {
            None | Some(Deletes::Expire) => Settings::own(),
            Some(Deletes::Sweep) => Settings::without_ttl().swept(),
            Some(Deletes::Keep) => Settings::without_ttl().kept(),
            Some(Deletes::Remove) => Settings::without_ttl().removed(),
        };
        settings.names(self.names)
    }
}

/// The options for one row.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// The table.
    pub target: Target,
    /// The parts of the key: names and values.
    pub key: Vec<(String, String)>,
}

/// The options for a whole table.
#[derive(Debug, PartialEq, Eq)]
pub struct Whole {
    /// The table.
    pub target: Target,
    /// What to do with each row.
    pub task: Task,
    /// Whether to write, and not only to count.
    pub write: bool,
    /// The capacity units per second.
    pub rate: Option<NonZeroU32>,
    /// The file for the place of the run.
    pub state: Option<PathBuf>,
    /// Whether rows without problems are left out.
    pub problems_only: bool,
}

/// The word of a task on the command line.
#[must_use]
pub fn name_of(task: Task) -> &'static str {
    match task {
        Task::Adopt => "adopt",
        Task::Sweep => "sweep",
        Task::Restamp => "restamp",
        _ => "explain",
    }
}

/// Reads the arguments that follow the program's name.
///
/// # Errors
/// A usage failure if an argument is unknown, malformed or contradicts another.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, Failure> {
    let mut parser = Parser::from_args(arguments);
    let task = match parser.next().map_err(Failure::usage)? {
        None | Some(Arg::Short('h') | Arg::Long("help")) => return Ok(Command::Help),
        Some(Arg::Value(word)) => [Task::Explain, Task::Adopt, Task::Sweep, Task::Restamp]
            .into_iter()
            .find(|task| word == name_of(*task))
            .ok_or_else(|| Failure::usage(format!("there is no command {}", word.to_string_lossy())))?,
        Some(other) => return Err(Failure::usage(other.unexpected())),
    };
    let (mut table, mut endpoint, mut deletes, mut rate, mut state) = (None, None, None, None, None);
    let (mut write, mut json, mut problems_only) = (false, false, false);
    let (mut names, mut key) = (Names::DEFAULT, Vec::new());
    while let Some(argument) = parser.next().map_err(Failure::usage)? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Help),
            Arg::Long("table") => table = Some(text(&mut parser)?),
            Arg::Long("endpoint") => endpoint = Some(address(&mut parser)?),
            Arg::Long("key") => key.push(part_of_key(&mut parser)?),
            Arg::Long("write") => write = true,
            Arg::Long("json") => json = true,
            Arg::Long("problems") => problems_only = true,
            Arg::Long("rate") => rate = Some(units(&mut parser)?),
            Arg::Long("state") => state = Some(PathBuf::from(parser.value().map_err(Failure::usage)?)),
            Arg::Long("deletes") => deletes = Some(way_of_deletes(&mut parser)?),
            Arg::Long("version-attribute") => names = names.version(kept(&mut parser)?),
            Arg::Long("incarnation-attribute") => names = names.incarnation(kept(&mut parser)?),
            Arg::Long("writes-attribute") => names = names.writes(kept(&mut parser)?),
            Arg::Long("purge-attribute") => names = names.purge_at(kept(&mut parser)?),
            Arg::Long("buried-attribute") => names = names.buried(kept(&mut parser)?),
            Arg::Long("fence-attribute") => names = names.fence(kept(&mut parser)?),
            unknown => return Err(Failure::usage(unknown.unexpected())),
        }
    }
    let table = table.ok_or_else(|| Failure::usage(format!("{} needs --table NAME", name_of(task))))?;
    let target = Target { table, endpoint, names, deletes, json };
    if task != Task::Explain && (problems_only || !key.is_empty()) {
        return Err(Failure::usage("--key and --problems belong to explain"));
    }
    if task == Task::Explain && write {
        return Err(Failure::usage("explain writes nothing, so --write has no meaning beside it"));
    }
    if key.is_empty() {
        return Ok(Command::Table(Whole { target, task, write, rate, state, problems_only }));
    }
    if problems_only || rate.is_some() || state.is_some() {
        return Err(Failure::usage("--problems, --rate and --state are for a whole table, and --key names one row"));
    }
    Ok(Command::Row(Row { target, key }))
}

fn text(parser: &mut Parser) -> Result<String, Failure> {
    parser.value().and_then(ValueExt::string).map_err(Failure::usage)
}

/// A name for the rest of the program. There are at most six.
fn kept(parser: &mut Parser) -> Result<&'static str, Failure> {
    text(parser).map(|name| &*name.leak())
}

fn part_of_key(parser: &mut Parser) -> Result<(String, String), Failure> {
    let part = text(parser)?;
    let (name, value) = part.split_once('=').ok_or_else(|| Failure::usage("--key takes NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn units(parser: &mut Parser) -> Result<NonZeroU32, Failure> {
    let not_a_number = || Failure::usage("--rate takes a whole number from 1 on");
    text(parser)?.parse().map_err(|_| not_a_number())
}

fn way_of_deletes(parser: &mut Parser) -> Result<Deletes, Failure> {
    match text(parser)?.as_str() {
        "expire" => Ok(Deletes::Expire),
        "sweep" => Ok(Deletes::Sweep),
        "keep" => Ok(Deletes::Keep),
        "remove" => Ok(Deletes::Remove),
        _ => Err(Failure::usage("--deletes takes expire, sweep, keep or remove")),
    }
}

fn address(parser: &mut Parser) -> Result<String, Failure> {
    let url = text(parser)?;
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    match host {
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

    fn refused(line: &str) -> String {
        let failure = parsed(line).expect_err("must be refused");
        assert_eq!(failure.exit_code(), 2);
        failure.to_string()
    }

    fn target(table: &str) -> Target {
        let (endpoint, names, deletes, json) = (None, Names::DEFAULT, None, false);
        Target { table: table.to_owned(), endpoint, names, deletes, json }
    }

    #[test]
    fn a_run_writes_only_if_it_is_told_to() {
        let whole = |task, write| {
            let (rate, state, problems_only) = (None, None, false);
            Command::Table(Whole { target: target("T"), task, write, rate, state, problems_only })
        };
        assert_eq!(parsed("explain --table T").expect("parses"), whole(Task::Explain, false));
        for (word, task) in [("adopt", Task::Adopt), ("sweep", Task::Sweep), ("restamp", Task::Restamp)] {
            assert_eq!(parsed(&format!("{word} --table=T")).expect("parses"), whole(task, false));
            assert_eq!(parsed(&format!("{word} --write --table T")).expect("parses"), whole(task, true));
        }
        assert!(refused("explain --table T --write").contains("explain writes nothing"));
    }

    #[test]
    fn every_option_is_read() {
        let line = "adopt --table T --endpoint http://db:8000 --rate 25 --state there --json --deletes sweep \
                    --version-attribute version --incarnation-attribute i --writes-attribute w --purge-attribute ttl \
                    --buried-attribute b --fence-attribute f";
        let names =
            Names::DEFAULT.version("version").incarnation("i").writes("w").purge_at("ttl").buried("b").fence("f");
        let endpoint = Some("http://db:8000".to_owned());
        let target = Target { endpoint, names, deletes: Some(Deletes::Sweep), json: true, ..target("T") };
        let (rate, state) = (NonZeroU32::new(25), Some("there".into()));
        let expected = Whole { target, task: Task::Adopt, write: false, rate, state, problems_only: false };
        assert_eq!(parsed(line).expect("parses"), Command::Table(expected));
    }

    #[test]
    fn a_key_names_one_row() {
        let part = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let row = Row { target: target("T"), key: vec![part("book", "b=1"), part("page", "3")] };
        assert_eq!(parsed("explain --table T --key book=b=1 --key page=3").expect("parses"), Command::Row(row));
        for line in ["adopt --table T --key a=b", "explain --table T --key a=b --rate 1", "explain --table T --key a"] {
            assert!(refused(line).contains("--key"), "{line}");
        }
    }

    #[test]
    fn help_wins_over_what_follows() {
        for line in ["", "--help", "-h", "adopt --help --nonsense", "explain -h"] {
            assert_eq!(parsed(line).expect("parses"), Command::Help, "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, part) in [
            ("explian --table T", "explian"),
            ("--table T", "--table"),
            ("explain", "--table NAME"),
            ("adopt --table T --prot 1", "--prot"),
            ("adopt --table T --rate 0", "--rate"),
            ("adopt --table T --rate 1.5", "--rate"),
            ("sweep --table T --deletes no", "--deletes"),
            ("sweep --table T --problems", "--problems"),
            ("restamp --table T --endpoint db", "--endpoint"),
        ] {
            assert!(refused(line).contains(part), "{line}");
        }
    }
}
