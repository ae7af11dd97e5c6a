//! **An effect outside the table.** A payment service charges an order. No transaction spans the service and the table.
//! The usual way charges and then notes the receipt: after a crash between the two, a repeat charges again. This recipe
//! writes its intent first, with all of the request. Then it charges under a key made from the order, and notes the
//! receipt. After a crash, a repeat sends the same request under the same key, which the service must still know. A
//! mail service without keys may send twice; nothing here prevents this. Run it with `cargo run -p fencepost --example
//! outside_effect`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use fencepost::{Error, Exists, Record, Source, Store, Table, derived_id};
use fencepost_test::Dynamo;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

#[derive(Serialize, Deserialize, Record)]
#[record(key = "chargeId")]
struct Charge {
    card: String,
    cents: u64,
    receipt: Option<String>,
}

/// Charges the order once, also if it was asked before. Returns the receipt.
async fn charge(charges: &Table<Charge>, bank: &Bank, order: &str, card: &str, cents: u64) -> Result<String, Source> {
    let id = derived_id(&["charge", order]);
    // The first intent counts. A repeat takes the card and the sum from it, and not from its caller.
    let intent = match charges.create(&id, &Charge { card: card.to_owned(), cents, receipt: None }).await {
        Ok(intent) => intent.value,
        Err(Error::Refused(Exists(earlier))) => earlier.value,
        Err(Error::Failed(failure)) => return Err(failure.into()),
    };
    if let Some(receipt) = intent.receipt {
        return Ok(receipt);
    }
    let receipt = bank.charge(&id, &intent.card, intent.cents)?;
    charges.edit(&id, &Charge::FIELDS.receipt.set_if_none(receipt.clone())).await?;
    Ok(receipt)
}

/// A payment service that knows its keys. Some of its answers get lost too.
#[derive(Default)]
struct Bank {
    charged: RefCell<BTreeMap<String, u64>>,
    loses_an_answer: Cell<bool>,
}

impl Bank {
    fn charge(&self, key: &str, _card: &str, cents: u64) -> Result<String, Source> {
        self.charged.borrow_mut().entry(key.to_owned()).or_insert(cents);
        if self.loses_an_answer.take() { Err("the bank was not heard".into()) } else { Ok(format!("receipt of {key}")) }
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let (db, bank) = (Dynamo::new(), Bank::default());
    db.create_table("Charges", "chargeId");
    let charges: Table<Charge> = Store::new(&db.client()).table("Charges");
    charge(&charges, &bank, "o-0", "visa-1", 300).await.expect("charged");
    assert_eq!(db.engine().take_counts(), (1, 2), "the intent, a read and the receipt");

    // The bank charges and is not heard. The answer to the first write is lost as well.
    bank.loses_an_answer.set(true);
    db.lose_answer().of("PutItem").once();
    charge(&charges, &bank, "o-1", "visa-1", 500).await.expect_err("nobody heard of the charge");
    assert_eq!(db.engine().take_counts(), (0, 2), "the intent, and its repeat");
    // The next one finds the intent, and asks under the same key.
    db.lose_answer().of("UpdateItem").once();
    let receipt = charge(&charges, &bank, "o-1", "visa-2", 700).await.expect("the bank knows the key");
    assert_eq!(db.engine().take_counts(), (1, 3), "the refused intent, a read, the receipt and its repeat");
    assert_eq!(charge(&charges, &bank, "o-1", "visa-1", 500).await.expect("it is noted"), receipt);
    assert_eq!(bank.charged.borrow().values().sum::<u64>(), 800);
    println!("{}", db.log());
}

#[test]
fn a_crash_after_the_charge_does_not_charge_again() {
    main();
}
