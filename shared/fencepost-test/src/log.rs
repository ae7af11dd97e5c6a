//! The log of requests and their outcomes, and the check that nothing was applied twice and nothing acknowledged was lost.

use crate::capacity::Units;
use crate::connection::{Answer, Request};
use crate::engine::{Step, is_read};
use crate::fault::Fault;
use crate::garbling::Garbling;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

/// One request that left a client, with its outcome.
///
/// Each send is one: a request that the SDK sends again by itself is two of them. Times are counted from the moment at
/// which the network was made.
#[derive(Clone, Debug)]
pub struct Sent {
    /// When it left.
    pub at: Duration,
    /// The request as it went over the wire.
    pub request: Request,
    /// Its actions on rows.
    pub steps: Vec<Step>,
    /// Its fault on purpose.
    pub fault: Option<Fault>,
    /// When it arrived, and how it was answered then. A second copy is another arrival.
    pub arrivals: Vec<(Duration, Outcome)>,
    /// The answer to its client, with the time. `None` if nothing came yet or the client had given up.
    pub heard: Option<(Duration, Outcome)>,
    /// The units that it took from each table, if they were counted.
    pub units: BTreeMap<String, Units>,
}

/// How a request was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It was executed.
    Done,
    /// It was answered with this status and this error.
    Error(u16, String),
    /// The connection was reset.
    Reset,
    /// Its answer was garbled in this way.
    Garbled(Garbling),
}

impl Outcome {
    pub(crate) fn of(answer: &Answer) -> Self {
        if answer.is_success() {
            Outcome::Done
        } else {
            Outcome::Error(answer.status, answer.code().unwrap_or_default().to_owned())
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Done => f.write_str("done"),
            Outcome::Error(status, code) => write!(f, "{status} {code}"),
            Outcome::Reset => f.write_str("connection reset"),
            Outcome::Garbled(form) => form.fmt(f),
        }
    }
}

impl Sent {
    /// `GetItem`, `UpdateItem` …
    pub fn operation(&self) -> &str {
        &self.request.operation
    }

    /// Whether it only reads.
    pub fn is_read(&self) -> bool {
        is_read(self.operation())
    }

    /// How often it was executed: 2 where a second copy of it was.
    pub fn executed(&self) -> usize {
        self.arrivals.iter().filter(|(_, outcome)| *outcome == Outcome::Done).count()
    }

    /// Whether its client was told that it was done.
    pub fn is_acknowledged(&self) -> bool {
        self.heard.as_ref().is_some_and(|(_, outcome)| *outcome == Outcome::Done)
    }

    /// The error that its client was told, such as `ConditionalCheckFailedException`.
    pub fn error(&self) -> Option<&str> {
        match &self.heard {
            Some((_, Outcome::Error(_, code))) => Some(code),
            _ => None,
        }
    }

    fn touches(&self, is_wanted: impl Fn(&Step) -> bool) -> bool {
        self.steps.iter().any(is_wanted)
    }
}

/// One line: time, request and outcome.
impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9} ms  {}", millis(self.at), self.operation())?;
        for Step { table, key, .. } in &self.steps {
            write!(f, " {table}")?;
            for (name, value) in key.as_object().into_iter().flatten() {
                let value = value.as_object().and_then(|value| value.values().next()).and_then(Value::as_str);
                write!(f, " {name}={}", value.unwrap_or_default())?;
            }
        }
        for (at, outcome) in &self.arrivals {
            write!(f, "; arrived at {} ms: {outcome}", millis(*at))?;
        }
        match &self.heard {
            Some((at, outcome)) => write!(f, "; heard at {} ms: {outcome}", millis(*at))?,
            None => f.write_str("; nothing heard")?,
        }
        self.fault.iter().try_for_each(|fault| write!(f, " ({fault})"))
    }
}

fn millis(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1000.0)
}

/// Requests in the order in which they left, to be narrowed down and counted.
#[derive(Clone, Debug, Default)]
pub struct Log(Vec<Sent>);

impl Log {
    pub(crate) fn new(sent: Vec<Sent>) -> Self {
        Log(sent)
    }

    /// Those of this operation, such as `UpdateItem`.
    #[must_use]
    pub fn of(self, operation: &str) -> Self {
        self.with(|sent| sent.operation() == operation)
    }

    /// Those that touch this table.
    #[must_use]
    pub fn on(self, table: &str) -> Self {
        self.with(|sent| sent.touches(|step| step.table == table))
    }

    /// Those that touch a row with this partition key.
    #[must_use]
    pub fn about(self, id: &str) -> Self {
        self.with(|sent| sent.touches(|step| step.id == id))
    }

