//! [`Edit`]: a change that needs no version, so that many writers do not conflict.

use super::bounds::{Bounds, negative, whole};
use crate::condition::{AddedNumber, Clauses, Demanded};
use crate::format::number::{Number, compare};
use crate::format::{AttributeValue, value};
use crate::version::ItemVersion;
use serde::Serialize;
use std::cmp::Ordering;
use std::ops::RangeInclusive;

/// A change that depends on the old item only through conditions: it adds to numbers within bounds, sets values and
/// removes them.
///
/// An edit changes each value once: two clauses that write the same value, or a map and its member, are refused as
/// `Failure::InvalidRecord`.
///
/// An edit demands no exact version. So edits of one item do not conflict with each other.
///
/// ```
/// # extern crate fencepost_core as fencepost;
/// use fencepost::Edit;
///
/// // Takes 3 from the stock, but never below 0. The status follows from the new stock.
/// let take = Edit::add("stock", -3, 0..=1_000_000).bands(
///     "status",
///     "stock",
///     [(0..=0, "out_of_stock"), (1..=5, "low_stock"), (6..=1_000_000, "in_stock")],
/// );
/// // Sets a member of a map while the device is online, at most once in five minutes.
/// let fade = Edit::set(["config", "fadeMs"], &200)
///     .only_if("status", &"online")
///     .only_if_at_most("configUpdatedAt", &"2026-03-07T09:55:00.000Z")
///     .stamp("configUpdatedAt", &"2026-03-07T10:00:00.000Z");
/// # drop((take, fade));
/// ```
///
/// The field calls an add within bounds *escrow* (O'Neil 1986) or a *bounded counter*. Sums are those of `DynamoDB`: exact
/// up to 38 significant digits. If the numbers of an item may need more digits, use
/// `Table::update_with_retry`.
#[derive(Clone, Default, Debug)]
pub struct Edit {
    pub(super) clauses: Clauses,
    pub(super) bands: Vec<Bands>,
    pub(super) seen: Option<ItemVersion>,
    pub(super) invalid: Option<String>,
}

/// An attribute with a value that follows from the range of a number.
#[derive(Clone, Debug)]
pub(super) struct Bands {
    pub number: usize,
    pub attribute: String,
    pub ranges: Vec<(RangeInclusive<i64>, AttributeValue)>,
}

/// The path of names to a value, from the top of the item.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttributePath(Vec<String>);

impl From<&str> for AttributePath {
    /// A top-level attribute. The name is literal: a dot in it separates nothing.
    fn from(name: &str) -> Self {
        AttributePath(vec![name.to_owned()])
    }
}

impl From<&String> for AttributePath {
    fn from(name: &String) -> Self {
        AttributePath::from(name.as_str())
    }
}

impl<const N: usize> From<[&str; N]> for AttributePath {
    /// A member of a map: the attribute, then the members, as in `["state", "brightness"]`.
    fn from(names: [&str; N]) -> Self {
        AttributePath(names.map(str::to_owned).into())
    }
}

impl From<Vec<String>> for AttributePath {
    fn from(names: Vec<String>) -> Self {
        AttributePath(names)
    }
}

impl Edit {
    /// Adds `by` to the number at `path`, if the result keeps its [`Bounds`]: a range such as `0..=100` or `0..` for
    /// the result, or `..` for none of its own.
    #[must_use]
    pub fn add(path: impl Into<AttributePath>, by: impl Into<Number>, bounds: impl Into<Bounds>) -> Self {
        Edit::default().and_add(path, by, bounds)
    }

    /// Sets the value at `path`. A path into a map demands that the map is there. A list in place of a stored set becomes
    /// a set of its kind, or the edit fails.
    #[must_use]
    pub fn set(path: impl Into<AttributePath>, value: &impl Serialize) -> Self {
        Edit::default().and_set(path, value)
    }

    /// Adds to one more number of the same item. All changes of an edit are applied, or none.
    #[must_use]
    pub fn and_add(mut self, path: impl Into<AttributePath>, by: impl Into<Number>, bounds: impl Into<Bounds>) -> Self {
        let (path, by) = (self.path(path), by.into());
        let [low, high] = bounds.into().of_current(&by).unwrap_or_else(|| {
            self.invalid = Some("only a whole amount has whole bounds: use Bounds::Before".to_owned());
            [negative(&by), negative(&by)]
        });
        if compare(&low, &high) == Ordering::Greater {
            self.invalid = Some(format!("{}: no number is within the bounds of the add", path.join(".")));
        }
        self.clauses.numbers.push(AddedNumber { path, by: by.to_string(), low, high });
        self
    }

    /// Sets one more value.
    #[must_use]
    pub fn and_set(mut self, path: impl Into<AttributePath>, value: &impl Serialize) -> Self {
        let path = self.path(path);
        match self.encode(&path, value) {
            Some(value) => self.and_set_attribute(path, value),
            None => self,
        }
    }

    /// Sets one more value, in the form of `DynamoDB`.
    #[must_use]
    pub fn and_set_attribute(mut self, path: impl Into<AttributePath>, value: AttributeValue) -> Self {
        let path = self.path(path);
        if let Some(value) = self.settled(&path, value) {
            self.demand_map(&path);
            self.clauses.set.push((path, value));
        }
        self
    }

    /// Removes the value at `path`, if there is one. A path into a map demands that the map is there.
    #[must_use]
    pub fn and_remove(mut self, path: impl Into<AttributePath>) -> Self {
        let path = self.path(path);
        self.demand_map(&path);
        self.clauses.remove.push(path);
        self
    }

