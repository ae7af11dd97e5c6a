//! Writes that `DynamoDB` rejects because of what is stored: a copy of them may be applied when that has changed.

use super::add::{Shelf, TABLE, change_shelf, row, with_shelf};
use super::edits::Bare;
use crate::harness::clients::{client_that_notes_its_first_write, client_whose, client_whose_first_write, error};
use crate::harness::engine::{Engine, is_read};
use aws_sdk_dynamodb::Client;
use fencepost::lease::LeaseTerms;
use fencepost::testing::edit_or_update;
use fencepost::{Edit, Error, Failure, Key, Reads, Store, Table, UpdateError, VersionError};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

fn set_note(engine: &Engine, bytes: usize) {
    change_shelf(engine, "SET note = :n", &json!({":n": {"S": "x".repeat(bytes)}}));
}

/// A note that leaves no room for another long text.
const FULL: usize = 390 * 1024;

/// A shelf, and a client whose first write is noted. Another program fills the shelf just before that write.
async fn with_shelf_that_fills_up() -> (Engine, Key, Client, Arc<Mutex<Vec<u8>>>) {
    let (engine, key, _) = with_shelf().await;
    let noted = Arc::new(Mutex::new(Vec::new()));
    let under_way = Arc::clone(&noted);
    let client = client_whose_first_write(&engine, move |engine, operation, body| {
        *noted.lock().expect("no panic") = body.to_vec();
        set_note(engine, FULL);
        engine.answer(operation, body)
    });
    (engine, key, client, under_way)
}

/// The copy of a write of a long status is refused for its condition.
#[track_caller]
fn assert_refused(engine: &Engine, operation: &str, copy: &[u8]) {
    let (status, answer) = engine.answer(operation, copy);
    assert!(status == 400 && answer.contains("ConditionalCheckFailed"), "{answer}");
    assert_eq!(row(engine)["status"]["S"], "high");
}

/// The network delivers the rejected edit once more when there is room.
#[tokio::test]
async fn an_edit_that_makes_the_item_too_large_is_rejected_and_its_copy_finds_it_burned() {
    let (engine, key, client, under_way) = with_shelf_that_fills_up().await;
    let edit = Edit::set("status", &"x".repeat(20 * 1024));
    let rejected = Store::new(&client).table::<Shelf>(TABLE).edit(&key, &edit).await;
    assert!(matches!(rejected, Err(UpdateError::Failed(Failure::Rejected { .. }))), "{rejected:?}");
    assert_eq!(engine.take_counts(), (1, 2), "a look at the row before the edit, the edit, and the burn");
    set_note(&engine, 1);
    let copy = under_way.lock().expect("no panic").clone();
    assert_refused(&engine, "UpdateItem", &copy);
}

/// Gives the shelf a long status, and creates another shelf, which remembers the transaction.
async fn with_another(client: &Client) -> Result<(), Error> {
    let store = Store::new(client);
    let mut reads = Reads::new();
    let shelves = store.table::<Bare>(TABLE);
    let [shelf, other] = ["s-1", "s-2"].map(|id| reads.later(id, &shelves, id));
    let done = store.transact_with_retry(reads, |attempt| {
        attempt.put_if_absent(other, &Bare { stock: 1 })?;
        attempt.edit(shelf, &Edit::set("status", &"x".repeat(20 * 1024)))?;
        Ok(())
    });
    done.await
}

#[tokio::test]
async fn a_transaction_that_makes_an_item_too_large_is_rejected_and_its_copy_finds_it_burned() {
    let (engine, ..) = with_shelf().await;
    set_note(&engine, FULL);
    let (client, under_way) = client_that_notes_its_first_write(&engine);
    let rejected = with_another(&client).await;
    assert!(matches!(rejected, Err(Error::Failed(Failure::Rejected { .. }))), "{rejected:?}");
    assert_eq!(engine.take_counts(), (0, 2), "the transaction and the burn");
    set_note(&engine, 1);
    let copy = under_way.lock().expect("no panic").clone();
    assert_refused(&engine, "TransactWriteItems", &copy);
}

/// The network delivers the rejected transaction once more before the burn, when there is room.
#[tokio::test]
async fn a_burn_that_finds_a_rejected_transaction_applied_says_so() {
    let (engine, ..) = with_shelf().await;
    set_note(&engine, FULL);
    let first = Mutex::new(Vec::new());
    let client = client_whose(&engine, move |engine, write, operation, body| {
        let mut first = first.lock().expect("no panic");
        if write == 0 {
            *first = body.to_vec();
        } else {
            set_note(engine, 1);
            assert_eq!(engine.answer("TransactWriteItems", &first).0, 200, "it is applied now");
        }
        engine.answer(operation, body)
    });
    with_another(&client).await.expect("applied after all");
}

/// What becomes of a transaction that creates `s-2` and updates the shelf, of which these steps are rejected for these
/// reasons. This happens before the burn.
async fn rejected_for(reasons: Value, happens: fn(&Engine)) -> (Engine, Result<(), Error>) {
    let (engine, key, _) = with_shelf().await;
    let client = client_whose(&engine, move |engine, write, operation, body| {
        if write == 0 && !is_read(operation) {
            let (status, answer) = error(400, "TransactionCanceledException");
            let mut answer: Value = serde_json::from_str(&answer).expect("JSON");
            answer["CancellationReasons"] = reasons.clone();
            return (status, answer.to_string());
        }
        if !is_read(operation) {
            happens(engine);
        }
        engine.answer(operation, body)
    });
    let store = Store::new(&client);
    let mut reads = Reads::new();
    let shelves = store.table::<Bare>(TABLE);
    let (other, shelf) = (reads.item("other", &shelves, "s-2"), reads.item("shelf", &shelves, &key));
    let rejected = store.transact_with_retry(reads, |attempt| {
        attempt.put_if_absent(other, &Bare { stock: 1 })?;
        attempt.update_at(shelf, &Bare { stock: 1 })?;
        Ok::<_, Error>(())
    });
    let rejected = rejected.await;
    (engine, rejected)
}

