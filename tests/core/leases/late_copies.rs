//! Copies that arrive late, and refusals that prove less than they seem to.

use crate::harness::clients::{Way, client_that, client_whose, error, lost};
use crate::harness::engine::{Engine, is_read};
use crate::harness::functions::{CHILDREN, LEASES};
use crate::leases::world::{World, call, ensure_under, release, renew, shown_child, terms};
use fencepost::lease::{LeaseHeld, NotHeldAt};
use fencepost::{Error, Failure, Key, Reads, Record, Store};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Writes as they were sent: operation and body.
type Sent = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// The same world through a client that notes its writes, so copies of them can be delivered.
fn noting(world: &World) -> (World, Sent) {
    let sent = Sent::default();
    let noted = sent.clone();
    let client = client_whose(&world.engine, move |engine, _, operation, body| {
        if !is_read(operation) {
            noted.lock().expect("no panic").push((operation.to_owned(), body.to_vec()));
        }
        engine.answer(operation, body)
    });
    (world.reached_by(&client), sent)
}

#[tokio::test(start_paused = true)]
async fn a_late_copy_of_an_acquire_does_not_take_the_lease_again_after_its_release() {
    let (world, sent) = noting(&World::new());
    let lease = world.app.leases.acquire("k", "a", terms(10_000)).await.expect("acquired");
    world.app.leases.release(lease).await.expect("released");
    let (operation, body) = sent.lock().expect("no panic")[0].clone();
    let (status, _) = world.engine.answer(&operation, &body);
    assert_eq!((status, world.row("k").get("holder")), (400, None), "nobody would hold it");
    world.app.leases.acquire("k", "b", terms(10_000)).await.expect("it is free for others");
}

#[tokio::test(start_paused = true)]
async fn an_acquire_that_was_applied_and_then_released_is_unknown_to_a_client_that_lost_the_answer() {
    let world = World::new();
    let client = client_whose(&world.engine, |engine, write, operation, body| {
        let answer = engine.answer(operation, body);
        if write > 0 {
            return answer;
        }
        let key = json!({"leaseKey": {"S": "k"}});
        engine.raw("UpdateItem", &json!({"TableName": LEASES, "Key": key, "UpdateExpression": "REMOVE holder"}));
        lost()
    });
    let acquired = world.reached_by(&client).app.leases.acquire("k", "a", terms(10_000)).await;
    assert!(matches!(acquired, Err(Error::Failed(Failure::OutcomeUnknown { .. }))), "{acquired:?}");
}

/// A look that arrives late has acquired the lease for the waiter. The next look finds it.
#[tokio::test(start_paused = true)]
async fn a_waiter_finds_the_lease_that_a_late_copy_of_its_own_look_acquired() {
    let world = World::new();
    let other = world.app.leases.acquire("k", "b", terms(10_000)).await.expect("acquired");
    let (waiting, sent) = noting(&world);
    let patient = Duration::from_secs(30);
    let waiter = waiting.app.leases.acquire_within("k", "a", terms(10_000), patient);
    let late = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let first = sent.lock().expect("no panic").first().cloned().expect("a first look");
        world.app.leases.release(other).await.expect("released");
        assert_eq!(world.engine.answer(&first.0, &first.1).0, 200, "it finds the lease free");
    };
    let (lease, ()) = tokio::join!(waiter, late);
    let lease = lease.expect("it is its own");
    assert_eq!(world.row("k")["token"], json!({"N": lease.token().number().to_string()}));
    assert!(lease.remaining() <= Duration::from_secs(9), "counted from its stored end, less the skew");
    assert!(sent.lock().expect("no panic").len() <= 3);
}

/// A call may end before the time to wait: the earlier end counts. Looks are counted from the first one.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_may_wait_longer_than_its_call_lasts_does_not_look_more_often() {
    for (timeout, lasts) in [(3_600, 10), (60, 10), (3_600, 25)] {
        let world = World::new();
        world.acquired("k", "b", 900).await;
        let (waiting, sent) = noting(&world);
        let timeout = Duration::from_secs(timeout);
        let held = waiting.app.leases.in_call(&call(lasts)).acquire_within("k", "a", terms(10_000), timeout).await;
        assert!(matches!(held, Err(Error::Refused(LeaseHeld { .. }))), "{held:?}");
        let looks = sent.lock().expect("no panic").len();
        assert!(looks as u64 <= 1 + 2 * (lasts / 10 + 1), "{looks} looks in {lasts} s");
    }
}

/// Work that is always ready uses up each share of time that the runtime gives its task.
#[tokio::test(start_paused = true)]
async fn work_that_is_always_ready_does_not_keep_its_lease_from_being_renewed() {
    let world = World::new();
    // Paused time stands still while something is ready, so another task moves it on.
    let time = tokio::spawn(async {
        loop {
            tokio::time::advance(Duration::from_millis(10)).await;
        }
    });
    let began = world.clock.now();
    let clock = world.clock.clone();
    let greedy = |_| async move {
        while clock.now() - began < 24_000 {
            while tokio::task::coop::has_budget_remaining() {
                tokio::task::consume_budget().await;
            }
            tokio::task::yield_now().await;
        }
    };
    let held = world.app.leases.while_held("k", "a", terms(10_000), greedy).await;
    time.abort();
    held.expect("held to the end");
    assert_eq!(world.row("k")["renewals"], json!({"N": "4"}));
}

