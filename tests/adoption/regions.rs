//! Tables with multi-Region strong consistency: an operation that cannot keep its promise is refused before any
//! request. The others keep theirs, also where two Regions write one item (`histories/programs/`).

use super::world::{Account, KEY, Regional, TABLE, account, accounts, deposit, engine, get, key, number, row};
use crate::harness::clock::TEN_O_CLOCK;
use crate::harness::engine::{self, Engine};
use fencepost::http::{ChangeRequest, IfMatch, Items, Problem};
use fencepost::lease::LeaseTerms;
use fencepost::{Error, Failure, Idempotency, IdempotencyClaim, IdempotencyError, Reads, Table};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

const SENTENCE: &str = "account is in a table with multi-Region strong consistency, which has no transactions: change its \
                        items one by one";

/// A decision over one account, with a step of each kind.
fn reads(table: &Table<Account<Regional>>) -> (Reads, fencepost::Item<Account<Regional>>) {
    let mut reads = Reads::new();
    let item = reads.item("account", table, key());
    (reads, item)
}

#[tokio::test]
async fn a_transaction_is_refused_with_a_sentence_before_anything_is_sent() {
    let engine = engine();
    let table = accounts::<Regional>(&engine);
    let (reads, item) = reads(&table);
    let refused = table.store().transact_with_retry(reads, |attempt| {
        attempt.put_if_absent(item, &account(1))?;
        Ok::<_, Error>(())
    });
    let refused = refused.await.expect_err("no transactions");
    let Error::Failed(Failure::InvalidTransaction { reason }) = refused else { panic!("{refused:?}") };
    assert_eq!((reason.as_str(), engine.take_counts()), (SENTENCE, (0, 0)));
}

#[tokio::test]
async fn idempotency_keys_are_refused_with_a_sentence_before_anything_is_sent() {
    let engine = Engine::with_tables(&[(TABLE, KEY), ("Records", "recordId")]);
    let table = accounts::<Regional>(&engine);
    let records: Idempotency<i64> = table.store().idempotency("Records");
    let claim = IdempotencyClaim::new(&["caller", "key"], &["payload"]);
    let (reads, item) = reads(&table);
    let refused = records.change(&claim, reads, |attempt| {
        attempt.put_if_absent(item, &account(1))?;
        Ok::<_, Error>(1)
    });
    let refused = refused.await.expect_err("no transactions");
    let IdempotencyError::Failed(Failure::InvalidTransaction { reason }) = refused else { panic!("{refused:?}") };
    assert!(reason.ends_with("which has no transactions: change its items one by one"), "{reason}");

    let items = Items::with_idempotency(table.clone(), table.store().idempotency("Records"));
    let request = ChangeRequest { if_match: IfMatch::None, claim: Some(claim) };
    let decide = |account: &Account<Regional>| deposit(1)(account).map_err(Problem::from);
    let refused = items.change("a-1", &request, decide).await.expect_err("no transactions");
    assert_eq!((refused.into_response().status(), engine.take_counts()), (500, (0, 0)));
}

/// Rows stay here, those of leases as well as tombstones. Everything works without their removal.
#[tokio::test(start_paused = true)]
async fn a_lease_and_a_tombstone_that_ttl_never_removes_are_as_good_as_new_after_years() {
    let engine = Engine::embedded(&[(TABLE, KEY), ("Leases", "leaseKey")]);
    let start = Instant::now();
    let now = move || SystemTime::UNIX_EPOCH + Duration::from_millis(TEN_O_CLOCK) + start.elapsed();
    let store = engine::store(&engine.client(), now, || fastrand::u64(..));
    let terms = LeaseTerms::new(Duration::from_secs(10)).expect("long enough");
    let mut tokens = Vec::new();
    for year in 0..4u64 {
        let lease = store.leases("Leases").acquire("k", "holder", terms).await.expect("free");
        tokens.push(lease.token().number());
        let table = store.table::<Account<Regional>>(TABLE).fenced_by(lease.token());
        let created = table.create(&key(), &account(1)).await.expect("only a tombstone");
        assert_eq!(created.at.version.get(), 2 * year + 1, "the version goes on");
        table.delete(&key()).await.expect("an account");
        // Some leases are released, and some end.
        if year < 2 {
            store.leases("Leases").release(lease).await.expect("held");
        }
        tokio::time::sleep(Duration::from_hours(365 * 24)).await;
        assert_eq!(get(&store.table::<Account<Regional>>(TABLE)).await, None);
    }
    assert!(tokens.is_sorted_by(|one, other| one < other), "{tokens:?}");
    assert_eq!(
        (&row(&engine)["_buried"], row(&engine)["_fence"]["N"].as_str()),
        (&number(8), Some(&*tokens[3].to_string()))
    );
}
