//! [`Attributes`]: an item as attributes, its size, and the difference between two items.

use crate::format::{AsKind, AttributeValue};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};

/// An item or a part of one in the form of `DynamoDB`: a map from attribute name to value.
pub type Attributes = HashMap<String, AttributeValue>;

/// The top-level attributes that turn one item into another: their new values, and `None` for those to remove.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Diff(pub BTreeMap<String, Option<AttributeValue>>);

impl Diff {
    /// Computes the difference between `old` and `new`, attribute by attribute. A changed map or list is set as a whole.
    #[must_use]
    pub fn between(old: &Attributes, new: Attributes) -> Self {
        let mut changes = BTreeMap::new();
        // One by one, because to collect them would sort them first, for which much code is generated.
        for name in old.keys().filter(|name| !new.contains_key(*name)) {
            changes.insert(name.clone(), None);
        }
        for (name, value) in new {
            if old.get(&name) != Some(&value) {
                changes.insert(name, Some(value));
            }
        }
        Diff(changes)
    }

    /// The attributes that get a value.
    pub fn set(&self) -> impl Iterator<Item = (&String, &AttributeValue)> {
        self.0.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)))
    }

    /// The attributes that go.
    pub fn removed(&self) -> impl Iterator<Item = &String> {
        self.0.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name)
    }

    pub fn applied<'a>(&'a self, item: &'a Attributes) -> impl Iterator<Item = (&'a String, &'a AttributeValue)> {
        item.iter().filter(|(name, _)| !self.0.contains_key(*name)).chain(self.set())
    }

    /// Changes a whole item in the same way as the update expression.
    pub fn apply(&self, item: &mut Attributes) {
        item.retain(|name, _| !self.0.contains_key(name));
        item.extend(self.set().map(|(name, value)| (name.clone(), value.clone())));
    }
}

/// The value at a path of names.
pub fn value_at<'a>(item: &'a Attributes, path: &[String]) -> Option<&'a AttributeValue> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(item.get(first)?, |value, name| value.as_m()?.get(name))
}

pub fn size_of_attributes<'a>(attributes: impl IntoIterator<Item = (&'a String, &'a AttributeValue)>) -> usize {
    attributes.into_iter().map(|(name, value)| name.len() + size_of(value)).sum()
}

/// The most bytes of a number.
pub const LONGEST_NUMBER: usize = 21;

/// The size of a value in bytes. Rounded up where the AWS documentation says "approximately".
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html>
pub fn size_of(value: &AttributeValue) -> usize {
    let number = |text: &str| text.len().div_ceil(2).min(19) + 2;
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(text) => number(text),
        AttributeValue::B(bytes) => bytes.len(),
        AttributeValue::L(list) => 3 + list.iter().map(|value| 1 + size_of(value)).sum::<usize>(),
        AttributeValue::M(map) => 3 + map.iter().map(|(name, value)| 1 + name.len() + size_of(value)).sum::<usize>(),
        AttributeValue::Ss(set) => set.iter().map(String::len).sum(),
        AttributeValue::Ns(set) => set.iter().map(|text| number(text)).sum(),
        AttributeValue::Bs(set) => set.iter().map(Vec::len).sum(),
        AttributeValue::Bool(_) | AttributeValue::Null(_) => 1,
    }
}

/// A digest of the attributes with these names, the same only for the same values. Missing differs from every value.
pub fn digest(attributes: &Attributes, names: &[&str]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for (name, value) in in_order(names.iter().map(|name| (name.as_bytes(), attributes.get(*name)))) {
        add_text(&mut hash, if value.is_some() { b'+' } else { b'-' }, name);
        if let Some(value) = value {
            add_value(&mut hash, value);
        }
    }
    let whole = hash.finalize();
    let mut digest = [0; 16];
    digest.copy_from_slice(&whole[..16]);
    digest
}

fn add_value(hash: &mut Sha256, value: &AttributeValue) {
    match value {
        AttributeValue::S(text) => add_text(hash, b'S', text.as_bytes()),
        AttributeValue::N(number) => add_text(hash, b'N', number.as_bytes()),
        AttributeValue::B(bytes) => add_text(hash, b'B', bytes),
        AttributeValue::Bool(is) => add_text(hash, b'Z', &[u8::from(*is)]),
        AttributeValue::L(list) => {
            add_text(hash, b'L', &list.len().to_be_bytes());
            for value in list {
                add_value(hash, value);
            }
        }
        AttributeValue::M(map) => {
            add_text(hash, b'M', &map.len().to_be_bytes());
            for (name, value) in in_order(map.iter().map(|(name, value)| (name.as_bytes(), Some(value)))) {
                add_text(hash, b'K', name);
                if let Some(value) = value {
                    add_value(hash, value);
                }
            }
        }
        // The members of a set have no order.
        AttributeValue::Ss(set) => add_set(hash, b's', set.iter().map(|member| (member.as_bytes(), None))),
        AttributeValue::Ns(set) => add_set(hash, b'n', set.iter().map(|member| (member.as_bytes(), None))),
        AttributeValue::Bs(set) => add_set(hash, b'b', set.iter().map(|member| (member.as_slice(), None))),
        AttributeValue::Null(_) => add_text(hash, b'0', &[]),
    }
}

