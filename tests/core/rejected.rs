//! Writes that `DynamoDB` rejects because of what is stored: a copy of them may be applied when that has changed.

use super::add::{Shelf, TABLE, shelf, with_shelf};
use crate::harness::clients::{client_whose, client_whose_first_write, error};
use crate::harness::engine::{Engine, is_read};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{Config, Credentials};
use fencepost::lease::LeaseTerms;
use fencepost::{Error, Failure, FailureKind, Store};
use std::time::Duration;
use tokio::time::Instant;

/// A full item collection rejects any write, and the burn too. When it has room, a copy of the update is applied.
#[tokio::test(start_paused = true)]
async fn a_write_to_a_full_collection_that_cannot_be_burned_is_unknown() {
    let (engine, key, _) = with_shelf().await;
    let client = client_whose(&engine, |engine, _, operation, body| {
        let answer = error(400, "ItemCollectionSizeLimitExceededException");
        if is_read(operation) { engine.answer(operation, body) } else { answer }
    });
    let updated = Store::new(&client).table::<Shelf>(TABLE).update_with_retry(&key, |_| shelf(7)).await;
    let failed = updated.expect_err("it cannot be burned");
    assert!(failed.is_outcome_unknown(), "{failed:?}");
}

/// No copy of an acquire, which demands its own conditions, is applied because other data are stored.
#[tokio::test]
async fn an_acquire_that_is_malformed_is_rejected_and_not_unknown() {
    for code in ["ValidationException", "ItemCollectionSizeLimitExceededException"] {
        let engine = Engine::with_tables(&[("Leases", "leaseKey")]);
        let client = client_whose_first_write(&engine, move |_, _, _| error(400, code));
        let acquired = Store::new(&client).leases("Leases").acquire("leader", "me", LeaseTerms::default()).await;
        assert!(
            matches!(acquired, Err(Error::Failed(Failure { kind: FailureKind::Rejected { .. }, .. }))),
            "{code}: {acquired:?}"
        );
    }
}

/// A client without a region is asked no second time, and is not taken for a table that is out of reach.
#[tokio::test(start_paused = true)]
async fn a_client_without_a_region_fails_at_once_and_says_what_it_lacks() {
    let credentials = Credentials::new("test", "test", None, None, "tests");
    let config = Config::builder().behavior_version_latest().credentials_provider(credentials).build();
    let store = Store::new(&Client::from_conf(config));
    let begun = Instant::now();
    let created = store.table::<Shelf>(TABLE).create("s-1", &shelf(1)).await.expect_err("no region");
    let read = store.table::<Shelf>(TABLE).get("s-1").await.expect_err("no region");
    let leased = store.leases("Leases").acquire("leader", "me", LeaseTerms::default()).await.expect_err("no region");
    for failure in [created.failure(), Some(&read), leased.failure()] {
        let failure = failure.expect("not refused");
        let said = failure.to_string();
        assert!(matches!(failure.kind, FailureKind::NotConfigured { .. }) && said.contains("no region"), "{said}");
        assert!(!failure.is_retryable() && !failure.is_outcome_unknown());
    }
    assert_eq!(begun.elapsed(), Duration::ZERO, "nothing was waited for");
}
