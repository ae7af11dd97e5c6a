//! **A webhook received twice.** A payment service delivers an event until it hears 200, perhaps for days and perhaps
//! twice at the same moment. The usual way looks for the id of the event, changes the invoice and stores the id. Two
//! deliveries at once both find nothing. A crash between the two writes counts the payment again. This recipe changes
//! the invoice and records the event in one transaction. The record counts for 30 days: take longer than your service
//! repeats. A refusal is not recorded, so its repeat may succeed. Run it with `cargo run -p fencepost --example webhook`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use fencepost::{Answer, Clock, Error, IdempotencyClaim, IdempotencyError, Reads, Record, Source, Store, Table};
use fencepost_test::Dynamo;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

#[derive(Serialize, Deserialize, Record)]
#[record(key = "invoiceId")]
struct Invoice {
    paid: u64,
}

/// The parts of an event which are the same in each delivery. Leave out the time of the delivery and the like.
#[derive(Deserialize)]
struct Event {
    id: String,
    invoice: String,
    cents: u64,
}

/// The status to answer. Check the signature of the body before.
async fn receive(store: &Store, body: &str) -> Result<u16, Source> {
    let Event { id, invoice, cents } = serde_json::from_str(body)?;
    let invoices: Table<Invoice> = store.table("Invoices");
    let mut reads = Reads::new();
    let item = reads.item("invoice", &invoices, invoice.as_str());
    let claim = IdempotencyClaim::new(&["payment event", &id], &[&invoice, &cents.to_string()])?
        .lasting(Duration::from_hours(30 * 24))?;
    let events = store.idempotency("Events");
    let received = events.change(&claim, reads, |attempt| {
        let now = attempt.get(item)?.ok_or(Error::Refused("there is no such invoice"))?;
        let paid = now.paid.checked_add(cents).ok_or(Error::Refused("that is too much"))?;
        attempt.update_at(item, &Invoice { paid })?;
        Ok(())
    });
    match received.await {
        Ok(Answer::New(()) | Answer::Replayed(())) => Ok(200),
        Err(IdempotencyError::Refused(_) | IdempotencyError::KeyReused) => Ok(422), // and tell an operator
        Err(IdempotencyError::Failed(_)) => Ok(503),                                // the next delivery finds out
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let db = Dynamo::new();
    db.create_table("Invoices", "invoiceId");
    db.create_table("Events", "recordId");
    let clock = db.clone();
    let store = Store::new(&db.client()).with_clock(Clock::new(move || clock.now()));
    store.table("Invoices").create("i-1", &Invoice { paid: 0 }).await.expect("a free key");
    db.engine().take_counts();
    let body = |id: &str, cents: u64| json!({"id": id, "invoice": "i-1", "cents": cents, "sent": "now"}).to_string();
    let first = body("evt-1", 500);
    // Two deliveries come at once. The answers to two writes get lost.
    db.lose_answer().of("TransactWriteItems").times(2);
    let both = tokio::join!(receive(&store, &first), receive(&store, &first));
    assert!(matches!(both, (Ok(200), Ok(200))), "{both:?}");
    for days in [0, 3, 26] {
        tokio::time::sleep(Duration::from_hours(24 * days)).await;
        db.engine().take_counts();
        let status = receive(&store, &first).await.expect("JSON");
        assert_eq!((status, db.engine().take_counts()), (200, (1, 0)), "a repeat reads");
    }
    assert_eq!((receive(&store, &body("evt-2", 200)).await.expect("JSON"), db.engine().take_counts()), (200, (1, 1)));
    assert_eq!(receive(&store, &body("evt-2", 201)).await.expect("JSON"), 422, "an id that says something else");
    assert_eq!(db.number("Invoices", "i-1", "paid"), 700);
    println!("{}", db.log());
}

#[test]
fn two_deliveries_at_once_and_later_ones_count_once() {
    main();
}
