//! When time runs out: the answer comes before the deadline, and says what is known.

use crate::budgets::{Account, TABLE, engine, rival};
use crate::engine::{Engine, body_of, client_over, operation_of, response};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use fencepost::error::{CreateError, UpdateError};
use fencepost::{Call, Deadline, Decision, Failure, Key, Table};
use serde_json::json;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::Instant;

/// Which requests get no answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Silent {
    Always,
    ForWrites,
    ForWritesThatItApplies,
}

#[derive(Debug)]
struct Silence(Silent, EngineOf);

struct EngineOf(Engine);

impl std::fmt::Debug for EngineOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

impl HttpConnector for Silence {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let operation = operation_of(&request);
        let silent = self.0 == Silent::Always || operation != "GetItem";
        if silent && self.0 != Silent::ForWritesThatItApplies {
            return HttpConnectorFuture::new(std::future::pending());
        }
        let (status, body) = self.1.0.answer(&operation, &body_of(&request));
        if silent && status == 200 {
            return HttpConnectorFuture::new(std::future::pending());
        }
        HttpConnectorFuture::ready(response(status, body))
    }
}

fn silent_table(engine: &Engine, silent: Silent) -> Table<Account> {
    Table::new(&client_over(Silence(silent, EngineOf(engine.clone()))), TABLE)
}

fn add_one(account: &Account) -> Decision<Account, ()> {
    Decision::Put(Account { balance: account.balance + 1 })
}

const ALLOWED: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn a_table_that_never_answers_is_unavailable_to_a_read_before_the_deadline() {
    let began = Instant::now();
    let table = silent_table(&engine(), Silent::Always);
    let call = Call::new(Deadline::within(ALLOWED));
    let failure = table.get(&Key::from("a-1"), &call).await.expect_err("no answer");
    assert!(matches!(failure, Failure::Unavailable { .. }), "{failure:?}");
    assert!(began.elapsed() <= ALLOWED);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_never_answered_is_unknown_before_the_deadline() {
    let engine = engine();
    Table::new(&engine.client(), TABLE)
        .create(&Key::from("a-1"), &Account { balance: 1 }, &Call::new(Deadline::within(ALLOWED)))
        .await
        .expect("a free key");
    let began = Instant::now();
    let table = silent_table(&engine, Silent::ForWrites);
    let call = Call::new(Deadline::within(ALLOWED));
    let created = table.create(&Key::from("a-2"), &Account { balance: 1 }, &call).await.expect_err("no answer");
    assert!(matches!(created, CreateError::Failed(Failure::OutcomeUnknown { .. })), "{created:?}");
    assert!(began.elapsed() <= ALLOWED);
    let began = Instant::now();
    let call = Call::new(Deadline::within(ALLOWED));
    let updated = table.update_with_retry(&Key::from("a-1"), &call, add_one).await.expect_err("no answer");
    assert!(matches!(updated, UpdateError::Failed(Failure::OutcomeUnknown { .. })), "{updated:?}");
    assert!(began.elapsed() <= ALLOWED);
    assert!(call.tally().lost_answers > 2, "the identical write was sent again: {:?}", call.tally());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_applied_and_never_answered_is_found_out_by_its_resend() {
    let engine = engine();
    let table = silent_table(&engine, Silent::ForWritesThatItApplies);
    let (key, call) = (Key::from("a-1"), Call::new(Deadline::within(ALLOWED)));
    let created = table.create(&key, &Account { balance: 1 }, &call).await.expect("the resend shows it");
    let updated = table.update_with_retry(&key, &call, add_one).await.expect("the resend shows it");
    assert_eq!((created.version().get(), updated.version().get(), updated.value.balance), (1, 2, 2));
    let deleted = table.delete_at_version(&key, updated.at, &call).await.expect("the resend shows it");
    assert_eq!((deleted.get(), call.tally().lost_answers), (3, 3));
}

/// Answers everything with a 500, which the SDK retries on its own unless told not to.
#[derive(Debug, Default)]
struct Failing(Arc<AtomicU32>);

impl HttpConnector for Failing {
    fn call(&self, _: HttpRequest) -> HttpConnectorFuture {
        self.0.fetch_add(1, Relaxed);
        let error = json!({"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError", "message": "on purpose"});
        HttpConnectorFuture::ready(response(500, error.to_string()))
    }
}

#[tokio::test(start_paused = true)]
async fn the_sdks_own_retries_are_switched_off_whatever_client_is_given() {
    let sent = Arc::new(AtomicU32::new(0));
    let client = client_over(Failing(sent.clone()));
    let retrying = client.config().to_builder().retry_config(RetryConfig::standard().with_max_attempts(5)).build();
    let table: Table<Account> = Table::new(&Client::from_conf(retrying), TABLE);
    let call = Call::new(Deadline::within(ALLOWED));
    let created = table.create(&Key::from("a-1"), &Account { balance: 1 }, &call).await.expect_err("no answer");
    assert!(matches!(created, CreateError::Failed(Failure::OutcomeUnknown { .. })), "{created:?}");
    assert_eq!(sent.load(Relaxed), call.tally().lost_answers, "every request was seen by the one owner of retries");
}

#[tokio::test(start_paused = true)]
async fn hopeless_contention_ends_before_the_deadline_with_nothing_applied() {
    let engine = engine();
    let table = Table::new(&engine.client(), TABLE);
    let key = Key::from("a-1");
    table.create(&key, &Account { balance: 0 }, &Call::new(Deadline::within(ALLOWED))).await.expect("a free key");
    let began = Instant::now();
    let call = Call::new(Deadline::within(ALLOWED));
    let rivals = Cell::new(0);
    let decide = |_: &Account| {
        rival(&engine, "a-1");
        rivals.set(rivals.get() + 1);
        Decision::<_, ()>::Put(Account { balance: -1000 })
    };
    let lost = table.update_with_retry(&key, &call, decide).await.expect_err("a rival is always first");
    assert!(matches!(lost, UpdateError::Failed(Failure::Contention { attempts }) if attempts == call.tally().attempts));
    assert!(began.elapsed() <= ALLOWED);
    let balance = engine.row(TABLE, "accountId", "a-1")["balance"]["N"].clone();
    assert_eq!(balance, json!(rivals.get().to_string()), "only the rival wrote");
}
