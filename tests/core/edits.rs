//! Edits in transactions that an item refuses by its conditions: what the caller is told, and how a decision may go on.

use super::accounts::{Account, call};
use super::add::{Shelf, TABLE, row};
use crate::harness::clients::{client_whose, error};
use crate::harness::engine::Engine;
use crate::harness::states::set;
use fencepost::field::Field;
use fencepost::{
    Attempt, Edit, Error, Failure, FailureKind, IdempotencyClaim, IdempotencyError, Item, Reads, Record, RetryPolicy,
    Settings, Store,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::cell::Cell;

#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "shelfId", settings = Settings::open_to_any())]
struct Open {
    stock: i64,
    note: Option<u64>,
}

/// Edits of an attribute that both records have.
fn stock<T>() -> Field<T, i64> {
    Field::of("stock")
}

fn take<T: Record>(by: i64) -> Edit<T> {
    stock().add(-by, 0..)
}

/// Edits the shelf of 50 and creates a receipt, in one transaction.
async fn edit_with_receipt<T: Record>(
    (store, is_read): (&Store, bool),
    edit: impl Fn(&mut Attempt, Item<T>) -> Result<(), Error<&'static str>>,
) -> Result<(), Error<&'static str>> {
    let mut reads = Reads::new();
    let receipt = reads.later("receipt", &store.table::<Account>("Receipts"), "r-1");
    let table = store.table::<T>(TABLE);
    let shelf = if is_read { reads.item("shelf", &table, "s-1") } else { reads.later("shelf", &table, "s-1") };
    let edited = store.transact_with_retry(reads, |attempt| {
        edit(attempt, shelf)?;
        attempt.put_if_absent(receipt, &Account { balance: 1 })?;
        Ok(())
    });
    edited.await
}

async fn with_receipts() -> (Engine, Store) {
    let engine = Engine::with_tables(&[(TABLE, Shelf::PARTITION_KEY), ("Receipts", Account::PARTITION_KEY)]);
    let store = Store::new(&engine.client());
    store.table::<Open>(TABLE).create("s-1", &Open { stock: 50, note: None }).await.expect("a free key");
    engine.take_log();
    (engine, store)
}

/// The decision leaves the bounds to the edit, and the create could still be applied by a second copy.
#[tokio::test(start_paused = true)]
async fn an_item_that_refuses_the_edit_of_a_transaction_is_not_asked_again_and_the_refusal_is_told() {
    fn edits<T: Record>() -> [Edit<T>; 3] {
        [take(60), take(1).only_if(stock().is(7)), stock().set(50).only_if_changed()]
    }
    async fn refused<T: Record>(is_read: bool, edit: usize) -> (usize, usize) {
        let (note, edit): (Field<T, i64>, Edit<T>) = (Field::of("note"), edits()[edit].clone());
        let (engine, store) = with_receipts().await;
        let (before, decided) = (row(&engine), Cell::new(0));
        let stamped = |attempt: &mut Attempt, shelf: Item<T>| {
            decided.set(decided.get() + 1);
            Ok(attempt.edit(shelf, &edit.clone().stamp(&note, decided.get()))?)
        };
        let refused = edit_with_receipt((&store, is_read), stamped).await;
        let Err(Error::Failed(Failure { kind: FailureKind::EditRefused { name, .. }, .. })) = refused else {
            panic!("{edit:?}: {refused:?}")
        };
        assert_eq!((name.as_str(), row(&engine)), ("shelf", before));
        assert_eq!(engine.row("Receipts", "accountId", "r-1"), Value::Null);
        engine.take_counts()
    }
    for edit in 0..3 {
        assert_eq!(refused::<Shelf>(true, edit).await, (1, 1), "{edit}");
        assert_eq!(refused::<Shelf>(false, edit).await, (0, 1), "{edit}");
        assert_eq!(refused::<Open>(true, edit).await, (1, 1), "{edit}");
    }
    let (engine, store) = with_receipts().await;
    set(&engine, TABLE, "s-1", &[("_purgeAt", json!({"N": "4102444800"}))]);
    engine.take_log();
    let gone = edit_with_receipt::<Shelf>((&store, true), |attempt, shelf| Ok(attempt.edit(shelf, &take(1))?)).await;
    assert!(matches!(gone, Err(Error::Failed(Failure { kind: FailureKind::EditRefused { .. }, .. }))), "{gone:?}");
    assert_eq!(engine.take_counts(), (1, 0), "a tombstone");
}

