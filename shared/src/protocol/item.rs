//! An item as attributes: its size, and the difference between two of them.

use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// An item, or a part of one, as `DynamoDB` knows it: attribute name to value.
pub type Attributes = HashMap<String, AttributeValue>;

/// What has to be set and removed at the top level to turn one item into another.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Diff {
    /// Attributes that are new or have another value.
    pub set: BTreeMap<String, AttributeValue>,
    /// Attributes that are gone.
    pub remove: BTreeSet<String>,
}

/// The diff from `old` to `new`, attribute by attribute; a changed map or list is set as a whole.
#[must_use]
pub fn diff(old: &Attributes, new: &Attributes) -> Diff {
    let set = new.iter().filter(|(name, value)| old.get(*name) != Some(value));
    let remove = old.keys().filter(|name| !new.contains_key(*name));
    Diff { set: set.map(|(name, value)| (name.clone(), value.clone())).collect(), remove: remove.cloned().collect() }
}

impl Diff {
    /// Changes a whole item the way that the update expression would.
    pub(crate) fn apply(&self, item: &mut Attributes) {
        item.retain(|name, _| !self.remove.contains(name));
        item.extend(self.set.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
}

/// The size of these attributes in bytes.
pub(crate) fn size_of_attributes<'a>(attributes: impl IntoIterator<Item = (&'a String, &'a AttributeValue)>) -> usize {
    attributes.into_iter().map(|(name, value)| name.len() + size_of(value)).sum()
}

/// The size of a value in bytes, rounded up where the rules say "approximately".
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html>
fn size_of(value: &AttributeValue) -> usize {
    let number = |text: &str| text.len().div_ceil(2).min(19) + 2;
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(text) => number(text),
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        AttributeValue::L(list) => 3 + list.iter().map(|value| 1 + size_of(value)).sum::<usize>(),
        AttributeValue::M(map) => 3 + map.iter().map(|(name, value)| 1 + name.len() + size_of(value)).sum::<usize>(),
        AttributeValue::Ss(set) => set.iter().map(String::len).sum(),
        AttributeValue::Ns(set) => set.iter().map(|text| number(text)).sum(),
        AttributeValue::Bs(set) => set.iter().map(|bytes| bytes.as_ref().len()).sum(),
        // Bool, Null, and whatever a later SDK adds without this crate knowing how to store it.
        _ => 1,
    }
}
