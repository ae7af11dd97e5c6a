//! [`Shape`]: a free-form object as a few numbers, which a search can vary.

use fastrand::Rng;
use fencepost_test::size_of_item;
use serde_json::Value;
use std::fmt::Write;

/// A free-form object: many equal units in one object or one array. A unit is a chain of objects and arrays, and leaves
/// at its end.
#[derive(Clone, Debug)]
pub struct Shape {
    /// How many units there are, unless they are more than is allowed.
    pub units: u32,
    /// Whether the units are elements of one array.
    listed: bool,
    /// How many objects and arrays contain each other in a unit.
    depth: u32,
    /// Which of these are arrays, one bit each.
    arrays: u32,
    /// How many leaves a unit has.
    leaves: u32,
    leaf: Leaf,
    /// The characters of a text.
    length: u32,
    /// The characters of a name.
    name: u32,
    character: Character,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Leaf {
    Null,
    True,
    Zero,
    Digits,
    Exponent,
    Text,
    EmptyObject,
    EmptyArray,
}

#[derive(Clone, Copy, Debug)]
enum Character {
    Plain,
    /// One byte that six stand for.
    Control,
    Quote,
    /// Two bytes.
    Wide,
    /// Two bytes that six stand for.
    WideEscaped,
}

use Character::{Control, Plain, Quote, Wide, WideEscaped};
use Leaf::{Digits, EmptyArray, EmptyObject, Exponent, Null, Text, True, Zero};

const LEAVES: [Leaf; 8] = [Null, True, Zero, Digits, Exponent, Text, EmptyObject, EmptyArray];
const CHARACTERS: [Character; 5] = [Plain, Control, Quote, Wide, WideEscaped];

/// A number from 1 to `most`, of any magnitude alike.
pub fn any_magnitude(rng: &mut Rng, most: u32) -> u32 {
    let magnitude = rng.u32(..=most.ilog2());
    rng.u32(1..=most >> magnitude)
}

/// The number somewhat larger or smaller, at most `most`.
pub fn near(rng: &mut Rng, number: u32, most: u32) -> u32 {
    let percent = [50, 80, 95, 105, 125, 200][rng.usize(..6)];
    let moved = u32::try_from(u64::from(number) * percent / 100).unwrap_or(most);
    (if moved == number { number + rng.u32(..3) } else { moved }).clamp(1, most)
}

const MOST_UNITS: u32 = 600_000;
const MOST_LEAVES: u32 = 20_000;
const MOST_TEXT: u32 = 400_000;

impl Shape {
    pub fn random(rng: &mut Rng) -> Self {
        Shape {
            units: any_magnitude(rng, MOST_UNITS),
            listed: rng.bool(),
            depth: rng.u32(..31),
            arrays: if rng.bool() { rng.u32(..) } else { 0 },
            leaves: if rng.bool() { any_magnitude(rng, MOST_LEAVES) } else { rng.u32(1..3) },
            leaf: LEAVES[rng.usize(..LEAVES.len())],
            length: if rng.bool() { 0 } else { any_magnitude(rng, MOST_TEXT) },
            name: if rng.bool() { 1 } else { any_magnitude(rng, 255) },
            character: CHARACTERS[rng.usize(..CHARACTERS.len())],
        }
    }

    /// The shape with one of its numbers changed.
    pub fn varied(&self, rng: &mut Rng) -> Self {
        let mut next = self.clone();
        let other = Shape::random(rng);
        match rng.u32(..12) {
            0..3 => next.units = near(rng, self.units, MOST_UNITS),
            3 => next.listed = !self.listed,
            4 => next.depth = (self.depth + rng.u32(..5)).saturating_sub(2).min(31),
            5 => next.arrays ^= 1 << rng.u32(..32),
            6 => next.leaves = near(rng, self.leaves, MOST_LEAVES),
            7 => next.leaf = other.leaf,
            8 => next.length = if rng.bool() { near(rng, self.length, MOST_TEXT) } else { other.length },
            9 => next.name = if rng.bool() { near(rng, self.name, 255) } else { other.name },
            10 => next.character = other.character,
            _ => return if rng.u32(..4) == 0 { other } else { next },
        }
        next
    }

    /// The object as JSON: as many of its units as fit into so many bytes.
    pub fn json(&self, bytes: usize) -> String {
        self.text(false, bytes, usize::MAX)
    }

