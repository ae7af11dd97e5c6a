//! `Table::edit` beyond adds: values that are set and removed under conditions, alone and in transactions.

use super::accounts::{Account, call};
use super::add::{Shelf, TABLE, change_shelf, row, with_shelf};
use crate::harness::clients::client_whose_first_write;
use crate::harness::engine::Engine;
use fencepost::AttributeValue;
use fencepost::{
    Attempt, Bounds, Edit, Error, Failure, Item, Key, NotEdited, Number, Reads, Record, RetryPolicy, Settings, Store,
    Table, UpdateError,
};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use std::cell::Cell;
use std::convert::Infallible;

fn word<T, U>(edited: &Result<T, UpdateError<NotEdited<U>>>) -> &'static str {
    match edited {
        Ok(_) => "edited",
        Err(UpdateError::Refused(NotEdited::NotAsDemanded(_))) => "not as demanded",
        Err(UpdateError::Refused(NotEdited::Unchanged(_))) => "unchanged",
        Err(UpdateError::Refused(NotEdited::ConditionFailed(_))) => "a condition failed",
        Err(UpdateError::Failed(Failure::InvalidRecord { .. })) => "invalid",
        Err(_) => "another error",
    }
}

/// Bytes as `DynamoDB` stores them.
struct Bytes(&'static [u8]);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

/// A set of texts.
struct Names(&'static [&'static str]);

impl Serialize for Names {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_dynamo::string_set::serialize(&self.0, serializer)
    }
}

/// The shelf has the note `a, b`, a set, and the byte 7 in `counts`. Only `DynamoDB` compares these.
#[tokio::test]
async fn a_condition_is_met_for_a_client_that_has_read_the_item_if_it_is_met_for_one_that_has_not() {
    let names = |names: &[&str]| AttributeValue::Ss(names.iter().map(|&name| name.to_owned()).collect());
    let set = |value: AttributeValue| Edit::default().and_set_attribute("note", value).only_if_changed();
    let most = |edit: Edit, bytes| edit.only_if_at_most("counts", &Bytes(bytes));
    for (edit, expected) in [
        (most(Edit::set("note", &1), &[8]), "edited"),
        (most(Edit::set("note", &1), &[6]), "not as demanded"),
        (set(names(&["b", "a"])), "unchanged"),
        (set(names(&["b", "c"])), "edited"),
        (most(set(names(&["b", "c"])), &[6]), "a condition failed"),
        (most(Edit::set("note", &1), &[6]).only_if("note", &Names(&["b", "a"])), "not as demanded"),
        (most(Edit::set("note", &1), &[8]).only_if("note", &Names(&["b", "a"])), "edited"),
        (
            Edit::default().and_set_attribute("stock", AttributeValue::N("50.0".to_owned())).only_if_changed(),
            "unchanged",
        ),
        (Edit::set("note", &1).only_if_at_most("stock", &true), "invalid"),
    ] {
        for is_warm in [false, true] {
            let (engine, key, at) = with_shelf().await;
            let values = json!({":note": {"SS": ["a", "b"]}, ":counts": {"B": "Bw=="}});
            change_shelf(&engine, "SET note = :note, counts = :counts", &values);
            let edit = if is_warm { edit.clone().seen(at) } else { edit.clone() };
            let edited = Store::new(&engine.client()).table::<Bare>(TABLE).edit(&key, &edit).await;
            assert_eq!(word(&edited), expected, "warm: {is_warm}, {edit:?}");
            if expected == "invalid" {
                assert_eq!(engine.take_counts(), (0, 0), "{edit:?}");
            }
        }
    }
}

/// A shelf of which only the stock is read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bare {
    pub stock: i64,
}

impl Record for Bare {
    const PARTITION_KEY: &'static str = Shelf::PARTITION_KEY;
    const ATTRIBUTES: &'static [&'static str] = Shelf::ATTRIBUTES;
    const SETTINGS: Settings = Shelf::SETTINGS;
}

/// `DynamoDB` would refuse the edit too, for one more request.
#[tokio::test]
async fn an_item_with_another_whole_number_than_demanded_refuses_without_a_write() {
    let (engine, key, _) = with_shelf().await;
    let table = Store::new(&engine.client()).table::<Shelf>(TABLE);
    let refused = table.edit(&key, &Edit::set("note", &1).only_if("stock", &51)).await;
    assert_eq!((word(&refused), engine.take_counts()), ("not as demanded", (1, 0)));
}

/// In a transaction, an edit of a known item is refused by its conditions as an add is by its bounds.
#[tokio::test]
async fn a_transaction_edits_under_conditions() {
    for (demanded, expected) in [("high", json!("sold out")), ("low", Value::Null)] {
        let (engine, _, _) = with_shelf().await;
        let store = Store::new(&engine.client());
        let mut reads = Reads::new();
        let shelf = reads.item("shelf", &store.table::<Shelf>(TABLE), Key::from("s-1"));
        let edited = store.transact_with_retry(reads, |attempt| {
            attempt.edit(shelf, &Edit::set("note", &"sold out").only_if("status", &demanded))?;
            Ok::<_, Error<Infallible>>(())
        });
        let edited = edited.await;
        assert_eq!(edited.is_ok(), !expected.is_null(), "{edited:?}");
        assert_eq!(row(&engine)["note"]["S"], expected);
    }
}

