//! Clients whose clocks are off.

use crate::counter::{Failed, TABLE, add, held, scene};
use aws_sdk_dynamodb::Client;
use fencepost_test::{Dynamo, Fault};
use std::time::Duration;

/// A client whose clock is ahead by so many seconds, or behind.
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
