//! The events of a play, moment by moment: the conclusions of Fencepost from its traces at `DEBUG`, and the charge of
//! `DynamoDB` for each request.

use fencepost_test::{Engine, Sent, size_of_item};
use serde_json::{Map, Value, json};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Span, Subscriber, debug_span};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// What has happened so far on all sides.
pub type Told = Arc<Mutex<Vec<Value>>>;

/// A time in milliseconds.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Tells the moments of one side of a play.
#[derive(Clone)]
pub struct Teller {
    told: Told,
    begun: Instant,
    side: usize,
}

impl Teller {
    /// A teller with a clock from `begun` on.
    pub fn new(told: &Told, begun: Instant, side: usize) -> Self {
        Teller { told: told.clone(), begun, side }
    }

    /// How many milliseconds of virtual time have passed.
    pub fn now(&self) -> u64 {
        millis(self.begun.elapsed())
    }

    /// Tells an event of a client, or of all clients if `client` is none.
    pub fn moment(&self, client: Option<usize>, kind: &str, members: Value) {
        let mut moment = Map::new();
        moment.insert("at".to_owned(), json!(self.now()));
        moment.insert("side".to_owned(), json!(self.side));
        moment.insert("client".to_owned(), json!(client));
        moment.insert("kind".to_owned(), json!(kind));
        if let Value::Object(members) = members {
            moment.extend(members);
        }
        self.told.lock().expect("no panic while telling").push(Value::Object(moment));
    }
}

const CLIENT: &str = "console::client";
const SIDE: &str = "console::side";
const JUDGE: &str = "fencepost::judge";

/// The span of all requests of a client.
pub fn client_span(number: usize) -> Span {
    debug_span!(target: CLIENT, "client", number)
}

/// The span of all events on a side.
pub fn side_span(number: usize) -> Span {
    debug_span!(target: SIDE, "side", number)
}

/// A subscriber for the verdicts of the judge. It tells each to the teller of its side.
///
/// The filter stands before everything, not before one layer: a filter of one layer lets the SDK make spans now and
/// then, for which it draws from the same random numbers as for its retries. Then a seed would not replay.
pub fn subscriber(tellers: Vec<Teller>) -> impl Subscriber + Send + Sync {
    let filter = Targets::new().with_targets([(CLIENT, Level::DEBUG), (SIDE, Level::DEBUG), (JUDGE, Level::DEBUG)]);
    tracing_subscriber::registry().with(filter).with(Verdicts(Arc::new(Mutex::new(tellers))))
}

struct Verdicts(Arc<Mutex<Vec<Teller>>>);

/// The number of a span, or the verdict of an event.
#[derive(Default)]
struct Fields {
    number: usize,
    verdict: String,
    version: Option<u64>,
}

impl Visit for Fields {
    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "number" => self.number = usize::try_from(value).unwrap_or_default(),
            "version" => self.version = Some(value),
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "verdict" {
            value.clone_into(&mut self.verdict);
        }
    }
}

struct Number(usize);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Verdicts {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(Number(fields.number));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let number_of = |target: &str| {
            let mut spans = context.event_scope(event)?;
            let span = spans.find(|span| span.metadata().target() == target)?;
            let number = span.extensions().get::<Number>()?.0;
            Some(number)
        };
        let (Some(side), client) = (number_of(SIDE), number_of(CLIENT)) else { return };
        let tellers = self.0.lock().expect("no panic while telling");
        if let Some(teller) = tellers.get(side) {
            teller.moment(client, "judged", json!({ "text": in_words(&fields) }));
        }
    }
}

fn in_words(Fields { verdict, version, .. }: &Fields) -> String {
    let text = match (verdict.as_str(), version) {
        ("landed", Some(version)) => {
            return format!("the row remembers this write: it was applied and made version {version}");
        }
        ("never_applied", _) => "the row does not know this write: it was not applied, and never will be",
        ("open", _) => "the row does not know this write: it was not applied so far",
        ("unproved", _) => "the row proves nothing about this write",
        (other, _) => other,
    };
    text.to_owned()
}

/// What a unit of reads or writes is charged for, in bytes.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html>
const KB: usize = 1024;

/// The write units of a request: one for each started KB of each row, twice as many in a transaction. A refused write
/// is charged too.
pub fn write_units(engine: &Engine, sent: &Sent) -> i64 {
    let times = if sent.operation() == "TransactWriteItems" { 2 } else { 1 };
    sent.steps.iter().map(|step| times * units(size_of_item(&engine.row_at(&step.table, &step.key)), KB)).sum()
}

/// The read units of a consistent read: one for each started 4 KB of each row.
pub fn read_units(engine: &Engine, sent: &Sent) -> i64 {
    let rows = sent.steps.iter().filter(|step| step.key != Value::Null);
    rows.map(|step| units(size_of_item(&engine.row_at(&step.table, &step.key)), 4 * KB)).sum()
}

fn units(bytes: usize, of: usize) -> i64 {
    i64::try_from(bytes.div_ceil(of).max(1)).unwrap_or(i64::MAX)
}
