//! Items that count the live ones: a listing holds one page at a time, of any number of items.

use crate::harness::engine::{Engine, with_sorted_table};
use crate::harness::seeds::asked_seeds;
use fencepost::{Record, Store, Table};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const TABLE: &str = "Counted";

static ALIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// A value that notes its birth and its end.
#[derive(Debug, Serialize, Deserialize)]
#[serde(from = "Plain")]
struct Counted {
    number: usize,
}

#[derive(Deserialize)]
struct Plain {
    number: usize,
}

impl From<Plain> for Counted {
    fn from(plain: Plain) -> Self {
        MOST.fetch_max(ALIVE.fetch_add(1, SeqCst) + 1, SeqCst);
        Counted { number: plain.number }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, SeqCst);
    }
}

impl Record for Counted {
    const PARTITION_KEY: &'static str = "list";
    const SORT_KEY: Option<&'static str> = Some("at");
    const ATTRIBUTES: &'static [&'static str] = &["number"];
}

/// A row as this crate stores it. Every tenth one is a tombstone.
fn row(number: usize) -> Value {
    let mut row = json!({
        "list": {"S": "all"},
        "at": {"N": number.to_string()},
        "_version": {"N": "1"},
        "_incarnation": {"B": "AAAAAAAAAAA="},
        "_writes": {"M": {}},
        "padding": {"S": "x".repeat(150)},
    });
    if number % 10 == 9 {
        row["_purgeAt"] = json!({"N": "4102444800"});
        row["_version"] = json!({"N": "2"});
        row["_buried"] = json!({"N": "2"});
    } else {
        row["number"] = json!({"N": number.to_string()});
    }
    row
}

fn filled(rows: usize) -> Engine {
    let engine = with_sorted_table(TABLE, [("list", "S"), ("at", "N")]);
    let puts: Vec<_> = (0..rows).map(|number| json!({"PutRequest": {"Item": row(number)}})).collect();
    for puts in puts.chunks(25) {
        let answer = engine.raw("BatchWriteItem", &json!({"RequestItems": {TABLE: puts}}));
        assert!(answer["UnprocessedItems"].as_object().is_none_or(serde_json::Map::is_empty), "{answer}");
    }
    engine
}

/// 10,000 rows; 100,000 where histories are played by the thousand.
#[tokio::test]
async fn any_number_of_items_is_listed_with_one_page_in_memory() {
    let rows = if asked_seeds().is_some_and(|seeds| seeds.count() >= 1000) { 100_000 } else { 10_000 };
    let engine = filled(rows);
    let table: Table<Counted> = Store::new(&engine.client()).table(TABLE);
    for limit in [None, Some(1000), Some(75)] {
        MOST.store(0, SeqCst);
        let query = table.query("all");
        let mut pages = limit.map_or(query.clone(), |limit| query.limit(limit)).pages();
        let (mut next, mut largest, mut count) = (0, 0, 0);
        while let Some(page) = pages.next_page().await.expect("a page") {
            for item in &page.items {
                next += usize::from(next % 10 == 9);
                assert_eq!(item.value.number, next, "no item is left out, and none comes twice");
                next += 1;
            }
            largest = largest.max(page.items.len());
            count += 1;
        }
        assert_eq!(next.next_multiple_of(10), rows);
        let most = MOST.load(SeqCst);
        // After a full page, the listing reads row by row until it finds another item.
        assert!(largest <= most && most <= largest + 1, "{most} items were alive, and the largest page had {largest}");
        assert!(largest < rows / 2 && count > 2, "{count} pages of at most {largest} items");
        assert_eq!(ALIVE.load(SeqCst), 0);
        engine.take_log();
    }
}
