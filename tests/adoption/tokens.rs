//! A token lives for ten minutes. A copy of a request whose client has a clock that is ahead lives almost as long after its
//! send.

use super::world::{Account, Anybody, TABLE, deposit, foreign, key, number, put, remove, row, with_foreign};
use crate::harness::clients::{Reply, client_whose};
use crate::harness::engine::store;
use fencepost::{Failure, Table, UpdateError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep_until};

/// By how much the clock of the client is ahead: almost the four minutes that are assumed beside such writers.
const AHEAD: Duration = Duration::from_secs(239);
/// For how long no answer gets through.
const SILENCE: Duration = Duration::from_secs(70);
/// For how long after its date a request is accepted.
const LIFE: Duration = Duration::from_mins(5);

/// No answer gets through for a while. If another send of the same deposit leaves then, it is answered. Ten minutes after the
/// first send its token is forgotten. Another program removes the account and makes it again at version 1, and the copies arrive
/// that are still accepted.
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
    let is_unknown = matches!(told, Err(UpdateError::Failed(Failure::OutcomeUnknown { .. })));
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
