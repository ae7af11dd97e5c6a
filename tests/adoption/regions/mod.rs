//! Tables with multi-Region strong consistency: an operation that cannot keep its promise is refused before any
//! request. The others keep theirs.

mod history;
mod network;
mod worker;

use self::network::{Regions, is_conflict};
use super::world::{
    Account, KEY, Regional, TABLE, account, accounts, call, client_that_loses_the_first, deposit, engine, get, key,
    number, row, update,
};
use crate::harness::clients::{client_whose, error, lost};
use crate::harness::engine::{Engine, is_read};
use crate::harness::faults::Rates;
use fencepost::http::{ChangeRequest, IfMatch, Items, Problem};
use fencepost::lease::LeaseTerms;
use fencepost::{
    Edit, Error, Failure, Idempotency, IdempotencyClaim, IdempotencyError, NotEdited, Reads, Store, Table, UpdateError,
};
use std::time::Duration;

const SENTENCE: &str = "account is in a table with multi-Region strong consistency, which has no transactions: change its \
                        items one by one";

/// A decision over one account, with a step of each kind.
fn reads(table: &Table<Account<Regional>>) -> (Reads, fencepost::Item<Account<Regional>>) {
    let mut reads = Reads::new();
    let item = reads.item("account", table, key());
    (reads, item)
}

#[tokio::test]
async fn a_transaction_is_refused_with_a_sentence_before_anything_is_sent() {
    let engine = engine();
    let table = accounts::<Regional>(&engine);
    let (reads, item) = reads(&table);
    let refused = table.store().transact_with_retry(reads, |attempt| {
        attempt.put_if_absent(item, &account(1))?;
        Ok::<_, Error>(())
    });
    let refused = refused.await.expect_err("no transactions");
    let Error::Failed(Failure::InvalidTransaction { reason }) = refused else { panic!("{refused:?}") };
    assert_eq!((reason.as_str(), engine.take_counts()), (SENTENCE, (0, 0)));
}

#[tokio::test]
async fn idempotency_keys_are_refused_with_a_sentence_before_anything_is_sent() {
    let engine = Engine::with_tables(&[(TABLE, KEY), ("Records", "recordId")]);
    let table = accounts::<Regional>(&engine);
    let records: Idempotency<i64> = table.store().idempotency("Records");
    let claim = IdempotencyClaim::new(&["caller", "key"], &["payload"]);
    let (reads, item) = reads(&table);
    let refused = records.change(&claim, reads, |attempt| {
        attempt.put_if_absent(item, &account(1))?;
        Ok::<_, Error>(1)
    });
    let refused = refused.await.expect_err("no transactions");
    let IdempotencyError::Failed(Failure::InvalidTransaction { reason }) = refused else { panic!("{refused:?}") };
    assert!(reason.ends_with("which has no transactions: change its items one by one"), "{reason}");

    let items = Items::with_idempotency(table.clone(), table.store().idempotency("Records"));
    let request = ChangeRequest { if_match: IfMatch::None, claim: Some(claim) };
    let decide = |account: &Account<Regional>| deposit(1)(account).map_err(Problem::from);
    let refused = items.change("a-1", &request, decide).await.expect_err("no transactions");
    assert_eq!((refused.into_response().status(), engine.take_counts()), (500, (0, 0)));
}

/// `DynamoDB` itself refuses a transaction with a lease of such a table. Nothing is applied or repeated.
#[tokio::test]
async fn a_transaction_that_requires_a_lease_of_such_a_table_is_rejected_once() {
    let engine = Engine::with_tables(&[(TABLE, KEY), ("Leases", "leaseKey")]);
    let client = client_whose(&engine, |engine, _, operation, body| match operation {
        "TransactWriteItems" => error(400, "ValidationException"),
        _ => engine.answer(operation, body),
    });
    let store = Store::new(&client);
    let (accounts, leases): (Table<Account<super::world::Swept>>, _) = (store.table(TABLE), store.leases("Leases"));
    let mut reads = Reads::new();
    let item = reads.item("account", &accounts, key());
    let lease = reads.lease("lease", &leases.token("k", 7));
    let call = call();
    let store = store.in_call(&call);
    let refused = store.transact_with_retry(reads, |attempt| {
        attempt.put_if_absent(item, &account(1))?;
        attempt.require(lease)?;
        Ok::<_, Error>(())
    });
    let refused = refused.await.expect_err("no transactions");
    assert!(matches!(refused, Error::Failed(Failure::Rejected { .. })), "{refused:?}");
    assert_eq!(call.tally().attempts, 1);
}

/// Two deposits, each in a Region of its own, at the same moment.
#[tokio::test(start_paused = true)]
async fn of_two_writes_at_one_item_in_two_regions_one_is_refused_for_now_and_sent_again() {
    let mut conflicts = 0;
    for seed in 0..20 {
        let engine = Engine::embedded(&[(TABLE, KEY)]);
        accounts::<Regional>(&engine).create(&key(), &account(50)).await.expect("a free key");
        let regions = Regions::new(&engine, Rates::default(), 0, seed);
        let [one, other] = [0, 1].map(|region| regions.store(region).table::<Account<Regional>>(TABLE));
        engine.take_log();
        let (one, other) = tokio::join!(update(&one, 7), update(&other, 100));
        assert!(one.is_ok() && other.is_ok(), "{one:?} {other:?}");
        assert_eq!((row(&engine)["balance"].clone(), row(&engine)["version"].clone()), (number(157), number(3)));
        conflicts += regions.network.log().iter().filter(|sent| is_conflict(sent)).count();
        // A write that is refused for now never reaches the table: one write each, and one more after a lost race.
        let (reads, writes) = engine.take_counts();
        assert!(reads == 2 && (2..=3).contains(&writes), "{reads} {writes}");
    }
    assert!(conflicts >= 10, "{conflicts}: most were in flight together");
}

