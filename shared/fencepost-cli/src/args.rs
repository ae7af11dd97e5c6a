//! The command line of `fencepost`.

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use fencepost::maintenance::{Audit, Task};
use fencepost::{Names, Number, Settings, TableSchema};
use std::convert::Infallible;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;

#[derive(Parser)]
#[command(name = "fencepost", version, about)]
#[command(
    after_help = "The region and the credentials come from the environment or from the profile, as for other tools \
of AWS.\nRows go to the standard output, and progress to the standard error."
)]
struct Line {
    #[command(subcommand)]
    word: Word,
}

#[derive(Subcommand)]
enum Word {
    /// Say what rows tell about their past, and what is wrong with them
    Explain {
        /// Explain only rows with problems
        #[arg(long)]
        problems: bool,
        /// Explain one row: give each part of its key
        #[arg(long, value_name = "NAME=VALUE", value_parser = part_of_key, conflicts_with_all = ["problems", "rate", "state"])]
        key: Vec<(String, String)>,
        #[command(flatten)]
        options: Options,
    },
    /// Adopt the rows of other programs, which the first change of each would do otherwise
    Adopt(Writing),
    /// Remove tombstones whose time has passed, where TTL does not
    Sweep(Writing),
    /// Give each row of a restored table a new incarnation, so that old entity tags answer 412
    ///
    /// Stop all writers before. See "Restore" in docs/operations.md.
    Restamp(Writing),
    /// Check the changes that a stream or an export of a table shows against the rules of Fencepost
    ///
    /// Reads JSON: events of a stream with `NEW_AND_OLD_IMAGES`, answers of `aws dynamodbstreams get-records`, or lines of an
    /// export. Sends nothing. Ends with 1 if a rule was broken. See "Audit" in docs/operations.md.
    Audit(Audited),
    /// Check that a table has the key and the TTL that its programs need, or print one that has
    Check(Checked),
}

#[derive(Args)]
struct Writing {
    /// Write, and not only count. Each write is conditional, so it never overwrites a change
    #[arg(long)]
    write: bool,
    #[command(flatten)]
    options: Options,
}

#[derive(Args)]
struct Options {
    #[command(flatten)]
    whole: Whole,
    #[command(flatten)]
    attributes: Attributes,
}

#[derive(Args, Debug, PartialEq, Eq)]
#[command(next_help_heading = "Names of Fencepost's attributes, if the Record of the table changes them")]
#[expect(clippy::struct_field_names, reason = "they are the names of the options")]
struct Attributes {
    #[arg(long, value_name = "NAME", value_parser = kept)]
    version_attribute: Option<&'static str>,
    #[arg(long, value_name = "NAME", value_parser = kept)]
    incarnation_attribute: Option<&'static str>,
    #[arg(long, value_name = "NAME", value_parser = kept)]
    writes_attribute: Option<&'static str>,
    #[arg(long, value_name = "NAME", value_parser = kept)]
    purge_attribute: Option<&'static str>,
    #[arg(long, value_name = "NAME", value_parser = kept)]
    buried_attribute: Option<&'static str>,
    #[arg(long, value_name = "NAME", value_parser = kept)]
    fence_attribute: Option<&'static str>,
    #[arg(long, value_name = "NAME", value_parser = kept)]
    given_attribute: Option<&'static str>,
    #[arg(long, value_name = "NAME", value_parser = kept)]
    served_attribute: Option<&'static str>,
}

/// What an audit goes by, as the `Record` of the table says it.
#[derive(Args, Debug, PartialEq, Eq)]
pub struct Audited {
    /// Files with changes, or else the standard input
    pub files: Vec<PathBuf>,
    /// One JSON object per line: breaches, and at the end the counts
    #[arg(long)]
    pub json: bool,
    /// How items are deleted: expire, sweep, keep or remove
    #[arg(long, value_name = "HOW", default_value = "expire")]
    deletes: Deletes,
    /// Which other programs write the table
    #[arg(long, value_name = "WHICH", conflicts_with = "deletes")]
    shared_with: Option<Others>,
    /// How many writes a row remembers
    #[arg(long, value_name = "N", default_value_t = 16)]
    remembered_writes: u64,
    /// The first version of an item
    #[arg(long, value_name = "N", default_value_t = 1)]
    first_version: u64,
    /// The newest instance wins in this table: the attributes that order and name it
    #[arg(long, num_args = 2, value_names = ["ORDERED_BY", "NAMED_BY"], value_parser = kept)]
    instances: Vec<&'static str>,
    /// The number of which rows of another table hold parts
    #[arg(long, value_name = "NAME", value_parser = kept)]
    held: Option<&'static str>,
    /// A number that each item keeps within bounds, such as stock=0.. or level=0..100
    #[arg(long, value_name = "NAME=LOW..HIGH", value_parser = bounds)]
    within: Vec<(String, Option<Number>, Option<Number>)>,
    #[command(flatten)]
    attributes: Attributes,
}

