//! The values in programs: drawn at random, with those that `DynamoDB` cannot keep among them, and in the form of
//! `DynamoDB`'s JSON.

use super::super::scene::EPOCH;
use bigdecimal::BigDecimal;
use fencepost::Key;
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Draws values.
pub struct Draw {
    rng: fastrand::Rng,
    /// Whether a drawn value is one that `DynamoDB` cannot keep, or not exactly.
    pub is_odd: bool,
    /// The key of the item, if it is known.
    key: Option<Key>,
}

impl Draw {
    pub fn new(seed: u64) -> Self {
        Draw { rng: fastrand::Rng::with_seed(seed), is_odd: false, key: None }
    }

    /// Draws a value of the item with this key.
    pub fn of(key: Key, seed: u64) -> Self {
        Draw { key: Some(key), ..Draw::new(seed) }
    }

    /// The number for adds: at most 11.
    pub fn small(&mut self) -> u32 {
        self.rng.u32(..12)
    }

    pub fn pick(&mut self, count: usize) -> usize {
        self.rng.usize(0..count)
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.pick(of.len())].clone()
    }
}

pub trait Drawn {
    fn drawn(draw: &mut Draw) -> Self;
}

macro_rules! drawn_from {
    ($($type:ty: $draw:ident => $value:expr;)*) => {$(
        impl Drawn for $type {
            fn drawn($draw: &mut Draw) -> Self {
                $value
            }
        }
    )*};
}

const TEXTS: &[&str] = &["", "a", "b", "zürich", "_version", "$serde_json::private::Number", "1", " ", "x\u{0}y", "😀"];

drawn_from! {
    (): _draw => ();
    bool: draw => draw.rng.bool();
    char: draw => draw.one(&['a', 'ß', '\u{0}', '😀']);
    String: draw => draw.one(TEXTS).to_owned();
    u8: draw => draw.one(&[0, 1, u8::MAX]);
    i8: draw => draw.one(&[i8::MIN, -1, 0, i8::MAX]);
    u32: draw => draw.one(&[0, 7, u32::MAX]);
    i64: draw => draw.one(&[i64::MIN, -1, 0, 1, 12, i64::MAX]);
    u64: draw => draw.one(&[0, 1, 1 << 53, u64::MAX]);
    f64: draw => draw.one(&[0.0, 0.1, -2.5, 1e22, 1e-7, 1.0 / 3.0, 123_456_789.125]);
    Odd<f64>: draw => draw.odd(&[0.5, 1e125, -1e-130, 0.1], &[f64::NAN, f64::INFINITY, 1e300, f64::MIN_POSITIVE]);
    Odd<f32>: draw => draw.odd(&[0.5, 0.1, f32::MAX], &[f32::NAN, f32::NEG_INFINITY]);
    Bytes: draw => Bytes(draw.one(&[&[][..], &[0], &[255, 0], b"text"]).to_vec());
    // In the past, soon, and far from now.
    Ends: draw => Ends(EPOCH.as_secs() - 10 + draw.one(&[0, 0, 15, 600, 90_000, 2_592_000]));
    // Two long ones do not fit into one item.
    Fixed: draw => Fixed(draw.one(&[1, 210_000]));
    Value: draw => draw.json(2);
}

/// A value that may be one that `DynamoDB` does not keep.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Odd<T>(T);

impl Draw {
    fn odd<T: Clone>(&mut self, kept: &[T], odd: &[T]) -> Odd<T> {
        let is_odd = self.rng.u32(..12) == 0;
        self.is_odd |= is_odd;
        Odd(self.one(if is_odd { odd } else { kept }))
    }

    fn json(&mut self, depth: u32) -> Value {
        match self.rng.u32(..if depth == 0 { 6 } else { 8 }) {
            0 => Value::Null,
            1 => json!(self.rng.bool()),
            2 => json!(String::drawn(self)),
            3 => json!(i64::drawn(self)),
            4 => json!(self.one(&[0.5, -1.25, 1e-7])),
            // An `f64` does not have all digits, and the number reads back as another one.
            5 => {
                let is_odd = self.rng.bool();
                self.is_odd |= is_odd;
                let text = if is_odd { "1.0000000000000000000000001" } else { "18446744073709551615" };
                serde_json::from_str(text).expect("a number")
            }
            6 => (0..self.pick(3)).map(|_| self.json(depth - 1)).collect(),
            _ => (0..self.pick(3)).map(|n| (format!("m{n}"), self.json(depth - 1))).collect(),
        }
    }
}

