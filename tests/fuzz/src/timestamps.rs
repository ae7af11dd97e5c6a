//! `timestamps`: a text as a moment, compared with `chrono`, and 8 bytes as milliseconds.

use crate::input::Input;
use fencepost::Timestamp;
use std::time::{Duration, UNIX_EPOCH};

pub fn play(input: &[u8]) {
    let mut drawn = Input::new(input);
    let millis = drawn.number();
    check_millis(millis);
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(moment) = text.parse::<Timestamp>() {
        assert_eq!(moment.to_string(), text, "a moment in tables has one notation");
        check(moment);
    }
    let Ok(moment) = Timestamp::from_rfc3339(text) else { return };
    let theirs = chrono::DateTime::parse_from_rfc3339(text).expect("chrono reads it");
    assert_eq!(theirs.timestamp_subsec_nanos() % 1_000_000, 0, "{text}: finer than a millisecond");
    assert_eq!(moment.epoch_millis(), u64::try_from(theirs.timestamp_millis()).ok(), "{text}");
    assert!(!text.to_ascii_uppercase().contains(":60"), "{text}: a leap second");
    assert!(text.is_ascii() && text.len() >= 20 && !text.contains('['), "{text}");
    check(moment);
}

fn check(moment: Timestamp) {
    let text = moment.to_string();
    assert_eq!(text.parse(), Ok(moment), "a table gives {text} back as it was");
    assert_eq!(Timestamp::from_rfc3339(&text), Ok(moment), "a client that sends {text} back means the same");
    assert_eq!(text.len(), "2026-03-07T10:00:00.000Z".len(), "{text}");
    assert!(text.as_str() > "0" && moment.since(moment) == Duration::ZERO);
    let json = serde_json::to_string(&moment).expect("a text");
    assert_eq!(serde_json::from_str::<Timestamp>(&json).ok(), Some(moment));
    if let Some(millis) = moment.epoch_millis() {
        assert_eq!(Timestamp::from_epoch_millis(millis), Some(moment));
    }
}

fn check_millis(millis: u64) {
    let Some(moment) = Timestamp::from_epoch_millis(millis) else { return };
    assert_eq!(moment.epoch_millis(), Some(millis));
    check(moment);
    let time = UNIX_EPOCH + Duration::from_millis(millis);
    assert_eq!(Timestamp::from(time), moment);
    // Text orders as time does, which the sort keys of listings need.
    let before = time.checked_sub(Duration::from_millis(millis / 2 + 1)).unwrap_or(UNIX_EPOCH);
    let earlier = Timestamp::from(before);
    if earlier.epoch_millis().is_some() {
        assert_eq!(earlier.cmp(&moment), earlier.to_string().cmp(&moment.to_string()));
        assert_eq!(earlier.since(moment), Duration::ZERO);
        assert_eq!(moment.since(earlier), time.duration_since(before).unwrap_or_default());
    }
}
