//! Writes that `DynamoDB` rejects because of what is stored: a copy of them may be applied when that has changed.

use super::add::{Shelf, TABLE, row, with_shelf};
use super::edits::Bare;
use crate::harness::clients::{client_whose, client_whose_first_write, error};
use crate::harness::engine::{Engine, is_read};
use fencepost::lease::LeaseTerms;
use fencepost::{Error, Failure, Reads, Store, Table, UpdateError, VersionError};
use serde_json::{Value, json};
use std::convert::Infallible;

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
