//! The requests that a planned fault strikes, and their log.

use crate::counter::{TABLE, add, add_at, held, put, read, scene};
use fencepost_test::{Changes, Outcome};
use std::time::Duration;

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
async fn of_two_faults_the_one_that_was_planned_first_strikes() {
    let db = scene(1);
    let (first, second) = (db.throttle().once(), db.lose_answer().once());
    let client = db.client_without_retries();
    add(&client, "a").await.expect_err("throttled");
    assert_eq!((first.struck(), second.struck(), held(&db, "a")), (1, 0, 0));
    add(&client, "a").await.expect_err("its answer is lost");
    assert_eq!((second.struck(), held(&db, "a")), (1, 1));
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
    add_at(&client, "a", 1).await.expect_err("refused because of itself");
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
