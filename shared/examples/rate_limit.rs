//! **A rate limit per tenant.** Each tenant may make five calls at once and then one per second. The usual counter is
//! read, compared and raised: callers at the same moment all find room. With a conditional `ADD` they do not, but the
//! SDK repeats it after a lost answer and counts one call twice. This recipe keeps one number per tenant, the moment at
//! which its calls are worked off. A decision moves it. The process with the last call decides from memory, in one
//! write. Run it with `cargo run -p fencepost --example rate_limit`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use fencepost::{Clock, Error, Failure, Record, Store, Table};
use fencepost_test::Dynamo;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::sleep;

/// Each call takes this many milliseconds from the budget of its tenant.
const CALL: u64 = 1_000;
const BUDGET: u64 = 5 * CALL;

#[derive(Serialize, Deserialize, Record)]
#[record(key = "tenantId")]
struct Limit {
    /// When all calls are worked off, in milliseconds since 1970.
    free_at: u64,
}

/// Whether the tenant may make a call now. If not, it may after this time.
async fn admit(limits: &Table<Limit>, tenant: &str) -> Result<Result<(), Duration>, Failure> {
    let now = limits.store().now().epoch_millis().unwrap_or_default();
    let decide = |limit: Option<&Limit>| {
        let free_at = limit.map_or(now, |limit| limit.free_at.max(now)) + CALL;
        let too_much = free_at.saturating_sub(now + BUDGET);
        if too_much == 0 { Ok(Limit { free_at }) } else { Err(Duration::from_millis(too_much)) }
    };
    match limits.upsert_with_retry(tenant, decide).await {
        Ok(_) => Ok(Ok(())),
        Err(Error::Refused(wait)) => Ok(Err(wait)),
        Err(Error::Failed(failure)) => Err(failure), // choose whether such a call is let through
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let db = Dynamo::new();
    db.create_table("Limits", "tenantId");
    let clock = db.clone();
    let store = Store::new(&db.client()).with_clock(Clock::new(move || clock.now()));
    let limits: Table<Limit> = store.table("Limits").remembering_items();
    admit(&limits, "acme").await.expect("an outcome").expect("the first");
    assert_eq!(db.engine().take_counts(), (1, 1));
    admit(&limits, "acme").await.expect("an outcome").expect("the second");
    assert_eq!(db.engine().take_counts(), (0, 1));
    let lost = db.lose_answer().of_writes().once();
    admit(&limits, "acme").await.expect("an outcome").expect("the third");
    assert_eq!((db.engine().take_counts(), lost.struck()), ((0, 2), 1), "the repeat takes nothing");
    let two = tokio::join!(admit(&limits, "acme"), admit(&limits, "acme"));
    assert!(matches!(two, (Ok(Ok(())), Ok(Ok(())))), "the fourth and the fifth, at once: {two:?}");
    db.engine().take_counts();
    let wait = admit(&limits, "acme").await.expect("an outcome").expect_err("it has made five");
    assert_eq!(db.engine().take_counts(), (1, 0), "a refusal is never answered from memory");
    admit(&limits, "tiny").await.expect("an outcome").expect("another tenant");
    sleep(wait).await;
    admit(&limits, "acme").await.expect("an outcome").expect("it has waited");
    println!("{}", db.log());
}

#[test]
fn a_call_whose_answer_is_lost_takes_one_place() {
    main();
}
