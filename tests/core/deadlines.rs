//! Deadlines, and tables that refuse: the answer comes before the deadline and states all known facts.

use super::accounts::{Account, TABLE, add_one, balance, change, engine, rival};
use crate::harness::clients::{
    Line, Silent, Way, client_by_script, client_that, client_whose, client_whose_first_write, client_without_answers,
    error, lost,
};
use crate::harness::engine::{Engine, store};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::SharedHttpClient;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_types::retry::RetrySpec;
use fencepost::{Call, Deadline, Error, Failure, Key, RetryPolicy, Rng, Store, Table, UpdateError};
use serde_json::json;
use std::cell::Cell;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
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
            assert!(matches!(failure, Failure::Unavailable { .. }), "{failure:?}");
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
        assert!(matches!(created, Error::Failed(Failure::OutcomeUnknown { .. })), "{created:?}");
        assert_eq!(sent.load(Relaxed), call.tally().lost_answers, "every request was seen by the one owner of retries");
    }
}

#[tokio::test(start_paused = true)]
async fn hopeless_contention_ends_before_the_deadline_with_nothing_applied() {
    let engine = engine();
    let table = Store::new(&engine.client()).table(TABLE);
    let key = Key::from("a-1");
    table.create(&key, &Account { balance: 0 }).await.expect("a free key");
    let began = Instant::now();
    let call = Call::new(Deadline::within(ALLOWED));
    let rivals = Cell::new(0);
    let decide = |_: &Account| {
        rival(&engine, "a-1");
        rivals.set(rivals.get() + 1);
        Ok::<_, Infallible>(Some(Account { balance: -1000 }))
    };
    let lost = table.in_call(&call).update_with_retry(&key, decide).await.expect_err("a rival is always first");
    assert!(matches!(lost, UpdateError::Failed(Failure::Contention { attempts }) if attempts == call.tally().attempts));
    assert!(began.elapsed() <= ALLOWED);
    assert_eq!(balance(&engine, "a-1"), rivals.get(), "only the rival wrote");
}

/// A table with these answers to its next writes.
fn scripted(engine: &Engine, script: &[Line]) -> Table<Account> {
    Store::new(&client_by_script(engine, script)).with_time_limit(ALLOWED).table(TABLE)
}

const EXPIRED: Line = (400, "InvalidSignatureException", false);
const LOST: Line = (500, "InternalServerError", true);
const DENIED: Line = (400, "AccessDeniedException", false);
const THROTTLED: Line = (400, "ThrottlingException", false);