/// Each names the renewals before it, even without a tag of the client.
#[tokio::test(start_paused = true)]
async fn a_late_copy_of_a_renewal_does_not_undo_one_that_made_the_lease_shorter() {
    let (world, sent) = noting(&World::new());
    let token = world.acquired("k", "a", 60).await;
    for (seconds, tag) in [(900, "*".to_owned()), (60, "*".to_owned()), (60, format!("\"{token}.2\""))] {
        world.send(&renew("k", token, seconds).header("if-match", &tag)).await.shown(200);
    }
    let before = world.row("k");
    for (operation, body) in sent.lock().expect("no panic").iter().skip(1) {
        assert_eq!((world.engine.answer(operation, body).0, world.row("k")), (400, before.clone()));
    }
}

/// A renewal that was applied, then followed by another, is never answered as not applied.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_was_lost_and_overtaken_stays_pending_when_the_next_is_throttled() {
    let world = World::new();
    let token = world.acquired("k", "a", 60).await;
    let client = client_whose(&world.engine, |engine, write, operation, body| match write {
        _ if is_read(operation) => engine.answer(operation, body),
        0 => {
            engine.answer(operation, body);
            overtake(engine);
            lost()
        }
        1 => engine.answer(operation, body),
        _ => error(400, "ThrottlingException"),
    });
    let renewed = world.reached_by(&client).send(&renew("k", token, 90)).await;
    renewed.says(504, "outcome_unknown");
}

/// Another client renews the lease, for longer.
fn overtake(engine: &Engine) {
    engine.raw(
        "UpdateItem",
        &json!({
            "TableName": LEASES,
            "Key": {"leaseKey": {"S": "k"}},
            "UpdateExpression": "SET renewals = renewals + :one, expiresAt = expiresAt + :more",
            "ExpressionAttributeValues": {":one": {"N": "1"}, ":more": {"N": "100000"}},
        }),
    );
}

/// A copy of a refused demand may be applied later, once the lease has been renewed as often as the client demanded.
#[tokio::test(start_paused = true)]
async fn a_demand_that_is_ahead_of_the_lease_is_unknown_as_long_as_a_copy_is_on_its_way() {
    let world = World::new();
    let token = world.acquired("k", "a", 60).await;
    for event in [renew("k", token, 90), release("k", token)] {
        let client = client_that(&world.engine, |request| if request == 0 { Way::Dropped } else { Way::Answered(10) });
        let event = event.header("if-match", &format!("\"{token}.3\""));
        world.reached_by(&client).send(&event).await.says(504, "outcome_unknown");
        world.send(&event).await.says(412, "version_conflict");
    }
    let token = world.app.leases.token("k", token);
    let far = world.app.leases.renew_at(&token, Some(u64::MAX), terms(10_000)).await;
    assert!(matches!(far, Err(Error::Refused(NotHeldAt::Conflict(_)))), "{far:?}");
}

/// The reasons of a cancellation: the refusing lease, without a word about the child.
fn lease_refused(engine: &Engine) -> (u16, String) {
    let lease = engine.row(LEASES, "leaseKey", "k");
    let reasons = json!([{"Code": "None"}, {"Code": "ConditionalCheckFailed", "Item": lease}]);
    let reasons = if lease.is_null() { json!([{"Code": "None"}, {"Code": "ConditionalCheckFailed"}]) } else { reasons };
    let kind = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
    (400, json!({"__type": kind, "Message": "", "CancellationReasons": reasons}).to_string())
}

/// The same in the order of the steps, as the function sends them: the check of the lease may come first.
fn in_order_of(body: &[u8], (status, answer): (u16, String)) -> (u16, String) {
    let body: Value = serde_json::from_slice(body).expect("JSON");
    let mut answer: Value = serde_json::from_str(&answer).expect("JSON");
    if body["TransactItems"][0].get("ConditionCheck").is_some() {
        answer["CancellationReasons"].as_array_mut().expect("reasons").reverse();
    }
    (status, answer.to_string())
}

/// An engine may stop at the first failed condition. The client then asks for the other items.
#[tokio::test(start_paused = true)]
async fn a_child_whose_create_landed_before_the_lease_was_lost_is_answered_as_created() {
    for landed in [true, false] {
        let world = World::new();
        let token = world.acquired("k", "a", 60).await;
        let client = client_whose(&world.engine, move |engine, write, operation, body| {
            if is_read(operation) {
                return engine.answer(operation, body);
            }
            if write > 0 {
                return in_order_of(body, lease_refused(engine));
            }
            if landed {
                engine.answer(operation, body);
            }
            let key = json!({"leaseKey": {"S": "k"}});
            engine.raw("UpdateItem", &json!({"TableName": LEASES, "Key": key, "UpdateExpression": "REMOVE holder"}));
            lost()
        });
        let answer = world.reached_by(&client).send(&ensure_under("p", "u", &json!({}), ("k", token))).await;
        if landed {
            answer.shown(201);
        } else {
            answer.says(409, "fenced");
        }
        let found = world.send(&shown_child("p", "u")).await.status;
        assert_eq!(found, if landed { 200 } else { 404 });
    }
}

