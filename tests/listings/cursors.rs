//! A cursor goes on where its page ended, after any changes. The fuzz target `cursors` shows that it belongs to one query.

use super::messages::{Message, all_numbers, engine, fill, key, message, table};
use crate::harness::clients::{client_whose, error};
use fencepost::{Error, Failure, FailureKind, Query, Record, Store, Table};

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
    let gone = serde_json::json!({"room": {"S": "a"}, "number": {"N": "20"}});
    engine.raw("DeleteItem", &serde_json::json!({"TableName": super::messages::TABLE, "Key": gone}));
    assert_eq!(all_numbers(query().after(Some(&cursor))).await, [25, 40]);
    assert_eq!(all_numbers(query().after(None)).await, [10, 15, 25, 40]);
    // Another program, another start of this one, and another limit take it as well.
    let elsewhere: Table<Message> = Store::new(&engine.client()).table(super::messages::TABLE);
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
        let table: Table<Message> = Store::new(&client).table(super::messages::TABLE);
        let answer = table.query("a").after(cursor).pages().next_page().await;
        assert!(
            matches!(answer, Err(Error::Failed(Failure { kind: FailureKind::Rejected { .. }, .. }))),
            "{code}: {answer:?}"
        );
    }
}
