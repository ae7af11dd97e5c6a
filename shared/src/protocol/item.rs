//! [`Attributes`]: an item as attributes, its size, and the difference between two items.

use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// An item, or a part of one, in the form of `DynamoDB`: a map from attribute name to value.
pub type Attributes = HashMap<String, AttributeValue>;

/// The top-level attributes to set and to remove in order to turn one item into another.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Diff {
    /// Attributes that are new or have another value.
    pub set: BTreeMap<String, AttributeValue>,
    /// Attributes to remove.
    pub remove: BTreeSet<String>,
}

/// Computes the difference between `old` and `new`, attribute by attribute. A changed map or list is set as a whole.
#[must_use]
pub fn diff(old: &Attributes, new: &Attributes) -> Diff {
    let set = new.iter().filter(|(name, value)| old.get(*name) != Some(value));
    let remove = old.keys().filter(|name| !new.contains_key(*name));
    Diff { set: set.map(|(name, value)| (name.clone(), value.clone())).collect(), remove: remove.cloned().collect() }
}

impl Diff {
    /// Changes a whole item in the same way as the update expression.
    pub(crate) fn apply(&self, item: &mut Attributes) {
        item.retain(|name, _| !self.remove.contains(name));
        item.extend(self.set.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
}

/// The size of these attributes in bytes.
pub(crate) fn size_of_attributes<'a>(attributes: impl IntoIterator<Item = (&'a String, &'a AttributeValue)>) -> usize {
    attributes.into_iter().map(|(name, value)| name.len() + size_of(value)).sum()
}

/// The size of a value in bytes. Rounded up where the AWS documentation says "approximately".
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
        // Bool, Null, and types that a later SDK adds, which this crate does not store.
        _ => 1,
    }
}
