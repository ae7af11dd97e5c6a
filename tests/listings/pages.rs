//! The items, the cost and the end of a page, what an index shows, and many keys in one read.
//! A cursor goes on where its page ended, after any changes. The fuzz target `cursors` shows its bond to one query.

use super::messages::{
    Authored, ByAuthor, ByNumber, ByRank, Headline, Headlines, Keys, Message, RankByNumber, Ranked, TABLE, all,
    all_numbers, engine, fill, key, message, numbers, place, table,
};
use crate::harness::clients::{client_whose, error};
use crate::harness::engine::Engine;
use fencepost::{Error, Failure, FailureKind, Key, Query, Record, Sort, Store, Table};
use futures_util::StreamExt;
use serde_json::{Value, json};

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
async fn a_row_that_cannot_be_read_is_named_and_is_no_end_and_a_stream_of_items_goes_on_after_it() {
    let engine = engine();
    let table = table(&engine);
    fill(&table, "attic", 1..=3).await;
    damage(&engine, 2);
    let mut pages = table.query("attic").limit(1).pages();
    assert_eq!(numbers(&pages.next_page().await.expect("an answer").expect("a page")), [1]);
    for _ in 0..2 {
        let failed = pages.next_page().await.expect_err("it is damaged");
        let named = matches!(&failed, Error::Failed(Failure { kind: FailureKind::CorruptItem { reason }, .. }) if reason.contains("attic"));
        assert!(named, "{failed}");
    }
    let items = table.query("attic").limit(1).items();
    let places: Vec<_> = items.take(5).map(|item| item.map(|item| place(&item).1).ok()).collect().await;
    assert_eq!(places, [Some(1), None, Some(3)]);
    let refused = table.query("attic").after(Some("of nobody")).items();
    assert_eq!(refused.take(5).map(|item| item.is_ok()).collect::<Vec<_>>().await, [false], "another error ends it");
}

/// Makes a message of the attic unreadable.
fn damage(engine: &Engine, number: i64) {
    let key = json!({"room": {"S": "attic"}, "number": {"N": number.to_string()}});
    let mut row = engine.raw("GetItem", &json!({"TableName": TABLE, "Key": key}))["Item"].take();
    row["text"] = json!({"N": "1"});
    engine.raw("PutItem", &json!({"TableName": TABLE, "Item": row}));
}

/// Tombstones are in those whose keys are the table's.
#[tokio::test]
async fn an_index_shows_the_live_items_with_the_attributes_that_it_has() {
    let engine = engine();
    let table = table(&engine);
    fill(&table, "a", 1..=3).await;
    fill(&table, "b", 2..=3).await;
    table.delete(&key("a", 2)).await.expect("it was there");
    table.delete(&key("b", 3)).await.expect("it was there");
    let at = table.get(&key("a", 3)).await.expect("an answer").map(|item| item.at);
    let headlines = all(table.query_index(Headlines, "ann")).await.expect("pages").remove(0).items;
    let mut shown: Vec<_> = headlines.iter().map(|item| (place(item), item.value.rank, item.at.is_some())).collect();
    shown.sort();
    let place_of = |room: &str, number| (room.to_owned(), number);
    assert_eq!(
        shown,
        [("a", 1), ("a", 3), ("b", 2)].map(|(room, number)| (place_of(room, number), 100 - number, true))
    );
    let latest = headlines.iter().find(|item| place(item) == place_of("a", 3)).expect("it is there");
    assert_eq!((&latest.value, latest.at), (&Headline { author: "ann".to_owned(), rank: 97 }, at));
    let keys = all(table.query_index(Keys, "ann")).await.expect("pages").remove(0).items;
    assert!(
        keys.iter().all(|item| item.value == Authored { author: "ann".to_owned() } && item.at.is_none()),
        "{keys:?}"
    );
    assert_eq!(keys.iter().map(|item| place(item).1).collect::<Vec<_>>(), [1, 2, 3]);
    let ranks = all(table.query_index(RankByNumber, 3)).await.expect("pages").remove(0).items;
    assert_eq!(
        ranks.iter().map(|item| (place(item), &item.value)).collect::<Vec<_>>(),
        [(place_of("a", 3), &Ranked { rank: 97 })]
    );
    assert_eq!(all_numbers(table.query_index(ByNumber, 2)).await, [2]);
    assert_eq!(all_numbers(table.query_index(ByRank, "a").sort(Sort::at_most(97))).await, [3]);
}

