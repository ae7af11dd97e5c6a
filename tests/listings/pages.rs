//! The items, the cost and the end of a page.

use super::messages::{ByAuthor, ByNumber, ByRank, all, all_numbers, engine, fill, key, message, numbers, table};
use crate::harness::engine::Engine;
use fencepost::{Call, Deadline, Error, Failure, Record, Sort, Store, Table};
use futures_util::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[tokio::test]
async fn a_limit_counts_items_and_the_last_page_says_that_it_is_the_last() {
    let engine = engine();
    let table = table(&engine);
    fill(&table, "attic", 1..=6).await;
    for (limit, sizes) in [(0, &[1; 6][..]), (1, &[1; 6]), (2, &[2, 2, 2]), (4, &[4, 2]), (6, &[6]), (7, &[6])] {
        engine.take_log();
        let pages = all(table.query("attic").limit(limit)).await.expect("pages");
        assert_eq!(pages.iter().map(|page| page.items.len()).collect::<Vec<_>>(), sizes, "limit {limit}");
        assert_eq!(pages.iter().flat_map(numbers).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6], "limit {limit}");
        let (last, others) = pages.split_last().expect("a page");
        assert!(last.next.is_none() && others.iter().all(|page| page.next.is_some()));
        assert_eq!(engine.take_counts(), (sizes.len(), 0), "one read per page");
    }
    let item = all(table.query("attic").limit(1)).await.expect("pages").remove(0).items.remove(0);
    assert_eq!(item.version().map(fencepost::Version::get), Some(1));
    assert_eq!(item.versioned(), table.get(&key("attic", 1)).await.expect("an answer"));
}

#[tokio::test]
async fn only_a_global_index_is_read_eventually_consistent() {
    let engine = engine();
    let table = table(&engine);
    engine.take_log();
    all(table.query("a")).await.expect("pages");
    all(table.query_index(ByRank, "a")).await.expect("pages");
    all(table.query_index(ByAuthor, "a")).await.expect("pages");
    all(table.query_index(ByNumber, 1)).await.expect("pages");
    let log = engine.take_log();
    let consistent: Vec<_> = log.iter().map(|asked| asked.body["ConsistentRead"] == true).collect();
    assert_eq!(consistent, [true, true, false, false]);
}

#[tokio::test]
async fn deleted_items_are_left_out_and_do_not_shorten_a_page() {
    let engine = engine();
    let table = table(&engine);
    fill(&table, "attic", 1..=12).await;
    for number in [2, 3, 4, 5, 6, 9, 12] {
        table.delete(&key("attic", number)).await.expect("it was there");
    }
    let pages = all(table.query("attic").limit(2)).await.expect("pages");
    assert_eq!(pages.iter().map(numbers).collect::<Vec<_>>(), [vec![1, 7], vec![8, 10], vec![11]]);
    table.create(&key("attic", 4), &message("bob", 1)).await.expect("a free key");
    assert_eq!(all_numbers(table.query("attic").descending().limit(3)).await, [11, 10, 8, 7, 4, 1]);
}

#[tokio::test]
async fn a_page_that_meets_only_tombstones_ends_after_ten_reads_and_says_where_to_go_on() {
    let engine = engine();
    let table = table(&engine);
    fill(&table, "attic", 1..=25).await;
    for number in 1..=24 {
        table.delete(&key("attic", number)).await.expect("it was there");
    }
    let mut pages = table.query("attic").limit(1).pages();
    engine.take_log();
    let first = pages.next_page().await.expect("an answer").expect("a page");
    assert_eq!((first.items.len(), first.next.is_some(), engine.take_counts()), (0, true, (10, 0)));
    let second = pages.next_page().await.expect("an answer").expect("a page");
    assert_eq!((numbers(&second), second.next.is_none()), (vec![25], true));
    assert!(pages.next_page().await.expect("an answer").is_none());
    assert!(pages.next_page().await.expect("an answer").is_none());
    let resumed = table.query("attic").limit(1).after(first.next.as_ref().map(fencepost::Cursor::as_str));
    assert_eq!(all_numbers(resumed).await, [25]);
}