/// The child is read before the lease. An engine may name the lease alone: the child is then read again.
#[tokio::test(start_paused = true)]
async fn a_child_that_another_client_creates_in_between_answers_before_the_fence_does() {
    let world = World::new();
    let token = world.acquired("k", "a", 60).await;
    let other = world.reached_by(&world.engine.client());
    let created = other.send(&ensure_under("p", "u", &json!({}), ("k", token))).await.shown(201);
    let client = client_whose(&world.engine, |engine, _, operation, body| match operation {
        "BatchGetItem" => (200, json!({"Responses": {CHILDREN: []}, "UnprocessedKeys": {}}).to_string()),
        "TransactWriteItems" => in_order_of(body, lease_refused(engine)),
        _ => engine.answer(operation, body),
    });
    world.send(&release("k", token)).await;
    let found = world.reached_by(&client).send(&ensure_under("p", "u", &json!({}), ("k", token))).await.shown(200);
    assert_eq!(found, created);
}

#[derive(Clone, Debug, Serialize, Deserialize, Record)]
#[record(key = "childId")]
struct Count {
    n: u64,
}

/// A decision that no longer needs the lost lease can still demand that the other items are unchanged.
#[tokio::test(start_paused = true)]
async fn a_lease_that_was_lost_is_none_of_the_items_that_are_checked() {
    let world = World::new();
    let client = world.engine.client();
    let (counts, key) = (Store::new(&client).table::<Count>(CHILDREN), Key::from("c"));
    counts.create(&key, &Count { n: 1 }).await.expect("created");
    let lease = world.app.leases.acquire("k", "a", terms(10_000)).await.expect("acquired");
    let overtaking = client_whose(&world.engine, |engine, write, operation, body| {
        if write == 0 && operation == "TransactWriteItems" {
            let update = |table: &str, key: Value, expression: &str| {
                let mut update = json!({"TableName": table, "Key": key, "UpdateExpression": expression});
                if expression.contains("#v") {
                    update["ExpressionAttributeNames"] = json!({"#v": "_version"});
                    update["ExpressionAttributeValues"] = json!({":one": {"N": "1"}});
                }
                engine.raw("UpdateItem", &update);
            };
            update(LEASES, json!({"leaseKey": {"S": "k"}}), "REMOVE holder");
            update(CHILDREN, json!({"childId": {"S": "c"}}), "SET n = n + :one, #v = #v + :one");
        }
        engine.answer(operation, body)
    });
    let store = Store::new(&overtaking);
    let mut reads = Reads::new();
    let item = reads.item("count", &store.table::<Count>(CHILDREN), &key);
    let required = reads.lease("lease", lease.token());
    let call = call(5);
    let store = store.in_call(&call);
    let counted = store.transact_with_retry(reads, |attempt| {
        let count = attempt.get(item)?.expect("it is there").value;
        if count.n > 1 {
            attempt.check_rest()?;
            return Ok::<_, Error>(count.n);
        }
        attempt.require(required)?;
        attempt.update_at(item, &Count { n: 10 })?;
        Ok(10)
    });
    assert_eq!(counted.await.expect("decided again"), 2);
}

/// A future token may be the current one when a late copy arrives. So the create is burned before its refusal is told.
#[tokio::test(start_paused = true)]
async fn a_create_under_a_token_that_is_still_to_come_is_burned_before_it_is_said_to_be_fenced() {
    let world = World::new();
    let token = world.acquired("k", "a", 60).await;
    let under_way = Sent::default();
    let noted = under_way.clone();
    let client = client_whose(&world.engine, move |engine, writes, operation, body| {
        if is_read(operation) || writes > 0 {
            return engine.answer(operation, body);
        }
        noted.lock().expect("no panic").push((operation.to_owned(), body.to_vec()));
        lost()
    });
    let next = token + 1;
    world.reached_by(&client).send(&ensure_under("p", "u", &json!({}), ("k", next))).await.says(409, "fenced");
    // The token becomes current. The copy arrives.
    world.send(&release("k", token)).await;
    let acquired = world.acquired("k", "b", 60).await;
    let engine = &world.engine;
    let lease = json!({"TableName": LEASES, "Key": {"leaseKey": {"S": "k"}}, "UpdateExpression": "SET #t = :t",
        "ExpressionAttributeNames": {"#t": "token"}, "ExpressionAttributeValues": {":t": {"N": next.to_string()}}});
    engine.raw("UpdateItem", &lease);
    assert!(acquired > token);
    let (operation, body) = under_way.lock().expect("no panic").pop().expect("one");
    assert_eq!(engine.answer(&operation, &body).0, 400, "nothing of it is applied");
    // A new request under this token creates the child.
    world.send(&ensure_under("p", "u", &json!({}), ("k", next))).await.shown(201);
}
