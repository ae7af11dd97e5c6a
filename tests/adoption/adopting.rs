//! Rows of another program: read, and adopted by the first change, whichever it is. Creates on keys that other programs use
//! too.

use super::world::{
    Account, Alone, KEY, Kept, Removed, Renamed, Setup, Shared, Swept, TABLE, account, accounts, adopted,
    client_that_loses_the_first, deposit, engine, foreign, foreign_save, foreign_update, get, key, name_of, number,
    put, row, set, update, with_foreign,
};
use crate::harness::engine::{Engine, is_read};
use fencepost::http::{CreateRequest, Items};
use fencepost::testing::edit_or_update;
use fencepost::{
    Edit, Error, Exists, Failure, IdempotencyClaim, Incarnation, NotEdited, Store, Table, UpdateError, Version,
    VersionError, Versioned,
};
use serde_json::{Value, json};

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
    let add = |most| Edit::add("balance", 7, 0..=most);
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

/// The tombstone of a foreign account.
fn tombstone(engine: &Engine, version: u64, has_mark: bool) -> Value {
    let mut left = json!({KEY: {"S": "a-1"}, "stranger": {"S": "kept"}, "_purgeAt": row(engine)["_purgeAt"]});
    if has_mark {
        left["_buried"] = number(version);
    }
    left
}

/// Adopts a row at each version by each operation. With `has_mark`, tombstones have their version.
async fn each_change_adopts<S: Setup>(has_mark: bool) {
    for at in VERSIONS {
        for changed in CHANGES {
            let engine = with_foreign(at);
            let made = change(&engine, &accounts::<S>(&engine), changed).await;
            assert_eq!(engine.take_counts(), (1, 1), "{changed:?} at {at:?}");
            assert_eq!(made.get(), at.unwrap_or(0) + 1, "{changed:?} at {at:?}");
            let rest = match changed {
                Change::Delete | Change::DeleteAtVersion => tombstone(&engine, made.get(), has_mark),
                _ => foreign(57, None),
            };
            assert_eq!(row(&engine), adopted(&engine, at, rest), "{changed:?} at {at:?}");
            if !matches!(changed, Change::Delete | Change::DeleteAtVersion) {
                assert_eq!(update(&accounts::<S>(&engine), 1).await.expect("an account").value.balance, 58);
                assert_eq!(engine.take_counts(), (1, 1), "a row of ours costs the same");
            }
        }
    }
}

#[tokio::test]
async fn a_row_of_another_program_is_adopted_by_the_first_change_with_one_read_and_one_write() {
    each_change_adopts::<Alone>(false).await;
}