#[tokio::test(start_paused = true)]
async fn an_expired_signature_is_made_anew_once() {
    let engine = engine();
    let key = "a-1";
    let once = scripted(&engine, &[EXPIRED]).create(key, &Account { balance: 1 }).await;
    assert_eq!(once.expect("the second signature is good").version().get(), 1);
    let twice = scripted(&engine, &[EXPIRED, EXPIRED]).update_with_retry(key, add_one).await;
    assert!(matches!(twice, Err(UpdateError::Failed(Failure::Rejected { .. }))), "{twice:?}");
    assert_eq!(engine.row(TABLE, "accountId", "a-1")["_version"]["N"], "1");

    let sent = Arc::new(AtomicU32::new(0));
    let counted = sent.clone();
    let client = client_whose(&engine, move |_, _, _, _| {
        counted.fetch_add(1, Relaxed);
        error(400, "InvalidSignatureException")
    });
    let read = Store::new(&client).table::<Account>(TABLE).get(key).await.expect_err("no signature is good");
    assert!(matches!(read, Failure::Rejected { .. }), "{read:?}");
    assert_eq!(sent.load(Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_stays_pending_whatever_its_resends_are_told() {
    for (second, why) in [(DENIED, "denied"), (EXPIRED, "expired")] {
        let engine = engine();
        let table = scripted(&engine, &[LOST, second, EXPIRED]);
        let created = table.create("a-1", &Account { balance: 1 }).await.expect_err(why);
        assert!(matches!(created, Error::Failed(Failure::OutcomeUnknown { .. })), "{why}: {created:?}");
    }
    let engine = engine();
    let table = scripted(&engine, &[LOST, THROTTLED, THROTTLED]);
    let created = table.create("a-1", &Account { balance: 1 }).await;
    assert_eq!(created.expect("the fourth send finds the first").version().get(), 1);
}

/// A pause takes at most half of the remaining time: another send may prove what became of the first one.
#[tokio::test(start_paused = true)]
async fn a_pause_between_two_sends_leaves_time_for_another_one() {
    let engine = engine();
    let client = client_by_script(&engine, &[LOST, THROTTLED, THROTTLED, THROTTLED, THROTTLED, THROTTLED]);
    let table: Table<Account> = Store::new(&client).with_rng(Rng::new(|| u64::MAX)).table(TABLE);
    // The longest pauses are 20, 40, 80, 160, 320 and 640 ms. The last one would end after the deadline.
    let call = Call::new(Deadline::within(Duration::from_secs(1)));
    let created = table.in_call(&call).create("a-1", &Account { balance: 1 }).await;
    assert_eq!(created.expect("the seventh send finds the first").version().get(), 1);
}

/// TTL may remove the tombstone, and then a late copy of the lost create would find the key free.
#[tokio::test(start_paused = true)]
async fn a_tombstone_about_to_be_purged_proves_nothing_about_a_create_whose_answer_was_lost() {
    for (minutes, known) in [(10, false), (60, true)] {
        let engine = engine();
        let plain = Store::new(&engine.client()).table(TABLE);
        let key = Key::from("a-1");
        let created = plain.create(&key, &Account { balance: 1 }).await.expect("a free key");
        plain.delete_at_version(&key, created.at).await.expect("the current version");
        let purge_at = SystemTime::now() + Duration::from_mins(minutes);
        let seconds = purge_at.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
        let soon = json!({":p": {"N": seconds.to_string()}});
        change(&engine, TABLE, &json!({"accountId": {"S": "a-1"}}), "SET #p = :p", &soon);
        let dropped = (500, "InternalServerError", false);
        let anew = scripted(&engine, &[dropped]).create(&key, &Account { balance: 2 }).await;
        let unknown = matches!(anew, Err(Error::Failed(Failure::OutcomeUnknown { .. })));
        assert_eq!((anew.is_ok(), unknown), (known, !known), "{minutes} minutes: {anew:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_could_not_wait_for_its_answer_is_not_sent() {
    let engine = engine();
    let table: Table<Account> = Store::new(&engine.client()).table(TABLE);
    let call = Call::new(Deadline::within(Duration::from_millis(100)));
    let created = table.in_call(&call).create("a-1", &Account { balance: 1 }).await.expect_err("too late");
    assert!(matches!(created, Error::Failed(Failure::Unavailable { .. })), "{created:?}");
    assert_eq!(engine.take_counts(), (0, 0));
}

/// How often a create looks at the wall clock until its first send is due. The next look is that before it leaves.
const LOOKS_UNTIL_A_SEND_IS_DUE: u32 = 5;

/// The wall clock of a machine that sleeps after so many looks at it.
fn asleep_after(most: u32) -> impl Fn() -> SystemTime {
    let looks = AtomicU32::new(0);
    let start = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
    move || start + Duration::from_mins(5) * u32::from(looks.fetch_add(1, Relaxed) >= most)
}

/// The wall clock of a machine that sleeps for five minutes once it is told so.
fn sleeps_when_told(is_told: &Arc<AtomicBool>) -> impl Fn() -> SystemTime + use<> {
    let (is_told, start) = (Arc::clone(is_told), SystemTime::UNIX_EPOCH + Duration::from_hours(500_000));
    move || start + Duration::from_mins(5) * u32::from(is_told.load(Relaxed))
}

/// A client whose process sleeps when its first write has been sent, which is then answered like this.
fn client_that_sleeps(
    engine: &Engine,
    answer: impl Fn(String) -> (u16, String) + Send + Sync + 'static,
) -> (Client, Arc<AtomicBool>) {
    let sleeps = Arc::new(AtomicBool::new(false));
    let asleep = Arc::clone(&sleeps);
    let client = client_whose_first_write(engine, move |engine, operation, body| {
        asleep.store(true, Relaxed);
        let (status, body) = engine.answer(operation, body);
        if status == 200 { answer(body) } else { (status, body) }
    });
    (client, sleeps)
}

/// The process stands still while a send is signed. Its copies would live longer than others count with.
#[tokio::test(start_paused = true)]
async fn a_write_that_was_signed_after_four_minutes_on_the_wall_clock_does_not_leave() {
    let engine = engine();
    let table = store(&engine.client(), asleep_after(LOOKS_UNTIL_A_SEND_IS_DUE), || 7).table(TABLE);
    let created = table.create("a-1", &Account { balance: 1 }).await.expect_err("too late");
    assert!(matches!(created, Error::Failed(Failure::Unavailable { .. })), "{created:?}");
    assert_eq!(engine.take_counts(), (0, 0), "nothing was sent");
}

/// A paused machine may stop the monotonic clock: then the wall clock ends the window of the sends.
#[tokio::test(start_paused = true)]
async fn a_write_is_not_sent_again_after_four_minutes_on_the_wall_clock() {
    let engine = engine();
    let (client, sleeps) = client_that_sleeps(&engine, |_| lost());
    let store = store(&client, sleeps_when_told(&sleeps), || 7);
    let table = store.table(TABLE);
    let created = table.create("a-1", &Account { balance: 1 }).await.expect_err("too late");
    assert!(matches!(created, Error::Failed(Failure::OutcomeUnknown { .. })), "{created:?}");
    assert_eq!(engine.take_counts(), (0, 1), "the resend that would have found it is not sent");
}

/// With nothing pending, others are known to have been first.
#[tokio::test(start_paused = true)]
async fn a_conflict_is_not_tried_again_after_four_minutes_on_the_wall_clock() {
    let engine = engine();
    let key = Key::from("a-1");
    Store::new(&engine.client()).table(TABLE).create(&key, &Account { balance: 1 }).await.expect("a free key");
    let (client, sleeps) = client_that_sleeps(&engine, |body| (200, body));
    let table: Table<Account> = store(&client, sleeps_when_told(&sleeps), || 7).table(TABLE);
    let decide = |account: &Account| {
        rival(&engine, "a-1");
        add_one(account)
    };
    let lost = table.update_with_retry(&key, decide).await.expect_err("a rival was first");
    assert!(matches!(lost, UpdateError::Failed(Failure::Contention { .. })), "{lost:?}");
}

/// A pause takes at most half of the remaining time: another attempt has time for its answer.
#[tokio::test(start_paused = true)]
async fn a_pause_after_a_conflict_leaves_time_for_another_attempt() {
    let engine = engine();
    let key = Key::from("a-1");
    Store::new(&engine.client()).table(TABLE).create(&key, &Account { balance: 1 }).await.expect("a free key");
    let client = client_that(&engine, |_| Way::Answered(20));
    let table: Table<Account> = Store::new(&client).with_rng(Rng::new(|| u64::MAX)).table(TABLE);
    let others = engine.client();
    let given = others.update_item().table_name(TABLE).key("accountId", AttributeValue::S("a-1".to_owned()));
    let given = given.update_expression("SET #g = :g").expression_attribute_names("#g", "_given");
    given.expression_attribute_values(":g", AttributeValue::N("1000".to_owned())).send().await.expect("a row");
    let rivals = Cell::new(0);
    let decide = |account: &Account| {
        if rivals.replace(1) == 0 {
            rival(&engine, "a-1");
        }
        add_one(account)
    };
    // A thousand others are ahead in the line. The longest pause would be three seconds.
    let call = Call::new(Deadline::within(Duration::from_millis(600)));
    let updated = table.in_call(&call).update_with_retry(&key, decide).await.expect("the rival wrote once");
    assert_eq!((updated.value.balance, call.tally().conflicts), (3, 1));
    assert!(call.deadline().remaining() < Duration::from_millis(300), "it paused: {call:?}");
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
    assert!(matches!(created, Error::Failed(Failure::Unavailable { .. })), "{created:?}");
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
    let (leases, terms) = (store.leases("Leases"), fencepost::lease::LeaseTerms::default());
    let held = leases.acquire("k", "ann", terms).await.expect("a free lease");
    let waiting = leases.acquire_within("k", "bob", terms, Duration::MAX);
    let released = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        leases.release(held).await.expect("held");
    };
    let (waited, ()) = tokio::join!(waiting, released);
    assert_eq!(waited.expect("released").holder(), "bob");
}
