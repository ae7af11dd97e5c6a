//! Edits that compile and cannot be right are refused before anything is sent, by their attribute. `misuse` in
//! `shared/tests` has those that do not compile. What used to be told otherwise is told as it is.

use crate::harness::engine::Engine;
use fencepost::field::{Field, Optional};
use fencepost::{Condition, Edit, Failure, FailureKind, NotEditedReason, Record, Store, Table, UpdateError};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

const TABLE: &str = "Accounts";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "accountId")]
struct Account {
    balance: u64,
    level: i8,
    note: Option<String>,
    owners: Vec<String>,
    rates: BTreeMap<String, f64>,
}

#[derive(Debug, Serialize, Deserialize, Record)]
#[record(key = "accountId")]
struct Counter {
    #[serde(skip_serializing_if = "is_zero")] // and without a default
    count: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn account() -> Account {
    let rates = BTreeMap::from([("day".to_owned(), 0.5)]);
    Account { balance: 5, level: 100, note: None, owners: vec!["Ada".to_owned()], rates }
}

async fn with_account() -> (Engine, Table<Account>) {
    let engine = Engine::with_tables(&[(TABLE, Account::PARTITION_KEY)]);
    let table: Table<Account> = Store::new(&engine.client()).table(TABLE);
    table.create("a-1", &account()).await.expect("a free key");
    engine.take_log();
    (engine, table)
}

#[tokio::test]
async fn an_edit_that_cannot_be_right_is_refused_by_its_attribute_before_anything_is_sent() {
    let (engine, table) = with_account().await;
    let fields = Account::FIELDS;
    let day = fields.rates.member("day").expect("a name");
    let unknown: Field<Account, u64, Optional> = Field::of("ballance");
    let many = |count| Condition::any((0..count).map(|balance| fields.balance.is(balance)));
    let nested = (0..9).fold(fields.balance.is(1), |inner, _| !inner);
    let low = [(0..=9, "low".to_owned())];
    let set = || fields.balance.set(7);
    for (edit, reason) in [
        (fields.rates.set(BTreeMap::new()).and(day.set(1.5)), "changes rates and rates.day"),
        (fields.balance.add(1, ..).and(set()), "changes balance and balance"),
        (fields.balance.add(1, -9..=-1), "balance: no number is within the bounds"),
        (
            set().bands(&fields.note, &fields.balance, low),
            "the bands of note are those of a number that is not added to",
        ),
        (set().only_if(fields.owners.is_less_than(vec![])), "owners: only numbers, texts and bytes have an order"),
        (set().only_if(fields.balance.is_any_of([])), "a condition is made of no others"),
        (set().only_if(many(101)), "at most 100 conditions"),
        (set().only_if(nested), "at most 8 levels"),
        (set().stamp(&unknown, 1), "ballance is not among the attributes"),
        (set().only_if(unknown.is_none()), "ballance is not among the attributes"),
        (Edit::default().stamp(&fields.note, "late".to_owned()), "the edit changes nothing"),
        (day.set(f64::NAN), "rates.day"),
        (set().only_if(day.is_at_most(f64::INFINITY)), "rates.day"),
    ] {
        let refused = table.edit("a-1", &edit).await.expect_err(reason);
        let UpdateError::Failed(Failure { kind: FailureKind::InvalidRecord { reason: said }, .. }) = refused else {
            panic!("{edit:?}: {refused:?}")
        };
        assert!(said.contains(reason), "{said}: {reason}");
    }
    let counters: Table<Counter> = Store::new(&engine.client()).table(TABLE);
    let refused = counters.edit("a-1", &Counter::FIELDS.count.set(0)).await.expect_err("it would not be read");
    assert!(refused.to_string().contains("count: serde skips this value"), "{refused}");
    for name in [String::new(), "x".repeat(256)] {
        assert!(fields.rates.member(&name).is_err());
    }
    assert_eq!(engine.take_log().len(), 0, "nothing was sent");
}

#[tokio::test]
async fn a_refused_edit_names_the_clause_and_what_the_item_has_and_keeps_the_item() {
    let (_, table) = with_account().await;
    let fields = Account::FIELDS;
    for (edit, reason, clause) in [
        (fields.balance.add(-6, ..), NotEditedReason::OutOfRange, "the item has balance = 5"),
        (fields.level.add(28, ..), NotEditedReason::OutOfRange, "the item has level = 100"),
        (fields.rates.member("week").expect("a name").add(number("1"), ..), NotEditedReason::NotANumber, "nothing"),
        (fields.balance.set(1).only_if(fields.note.is_some()), NotEditedReason::NotAsDemanded, "note = null"),
        (fields.balance.set(5).only_if_changed(), NotEditedReason::Unchanged, "balance = 5"),
        (fields.balance.raise_to(5).only_if_changed(), NotEditedReason::Unchanged, "balance = 5"),
    ] {
        let refused = table.edit("a-1", &edit).await.expect_err(clause);
        let UpdateError::Refused(refused) = refused else { panic!("{refused:?}") };
        let said = refused.to_string();
        assert_eq!((refused.reason, refused.item.value), (reason, account()), "{edit:?}");
        assert!(said.starts_with("nothing was changed") && said.contains(clause), "{said}");
    }
}

fn number(text: &str) -> fencepost::Number {
    fencepost::Number::parse(text).expect("a number")
}

#[tokio::test]
async fn none_is_none_in_both_of_its_forms_and_a_guess_that_was_wrong_is_made_again() {
    let (engine, table) = with_account().await;
    let fields = Account::FIELDS;
    let note = |text: &str| text.to_owned();
    let stored = |name: &str| engine.row(TABLE, "accountId", "a-1")[name].clone();
    assert_eq!(stored("note"), json!({"NULL": true}), "serde stores None so");
    for (edit, name, expected) in [
        (fields.note.set_if_none(note("first")), "note", json!({"S": "first"})),
        (fields.note.set_if_none(note("second")), "note", json!({"S": "first"})),
        (fields.note.remove().only_if(fields.note.is(note("first"))), "note", json!(null)),
        (fields.note.set(note("third")).only_if(fields.note.is_none()), "note", json!({"S": "third"})),
        (fields.balance.raise_to(9), "balance", json!({"N": "9"})),
        (fields.balance.raise_to(7), "balance", json!({"N": "9"})),
        (fields.owners.append([note("Eve")]), "owners", json!({"L": [{"S": "Ada"}, {"S": "Eve"}]})),
    ] {
        table.edit("a-1", &edit).await.expect("an account");
        assert_eq!(stored(name), expected, "{edit:?}");
        // A client that has never seen the item guesses, and is right in the end.
        let unseen: Table<Account> = Store::new(&engine.client()).table(TABLE);
        let at = table.get("a-1").await.expect("read").expect("an account").at;
        unseen.edit("a-1", &fields.balance.raise_to(1).seen(at)).await.expect("an account");
    }
    assert_eq!(stored("balance"), json!({"N": "9"}));
}

#[tokio::test]
async fn a_failure_names_its_operation_its_table_and_its_key() {
    let engine = Engine::with_tables(&[]);
    let table: Table<Account> = Store::new(&engine.client()).table("Acounts");
    let said = table.edit("a-1", &Account::FIELDS.balance.set(1)).await.expect_err("no such table").to_string();
    assert!(said.ends_with("(in edit of Acounts, accountId \"a-1\")"), "{said}");
    let failure = table.get("").await.expect_err("an empty key");
    assert!(failure.to_string().ends_with("(in get of Acounts)"), "{failure}");
}
