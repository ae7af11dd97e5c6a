//! Rules of adds and burns for rare schedules, which a random history hardly ever plays: each schedule with the rule
//! and without it.

use super::add::{Shelf, TABLE, change_shelf, restock, rivals, row, stock, stock_of, with_shelf};
use crate::harness::clients::{client_that_notes_its_first_write, client_whose, lost};
use crate::harness::engine::Engine;
use crate::harness::faults::{Broken, leave_out};
use fencepost::testing::edit_or_update;
use fencepost::{Failure, ItemVersion, NotEdited, RetryPolicy, Store, Table, UpdateError, Version};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Mutex;

/// Lets the engine answer a request without one rule.
fn answer(engine: &Engine, operation: &str, body: &[u8], broken: Broken) -> (u16, String) {
    let mut request: Value = serde_json::from_slice(body).expect("requests are JSON");
    leave_out(&mut request, broken);
    engine.answer(operation, request.to_string().as_bytes())
}

/// The row forgets all writes, as it may some time after the R-th commit.
fn forget(engine: &Engine) {
    change_shelf(engine, "SET #w = :none", &json!({":none": {"M": {}}}));
}

/// The network delivers the refused add once more when there is stock, within its window. The change of the same call was
/// decided on the row before it, and may not be made beside it.
#[tokio::test]
async fn a_change_after_a_refused_add_gives_way_to_a_copy_of_the_add_that_lands_before_it() {
    let (engine, key, at) = with_shelf().await;
    let (client, under_way) = client_that_notes_its_first_write(&engine);
    let decide = |shelf: &Shelf| {
        restock(&engine);
        rivals(&engine, 1);
        let copy = under_way.lock().expect("no panic");
        assert_eq!(engine.answer("UpdateItem", &copy).0, 200, "it is applied now");
        Ok::<_, Infallible>(Some(shelf.clone()))
    };
    let table: Table<Shelf> = Store::new(&client).table(TABLE);
    let changed = edit_or_update(&table, &key, &stock(-60).seen(at), decide).await;
    let changed = changed.expect("the add was applied");
    assert_eq!((changed.value.stock, changed.version().get()), (40, 3), "told is what was stored");
    assert_eq!((stock_of(&engine), row(&engine)["_version"]["N"].clone()), (40, json!("3")));
}

/// Others change the row before each attempt. A copy of the add may still be applied, and no attempt is left to exclude it.
#[tokio::test(start_paused = true)]
async fn a_change_that_ran_out_of_attempts_after_a_refused_add_burns_nothing_and_is_unknown() {
    let (engine, key, at) = with_shelf().await;
    let mut policy = RetryPolicy::default();
    policy.max_attempts = 2;
    let table: Table<Shelf> = Store::new(&engine.client()).with_policy(policy).table(TABLE);
    let decide = |shelf: &Shelf| {
        rivals(&engine, 1);
        Ok::<_, Infallible>(Some(shelf.clone()))
    };
    let changed = edit_or_update(&table, &key, &stock(-60).seen(at), decide).await;
    assert!(matches!(changed, Err(UpdateError::Failed(Failure::OutcomeUnknown { .. }))), "{changed:?}");
    assert_eq!(engine.take_counts(), (0, 3), "the edit, the rival, the change");
}

/// An add of -51 to 50 is lost. Its resend is refused. Before the burn arrives, there is stock, the lost copy is
/// applied, and others commit. After enough commits the row forgets the add.
async fn burned_late(commits: usize, broken: Broken) -> (Engine, Result<(), UpdateError<NotEdited<Shelf>>>) {
    let (engine, key, at) = with_shelf().await;
    let first = Mutex::new(Vec::new());
    let client = client_whose(&engine, move |engine, before, operation, body| match before {
        0 => {
            *first.lock().expect("no panic") = body.to_vec();
            lost()
        }
        2 => {
            restock(engine);
            let (status, _) = engine.answer(operation, &first.lock().expect("no panic"));
            assert_eq!(status, 200, "the lost copy is applied");
            rivals(engine, commits);
            if commits >= 8 {
                forget(engine);
            }
            answer(engine, operation, body, broken)
        }
        _ => engine.answer(operation, body),
    });
    let added = Store::new(&client).table::<Shelf>(TABLE).edit(&key, &stock(-51).seen(at)).await;
    assert_eq!(stock_of(&engine), 49, "it is applied once");
    (engine, added.map(drop))
}

#[tokio::test(start_paused = true)]
async fn a_burn_that_does_not_ask_for_the_id_denies_an_add_that_was_applied() {
    let (_, added) = burned_late(0, Broken::Nothing).await;
    assert!(added.is_ok(), "{added:?}");
    let (_, denied) = burned_late(0, Broken::BurnOfAnyId).await;
    assert!(matches!(denied, Err(UpdateError::Refused(NotEdited::OutOfRange(_)))), "{denied:?}");
}

#[tokio::test(start_paused = true)]
async fn a_burn_without_a_window_denies_an_add_that_the_row_has_forgotten() {
    let (_, unknown) = burned_late(8, Broken::Nothing).await;
    assert!(matches!(unknown, Err(UpdateError::Failed(Failure::OutcomeUnknown { .. }))), "{unknown:?}");
    let (_, denied) = burned_late(8, Broken::BurnAtAnyVersion).await;
    assert!(matches!(denied, Err(UpdateError::Refused(NotEdited::OutOfRange(_)))), "{denied:?}");
}

/// A caller names a version 8 too high. The answer to the first send is lost. Others commit until the row may have
/// forgotten it and is behind the window.
#[tokio::test(start_paused = true)]
async fn an_add_whose_window_has_no_beginning_is_applied_twice_from_a_version_that_is_too_high() {
    for (broken, times) in [(Broken::Nothing, 1), (Broken::AddNeverEarly, 2)] {
        let (engine, key, at) = with_shelf().await;
        let client = client_whose(&engine, move |engine, before, operation, body| {
            let answer = answer(engine, operation, body, broken);
            if before > 0 {
                return answer;
            }
            rivals(engine, 12);
            forget(engine);
            lost()
        });
        let version = Version::new(at.version.get() + 8).expect("small");
        let seen = ItemVersion { version, ..at };
        Store::new(&client).table::<Shelf>(TABLE).edit(&key, &stock(7).seen(seen)).await.expect("told so");
        assert_eq!(stock_of(&engine), 50 + 7 * times, "{broken:?}");
    }
}

/// The add is applied and its answer is lost. Then the row is purged and made again, and is at the same version.
#[tokio::test(start_paused = true)]
async fn without_the_incarnation_an_add_is_applied_to_the_old_row_and_to_the_new_one() {
    for (broken, stock_left) in [(Broken::Nothing, 50), (Broken::AnyIncarnation, 57)] {
        let (engine, key, at) = with_shelf().await;
        let client = client_whose(&engine, move |engine, before, operation, body| {
            let mut anew = row(engine);
            let answer = answer(engine, operation, body, broken);
            if before > 0 {
                return answer;
            }
            anew["_incarnation"] = json!({"B": "AAAAAAAAAAA="});
            anew["_writes"] = json!({"M": {}});
            engine.raw("PutItem", &json!({"TableName": TABLE, "Item": anew}));
            lost()
        });
        let added = Store::new(&client).table::<Shelf>(TABLE).edit(&key, &stock(7).seen(at)).await;
        assert_eq!((added.is_ok(), stock_of(&engine)), (broken != Broken::Nothing, stock_left), "{added:?}");
    }
}