    /// The object in `DynamoDB`'s JSON: as many of its units as fit into an item of this size with so many values.
    pub fn item(&self, size: usize, values: usize) -> String {
        let mut unit = String::new();
        self.unit(&mut unit, self.depth, false);
        let units = (values - 1) / (1 + count(&parsed(&unit)));
        let fewer = Shape { units: self.units.min(u32::try_from(units).unwrap_or(u32::MAX)), ..self.clone() };
        fewer.text(true, usize::MAX, size)
    }

    fn text(&self, is_item: bool, bytes: usize, size: usize) -> String {
        let (mut unit, mut measured) = (String::new(), String::from(r#"{"a":"#));
        self.unit(&mut unit, self.depth, is_item);
        self.unit(&mut measured, self.depth, true);
        let of_unit = size_of_item(&parsed(&(measured + "}")));
        let (before, after) = match (self.listed, is_item) {
            (false, false) => ("{", "}"),
            (false, true) => (r#"{"M":{"#, "}}"),
            (true, false) => (r#"{"a":["#, "]}"),
            (true, true) => (r#"{"M":{"a":{"L":["#, "]}}}"),
        };
        let mut text = before.to_owned();
        let mut sizes = 16;
        for index in 0..self.units {
            let name = if self.listed { 0 } else { self.name as usize + 8 };
            sizes += of_unit + name;
            if text.len() + unit.len() + name * 6 + 8 > bytes || sizes > size {
                break;
            }
            if index > 0 {
                text.push(',');
            }
            if !self.listed {
                self.push_name(&mut text, index);
            }
            text.push_str(&unit);
        }
        text.push_str(after);
        text
    }

    /// A merge patch along the chain of the first unit, down to its end.
    pub fn deep_patch(&self) -> String {
        let mut text = String::from("{");
        self.push_name(&mut text, 0);
        for _ in 1..self.depth.min(29) {
            text.push('{');
            self.push_name(&mut text, 0);
        }
        text.push_str("{}");
        (0..self.depth.clamp(1, 29)).for_each(|_| text.push('}'));
        text
    }

    fn unit(&self, text: &mut String, depth: u32, is_item: bool) {
        if depth == 0 {
            return self.leaf(text, is_item);
        }
        let leaves = if depth == 1 { self.leaves } else { 1 };
        let is_array = self.arrays >> (depth % 32) & 1 == 1;
        text.push_str(match (is_array, is_item) {
            (true, false) => "[",
            (true, true) => r#"{"L":["#,
            (false, false) => "{",
            (false, true) => r#"{"M":{"#,
        });
        for index in 0..leaves {
            if index > 0 {
                text.push(',');
            }
            if !is_array {
                self.push_name(text, index);
            }
            self.unit(text, depth - 1, is_item);
        }
        text.push(if is_array { ']' } else { '}' });
        text.push_str(if is_item { "}" } else { "" });
    }

    fn leaf(&self, text: &mut String, is_item: bool) {
        let (plain, item) = match self.leaf {
            Null => ("null", r#"{"NULL":true}"#),
            True => ("true", r#"{"BOOL":true}"#),
            Zero => ("0", r#"{"N":"0"}"#),
            Digits => ("-12345678901234567890123456789012345678", r#"{"N":"-12345678901234567890123456789012345678"}"#),
            Exponent => ("1e37", r#"{"N":"10000000000000000000000000000000000000"}"#),
            EmptyObject => ("{}", r#"{"M":{}}"#),
            EmptyArray => ("[]", r#"{"L":[]}"#),
            Text => (r#"""#, r#"{"S":""#),
        };
        text.push_str(if is_item { item } else { plain });
        if self.leaf == Text {
            (0..self.length).for_each(|_| text.push_str(self.written()));
            text.push_str(if is_item { "\"}" } else { "\"" });
        }
    }

    fn push_name(&self, text: &mut String, index: u32) {
        let from = text.len();
        text.push('"');
        if index > 0 {
            write!(text, "{index:x}").expect("a text takes all");
        }
        let left = (self.name as usize).saturating_sub(text.len() - from - 1) / self.character_size();
        (0..left.max(usize::from(index == 0))).for_each(|_| text.push_str(self.written()));
        text.push_str("\":");
    }

    fn written(&self) -> &'static str {
        match self.character {
            Plain => "n",
            Control => "\\u0001",
            Quote => "\\\"",
            Wide => "é",
            WideEscaped => "\\u00e9",
        }
    }

    fn character_size(&self) -> usize {
        if matches!(self.character, Wide | WideEscaped) { 2 } else { 1 }
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

/// The JSON value of this text.
pub fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}
