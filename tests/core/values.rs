//! Values: what a table cannot keep as it is is refused by name before anything is sent; what it keeps is exact.

use crate::harness::engine::Engine;
use fencepost::AttributeValue::{self, M, N};
use fencepost::field::Field;
use fencepost::lww::{Deletion, LwwRecord, OrderKey};
use fencepost::{
    Attributes, Error, Failure, FailureKind, IdempotencyClaim, IdempotencyError, Key, Reads, Record, Source, Store,
    Table, UpdateError,
};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};

const TABLE: &str = "Notes";

fn table<T: Record>() -> (Engine, Table<T>) {
    let engine = Engine::with_tables(&[(TABLE, T::PARTITION_KEY)]);
    let table = Store::new(&engine.client()).table(TABLE);
    (engine, table)
}

#[track_caller]
fn reason_of(failure: &Failure) -> &str {
    let Failure { kind: FailureKind::InvalidRecord { reason }, .. } = failure else { panic!("{failure:?}") };
    reason
}

#[track_caller]
fn failed<T, R>(ended: Result<T, UpdateError<R>>) -> Failure {
    let Err(UpdateError::Failed(failure)) = ended else { panic!("it does not fail") };
    failure
}

/// Creates an item. A create of the wrong value, and an update to it, are refused for this reason before anything is sent.
async fn refuses<T: Record + Clone>(first: &T, wrong: &T, reason: &str) -> (Engine, Table<T>) {
    let (engine, table) = table::<T>();
    table.create("n-1", first).await.expect("a free key");
    engine.take_log();
    let Err(Error::Failed(created)) = table.create("n-2", wrong).await else { panic!("it was not refused: {reason}") };
    assert_eq!(engine.take_counts(), (0, 0), "{reason}");
    let updated = failed(table.update_with_retry("n-1", |_| Some(wrong.clone())).await);
    for said in [reason_of(&created), reason_of(&updated)] {
        assert!(said.starts_with(reason), "{said}");
    }
    assert_eq!(engine.take_counts().1, 0, "nothing was written: {reason}");
    (engine, table)
}

/// Any attributes, under the name `a`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Raw {
    #[serde(skip)]
    attributes: Attributes,
}

const RAW: Field<Raw, AttributeValue> = Field::with("a", Ok);

impl Record for Raw {
    const PARTITION_KEY: &'static str = "noteId";
    const ATTRIBUTES: &'static [&'static str] = &["a"];

    fn encode(&self) -> Result<Attributes, Source> {
        Ok(self.attributes.clone())
    }

    fn decode(attributes: &Attributes) -> Result<Self, Source> {
        Ok(Raw { attributes: Self::own_attributes(attributes, &[]) })
    }

    fn check_read_back(&self, _: &Attributes) -> Result<(), Source> {
        Ok(()) // Names and values are checked all the same.
    }
}

fn raw(name: &str, value: AttributeValue) -> Raw {
    Raw { attributes: Attributes::from([(name.to_owned(), value)]) }
}

fn number(text: &str) -> AttributeValue {
    N(text.to_owned())
}

/// `fencepost-core` has each of these values (`format/value.rs`).
#[tokio::test]
async fn what_a_table_cannot_keep_is_refused_by_its_path_by_every_change_before_anything_is_sent() {
    let (one, wrong) = (raw("a", number("1")), M([("b".to_owned(), number("NaN"))].into()));
    refuses(&one, &raw("test", number("1")), "test is not among the attributes").await;
    let reason = r#"a.b: "NaN": not a number"#;
    let (engine, table) = refuses(&one, &raw("a", wrong.clone()), reason).await;
    let edited = failed(table.edit("n-1", &RAW.set(wrong)).await);
    assert!(reason_of(&edited).starts_with(reason), "{edited}");
    let (decimal, whole): (Field<Raw, f64>, Field<Raw, i64>) = (Field::of("a"), Field::of("a"));
    for edit in [
        whole.add(1, ..).stamp(&decimal, f64::NAN),
        whole.add(1, ..).only_if(decimal.is(1e300)),
        whole.add(1, ..).bands(&decimal, &whole, [(0..=9, f64::NAN)]),
    ] {
        let failure = failed(table.edit("n-1", &edit).await);
        assert!(!reason_of(&failure).is_empty(), "{failure}");
    }
    assert_eq!(engine.take_counts().1, 0, "nothing was written");
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn halved<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(value / 2.0)
}

#[derive(Clone, Debug, Serialize, Deserialize, Record)]
#[record(key = "noteId")]
struct Lossy {
    #[serde(skip_serializing_if = "is_zero")]
    count: u64,
    #[serde(serialize_with = "halved")]
    ratio: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[tokio::test]
async fn a_value_that_would_not_be_read_back_is_refused_by_name_before_anything_is_sent() {
    let lossy = |count, ratio| Lossy { count, ratio };
    let first = lossy(1, 0.0);
    refuses(&first, &lossy(0, 0.0), "it would not be read back: missing field `count`").await;
    refuses(&first, &lossy(1, 0.5), "ratio would be read back as another value").await;
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "noteId")]
struct Tagged {
    count: u64,
    tags: HashSet<String>,
    more: BTreeMap<String, BTreeSet<u64>>,
}