#[tokio::test]
async fn beside_versioned_writers_a_row_is_adopted_by_the_first_change_too() {
    each_change_adopts::<Shared>(true).await;
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
async fn a_physical_delete_of_a_row_of_another_program_removes_it() {
    for at in VERSIONS {
        for changed in [Change::Delete, Change::DeleteAtVersion] {
            let engine = with_foreign(at);
            let made = change(&engine, &accounts::<Removed>(&engine), changed).await;
            assert_eq!((made.get(), engine.take_counts()), (at.unwrap_or(0) + 1, (1, 1)), "{changed:?} at {at:?}");
            assert_eq!(row(&engine), Value::Null);
        }
    }
}

#[tokio::test]
async fn a_row_of_another_program_is_read_at_its_version_and_left_as_it_is() {
    for at in VERSIONS {
        let engine = with_foreign(at);
        let read = get(&accounts::<Alone>(&engine)).await.expect("an account");
        assert_eq!((read.value, read.at.version.get()), (account(50), at.unwrap_or(0)));
        assert!(read.at.incarnation.is_foreign());
        assert_eq!((engine.take_counts(), row(&engine)), ((1, 0), foreign(50, at)));
    }
}

#[tokio::test]
async fn a_change_that_writes_nothing_adopts_nothing() {
    let engine = with_foreign(Some(7));
    let table = accounts::<Shared>(&engine);
    let keep = |_: &Account<Shared>| Ok::<Option<_>, ()>(None);
    let kept = table.update_with_retry(&key(), keep).await.expect("an account");
    let refuse = |_: &Account<Shared>| Err("no");
    let refused = table.update_with_retry(&key(), refuse).await.expect_err("a refusal");
    assert!(kept.at.incarnation.is_foreign() && matches!(refused, UpdateError::Refused("no")));
    let refused = table.edit(&key(), &Edit::add("balance", -51, 0..=100)).await.expect_err("too little");
    assert!(matches!(refused, UpdateError::Refused(NotEdited::OutOfRange(current)) if current.at == kept.at));
    assert_eq!((engine.take_counts(), row(&engine)), ((3, 0), foreign(50, Some(7))));
}

/// A row without a version is another state than one at version 0: another program has written it in between.
#[tokio::test]
async fn an_adopting_write_is_refused_where_a_version_has_come_or_gone_and_is_decided_again() {
    for [before, after] in [[None, Some(0)], [Some(0), None], [Some(7), Some(8)], [Some(7), None]] {
        for changed in [true, false] {
            let engine = with_foreign(before);
            let table = accounts::<Shared>(&engine);
            let decided = std::cell::Cell::new(0);
            let decide = |account: &Account<Shared>| {
                if decided.replace(decided.get() + 1) == 0 {
                    put(&engine, &foreign(if changed { 60 } else { 50 }, after));
                }
                deposit(7)(account)
            };
            let updated = table.update_with_retry(&key(), decide).await.expect("an account");
            assert_eq!((decided.get(), engine.take_counts()), (2, (1, 2)), "{before:?} {after:?}");
            let balance = if changed { 67 } else { 57 };
            assert_eq!((updated.value, updated.at.version.get()), (account(balance), after.unwrap_or(0) + 1));
            assert_eq!(row(&engine), adopted(&engine, after, foreign(balance, None)));
        }
    }
}

/// The other program has read the row before. Only the version can refuse its update.
#[tokio::test]
async fn an_adoption_raises_the_version_so_that_an_update_decided_before_it_is_refused() {
    for at in [0, 7] {
        let engine = with_foreign(Some(at));
        update(&accounts::<Shared>(&engine), 7).await.expect("an account");
        let late = json!({
            "TableName": TABLE,
            "Key": {KEY: {"S": "a-1"}},
            "UpdateExpression": "SET balance = :stale, #v = :next",
            "ConditionExpression": "#v = :at",
            "ExpressionAttributeNames": {"#v": "version"},
            "ExpressionAttributeValues": {":stale": number(51), ":next": number(at + 1), ":at": number(at)},
        });
        let (status, answer) = engine.answer("UpdateItem", late.to_string().as_bytes());
        assert!(status == 400 && answer.contains("ConditionalCheckFailed"), "{answer}");
        assert_eq!(row(&engine)["balance"], number(57));
    }
}

/// Two adoptions of one state: only the condition on the incarnation stands in the way of the second, where the other
/// program has brought the version back.
#[tokio::test]
async fn an_adopting_write_is_refused_by_an_adopted_row_even_at_the_same_version() {
    let engine = with_foreign(Some(7));
    let table = accounts::<Shared>(&engine);
    let decided = std::cell::Cell::new(0);
    let mut theirs = foreign(80, Some(7));
    theirs["_incarnation"] = json!({"B": "AAAAAAAAAAA="});
    theirs["_writes"] = json!({"M": {"AAAAAAAAAAA": number(6)}});
    let decide = |account: &Account<Shared>| {
        if decided.replace(decided.get() + 1) == 0 {
            put(&engine, &theirs);
        }
        deposit(7)(account)
    };
    let updated = table.update_with_retry(&key(), decide).await.expect("an account");
    assert_eq!((updated.value.balance, decided.get()), (87, 2));
    assert_eq!(updated.at.incarnation, Incarnation::from_bytes([0; 8]), "the row stays theirs");
}

/// The write to a row without a version demands only the absence of attributes. A key without a row fulfils this too.
#[tokio::test]
async fn an_adopting_write_does_not_make_a_row_that_is_gone() {
    for at in VERSIONS {
        let engine = with_foreign(at);
        let table = accounts::<Shared>(&engine);
        let gone = |account: &Account<Shared>| {
            super::world::remove(&engine);
            deposit(7)(account)
        };
        let updated = table.update_with_retry(&key(), gone).await.expect_err("it is gone");
        assert!(matches!(updated, UpdateError::NotFound), "{updated:?}");
        assert_eq!((row(&engine), engine.take_counts()), (Value::Null, (1, 1)), "{at:?}");
    }
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
        table.edit(&key(), &Edit::add("balance", 1, 0..=100)).await.expect("within the bounds");
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

    let token = table.store().leases("Leases").token("k", 7);
    update(&table.fenced_by(&token), 1).await.expect("an account");
    assert_eq!(row(&engine)["f"], number(7));
}

/// A foreign row knows no token. The first fenced change adopts it and leaves its token.
#[tokio::test]
async fn a_fenced_change_adopts_a_row_and_leaves_its_token_which_refuses_lower_ones() {
    let engine = with_foreign(Some(7));
    let table = accounts::<Swept>(&engine);
    let leases = table.store().leases("Leases");
    update(&table.fenced_by(&leases.token("k", 9)), 7).await.expect("an account");
    let mut rest = foreign(57, None);
    rest["_fence"] = number(9);
    assert_eq!(row(&engine), adopted(&engine, Some(7), rest));
    let lower = update(&table.fenced_by(&leases.token("k", 8)), 7).await.expect_err("a lower token");
    assert!(matches!(lower, UpdateError::Failed(Failure::Fenced)), "{lower:?}");
}

#[tokio::test]
async fn a_client_adopts_a_remembered_item_without_a_read() {
    let engine = with_foreign(Some(7));
    let table = accounts::<Shared>(&engine).remembering_items();
    get(&table).await.expect("an account");
    engine.take_log();
    update(&table, 7).await.expect("an account");
    assert_eq!((engine.take_counts(), row(&engine)), ((0, 1), adopted(&engine, Some(7), foreign(57, None))));
    table.edit(&key(), &Edit::add("balance", 3, 0..=100)).await.expect("within the bounds");
    assert_eq!((engine.take_counts(), row(&engine)["balance"].clone()), ((0, 1), number(60)));
    put(&engine, &foreign(50, Some(7)));
    get(&table).await.expect("an account");
    engine.take_log();
    table.edit(&key(), &Edit::add("balance", 3, 0..=100)).await.expect("within the bounds");
    assert_eq!((engine.take_counts(), row(&engine)["balance"].clone()), ((0, 1), number(53)));
    // Without memory of the item, an add to a foreign row reads it, because its version alone does not tell it.
    put(&engine, &foreign(50, Some(7)));
    let other: Table<Account<Shared>> = Store::new(&engine.client()).table(TABLE);
    get(&other).await.expect("an account");
    engine.take_log();
    other.edit(&key(), &Edit::add("balance", 3, 0..=100)).await.expect("within the bounds");
    let asked: Vec<_> = engine.take_log().iter().map(|asked| is_read(&asked.operation)).collect();
    assert_eq!(asked, [true, false]);
}

/// Updates of another program need no cooperation: each is a conflict, followed by a new decision.
#[tokio::test(start_paused = true)]
async fn each_conflict_with_another_program_costs_one_more_write_and_no_read() {
    for conflicts in 1..=3 {
        let engine = with_foreign(Some(7));
        let decided = std::cell::Cell::new(0);
        let decide = |account: &Account<Shared>| {
            if decided.replace(decided.get() + 1) < conflicts {
                foreign_update(&engine, 1);
            }
            deposit(100)(account)
        };
        let table = accounts::<Shared>(&engine);
        let updated = table.update_with_retry(&key(), decide).await.expect("it wins in the end");
        assert_eq!(updated.value.balance, 150 + i64::from(conflicts));
        assert_eq!(engine.take_counts(), (1, usize::try_from(conflicts).expect("few") + 1));
    }
}

/// The memory of the row forgets the adoption after some commits. Its incarnation never does.
#[tokio::test(start_paused = true)]
async fn a_lost_adoption_is_recognised_by_the_incarnation_after_the_row_has_forgotten_its_write() {
    for change in [Change::Update, Change::Add] {
        let engine = with_foreign(Some(7));
        let client = client_that_loses_the_first(&engine, true, |engine| {
            set(engine, &[("version", number(40)), ("_writes", json!({"M": {}}))]);
        });
        let table: Table<Account<Shared>> = Store::new(&client).table(TABLE);
        assert_eq!(self::change(&engine, &table, change).await.get(), 8, "{change:?}");
        assert_eq!(row(&engine)["balance"], number(57), "{change:?}");
    }
}

/// Another writer may have written the row. Its state at the time of the lost answer proves nothing.
#[tokio::test(start_paused = true)]
async fn a_lost_adoption_is_unknown_after_a_save_of_another_program_and_known_after_its_update() {
    for applied in [true, false] {
        for saved in [true, false] {
            let engine = with_foreign(Some(7));
            let client = client_that_loses_the_first(&engine, applied, move |engine| {
                if saved { foreign_save(engine, 10) } else { foreign_update(engine, 10) }
            });
            let table: Table<Account<Shared>> = Store::new(&client).table(TABLE);
            let updated = update(&table, 7).await;
            let is_unknown = matches!(updated, Err(UpdateError::Failed(Failure::OutcomeUnknown { .. })));
            // An update that keeps the traces of an adoption proves it. Without traces, nothing is proved.
            assert_eq!(is_unknown, saved || !applied, "{applied} {saved}: {updated:?}");
            assert_eq!(row(&engine)["balance"], number(if applied { 67 } else { 60 }), "{applied} {saved}");
        }
    }
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
