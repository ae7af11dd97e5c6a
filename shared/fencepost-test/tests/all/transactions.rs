//! Faults of transactions and of batches. `capacity.rs` has transactions that meet each other.

use crate::counter::{TABLE, codes, held, put, scene, transact};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError as Refused;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, TransactWriteItem};
use fencepost_test::Fault;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_a_transaction_doubles_nothing_until_its_token_is_forgotten() {
    let db = scene(1);
    let lost = db.lose_answer().of("TransactWriteItems").times(2);
    let client = db.client();
    transact(&client, "t-1", &["a"], None).await.expect("the SDK repeats it with the same token");
    assert_eq!((held(&db, "a"), lost.struck()), (1, 2));
    db.engine().forget_tokens(); // as after 10 minutes
    transact(&client, "t-1", &["a"], None).await.expect("it is executed again");
    assert_eq!(held(&db, "a"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_forgotten_ten_minutes_after_the_first_transaction_with_it() {
    let db = scene(1);
    let client = db.client();
    transact(&client, "t-1", &["a"], None).await.expect("no condition");
    sleep(Duration::from_secs(599)).await;
    transact(&client, "t-1", &["a"], None).await.expect("a replay");
    assert_eq!(held(&db, "a"), 1);
    transact(&client, "t-2", &["a"], None).await.expect("no condition");
    sleep(Duration::from_secs(1)).await;
    transact(&client, "t-1", &["a"], None).await.expect("it is executed again: a replay does not count");
    transact(&client, "t-2", &["a"], None).await.expect("a replay");
    assert_eq!(held(&db, "a"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_loses_a_race_says_at_which_steps() {
    let db = scene(1);
    let conflict = db.conflict_next().once();
    transact(&db.client(), "t-1", &["a"], None).await.expect("a transaction without a condition is spared");
    assert_eq!((held(&db, "a"), conflict.struck()), (1, 0));
    let check = aws_sdk_dynamodb::types::ConditionCheck::builder().table_name(TABLE);
    let check = check.key("id", AttributeValue::S("a".to_owned())).condition_expression("attribute_exists(id)");
    let delete = aws_sdk_dynamodb::types::Delete::builder().table_name(TABLE);
    let delete = delete.key("id", AttributeValue::S("b".to_owned())).build().expect("whole");
    let transaction = db
        .client()
        .transact_write_items()
        .transact_items(TransactWriteItem::builder().delete(delete).build())
        .transact_items(TransactWriteItem::builder().condition_check(check.build().expect("whole")).build());
    let refused = transaction.send().await.expect_err("it lost").into_service_error();
    assert_eq!((codes(&refused), conflict.struck()), (vec!["None", "ConditionalCheckFailed"], 1));
}

/// Adds to `a`, which is there, and to `b`, which is not, 30 times with this fault. Gives the answers, and how often `a` was
/// counted up. Where `refused`, the transactions demand that both are there.
async fn fate(fault: Fault, token: Option<&str>, refused: bool) -> (BTreeSet<String>, i64) {
    let db = scene(1);
    db.transactions_take(Duration::ZERO); // None meets a late copy of another.
    let planned = db.fault(fault).of("TransactWriteItems").always();
    let client = db.client_without_retries();
    let mut answers = BTreeSet::new();
    for number in 0..30 {
        let token = token.map_or_else(|| format!("t-{number}"), ToOwned::to_owned);
        let condition = refused.then_some("attribute_exists(id)");
        answers.insert(match transact(&client, &token, &["a", "b"], condition).await.map_err(|error| *error) {
            Ok(()) => "applied".to_owned(),
            Err(Refused::TransactionInProgressException(_)) => "in progress".to_owned(),
            Err(Refused::IdempotentParameterMismatchException(_)) => "mismatch".to_owned(),
            Err(cancelled) => codes(&cancelled).join(" "),
        });
    }
    assert_eq!(planned.struck(), 30);
    sleep(Duration::from_secs(6)).await;
    (answers, held(&db, "a"))
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_a_transaction_is_answered_and_applied_as_it_says() {
    const CONFLICT: &str = "TransactionConflict";
    let told = |answers: &[&str]| answers.iter().map(|answer| (*answer).to_owned()).collect::<BTreeSet<_>>();
    let (both, first, second) =
        (format!("{CONFLICT} {CONFLICT}"), format!("{CONFLICT} None"), format!("None {CONFLICT}"));
    let mixed = format!("{CONFLICT} ConditionalCheckFailed");
    for (fault, token, refused, answers, applied) in [
        (Fault::TransactionConflict, None, false, told(&[&both, &first, &second]), 0),
        (Fault::MixedReasons, None, false, told(&["applied"]), 30),
        (Fault::MixedReasons, None, true, told(&[&both, &second, &mixed]), 0),
        (Fault::InProgress, None, false, told(&["in progress"]), 30),
        (Fault::Mismatch, None, false, told(&["mismatch"]), 0),
        (Fault::TokensForgotten, Some("t-1"), false, told(&["applied"]), 30),
    ] {
        assert_eq!(fate(fault, token, refused).await, (answers, applied), "{fault}");
    }
}

/// A batch of reads comes back without some of its keys, and names them.
#[tokio::test(start_paused = true)]
async fn a_batch_whose_keys_are_left_out_names_them() {
    let db = scene(1);
    put(&db, "b");
    let left_out = db.fault(Fault::Unprocessed).always();
    let keys = ["a", "b"].map(|id| [("id".to_owned(), AttributeValue::S(id.to_owned()))].into()).to_vec();
    let wanted = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true).build().expect("whole");
    let mut found = BTreeSet::new();
    for _ in 0..30 {
        let batch = db.client_without_retries().batch_get_item().request_items(TABLE, wanted.clone());
        let Ok(answer) = batch.send().await else {
            found.insert(0); // all of them: then it is throttled
            continue;
        };
        let items = answer.responses.expect("responses")[TABLE].len();
        let left = &answer.unprocessed_keys.expect("some are left out")[TABLE];
        assert_eq!((items + left.keys.len(), left.consistent_read), (2, Some(true)));
        found.insert(items);
    }
    assert_eq!((found, left_out.struck()), (BTreeSet::from([0, 1]), 30));
}