#[tokio::test]
async fn an_attribute_that_another_program_stored_as_a_set_stays_a_set() {
    let odd = Tagged::FIELDS.more.member("odd").expect("a name");
    let texts: Field<Tagged, BTreeMap<String, Vec<String>>> = Field::of("more");
    let texts = texts.member("odd").expect("a name");
    let (engine, table) = table::<Tagged>();
    let tags: Vec<_> = (0..40).map(|number| format!("t{number}")).collect();
    let row = json!({"noteId": {"S": "n-1"}, "count": {"N": "1"}, "tags": {"SS": tags},
        "more": {"M": {"odd": {"NS": ["1", "3"]}, "even": {"L": []}}}});
    engine.raw("PutItem", &json!({"TableName": TABLE, "Item": row}));
    let stored = || {
        let mut row = engine.row(TABLE, "noteId", "n-1");
        let mut members: Vec<String> = serde_json::from_value(row["tags"]["SS"].take()).expect("a set");
        members.sort_unstable();
        (members.len(), row["more"]["M"]["odd"].clone())
    };
    let with = async |change: fn(&mut Tagged)| {
        let decide = |current: &Tagged| {
            let mut next = current.clone();
            change(&mut next);
            next
        };
        table.update_with_retry("n-1", decide).await
    };
    with(|note| note.count += 1).await.expect("a note");
    assert_eq!(stored(), (40, json!({"NS": ["1", "3"]})));
    with(|note| note.tags = note.tags.drain().collect()).await.expect("a note");
    let sent = engine.take_log().pop().expect("a write").body;
    assert!(!sent.to_string().contains("t39"), "an equal set is not sent");
    with(|note| note.tags.extend(["new".to_owned()])).await.expect("a note");
    with(|note| note.more.get_mut("odd").expect("a set").extend([5])).await.expect("a note");
    assert_eq!(stored(), (41, json!({"NS": ["1", "3", "5"]})));
    let more = json!({"TableName": TABLE, "Key": {"noteId": {"S": "n-1"}}, "UpdateExpression": "ADD tags :more",
        "ExpressionAttributeValues": {":more": {"SS": ["theirs"]}}});
    engine.raw("UpdateItem", &more);
    table.edit("n-1", &odd.set([7].into())).await.expect("a note");
    assert_eq!(stored(), (42, json!({"NS": ["7"]})));
    let unchanged = table.edit("n-1", &odd.set([7].into()).only_if_changed()).await.expect_err("it is so");
    assert!(unchanged.to_string().contains("already so"), "{unchanged}");

    engine.take_log();
    let emptied = failed(with(|note| note.tags.clear()).await);
    assert_eq!(engine.take_counts().1, 0, "nothing was sent");
    assert!(reason_of(&emptied).starts_with("tags: a set is stored here"), "{emptied}");
    let edited = failed(table.edit("n-1", &texts.set(vec!["x".to_owned()])).await);
    assert!(reason_of(&edited).starts_with("more.odd: a set is stored here"), "{edited}");
    assert_eq!(
        (stored(), engine.take_counts().1),
        ((42, json!({"NS": ["7"]})), 2),
        "its write was refused, then burned"
    );
}

#[tokio::test]
async fn an_answer_that_a_repeat_would_get_as_another_one_is_refused_before_anything_is_sent() {
    async fn refused<A: Serialize + for<'de> Deserialize<'de> + Clone + PartialEq>(answer: A) -> (usize, Failure) {
        let engine = Engine::with_tables(&[("Records", "recordId")]);
        let answers = Store::new(&engine.client()).idempotency("Records");
        let claim = IdempotencyClaim::new(&["m-1"], &[]).expect("a scope");
        let ended = answers.change::<&str>(&claim, Reads::new(), |_| Ok(answer.clone())).await;
        let Err(IdempotencyError::Failed(failure)) = ended else { panic!("it was recorded") };
        (engine.take_counts().1, failure)
    }
    for (writes, failure) in [
        refused(Some(None::<u64>)).await,
        refused(serde_json::from_str::<Value>("1.0").expect("JSON")).await,
        refused(u128::MAX.to_string().parse::<f64>().expect("a number").sqrt() * f64::MAX).await,
    ] {
        assert!(writes == 0 && reason_of(&failure).contains("answer"), "{failure}");
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "noteId")]
struct Instance {
    term: u64,
    node: String,
    limits: BTreeMap<String, u64>,
}

impl LwwRecord for Instance {
    const ORDERED_BY: &'static str = "term";
    const NAMED_BY: &'static str = "node";
}

