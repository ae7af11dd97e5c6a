//! [`parse`]: text to JSON without loss. Numbers are exact, names are unique, depth is bounded.

use super::number::{Decimal, value_of};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::cell::{Cell, RefCell};
use std::fmt;

/// The depth at which parsing stops. More than a valid body has, less than 128, the limit of `serde_json`.
const MAX_PARSE_DEPTH: usize = 64;

/// The most values of a body: members of objects and elements of arrays, at any depth. A value may take a hundred times
/// its text in memory.
pub const MAX_VALUES: usize = 10_000;

/// Parses a JSON value. Each number gets its one text.
///
/// # Errors
/// [`Invalid`] with the pointer of the invalid value. `invalid_json` points to the whole document.
pub fn parse(bytes: &[u8]) -> Result<Value, Invalid> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| Invalid::new(String::new(), "invalid_json", "the body is not UTF-8"))?;
    read(text, MAX_VALUES)
}

pub(super) fn read(text: &str, most: usize) -> Result<Value, Invalid> {
    let reading = Reading { left: Cell::new(most), ..Reading::default() };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = ValueSeed(&reading).deserialize(&mut deserializer).and_then(|value| {
        deserializer.end()?;
        Ok(value)
    });
    value.map_err(|error| {
        let found = reading.invalid.borrow_mut().take();
        found.unwrap_or_else(|| Invalid::new(String::new(), "invalid_json", format!("the body is not JSON: {error}")))
    })
}

#[derive(Default)]
struct Reading {
    path: RefCell<Vec<Step>>,
    invalid: RefCell<Option<Invalid>>,
    left: Cell<usize>,
}

enum Step {
    Member(String),
    Element(usize),
}

impl Reading {
    fn refuse<E: Error>(&self, code: &'static str, detail: impl Into<String>) -> E {
        let step = |pointer: String, step: &Step| match step {
            Step::Member(name) => pointer_to(&pointer, name),
            Step::Element(index) => pointer_to(&pointer, &index.to_string()),
        };
        let pointer = self.path.borrow().iter().fold(String::new(), step);
        *self.invalid.borrow_mut() = Some(Invalid::new(pointer, code, detail));
        E::custom("refused")
    }

    fn enter<E: Error>(&self, step: Step) -> Result<(), E> {
        self.path.borrow_mut().push(step);
        if self.path.borrow().len() > MAX_PARSE_DEPTH {
            return Err(self.refuse("too_deep", "the body is nested too deeply"));
        }
        Ok(())
    }

    /// Counts the value at the end of the path.
    fn count<E: Error>(&self) -> Result<(), E> {
        let left = self.left.get().checked_sub(1).ok_or_else(|| {
            self.refuse(
                "too_many_values",
                format!("at most {MAX_VALUES} members and elements are taken, and this is one more"),
            )
        })?;
        self.left.set(left);
        Ok(())
    }

    fn leave(&self) -> Option<Step> {
        self.path.borrow_mut().pop()
    }
}

struct ValueSeed<'a>(&'a Reading);

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    // Small whole numbers arrive here. All other numbers arrive as a map with a mark; see `NameSeed`. Small whole
    // numbers are in their one text already, and have far fewer than 38 digits.
    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        loop {
            self.0.enter(Step::Element(array.len()))?;
            let Some(item) = items.next_element_seed(ElementSeed(self.0))? else { break };
            self.0.leave();
            array.push(item);
        }
        self.0.leave();
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key_seed(NameSeed)? {
            let Name::Member(name) = name else {
                let text: String = members.next_value()?;
                let number = Decimal::parse(&text)
                    .map_err(|error| self.0.refuse::<A::Error>("number_out_of_range", error.to_string()))?;
                return Ok(value_of(&number));
            };
            let is_there = object.contains_key(&name);
            self.0.enter(Step::Member(name))?;
            if is_there {
                return Err(self.0.refuse("duplicate_name", "this name occurs twice in its object"));
            }
            let value = members.next_value_seed(ElementSeed(self.0))?;
            if let Some(Step::Member(name)) = self.0.leave() {
                object.insert(name, value);
            }
        }
        Ok(Value::Object(object))
    }
}

/// Reads a member or an element, and counts it.
struct ElementSeed<'a>(&'a Reading);

impl<'de> DeserializeSeed<'de> for ElementSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.0.count()?;
        ValueSeed(self.0).deserialize(deserializer)
    }
}

enum Name {
    /// A mark: the text of a number follows, not a member.
    NumberFollows,
    /// A member of an object in the text.
    Member(String),
}

/// Tells a number from an object with a member named like the mark of `serde_json`.
///
/// With `arbitrary_precision`, a number is visited as a map with one reserved name. A client could send exactly that
/// name. This seed asks for an *option*. The name of a member then answers `Some`, and the mark does not.
struct NameSeed;

impl<'de> DeserializeSeed<'de> for NameSeed {
    type Value = Name;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Name, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for NameSeed {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Name, D::Error> {
        serde::Deserialize::deserialize(deserializer).map(Name::Member)
    }

    fn visit_str<E: Error>(self, _mark: &str) -> Result<Name, E> {
        Ok(Name::NumberFollows)
    }
}

/// An error in a document, with its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalid {
    /// JSON Pointer (RFC 6901) to the invalid value. Empty for the whole document.
    pub pointer: String,
    /// A stable code.
    pub code: &'static str,
    /// A sentence for people.
    pub detail: String,
}

impl Invalid {
    /// Creates the error for the value at `pointer`.
    pub fn new(pointer: impl Into<String>, code: &'static str, detail: impl Into<String>) -> Self {
        Invalid { pointer: pointer.into(), code, detail: detail.into() }
    }

    pub(super) fn under(self, pointer: &str) -> Self {
        Invalid { pointer: format!("{pointer}{}", self.pointer), ..self }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.pointer, self.detail)
    }
}

impl std::error::Error for Invalid {}

/// The pointer to the member or element `name` of the value at `parent`.
#[must_use]
pub fn pointer_to(parent: &str, name: &str) -> String {
    format!("{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
}
