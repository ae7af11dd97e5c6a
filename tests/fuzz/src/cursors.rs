//! `cursors`: listings, their cursors, and any text as a cursor.
//!
//! A cursor gives its key back to its own listing and to no other. Any text is refused without a panic, even with a
//! fitting digest.

use crate::input::Input;
use fencepost::AttributeValue;
use fencepost::Attributes;
use fencepost::testing::{Listing, forged_cursor};

pub fn play(input: &[u8]) {
    let mut drawn = Input::new(input);
    let listing = listing(&mut drawn);
    let last: Attributes = listing.names.iter().map(|name| (name.clone(), part(&mut drawn))).collect();
    let other = other(&mut drawn, &listing);
    if let Some(cursor) = listing.cursor(&last) {
        assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{cursor}");
        assert_eq!(listing.read(&cursor), Some(last.clone()), "{cursor}");
        assert!(other == listing || other.read(&cursor).is_none(), "{cursor} belongs to two listings");
        let damaged = damaged(&mut drawn, &cursor);
        assert!(damaged == cursor || listing.read(&damaged).is_none(), "{damaged} is taken for {cursor}");
    }
    let missing = listing.names.first().map(|name| {
        let mut last = last.clone();
        last.remove(name);
        last
    });
    assert!(missing.is_none_or(|last| listing.cursor(&last).is_none()), "a key without a part has a cursor");
    let rest = drawn.bytes();
    let forged = forged_cursor(&listing, rest);
    if let Some(key) = listing.read(&forged) {
        assert_eq!(listing.cursor(&key), Some(forged.clone()).filter(|_| key.len() == listing.names.len()), "{forged}");
    }
    if let Ok(text) = std::str::from_utf8(rest) {
        assert_eq!(listing.read(text).and_then(|key| listing.cursor(&key)).as_deref().unwrap_or(text), text);
    }
}

fn listing(input: &mut Input) -> Listing {
    Listing {
        table: input.text(),
        index: index(input),
        is_descending: input.flag(),
        partition: part(input),
        between: input.flag().then(|| (part(input), part(input))),
        names: (0..=input.below(3)).map(|place| format!("key{place}")).collect(),
    }
}

/// The same listing with one difference, if it is one.
fn other(input: &mut Input, listing: &Listing) -> Listing {
    let mut other = listing.clone();
    match input.below(6) {
        0 => other.table = input.text(),
        1 => other.index = index(input),
        2 => other.is_descending = !listing.is_descending,
        3 => other.partition = part(input),
        4 => other.between = input.flag().then(|| (part(input), part(input))),
        _ => {
            other.names.pop();
        }
    }
    other
}

/// No index has an empty name.
fn index(input: &mut Input) -> Option<String> {
    input.flag().then(|| format!("by{}", input.text()))
}

fn damaged(input: &mut Input, cursor: &str) -> String {
    let mut bytes = cursor.as_bytes().to_vec();
    let at = usize::from(input.byte()) * usize::from(input.byte()) % bytes.len();
    bytes[at] = input.pick(b"AQgwBZaz09-_=+/ ");
    String::from_utf8(bytes).expect("ASCII")
}

/// A value that a key may have.
fn part(input: &mut Input) -> AttributeValue {
    match input.below(3) {
        0 => AttributeValue::S(input.text()),
        1 => AttributeValue::N(input.number().to_string()),
        _ => AttributeValue::B(Vec::from(input.bytes())),
    }
}