#[tokio::test(start_paused = true)]
async fn a_decision_may_answer_a_refused_edit_by_a_refusal_or_by_another_edit() {
    let (engine, store) = with_receipts().await;
    let refuse = |attempt: &mut Attempt, shelf: Item<Shelf>| match attempt.edit(shelf, &take(60)) {
        Err(Failure { kind: FailureKind::EditRefused { .. }, .. }) => Err(Error::Refused("it is sold out")),
        edited => Ok(edited?),
    };
    let refused = edit_with_receipt((&store, true), refuse).await;
    assert!(matches!(refused, Err(Error::Refused("it is sold out"))), "{refused:?}");
    // As many as there are, but 60 at most.
    let call = call();
    let most = |attempt: &mut Attempt, shelf: Item<Shelf>| {
        Ok((1..=60)
            .rev()
            .map(|by| attempt.edit(shelf, &take(by)))
            .find(Result::is_ok)
            .expect("one that was not tried")?)
    };
    edit_with_receipt((&store.in_call(&call), true), most).await.expect("there are 50");
    assert_eq!(
        (row(&engine)["stock"]["N"].as_str(), call.tally().conflicts),
        (Some("0"), 9),
        "it pauses from the second on"
    );
}

/// Each refused attempt could still be applied. With too many of them, the change would be unknown.
#[tokio::test(start_paused = true)]
async fn a_decision_that_edits_otherwise_after_each_refusal_ends_as_refused_and_does_not_spin() {
    let (engine, store) = with_receipts().await;
    let mut few = RetryPolicy::default();
    few.max_attempts = 5;
    let tried = Cell::new(60);
    let always_more = |attempt: &mut Attempt, shelf: Item<Shelf>| {
        tried.set(tried.get() + 1);
        Ok(attempt.edit(shelf, &take(tried.get()))?)
    };
    for (policy, attempts) in [(RetryPolicy::default(), 32), (few, 5)] {
        let call = call();
        let store = store.clone().with_policy(policy).in_call(&call);
        let refused = edit_with_receipt((&store, true), always_more).await;
        assert!(
            matches!(refused, Err(Error::Failed(Failure { kind: FailureKind::EditRefused { .. }, .. }))),
            "{refused:?}"
        );
        let (reads, writes) = engine.take_counts();
        assert_eq!(writes, attempts);
        assert!(
            reads <= 2 * attempts - 2,
            "an open attempt is looked for each time, and others before the write: {reads}"
        );
        assert_eq!(call.tally().conflicts as usize, attempts - 1, "it pauses from the second refusal on");
    }
}

/// The record is read once more before the refusal. Without an answer, a second copy of the refused edit could still be applied.
#[tokio::test(start_paused = true)]
async fn a_refused_edit_under_a_key_whose_record_cannot_be_read_again_is_unknown_and_a_decision_that_sent_nothing_is_not()
 {
    let engine = Engine::with_tables(&[(TABLE, Shelf::PARTITION_KEY), ("Requests", "recordId")]);
    let open = Store::new(&engine.client()).table::<Open>(TABLE);
    open.create("s-1", &Open { stock: 50, note: None }).await.expect("a free key");
    let denies = client_whose(&engine, |engine, _, operation, body| match operation {
        "GetItem" => error(400, "AccessDeniedException"),
        _ => engine.answer(operation, body),
    });
    let store = Store::new(&denies);
    let claim = IdempotencyClaim::new(&["k-1"], &[]).expect("a key");
    for sends in [true, false] {
        let mut reads = Reads::new();
        let shelf = reads.item("shelf", &store.table::<Shelf>(TABLE), "s-1");
        let requests = store.idempotency::<()>("Requests");
        let ended = requests.change(&claim, reads, |attempt| {
            if sends { Ok(attempt.edit(shelf, &take(60))?) } else { Err(Error::Refused("it is sold out")) }
        });
        let Err(IdempotencyError::Failed(failure)) = ended.await else { panic!("it cannot be read again") };
        assert_eq!(failure.is_outcome_unknown(), sends, "{failure}");
    }
}
