//! Tables with writers that ignore versions: each of our writes demands every value, and has a token.

use super::world::{
    Account, Anybody, TABLE, account, accounts, balance, deposit, foreign, key, number, put, remove, row, update,
    with_foreign,
};
use crate::harness::clients::{Reply, client_whose};
use crate::harness::engine::{Asked, store};
use fencepost::{Failure, FailureKind, Table, UpdateError};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep_until};

/// The writes of a log, each of which must be a transaction of one step with a token. Gives the steps.
fn steps(log: &[Asked]) -> Vec<Value> {
    let writes = log.iter().filter(|asked| !asked.operation.contains("Get"));
    let mut tokens = BTreeSet::new();
    let step = |asked: &Asked| {
        assert_eq!(asked.operation, "TransactWriteItems");
        let token = asked.body["ClientRequestToken"].as_str().expect("a token").to_owned();
        assert!((1..=36).contains(&token.len()) && tokens.insert(token), "a new token for each decision");
        let steps = asked.body["TransactItems"].as_array().expect("steps");
        assert_eq!(steps.len(), 1);
        steps[0].as_object().expect("a step").values().next().expect("one action").clone()
    };
    writes.map(step).collect()
}

#[tokio::test]
async fn every_write_is_a_transaction_of_one_step_that_demands_each_declared_value() {
    let engine = with_foreign(Some(7));
    let table = accounts::<Anybody>(&engine);
    let costs = |reads: usize, name: &str| {
        let log = engine.take_log();
        let reading = log.iter().filter(|asked| asked.operation == "GetItem").count();
        assert_eq!((reading, log.len() - reading), (reads, 1), "{name}");
        let step = steps(&log).remove(0);
        (
            step["ConditionExpression"].as_str().expect("a condition").to_owned(),
            step["ExpressionAttributeValues"].clone(),
        )
    };
    update(&table, 7).await.expect("an account");
    let (condition, values) = costs(1, "an adopting update");
    assert!(condition.contains("#d0 = :d0 AND attribute_not_exists(#d1)"), "{condition}");
    assert_eq!(values[":d0"], number(50));
    let at = update(&table, 7).await.expect("an account").at;
    assert_eq!(costs(1, "an update").1[":d0"], number(57));
    table.update_at_version(&key(), at, deposit(1)).await.expect("that version");
    assert_eq!(costs(1, "an update at a version").1[":d0"], number(64));
    let added = table.edit(&key(), &balance().add(5, 0..=1000)).await.expect("within the bounds");
    assert_eq!(added.item.expect("it decodes").expect("it was read again").value, account(70));
    assert_eq!(costs(2, "an add, which a transaction does not show").1[":d0"], number(65));
    table.delete_at_version(&key(), added.at).await.expect("that version");
    assert_eq!(costs(1, "a delete at a version").1[":d0"], number(70));
    remove(&engine);
    table.create(&key(), &account(1)).await.expect("a free key");
    costs(0, "a create");
    table.delete(&key()).await.expect("an account");
    costs(1, "a delete");
}

/// The lead of the client's clock: almost the four minutes assumed beside such writers.
const AHEAD: Duration = Duration::from_secs(239);
/// For how long no answer gets through.
const SILENCE: Duration = Duration::from_secs(70);
/// For how long after its date a request is accepted.
const LIFE: Duration = Duration::from_mins(5);

/// For a while, no answer gets through. If the same deposit is sent again later, this send is answered. Ten minutes
/// after the first send, its token is forgotten. Another program removes the account and makes it again at version 1.
/// Then all copies arrive that are still accepted.
#[tokio::test(start_paused = true)]
async fn no_copy_of_an_applied_change_is_applied_to_a_row_that_came_back_after_its_token_was_forgotten() {
    let (engine, began) = (with_foreign(Some(1)), Instant::now());
    let sends = Arc::<Mutex<Vec<(Instant, Vec<u8>)>>>::default();
    let noted = sends.clone();
    let client = client_whose(&engine, move |engine, _, operation, body| {
        if operation == "GetItem" {
            return Reply::from(engine.answer(operation, body));
        }
        assert_eq!(operation, "TransactWriteItems");
        noted.lock().expect("no panic").push((Instant::now(), body.to_vec()));
        let answer = engine.answer(operation, body);
        if began.elapsed() < SILENCE { Reply::Never } else { answer.into() }
    });
    let now = move || SystemTime::UNIX_EPOCH + Duration::from_hours(500_000) + AHEAD + began.elapsed();
    let table: Table<Account<Anybody>> =
        store(&client, now, || fastrand::u64(..)).with_time_limit(Duration::from_mins(3)).table(TABLE);
    let told = table.update_with_retry(&key(), deposit(7)).await;
    let is_unknown = matches!(told, Err(UpdateError::Failed(Failure { kind: FailureKind::OutcomeUnknown { .. }, .. })));
    assert!(told.is_ok() || is_unknown, "{told:?}");
    assert_eq!(row(&engine)["balance"], number(57), "it was applied");

    sleep_until(began + Duration::from_mins(10) + Duration::from_secs(1)).await;
    remove(&engine);
    put(&engine, &foreign(50, Some(1)));
    sleep_until(began + Duration::from_mins(10) + Duration::from_secs(2)).await;
    for (sent, body) in sends.lock().expect("no panic").iter() {
        if sent.elapsed() <= AHEAD + LIFE {
            engine.answer("TransactWriteItems", body);
        }
    }
    assert_eq!(row(&engine), foreign(50, Some(1)), "told {told:?}, and applied again");
}