fn add_set<'a>(hash: &mut Sha256, kind: u8, members: impl Iterator<Item = Entry<'a>>) {
    let members = in_order(members);
    add_text(hash, kind, &members.len().to_be_bytes());
    for (member, _) in members {
        add_text(hash, kind, member);
    }
}

/// A name with the value that it has, or a member of a set.
type Entry<'a> = (&'a [u8], Option<&'a AttributeValue>);

/// In the order of their bytes, each name once. One type for all that has an order, because a sort is much code.
fn in_order<'a>(entries: impl Iterator<Item = Entry<'a>>) -> Vec<Entry<'a>> {
    let mut entries: Vec<_> = entries.collect();
    entries.sort_unstable_by_key(|(name, _)| *name);
    entries.dedup_by_key(|(name, _)| *name);
    entries
}

/// Adds bytes with their kind and length. So two different lists of values never look alike.
fn add_text(hash: &mut Sha256, kind: u8, bytes: &[u8]) {
    hash.update([kind]);
    hash.update(bytes.len().to_be_bytes());
    hash.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn of(value: AttributeValue) -> [u8; 16] {
        digest(&Attributes::from([("a".to_owned(), value)]), &["a"])
    }

    #[test]
    fn a_difference_leaves_the_attributes_that_it_neither_sets_nor_removes() {
        let number = |n: u8| AttributeValue::N(n.to_string());
        let item = |entries: &[(&str, u8)]| -> Attributes {
            entries.iter().map(|(name, n)| ((*name).to_owned(), number(*n))).collect()
        };
        let (old, new) = (item(&[("stays", 1), ("changes", 1), ("goes", 1)]), item(&[("stays", 1), ("changes", 2)]));
        let diff = Diff::between(&old, new.clone());
        assert_eq!(diff.applied(&old).count(), 2);
        let mut changed = old.clone();
        diff.apply(&mut changed);
        assert_eq!(changed, new);
        assert_eq!(diff.applied(&old).map(|(name, value)| (name.clone(), value.clone())).collect::<Attributes>(), new);
    }

    #[test]
    fn a_digest_tells_values_types_and_missing_attributes_apart_and_leaves_out_what_is_not_named() {
        use AttributeValue as V;
        let text = |text: &str| V::S(text.to_owned());
        let set = |members: &[&str]| V::Ss(members.iter().map(|&member| member.to_owned()).collect());
        let bytes = |bytes: &[u8]| Vec::from(bytes);
        let all = [
            of(text("1")),
            of(text("2")),
            of(V::N("1".to_owned())),
            of(V::N("2".to_owned())),
            of(V::B(bytes(b"1"))),
            of(V::B(bytes(b"2"))),
            of(V::Bool(true)),
            of(V::Bool(false)),
            of(V::Null(true)),
            of(V::L(vec![text("1")])),
            of(V::L(vec![text("1"), text("")])),
            of(V::M([("1".to_owned(), text(""))].into())),
            of(V::M([("1".to_owned(), text("1"))].into())),
            of(set(&["1"])),
            of(set(&["1", "2"])),
            of(V::Ns(vec!["1".to_owned()])),
            of(V::Ns(vec!["2".to_owned()])),
            of(V::Bs(vec![bytes(b"1")])),
            of(V::Bs(vec![bytes(b"2")])),
            digest(&Attributes::new(), &["a"]),
        ];
        let different: BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        assert_eq!(of(set(&["2", "1"])), of(set(&["1", "2"])), "a set has no order");
        let more = Attributes::from([("a".to_owned(), text("1")), ("b".to_owned(), text("2"))]);
        assert_eq!(digest(&more, &["a"]), of(text("1")));
        assert_eq!(digest(&more, &["a", "b"]), digest(&more, &["b", "a"]));
    }

    /// By the rules of the page named at [`size_of`]. Each value has an attribute name of one byte.
    #[test]
    fn an_attribute_has_the_size_of_its_name_and_of_its_value() {
        use AttributeValue as V;
        let text = |text: &str| V::S(text.to_owned());
        let number = |number: &str| V::N(number.to_owned());
        let bytes = |count| vec![0; count];
        for (value, size) in [
            (text(""), 0),
            (text("üü"), 4),
            (number("7"), 3),
            (number("1234"), 4),
            (number("12345"), 5),
            (number(&"9".repeat(38)), 21),
            (number(&format!("-{}", "9".repeat(38))), 21),
            (V::B(bytes(7)), 7),
            (V::Bool(true), 1),
            (V::Null(true), 1),
            (V::L(vec![]), 3),
            (V::L(vec![text("abcd"), number("7")]), 3 + (1 + 4) + (1 + 3)),
            (V::M([].into()), 3),
            (V::M([("name".to_owned(), text("ab"))].into()), 3 + (1 + 4 + 2)),
            (V::Ss(vec!["a".to_owned(), "bc".to_owned()]), 3),
            (V::Ns(vec!["1".to_owned(), "123".to_owned()]), 3 + 4),
            (V::Bs(vec![bytes(2), bytes(3)]), 5),
        ] {
            let attributes = Attributes::from([("a".to_owned(), value.clone())]);
            assert_eq!(size_of_attributes(&attributes), 1 + size, "{value:?}");
        }
    }
}
