//! Records and their keys: `#[derive(Record)]` lists the attributes read and written by serde. Keys of every kind find
//! their items, also in tables with a sort key.

use super::accounts::{Account, TABLE};
use crate::harness::engine::Engine;
use fencepost::{Failure, FailureKind, Key, Record, Settings, Store, Table, UpdateError};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::convert::Infallible;

/// Compares the attributes with those read by serde, and with those written by it.
fn agrees_with_serde<T: Record + Default>() -> &'static [&'static str] {
    assert_eq!(T::fields(), T::ATTRIBUTES);
    let written = T::default().encode().expect("attributes");
    let mut written: Vec<_> = written.keys().map(String::as_str).collect();
    let mut listed = T::ATTRIBUTES.to_vec();
    written.sort_unstable();
    listed.sort_unstable();
    assert_eq!(written, listed);
    T::ATTRIBUTES
}

macro_rules! under {
    ($($rule:literal)*) => {[$({
        #[derive(Default, Serialize, Deserialize, Record)]
        #[record(key = "id")]
        #[serde(rename_all = $rule)]
        struct Named {
            total: u64,
            last_seen_at: Option<u64>,
            r#type: String,
            _hidden_: u64,
            x1_y: u64,
            #[serde(rename = "Own name")]
            renamed: u64,
            #[serde(skip)]
            _cached: u64,
            #[serde(rename(serialize = "same", deserialize = "same"))]
            both: u64,
        }
        agrees_with_serde::<Named>()
    }),*]};
}

#[test]
fn a_rule_of_serde_gives_the_same_names() {
    let lists = under! {
        "lowercase" "UPPERCASE" "PascalCase" "camelCase" "snake_case" "SCREAMING_SNAKE_CASE" "kebab-case"
        "SCREAMING-KEBAB-CASE"
    };
    assert!(lists.iter().all(|list| list.len() == 7), "{lists:?}");
    assert_eq!(lists[3][..3], ["total", "lastSeenAt", "type"]);
}

const HOT: Settings = Settings::own().remembered_writes(64);

#[derive(Default, Serialize, Deserialize, Record)]
#[record(key = "room", sort = "number", expires_at = "endsAt", settings = HOT.edit_window(32))]
#[serde(rename_all(serialize = "camelCase", deserialize = "camelCase"), deny_unknown_fields)]
struct Message<const LONG: bool> {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    text: String,
    ends_at: u64,
}

#[test]
fn a_record_has_the_key_the_expiry_and_the_settings_that_it_was_told() {
    type Long = Message<true>;
    assert_eq!((Long::PARTITION_KEY, Long::SORT_KEY, Long::EXPIRES_AT), ("room", Some("number"), Some("endsAt")));
    assert_eq!((Long::ATTRIBUTES, Long::fields()), (&["text", "endsAt"][..], &["text", "endsAt"][..]));
    assert_eq!(Long::SETTINGS, Settings::own().remembered_writes(64).edit_window(32));
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "sensor", sort = "at")]
struct Reading {
    degrees: i64,
}

const READINGS: &str = "Readings";

/// Readings, sorted by a number.
fn readings() -> (Engine, Table<Reading>) {
    let engine = Engine::with_tables(&[]);
    let attribute = |name: &str, kind: &str| json!({"AttributeName": name, "AttributeType": kind});
    let part = |name: &str, kind: &str| json!({"AttributeName": name, "KeyType": kind});
    let table = json!({
        "TableName": READINGS,
        "KeySchema": [part("sensor", "HASH"), part("at", "RANGE")],
        "AttributeDefinitions": [attribute("sensor", "S"), attribute("at", "N")],
        "BillingMode": "PAY_PER_REQUEST",
    });
    engine.raw("CreateTable", &table);
    let table = Store::new(&engine.client()).table(READINGS);
    (engine, table)
}

#[tokio::test]
async fn a_key_that_does_not_fit_its_table_is_refused_before_anything_is_sent() {
    let (engine, readings) = readings();
    let decide = |reading: &Reading| Ok::<_, Infallible>(Some(reading.clone()));
    let refused = readings.update_with_retry("roof", decide).await.expect_err("half a key");
    assert!(
        matches!(&refused, UpdateError::Failed(Failure { kind: FailureKind::InvalidRecord { reason }, .. }) if reason.contains("at"))
    );
    let refused = readings.get_many([Key::from(("roof", 1)), "roof".into()]).await.expect_err("half a key");
    assert!(matches!(refused.kind, FailureKind::InvalidRecord { .. }), "{refused:?}");
    let accounts: Table<Account> = readings.store().table(TABLE);
    let refused = accounts.get(("a", "b")).await.expect_err("a part too many");
    assert!(matches!(refused.kind, FailureKind::InvalidRecord { .. }));
    assert_eq!(engine.take_counts(), (0, 0));
}
