//! `Table::edit`: bands and windows with what they cost, and answers that do not decode.

use crate::harness::engine::{Engine, number};
use crate::harness::states::set_by_another;
use fencepost::field::Field;
use fencepost::{Edit, ItemVersion, Key, Record, Settings, Store, Table};
use fencepost_test::{Reply, client_answered_by};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

pub const TABLE: &str = "Shelves";
const MAX: i64 = 1000;

/// A shelf with a stock, its status and a number in a map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shelf {
    stock: i64,
    status: String,
    counts: BTreeMap<String, i64>,
}

pub const STOCK: Field<Shelf, i64> = Field::of("stock");
const STATUS: Field<Shelf, String> = Field::of("status");

impl Record for Shelf {
    const PARTITION_KEY: &'static str = "shelfId";
    const ATTRIBUTES: &'static [&'static str] = &["stock", "status", "counts", "note"];
    const SETTINGS: Settings = Settings::own().remembered_writes(8).edit_window(4);
}

/// Takes or gives stock. Below 10, the status is `low`.
pub fn stock(by: i64) -> Edit<Shelf> {
    let bands = [(0..=9, "low"), (10..=MAX, "high")].map(|(range, status)| (range, status.to_owned()));
    STOCK.add(by, 0..=MAX).bands(&STATUS, &STOCK, bands)
}

pub fn shelf(stock: i64) -> Shelf {
    let status = if stock < 10 { "low" } else { "high" }.to_owned();
    Shelf { stock, status, counts: [("sold".to_owned(), 0)].into() }
}

/// An engine with a shelf of 50. No test uses the client that made it.
pub async fn with_shelf() -> (Engine, Key, ItemVersion) {
    let engine = Engine::with_tables(&[(TABLE, Shelf::PARTITION_KEY)]);
    let created = table(&engine).create("s-1", &shelf(50)).await.expect("a free key");
    engine.take_log();
    (engine, Key::from("s-1"), created.at)
}

/// The table of a new client, which has seen nothing yet.
fn table(engine: &Engine) -> Table<Shelf> {
    Store::new(&engine.client()).table(TABLE)
}

pub fn row(engine: &Engine) -> Value {
    engine.row(TABLE, "shelfId", "s-1")
}

pub fn stock_of(engine: &Engine) -> i64 {
    number(&row(engine), "stock")
}

/// Commits of other writers, between two requests of ours.
fn rivals(engine: &Engine, commits: usize) {
    (0..commits).for_each(|_| set_by_another(engine, TABLE, "s-1", &[]));
}

#[tokio::test]
async fn a_band_that_was_guessed_wrong_costs_one_more_write() {
    let (engine, key, at) = with_shelf().await;
    // This client does not know the stock and guesses the last band.
    let added = table(&engine).edit(&key, &stock(-45).seen(at)).await.expect("within the bounds");
    assert_eq!(added.item.map(|item| item.map(|item| item.value)), Ok(Some(shelf(5))));
    assert_eq!(engine.take_counts(), (0, 2));
    let remembering = table(&engine).remembering_items();
    for (by, counts) in [(1, (1, 1)), (1, (0, 1)), (50, (0, 1)), (-50, (0, 1))] {
        remembering.edit(&key, &stock(by)).await.expect("within the bounds");
        assert_eq!(engine.take_counts(), counts, "what is remembered tells the band: {by}");
    }
}

/// A window of 4 versions, from the version seen by the writer.
#[tokio::test(start_paused = true)]
async fn an_add_may_be_as_late_as_its_window_and_costs_one_more_write_after_it() {
    for (commits, writes) in [(0, 1), (3, 1), (4, 2), (7, 2), (8, 2), (100, 2)] {
        let (engine, key, at) = with_shelf().await;
        rivals(&engine, commits);
        let added = table(&engine).edit(&key, &stock(1).seen(at)).await.expect("within the bounds");
        assert_eq!(added.at.version.get(), 2 + commits as u64);
        assert_eq!((stock_of(&engine), engine.take_counts()), (51, (0, writes)), "after {commits} commits");
    }
}

static DECODED: AtomicUsize = AtomicUsize::new(0);

fn decoded<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    DECODED.fetch_add(1, Relaxed);
    i64::deserialize(from)
}

#[derive(Clone, Debug, Serialize, Deserialize, Record)]
#[record(key = "shelfId")]
struct Decoded {
    #[serde(deserialize_with = "decoded")]
    stock: i64,
}

/// An item may be large, and a change may lose many races.
#[tokio::test(start_paused = true)]
async fn an_edit_decodes_its_item_no_more_often_after_lost_races() {
    for races in [0, 1, 10] {
        let engine = Engine::with_tables(&[(TABLE, "shelfId")]);
        let client = client_answered_by(&engine, move |engine, writes, operation, _| {
            if operation == "UpdateItem" && (1..=races).contains(&writes) {
                rivals(engine, 100);
            }
            Reply::After(Duration::ZERO)
        });
        Store::new(&client).table(TABLE).create("s-1", &Decoded { stock: 50 }).await.expect("a free key");
        let cold: Table<Decoded> = Store::new(&client).table(TABLE);
        engine.take_log();
        DECODED.store(0, Relaxed);
        let edited = cold.edit("s-1", &Field::<Decoded, i64>::of("stock").add(1, ..)).await.expect("the item is there");
        assert_eq!(edited.item.expect("it decodes").expect("it is there").value.stock, 51);
        let counts = engine.take_counts();
        assert_eq!((counts.1, DECODED.load(Relaxed)), (races + 1, 2), "before its first write, and for the answer");
    }
}

#[tokio::test]
async fn an_edit_whose_item_does_not_decode_was_applied_and_says_so() {
    let (engine, key, _) = with_shelf().await;
    let text: Field<Shelf, String> = Field::of("counts"); // which is not what the record stores
    let edited = table(&engine).edit(&key, &text.set("none".to_owned())).await.expect("applied");
    let undecodable = edited.item.expect_err("a text is no map");
    let said = undecodable.to_string();
    assert!(said.starts_with("the edit was applied") && said.contains("counts"), "{said}");
    assert_eq!(engine.row(TABLE, "shelfId", "s-1")["counts"]["S"], "none");
}

/// A warm edit does not look at what another program has spoilt since.
#[tokio::test]
async fn an_edit_that_leaves_a_spoilt_row_was_applied_and_says_so() {
    let (engine, key, _) = with_shelf().await;
    let table = table(&engine);
    table.get(&key).await.expect("read");
    table.edit(&key, &STOCK.add(1, ..)).await.expect("within the bounds");
    set_by_another(&engine, TABLE, "s-1", &[("_fence", json!({"S": "spoilt"}))]);
    let edited = table.edit(&key, &STOCK.add(1, ..)).await.expect("applied");
    let said = edited.item.expect_err("a fence is a number").to_string();
    assert!(said.contains("_fence"), "{said}");
    assert_eq!(engine.row(TABLE, "shelfId", "s-1")["stock"]["N"], "52");
}
