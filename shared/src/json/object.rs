//! [`Object`]: a free-form object within the limits. It can take merge patches.

use super::invalid::{Invalid, pointer_to};
use super::number::{Decimal, value_of};
use serde::Serialize;
use serde_json::{Map, Value};

/// The most levels of a free-form object, counting itself. A `DynamoDB` item keeps that many.
///
/// A plain value is a level too: `{"a":1}` has two. An object or array counts one more level, even if it is empty, so
/// it may stand on level 31 at most. `DynamoDB` Local rejects an object on level 32 with any content, and an item must
/// not depend on the engine.
pub const MAX_DEPTH: usize = 32;
/// The longest name of a member, in bytes.
const MAX_NAME: usize = 255;

/// A free-form JSON object within the limits: at most 32 levels counting itself, and names of 1 to 255 bytes. No name
/// at its own top level begins with `_`, because such names belong to this crate.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(transparent)]
pub struct Object(pub(super) Map<String, Value>);

impl Object {
    /// Creates an object from this value. `pointer` is the place of the value in its document.
    ///
    /// # Errors
    /// `invalid_type`, `reserved_name`, `invalid_name` or `too_deep`, with the pointer of the invalid value.
    pub fn new(value: Value, pointer: &str) -> Result<Self, Invalid> {
        let Value::Object(members) = value else {
            return Err(Invalid::new(pointer, "invalid_type", "this must be a JSON object"));
        };
        refuse_reserved(&members, pointer)?;
        check_members(&members, pointer, 1)?;
        Ok(Object(members))
    }

    /// The members.
    #[must_use]
    pub fn members(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The number in the member `name`. `None` if the member is missing or is not a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<Decimal> {
        let Value::Number(number) = self.0.get(name)? else { return None };
        Decimal::parse(number.as_str()).ok()
    }

    /// Returns a copy of the object in which the member `name` holds this number.
    #[must_use]
    pub fn with_number(&self, name: &str, number: &Decimal) -> Self {
        let mut members = self.0.clone();
        members.insert(name.to_owned(), value_of(number));
        Object(members)
    }

    /// Applies a merge patch (RFC 7396). The result is within the limits, because the object and the patch are.
    #[must_use]
    pub fn merged(&self, patch: &Object) -> Self {
        let mut members = self.0.clone();
        merge_members(&mut members, patch.members());
        Object(members)
    }
}

/// Applies a merge patch to a value (RFC 7396).
#[must_use]
pub fn merge_patch(target: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut members = target.as_object().cloned().unwrap_or_default();
    merge_members(&mut members, changes);
    Value::Object(members)
}

fn merge_members(members: &mut Map<String, Value>, changes: &Map<String, Value>) {
    for (name, change) in changes {
        if change.is_null() {
            members.remove(name);
        } else {
            let merged = merge_patch(members.get(name).unwrap_or(&Value::Null), change);
            members.insert(name.clone(), merged);
        }
    }
}

/// Refuses members whose names begin with `_`, because such names belong to this crate.
///
/// # Errors
/// `reserved_name`, with the pointer of the first such member.
pub fn refuse_reserved(members: &Map<String, Value>, pointer: &str) -> Result<(), Invalid> {
    match members.keys().find(|name| name.starts_with('_')) {
        Some(name) => {
            Err(Invalid::new(pointer_to(pointer, name), "reserved_name", "a name here must not begin with \"_\""))
        }
        None => Ok(()),
    }
}

fn check_members(members: &Map<String, Value>, pointer: &str, depth: usize) -> Result<(), Invalid> {
    for (name, value) in members {
        let pointer = pointer_to(pointer, name);
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(Invalid::new(pointer, "invalid_name", "a name has 1 to 255 bytes"));
        }
        check(value, &pointer, depth + 1)?;
    }
    Ok(())
}

/// Checks a value at this level.
fn check(value: &Value, pointer: &str, depth: usize) -> Result<(), Invalid> {
    let deepest = if matches!(value, Value::Object(_) | Value::Array(_)) { depth + 1 } else { depth };
    if deepest > MAX_DEPTH {
        let detail = format!("a free-form object has at most {MAX_DEPTH} levels, the last of them for plain values");
        return Err(Invalid::new(pointer, "too_deep", detail));
    }
    match value {
        Value::Object(members) => check_members(members, pointer, depth),
        Value::Array(items) => (0..)
            .zip(items)
            .try_for_each(|(index, item): (usize, _)| check(item, &pointer_to(pointer, &index.to_string()), depth + 1)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse::parse;

    fn json(text: &str) -> Value {
        parse(text.as_bytes()).expect("JSON")
    }

    fn refused(text: &str) -> (String, &'static str) {
        let invalid = Object::new(json(text), "/state").expect_err("refused");
        (invalid.pointer, invalid.code)
    }

    #[test]
    fn the_examples_of_rfc_7396_hold() {
        for (target, patch, result) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"a":"foo"}"#, "null", "null"),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"a":1,"e":null}"#),
            ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            assert_eq!(merge_patch(&json(target), &json(patch)), json(result), "{target} + {patch}");
        }
    }

    #[test]
    fn plain_values_stand_on_level_32_at_most_and_objects_and_arrays_on_31() {
        let nested = |depth: usize| format!("{}{}", r#"{"a":"#.repeat(depth - 1) + "{}", "}".repeat(depth - 1));
        for most in [nested(31), nested(31).replace("{}", r#"{"a":1}"#), nested(31).replace("{}", r#"{"a":null}"#)] {
            assert!(Object::new(json(&most), "").is_ok(), "{most}");
        }
        for inside in ["{}", "[]", r#"{"a":1}"#, r#"{"a":{}}"#] {
            let culprit = format!("/state{}", "/a".repeat(31));
            assert_eq!(refused(&nested(32).replace("{}", inside)), (culprit, "too_deep"), "{inside}");
        }
        let arrays = format!(r#"{{"a":{}{}}}"#, "[".repeat(31), "]".repeat(31));
        assert_eq!(refused(&arrays), (format!("/state/a{}", "/0".repeat(30)), "too_deep"));
    }

    #[test]
    fn names_have_1_to_255_bytes() {
        assert!(Object::new(json(&format!(r#"{{"{}":1}}"#, "n".repeat(255))), "").is_ok());
        assert_eq!(refused(&format!(r#"{{"{}":1}}"#, "n".repeat(256))).1, "invalid_name");
        assert_eq!(refused(r#"{"a":[{"":1}]}"#), ("/state/a/0/".to_owned(), "invalid_name"));
    }

    #[test]
    fn a_reserved_name_is_refused_at_the_top_and_accepted_below() {
        assert_eq!(refused(r#"{"_version":1}"#), ("/state/_version".to_owned(), "reserved_name"));
        assert!(Object::new(json(r#"{"a":{"_b":1}}"#), "").is_ok());
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["[]", "1", "null", "\"x\""] {
            assert_eq!(refused(text), ("/state".to_owned(), "invalid_type"), "{text}");
        }
    }
}
