//! A cursor goes on where its page ended, after any changes, and belongs to one query.

use super::messages::{ByAuthor, ByNumber, ByRank, Message, all_numbers, engine, fill, key, message, numbers, table};
use crate::harness::clients::{client_whose, error};
use crate::harness::engine::with_sorted_table;
use fencepost::{Error, Failure, InvalidCursor, Query, Record, Sort, Store, Table};

/// The cursor of the first page.
async fn cursor_of<T: Record>(query: Query<T>) -> String {
    let page = query.pages().next_page().await.expect("an answer").expect("a page");
    page.next.expect("another page").into()
}

async fn is_refused<T: Record>(query: Query<T>, cursor: &str) -> bool {
    let answer = query.after(Some(cursor)).pages().next_page().await;
    match answer {
        Err(Error::Refused(InvalidCursor)) => true,
        Err(failed) => panic!("{failed:?}"),
        Ok(_) => false,
    }
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
    engine.raw(
        "DeleteItem",
        &serde_json::json!({
            "TableName": super::messages::TABLE, "Key": {"room": {"S": "a"}, "number": {"N": "20"}}
        }),
    );
    assert_eq!(all_numbers(query().after(Some(&cursor))).await, [25, 40]);
    assert_eq!(all_numbers(query().after(None)).await, [10, 15, 25, 40]);
    // Another program, another start of this one, and another limit take it as well.
    let elsewhere: Table<Message> = Store::new(&engine.client()).table(super::messages::TABLE);
    assert_eq!(all_numbers(elsewhere.query("a").limit(50).after(Some(&cursor))).await, [25, 40]);
}

#[tokio::test]
async fn a_cursor_of_another_query_is_refused_before_anything_is_sent() {
    let engine = engine();
    let table = table(&engine);
    fill(&table, "a", 1..=3).await;
    fill(&table, "b", 1..=3).await;
    let cursor = cursor_of(table.query("a").limit(1)).await;
    engine.take_log();
    assert!(is_refused(table.query("b"), &cursor).await, "another partition");
    assert!(is_refused(table.query("a").descending(), &cursor).await, "another direction");
    assert!(is_refused(table.query("a").sort(Sort::at_least(0)), &cursor).await, "a bound");
    assert!(is_refused(table.query_index(ByRank, "a"), &cursor).await, "an index");
    let other: Table<Message> = table.store().table("Other");
    assert!(is_refused(other.query("a"), &cursor).await, "another table");
    let bounded = || table.query("a").sort(Sort::at_least(1)).limit(1);
    let of_bound = cursor_of(bounded()).await;
    engine.take_log();
    assert!(is_refused(table.query("a").sort(Sort::at_least(2)), &of_bound).await, "another bound");
    assert!(is_refused(table.query("a").sort(Sort::more_than(1)), &of_bound).await, "another kind of bound");
    assert_eq!(engine.take_counts(), (0, 0));
    assert!(!is_refused(bounded(), &of_bound).await);
}

#[tokio::test]
async fn no_text_but_a_cursor_is_taken_for_one() {
    let engine = engine();
    let table = table(&engine);
    fill(&table, "a", 1..=3).await;
    let cursor = cursor_of(table.query("a").limit(1)).await;
    let changed = |at: usize| {
        let mut text = cursor.clone().into_bytes();
        text[at] = if text[at] == b'A' { b'B' } else { b'A' };
        String::from_utf8(text).expect("letters")
    };
    engine.take_log();
    let mut forged: Vec<_> = (0..cursor.len()).map(changed).collect();
    forged.extend((0..cursor.len()).map(|end| cursor[..end].to_owned()));
    forged.extend([
        format!("{cursor}A"),
        format!("{cursor}="),
        format!(" {cursor}"),
        "é".repeat(9),
        "A".repeat(100_000),
    ]);
    for text in &forged {
        assert!(is_refused(table.query("a"), text).await, "{text:?}");
    }
    assert_eq!(engine.take_counts(), (0, 0));
    assert!(!is_refused(table.query("a"), &cursor).await);
}

/// The source shows how the digest of a cursor is made. DynamoDB refuses a forged key, or the key is a place in the
/// same partition.
#[tokio::test]
async fn a_forged_key_under_the_right_digest_is_refused_or_harmless() {
    let (engine, other) = (engine(), with_sorted_table(super::messages::TABLE, [("room", "S"), ("number", "S")]));
    let (ours, theirs) = (table(&engine), Store::new(&other.client()));
    fill(&ours, "a", 1..=3).await;
    // The same names of table, index and partition, but here the number is text.
    let strange: Table<Strange> = theirs.table(super::messages::TABLE);
    for number in ["1", "2"] {
        strange.create(("a", number), &Strange {}).await.expect("a free key");
    }
    let forged = cursor_of(strange.query("a").limit(1)).await;
    assert!(is_refused(ours.query("a"), &forged).await);
    // A place without any item before.
    fill(&ours, "z", [-7, -6]).await;
    fill(&ours, "y", [2, 9]).await;
    let place = cursor_of(ours.query("y").limit(1)).await;
    assert!(is_refused(ours.query("z"), &place).await);
}

/// Only a cursor can make a well-formed query malformed.
#[tokio::test]
async fn a_query_that_is_rejected_for_another_reason_than_its_cursor_says_so() {
    let engine = engine();
    fill(&table(&engine), "a", 1..=3).await;
    let cursor = cursor_of(table(&engine).query("a").limit(1)).await;
    for (code, cursor) in [("ValidationException", None), ("AccessDeniedException", Some(cursor.as_str()))] {
        let client = client_whose(&engine, move |_, _, _, _| error(400, code));
        let table: Table<Message> = Store::new(&client).table(super::messages::TABLE);
        let answer = table.query("a").after(cursor).pages().next_page().await;
        assert!(matches!(answer, Err(Error::Failed(Failure::Rejected { .. }))), "{code}: {answer:?}");
    }
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, Record)]
#[record(key = "room", sort = "number")]
struct Strange {}

#[tokio::test]
async fn the_cursor_of_an_index_goes_on_among_items_of_one_rank() {
    let engine = engine();
    let table = table(&engine);
    for (room, number) in [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 1)] {
        table.create(&key(room, number), &message("ann", 5)).await.expect("a free key");
    }
    for limit in 1..=4 {
        let mut seen = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let query = table.query_index(ByAuthor, "ann").limit(limit).after(cursor.as_deref());
            let page = query.pages().next_page().await.expect("an answer").expect("a page");
            seen.extend(page.items.iter().map(super::messages::place));
            cursor = page.next.map(String::from);
            if cursor.is_none() {
                break;
            }
        }
        seen.sort_unstable();
        let all = [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 1)].map(|(room, number)| (room.to_owned(), number));
        assert_eq!(seen, all, "limit {limit}");
    }
    let page = table.query_index(ByNumber, 1).limit(2).pages().next_page().await.expect("an answer");
    assert_eq!(numbers(&page.expect("a page")), [1, 1]);
}