#[tokio::test]
async fn the_pages_are_a_stream_too() {
    let engine = engine();
    let table = table(&engine);
    fill(&table, "attic", 1..=5).await;
    let stream = table.query("attic").limit(2).pages().into_stream();
    let pages: Vec<_> = std::pin::pin!(stream).try_collect().await.expect("pages");
    assert_eq!(pages.iter().map(numbers).collect::<Vec<_>>(), [vec![1, 2], vec![3, 4], vec![5]]);
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_named_and_is_not_taken_for_the_end() {
    let engine = engine();
    let table = table(&engine);
    fill(&table, "attic", 1..=3).await;
    damage(&engine, 2);
    let mut pages = table.query("attic").limit(1).pages();
    assert_eq!(numbers(&pages.next_page().await.expect("an answer").expect("a page")), [1]);
    for _ in 0..2 {
        let failed = pages.next_page().await.expect_err("it is damaged");
        let named = matches!(&failed, Error::Failed(Failure::CorruptItem { reason }) if reason.contains("attic"));
        assert!(named, "{failed}");
    }
}

#[tokio::test]
async fn a_stream_of_pages_ends_after_its_first_error() {
    let engine = engine();
    let table = table(&engine);
    fill(&table, "attic", 1..=3).await;
    damage(&engine, 2);
    let stream = table.query("attic").limit(1).pages().into_stream();
    let pages: Vec<_> = std::pin::pin!(stream).take(5).map(|page| page.map(|page| numbers(&page)).ok()).collect().await;
    assert_eq!(pages, [Some(vec![1]), None]);
}

/// Makes a message of the attic unreadable.
fn damage(engine: &Engine, number: i64) {
    let mut row = engine.raw("GetItem", &get("attic", number))["Item"].take();
    row["text"] = serde_json::json!({"N": "1"});
    engine.raw("PutItem", &serde_json::json!({"TableName": super::messages::TABLE, "Item": row}));
}

fn get(room: &str, number: i64) -> serde_json::Value {
    let key = serde_json::json!({"room": {"S": room}, "number": {"N": number.to_string()}});
    serde_json::json!({"TableName": super::messages::TABLE, "Key": key})
}

#[derive(Clone, Debug, Serialize, Deserialize, Record)]
#[record(key = "noteId")]
struct Note {
    text: String,
}

#[tokio::test]
async fn a_table_without_a_sort_key_has_one_item_per_partition_and_takes_no_bound() {
    let engine = Engine::with_tables(&[("Notes", "noteId")]);
    let notes: Table<Note> = Store::new(&engine.client()).table("Notes");
    notes.create("n-1", &Note { text: "x".to_owned() }).await.expect("a free key");
    let pages = all(notes.query("n-1").limit(1)).await.expect("pages");
    assert_eq!((pages.len(), pages[0].items.len(), pages[0].next.is_none()), (1, 1, true));
    engine.take_log();
    let refused = all(notes.query("n-1").sort(Sort::at_least(1))).await.expect_err("there is no sort key");
    assert!(matches!(refused, Error::Failed(Failure::InvalidRecord { .. })), "{refused}");
    assert_eq!(engine.take_counts(), (0, 0));
}

#[tokio::test]
async fn a_query_without_time_is_unavailable_and_its_pages_can_be_asked_for_again() {
    let engine = engine();
    let table = table(&engine);
    fill(&table, "attic", 1..=2).await;
    let table: Table<super::messages::Message> =
        Store::new(&crate::harness::clients::client_without_answers(&engine, crate::harness::clients::Silent::Always))
            .table(super::messages::TABLE);
    tokio::time::pause();
    let call = Call::new(Deadline::within(Duration::from_secs(2)));
    let failed = table.in_call(&call).query("attic").pages().next_page().await.expect_err("nobody answers");
    assert!(matches!(failed, Error::Failed(Failure::Unavailable { .. })), "{failed}");
}
