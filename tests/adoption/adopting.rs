//! Rows of another program: read, and adopted by the first change, whichever it is, also as steps of a transaction.

use super::world::{
    Account, Alone, Anybody, KEY, Setup, Shared, TABLE, account, accounts, adopted, balance, deposit, foreign, get,
    key, number, row, set, update, with_foreign,
};
use crate::harness::engine::Engine;
use aws_sdk_dynamodb::Client;
use fencepost::testing::edit_or_update;
use fencepost::{Error, NotEdited, NotEditedReason, Reads, Store, Table, UpdateError, Version};
use serde_json::json;

/// The versions in a row of another program: none yet, 0 and any other.
pub const VERSIONS: [Option<u64>; 3] = [None, Some(0), Some(7)];

/// The operations whose first use adopts the row.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Change {
    Update,
    UpdateAtVersion,
    Add,
    AddOrUpdate,
    UpdateInsteadOfAdd,
    Delete,
    DeleteAtVersion,
}

const CHANGES: [Change; 7] = [
    Change::Update,
    Change::UpdateAtVersion,
    Change::Add,
    Change::AddOrUpdate,
    Change::UpdateInsteadOfAdd,
    Change::Delete,
    Change::DeleteAtVersion,
];

/// Changes the account by 7, or deletes it. Returns the version of the change.
async fn change<S: Setup>(engine: &Engine, table: &Table<Account<S>>, change: Change) -> Version {
    let key = key();
    let at = get(table).await.expect("an account").at;
    engine.take_log();
    let add = |most| balance().add(7, 0..=most);
    match change {
        Change::Update => table.update_with_retry(&key, deposit(7)).await.expect("an account").version(),
        Change::UpdateAtVersion => table.update_at_version(&key, at, deposit(7)).await.expect("that version").version(),
        Change::Add => table.edit(&key, &add(1000)).await.expect("within the bounds").at.version,
        Change::AddOrUpdate => {
            let refuse = |_: &Account<S>| Err(());
            edit_or_update(table, &key, &add(1000), refuse).await.expect("within the bounds").version()
        }
        Change::UpdateInsteadOfAdd => {
            edit_or_update(table, &key, &add(5), deposit(7)).await.expect("an account").version()
        }
        Change::Delete => table.delete(&key).await.expect("an account"),
        Change::DeleteAtVersion => table.delete_at_version(&key, at).await.expect("that version"),
    }
}

#[tokio::test]
async fn a_row_of_another_program_is_adopted_by_the_first_change_with_one_read_and_one_write() {
    for at in VERSIONS {
        for changed in CHANGES {
            let engine = with_foreign(at);
            let made = change(&engine, &accounts::<Alone>(&engine), changed).await;
            assert_eq!(engine.take_counts(), (1, 1), "{changed:?} at {at:?}");
            assert_eq!(made.get(), at.unwrap_or(0) + 1, "{changed:?} at {at:?}");
            let is_delete = matches!(changed, Change::Delete | Change::DeleteAtVersion);
            let rest = if is_delete {
                json!({KEY: {"S": "a-1"}, "stranger": {"S": "kept"}, "_purgeAt": row(&engine)["_purgeAt"]})
            } else {
                foreign(57, None)
            };
            assert_eq!(row(&engine), adopted(&engine, at, rest), "{changed:?} at {at:?}");
            if !is_delete {
                assert_eq!(update(&accounts::<Alone>(&engine), 1).await.expect("an account").value.balance, 58);
                assert_eq!(engine.take_counts(), (1, 1), "a row of ours costs the same");
            }
        }
    }
}

/// The adoption raises the version. With the mark, the row would be a tombstone at the new version.
async fn takes_the_mark_away<S: Setup>(changed: Change) {
    let engine = with_foreign(Some(7));
    set(&engine, &[("_buried", number(8))]);
    let table = accounts::<S>(&engine);
    assert_eq!(change(&engine, &table, changed).await.get(), 8, "{changed:?}");
    assert_eq!(get(&table).await.map(|now| now.value), Some(account(57)), "{changed:?}");
    assert!(row(&engine)["_buried"].is_null(), "{changed:?}");
}

#[tokio::test]
async fn an_adoption_takes_the_mark_of_a_later_version_away() {
    for changed in [Change::Update, Change::UpdateAtVersion, Change::Add, Change::AddOrUpdate] {
        takes_the_mark_away::<Shared>(changed).await;
        takes_the_mark_away::<Anybody>(changed).await;
    }
}

#[tokio::test]
async fn a_change_that_writes_nothing_adopts_nothing() {
    let engine = with_foreign(Some(7));
    let table = accounts::<Shared>(&engine);
    let keep = |_: &Account<Shared>| Ok::<Option<_>, ()>(None);
    let kept = table.update_with_retry(&key(), keep).await.expect("an account");
    let refuse = |_: &Account<Shared>| Err::<Account<Shared>, _>("no");
    let refused = table.update_with_retry(&key(), refuse).await.expect_err("a refusal");
    assert!(kept.at.incarnation.is_foreign() && matches!(refused, UpdateError::Refused("no")));
    let refused = table.edit(&key(), &balance().add(-51, 0..=100)).await.expect_err("too little");
    assert!(
        matches!(refused, UpdateError::Refused(NotEdited { reason: NotEditedReason::OutOfRange, item, .. }) if item.at == kept.at)
    );
    assert_eq!((engine.take_counts(), row(&engine)), ((3, 0), foreign(50, Some(7))));
}

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
                attempt.edit(one, &balance().add(7, 0..=1000))?;
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