#[tokio::test]
async fn an_item_that_does_not_decode_is_named_with_its_key_and_can_be_deleted() {
    let (engine, table) = table::<Instance>();
    let keys = ["n-1", "n-2", "n-3"];
    for (key, daily) in keys.map(|key| (key, json!({"S": "x"}))).into_iter().chain([("good", json!({"N": "1"}))]) {
        let row = json!({"noteId": {"S": key}, "term": {"N": "7"}, "node": {"S": "a"},
            "limits": {"M": {"daily": daily}}});
        engine.raw("PutItem", &json!({"TableName": TABLE, "Item": row}));
    }
    let read = table.get_many(keys.into_iter().chain(["n-9", "good"])).await.expect("an answer");
    assert!(read[1].is_err() && read[2].is_err() && matches!(read[3], Ok(None)), "each key has an answer of its own");
    assert!(matches!(read[4], Ok(Some(_))), "{:?}", read[4]);
    let failure = read[0].as_ref().expect_err("it does not decode").to_string();
    assert!(failure.contains("limits.daily: ") && failure.contains("noteId") && failure.contains("n-1"), "{failure}");
    let page = table.query("n-1").pages().next_page().await.expect_err("it does not decode").to_string();
    assert_eq!(page.matches("the row with the key").count(), 1, "{page}");
    table.delete("n-1").await.expect("an item");
    let mut reads = Reads::new();
    let item = reads.item("note", &table, "n-2");
    let deleted = table.store().transact_with_retry(reads, |attempt| {
        attempt.delete_at(item)?;
        Ok::<_, Error>(())
    });
    deleted.await.expect("an item");
    let newest = table.store().lww_table::<Instance>(TABLE);
    let deleted = newest.delete("n-3", &OrderKey { order: 6, name: None }).await.expect("an instance");
    assert!(matches!(deleted, Deletion::Superseded { .. }), "{deleted:?}");
    newest.delete("n-3", &OrderKey { order: 7, name: None }).await.expect("an instance");
    for key in &keys[..2] {
        assert_eq!(table.get(*key).await.expect("an answer"), None);
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "noteId", expires_at = "ends")]
struct Ending {
    ends: Value,
}

#[tokio::test]
async fn an_end_at_which_ttl_does_not_look_is_refused_before_anything_is_sent() {
    let ends = |ends: Value| Ending { ends };
    let (wrong, reason) = (json!("1900000000"), "ends: the end of a value is a whole number of epoch seconds");
    let (engine, table) = refuses(&ends(json!(1_900_000_000)), &ends(wrong.clone()), reason).await;
    let edited = failed(table.edit("n-1", &Ending::FIELDS.ends.set(wrong)).await);
    assert!(reason_of(&edited).starts_with(reason), "{edited}");
    assert_eq!(engine.take_counts().1, 0, "nothing was written");
    table.create("n-2", &ends(Value::Null)).await.expect("a value without an end");
}

#[tokio::test]
async fn a_key_that_is_empty_or_too_long_or_of_another_table_is_refused_before_anything_is_sent() {
    #[derive(Clone, Debug, Serialize, Deserialize, Record)]
    #[record(key = "noteId", sort = "line")]
    struct Line {
        text: String,
    }
    let engine = Engine::with_tables(&[]);
    let store = Store::new(&engine.client());
    let (notes, lines) = (store.table::<Raw>(TABLE), store.table::<Line>(TABLE));
    for (key, reason) in [
        (Key::from(String::new()), "noteId is a part of the key, and is empty"),
        (Key::from(vec![]), "noteId is a part of the key, and is empty"),
        (Key::from("x".repeat(2049)), "noteId is a part of the key, and has 2049 bytes"),
        (Key::from(("x", "")), "line is a part of the key, and is empty"),
        (Key::from(("x", "ü".repeat(513))), "line is a part of the key, and has 1026 bytes"),
    ] {
        let got = if key.sort().is_some() {
            lines.get(&key).await.map(drop)
        } else {
            let listed = notes.query(key.partition()).pages().next_page().await;
            let Err(Error::Failed(failure)) = listed else { panic!("{key:?} was listed") };
            assert!(reason_of(&failure).contains(reason), "{failure}");
            notes.get(&key).await.map(drop)
        };
        let failure = got.expect_err(reason);
        assert!(reason_of(&failure).contains(reason), "{failure}");
    }
    // Half a key, and a part too many.
    let half = lines.get_many([Key::from(("x", 1)), "x".into()]).await.expect_err("half a key");
    assert!(reason_of(&half).contains("line"), "{half}");
    let too_many = notes.get(("x", "y")).await.expect_err("a part too many");
    assert!(matches!(too_many.kind, FailureKind::InvalidRecord { .. }), "{too_many}");
    let lease = store.leases("Leases").get("").await.expect_err("no key");
    assert!(reason_of(&lease).contains("is empty"), "{lease}");
    assert_eq!(engine.take_log().len(), 0, "nothing was sent");
    lines.get(Key::from(("x".repeat(2048), "ü".repeat(512)))).await.expect_err("it is sent, and there is no table");
    assert_eq!(engine.take_log().len(), 1);
}
