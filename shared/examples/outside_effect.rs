//! **An effect outside the table.** An order is charged by a payment service, or an e-mail is sent. No transaction
//! spans both. The usual way asks "is it paid?", charges, and notes the receipt: a crash before the note charges twice,
//! and a note before the charge may be of a charge that never happens. This recipe writes the intent first, with all
//! that the request says. Then it charges under a key made from the order, and notes the receipt. Whoever comes after a
//! crash sends the very same request under the same key. The service must know its keys for as long as you repeat; an
//! e-mail service without keys may send twice, and nothing here prevents it. Run it with `cargo run -p fencepost
//! --example outside_effect`.
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
    answers_to_lose: Cell<u32>,
}

impl Bank {
    fn charge(&self, key: &str, _card: &str, cents: u64) -> Result<String, Source> {
        self.charged.borrow_mut().entry(key.to_owned()).or_insert(cents);
        let Some(left) = self.answers_to_lose.get().checked_sub(1) else { return Ok(format!("receipt of {key}")) };
        self.answers_to_lose.set(left);
        Err("the connection to the bank was reset".into())
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let (db, bank) = (Dynamo::new(), Bank::default());
    db.create_table("Charges", "chargeId");
    let charges: Table<Charge> = Store::new(&db.client()).table("Charges");

    // The bank charges, and this process does not hear so. The answer to its first write is lost as well.
    bank.answers_to_lose.set(1);
    db.lose_answer().of("PutItem").once();
    charge(&charges, &bank, "o-1", "visa-1", 500).await.expect_err("nobody heard of the charge");
    assert_eq!(db.engine().take_counts(), (0, 2), "the intent, and its repeat");
    // The next one finds the intent, and asks under the same key.
    db.lose_answer().of("UpdateItem").once();
    let receipt = charge(&charges, &bank, "o-1", "visa-2", 700).await.expect("the bank knows the key");
    assert_eq!(db.engine().take_counts(), (1, 3), "the refused intent, a read, the receipt and its repeat");
    assert_eq!(charge(&charges, &bank, "o-1", "visa-1", 500).await.expect("it is noted"), receipt);
    assert_eq!(bank.charged.borrow().values().collect::<Vec<_>>(), [&500]);
    println!("{}", db.log());
}

#[test]
fn a_crash_after_the_charge_does_not_charge_again() {
    main();
}
