//! A second copy of a refused attempt lands while the next attempt of its change is on its way. The caller is told the
//! committed answer or an unknown outcome. The change is applied once.

use super::accounts::{self, Account, TABLE};
use crate::harness::engine::{Engine, number};
use crate::harness::late::{Moments, Rival, Story};
use aws_sdk_dynamodb::Client;
use fencepost::testing::edit_or_update;
use fencepost::{Edit, Error, Failure, Record, Settings, Store, Table, UpdateError, Version, Versioned};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::convert::Infallible;

mod transactions;

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

/// Plays a change at all these moments. Returns at how many of them its outcome was told. `answer` says which answer
/// belongs to the rows before and after the effect.
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

fn one(engine: &Engine) -> Vec<Value> {
    vec![account(engine, "a-1")]
}

fn both(engine: &Engine) -> Vec<Value> {
    ["a-1", "a-2"].map(|id| account(engine, id)).into()
}

fn both_with_the_note(engine: &Engine) -> Vec<Value> {
    vec![account(engine, "a-1"), account(engine, "a-2"), note(engine, "n-1")]
}

/// The copy arrives before the second write of the client, right after the other writer.
fn before_the_second() -> impl Iterator<Item = Moments> {
    Moments::all().filter(|moments| (moments.rival, moments.copy) == (1, 1))
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

/// Another client takes 30 from the first account, and pays them in again.
fn poorer_for_a_while() -> Rival {
    Rival::of(|engine| deposit(engine, -30), |engine| deposit(engine, 30))
}

fn by_transaction<A: std::fmt::Debug>(result: Result<A, Error<()>>) -> Told<A> {
    told(result, |error| if let Error::Failed(failure) = error { Some(failure) } else { None })
}

/// Others commit until the row remembers no earlier write.
fn forget(engine: &Engine) {
    let values = json!({":none": {"M": {}}, ":many": {"N": "16"}});
    accounts::change(engine, TABLE, &json!({"accountId": {"S": "a-1"}}), "SET #w = :none, #v = #v + :many", &values);
}

/// A shelf with a note, which only an update leaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "accountId")]
struct Shelf {
    stock: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

fn stock(engine: &Engine, by: i64) {
    add(engine, &json!({"accountId": {"S": "a-1"}}), "stock", by);
}

async fn with_shelf() -> Engine {
    let engine = Engine::with_tables(&[(TABLE, Shelf::PARTITION_KEY)]);
    let shelves: Table<Shelf> = Store::new(&engine.client()).table(TABLE);
    let created = shelves.create("a-1", &Shelf { stock: 70, note: None }).await;
    created.expect("a free key");
    engine
}

/// Takes 60, or half of it with a note.
async fn take_or_halve(client: &Client) -> Told<(u64, i64, Option<String>)> {
    let shelves: Table<Shelf> = Store::new(client).table(TABLE);
    let halve =
        |shelf: &Shelf| Ok::<_, Infallible>(Some(Shelf { stock: shelf.stock / 2, note: Some("halved".to_owned()) }));
    let take = Edit::add("stock", -60, 0..=1000);
    let changed = edit_or_update(&shelves, &"a-1".into(), &take, halve).await;
    let shown = |shelf: Versioned<Shelf>| (shelf.version().get(), shelf.value.stock, shelf.value.note);
    told(changed.map(shown), |error| if let UpdateError::Failed(failure) = error { Some(failure) } else { None })
}

/// The shelf as it was left.
fn left(_: &[Value], after: &[Value]) -> (u64, i64, Option<String>) {
    let version = u64::try_from(number(&after[0], "_version")).expect("a version");
    (version, number(&after[0], "stock"), after[0]["note"]["S"].as_str().map(ToOwned::to_owned))
}

#[tokio::test(start_paused = true)]
async fn an_add_or_an_update_is_answered_by_the_one_that_was_committed() {
    let rival = Rival::of(|engine| stock(engine, -20), |engine| stock(engine, 40));
    assert_told_is_stored(Moments::all(), with_shelf, rival, one, take_or_halve, left).await;
}

/// Nothing could be stored, so the change fails. The edit before it was refused, and its second copy may arrive.
#[tokio::test(start_paused = true)]
async fn a_change_that_fails_while_an_attempt_is_open_is_told_as_not_applied_only_if_no_copy_lands() {
    let too_large = async |client: &Client| {
        let shelves: Table<Shelf> = Store::new(client).table(TABLE);
        let fill =
            |shelf: &Shelf| Ok::<_, Infallible>(Some(Shelf { stock: shelf.stock, note: Some("x".repeat(400 * 1024)) }));
        let changed = edit_or_update(&shelves, &"a-1".into(), &Edit::add("stock", -60, 0..=1000), fill).await;
        assert!(matches!(changed, Err(UpdateError::Failed(_))), "it is too large");
        told(changed.map(drop), |error| if let UpdateError::Failed(failure) = error { Some(failure) } else { None })
    };
    let unreadable = async |client: &Client| {
        let shelves: Table<Shelf> = Store::new(client).table(TABLE);
        let edited = shelves.edit("a-1", &Edit::add("stock", -60, 0..=1000)).await;
        told(edited.map(drop), |error| if let UpdateError::Failed(failure) = error { Some(failure) } else { None })
    };
    let poorer = Rival::of(|engine| stock(engine, -20), |engine| stock(engine, 40));
    let broken = Rival::of(
        |engine| set_note(engine, -20, &json!({"BOOL": true})),
        |engine| {
            set_note(engine, 40, &json!({"S": ""}));
        },
    );
    let known = assert_told_is_stored(Moments::all(), with_shelf, poorer, one, too_large, |_, _| ()).await;
    assert!(known > 0, "where the burn comes first, the failure is told");
    let known = assert_told_is_stored(Moments::all(), with_shelf, broken, one, unreadable, |_, _| ()).await;
    assert!(known > 0, "where the burn comes first, the failure is told");
}

/// Another client adds to the stock, and leaves a note in a form of its own.
fn set_note(engine: &Engine, by: i64, note: &Value) {
    stock(engine, by);
    let values = json!({":note": note, ":one": {"N": "1"}});
    accounts::change(engine, TABLE, &json!({"accountId": {"S": "a-1"}}), "SET note = :note, #v = #v + :one", &values);
}

/// An account in a table that other programs write in any way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "accountId", settings = Settings::open_to_any())]
struct Open {
    balance: i64,
}

/// Another program puts the account at version 1.
fn put(engine: &Engine, balance: i64) {
    let item = json!({"accountId": {"S": "a-1"}, "balance": {"N": balance.to_string()}, "_version": {"N": "1"}});
    engine.raw("PutItem", &json!({"TableName": TABLE, "Item": item}));
}

async fn beside_others() -> Engine {
    let engine = Engine::with_tables(&[(TABLE, Open::PARTITION_KEY)]);
    put(&engine, 50);
    engine
}

/// The second copy of the first attempt removes the row and with it every trace.
#[tokio::test(start_paused = true)]
async fn a_delete_that_finds_no_row_after_an_attempt_that_may_have_removed_it_is_unknown() {
    let change = async |client: &Client| {
        let accounts: Table<Open> = Store::new(client).table(TABLE);
        let deleted = accounts.delete("a-1").await;
        let version = deleted.map(Version::get);
        told(version, |error| if let UpdateError::Failed(failure) = error { Some(failure) } else { None })
    };
    let answer = |before: &[Value], _: &[Value]| u64::try_from(number(&before[0], "_version")).expect("a version") + 1;
    let rival = Rival::of(|engine| put(engine, 80), |engine| put(engine, 50));
    let during = Moments::all().filter(|moments| moments.rival == 1 && moments.copy <= 2);
    assert_told_is_stored(during, beside_others, rival, one, change, answer).await;
}

/// Where the other program puts the old values back after the call, nothing is promised.
#[tokio::test(start_paused = true)]
async fn an_update_beside_any_writers_is_answered_by_the_attempt_that_was_committed() {
    let change = async |client: &Client| {
        let accounts: Table<Open> = Store::new(client).table(TABLE);
        let seven_more = |account: &Open| Ok::<_, Infallible>(Some(Open { balance: account.balance + 7 }));
        let changed = accounts.update_with_retry("a-1", seven_more).await;
        let shown = |account: Versioned<Open>| (account.version().get(), account.value.balance);
        told(changed.map(shown), |error| if let UpdateError::Failed(failure) = error { Some(failure) } else { None })
    };
    let rival = Rival::of(|engine| put(engine, 80), |engine| put(engine, 50));
    let during = Moments::all().filter(|moments| moments.rival == 1 && moments.copy <= 2);
    assert_told_is_stored(during, beside_others, rival, one, change, version_and_balance).await;
}

/// No burn is possible there, so a failure is unknown.
#[tokio::test(start_paused = true)]
async fn an_update_beside_any_writers_that_fails_after_an_open_attempt_is_unknown() {
    let change = async |client: &Client| {
        let accounts: Table<Open> = Store::new(client).table(TABLE);
        let seven_more = |account: &Open| Ok::<_, Infallible>(Some(Open { balance: account.balance + 7 }));
        let failed = accounts.update_with_retry("a-1", seven_more).await;
        told(failed.map(drop), |error| if let UpdateError::Failed(failure) = error { Some(failure) } else { None })
    };
    let unreadable = |engine: &Engine| {
        let item = json!({"accountId": {"S": "a-1"}, "balance": {"S": "none"}, "_version": {"N": "1"}});
        engine.raw("PutItem", &json!({"TableName": TABLE, "Item": item}));
    };
    let rival = Rival::of(unreadable, |engine| put(engine, 50));
    assert_told_is_stored(Moments::all().take(1), beside_others, rival, one, change, |_, _| ()).await;
}

fn version_and_balance(_: &[Value], after: &[Value]) -> (u64, i64) {
    (u64::try_from(number(&after[0], "_version")).expect("a version"), number(&after[0], "balance"))
}

/// TTL removes the row, if it is a tombstone.
fn remove(engine: &Engine) {
    let request = json!({"TableName": TABLE, "Key": {"accountId": {"S": "a-1"}},
        "ConditionExpression": "attribute_exists(#purge)", "ExpressionAttributeNames": {"#purge": "_purgeAt"}});
    engine.answer("DeleteItem", request.to_string().as_bytes());
}

/// The tombstone has ended, and TTL removes it before the create has taken its place.
#[tokio::test(start_paused = true)]
async fn a_create_that_a_tombstone_refused_is_answered_by_the_attempt_that_was_committed() {
    let engine = async || {
        let engine = Engine::with_tables(&[(TABLE, Account::PARTITION_KEY)]);
        let tombstone = json!({"accountId": {"S": "a-1"}, "_version": {"N": "2"}, "_purgeAt": {"N": "1"},
            "_incarnation": {"B": "AAAAAAAAAAE="}, "_writes": {"M": {"AAAAAAAAAAE": {"N": "0"}}}});
        engine.raw("PutItem", &json!({"TableName": TABLE, "Item": tombstone}));
        engine
    };
    let change = async |client: &Client| {
        let accounts: Table<Account> = Store::new(client).table(TABLE);
        let created = accounts.create("a-1", &Account { balance: 50 }).await;
        let shown = |account: Versioned<Account>| (account.version().get(), account.value.balance);
        told(created.map(shown), |error| if let Error::Failed(failure) = error { Some(failure) } else { None })
    };
    let rival = Rival::of(|_| (), remove);
    assert_told_is_stored(Moments::all(), engine, rival, one, change, version_and_balance).await;
}

#[tokio::test(start_paused = true)]
async fn an_add_that_the_row_may_have_forgotten_is_not_followed_by_an_update() {
    let rival = Rival { after: forget, ..Rival::of(|engine| stock(engine, -20), |engine| stock(engine, 40)) };
    assert_told_is_stored(before_the_second(), with_shelf, rival, one, take_or_halve, left).await;
}