#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "shelfId")]
struct Expiring {
    note: String,
}

#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "shelfId", settings = Settings::without_ttl().removed())]
struct Removed {
    note: String,
}

#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "shelfId", settings = Settings::without_ttl().shared_with_versioned_writers().swept())]
struct Shared {
    note: String,
}

/// Creates a receipt and edits a shelf, whose row is gone before the transaction arrives.
async fn edit_without_a_row<T: Record>(edit: &Edit, is_read: bool) {
    let engine = Engine::with_tables(&[(TABLE, Shelf::PARTITION_KEY), ("Receipts", Account::PARTITION_KEY)]);
    let shelves: Table<Expiring> = Store::new(&engine.client()).table(TABLE);
    shelves.create("s-1", &Expiring { note: "full".to_owned() }).await.expect("a free key");
    let client = client_whose_first_write(&engine, |engine, operation, body| {
        engine.raw("DeleteItem", &json!({"TableName": TABLE, "Key": {"shelfId": {"S": "s-1"}}}));
        engine.answer(operation, body)
    });
    let store = Store::new(&client);
    let mut reads = Reads::new();
    let receipt = reads.later("receipt", &store.table::<Account>("Receipts"), "r-1");
    let table: Table<T> = store.table(TABLE);
    let shelf = if is_read { reads.item("shelf", &table, "s-1") } else { reads.later("shelf", &table, "s-1") };
    let edited = store.transact_with_retry(reads, |attempt| {
        if attempt.knows(shelf) && attempt.get(shelf)?.is_none() {
            return Err(Error::Refused("there is no shelf"));
        }
        attempt.edit(shelf, edit)?;
        attempt.put_if_absent(receipt, &Account { balance: 1 })?;
        Ok(())
    });
    let edited = edited.await;
    let rows = (row(&engine), engine.row("Receipts", "accountId", "r-1"));
    assert!(matches!(edited, Err(Error::Refused("there is no shelf"))), "{edit:?}, {is_read}: {edited:?} {rows:?}");
    assert_eq!(rows, (Value::Null, Value::Null));
}

/// It would be half an item: without the values that the edit leaves alone.
#[tokio::test(start_paused = true)]
async fn an_edit_in_a_transaction_makes_no_row() {
    for edit in [Edit::set("note", &"sold out"), Edit::default().and_remove("note"), Edit::add("note", 1, ..)] {
        for is_read in [true, false] {
            edit_without_a_row::<Expiring>(&edit, is_read).await;
            edit_without_a_row::<Removed>(&edit, is_read).await;
            edit_without_a_row::<Shared>(&edit, is_read).await;
        }
    }
}

#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "shelfId", settings = Settings::open_to_any())]
struct Open {
    stock: i64,
    note: Option<u64>,
}

fn take(by: i64) -> Edit {
    Edit::add("stock", -by, 0..)
}

/// Edits the shelf of 50 and creates a receipt, in one transaction.
async fn edit_with_receipt<T: Record>(
    (store, is_read): (&Store, bool),
    edit: impl Fn(&mut Attempt, Item<T>) -> Result<(), Error<&'static str>>,
) -> Result<(), Error<&'static str>> {
    let mut reads = Reads::new();
    let receipt = reads.later("receipt", &store.table::<Account>("Receipts"), "r-1");
    let table = store.table::<T>(TABLE);
    let shelf = if is_read { reads.item("shelf", &table, "s-1") } else { reads.later("shelf", &table, "s-1") };
    let edited = store.transact_with_retry(reads, |attempt| {
        edit(attempt, shelf)?;
        attempt.put_if_absent(receipt, &Account { balance: 1 })?;
        Ok(())
    });
    edited.await
}

async fn with_receipts() -> (Engine, Store) {
    let engine = Engine::with_tables(&[(TABLE, Shelf::PARTITION_KEY), ("Receipts", Account::PARTITION_KEY)]);
    let store = Store::new(&engine.client());
    store.table::<Open>(TABLE).create("s-1", &Open { stock: 50, note: None }).await.expect("a free key");
    engine.take_log();
    (engine, store)
}

