//! What is seen from outside: the span of each send with its reason and the proof in its answer, the span of each
//! operation, and what an observer is told.

use super::accounts::{Account, TABLE, add_one, engine};
use crate::harness::clients::{Way, client_that, client_whose, client_whose_first_write, error, lost};
use crate::harness::engine::{Engine, is_read};
use aws_sdk_dynamodb::Client;
use fencepost::{Error, Key, Observed, Reads, Store, Table};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::timeout;
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
        let mut text = ["operation", "table", "attempt", "why", "outcome"].map(field).join(" ");
        if span.metadata().target() == OPERATION {
            text = ["operation", "table", "key", "requests", "attempts", "outcome"].map(field).join(" ");
        } else if let Some(parent) = span.parent().filter(|parent| parent.metadata().target() == OPERATION) {
            let parent = parent.extensions();
            text = format!("{text} in {}", parent.get::<Fields>().expect("fields").0["operation"]);
        }
        self.0.lock().expect("no panic").push(text);
    }
}

const OPERATION: &str = "fencepost::operation";

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

/// Each operation, how it ended, its requests and attempts, as an observer is told.
fn observed(store: &Store) -> (Store, Arc<Mutex<Vec<String>>>) {
    let told = Arc::<Mutex<Vec<String>>>::default();
    let listens = told.clone();
    let store = store.with_observer(move |operation: &Observed<'_>| {
        let Observed { place, ending, requests, tally, .. } = operation;
        listens.lock().expect("no panic").push(format!("{} {ending} {requests} {}", place.operation, tally.attempts));
    });
    (store, told)
}

#[tokio::test(start_paused = true)]
async fn an_operation_has_a_span_around_its_sends_and_is_told_to_the_observer() {
    let engine = engine();
    // The answer to the first write is lost.
    let client = client_whose_first_write(&engine, |engine, operation, body| {
        engine.answer(operation, body);
        lost()
    });
    let (direct, key) = table(&engine, &engine.client()).await;
    let (store, told) = observed(&Store::new(&client));
    let table: Table<Account> = store.table(TABLE);
    let (closed, _guard) = Closed::listen_to("fencepost");
    engine.take_log();
    deposit(&table, &key).await;
    let spans = closed.take();
    assert_eq!(
        spans,
        [
            "GetItem Accounts 0 first read in update_with_retry",
            "UpdateItem Accounts 1 first answer_lost in update_with_retry",
            "UpdateItem Accounts 1 answer_lost refused in update_with_retry",
            "update_with_retry Accounts accountId \"a-1\" 3 1 applied",
        ]
    );
    table.get(&key).await.expect("an answer");
    table.create(&key, &Account { balance: 1 }).await.expect_err("it is taken");
    table.get("").await.expect_err("no key");
    table.scan().count().await.expect("a count");
    table.update_with_retry(&key, |_| None).await.expect("it is kept");
    assert_eq!(table.get_many(["a-1", "a-2"]).await.expect("an answer").len(), 2);
    table.delete(&key).await.expect("it is there");
    let (slow, dropped) = observed(&Store::new(&client_that(&engine, |_| Way::Answered(900))));
    let slow: Table<Account> = slow.table(TABLE);
    timeout(Duration::from_millis(100), slow.delete(&key)).await.expect_err("it is dropped");
    assert_eq!(*dropped.lock().expect("no panic"), ["delete dropped 1 0"]);
    let spans = closed.take();
    let seen: Vec<_> = spans.iter().filter(|span| !span.contains(" in ")).map(String::as_str).collect();
    let expected = [
        "get Accounts accountId \"a-1\" 1 0 answered",
        "create Accounts accountId \"a-1\" 1 1 answered",
        "count Accounts  1 0 answered",
        "update_with_retry Accounts accountId \"a-1\" 1 0 answered",
        "get_many Accounts - 1 0 answered",
        "delete Accounts accountId \"a-1\" 2 1 applied",
        "delete Accounts accountId \"a-1\" 1 0 dropped",
    ];
    assert_eq!(seen, expected);
    let told = told.lock().expect("no panic").clone();
    assert_eq!(told[0], "update_with_retry applied 3 1");
    let words = |span: &str| {
        let words: Vec<_> = span.split(' ').collect();
        let [.., requests, attempts, ending] = &words[..] else { panic!("{span}") };
        format!("{} {ending} {requests} {attempts}", words[0])
    };
    assert_eq!(told[1..], expected[..6].iter().map(|span| words(span)).collect::<Vec<_>>(), "it is told the same");
    assert_eq!(direct.get(&key).await.expect("an answer"), None);
    let panics: Table<Account> = direct.store().with_observer(|_| panic!("on purpose")).table(TABLE);
    panics.create(&key, &Account { balance: 1 }).await.expect("the caller is told all the same");
}
