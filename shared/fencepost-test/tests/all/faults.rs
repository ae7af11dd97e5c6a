//! Each fault of one request, the requests that a planned fault strikes, and their log.

use crate::counter::{Failed, TABLE, add, add_at, held, put, read, scene};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Credentials, Region};
use aws_sdk_dynamodb::types::AttributeValue;
use fencepost_test::{Changes, Dynamo, Fault, Garbling, Outcome, Plan, Rates};
use serde_json::json;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

fn with(code: &str) -> Failed {
    Failed::With(code.to_owned())
}

/// A client that waits a second for each answer.
fn impatient(db: &Dynamo, retries: RetryConfig) -> Client {
    let config = Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("a", "b", None, None, "test"))
        .timeout_config(TimeoutConfig::builder().operation_attempt_timeout(Duration::from_secs(1)).build())
        .retry_config(retries);
    db.client_from(config)
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_no_success_may_have_been_applied_and_the_sdk_repeats_it() {
    type Plans = fn(&Dynamo) -> Plan;
    let plans: [(Plans, i64, Option<&str>); 5] = [
        (Dynamo::lose_answer, 1, None),
        (Dynamo::reset_connection, 0, None),
        (Dynamo::throttle, 0, Some("ThrottlingException")),
        (|db| db.fault(Fault::Applied500), 1, Some("InternalServerError")),
        (|db| db.fault(Fault::Refused500), 0, Some("InternalServerError")),
    ];
    for (plan, applied, code) in plans {
        let db = scene(1);
        plan(&db).once();
        let failed = add(&db.client_without_retries(), "a").await.expect_err("no success");
        assert_eq!(matches!(failed, Failed::WithoutAnswer(_)), code.is_none());
        assert!(code.is_none_or(|code| failed == with(code)), "{failed:?}");
        assert_eq!((held(&db, "a"), i64::try_from(db.log().executed())), (applied, Ok(applied)));
        let planned = plan(&db).times(2);
        add(&db.client(), "a").await.expect("the third send is answered");
        assert_eq!((held(&db, "a"), planned.struck(), db.log().len()), (3 * applied + 1, 2, 4));
        plan(&db).times(3);
        add(&db.client(), "a").await.expect_err("it sends three times and no more");
        assert_eq!(db.log().len(), 7);
    }
}

#[tokio::test(start_paused = true)]
async fn silence_is_ended_only_by_a_timeout_of_the_client() {
    let db = scene(1);
    let lost = db.lose_answer().silently().always();
    let patient = db.client_without_retries();
    assert!(timeout(Duration::from_mins(30), add(&patient, "a")).await.is_err(), "it waits for ever");
    assert_eq!((held(&db, "a"), lost.struck()), (1, 1));
    let begun = Instant::now();
    add(&impatient(&db, RetryConfig::disabled()), "a").await.expect_err("no answer in time");
    assert_eq!((held(&db, "a"), begun.elapsed().as_secs()), (2, 1));
    add(&impatient(&db, RetryConfig::standard()), "a").await.expect_err("none of three answers in time");
    assert_eq!((held(&db, "a"), lost.struck()), (5, 5));
}

