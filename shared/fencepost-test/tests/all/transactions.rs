//! Transactions that meet each other.

use crate::counter::{TABLE, add, held, put, read, scene};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError as Refused;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, TransactWriteItem, Update};
use fencepost_test::Fault;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::sleep;

const OVERLAP: Duration = Duration::from_millis(200);

/// Adds one to each of these counters, or to none.
async fn add_to_all(client: &Client, token: &str, ids: &[&str]) -> Result<(), Box<Refused>> {
    add_if(client, token, ids, None).await
}

/// The same under a condition on each of them.
async fn add_if(client: &Client, token: &str, ids: &[&str], condition: Option<&str>) -> Result<(), Box<Refused>> {
    let step = |id: &&str| {
        let update = Update::builder().table_name(TABLE).key("id", AttributeValue::S((*id).to_owned()));
        let update = update.update_expression("ADD n :one").set_condition_expression(condition.map(ToOwned::to_owned));
        let update = update.expression_attribute_values(":one", AttributeValue::N("1".to_owned()));
        TransactWriteItem::builder().update(update.build().expect("whole")).build()
    };
    let steps = ids.iter().map(step).collect();
    let sent = client.transact_write_items().set_transact_items(Some(steps)).client_request_token(token).send().await;
    sent.map(drop).map_err(|error| Box::new(error.into_service_error()))
}

fn codes(refused: &Refused) -> Vec<&str> {
    let Refused::TransactionCanceledException(cancelled) = refused else { panic!("not cancelled: {refused:?}") };
    cancelled.cancellation_reasons().iter().filter_map(|reason| reason.code()).collect()
}

#[tokio::test(start_paused = true)]
async fn transactions_that_overlap_on_an_item_are_cancelled_at_its_step() {
    let db = scene(1);
    put(&db, "b");
    put(&db, "c");
    db.transaction_conflicts(OVERLAP);
    let client = db.client();
    let later = async {
        sleep(Duration::from_millis(50)).await;
        add_to_all(&client, "t-2", &["b", "c"]).await
    };
    let (first, second) = tokio::join!(add_to_all(&client, "t-1", &["a", "b"]), later);
    first.expect("nothing was in its way");
    assert_eq!(codes(&second.expect_err("b is held")), ["TransactionConflict", "None"]);
    assert_eq!((held(&db, "b"), held(&db, "c")), (1, 0));
    sleep(OVERLAP).await;
    add_to_all(&client, "t-3", &["b", "c"]).await.expect("nobody holds it any more");
}

#[tokio::test(start_paused = true)]
async fn a_single_write_into_a_transaction_is_refused_and_a_read_is_not() {
    let db = scene(1);
    db.transaction_conflicts(OVERLAP);
    let client = db.client_without_retries();
    let others = async {
        sleep(Duration::from_millis(50)).await;
        (add(&client, "a").await, read(&client, "a").await)
    };
    let (transaction, (written, read)) = tokio::join!(add_to_all(&client, "t-1", &["a"]), others);
    transaction.expect("it came first");
    let conflict = crate::counter::Failed::With("TransactionConflictException".to_owned());
    assert_eq!((written, read, held(&db, "a")), (Err(conflict), Ok(1), 1));
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_a_transaction_in_flight_is_told_that_it_is_in_progress() {
    let db = scene(1);
    db.transaction_conflicts(OVERLAP);
    let client = db.client_without_retries();
    let copy = async {
        sleep(Duration::from_millis(50)).await;
        add_to_all(&client, "t-1", &["a"]).await
    };
    let (first, copy) = tokio::join!(add_to_all(&client, "t-1", &["a"]), copy);
    first.expect("it came first");
    let copy = copy.expect_err("the first is not done");
    assert!(matches!(*copy, Refused::TransactionInProgressException(_)), "{copy:?}");
    add_to_all(&client, "t-1", &["a"]).await.expect("a replay");
    assert_eq!(held(&db, "a"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_a_transaction_doubles_nothing_until_its_token_is_forgotten() {
    let db = scene(1);
    let lost = db.lose_answer().of("TransactWriteItems").times(2);
    let client = db.client();
    add_to_all(&client, "t-1", &["a"]).await.expect("the SDK repeats it with the same token");
    assert_eq!((held(&db, "a"), lost.struck()), (1, 2));
    db.engine().forget_tokens(); // as after 10 minutes
    add_to_all(&client, "t-1", &["a"]).await.expect("it is executed again");
    assert_eq!(held(&db, "a"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_forgotten_ten_minutes_after_the_first_transaction_with_it() {
    let db = scene(1);
    let client = db.client();
    add_to_all(&client, "t-1", &["a"]).await.expect("no condition");
    sleep(Duration::from_secs(599)).await;
    add_to_all(&client, "t-1", &["a"]).await.expect("a replay");
    assert_eq!(held(&db, "a"), 1);
    add_to_all(&client, "t-2", &["a"]).await.expect("no condition");
    sleep(Duration::from_secs(1)).await;
    add_to_all(&client, "t-1", &["a"]).await.expect("it is executed again: a replay does not count");
    add_to_all(&client, "t-2", &["a"]).await.expect("a replay");
    assert_eq!(held(&db, "a"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_loses_a_race_says_at_which_steps() {
    let db = scene(1);
    let conflict = db.conflict_next().once();
    add_to_all(&db.client(), "t-1", &["a"]).await.expect("a transaction without a condition is spared");
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
    let planned = db.fault(fault).of("TransactWriteItems").always();
    let client = db.client_without_retries();
    let mut answers = BTreeSet::new();
    for number in 0..30 {
        let token = token.map_or_else(|| format!("t-{number}"), ToOwned::to_owned);
        let condition = refused.then_some("attribute_exists(id)");
        answers.insert(match add_if(&client, &token, &["a", "b"], condition).await.map_err(|error| *error) {
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