#[tokio::test]
async fn items_come_in_the_order_of_the_keys_with_none_for_a_missing_one_and_twice_for_one_that_is_named_twice() {
    let engine = engine();
    let table = table(&engine);
    fill(&table, "a", 1..=250).await;
    table.delete(&key("a", 7)).await.expect("it was there");
    let asked: Vec<i64> = (1..=260).rev().collect();
    let keys: Vec<_> = asked.iter().map(|number| key("a", *number)).collect();
    engine.take_log();
    let found = table.get_many(&keys).await.expect("an answer");
    let log = engine.take_log();
    let sizes: Vec<_> = log.iter().map(|asked| keys_in(&asked.body).len()).collect();
    assert_eq!(sizes, [100, 100, 60]);
    assert!(log.iter().all(|asked| asked.body["RequestItems"][TABLE]["ConsistentRead"] == true));
    assert_eq!(found.len(), asked.len());
    for (number, item) in asked.into_iter().zip(found) {
        let expected = (number <= 250 && number != 7).then(|| message("ann", 100 - number));
        assert_eq!(item.expect("it decodes").map(|item| item.value), expected, "{number}");
    }
    assert!(table.get_many([] as [Key; 0]).await.expect("an answer").is_empty());
    assert_eq!(engine.take_counts(), (0, 0), "no keys, no request");
    let keys = [1, 2, 1, 7, 1].map(|number| key("a", number));
    let found = table.get_many(&keys).await.expect("an answer");
    let ranks: Vec<_> = found.iter().map(|item| item.as_ref().ok()?.as_ref().map(|item| item.value.rank)).collect();
    assert_eq!(ranks, [Some(99), Some(98), Some(99), None, Some(99)]);
    let log = engine.take_log();
    assert_eq!((log.len(), keys_in(&log[0].body).len()), (1, 3));
}

fn keys_in(body: &Value) -> Vec<Value> {
    body["RequestItems"][TABLE]["Keys"].as_array().cloned().unwrap_or_default()
}

/// The cursor of the first page.
async fn cursor_of<T: Record>(query: Query<T>) -> String {
    let page = query.pages().next_page().await.expect("an answer").expect("a page");
    page.next.expect("another page").into()
}

#[tokio::test]
async fn a_cursor_survives_the_creation_the_change_and_the_deletion_of_items() {
    let engine = engine();
    let table = table(&engine);
    fill(&table, "a", [10, 20, 30, 40]).await;
    let query = || table.query("a").limit(2);
    let cursor = cursor_of(query()).await;
    table.delete(&key("a", 20)).await.expect("it was there");
    table.create(&key("a", 15), &message("ann", 0)).await.expect("a free key");
    table.create(&key("a", 25), &message("ann", 0)).await.expect("a free key");
    table.delete(&key("a", 30)).await.expect("it was there");
    assert_eq!(all_numbers(query().after(Some(&cursor))).await, [25, 40]);
    // The row itself is gone, as when TTL has removed it.
    let gone = json!({"room": {"S": "a"}, "number": {"N": "20"}});
    engine.raw("DeleteItem", &json!({"TableName": TABLE, "Key": gone}));
    assert_eq!(all_numbers(query().after(Some(&cursor))).await, [25, 40]);
    assert_eq!(all_numbers(query().after(None)).await, [10, 15, 25, 40]);
    // Another program, another start of this one, and another limit take it as well.
    let elsewhere: Table<Message> = Store::new(&engine.client()).table(TABLE);
    assert_eq!(all_numbers(elsewhere.query("a").limit(50).after(Some(&cursor))).await, [25, 40]);
}

/// Only a cursor can make a well-formed query malformed.
#[tokio::test]
async fn a_query_that_is_rejected_for_another_reason_than_its_cursor_says_so() {
    let engine = engine();
    fill(&table(&engine), "a", 1..=3).await;
    let cursor = cursor_of(table(&engine).query("a").limit(1)).await;
    for (code, cursor) in [("ValidationException", None), ("AccessDeniedException", Some(cursor.as_str()))] {
        let client = client_whose(&engine, move |_, _, _, _| error(400, code));
        let table: Table<Message> = Store::new(&client).table(TABLE);
        let answer = table.query("a").after(cursor).pages().next_page().await;
        assert!(
            matches!(answer, Err(Error::Failed(Failure { kind: FailureKind::Rejected { .. }, .. }))),
            "{code}: {answer:?}"
        );
    }
}