#[tokio::test(start_paused = true)]
async fn a_delayed_write_is_applied_after_its_client_has_given_up() {
    let db = scene(1);
    db.delay(Duration::from_mins(1)).of("UpdateItem").once();
    add(&impatient(&db, RetryConfig::disabled()), "a").await.expect_err("no answer in time");
    assert_eq!(held(&db, "a"), 0);
    db.settle().await;
    assert_eq!(held(&db, "a"), 1);
    assert_eq!(db.log()[0].heard, None, "nobody was waiting any more");
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_is_applied_again_where_no_condition_stops_it() {
    let db = scene(1);
    db.duplicate(Duration::from_secs(30)).of_writes().times(2);
    let client = db.client();
    add(&client, "a").await.expect("an answer");
    assert_eq!(held(&db, "a"), 1);
    sleep(Duration::from_secs(31)).await;
    assert_eq!(held(&db, "a"), 2);
    add_at(&client, "a", 3).await.expect("the version is 3");
    db.settle().await;
    assert_eq!(held(&db, "a"), 3, "the copy found version 4");
    let arrivals: Vec<_> = db.log().writes().iter().map(|sent| sent.arrivals.len()).collect();
    assert_eq!((arrivals, db.log().executed()), (vec![2, 2], 3));
}

#[tokio::test(start_paused = true)]
async fn a_lost_race_is_answered_with_the_item_and_not_repeated_by_the_sdk() {
    let db = scene(1);
    let conflict = db.conflict_next().on(TABLE).once();
    let client = db.client();
    assert_eq!(read(&client, "a").await, Ok(1), "a read is spared");
    add(&client, "a").await.expect("a write without a condition is spared");
    let (failed, shown) = add_at(&client, "a", 2).await.expect_err("it lost");
    assert_eq!(failed, with("ConditionalCheckFailedException"));
    assert_eq!((shown, held(&db, "a"), conflict.struck()), (Some(AttributeValue::N("2".to_owned())), 1, 1));
    assert_eq!(db.log().len(), 3);
    add_at(&client, "a", 2).await.expect("only the next one lost");
}

#[tokio::test(start_paused = true)]
async fn a_rival_is_really_first() {
    let db = scene(1);
    let rival = json!({
        "TableName": TABLE, "Key": {"id": {"S": "a"}}, "UpdateExpression": "ADD n :ten, version :one",
        "ExpressionAttributeValues": {":ten": {"N": "10"}, ":one": {"N": "1"}},
    });
    db.conflict_next().after(move |engine| drop(engine.raw("UpdateItem", &rival))).once();
    let (failed, shown) = add_at(&db.client(), "a", 1).await.expect_err("the rival was first");
    assert_eq!(failed, with("ConditionalCheckFailedException"));
    assert_eq!((shown, held(&db, "a")), (Some(AttributeValue::N("2".to_owned())), 10));
}

#[tokio::test(start_paused = true)]
async fn a_frozen_client_gives_up_late_and_the_world_goes_on_meanwhile() {
    let db = scene(1);
    db.freeze(Duration::from_mins(7)).of("UpdateItem").once();
    let client = impatient(&db, RetryConfig::disabled());
    let begun = Instant::now();
    let work = async {
        let added = add(&client, "a").await;
        (added, begun.elapsed())
    };
    let meanwhile = async {
        sleep(Duration::from_mins(1)).await;
        held(&db, "a")
    };
    let ((added, after), held) = tokio::join!(db.freezing(work), meanwhile);
    assert_eq!(held, 1, "the write has arrived, though its client stands still");
    assert!(after >= Duration::from_mins(7), "{after:?}");
    assert_eq!(added, Ok(()), "the answer was there before the client looked at the clock");
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "run the client in `Dynamo::freezing`")]
async fn a_client_that_cannot_be_frozen_is_not_passed_over() {
    let db = scene(1);
    db.freeze(Duration::from_mins(7)).once();
    let _ = add(&db.client(), "a").await;
}

