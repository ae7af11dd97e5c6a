//! A second copy of a refused attempt lands while the next attempt of its change is on its way. The caller is told the
//! committed answer or an unknown outcome. The change is applied once.

mod rows;
mod transactions;

use super::accounts::{self, Account, TABLE};
use crate::harness::engine::Engine;
use crate::harness::late::{Moments, Rival, Story};
use aws_sdk_dynamodb::Client;
use fencepost::{Error, Failure, Record};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const NOTES: &str = "Notes";

/// A note beside accounts, left by a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "noteId")]
struct Note {
    amount: i64,
}

/// The answer to the caller.
enum Told<A> {
    Applied(A),
    NotApplied(String),
    Unknown,
}

fn told<A, E: std::fmt::Debug>(result: Result<A, E>, failure: impl Fn(&E) -> Option<&Failure>) -> Told<A> {
    match result {
        Ok(answer) => Told::Applied(answer),
        Err(error) if matches!(failure(&error), Some(Failure::OutcomeUnknown { .. })) => Told::Unknown,
        Err(error) => Told::NotApplied(format!("{error:?}")),
    }
}

/// Plays a change at all these moments. Returns at how many of them its outcome was told. `answer` says which answer belongs to the rows before and after the effect.
async fn assert_told_is_stored<A: PartialEq + std::fmt::Debug>(
    moments: impl IntoIterator<Item = Moments>,
    engine: impl AsyncFn() -> Engine,
    rival: Rival,
    rows: fn(&Engine) -> Vec<Value>,
    change: impl AsyncFn(&Client) -> Told<A>,
    answer: impl Fn(&[Value], &[Value]) -> A,
) -> usize {
    let (mut copies, mut known) = (0, 0);
    for moments in moments {
        let engine = engine().await;
        let (client, story) = Story::begin(&engine, moments, rival, rows);
        let told = change(&client).await;
        copies += usize::from(story.end(&engine));
        let committed = story.effect().map(|(before, after)| answer(&before, &after));
        match &told {
            Told::Applied(answer) => assert_eq!(committed.as_ref(), Some(answer), "{moments:?}"),
            Told::NotApplied(why) => assert_eq!(committed, None, "{moments:?}: told {why}"),
            Told::Unknown => continue,
        }
        known += 1;
    }
    assert!(copies > 0, "no copy was ever applied");
    known
}

/// The accounts `a-1` and `a-2` of 50, made by another client.
async fn with_accounts() -> Engine {
    let engine = Engine::with_tables(&[(TABLE, Account::PARTITION_KEY), (NOTES, Note::PARTITION_KEY)]);
    accounts::with_accounts(&engine, &["a-1", "a-2"]).await;
    engine
}

fn account(engine: &Engine, id: &str) -> Value {
    engine.row(TABLE, Account::PARTITION_KEY, id)
}

fn note(engine: &Engine, id: &str) -> Value {
    engine.row(NOTES, Note::PARTITION_KEY, id)
}

/// Another client adds to a number of a row of this key.
fn add(engine: &Engine, key: &Value, attribute: &str, by: i64) {
    let expression = format!("SET {attribute} = {attribute} + :by, #v = #v + :one");
    accounts::change(engine, TABLE, key, &expression, &json!({":by": {"N": by.to_string()}, ":one": {"N": "1"}}));
}

fn deposit(engine: &Engine, by: i64) {
    add(engine, &json!({"accountId": {"S": "a-1"}}), "balance", by);
}

fn fill(engine: &Engine, by: i64) {
    add(engine, &json!({"accountId": {"S": "a-2"}}), "balance", by);
}

fn by_transaction<A: std::fmt::Debug>(result: Result<A, Error<()>>) -> Told<A> {
    told(result, |error| if let Error::Failed(failure) = error { Some(failure) } else { None })
}

/// Others commit until the row remembers no earlier write.
fn forget(engine: &Engine) {
    let values = json!({":none": {"M": {}}, ":many": {"N": "16"}});
    accounts::change(engine, TABLE, &json!({"accountId": {"S": "a-1"}}), "SET #w = :none, #v = #v + :many", &values);
}