    /// A member can be set or removed only in a map.
    fn demand_map(&mut self, path: &[String]) {
        let (demands, parent) = (&mut self.clauses.demands, path[..path.len().saturating_sub(1)].to_vec());
        let demand = (parent, Demanded::Map);
        if !demand.0.is_empty() && !demands.contains(&demand) {
            demands.push(demand);
        }
    }

    fn path(&mut self, path: impl Into<AttributePath>) -> Vec<String> {
        let AttributePath(path) = path.into();
        if path.is_empty() {
            self.invalid = Some("the path of a value is empty".to_owned());
        }
        path
    }

    /// Sets an attribute by the range of the result of the number at `path`. The path leads to one of the numbers of
    /// this add; its amount must be whole. Ranges must not overlap. A result outside all of them is refused.
    ///
    /// The library guesses the range from the number seen last. A wrong guess is refused and costs one more request.
    #[must_use]
    pub fn bands(
        mut self,
        attribute: &str,
        path: impl Into<AttributePath>,
        bands: impl IntoIterator<Item = (RangeInclusive<i64>, impl Serialize)>,
    ) -> Self {
        let path = path.into().0;
        let mut encoded = Vec::new();
        for (range, value) in bands.into_iter().filter(|(range, _)| !range.is_empty()) {
            if let Some(value) = self.encode(&[attribute.to_owned()], &value) {
                encoded.push((range, value));
            }
        }
        match self.clauses.numbers.iter().position(|number| number.path == path) {
            Some(number) if self.number(number).is_some() => {
                self.bands.push(Bands { number, attribute: attribute.to_owned(), ranges: encoded });
            }
            Some(_) => self.invalid = Some("only a whole amount has bands".to_owned()),
            None => self.invalid = Some(format!("the bands of {attribute} are those of a number that is not added to")),
        }
        self
    }

    /// Sets an attribute along with the rest, such as the time of the last change. Alone, it is no change for
    /// [`Edit::only_if_changed`].
    #[must_use]
    pub fn stamp(mut self, attribute: &str, value: &impl Serialize) -> Self {
        if let Some(value) = self.encode(&[attribute.to_owned()], value) {
            self.clauses.stamps.push((attribute.to_owned(), value));
        }
        self
    }

    /// Demands this value at `path`, as `DynamoDB` compares values: numbers by their value, sets without an order.
    #[must_use]
    pub fn only_if(self, path: impl Into<AttributePath>, value: &impl Serialize) -> Self {
        self.demand_value(path, value, Demanded::Equal)
    }

    /// Demands at most this value at `path`, or none. Numbers are compared as numbers, texts and bytes byte by byte. Other
    /// values have no order: the edit then fails with `Failure::InvalidRecord`.
    #[must_use]
    pub fn only_if_at_most(self, path: impl Into<AttributePath>, value: &impl Serialize) -> Self {
        self.demand_value(path, value, Demanded::AtMostIfThere)
    }

    /// Demands a value at `path`.
    #[must_use]
    pub fn only_with(self, path: impl Into<AttributePath>) -> Self {
        self.demand(path, Demanded::There)
    }

    /// Demands that there is no value at `path`.
    #[must_use]
    pub fn only_without(self, path: impl Into<AttributePath>) -> Self {
        self.demand(path, Demanded::Missing)
    }

    /// Demands an item that the edit would change, if it only sets and removes values. An add always changes it.
    #[must_use]
    pub fn only_if_changed(mut self) -> Self {
        self.clauses.is_to_change = true;
        self
    }

    fn demand_value(
        mut self,
        path: impl Into<AttributePath>,
        value: &impl Serialize,
        demanded: fn(AttributeValue) -> Demanded,
    ) -> Self {
        let path = self.path(path);
        match self.encode(&path, value) {
            Some(value) => self.demand(path, demanded(value)),
            None => self,
        }
    }

    fn demand(mut self, path: impl Into<AttributePath>, demanded: Demanded) -> Self {
        let path = self.path(path);
        self.clauses.demands.push((path, demanded));
        self
    }

    /// Names a state in which the item was seen. The edit then needs no read. It does not know which old write ids the item
    /// may forget. So where the item has more than 32 beyond
    /// `Settings::remembered_writes`, it is refused once, and removes some with one more write.
    #[must_use]
    pub fn seen(mut self, at: ItemVersion) -> Self {
        self.seen = Some(at);
        self
    }

    /// The whole amount that is added to this number.
    pub(super) fn number(&self, number: usize) -> Option<i128> {
        whole(&self.clauses.numbers[number].by)
    }

    fn encode(&mut self, path: &[String], value: &impl Serialize) -> Option<AttributeValue> {
        match serde_dynamo::to_attribute_value(value) {
            Ok(value) => self.settled(path, value),
            Err(error) => {
                self.invalid = Some(format!("{}: {error}", path.join(".")));
                None
            }
        }
    }

    /// The value in the form in which a table keeps it.
    fn settled(&mut self, path: &[String], mut value: AttributeValue) -> Option<AttributeValue> {
        match value::settle(path, &mut value) {
            Ok(()) => Some(value),
            Err(reason) => {
                self.invalid = Some(reason);
                None
            }
        }
    }
}

/// Two paths of which one is the other, or leads to it. `DynamoDB` refuses an update of both.
pub(super) fn overlap<'a>(paths: &[&'a [String]]) -> Option<[&'a [String]; 2]> {
    let pairs =
        paths.iter().enumerate().flat_map(|(index, one)| paths[index + 1..].iter().map(move |other| [*one, *other]));
    pairs.into_iter().find(|[one, other]| one.starts_with(other) || other.starts_with(one))
}
