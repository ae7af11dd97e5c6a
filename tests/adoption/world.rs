//! Accounts of a bank. Its other programs keep the version in `version`.

use crate::harness::engine::Engine;
use crate::harness::states;
use fencepost::field::Field;
use fencepost::http::Resource;
use fencepost::{ItemVersion, Key, Names, Record, Settings, Store, Table, UpdateError, Versioned};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::fmt::Debug;
use std::marker::PhantomData;

pub const TABLE: &str = "Accounts";
pub const KEY: &str = "accountId";

/// How a table of accounts is set up.
pub trait Setup: Clone + Debug + PartialEq + Send + Sync + 'static {
    const SETTINGS: Settings;
}

macro_rules! setups {
    ($($(#[$doc:meta])* $name:ident: $settings:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name;

        impl Setup for $name {
            const SETTINGS: Settings = $settings;
        }
    )*};
}

const NAMES: Names = Names::DEFAULT.version("version");

setups! {
    /// The other programs are gone. TTL removes tombstones.
    Alone: Settings::own().names(NAMES);
    /// The other programs demand the version and raise it.
    Shared: Settings::without_ttl().shared_with_versioned_writers().swept().names(NAMES);
    /// The other programs write as they like.
    Anybody: Settings::open_to_any().names(NAMES);
    /// Two Regions write the table.
    Regional: Settings::without_ttl().in_regions().swept().names(NAMES);
}

/// An account in a table with these settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Account<S> {
    pub balance: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(skip)]
    pub of: PhantomData<S>,
}

pub fn balance<S: Setup>() -> Field<Account<S>, i64> {
    Field::of("balance")
}

impl<S: Setup> Record for Account<S> {
    const PARTITION_KEY: &'static str = KEY;
    const ATTRIBUTES: &'static [&'static str] = &["balance", "note"];
    const SETTINGS: Settings = S::SETTINGS;
}

pub fn account<S>(balance: i64) -> Account<S> {
    Account { balance, note: None, of: PhantomData }
}

/// Deposits so much.
pub fn deposit<S: Setup>(amount: i64) -> impl Fn(&Account<S>) -> Result<Option<Account<S>>, Infallible> {
    move |account| Ok(Some(Account { balance: account.balance + amount, ..account.clone() }))
}

pub fn key() -> Key {
    Key::from("a-1")
}

/// The accounts of a new client, which knows nothing yet.
pub fn accounts<S: Setup>(engine: &Engine) -> Table<Account<S>> {
    Store::new(&engine.client()).table(TABLE)
}

/// An engine with an account of 50 of another program, with an attribute that no `Record` declares.
pub fn with_foreign(version: Option<u64>) -> Engine {
    let engine = Engine::with_tables(&[(TABLE, KEY)]);
    put(&engine, &foreign(50, version));
    engine
}

/// The row of an account as another program writes it. It may have no version.
pub fn foreign(balance: i64, version: Option<u64>) -> Value {
    let mut row = json!({KEY: {"S": "a-1"}, "balance": number(balance), "stranger": {"S": "kept"}});
    if let Some(version) = version {
        row["version"] = number(version);
    }
    row
}

pub fn number(number: impl Into<i128>) -> Value {
    json!({"N": number.into().to_string()})
}

/// Another program replaces the row, without a condition.
pub fn put(engine: &Engine, row: &Value) {
    engine.raw("PutItem", &json!({"TableName": TABLE, "Item": row}));
}

/// Another program removes the row, without a condition.
pub fn remove(engine: &Engine) {
    engine.raw("DeleteItem", &json!({"TableName": TABLE, "Key": {KEY: {"S": "a-1"}}}));
}

/// Another program sets attributes of the row, without a condition.
pub fn set(engine: &Engine, attributes: &[(&str, Value)]) {
    states::set(engine, TABLE, "a-1", attributes);
}

/// A number of the row, or 0.
fn number_of(engine: &Engine, name: &str) -> i64 {
    row(engine)[name]["N"].as_str().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Another program adds to the balance as most libraries update: it raises the version, and names no other attribute.
pub fn foreign_update(engine: &Engine, by: i64) {
    let [balance, version] = ["balance", "version"].map(|name| number_of(engine, name));
    set(engine, &[("balance", number(balance + by)), ("version", number(version + 1))]);
}

/// Another program adds to the balance as `PynamoDB` saves: it raises the version, and puts its known attributes. The
/// attributes of this crate are gone.
pub fn foreign_save(engine: &Engine, by: i64) {
    let [balance, version] = ["balance", "version"].map(|name| number_of(engine, name));
    put(engine, &json!({KEY: {"S": "a-1"}, "balance": number(balance + by), "version": number(version + 1)}));
}

pub fn row(engine: &Engine) -> Value {
    engine.row(TABLE, KEY, "a-1")
}

/// The name of the write that made or adopted the row, as its memory has it.
fn name_of(incarnation: &Value) -> String {
    let bytes = incarnation["B"].as_str().unwrap_or_else(|| panic!("bytes: {incarnation}"));
    bytes.trim_end_matches('=').replace('+', "-").replace('/', "_")
}

/// The row after its adoption at this version, with these other attributes.
pub fn adopted(engine: &Engine, at: Option<u64>, rest: Value) -> Value {
    let incarnation = row(engine)["_incarnation"].take();
    let (at, name, mut expected) = (at.unwrap_or(0), name_of(&incarnation), rest);
    assert_eq!(name.len(), 11, "8 bytes: {incarnation}");
    expected["version"] = number(at + 1);
    expected["_writes"] = json!({"M": {name: number(at)}});
    expected["_incarnation"] = incarnation;
    expected
}

/// The item as this client reads it.
pub async fn get<S: Setup>(table: &Table<Account<S>>) -> Option<Versioned<Account<S>>> {
    table.get(&key()).await.expect("a row that can be read")
}

/// Deposits so much, by a decision.
pub async fn update<S: Setup>(table: &Table<Account<S>>, amount: i64) -> Result<Versioned<Account<S>>, UpdateError> {
    table.update_with_retry(&key(), deposit(amount)).await
}

impl<S: Setup> Resource for Account<S> {
    const NOT_FOUND: (&'static str, &'static str) = ("account_not_found", "there is no account with this id");

    fn location(&self, id: &str) -> String {
        format!("/accounts/{id}")
    }

    fn to_json(&self, id: &str, at: ItemVersion) -> impl Serialize {
        json!({"accountId": id, "balance": self.balance, "version": at.version.get()})
    }
}
