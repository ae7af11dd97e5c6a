//! `answers`: stored answers, also in the rows of their records.
//!
//! A text that is read as an answer is written as an equal answer, and goes out to the client unchanged. A record
//! answers only its own request, only before its end, and only with its own content.

use crate::input::Input;
use crate::running::now;
use fencepost::AttributeValue;
use fencepost::http::Response;
use fencepost::testing::{AsKind, RecordSays, answer_of_record, record_of_answer};
use fencepost::{Failure, FailureKind, IdempotencyClaim};
use serde_json::Value;
use std::time::{Duration, UNIX_EPOCH};

const NAMES: &[&str] = &["payload", "answer", "expiresAt", "_version", "_incarnation", "_writes", "_purgeAt"];

pub fn play(input: &[u8]) {
    if let Ok(text) = std::str::from_utf8(input) {
        check_stored(text);
    }
    let mut drawn = Input::new(input);
    let claim = IdempotencyClaim::new(&["caller", "route", "key"], &["payload"]).expect("a scope");
    let other = IdempotencyClaim::new(&["caller", "route", "key"], &["another"]).expect("a scope");
    let later = UNIX_EPOCH + Duration::from_secs(drawn.number() >> 12);
    if let Ok(answer) = serde_json::from_value::<Response>(Value::String(drawn.text())) {
        let row = record_of_answer(&claim, &answer, now()).expect("a record");
        assert_eq!(answer_of_record(&row, &claim, now()).ok(), Some(RecordSays::Replayed(answer.clone())));
        assert_eq!(answer_of_record(&row, &other, now()).ok(), Some(RecordSays::KeyReused));
        let counts = later < now() + fencepost::IdempotencyClaim::RETENTION;
        let says = if counts { RecordSays::Replayed(answer) } else { RecordSays::New };
        assert_eq!(answer_of_record(&row, &claim, later).ok(), Some(says));
    }
    // Any row, then a record with a few other attributes.
    check_row(&drawn.attributes(NAMES), &claim, later);
    let answer = Response::no_content("released");
    let mut row = record_of_answer(&claim, &answer, now()).expect("a record");
    row.extend(drawn.attributes(NAMES));
    check_row(&row, &claim, later);
}

fn check_stored(text: &str) {
    let Ok(answer) = serde_json::from_value::<Response>(Value::String(text.to_owned())) else { return };
    let stored = serde_json::to_value(&answer).expect("a text");
    let again: Response = serde_json::from_value(stored).expect("a stored answer");
    assert_eq!(again, answer);
    let replayed = answer.clone().replayed();
    assert_eq!((replayed.status(), replayed.body()), (answer.status(), answer.body()));
    let sent: http::Response<String> = replayed.clone().into();
    assert_eq!(sent.status().as_u16(), answer.status(), "the client gets another status");
    assert_eq!(sent.body(), answer.body().unwrap_or_default());
    for (name, value) in replayed.headers() {
        let mut sent = sent.headers().get_all(name.as_ref()).iter();
        assert!(sent.any(|sent| sent.as_bytes() == value.as_bytes()), "{name:?} does not go out");
    }
}

fn check_row(row: &fencepost::Attributes, claim: &IdempotencyClaim, now: std::time::SystemTime) {
    match answer_of_record(row, claim, now) {
        Ok(RecordSays::New) => {}
        Ok(RecordSays::KeyReused) => assert!(counts(row, now)),
        Ok(RecordSays::Replayed(answer)) => {
            assert!(counts(row, now), "an answer of a record that has expired");
            let stored = row["answer"].as_s().expect("a text");
            let held: Response = serde_json::from_value(Value::String(stored.clone())).expect("a stored answer");
            assert_eq!(answer, held);
        }
        Err(Failure { kind: FailureKind::CorruptItem { reason }, .. }) => assert!(!reason.is_empty()),
        Err(other) => panic!("{other:?}"),
    }
}

fn counts(row: &fencepost::Attributes, now: std::time::SystemTime) -> bool {
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let expires = row.get("expiresAt").map(|value| match value {
        AttributeValue::N(text) => text.parse::<u64>().expect("a time"),
        other => panic!("{other:?} is taken for a time"),
    });
    expires.is_some_and(|expires| expires > seconds)
}
