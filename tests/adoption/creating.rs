//! Creates on keys that other programs use too.

use super::adopting::VERSIONS;
use super::world::{
    Account, Alone, KEY, Kept, Setup, Shared, TABLE, account, accounts, client_that_loses_the_first, engine, foreign,
    foreign_save, foreign_update, key, number, put, row, with_foreign,
};
use crate::harness::engine::Engine;
use fencepost::http::{CreateRequest, Items};
use fencepost::{Error, Exists, IdempotencyClaim, Store, Table, Versioned};

#[tokio::test]
async fn a_key_that_another_program_took_is_taken_and_the_refusal_holds_its_item() {
    for at in VERSIONS {
        let engine = with_foreign(at);
        let table = accounts::<Shared>(&engine);
        let exists = table.create(&key(), &account(1)).await.expect_err("a taken key");
        let Error::Refused(Exists(current)) = exists else { panic!("{exists:?}") };
        assert_eq!((current.value, current.at.version.get()), (account(50), at.unwrap_or(0)));
        assert!(current.at.incarnation.is_foreign());
        assert_eq!((engine.take_counts(), row(&engine)), ((0, 1), foreign(50, at)));
    }
}

/// Creates an account through a client with a lost first send.
async fn created<S: Setup>(
    applied: bool,
    meanwhile: fn(&Engine),
) -> (Engine, Result<Versioned<Account<S>>, Error<Exists<Account<S>>>>) {
    let engine = engine();
    let table: Table<Account<S>> = Store::new(&client_that_loses_the_first(&engine, applied, meanwhile)).table(TABLE);
    let created = table.create(&key(), &account(1)).await;
    (engine, created)
}

fn takes_the_key(engine: &Engine) {
    put(engine, &foreign(50, Some(1)));
}

#[tokio::test(start_paused = true)]
async fn a_lost_create_is_recognised_also_after_an_update_of_another_program() {
    let nothing: fn(&Engine) = |_| {};
    for (applied, meanwhile) in [(true, nothing), (false, nothing), (true, |engine| foreign_update(engine, 10))] {
        let (engine, created) = created::<Shared>(applied, meanwhile).await;
        assert_eq!(created.expect("it was created once").at.version.get(), 1);
        assert!(row(&engine)["_incarnation"].is_object());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_create_that_finds_a_row_of_another_program_is_unknown_where_others_may_drop_its_traces() {
    let saves: fn(&Engine) = |engine| foreign_save(engine, 10);
    for (applied, meanwhile) in [(true, saves), (true, takes_the_key), (false, takes_the_key)] {
        for unknown in [
            created::<Shared>(applied, meanwhile).await.1.map(drop).map_err(|error| error.to_string()),
            created::<Kept>(applied, meanwhile).await.1.map(drop).map_err(|error| error.to_string()),
        ] {
            assert!(unknown.as_ref().is_err_and(|error| error.starts_with("outcome unknown")), "{unknown:?}");
        }
    }
    // Without other writers, another client's row proves that this create was never applied.
    let (_, exists) = created::<Alone>(false, takes_the_key).await;
    assert!(matches!(exists, Err(Error::Refused(Exists(current))) if current.value.balance == 50));
}

/// Creates an account over HTTP with a key, through a client with a lost first write.
async fn keyed(applied: bool, meanwhile: fn(&Engine)) -> (Engine, [(u16, Option<String>); 2]) {
    let engine = Engine::with_tables(&[(TABLE, KEY), ("Records", "recordId")]);
    let mut answers = Vec::new();
    for client in [client_that_loses_the_first(&engine, applied, meanwhile), engine.client()] {
        let store = Store::new(&client);
        let items = Items::with_idempotency(store.table::<Account<Shared>>(TABLE), store.idempotency("Records"));
        let claim = Some(IdempotencyClaim::new(&["caller", "key"], &["payload"]));
        let answer = items.create("a-1", &account(1), &CreateRequest { if_absent: false, claim }).await;
        let answer = answer.unwrap_or_else(fencepost::http::Problem::into_response);
        answers.push((answer.status(), answer.body().map(str::to_owned)));
    }
    (engine, answers.try_into().expect("two answers"))
}

#[tokio::test(start_paused = true)]
async fn a_keyed_create_whose_answer_was_lost_is_answered_alike_again_and_applied_once() {
    for applied in [true, false] {
        let (engine, [first, again]) = keyed(applied, |_| {}).await;
        assert_eq!((first.0, &first), (201, &again));
        assert_eq!((&row(&engine)["version"], &row(&engine)["balance"]), (&number(1), &number(1)));
    }
    // Only Fencepost writes the record, so it proves the create even after a save has dropped our attributes.
    let (engine, [first, again]) = keyed(true, |engine| foreign_save(engine, 10)).await;
    assert_eq!((first.0, &first), (201, &again));
    assert_eq!(row(&engine)["balance"], number(11));
}

#[tokio::test]
async fn a_keyed_create_on_a_key_that_another_program_took_is_refused() {
    let engine = Engine::with_tables(&[(TABLE, KEY), ("Records", "recordId")]);
    put(&engine, &foreign(50, Some(7)));
    let store = Store::new(&engine.client());
    let items = Items::with_idempotency(store.table::<Account<Shared>>(TABLE), store.idempotency("Records"));
    let claim = Some(IdempotencyClaim::new(&["caller", "key"], &["payload"]));
    let refused = items.create("a-1", &account(1), &CreateRequest { if_absent: false, claim }).await;
    let refused = refused.expect_err("a taken key").into_response();
    assert_eq!((refused.status(), row(&engine)), (409, foreign(50, Some(7))));
}
