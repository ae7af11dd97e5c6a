//! Rows of another program: read, and adopted by the first change, whichever it is. Creates on keys that other programs use
//! too, and such rows as steps of a transaction.

use super::world::{
    Account, Alone, KEY, Renamed, Setup, Shared, Swept, TABLE, account, accounts, adopted, balance, deposit, engine,
    foreign, get, key, name_of, number, row, set, update, with_foreign,
};
use crate::harness::engine::Engine;
use aws_sdk_dynamodb::Client;
use fencepost::testing::edit_or_update;
use fencepost::{
    Error, Exists, Failure, FailureKind, NotEdited, NotEditedReason, Reads, Store, Table, UpdateError, Version,
    VersionError,
};
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
#[tokio::test]
async fn an_adoption_takes_the_mark_of_a_later_version_away() {
    for changed in [Change::Update, Change::UpdateAtVersion, Change::Add, Change::AddOrUpdate] {
        let engine = with_foreign(Some(7));
        set(&engine, &[("_buried", number(8))]);
        let table = accounts::<Shared>(&engine);
        assert_eq!(change(&engine, &table, changed).await.get(), 8, "{changed:?}");
        assert_eq!(get(&table).await.map(|now| now.value), Some(account(57)), "{changed:?}");
        assert!(row(&engine)["_buried"].is_null(), "{changed:?}");
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

#[tokio::test]
async fn all_names_are_those_of_the_record_and_rows_of_ours_cost_no_request_more() {
    let engine = engine();
    let table = accounts::<Renamed>(&engine);
    let created = table.create(&key(), &account(50)).await.expect("a free key");
    assert_eq!((created.version().get(), engine.take_counts()), (5, (0, 1)), "versions begin at 5");
    let first = row(&engine);
    let memory = json!({"M": {name_of(&first["i"]): number(4)}});
    let mut expected = json!({KEY: {"S": "a-1"}, "balance": number(50), "v": number(5), "w": memory, "i": first["i"]});
    assert_eq!(first, expected);

    update(&table, 7).await.expect("an account");
    assert_eq!(engine.take_counts(), (1, 1));
    for counts in [(1, 1), (0, 1)] {
        table.edit(&key(), &balance().add(1, 0..=100)).await.expect("within the bounds");
        assert_eq!(engine.take_counts(), counts, "the first add is cold, the second warm");
    }
    let at = get(&table).await.expect("an account").at;
    engine.take_log();
    table.update_at_version(&key(), at, deposit(1)).await.expect("that version");
    assert_eq!(engine.take_counts(), (1, 1));
    let stale = table.delete_at_version(&key(), at).await.expect_err("an old version");
    assert!(matches!(stale, VersionError::Conflict(_)) && engine.take_counts() == (0, 1));
    table.delete(&key()).await.expect("an account");
    assert_eq!(engine.take_counts(), (1, 1));
    let left = row(&engine);
    expected =
        json!({KEY: {"S": "a-1"}, "v": number(10), "b": number(10), "p": left["p"], "w": left["w"], "i": left["i"]});
    assert_eq!(left, expected);
    table.create(&key(), &account(1)).await.expect("only a tombstone");
    assert_eq!((row(&engine)["v"].clone(), engine.take_counts()), (number(11), (0, 2)));
    assert!(row(&engine)["b"].is_null() && row(&engine)["p"].is_null());

    let token = table.store().leases("Leases").token("k", 7).expect("a token");
    update(&table.fenced_by(&token), 1).await.expect("an account");
    assert_eq!(row(&engine)["f"], number(7));
}

/// A foreign row knows no token. The first fenced change adopts it and leaves its token.
#[tokio::test]
async fn a_fenced_change_adopts_a_row_and_leaves_its_token_which_refuses_lower_ones() {
    let engine = with_foreign(Some(7));
    let table = accounts::<Swept>(&engine);
    let leases = table.store().leases("Leases");
    update(&table.fenced_by(&leases.token("k", 9).expect("a token")), 7).await.expect("an account");
    let mut rest = foreign(57, None);
    rest["_fence"] = number(9);
    assert_eq!(row(&engine), adopted(&engine, Some(7), rest));
    let lower = update(&table.fenced_by(&leases.token("k", 8).expect("a token")), 7).await.expect_err("a lower token");
    assert!(matches!(lower, UpdateError::Failed(Failure { kind: FailureKind::Fenced, .. })), "{lower:?}");
}

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
