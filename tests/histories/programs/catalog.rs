//! The kinds of items in programs: the facts about their types.

use super::records::*;
use super::values::{Draw, Item, canonical};
use fencepost::maintenance::Audit;
use fencepost::{Key, KeyPart, Record};
use serde_json::{Value, json};
use std::fmt;
use std::marker::PhantomData;

/// The row with this key in the table of this kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    pub kind: usize,
    pub key: u8,
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", KINDS[self.kind].table(), self.key)
    }
}

/// A kind of items: all that a program needs to know of its type.
pub trait Kind: Sync {
    fn table(&self) -> &'static str;
    /// The names of the key, and the kinds of its parts.
    fn key(&self) -> (Vec<&'static str>, &'static str);
    /// The names of the attributes that hold the number of a change and the number for adds.
    fn by(&self) -> String;
    fn number(&self) -> String;
    fn expires_at(&self) -> Option<&'static str>;
    /// The attribute that an older build does not know. It is not part of an [`Item`].
    fn hidden(&self) -> Option<&'static str>;
    /// The settings in words.
    fn settings(&self) -> String;
    /// The audit of its table.
    fn audit(&self) -> Audit;
    fn sample(&self, draw: &mut Draw) -> Item;
}

pub struct Of<T>(pub PhantomData<fn() -> T>);

pub static KINDS: &[&dyn Kind] = all_subjects!(Of, [Flat, Builds]);

impl<T: Subject> Kind for Of<T> {
    fn table(&self) -> &'static str {
        T::TABLE
    }

    fn key(&self) -> (Vec<&'static str>, &'static str) {
        ([Some(T::PARTITION_KEY), T::SORT_KEY].into_iter().flatten().collect(), T::KEY)
    }

    fn by(&self) -> String {
        T::ATTRIBUTES[0].to_owned()
    }

    fn number(&self) -> String {
        T::ATTRIBUTES[1].to_owned()
    }

    fn expires_at(&self) -> Option<&'static str> {
        T::EXPIRES_AT
    }

    fn hidden(&self) -> Option<&'static str> {
        T::HIDDEN
    }

    fn settings(&self) -> String {
        format!("{:?}", T::SETTINGS)
    }

    fn audit(&self) -> Audit {
        Audit::of(T::SETTINGS)
    }

    fn sample(&self, draw: &mut Draw) -> Item {
        let drawn = (0..1_000).find_map(|_| {
            draw.is_odd = false;
            let value = T::drawn(draw);
            item_of(&value).filter(|_| !draw.is_odd)
        });
        drawn.unwrap_or_else(|| panic!("no value of {} can be stored", T::TABLE))
    }
}

/// The item that holds this value. `None` if it cannot be stored.
pub fn item_of<T: Subject>(value: &T) -> Option<Item> {
    let mut item = attributes_of(value)?;
    item.retain(|name, _| T::HIDDEN != Some(name));
    Some(item)
}

/// The attributes of this value, without those of its key.
pub fn attributes_of<T: Record>(value: &T) -> Option<Item> {
    let attributes = value.encode().ok()?;
    let own = attributes.iter().filter(|(name, _)| !T::KEY_FIELDS.contains(&&***name));
    Some(own.map(|(name, value)| (name.clone(), canonical(&serde_json::to_value(value).expect("JSON")))).collect())
}

/// The key of a row in its own form and in `DynamoDB`'s JSON. The rows of a table with a sort key share a partition.
pub fn key_of(row: Row, scene: &str) -> (Key, Value) {
    let (names, kinds) = KINDS[row.kind].key();
    let number = i64::from(row.key) - 1;
    let hashed = scene.bytes().fold(7u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let own = if kinds.len() == 1 { format!("{scene}-{number}") } else { scene.to_owned() };
    let part = |kind: char, is_sort: bool| match (kind, is_sort) {
        ('S', false) => (KeyPart::from(&own), json!({"S": own})),
        ('S', true) => (KeyPart::from(format!("line {number}")), json!({"S": format!("line {number}")})),
        ('N', false) => {
            let number = i64::try_from(hashed % 1_000_000_000_000).expect("small") * 10 + number;
            (KeyPart::from(number), json!({"N": number.to_string()}))
        }
        ('N', true) => (KeyPart::from(number), json!({"N": number.to_string()})),
        (_, is_sort) => {
            let bytes = if is_sort { vec![row.key] } else { own.clone().into_bytes() };
            let json = json!({"B": aws_smithy_types::base64::encode(&bytes)});
            (KeyPart::from(bytes), json)
        }
    };
    let mut parts = kinds.chars().enumerate().map(|(at, kind)| part(kind, at == 1));
    let (partition, partition_json) = parts.next().expect("a partition key");
    match (parts.next(), &names[..]) {
        (Some((sort, sort_json)), [one, two]) => {
            (Key::from((partition, sort)), json!({*one: partition_json, *two: sort_json}))
        }
        (_, [one, ..]) => (Key::from(partition), json!({*one: partition_json})),
        _ => unreachable!("a key has a name"),
    }
}