#[tokio::test(start_paused = true)]
async fn a_fault_strikes_only_the_requests_that_it_is_meant_for() {
    let db = scene(1);
    put(&db, "b");
    db.create_table("Others", "id");
    let client = db.client_without_retries();
    let meant = [
        db.throttle().of("UpdateItem").about("a").sparing(1).once(),
        db.throttle().on("Others").always(),
        db.throttle().of_writes().about("c").always(),
    ];
    for _ in 0..2 {
        read(&client, "a").await.expect("no write");
        add(&client, "b").await.expect("another item");
    }
    add(&client, "a").await.expect("the first is spared");
    add(&client, "a").await.expect_err("the second is not");
    add(&client, "a").await.expect("and that was all");
    add(&client, "c").await.expect_err("always");
    assert_eq!(meant.map(|fault| fault.struck()), [1, 0, 1]);
    assert_eq!((held(&db, "a"), held(&db, "b")), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_share_of_the_requests_is_struck() {
    let db = scene(1);
    let lost = db.lose_answer().with_probability(0.05);
    let (client, changes) = (db.client_without_retries(), Changes::default());
    for _ in 0..400 {
        match add(&client, "a").await {
            Ok(()) => changes.acknowledged("a", 1),
            Err(_) => changes.unknown("a", 1),
        }
    }
    assert!((8..40).contains(&lost.struck()), "{}", lost.struck());
    changes.assert_nothing_applied_twice(&db.log(), |id| held(&db, id));
}

#[tokio::test(start_paused = true)]
async fn the_log_says_what_was_sent_and_what_became_of_it() {
    let db = scene(1);
    db.lose_answer().of("UpdateItem").once();
    let client = db.client();
    read(&client, "a").await.expect("an answer");
    let (failed, shown) = add_at(&client, "a", 1).await.expect_err("refused because of itself");
    assert_eq!(failed, with("ConditionalCheckFailedException"));
    assert_eq!((held(&db, "a"), shown), (1, Some(AttributeValue::N("2".to_owned()))), "it was applied all the same");
    let log = db.log();
    assert_eq!((log.clone().reads().len(), log.clone().writes().len(), log.executed()), (1, 2, 2));
    let writes = log.of("UpdateItem").on(TABLE).about("a");
    assert_eq!(writes[0].steps[0].key, serde_json::json!({"id": {"S": "a"}}));
    assert_eq!(writes[0].heard.as_ref().map(|(_, heard)| heard), Some(&Outcome::Reset));
    assert_eq!((writes[0].executed(), writes[0].is_acknowledged()), (1, false));
    assert_eq!((writes[1].executed(), writes[1].error()), (0, Some("ConditionalCheckFailedException")));
    assert!(writes[0].at < writes[1].at && writes[1].at < Duration::from_secs(5), "{writes}");
    let line = writes[0].to_string();
    for part in ["UpdateItem Counters id=a; arrived at ", " ms: done; heard at ", "reset (its answer was lost)"] {
        assert!(line.contains(part), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_checker_shows_the_log_of_the_item_that_holds_too_much_or_too_little() {
    let db = scene(1);
    put(&db, "b");
    let changes = Changes::default();
    for id in ["a", "b", "a"] {
        add(&db.client(), id).await.expect("an answer");
        changes.acknowledged(id, 1);
    }
    let held = |id: &str| held(&db, id);
    changes.check(&db.log(), held).expect("a holds 2 and b holds 1");
    changes.unknown("a", 1);
    changes.check(&db.log(), held).expect("an unknown change may have been applied or not");
    changes.check(&db.log(), |id| held(id) + i64::from(id == "a")).expect("or it was");
    let twice = changes.check(&db.log(), |id| held(id) + 2 * i64::from(id == "a")).expect_err("4 are too many");
    let twice = twice.to_string();
    assert!(twice.starts_with("a holds 4, which is 1 more than the 2 acknowledged and 1 unknown: "), "{twice}");
    assert_eq!(twice.lines().filter(|line| line.contains("UpdateItem Counters id=a")).count(), 2, "{twice}");
    assert!(!twice.contains("id=b"), "{twice}");
    let lost = changes.check(&db.log(), |id| held(id) - i64::from(id == "b")).expect_err("b lost one").to_string();
    assert!(lost.starts_with("b holds 0, which is 1 less than the 1 acknowledged: a change was lost\n"), "{lost}");
}

/// The forms that the SDK takes for an answer: it looks at neither the length nor the checksum of a body.
const PASSING: [Garbling; 2] = [Garbling::Empty, Garbling::Changed];

#[tokio::test(start_paused = true)]
async fn what_is_garbled_is_an_error_without_a_name_except_where_the_sdk_does_not_look() {
    for form in Garbling::ALL {
        for (seed, executed) in (0..8).map(|seed| (seed, seed % 2 == 0)) {
            let db = scene(seed);
            let garbled = db.fault(Fault::GarbledAs { form, executed }).times(2);
            let client = db.client_without_retries();
            let added = add(&client, "a").await;
            assert!(PASSING.contains(&form) || matches!(added, Err(Failed::WithoutAnswer(_))), "{form}: {added:?}");
            assert_eq!(held(&db, "a"), i64::from(executed), "{form}");
            if !PASSING.contains(&form) {
                let read = read(&client, "a").await;
                assert!(matches!(read, Err(Failed::WithoutAnswer(_))), "{form}: {read:?}");
                assert_eq!(garbled.struck(), 2);
            }
            let log = db.log();
            assert!(matches!(&log[0].heard, Some((_, Outcome::Garbled(heard))) if *heard == form), "{log}");
            assert_eq!(log[0].executed(), usize::from(executed), "{log}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_sdk_takes_an_answer_without_a_body_for_a_success_and_for_no_item() {
    let db = scene(1);
    db.fault(Fault::GarbledAs { form: Garbling::Empty, executed: false }).always();
    let client = db.client();
    add(&client, "a").await.expect("the SDK believes it");
    let key = AttributeValue::S("a".to_owned());
    let read = client.get_item().table_name(TABLE).key("id", key).send().await.expect("the SDK believes it");
    assert_eq!((held(&db, "a"), read.item), (0, None), "nothing was added, and the item is there");
}

#[tokio::test(start_paused = true)]
async fn the_sdk_takes_a_changed_byte_for_what_was_sent() {
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let db = scene(seed);
        db.fault(Fault::GarbledAs { form: Garbling::Changed, executed: true }).once();
        let key = AttributeValue::S("a".to_owned());
        let read = db.client_without_retries().get_item().table_name(TABLE).key("id", key).send().await;
        let version = |item: HashMap<String, AttributeValue>| item.get("version")?.as_n().ok().cloned();
        seen.insert(read.ok().map(|read| read.item.and_then(version)));
    }
    assert!(seen.contains(&Some(Some("2".to_owned()))), "a version that never was: {seen:?}");
    assert!(seen.contains(&Some(None)), "no item, or none with a version: {seen:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_drawn_takes_every_form_executed_and_not() {
    let db = Dynamo::with_seam(4, Rates { garbled: 1000, ..Rates::default() }, ());
    db.create_table(TABLE, "id");
    let client = db.client_without_retries();
    for _ in 0..200 {
        let _ = add(&client, "a").await;
    }
    let log = db.log();
    let drawn: Vec<_> = log.iter().filter_map(|sent| sent.fault).collect();
    for form in Garbling::ALL {
        for executed in [true, false] {
            assert!(drawn.contains(&Fault::GarbledAs { form, executed }), "{form} {executed}");
        }
    }
    assert_eq!(i64::try_from(log.executed()).expect("few"), held(&db, "a"));
}
