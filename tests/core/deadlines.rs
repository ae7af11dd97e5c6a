//! Deadlines, and tables with refusals or rejections: the answer comes before the deadline and states all known facts.
//! After a rejection because of the stored data, a copy of the write may be applied to other data.

use super::accounts::{Account, TABLE, add_one, engine};
use super::add::{self, Shelf, shelf, with_shelf};
use crate::harness::clients::{Silent, client_whose, client_whose_first_write, client_without_answers, error, lost};
use crate::harness::engine::{Engine, is_read, store};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{Config, Credentials, SharedHttpClient};
use aws_smithy_types::retry::RetrySpec;
use fencepost::lease::LeaseTerms;
use fencepost::{Call, Deadline, Error, Failure, FailureKind, RetryPolicy, Store, Table};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

const ALLOWED: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn each_operation_has_the_time_limit_of_its_store_and_those_of_a_call_have_its_deadline_together() {
    let took_twice = async |table: Table<Account>| {
        let mut took = [Duration::ZERO; 2];
        for took in &mut took {
            let began = Instant::now();
            let failure = table.get("a-1").await.expect_err("no answer");
            assert!(matches!(failure.kind, FailureKind::Unavailable { .. }), "{failure:?}");
            *took = began.elapsed();
        }
        took
    };
    let limited: Table<Account> =
        Store::new(&client_without_answers(&engine(), Silent::Always)).with_time_limit(ALLOWED).table(TABLE);
    let [first, second] = took_twice(limited.clone()).await;
    assert!(
        first > ALLOWED / 2 && first <= ALLOWED && second > ALLOWED / 2 && second <= ALLOWED,
        "{first:?} {second:?}"
    );
    let by_default = limited.store().with_time_limit(Store::TIME_LIMIT).table(TABLE);
    let [first, second] = took_twice(by_default).await;
    assert!(first > ALLOWED && first <= Store::TIME_LIMIT && second > ALLOWED, "{first:?} {second:?}");

    let call = Call::new(Deadline::within(ALLOWED * 2));
    let [first, second] = took_twice(limited.in_call(&call)).await;
    assert!(
        first > ALLOWED && first + second <= ALLOWED * 2,
        "the call counts, and not the limit: {first:?} {second:?}"
    );
    assert!(call.deadline().remaining() < ALLOWED);
}

/// The SDK retries a 500 on its own unless told not to.
#[tokio::test(start_paused = true)]
async fn the_sdks_own_retries_are_switched_off_whatever_client_is_given() {
    // With AWS_NEW_RETRIES_2026, `aws_config` makes the last of them.
    for retries in
        [RetryConfig::standard(), RetryConfig::adaptive(), RetryConfig::standard().with_retry_spec(RetrySpec::v2_1())]
    {
        let sent = Arc::new(AtomicU32::new(0));
        let counted = sent.clone();
        let client = client_whose(&engine(), move |_, _, _, _| {
            counted.fetch_add(1, Relaxed);
            lost()
        });
        let retrying = client.config().to_builder().retry_config(retries.with_max_attempts(5)).build();
        let table: Table<Account> = Store::new(&Client::from_conf(retrying)).table(TABLE);
        let call = Call::new(Deadline::within(ALLOWED));
        let created = table.in_call(&call).create("a-1", &Account { balance: 1 }).await.expect_err("no answer");
        assert!(created.is_outcome_unknown(), "{created:?}");
        assert_eq!(sent.load(Relaxed), call.tally().lost_answers, "every request was seen by the one owner of retries");
    }
}

/// How often a create looks at the wall clock until its first send is due. The next look is that before it leaves.
const LOOKS_UNTIL_A_SEND_IS_DUE: u32 = 5;

/// The wall clock of a machine that sleeps after so many looks at it.
fn asleep_after(most: u32) -> impl Fn() -> SystemTime {
    let looks = AtomicU32::new(0);
    let start = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
    move || start + Duration::from_mins(5) * u32::from(looks.fetch_add(1, Relaxed) >= most)
}

/// After the first refused connection the wall clock ends the window of the sends. No real time has to pass.
pub(super) async fn is_unavailable_at(endpoint: &str, http_client: SharedHttpClient) {
    let config = engine().client().config().to_builder();
    let config = config.endpoint_url(endpoint).http_client(http_client).build();
    let asleep = store(&Client::from_conf(config), asleep_after(LOOKS_UNTIL_A_SEND_IS_DUE + 1), || 7);
    let mut policy = RetryPolicy::default();
    let long = Duration::from_mins(1);
    (policy.hedge_after, policy.send_limit) = (long, long);
    let table: Table<Account> = asleep.with_policy(policy).table(TABLE);
    let call = Call::new(Deadline::within(long * 5));
    let created = table.in_call(&call).create("a-1", &Account { balance: 1 }).await.expect_err("unreachable");
    assert!(matches!(created, Error::Failed(Failure { kind: FailureKind::Unavailable { .. }, .. })), "{created:?}");
    assert_eq!(call.tally().lost_answers, 0, "nothing left, so no answer was lost");
}

#[tokio::test]
async fn a_table_that_cannot_be_reached_is_unavailable_and_not_unknown() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound");
    let endpoint = format!("http://{closed}");
    is_unavailable_at(&endpoint, aws_smithy_http_client::Builder::new().build_http()).await;
    is_unavailable_at(&endpoint, fencepost::lambda::https_client()).await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_may_be_as_far_away_as_a_duration_goes() {
    let engine = Engine::with_tables(&[(TABLE, "accountId"), ("Leases", "leaseKey")]);
    let store = Store::new(&engine.client()).with_time_limit(Duration::MAX);
    let accounts: Table<Account> = store.table(TABLE);
    accounts.create("a-1", &Account { balance: 1 }).await.expect("a free key");
    accounts.update_with_retry("a-1", add_one).await.expect("an account");
    let (leases, terms) = (store.leases("Leases"), LeaseTerms::default());
    let held = leases.acquire("k", "ann", terms).await.expect("a free lease");
    let waiting = leases.acquire_within("k", "bob", terms, Duration::MAX);
    let released = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        leases.release(held).await.expect("held");
    };
    let (waited, ()) = tokio::join!(waiting, released);
    assert_eq!(waited.expect("released").holder(), "bob");
}

/// A full item collection rejects any write, and the burn too. When it has room, a copy of the update is applied.
#[tokio::test(start_paused = true)]
async fn a_write_to_a_full_collection_that_cannot_be_burned_is_unknown() {
    let (engine, key, _) = with_shelf().await;
    let client = client_whose(&engine, |engine, _, operation, body| {
        let answer = error(400, "ItemCollectionSizeLimitExceededException");
        if is_read(operation) { engine.answer(operation, body) } else { answer }
    });
    let updated = Store::new(&client).table::<Shelf>(add::TABLE).update_with_retry(&key, |_| shelf(7)).await;
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
    let created = store.table::<Shelf>(add::TABLE).create("s-1", &shelf(1)).await.expect_err("no region");
    let read = store.table::<Shelf>(add::TABLE).get("s-1").await.expect_err("no region");
    let leased = store.leases("Leases").acquire("leader", "me", LeaseTerms::default()).await.expect_err("no region");
    for failure in [created.failure(), Some(&read), leased.failure()] {
        let failure = failure.expect("not refused");
        let said = failure.to_string();
        assert!(matches!(failure.kind, FailureKind::NotConfigured { .. }) && said.contains("no region"), "{said}");
        assert!(!failure.is_retryable() && !failure.is_outcome_unknown());
    }
    assert_eq!(begun.elapsed(), Duration::ZERO, "nothing was waited for");
}