    /// Those for which this holds.
    #[must_use]
    pub fn with(mut self, holds: impl Fn(&Sent) -> bool) -> Self {
        self.0.retain(holds);
        self
    }

    /// Those that only read.
    #[must_use]
    pub fn reads(self) -> Self {
        self.with(Sent::is_read)
    }

    /// Those that may change something.
    #[must_use]
    pub fn writes(self) -> Self {
        self.with(|sent| !sent.is_read())
    }

    /// The units that they took from all tables. Units are counted after [`Dynamo::count_units`] or
    /// [`Dynamo::capacity`].
    ///
    /// [`Dynamo::count_units`]: crate::Dynamo::count_units
    /// [`Dynamo::capacity`]: crate::Dynamo::capacity
    pub fn units(&self) -> Units {
        self.0.iter().flat_map(|sent| sent.units.values().copied()).sum()
    }

    /// The units that they took from this table.
    pub fn units_of(&self, table: &str) -> Units {
        self.0.iter().filter_map(|sent| sent.units.get(table).copied()).sum()
    }

    /// How often they were executed, second copies included.
    pub fn executed(&self) -> usize {
        self.0.iter().map(Sent::executed).sum()
    }
}

impl std::ops::Deref for Log {
    type Target = [Sent];

    fn deref(&self) -> &[Sent] {
        &self.0
    }
}

impl IntoIterator for Log {
    type Item = Sent;
    type IntoIter = std::vec::IntoIter<Sent>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// One line for each request.
impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|sent| writeln!(f, "{sent}"))
    }
}

/// The changes of a test and their answers, to be compared with the table: for each item, *acknowledged <= held <=
/// acknowledged + unknown*.
///
/// Note each change once, when its caller is told how it ended. A change that was refused is not noted.
///
/// ```
/// use fencepost_test::{Changes, Log};
///
/// let changes = Changes::default();
/// changes.acknowledged("a", 1);
/// changes.acknowledged("a", 1);
/// changes.unknown("a", 1); // its answer was lost, and the caller says so
/// assert!(changes.check(&Log::default(), |_| 3).is_ok()); // whatever "a" holds in the table
/// let doubled = changes.check(&Log::default(), |_| 4).expect_err("one was applied twice");
/// assert!(doubled.to_string().starts_with("a holds 4, which is 1 more than the 2 acknowledged and 1 unknown"));
/// ```
#[derive(Debug, Default)]
pub struct Changes(Mutex<BTreeMap<String, Noted>>);

#[derive(Clone, Copy, Debug, Default)]
struct Noted {
    acknowledged: u64,
    unknown: u64,
}

/// The table contradicts the answers to callers.
#[derive(Debug)]
pub struct Contradiction(String);

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Contradiction {}

impl Changes {
    /// The caller was told that its change of this item, by this amount, was applied.
    pub fn acknowledged(&self, item: &str, amount: u64) {
        self.note(item, |noted| noted.acknowledged += amount);
    }

    /// The caller was told that the outcome of its change is unknown.
    pub fn unknown(&self, item: &str, amount: u64) {
        self.note(item, |noted| noted.unknown += amount);
    }

    fn note(&self, item: &str, how: impl Fn(&mut Noted)) {
        how(self.0.lock().expect("no panic while noting").entry(item.to_owned()).or_default());
    }

    /// Compares the noted changes of each item with the number that `held` reads.
    ///
    /// # Errors
    /// Names the first item that holds too much or too little, and shows the part of the log that is about it.
    pub fn check(&self, log: &Log, held: impl Fn(&str) -> i64) -> Result<(), Contradiction> {
        for (item, Noted { acknowledged, unknown }) in &*self.0.lock().expect("no panic while noting") {
            let (held, least) = (i128::from(held(item)), i128::from(*acknowledged));
            let most = least + i128::from(*unknown);
            if (least..=most).contains(&held) {
                continue;
            }
            let what = if held > most {
                format!(
                    "{} more than the {acknowledged} acknowledged and {unknown} unknown: a change was applied twice",
                    held - most
                )
            } else {
                format!("{} less than the {acknowledged} acknowledged: a change was lost", least - held)
            };
            let log = log.clone().about(item);
            return Err(Contradiction(format!("{item} holds {held}, which is {what}\n{log}")));
        }
        Ok(())
    }

    /// The same as an assertion.
    #[track_caller]
    pub fn assert_nothing_applied_twice(&self, log: &Log, held: impl Fn(&str) -> i64) {
        if let Err(contradiction) = self.check(log, held) {
            panic!("{contradiction}");
        }
    }
}
