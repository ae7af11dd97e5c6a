//! [`Object`]: a free-form object within the limits. It can take merge patches.

use super::number::{Decimal, value_of};
use super::parse::{Invalid, pointer_to, read};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most levels of a free-form object, counting itself. A `DynamoDB` item keeps that many.
///
/// A plain value is a level too: `{"a":1}` has two. An object or array counts one more level, even an empty one: it may
/// stand on level 31 at most. `DynamoDB` Local rejects an object on level 32 with any content.
pub const MAX_DEPTH: usize = 32;
const MAX_NAME: usize = 255;

/// A free-form JSON object within the limits: at most 32 levels counting itself, and names of 1 to 255 bytes. No name
/// at its own top level begins with `_`, because such names belong to this crate.
///
/// It is kept as text, with its members in order and each number in its one text. So two objects are equal if and only
/// if their texts are. A tree would take up to a hundred times as much memory. Serialise it straight to text: a tree of
/// `serde_json` takes an object with the name of its own mark for a number, and [`Object::to_value`] does not.
#[derive(Clone, Debug)]
pub struct Object(Arc<RawValue>);

type Members<'a> = BTreeMap<Cow<'a, str>, Cow<'a, RawValue>>;

impl Object {
    /// Creates an object from this value. `pointer` is the place of the value in its document.
    ///
    /// # Errors
    /// `invalid_type`, `reserved_name`, `invalid_name` or `too_deep`, with the pointer of the invalid value.
    pub fn new(mut value: Value, pointer: &str) -> Result<Self, Invalid> {
        let Value::Object(members) = &value else {
            return Err(Invalid::new(pointer, "invalid_type", "this must be a JSON object"));
        };
        refuse_reserved(members, pointer)?;
        check_members(members, 1).map_err(|invalid| invalid.under(pointer))?;
        // One order of members, also if another crate of the build keeps the order of insertion.
        value.sort_all_objects();
        Ok(Object::of_text(raw(&value)))
    }

    /// The object of this text. It must be in order, with each number in its one text.
    pub(super) fn of_text(text: Box<RawValue>) -> Self {
        Object(text.into())
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// The number of values in the object, at any depth: members and elements.
    #[must_use]
    pub fn count(&self) -> usize {
        let (mut count, mut is_in_text, mut before) = (0, false, b' ');
        let mut bytes = self.text().bytes();
        while let Some(byte) = bytes.next() {
            match byte {
                b'\\' => {
                    bytes.next();
                }
                b'"' => is_in_text = !is_in_text,
                _ if is_in_text => {}
                b',' => count += 1,
                // The first value inside.
                b'}' | b']' if !matches!((before, byte), (b'{', b'}') | (b'[', b']')) => count += 1,
                _ => {}
            }
            before = byte;
        }
        count
    }

    /// The number in the member `name`. `None` if the member is missing or is not a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<Decimal> {
        number_of(self.members().get(name)?)
    }

    /// The numbers among the members.
    #[must_use]
    pub fn numbers(&self) -> Vec<Decimal> {
        self.members().values().filter_map(|value| number_of(value)).collect()
    }

    /// Returns a copy of the object in which the member `name` holds this number.
    #[must_use]
    pub fn with_number(&self, name: &str, number: &Decimal) -> Self {
        let mut members = self.members();
        members.insert(Cow::Borrowed(name), Cow::Owned(raw(&value_of(number))));
        Object::of_text(raw(&members))
    }

    /// Applies a merge patch (RFC 7396). The result is within the limits of depth and names.
    #[must_use]
    pub fn merged(&self, patch: &Object) -> Self {
        Object::of_text(merged(Some(&self.0), &patch.0))
    }

    /// The object as a tree.
    #[must_use]
    pub fn to_value(&self) -> Value {
        tree(&self.0)
    }

    fn members(&self) -> Members<'_> {
        members_of(&self.0).unwrap_or_default()
    }
}

impl Default for Object {
    fn default() -> Self {
        Object::of_text(raw(&Map::new()))
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Object {}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("a JSON value")
}

fn tree(text: &RawValue) -> Value {
    read(text.get(), usize::MAX).expect("the text of a value")
}

/// The members of the object in this text. `None` if it is of another kind.
fn members_of(text: &RawValue) -> Option<Members<'_>> {
    if !text.get().starts_with('{') {
        return None;
    }
    let members: BTreeMap<Name<'_>, &RawValue> = serde_json::from_str(text.get()).expect("an object");
    Some(members.into_iter().map(|(name, value)| (name.0, Cow::Borrowed(value))).collect())
}