/// The decision leaves the bounds to the edit, and the create could still be applied by a second copy.
#[tokio::test(start_paused = true)]
async fn an_item_that_refuses_the_edit_of_a_transaction_is_not_asked_again_and_the_refusal_is_told() {
    async fn refused<T: Record>(is_read: bool, edit: Edit) -> (usize, usize) {
        let (engine, store) = with_receipts().await;
        let (before, decided) = (row(&engine), Cell::new(0));
        let stamped = |attempt: &mut Attempt, shelf: Item<T>| {
            decided.set(decided.get() + 1);
            Ok(attempt.edit(shelf, &edit.clone().stamp("note", &decided.get()))?)
        };
        let refused = edit_with_receipt((&store, is_read), stamped).await;
        let Err(Error::Failed(Failure::EditRefused { name, .. })) = refused else { panic!("{edit:?}: {refused:?}") };
        assert_eq!((name.as_str(), row(&engine)), ("shelf", before));
        assert_eq!(engine.row("Receipts", "accountId", "r-1"), Value::Null);
        engine.take_counts()
    }
    for edit in [take(60), take(1).only_if("stock", &7), Edit::set("stock", &50).only_if_changed()] {
        assert_eq!(refused::<Shelf>(true, edit.clone()).await, (1, 1), "{edit:?}");
        assert_eq!(refused::<Shelf>(false, edit.clone()).await, (0, 1), "{edit:?}");
        assert_eq!(refused::<Open>(true, edit.clone()).await, (1, 1), "{edit:?}");
    }
    let (engine, store) = with_receipts().await;
    change_shelf(&engine, "SET #p = :p", &json!({":p": {"N": "4102444800"}}));
    engine.take_log();
    let gone = edit_with_receipt::<Shelf>((&store, true), |attempt, shelf| Ok(attempt.edit(shelf, &take(1))?)).await;
    assert!(matches!(gone, Err(Error::Failed(Failure::EditRefused { .. }))), "{gone:?}");
    assert_eq!(engine.take_counts(), (1, 0), "a tombstone");
}

/// Another program changes the note between the read and the transaction.
#[tokio::test(start_paused = true)]
async fn a_value_that_has_changed_is_no_reason_to_tell_a_refused_edit_and_hides_none() {
    async fn edited<T: Record>(of: Edit) -> (bool, (usize, usize)) {
        let (engine, _) = with_receipts().await;
        let client = client_whose_first_write(&engine, |engine, operation, body| {
            change_shelf(engine, "SET note = :n", &json!({":n": {"N": "7"}}));
            engine.answer(operation, body)
        });
        let (store, mut reads) = (Store::new(&client), Reads::new());
        let shelf = reads.item("shelf", &store.table::<T>(TABLE), "s-1");
        let edited = store.transact_with_retry(reads, |attempt| Ok::<_, Error>(attempt.edit(shelf, &of)?));
        (edited.await.is_ok(), engine.take_counts())
    }
    let [low, high] = ["0.5", "1.5"].map(|bound| Number::parse(bound).expect("a number"));
    let few = Edit::add("stock", 1, Bounds::Before(low, high));
    assert_eq!(edited::<Shelf>(few).await, (false, (1, 1)), "the stock is the reason");
    let (is_edited, (_, writes)) = edited::<Open>(take(1)).await;
    assert!(is_edited && writes == 2, "the demand of the value was the reason: {writes}");
}

#[tokio::test(start_paused = true)]
async fn a_decision_may_answer_a_refused_edit_by_a_refusal_or_by_another_edit() {
    let (engine, store) = with_receipts().await;
    let refuse = |attempt: &mut Attempt, shelf: Item<Shelf>| match attempt.edit(shelf, &take(60)) {
        Err(Failure::EditRefused { .. }) => Err(Error::Refused("it is sold out")),
        edited => Ok(edited?),
    };
    let refused = edit_with_receipt((&store, true), refuse).await;
    assert!(matches!(refused, Err(Error::Refused("it is sold out"))), "{refused:?}");
    // As many as there are, but 60 at most.
    let call = call();
    let most = |attempt: &mut Attempt, shelf: Item<Shelf>| {
        Ok((1..=60)
            .rev()
            .map(|by| attempt.edit(shelf, &take(by)))
            .find(Result::is_ok)
            .expect("one that was not tried")?)
    };
    edit_with_receipt((&store.in_call(&call), true), most).await.expect("there are 50");
    assert_eq!(
        (row(&engine)["stock"]["N"].as_str(), call.tally().conflicts),
        (Some("0"), 9),
        "it pauses from the second on"
    );
}

/// Each refused attempt could still be applied. With too many of them, the change would be unknown.
#[tokio::test(start_paused = true)]
async fn a_decision_that_edits_otherwise_after_each_refusal_ends_as_refused_and_does_not_spin() {
    let (engine, store) = with_receipts().await;
    let mut few = RetryPolicy::default();
    few.max_attempts = 5;
    let tried = Cell::new(60);
    let always_more = |attempt: &mut Attempt, shelf: Item<Shelf>| {
        tried.set(tried.get() + 1);
        Ok(attempt.edit(shelf, &take(tried.get()))?)
    };
    for (policy, attempts) in [(RetryPolicy::default(), 32), (few, 5)] {
        let call = call();
        let store = store.clone().with_policy(policy).in_call(&call);
        let refused = edit_with_receipt((&store, true), always_more).await;
        assert!(matches!(refused, Err(Error::Failed(Failure::EditRefused { .. }))), "{refused:?}");
        assert_eq!(engine.take_counts(), (attempts, attempts), "an open attempt is looked for each time");
        assert_eq!(call.tally().conflicts as usize, attempts - 1, "it pauses from the second refusal on");
    }
}
