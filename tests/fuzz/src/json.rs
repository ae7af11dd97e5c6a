//! `json`: a document, and perhaps a merge patch after the byte 1E.
//!
//! An accepted document has the content that `serde_json` reads, with the same numbers. Printed, a document parses to
//! the same. As an attribute, it comes back the same. Objects keep their limits, even after a patch.

use bigdecimal::BigDecimal;
use fencepost::json::{Decimal, MAX_DEPTH, Object, from_attribute, parse, to_attribute};
use serde_json::Value;

const SEPARATOR: u8 = 0x1e;

pub fn play(input: &[u8]) {
    let mut parts = input.splitn(2, |byte| *byte == SEPARATOR);
    let [document, patch] = [(); 2].map(|()| parts.next().unwrap_or_default());
    let theirs = serde_json::from_slice::<Value>(document).ok();
    let parsed = match parse(document) {
        Ok(parsed) => parsed,
        Err(invalid) => {
            let refused = invalid.code != "invalid_json" || theirs.is_none();
            assert!(refused, "serde_json reads what is refused as {invalid:?}");
            return;
        }
    };
    // serde_json takes an object with the name of its own mark for a number. This crate does not.
    if !document.windows(12).any(|part| part == b"$serde_json:" || part.contains(&b'\\')) {
        same(&parsed, &theirs.expect("serde_json reads it too"));
    }
    check_value(&parsed, 0);
    let printed = parsed.to_string();
    assert_eq!(parse(printed.as_bytes()).as_ref(), Ok(&parsed), "{printed}");
    assert_eq!(from_attribute(to_attribute(&parsed)).as_ref(), Ok(&parsed), "{printed}");
    if let Ok(object) = Object::new(parsed, "") {
        check_object(&object, patch);
    }
}

fn check_object(object: &Object, patch: &[u8]) {
    let value = object.to_value();
    assert!(depth(&value) <= MAX_DEPTH);
    assert_eq!(object.count(), count(&value));
    assert_eq!(Object::from_attribute(&object.to_attribute()).as_ref(), Ok(object));
    let Some(patch) = parse(patch).ok().and_then(|patch| Object::new(patch, "").ok()) else { return };
    let merged = object.merged(&patch);
    assert_eq!(Object::new(merged.to_value(), "").as_ref(), Ok(&merged), "a patch breaks a limit");
    assert_eq!(merged.merged(&patch), merged, "a patch that is applied twice changes more");
    let (patch, merged) = (patch.to_value(), merged.to_value());
    let members = |value: &Value| value.as_object().cloned().expect("an object");
    for (name, change) in members(&patch) {
        match (change, merged.get(&name)) {
            (Value::Null, now) => assert_eq!(now, None, "{name:?}"),
            (Value::Object(_), now) => assert!(now.is_some_and(Value::is_object), "{name:?}"),
            (other, now) => assert_eq!(now, Some(&other), "{name:?}"),
        }
    }
    for (name, value) in members(&value).iter().filter(|(name, _)| patch.get(name.as_str()).is_none()) {
        assert_eq!(merged.get(name), Some(value), "{name:?}");
    }
}

/// How many members and elements there are, at any depth.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(|item| 1 + count(item)).sum(),
        Value::Object(members) => members.values().map(|member| 1 + count(member)).sum(),
        _ => 0,
    }
}

/// Checks that each number has its one notation, and checks the limit of nesting.
fn check_value(value: &Value, depth: usize) {
    assert!(depth <= 64);
    match value {
        Value::Number(number) => {
            let decimal = Decimal::parse(number.as_str()).expect("an accepted number");
            assert_eq!(decimal.to_string(), number.as_str());
        }
        Value::Array(items) => items.iter().for_each(|item| check_value(item, depth + 1)),
        Value::Object(members) => members.values().for_each(|member| check_value(member, depth + 1)),
        _ => {}
    }
}

fn same(ours: &Value, theirs: &Value) {
    match (ours, theirs) {
        (Value::Number(ours), Value::Number(theirs)) => {
            // bigdecimal does not read a zero with an exponent of 30 digits, which is 0.
            let theirs = theirs.as_str().parse().unwrap_or_else(|_| BigDecimal::from(0));
            assert_eq!(ours.as_str().parse::<BigDecimal>().ok(), Some(theirs));
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            assert_eq!(ours.len(), theirs.len());
            ours.iter().zip(theirs).for_each(|(ours, theirs)| same(ours, theirs));
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            assert_eq!(ours.len(), theirs.len());
            ours.iter().for_each(|(name, ours)| same(ours, &theirs[name]));
        }
        (ours, theirs) => assert_eq!(ours, theirs),
    }
}

/// The levels of a value, the last of them for plain values.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(1),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(1),
        _ => 1,
    }
}
