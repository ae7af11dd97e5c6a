//! Rows of another program as steps of a transaction.

use super::adopting::VERSIONS;
use super::world::{
    Account, Alone, Setup, Shared, TABLE, account, adopted, client_that_loses_the_first, engine, foreign, foreign_save,
    foreign_update, key, number, row, with_foreign,
};
use crate::harness::engine::Engine;
use aws_sdk_dynamodb::Client;
use fencepost::{Edit, Error, Failure, Reads, Store, Table};
use serde_json::{Value, json};

/// The step of a transaction on the account. Beside it, the transaction creates another account.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Step {
    Update,
    Delete,
    Check,
    /// An add in a transaction in which the other step remembers.
    BareAdd,
    /// An add in a transaction without another step.
    AnchorAdd,
}

async fn transact<S: Setup>(client: &Client, step: Step) -> Result<(), Error<()>> {
    let store = Store::new(client);
    let accounts: Table<Account<S>> = store.table(TABLE);
    let mut reads = Reads::new();
    let one = match step {
        Step::BareAdd => reads.later("one", &accounts, key()),
        _ => reads.item("one", &accounts, key()),
    };
    let other = reads.later("other", &accounts, "a-2");
    let done = store.transact_with_retry(reads, |attempt| {
        let current = attempt.get(one)?;
        if current.as_ref().is_some_and(|current| current.value.balance > 993) {
            return Err(Error::Refused(()));
        }
        match (step, current) {
            (Step::Update, Some(current)) => {
                attempt.update_at(one, &account(current.value.balance + 7))?;
            }
            (Step::Delete, Some(_)) => {
                attempt.delete_at(one)?;
            }
            (Step::Check, Some(_)) => attempt.check(one)?,
            (Step::BareAdd | Step::AnchorAdd, _) => {
                attempt.edit(one, &Edit::add("balance", 7, 0..=1000))?;
            }
            (_, None) => return Err(Error::Refused(())),
        }
        if step != Step::AnchorAdd {
            attempt.put_if_absent(other, &account(1))?;
        }
        Ok(())
    });
    done.await
}

fn has_other(engine: &Engine) -> bool {
    engine.row(TABLE, "accountId", "a-2")["balance"].is_object()
}

#[tokio::test]
async fn a_step_adopts_the_row_that_it_writes_in_one_read_and_one_transaction() {
    for at in VERSIONS {
        for step in [Step::Update, Step::Delete, Step::AnchorAdd] {
            let engine = with_foreign(at);
            transact::<Shared>(&engine.client(), step).await.expect("an account");
            assert_eq!(engine.take_counts(), (1, 1), "{step:?} at {at:?}");
            let mut rest = foreign(57, None);
            if step == Step::Delete {
                let version = at.unwrap_or(0) + 1;
                rest["_purgeAt"] = row(&engine)["_purgeAt"].take();
                rest["_buried"] = number(version);
                rest.as_object_mut().expect("a row").remove("balance");
            }
            assert_eq!(row(&engine), adopted(&engine, at, rest), "{step:?} at {at:?}");
            assert_eq!(has_other(&engine), step != Step::AnchorAdd);
        }
    }
}

#[tokio::test]
async fn a_check_and_a_bare_add_leave_a_row_of_another_program_foreign() {
    for at in VERSIONS {
        let engine = with_foreign(at);
        transact::<Shared>(&engine.client(), Step::Check).await.expect("an account");
        assert_eq!((engine.take_counts(), row(&engine), has_other(&engine)), ((1, 1), foreign(50, at), true));

        let engine = with_foreign(at);
        transact::<Shared>(&engine.client(), Step::BareAdd).await.expect("within the bounds");
        let raised = foreign(57, Some(at.unwrap_or(0) + 1));
        assert_eq!((engine.take_counts(), row(&engine), has_other(&engine)), ((0, 1), raised, true));
    }
}

/// The row changes between the read of a transaction and its write.
#[tokio::test(start_paused = true)]
async fn each_step_but_a_bare_add_is_decided_again_after_a_write_of_another_program() {
    for step in [Step::Update, Step::Check, Step::AnchorAdd] {
        for change in [foreign_update, foreign_save] {
            let engine = with_foreign(Some(7));
            let raced = std::sync::atomic::AtomicBool::new(false);
            let client = crate::harness::clients::client_whose(&engine, move |engine, _, operation, body| {
                if operation == "TransactWriteItems" && !raced.swap(true, std::sync::atomic::Ordering::SeqCst) {
                    change(engine, 10);
                }
                engine.answer(operation, body)
            });
            transact::<Shared>(&client, step).await.expect("an account");
            assert_eq!(engine.take_counts(), (1, 2), "{step:?}");
            let balance = if step == Step::Check { 60 } else { 67 };
            assert_eq!(row(&engine)["balance"], number(balance), "{step:?}");
        }
    }
}

