//! The span of each send: a subscriber sees the request, its reason and the proof in its answer.

use super::accounts::{Account, TABLE, add_one, engine};
use crate::harness::clients::{Way, client_that, client_whose, error, lost};
use crate::harness::engine::{Engine, is_read};
use aws_sdk_dynamodb::Client;
use fencepost::{Error, Key, Reads, Store, Table};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Instrument, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// The closed spans, each as text: operation, table, attempt, why, outcome.
#[derive(Clone, Default)]
struct Closed(Arc<Mutex<Vec<String>>>);

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Closed {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        context.span(id).expect("a new span").extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        values.record(context.span(id).expect("an open span").extensions_mut().get_mut::<Fields>().expect("fields"));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).expect("a span that closes");
        let extensions = span.extensions();
        let fields = &extensions.get::<Fields>().expect("fields").0;
        let field = |name| fields.get(name).map_or("-", String::as_str);
        let text = ["operation", "table", "attempt", "why", "outcome"].map(field).join(" ");
        self.0.lock().expect("no panic").push(text);
    }
}

impl Closed {
    /// Listens on this thread until the guard is dropped.
    fn listen() -> (Self, DefaultGuard) {
        Self::listen_to("fencepost::send")
    }

    /// Listens to the spans with this target only.
    fn listen_to(target: &str) -> (Self, DefaultGuard) {
        let closed = Closed::default();
        let filter = Targets::new().with_target(target, Level::DEBUG);
        let guard = set_default(tracing_subscriber::registry().with(closed.clone().with_filter(filter)));
        (closed, guard)
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("no panic"))
    }
}

/// A table with the account `a-1`, over this client.
async fn table(engine: &Engine, client: &Client) -> (Table<Account>, Key) {
    let key = Key::from("a-1");
    let direct = Store::new(&engine.client()).table::<Account>(TABLE);
    direct.create(&key, &Account { balance: 1 }).await.expect("a free key");
    (Store::new(client).table(TABLE), key)
}

async fn deposit(table: &Table<Account>, key: &Key) {
    table.update_with_retry(key, add_one).await.expect("applied");
}

/// The spans of a deposit over this client.
async fn spans_of_a_deposit(engine: &Engine, client: &Client) -> Vec<String> {
    let (table, key) = table(engine, client).await;
    let (closed, _guard) = Closed::listen();
    deposit(&table, &key).await;
    closed.take()
}

#[tokio::test(start_paused = true)]
async fn a_resend_says_what_became_of_the_send_before_it() {
    let engine = engine();
    let client = client_whose(&engine, |engine, writes, operation, body| match writes {
        0 if !is_read(operation) => {
            engine.answer(operation, body);
            lost()
        }
        1 if !is_read(operation) => error(400, "ThrottlingException"),
        _ => engine.answer(operation, body),
    });
    assert_eq!(
        spans_of_a_deposit(&engine, &client).await,
        [
            "GetItem Accounts 0 first read",
            "UpdateItem Accounts 1 first answer_lost",
            "UpdateItem Accounts 1 answer_lost not_applied",
            "UpdateItem Accounts 1 not_applied refused",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_hedge_says_so_and_the_send_that_nobody_awaits_any_more_has_no_outcome() {
    let engine = engine();
    // The read, a write with a late answer and its hedge.
    let client = client_that(&engine, |request| Way::Answered(if request == 1 { 900 } else { 2 }));
    let mut spans = spans_of_a_deposit(&engine, &client).await;
    spans.sort();
    assert_eq!(
        spans,
        ["GetItem Accounts 0 first read", "UpdateItem Accounts 1 first -", "UpdateItem Accounts 1 hedge applied",]
    );
}

#[tokio::test(start_paused = true)]
async fn a_span_of_the_caller_is_left_as_it_is() {
    let engine = engine();
    let (table, key) = table(&engine, &engine.client()).await;
    let (closed, _guard) = Closed::listen_to("caller");
    let span = tracing::info_span!(target: "caller", "work", operation = "nightly", table = "users");
    deposit(&table, &key).instrument(span).await;
    assert_eq!(closed.take(), ["nightly users - - -"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_about_several_tables_names_none() {
    let engine = engine();
    let (table, key) = table(&engine, &engine.client()).await;
    let (closed, _guard) = Closed::listen();
    let mut reads = Reads::new();
    let item = reads.later("account", &table, &key);
    let done = table.store().transact_with_retry(reads, |attempt| {
        attempt.put_if_absent(item, &Account { balance: 1 })?;
        Ok::<_, Error>(())
    });
    done.await.expect_err("the account is there");
    assert_eq!(closed.take(), ["TransactWriteItems - 1 first refused"]);
}