/// The first step is the reason, and could reject the burn as well, so the burn goes to the row of the second. If that is
/// gone, it proves nothing.
#[tokio::test]
async fn a_rejected_transaction_is_burned_where_nothing_was_rejected() {
    let full = json!([{"Code": "ItemCollectionSizeLimitExceeded"}, {"Code": "None"}]);
    let (engine, rejected) = rejected_for(full.clone(), |_| {}).await;
    assert!(matches!(rejected, Err(Error::Failed(Failure::Rejected { .. }))), "{rejected:?}");
    assert_eq!(row(&engine)["_version"]["N"], "2", "it was burned in the row of the shelf");
    let remove = |engine: &Engine| {
        engine.raw("DeleteItem", &json!({"TableName": TABLE, "Key": {"shelfId": {"S": "s-1"}}}));
    };
    let (_, unknown) = rejected_for(full, remove).await;
    assert!(matches!(unknown, Err(Error::Failed(Failure::OutcomeUnknown { .. }))), "{unknown:?}");
}

/// The size of an item at one version does not change, so no copy is ever applied, and nothing is burned.
#[tokio::test]
async fn a_write_to_one_version_that_is_rejected_is_told_at_once() {
    let (engine, rejected) = rejected_for(json!([{"Code": "None"}, {"Code": "ValidationError"}]), |_| {}).await;
    assert!(matches!(rejected, Err(Error::Failed(Failure::Rejected { .. }))), "{rejected:?}");
    assert_eq!(engine.take_counts().1, 0, "nothing is burned");
    let (engine, key, at) = with_shelf().await;
    let client = client_whose_first_write(&engine, |_, _, _| error(400, "ValidationException"));
    let shelves: Table<Bare> = Store::new(&client).table(TABLE);
    let rejected = shelves.update_at_version(&key, at, |_| Ok::<_, Infallible>(Some(Bare { stock: 1 }))).await;
    assert!(matches!(rejected, Err(VersionError::Failed(Failure::Rejected { .. }))), "{rejected:?}");
    assert_eq!((engine.take_counts(), row(&engine)["_version"]["N"].as_str()), ((1, 0), Some("1")));
}

/// A full item collection rejects any write, and the burn too. When it has room, a copy of the update is applied.
#[tokio::test(start_paused = true)]
async fn a_write_to_a_full_collection_that_cannot_be_burned_is_unknown() {
    let (engine, key, _) = with_shelf().await;
    let client = client_whose(&engine, |engine, _, operation, body| {
        let answer = error(400, "ItemCollectionSizeLimitExceededException");
        if is_read(operation) { engine.answer(operation, body) } else { answer }
    });
    let change = |shelf: &Shelf| {
        let mut shelf = shelf.clone();
        shelf.stock = 7;
        Ok::<_, Infallible>(Some(shelf))
    };
    let updated = Store::new(&client).table::<Shelf>(TABLE).update_with_retry(&key, change).await;
    assert!(matches!(updated, Err(UpdateError::Failed(Failure::OutcomeUnknown { .. }))), "{updated:?}");
}

/// `DynamoDB` rejects the edit, because the item would be too large. The network delivers it once more when there is room.
/// The change of the same call was decided on the row before it, and may not be made beside it.
#[tokio::test]
async fn a_change_after_a_rejected_edit_gives_way_to_a_copy_of_the_edit_that_lands_before_it() {
    let (engine, key, client, under_way) = with_shelf_that_fills_up().await;
    let decide = |shelf: &Shelf| {
        set_note(&engine, 1);
        let copy = under_way.lock().expect("no panic");
        assert_eq!(engine.answer("UpdateItem", &copy).0, 200, "it is applied now");
        let mut shelf = shelf.clone();
        shelf.stock = 7;
        Ok::<_, Infallible>(Some(shelf))
    };
    let table: Table<Shelf> = Store::new(&client).table(TABLE);
    let edit = Edit::set("status", &"x".repeat(20 * 1024));
    let changed = edit_or_update(&table, &key, &edit, decide).await.expect("the edit was applied");
    assert_eq!((changed.value.stock, changed.version().get()), (50, 2), "told is what was stored");
    assert_eq!((&row(&engine)["stock"]["N"], &row(&engine)["_version"]["N"]), (&json!("50"), &json!("2")));
}

/// No copy of an acquire, which demands its own conditions, is applied because other data are stored.
#[tokio::test]
async fn an_acquire_that_is_malformed_is_rejected_and_not_unknown() {
    for code in ["ValidationException", "ItemCollectionSizeLimitExceededException"] {
        let engine = Engine::with_tables(&[("Leases", "leaseKey")]);
        let client = client_whose_first_write(&engine, move |_, _, _| error(400, code));
        let acquired = Store::new(&client).leases("Leases").acquire("leader", "me", LeaseTerms::default()).await;
        assert!(matches!(acquired, Err(Error::Failed(Failure::Rejected { .. }))), "{code}: {acquired:?}");
    }
}