impl<T: Drawn> Drawn for Option<T> {
    fn drawn(draw: &mut Draw) -> Self {
        draw.rng.bool().then(|| T::drawn(draw))
    }
}

impl<T: Drawn> Drawn for Vec<T> {
    fn drawn(draw: &mut Draw) -> Self {
        (0..draw.pick(4)).map(|_| T::drawn(draw)).collect()
    }
}

impl<T: Drawn + Ord> Drawn for BTreeSet<T> {
    fn drawn(draw: &mut Draw) -> Self {
        Vec::drawn(draw).into_iter().collect()
    }
}

impl<T: Drawn> Drawn for BTreeMap<String, T> {
    fn drawn(draw: &mut Draw) -> Self {
        let names = ["a", "b", "_version", "a.b", "#n0", "ü"];
        (0..draw.pick(4)).map(|_| (draw.one(&names).to_owned(), T::drawn(draw))).collect()
    }
}

impl<A: Drawn, B: Drawn> Drawn for (A, B) {
    fn drawn(draw: &mut Draw) -> Self {
        (A::drawn(draw), B::drawn(draw))
    }
}

impl<T: Drawn, const N: usize> Drawn for [T; N] {
    fn drawn(draw: &mut Draw) -> Self {
        std::array::from_fn(|_| T::drawn(draw))
    }
}

/// A set that is seldom empty: `DynamoDB` has no empty sets.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rare<T>(T);

impl<T: Drawn + Ord> Drawn for Rare<BTreeSet<T>> {
    fn drawn(draw: &mut Draw) -> Self {
        let is_odd = draw.rng.u32(..12) == 0;
        draw.is_odd |= is_odd;
        Rare((0..if is_odd { 0 } else { 1 + draw.pick(3) }).map(|_| T::drawn(draw)).collect())
    }
}

/// Bytes, which serde takes for a list of numbers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }

            fn visit_byte_buf<E: serde::de::Error>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
                Ok(Bytes(bytes))
            }
        }
        deserializer.deserialize_byte_buf(Read)
    }
}

/// A field that shows the partition part of the key.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionField(String);

impl Drawn for PartitionField {
    fn drawn(draw: &mut Draw) -> Self {
        PartitionField(draw.key.as_ref().and_then(|key| Some(key.partition().as_str()?.to_owned())).unwrap_or_default())
    }
}

/// A field that shows the sort part of the key.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct SortField(i64);

impl Drawn for SortField {
    fn drawn(draw: &mut Draw) -> Self {
        SortField(draw.key.as_ref().and_then(|key| key.sort()?.as_i64()).unwrap_or_default())
    }
}

/// The end of a value in epoch seconds.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ends(u64);

/// A text of so many letters.
#[derive(Clone, PartialEq)]
pub struct Fixed(usize);

impl Serialize for Fixed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&"x".repeat(self.0))
    }
}

impl<'de> Deserialize<'de> for Fixed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.bytes().all(|letter| letter == b'x') { Ok(Fixed(text.len())) } else { Err(D::Error::custom("no x")) }
    }
}

/// The attributes of an item in `DynamoDB`'s JSON, in one form for equal values.
pub type Item = BTreeMap<String, Value>;

/// The value in the form that is the same for equal values: numbers without zeros that say nothing, sets in order.
pub fn canonical(value: &Value) -> Value {
    let Some((kind, inner)) = value.as_object().and_then(|object| object.iter().next()) else { return value.clone() };
    let number = |text: &Value| match text.as_str().and_then(|text| text.parse::<BigDecimal>().ok()) {
        Some(number) => json!(number.normalized().to_plain_string()),
        None => text.clone(),
    };
    let list = || inner.as_array().into_iter().flatten();
    let sorted = |mut members: Vec<Value>| {
        members.sort_by_key(ToString::to_string);
        members
    };
    let inner = match kind.as_str() {
        "N" => number(inner),
        "NS" => json!(sorted(list().map(number).collect())),
        "SS" | "BS" => json!(sorted(list().cloned().collect())),
        "L" => list().map(canonical).collect(),
        "M" => inner.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), canonical(value))).collect(),
        _ => inner.clone(),
    };
    json!({kind: inner})
}
