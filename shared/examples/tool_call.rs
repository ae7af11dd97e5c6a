//! **An agent's tool call that happens once.** A model asks for a refund by a tool. Its framework repeats the call
//! after a timeout or a restart, perhaps without knowing of the first run. The usual tool then refunds again. If it
//! first notes that the call ran, a crash loses the refund. This recipe makes the refund and records the text for the
//! model in one transaction, under the conversation and the id of the call. A repeat gets the same text in any process.
//! The same id with other arguments is refused. Run it with `cargo run -p fencepost --example tool_call`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use fencepost::{Answer, Error, Failure, IdempotencyClaim, IdempotencyError, Reads, Record, Store, Table};
use fencepost_test::Dynamo;
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Serialize, Deserialize, Record)]
#[record(key = "orderId")]
struct Order {
    paid: u64,
    refunded: u64,
}

struct ToolCall<'a> {
    conversation: &'a str,
    /// The id from the answer of the model. The framework gives it again when it repeats the call.
    id: &'a str,
    order: &'a str,
    cents: u64,
}

/// Returns the text for the model. After a failure, the framework repeats the call with the same id.
async fn refund(store: &Store, call: &ToolCall<'_>) -> Result<String, Failure> {
    let ToolCall { conversation, id, order, cents } = *call;
    let claim = IdempotencyClaim::new(&["refund", conversation, id], &[order, &cents.to_string()]);
    let Ok(claim) = claim else { return Ok("a call needs a conversation and an id".to_owned()) };
    let orders: Table<Order> = store.table("Orders");
    let mut reads = Reads::new();
    let item = reads.item("order", &orders, order);
    let calls = store.idempotency::<String>("ToolCalls");
    let refunded = calls.change(&claim, reads, |attempt| {
        let now = attempt.get(item)?.ok_or(Error::Refused("there is no such order"))?.value;
        let refunded = now.refunded.checked_add(cents).filter(|refunded| *refunded <= now.paid);
        let refunded = refunded.ok_or(Error::Refused("that is more than was paid"))?;
        attempt.update_at(item, &Order { refunded, ..now })?;
        Ok(format!("refunded {cents} cents of {order}; {} are left", now.paid - refunded))
    });
    match refunded.await {
        Ok(Answer::New(text) | Answer::Replayed(text)) => Ok(text),
        Err(IdempotencyError::Refused(reason)) => Ok(reason.to_owned()),
        Err(IdempotencyError::KeyReused) => Ok("another call has this id".to_owned()),
        Err(IdempotencyError::Failed(failure)) => Err(failure),
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let db = Dynamo::new();
    db.create_table("Orders", "orderId");
    db.create_table("ToolCalls", "recordId");
    let store = Store::new(&db.client());
    store.table("Orders").create("o-1", &Order { paid: 900, refunded: 0 }).await.expect("a free key");
    db.engine().take_counts();
    let call = ToolCall { conversation: "chat-7", id: "call-1", order: "o-1", cents: 300 };

    // The refund is applied. The tool hears nothing within its time.
    db.lose_answer().of("TransactWriteItems").silently().times(2);
    let hasty = refund(&store.with_time_limit(Duration::from_millis(300)), &call).await;
    assert!(hasty.expect_err("no answer").is_outcome_unknown());
    assert_eq!(db.engine().take_counts(), (1, 2), "a read, the write and its repeat");
    // The framework starts again and repeats the call.
    let text = "refunded 300 cents of o-1; 600 are left";
    assert_eq!(refund(&Store::new(&db.client()), &call).await.expect("an answer"), text);
    assert_eq!(db.engine().take_counts(), (1, 0), "a repeat reads");
    let other = ToolCall { cents: 400, ..call };
    assert_eq!(refund(&store, &other).await.expect("an answer"), "another call has this id");
    assert_eq!(db.number("Orders", "o-1", "refunded"), 300);
    println!("{}", db.log());
}

#[test]
fn a_call_that_is_repeated_after_a_timeout_refunds_once() {
    main();
}