/// The token of the transaction is forgotten, so only the rows can tell.
#[tokio::test(start_paused = true)]
async fn a_lost_transaction_is_judged_by_the_row_that_it_adopted() {
    for step in [Step::Update, Step::Delete, Step::AnchorAdd] {
        for applied in [true, false] {
            let engine = with_foreign(Some(7));
            transact::<Alone>(&client_that_loses_the_first(&engine, applied, |_| {}), step).await.expect("an account");
            assert_eq!(row(&engine)["version"], number(8), "{step:?} {applied}");
            let balance = if step == Step::Delete { Value::Null } else { number(57) };
            assert_eq!(row(&engine)["balance"], balance, "{step:?} {applied}");
        }
    }
}

/// An update of another program keeps the traces of the adoption. A save drops them: then nothing proves the outcome.
#[tokio::test(start_paused = true)]
async fn after_a_lost_adoption_an_update_of_another_program_is_no_obstacle_and_a_save_makes_it_unknown() {
    for (applied, saved) in [(true, false), (true, true), (false, true)] {
        let engine = with_foreign(Some(7));
        let client = client_that_loses_the_first(&engine, applied, move |engine| {
            if saved { foreign_save(engine, 10) } else { foreign_update(engine, 10) }
        });
        let done = transact::<Shared>(&client, Step::AnchorAdd).await;
        let is_unknown = matches!(done, Err(Error::Failed(Failure::OutcomeUnknown { .. })));
        assert_eq!((is_unknown, done.is_ok()), (saved, !saved), "{applied} {done:?}");
        assert_eq!(row(&engine)["balance"], number(if applied { 67 } else { 60 }), "{applied} {saved}");
    }
}

/// An adoption cannot be burned: a burn would need a memory in the row.
#[tokio::test(start_paused = true)]
async fn a_lost_adoption_that_is_refused_by_the_row_as_it_was_is_unknown() {
    let engine = with_foreign(Some(7));
    let client = client_that_loses_the_first(&engine, false, |engine| {
        super::world::put(engine, &foreign(990, Some(7)));
    });
    // Only the balance has changed: the row refuses by its bounds alone.
    let step = transact_up_to(&client, 995).await;
    assert!(matches!(step, Err(Error::Failed(Failure::OutcomeUnknown { .. }))), "{step:?}");
    assert_eq!(row(&engine), foreign(990, Some(7)));
}

async fn transact_up_to(client: &Client, most: i64) -> Result<(), Error<()>> {
    let store = Store::new(client);
    let mut reads = Reads::new();
    let one = reads.item("one", &store.table::<Account<Alone>>(TABLE), key());
    let done = store.transact_with_retry(reads, |attempt| {
        attempt.edit(one, &Edit::add("balance", 7, 0..=most))?;
        Ok(())
    });
    done.await
}

#[tokio::test]
async fn a_step_on_a_key_that_another_program_took_is_refused_with_its_item() {
    let engine = engine();
    super::world::put(&engine, &json!({"accountId": {"S": "a-2"}, "balance": number(3), "version": number(2)}));
    super::world::put(&engine, &foreign(50, Some(7)));
    let refused = transact::<Shared>(&engine.client(), Step::Update).await.expect_err("the other key is taken");
    assert!(matches!(refused, Error::Failed(Failure::InvalidTransaction { .. })), "{refused:?}");
    assert_eq!(row(&engine), foreign(50, Some(7)), "nothing of it was applied");
}

/// Another program could remove the tombstone of a burned create while a copy of the create is still on its way.
#[tokio::test(start_paused = true)]
async fn a_lost_create_is_burned_only_where_no_other_program_could_remove_the_tombstone() {
    async fn lose<S: Setup>() -> (bool, Value) {
        let engine = with_foreign(Some(7));
        // The resend is refused, because the other step passes its bound by then.
        let client = client_that_loses_the_first(&engine, false, |engine| {
            super::world::put(engine, &foreign(999, Some(8)));
        });
        let failed = transact::<S>(&client, Step::BareAdd).await.expect_err("the bound is passed");
        let is_unknown = matches!(failed, Error::Failed(Failure::OutcomeUnknown { .. }));
        (is_unknown, engine.row(TABLE, "accountId", "a-2")["_purgeAt"].take())
    }
    let (is_unknown, burned) = lose::<Alone>().await;
    assert!(!is_unknown && burned["N"].is_string(), "it is burned, so it is certain: {burned}");
    assert_eq!(lose::<Shared>().await, (true, Value::Null));
}
