//! Writes that `DynamoDB` rejects because of what is stored: a copy of them may be applied when that has changed.

use super::add::{Shelf, TABLE, with_shelf};
use crate::harness::clients::{client_whose, client_whose_first_write, error};
use crate::harness::engine::{Engine, is_read};
use fencepost::lease::LeaseTerms;
use fencepost::{Error, Failure, Store, UpdateError};
use std::convert::Infallible;

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