/// The other programs that write a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Others {
    /// They demand the version in each write, and raise it
    Versioned,
    /// They write as they like
    Any,
}

impl Audited {
    /// The audit of such a table.
    #[must_use]
    pub fn audit(&self) -> Audit {
        let settings = match self.shared_with {
            None => self.deletes.settings(),
            Some(Others::Versioned) => Settings::without_ttl().shared_with_versioned_writers().swept(),
            Some(Others::Any) => Settings::open_to_any(),
        };
        let settings = settings.names(self.attributes.names()).first_version(self.first_version);
        let mut audit = Audit::of(settings.remembered_writes(self.remembered_writes));
        if let [ordered_by, named_by] = self.instances[..] {
            audit = audit.of_instances([ordered_by, named_by]);
        }
        if let Some(held) = self.held {
            audit = audit.with_held(held);
        }
        let bounds = self.within.iter().cloned();
        bounds.fold(audit, |audit, (name, lowest, highest)| audit.within(name, lowest, highest))
    }
}

/// The command that the user asked for.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    /// Explain one row.
    Row(Row),
    /// Run over a whole table.
    Table(Whole),
    /// Check a table, or print it.
    Check(Checked),
    /// Check the changes of a table.
    Audit(Audited),
}

/// A table with what it must have.
#[derive(Args, Debug, PartialEq, Eq)]
#[command(group = ArgGroup::new("kind").required(true))]
pub struct Checked {
    /// The name of the table
    #[arg(long, value_name = "NAME")]
    pub table: String,
    /// It has leases
    #[arg(long, group = "kind")]
    leases: bool,
    /// It has the records of idempotency keys
    #[arg(long, group = "kind")]
    idempotency: bool,
    /// It has the items of a Record, with this partition key. The type is S, N or B. Without it, each passes
    #[arg(long, value_name = "NAME[:TYPE]", group = "kind")]
    partition_key: Option<String>,
    /// The sort key, if the Record has one
    #[arg(long, value_name = "NAME[:TYPE]", conflicts_with_all = ["leases", "idempotency"])]
    sort_key: Option<String>,
    /// The TTL attribute: the `expires_at` of the Record, if it has one
    #[arg(long, value_name = "NAME", conflicts_with_all = ["leases", "idempotency"], default_value = Names::DEFAULT.purge_at)]
    ttl: String,
    /// TTL is off, because the settings of the Record say `without_ttl`
    #[arg(long, conflicts_with_all = ["leases", "idempotency", "ttl"])]
    without_ttl: bool,
    /// Send nothing. Print a table that passes, as JSON for this tool
    #[arg(long, value_name = "TOOL")]
    pub print: Option<Format>,
    /// Another DynamoDB than that of the region
    #[arg(long, value_name = "URL", value_parser = address)]
    pub endpoint: Option<String>,
}

/// The tool that creates a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A template
    Cloudformation,
    /// A file named `*.tf.json`
    Terraform,
}

/// The table, and how it is set up.
#[derive(Args, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The name of the table
    #[arg(long, value_name = "NAME")]
    pub table: String,
    /// One JSON object per line: rows, and at the end the counts
    #[arg(long)]
    pub json: bool,
    /// Another DynamoDB than that of the region
    #[arg(long, value_name = "URL", value_parser = address)]
    pub endpoint: Option<String>,
    /// How items are deleted, as in the Record: expire, sweep, keep or remove. Without it, the marks in the rows tell
    #[arg(long, value_name = "HOW")]
    pub deletes: Option<Deletes>,
    /// The newest instance wins in this table: the attributes that order and name it, as in its Record. Without them,
    /// only mappings of the function host-mapping are known
    #[arg(long, num_args = 2, value_names = ["ORDERED_BY", "NAMED_BY"], value_parser = kept)]
    pub instances: Vec<&'static str>,
    /// The names of Fencepost's attributes.
    #[arg(skip)]
    pub names: Names,
}

/// How items are deleted, as the `Record` of the table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Deletes {
    /// TTL removes tombstones
    Expire,
    /// A sweep removes tombstones
    Sweep,
    /// Tombstones stay
    Keep,
    /// Deletes leave no tombstones
    Remove,
}

