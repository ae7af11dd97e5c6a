//! Clients with wrong clocks.

use crate::counter::{Failed, TABLE, add, held, put, scene};
use aws_sdk_dynamodb::Client;
use fencepost_test::{Dynamo, Fault, Rates};
use std::time::Duration;

/// A client with a clock that is ahead by so many seconds, or behind.
fn ahead(db: &Dynamo, seconds: i64) -> Client {
    db.wire().with_clock_ahead(move || seconds * 1000).client()
}

async fn is_refused(db: &Dynamo, seconds: i64) -> bool {
    match add(&ahead(db, seconds), "a").await {
        Ok(()) => false,
        Err(failed) => {
            assert!(matches!(&failed, Failed::With(code) if code == "InvalidSignatureException"), "{failed:?}");
            true
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_of_a_clock_that_is_off_by_five_minutes_is_refused_unread() {
    let db = scene(1);
    for seconds in [299, -299, 0] {
        assert!(!is_refused(&db, seconds).await, "{seconds} s ahead");
    }
    for seconds in [301, -301, 3600] {
        assert!(is_refused(&db, seconds).await, "{seconds} s ahead");
    }
    assert_eq!(held(&db, "a"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_request_of_a_clock_that_is_ahead_lives_longer_and_of_one_that_is_behind_shorter() {
    for (seconds, delay, lives) in [(240, 530, true), (240, 550, false), (-240, 50, true), (-240, 70, false)] {
        let db = scene(1);
        let delayed = db.fault(Fault::Delayed(Duration::from_secs(delay))).on(TABLE);
        let delayed = delayed.of("UpdateItem").once();
        assert_eq!(!is_refused(&db, seconds).await, lives, "{seconds} s ahead, after {delay} s");
        assert_eq!((held(&db, "a"), delayed.struck()), (i64::from(lives), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_would_come_after_its_signature_has_ended_does_not_come() {
    for (seconds, copies) in [(0, 0), (120, 1)] {
        let db = scene(1);
        let copied = db.duplicate(Duration::from_mins(6)).once();
        add(&ahead(&db, seconds), "a").await.expect("an answer");
        db.settle().await;
        assert_eq!((held(&db, "a"), copied.struck()), (1 + copies, 1), "{seconds} s ahead");
    }
}

/// How many seconds after each of 50 requests its second copy came, where the clock of its client is four minutes ahead.
async fn copied_after(rates: Rates) -> Vec<u64> {
    let mut seconds = Vec::new();
    for seed in 0..50 {
        let db = Dynamo::with_seam(seed, Rates { second_copy: 1000, ..rates }, ());
        db.create_table(TABLE, "id");
        put(&db, "a");
        add(&ahead(&db, 240), "a").await.expect("an answer");
        db.settle().await;
        let sent = &db.log()[0];
        seconds.extend(sent.arrivals.get(1).map(|(at, _)| at.saturating_sub(sent.at).as_secs()));
    }
    seconds
}

#[tokio::test(start_paused = true)]
async fn a_second_copy_comes_at_any_time_of_the_life_of_its_signature_and_as_often_as_wished_at_either_end() {
    let any = copied_after(Rates::default()).await;
    assert!(any.iter().all(|after| *after <= 540) && any.len() == 50, "{any:?}");
    let tenths: std::collections::BTreeSet<_> = any.iter().map(|after| after / 54).collect();
    assert!(tenths.len() >= 9, "{any:?}");
    let last = copied_after(Rates { copied_last: 1000, ..Rates::default() }).await;
    assert!(last.iter().all(|after| (537..=540).contains(after)) && last.len() == 50, "{last:?}");
    let soon = copied_after(Rates { copied_soon: 1000, ..Rates::default() }).await;
    assert!(soon.iter().all(|after| *after == 0) && soon.len() == 50, "{soon:?}");
}
