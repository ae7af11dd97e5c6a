//! Lists, filters, counts and scans.

use fencepost::{Failure, Index, Record, Sort, Store, Table, TableSchema};
use fencepost_test::Engine;
use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, Serialize, Deserialize, Record)]
#[record(key = "sensor", sort = "at")]
struct Reading {
    site: String,
    floor: i64,
    degrees: i64,
    note: String,
}

/// The part of a reading that a chart needs.
#[derive(Serialize, Deserialize, Record)]
#[record(key = "sensor", sort = "at")]
struct Point {
    degrees: i64,
}

struct BySite;

impl Index for BySite {
    type Record = Reading;
    type Shown = Reading;
    const NAME: &'static str = "bySite";
    const PARTITION_KEY: &'static str = "site";
    const MORE_PARTITION_KEYS: &'static [&'static str] = &["floor"];
    const SORT_KEY: Option<&'static str> = Some("at");
}

type Refused = fencepost::Error<fencepost::InvalidCursor>;

async fn chart(readings: &Table<Reading>, sensor: &str) -> Result<Vec<i64>, Refused> {
    let points = readings.query(sensor).sort(Sort::at_least(2)).project::<Point>().items();
    points.map_ok(|point| point.value.degrees).try_collect().await
}

async fn hot(readings: &Table<Reading>) -> Result<u64, Refused> {
    let hot = readings.scan().filter(Reading::FIELDS.degrees.is_more_than(30)).eventually_consistent();
    let parts: Vec<_> = hot.segments(4).map(|part| tokio::spawn(part.count())).collect();
    let mut all = 0;
    for part in parts {
        all += part.await.expect("no panic")?;
    }
    Ok(all)
}

async fn on_floor(readings: &Table<Reading>, site: &str, floor: i64) -> Result<Vec<String>, Refused> {
    let found = readings.query_index(BySite, (site, floor)).descending().limit(20).pages().next_page().await?;
    Ok(found.unwrap_or_default().items.into_iter().map(|reading| reading.value.note).collect())
}

/// The notes of these readings. One that cannot be read does not hide the others.
async fn notes(readings: &Table<Reading>, at: &[i64]) -> Result<Vec<Result<Option<String>, Failure>>, Failure> {
    let read = readings.get_many(at.iter().map(|at| ("roof", *at))).await?;
    Ok(read.into_iter().map(|one| Ok(one?.map(|reading| reading.value.note))).collect())
}

#[tokio::test]
async fn each_read_shows_what_it_is_asked_for() {
    let schema = TableSchema::of::<Reading>().with_index(BySite);
    let schema = ["at", "floor"].iter().fold(schema, |schema, key| schema.with_key_type(key, "N".into()));
    let template: Value = serde_json::from_str(&schema.to_cloudformation("Readings")).expect("JSON");
    let mut table = template["Resources"]["ReadingsTable"]["Properties"].clone();
    table.as_object_mut().expect("properties").remove("TimeToLiveSpecification"); // a request of its own
    let engine = Engine::embedded(&[]);
    engine.raw("CreateTable", &table);
    let readings: Table<Reading> = Store::new(&engine.client()).table("Readings");
    for at in 1..=4 {
        let reading = Reading { site: "berlin".into(), floor: at % 2, degrees: 28 + at, note: format!("no. {at}") };
        readings.create(("roof", at), &reading).await.expect("a free key");
    }
    let broken = json!({"sensor": {"S": "roof"}, "at": {"N": "9"}, "degrees": {"S": "warm"}});
    engine.raw("PutItem", &json!({"TableName": "Readings", "Item": broken}));
    engine.take_counts();
    assert_eq!(
        notes(&readings, &[1, 9, 7]).await.expect("an answer").iter().map(Result::is_ok).collect::<Vec<_>>(),
        [true, false, true]
    );
    assert_eq!(engine.take_counts(), (1, 0));
    readings.delete(("roof", 9)).await.expect("also one that cannot be read");
    engine.take_counts();
    assert_eq!(chart(&readings, "roof").await.expect("points"), [30, 31, 32]);
    assert_eq!(on_floor(&readings, "berlin", 1).await.expect("notes"), ["no. 3", "no. 1"]);
    assert_eq!(engine.take_counts(), (2, 0));
    assert_eq!(hot(&readings).await.expect("a count"), 2);
    assert_eq!(engine.take_counts(), (4, 0), "one for each segment");
}