impl Target {
    /// The settings of the table, as far as a run goes by them.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.deletes.map_or(Settings::own(), Deletes::settings).names(self.names)
    }
}

impl Deletes {
    fn settings(self) -> Settings {
        match self {
            Deletes::Expire => Settings::own(),
            Deletes::Sweep => Settings::without_ttl().swept(),
            Deletes::Keep => Settings::without_ttl().kept(),
            Deletes::Remove => Settings::without_ttl().removed(),
        }
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
#[derive(Args, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The table.
    #[command(flatten)]
    pub target: Target,
    /// Use at most N capacity units in a second, reads and writes together
    #[arg(long, value_name = "N")]
    pub rate: Option<NonZeroU32>,
    /// Keep the place of the run in FILE. The same command goes on there after an interruption
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// The task for each row.
    #[arg(skip = Task::Explain)]
    pub task: Task,
    /// Whether to write, and not only to count.
    #[arg(skip)]
    pub write: bool,
    /// Whether rows without problems are left out.
    #[arg(skip)]
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

/// Reads the command line, which begins with the program's name.
///
/// # Errors
/// An argument is unknown, malformed or contradicts another, or help or the version is asked for.
pub fn parse(line: impl IntoIterator<Item = OsString>) -> Result<Command, clap::Error> {
    let (task, options, write, problems_only, key) = match Line::try_parse_from(line)?.word {
        Word::Explain { problems, key, options } => (Task::Explain, options, false, problems, key),
        Word::Adopt(Writing { write, options }) => (Task::Adopt, options, write, false, Vec::new()),
        Word::Sweep(Writing { write, options }) => (Task::Sweep, options, write, false, Vec::new()),
        Word::Restamp(Writing { write, options }) => (Task::Restamp, options, write, false, Vec::new()),
        Word::Audit(options) => return Ok(Command::Audit(options)),
        Word::Check(options) => return Ok(Command::Check(options)),
    };
    let Options { mut whole, attributes } = options;
    whole.target.names = attributes.names();
    Ok(if key.is_empty() {
        Command::Table(Whole { task, write, problems_only, ..whole })
    } else {
        Command::Row(Row { target: whole.target, key })
    })
}

impl Attributes {
    fn names(&self) -> Names {
        let names = Names::DEFAULT;
        let names = self.version_attribute.map_or(names, |name| names.version(name));
        let names = self.incarnation_attribute.map_or(names, |name| names.incarnation(name));
        let names = self.writes_attribute.map_or(names, |name| names.writes(name));
        let names = self.purge_attribute.map_or(names, |name| names.purge_at(name));
        let names = self.buried_attribute.map_or(names, |name| names.buried(name));
        let names = self.fence_attribute.map_or(names, |name| names.fence(name));
        let names = self.given_attribute.map_or(names, |name| names.given(name));
        self.served_attribute.map_or(names, |name| names.served(name))
    }
}

impl Checked {
    /// What the table must have.
    #[must_use]
    pub fn schema(&self) -> TableSchema {
        let Some(partition) = self.partition_key.as_deref().map(typed) else {
            return if self.leases { TableSchema::leases() } else { TableSchema::idempotency() };
        };
        let sort = self.sort_key.as_deref().map(typed);
        let schema = TableSchema::new(partition.0, sort.map(|(name, _)| name));
        let schema = if self.without_ttl { schema } else { schema.with_ttl(&self.ttl) };
        let types = [Some(partition), sort].into_iter().flatten().filter_map(|(name, kind)| Some((name, kind?)));
        types.fold(schema, |schema, (name, kind)| schema.with_key_type(name, kind.into()))
    }
}

/// The name of a key, and its type if that stands behind the last colon.
fn typed(key: &str) -> (&str, Option<&str>) {
    match key.rsplit_once(':') {
        Some((name, kind @ ("S" | "N" | "B"))) => (name, Some(kind)),
        _ => (key, None),
    }
}

/// A name for the rest of the program. There are at most ten.
#[expect(clippy::unnecessary_wraps, reason = "clap's parsers may fail")]
fn kept(name: &str) -> Result<&'static str, Infallible> {
    Ok(name.to_owned().leak())
}

fn part_of_key(part: &str) -> Result<(String, String), &'static str> {
    let (name, value) = part.split_once('=').ok_or("it takes NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn bounds(text: &str) -> Result<(String, Option<Number>, Option<Number>), &'static str> {
    const FORM: &str = "it takes a name and two numbers, such as level=0..100; one of the numbers may be missing";
    let (name, (low, high)) =
        text.split_once('=').and_then(|(name, of)| Some((name, of.split_once("..")?))).ok_or(FORM)?;
    let bound = |text: &str| match text {
        "" => Ok(None),
        _ => Number::parse(text).map(Some).ok_or(FORM),
    };
    Ok((name.to_owned(), bound(low)?, bound(high)?))
}

fn address(url: &str) -> Result<String, &'static str> {
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    match host {
        Some(host) if !host.is_empty() => Ok(url.to_owned()),
        _ => Err("it takes a URL such as http://127.0.0.1:8000"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, clap::Error> {
        parse(["fencepost"].into_iter().chain(line.split_whitespace()).map(OsString::from))
    }

    fn refused(line: &str) -> String {
        let failure = parsed(line).expect_err("must be refused");
        assert_eq!(failure.exit_code(), 2);
        failure.to_string()
    }

    fn target(table: &str) -> Target {
        Target { table: table.to_owned(), ..Target::default() }
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
        assert!(refused("explain --table T --write").contains("--write"));
    }

    #[test]
    fn every_option_is_read() {
        let line = "adopt --table T --endpoint http://db:8000 --rate 25 --state there --json --deletes sweep \
                    --version-attribute version --incarnation-attribute i --writes-attribute w --purge-attribute ttl \
                    --buried-attribute b --fence-attribute f --given-attribute g --served-attribute s \
                    --instances term node";
        let names = Names::DEFAULT.version("version").incarnation("i").writes("w").purge_at("ttl");
        let names = names.buried("b").fence("f").given("g").served("s");
        let (endpoint, instances) = (Some("http://db:8000".to_owned()), vec!["term", "node"]);
        let target = Target { endpoint, names, deletes: Some(Deletes::Sweep), instances, json: true, ..target("T") };
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
    fn a_schema_is_that_of_leases_of_idempotency_keys_or_of_a_key() {
        let typed =
            TableSchema::new("id", Some("a:b")).with_key_type("id", "S".into()).with_key_type("a:b", "N".into());
        for (line, schema) in [
            ("--leases", TableSchema::leases()),
            ("--idempotency", TableSchema::idempotency()),
            ("--partition-key id", TableSchema::new("id", None).with_ttl("_purgeAt")),
            ("--partition-key id --without-ttl", TableSchema::new("id", None)),
            ("--partition-key id:S --sort-key a:b:N --ttl end", typed.with_ttl("end")),
        ] {
            let Ok(Command::Check(options)) = parsed(&format!("check --table T {line}")) else { panic!("{line}") };
            assert_eq!(options.schema(), schema, "{line}");
        }
    }

    #[test]
    fn an_audit_goes_by_what_it_is_told_of_the_record() {
        let line = "audit --within stock=0.. --within level=-1..1e2 --deletes keep --held stock one.json two.json";
        let Ok(Command::Audit(options)) = parsed(line) else { panic!("{line}") };
        assert_eq!(options.files, ["one.json", "two.json"].map(PathBuf::from));
        let number = |text| Number::parse(text);
        let bounds = [("stock", number("0"), None), ("level", number("-1"), number("1e2"))];
        assert_eq!(options.within, bounds.map(|(name, low, high)| (name.to_owned(), low, high)));
        let audit = format!("{:?}", options.audit());
        assert!(["deletes: Keep", "held: Some(\"stock\")", "remembered: 16"].iter().all(|part| audit.contains(part)));
        for line in [
            "audit --within stock",
            "audit --within stock=1",
            "audit --within stock=a..",
            "audit --instances a",
            "audit --shared-with any --deletes keep",
        ] {
            assert!(refused(line).contains(line.split_whitespace().nth(1).expect("an option")), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, part) in [
            ("explian --table T", "explian"),
            ("--table T", "--table"),
            ("explain", "--table <NAME>"),
            ("adopt --table T --prot 1", "--prot"),
            ("adopt --table T --rate 0", "--rate"),
            ("adopt --table T --rate 1.5", "--rate"),
            ("sweep --table T --deletes no", "--deletes"),
            ("sweep --table T --problems", "--problems"),
            ("restamp --table T --endpoint db", "--endpoint"),
            ("check --table T", "--partition-key <NAME[:TYPE]>"),
            ("check --table T --leases --idempotency", "--idempotency"),
            ("check --table T --leases --sort-key line", "--sort-key"),
            ("check --table T --idempotency --ttl end", "--ttl"),
            ("check --table T --partition-key id --ttl end --without-ttl", "--without-ttl"),
            ("check --table T --leases --print yaml", "--print"),
        ] {
            assert!(refused(line).contains(part), "{line}");
        }
    }
}
