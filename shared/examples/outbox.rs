//! **An outbox.** Other services must hear of each order. Publishing after the write loses the message in a crash
//! between the two. Publishing first tells of orders that may not exist. This recipe stores the message with the order
//! in one transaction. A publisher sends each stored message and removes it. After a crash between these two steps, it
//! sends a copy with the same id, by which receivers drop it. Run it with `cargo run -p fencepost --example outbox`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use fencepost::{Failure, Key, Reads, Record, Source, Store};
use fencepost_test::Dynamo;
use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;

#[derive(Serialize, Deserialize, Record)]
#[record(key = "orderId")]
struct Order {
    cents: u64,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "messageId")]
struct Message {
    text: String,
}

/// Places the order and says so, both or neither, once for each id of an order.
async fn place(store: &Store, id: &str, cents: u64) -> Result<(), Failure> {
    let mut reads = Reads::new();
    // Both are most likely new. So they are not read before the first attempt to write them.
    let order = reads.later("order", &store.table("Orders"), id);
    let message = reads.later("message", &store.table("Outbox"), format!("placed-{id}"));
    let placed = store.transact_with_retry(reads, |attempt| {
        if attempt.get(order)?.is_none() {
            attempt.put_if_absent(order, &Order { cents })?;
            attempt.put_if_absent(message, &Message { text: format!("{cents} cents") })?;
        }
        Ok(())
    });
    Ok(placed.await?)
}

/// Sends all messages of the outbox. Run it on a schedule; several at once only send more copies.
async fn publish(store: &Store, send: impl AsyncFn(&Key, &str) -> Result<(), Source>) -> Result<(), Source> {
    let mut messages = store.table::<Message>("Outbox").scan().items();
    while let Some(message) = messages.try_next().await? {
        send(&message.key, &message.value.text).await?;
        store.table::<Message>("Outbox").delete(message.key).await.ok(); // a message that is still there is sent again
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let db = Dynamo::new();
    db.create_table("Orders", "orderId");
    db.create_table("Outbox", "messageId");
    let store = Store::new(&db.client());
    db.lose_answer().of("TransactWriteItems").once();
    place(&store, "o-1", 500).await.expect("placed");
    assert_eq!(db.engine().take_counts(), (0, 2), "the repeat is applied no second time");
    place(&store, "o-1", 500).await.expect("it was placed");
    let sent = RefCell::new(Vec::new());
    let send = async |id: &Key, text: &str| {
        sent.borrow_mut().push((id.clone(), text.to_owned()));
        if sent.borrow().len() == 1 { Err("the process ends after it has sent this".into()) } else { Ok(()) }
    };
    publish(&store, send).await.expect_err("it ends");
    db.engine().take_counts();
    db.lose_answer().of_writes().once();
    publish(&store, send).await.expect("published");
    assert_eq!(db.engine().take_counts(), (2, 2), "a scan, and a read, a delete and its repeat for the message");
    publish(&store, send).await.expect("the outbox is empty");
    assert_eq!(*sent.borrow(), vec![("placed-o-1".into(), "500 cents".to_owned()); 2], "one message, sent twice");
    println!("{}", db.log());
}

#[test]
fn an_order_has_one_message_and_a_crash_sends_it_again_with_its_id() {
    main();
}