/// A name that is borrowed unless it has escapes.
#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

fn number_of(text: &RawValue) -> Option<Decimal> {
    let is_number = text.get().starts_with(|first: char| first == '-' || first.is_ascii_digit());
    is_number.then(|| Decimal::parse(text.get()).ok()).flatten()
}

/// Applies a merge patch to a value (RFC 7396). Copies only the values beside the path of the patch.
fn merged(target: Option<&RawValue>, patch: &RawValue) -> Box<RawValue> {
    let Some(changes) = members_of(patch) else { return patch.to_owned() };
    let mut members = target.and_then(members_of).unwrap_or_default();
    for (name, change) in changes {
        if change.get() == "null" {
            members.remove(&name);
        } else {
            let value = merged(members.get(&name).map(|value| &**value), &change);
            members.insert(name, Cow::Owned(value));
        }
    }
    raw(&members)
}

/// Applies a merge patch to a value (RFC 7396).
#[must_use]
pub fn merge_patch(target: &Value, patch: &Value) -> Value {
    let merged = merged(Some(&raw(target)), &raw(patch));
    tree(&merged)
}

/// Refuses members with a `_` at the start of their names: such names belong to this crate.
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

/// The beginning of names with which `serde_json` marks numbers and raw texts. An object that imitates such a mark would be
/// taken for a number wherever it is encoded.
const PRIVATE: &str = "$serde_json::private::";

/// Checks the members of an object at this level. A pointer is built only where a value is refused.
fn check_members(members: &Map<String, Value>, depth: usize) -> Result<(), Invalid> {
    for (name, value) in members {
        let checked = if name.is_empty() || name.len() > MAX_NAME {
            Err(Invalid::new("", "invalid_name", "a name has 1 to 255 bytes"))
        } else if name.starts_with(PRIVATE) {
            Err(Invalid::new("", "reserved_name", format!("a name must not begin with \"{PRIVATE}\"")))
        } else {
            check(value, depth + 1)
        };
        checked.map_err(|invalid| invalid.under(&pointer_to("", name)))?;
    }
    Ok(())
}

fn check(value: &Value, depth: usize) -> Result<(), Invalid> {
    let deepest = if matches!(value, Value::Object(_) | Value::Array(_)) { depth + 1 } else { depth };
    if deepest > MAX_DEPTH {
        let detail = format!("a free-form object has at most {MAX_DEPTH} levels, the last of them for plain values");
        return Err(Invalid::new("", "too_deep", detail));
    }
    match value {
        Value::Object(members) => check_members(members, depth),
        Value::Array(items) => (0..).zip(items).try_for_each(|(index, item): (usize, _)| {
            check(item, depth + 1).map_err(|invalid| invalid.under(&pointer_to("", &index.to_string())))
        }),
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
    fn an_object_that_imitates_a_number_is_refused_at_any_depth() {
        for name in ["$serde_json::private::Number", "$serde_json::private::RawValue", "$serde_json::private::"] {
            for (text, pointer) in [("@", ""), (r#"{"a":@}"#, "/a"), (r#"{"a":[1,@]}"#, "/a/1")] {
                let text = text.replace('@', &format!(r#"{{"{name}":"5"}}"#));
                assert_eq!(refused(&text), (format!("/state{pointer}/{name}"), "reserved_name"), "{text}");
            }
        }
        assert!(Object::new(json(r#"{"$serde_json":1}"#), "").is_ok());
    }

    #[test]
    fn a_patch_goes_through_names_with_escapes() {
        let object = Object::new(json(r#"{"a\"b":{"c":{"d":1,"e":[1,2]}},"z":{"y":"5"}}"#), "");
        let patch = Object::new(json(r#"{"a\u0022b":{"c":{"d":null,"f":{"g":null}}}}"#), "").expect("a patch");
        let merged = object.expect("an object").merged(&patch);
        let expected = r#"{"a\"b":{"c":{"e":[1,2],"f":{}}},"z":{"y":"5"}}"#;
        assert_eq!(merged.text(), expected);
        assert_eq!(merged.to_value().to_string(), expected);
        assert_eq!(serde_json::to_string(&merged).expect("JSON"), expected);
    }
}