/// The fate of the first send of a deposit, before conflicts.
#[derive(Clone, Copy, PartialEq, Debug)]
enum First {
    Conflict,
    Lost,
    AppliedAndLost,
}

/// The refusal of one send proves nothing about an earlier lost one.
#[tokio::test(start_paused = true)]
async fn what_became_of_a_send_is_found_out_after_conflicts_between_regions_that_end_and_told_as_far_as_it_is_known() {
    for (first, conflicts, told, balance) in [
        (First::AppliedAndLost, 3, "applied", 57),
        (First::Lost, 3, "applied", 57),
        (First::Lost, usize::MAX, "unknown", 50),
        (First::Conflict, usize::MAX, "unavailable", 50),
    ] {
        let engine = Engine::embedded(&[(TABLE, KEY)]);
        accounts::<Regional>(&engine).create(&key(), &account(50)).await.expect("a free key");
        let client = client_whose(&engine, move |engine, writes, operation, body| match (writes, first) {
            _ if is_read(operation) => engine.answer(operation, body),
            (0, First::AppliedAndLost) => {
                engine.answer(operation, body);
                lost()
            }
            (0, First::Lost) => lost(),
            _ if writes <= conflicts => error(400, "ReplicatedWriteConflictException"),
            _ => engine.answer(operation, body),
        });
        let updated = update(&Store::new(&client).table::<Account<Regional>>(TABLE), 7).await;
        let said = match &updated {
            Ok(updated) => {
                assert_eq!((updated.value.balance, updated.at.version.get()), (57, 2), "{first:?}");
                "applied"
            }
            Err(UpdateError::Failed(Failure::OutcomeUnknown { .. })) => "unknown",
            Err(UpdateError::Failed(Failure::Unavailable { .. })) => "unavailable",
            Err(other) => panic!("{first:?}: {other:?}"),
        };
        assert_eq!(
            (said, row(&engine)["balance"].clone()),
            (told, number(balance)),
            "{first:?}, {conflicts} conflicts"
        );
    }
}

/// Rows stay here, those of leases as well as tombstones. Everything works without their removal.
#[tokio::test(start_paused = true)]
async fn a_lease_and_a_tombstone_that_ttl_never_removes_are_as_good_as_new_after_years() {
    let engine = Engine::embedded(&[(TABLE, KEY), ("Leases", "leaseKey")]);
    let regions = Regions::new(&engine, Rates::default(), 0, 1);
    let stores = [0, 1].map(|region| regions.store(region));
    let terms = LeaseTerms::new(Duration::from_secs(10)).expect("long enough");
    let mut tokens = Vec::new();
    for year in 0..4 {
        let store = &stores[year % 2];
        let lease = store.leases("Leases").acquire("k", "holder", terms).await.expect("free");
        tokens.push(lease.token().number());
        let table = store.table::<Account<Regional>>(TABLE).fenced_by(lease.token());
        let created = table.create(&key(), &account(1)).await.expect("only a tombstone");
        assert_eq!(created.at.version.get(), 2 * u64::try_from(year).expect("small") + 1, "the version goes on");
        table.delete(&key()).await.expect("an account");
        // Some leases are released, and some end.
        if year < 2 {
            store.leases("Leases").release(lease).await.expect("held");
        }
        tokio::time::sleep(Duration::from_hours(365 * 24)).await;
        assert_eq!(get(&store.table::<Account<Regional>>(TABLE)).await, None);
    }
    assert!(tokens.is_sorted_by(|one, other| one < other), "{tokens:?}");
    assert_eq!(
        (&row(&engine)["_buried"], row(&engine)["_fence"]["N"].as_str()),
        (&number(8), Some(&*tokens[3].to_string()))
    );
}

/// A table of several Regions has ordinary adds: a window over the writes of all Regions, with a burn at its end.
#[tokio::test(start_paused = true)]
async fn an_add_that_was_lost_and_is_refused_is_burned() {
    let engine = Engine::embedded(&[(TABLE, KEY)]);
    let other = accounts::<Regional>(&engine);
    let at = other.create(&key(), &account(50)).await.expect("a free key").at;
    let client = client_that_loses_the_first(&engine, false, |engine| {
        super::world::set(engine, &[("balance", number(3)), ("version", number(2))]);
    });
    let add = Edit::add("balance", -7, 0..=100).seen(at);
    let added = Store::new(&client).table::<Account<Regional>>(TABLE).edit(&key(), &add).await;
    assert!(matches!(added, Err(UpdateError::Refused(NotEdited::OutOfRange(now))) if now.value.balance == 3));
    assert_eq!(
        (row(&engine)["version"].clone(), get(&other).await.map(|now| now.value)),
        (number(3), Some(account(3)))
    );
}
