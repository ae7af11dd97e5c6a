//! [`RawEdit`]: a change that needs no version, by the paths and the stored form of its values. `Edit<T>` of the crate
//! above is the form that knows the type of the item.

use super::bounds::{Bounds, negative, whole};
use crate::condition::{AddedNumber, Clauses, Comparison, Condition, Demanded, Holds};
use crate::format::number::{Number, compare};
use crate::format::{AttributeValue, value};
use crate::version::ItemVersion;
use std::cmp::Ordering;
use std::ops::RangeInclusive;

/// The most single conditions of an edit, and the most levels of a condition that is made of others. `DynamoDB` takes
/// at most 300 operators and functions in an expression.
pub const MAX_CONDITIONS: usize = 100;
pub const MAX_LEVELS: usize = 8;

/// A change that depends on the old item only through conditions.
///
/// ```
/// # extern crate fencepost_core as fencepost;
/// use fencepost::AttributeValue::S;
/// use fencepost::edit::RawEdit;
///
/// // Takes 3 from the stock, but never below 0. The status follows from the new stock.
/// let status = |name: &str| S(name.to_owned());
/// let take = RawEdit::default().and_add("stock", -3, 0..=1_000_000, None).bands(
///     "status",
///     "stock",
///     [(0..=0, status("out_of_stock")), (1..=5, status("low_stock")), (6..=1_000_000, status("in_stock"))],
/// );
/// # drop(take);
/// ```
#[derive(Clone, Default, Debug)]
pub struct RawEdit {
    pub(super) clauses: Clauses,
    pub(super) bands: Vec<Bands>,
    pub(super) choices: Vec<Choice>,
    pub(super) seen: Option<ItemVersion>,
    /// What it demands of the holds of the item.
    pub(super) of_holds: Vec<Condition>,
    pub(super) invalid: Option<String>,
}

/// A value that is set where one condition holds. Where the other one holds, nothing is to do.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub path: Vec<String>,
    pub value: AttributeValue,
    pub when: Condition,
    pub otherwise: Condition,
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
pub struct AttributePath(pub(super) Vec<String>);

impl From<&str> for AttributePath {
    /// A top-level attribute. The name is literal: a dot in it separates nothing.
    fn from(name: &str) -> Self {
        AttributePath(vec![name.to_owned()])
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

impl RawEdit {
    /// Adds `by` to the number at `path`, if the result keeps its [`Bounds`] and is one of these whole numbers, if any.
    #[must_use]
    pub fn and_add(
        mut self,
        path: impl Into<AttributePath>,
        by: impl Into<Number>,
        bounds: impl Into<Bounds>,
        range: Option<(i128, i128)>,
    ) -> Self {
        let (path, by, bounds) = (self.path(path), by.into(), bounds.into());
        if bounds.are_reversed() {
            self.refuse(format!("{}: the lower bound of the add is above the upper one", path.join(".")));
        }
        let [low, high] = bounds.of_current(&by, range).unwrap_or_else(|| {
            let reason =
                "only a whole amount of at most 38 digits has bounds for its result: bound the number before the add";
            self.refuse(format!("{}: {reason}, by Bounds::Before", path.join(".")));
            [negative(&by), negative(&by)]
        });
        if compare(&low, &high) == Ordering::Greater {
            self.refuse(format!("{}: no number is within the bounds of the add", path.join(".")));
        }
        self.clauses.numbers.push(AddedNumber { path, by: by.to_string(), low, high });
        self
    }

    /// Sets the value at `path`. A path into a map demands that the map is there. A list in place of a stored set becomes
    /// a set of its kind, or the edit fails.
    #[must_use]
    pub fn and_set(mut self, path: impl Into<AttributePath>, value: AttributeValue) -> Self {
        let path = self.path(path);
        if let Some(value) = self.settled(&path, value) {
            self.demand_map(&path);
            self.clauses.set.push((path, value));
        }
        self
    }

    /// Sets the value at `path` where one condition holds. Where only the other one holds, leaves it as it is. The two
    /// exclude each other. Which one to demand is guessed from the item that was seen last.
    #[must_use]
    pub fn and_choose(
        mut self,
        path: impl Into<AttributePath>,
        value: AttributeValue,
        [when, otherwise]: [Condition; 2],
    ) -> Self {
        let path = self.path(path);
        let (when, otherwise) = (self.checked_at(when, 1), self.checked_at(otherwise, 1));
        if let (Some(value), Some(when), Some(otherwise)) = (self.settled(&path, value), when, otherwise) {
            self.demand_map(&path);
            self.choices.push(Choice { path, value, when, otherwise });
        }
        self
    }

    /// Appends these members to the list at `path`, which is there.
    #[must_use]
    pub fn and_append(mut self, path: impl Into<AttributePath>, members: Vec<AttributeValue>) -> Self {
        let path = self.path(path);
        if members.is_empty() {
            self.refuse(format!("{}: nothing is appended", path.join(".")));
        }
        if let Some(members) = self.settled(&path, AttributeValue::L(members)) {
            self.clauses.demands.push(Condition::At(path.clone(), Demanded::Type("L")));
            self.clauses.append.push((path, members));
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

    /// Both edits as one. All of it is applied, or nothing.
    #[must_use]
    pub fn and(mut self, other: RawEdit) -> Self {
        let RawEdit { clauses: mut more, bands, choices, seen, of_holds: _, invalid } = other;
        let added = self.clauses.numbers.len();
        self.bands.extend(bands.into_iter().map(|bands| Bands { number: bands.number + added, ..bands }));
        self.choices.extend(choices);
        let own = &mut self.clauses;
        own.numbers.append(&mut more.numbers);
        own.set.append(&mut more.set);
        own.remove.append(&mut more.remove);
        own.stamps.append(&mut more.stamps);
        own.append.append(&mut more.append);
        own.is_to_change |= more.is_to_change;
        more.demands.into_iter().for_each(|demand| self.demand(demand));
        self.seen = self.seen.or(seen);
        self.invalid = self.invalid.or(invalid);
        self
    }

    /// A member can be set or removed only in a map.
    fn demand_map(&mut self, path: &[String]) {
        let parent = &path[..path.len().saturating_sub(1)];
        if !parent.is_empty() {
            self.demand(Condition::At(parent.to_vec(), Demanded::Type("M")));
        }
    }

    /// Demands this, once.
    fn demand(&mut self, condition: Condition) {
        if !self.clauses.demands.contains(&condition) {
            self.clauses.demands.push(condition);
        }
    }

    fn path(&mut self, path: impl Into<AttributePath>) -> Vec<String> {
        let AttributePath(path) = path.into();
        if path.is_empty() {
            self.refuse("the path of a value is empty");
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
        bands: impl IntoIterator<Item = (RangeInclusive<i64>, AttributeValue)>,
    ) -> Self {
        let path = path.into().0;
        let mut ranges = Vec::new();
        for (range, value) in bands.into_iter().filter(|(range, _)| !range.is_empty()) {
            ranges.extend(self.settled(&[attribute.to_owned()], value).map(|value| (range, value)));
        }
        let overlaps = |one: usize, (range, _): &(RangeInclusive<i64>, _)| {
            ranges[..one].iter().any(|(other, _): &(RangeInclusive<i64>, _)| {
                other.start() <= range.end() && range.start() <= other.end()
            })
        };
        if ranges.iter().enumerate().any(|(one, band)| overlaps(one, band)) {
            self.refuse(format!("{attribute}: two of its bands overlap"));
        }
        if ranges.is_empty() {
            self.refuse(format!("{attribute}: it has no bands, or each of them ends before it begins"));
        }
        match self.clauses.numbers.iter().position(|number| number.path == path) {
            Some(number) if self.number(number).is_some() => {
                self.bands.push(Bands { number, attribute: attribute.to_owned(), ranges });
            }
            Some(_) => self.refuse(format!("{attribute}: only a whole amount has bands")),
            None => self.refuse(format!("the bands of {attribute} are those of a number that is not added to")),
        }
        self
    }

    /// Sets an attribute along with the rest, such as the time of the last change. Alone, it is no change for
    /// [`RawEdit::only_if_changed`].
    #[must_use]
    pub fn stamp(mut self, attribute: &str, value: AttributeValue) -> Self {
        if let Some(value) = self.settled(&[attribute.to_owned()], value) {
            self.clauses.stamps.push((attribute.to_owned(), value));
        }
        self
    }

    /// Demands an item that meets this condition.
    #[must_use]
    pub fn only_if(mut self, condition: Condition) -> Self {
        match condition {
            Condition::All(parts) if !parts.is_empty() => parts.into_iter().fold(self, RawEdit::only_if),
            condition => {
                let condition = self.checked_at(condition, 1);
                self.clauses.demands.extend(condition);
                self
            }
        }
    }

    /// Demands an item that the edit would change, if it only sets and removes values. An add always changes it.
    #[must_use]
    pub fn only_if_changed(mut self) -> Self {
        self.clauses.is_to_change = true;
        self
    }

    /// Does this to the holds of the item, which this attribute has, along with the rest. Demands an item without the hold to
    /// place, and with the hold to free.
    #[must_use]
    pub fn with_holds(mut self, attribute: &str, holds: Holds) -> Self {
        let at = |id: &String| vec![attribute.to_owned(), id.clone()];
        if let Some((id, _)) = &holds.place {
            self.of_holds.push(Condition::At(vec![attribute.to_owned()], Demanded::Type("M")));
            self.of_holds.push(Condition::At(at(id), Demanded::Missing));
        }
        self.of_holds.extend(holds.free.iter().map(|id| Condition::At(at(id), Demanded::There)));
        self.clauses.holds = holds;
        self
    }

    /// What the edit takes from the number at this attribute, if that is all of it beside what follows from the number:
    /// bands, stamps and conditions. Only such an edit can be given back.
    #[must_use]
    pub fn taken_from(&self, number: &str) -> Option<String> {
        let Clauses { numbers, set, remove, append, is_to_change, .. } = &self.clauses;
        let is_more = !(set.is_empty() && remove.is_empty() && append.is_empty() && self.choices.is_empty());
        let [AddedNumber { path, by, .. }] = &**numbers else { return None };
        let is_taken = *path == [number] && !is_more && !is_to_change && self.seen.is_none() && self.invalid.is_none();
        let by = whole(by).filter(|by| is_taken && *by < 0)?;
        Some(by.unsigned_abs().to_string())
    }

    /// Names a state in which the item was seen. The edit then needs no read.
    #[must_use]
    pub fn seen(mut self, at: ItemVersion) -> Self {
        self.seen = Some(at);
        self
    }

    /// An edit that is invalid for this reason. Nothing of it is ever sent, nor of one that it becomes a part of.
    #[must_use]
    pub fn refused(reason: String) -> Self {
        RawEdit { invalid: Some(reason), ..RawEdit::default() }
    }

    /// Makes the edit invalid. The first reason counts.
    fn refuse(&mut self, reason: impl Into<String>) {
        self.invalid.get_or_insert_with(|| reason.into());
    }

    /// The whole amount that is added to this number.
    pub(super) fn number(&self, number: usize) -> Option<i128> {
        whole(&self.clauses.numbers[number].by)
    }

    /// The condition with its values in the form in which a table keeps them. `None` if `DynamoDB` takes no such one.
    fn checked_at(&mut self, condition: Condition, level: usize) -> Option<Condition> {
        if level > MAX_LEVELS {
            self.refuse(format!("a condition has at most {MAX_LEVELS} levels"));
            return None;
        }
        let mut all = |parts: Vec<Condition>| {
            if parts.is_empty() {
                self.refuse("a condition is made of no others: leave it out, or give it some");
                return None;
            }
            parts.into_iter().map(|part| self.checked_at(part, level + 1)).collect::<Option<Vec<_>>>()
        };
        match condition {
            Condition::All(parts) => all(parts).map(Condition::All),
            Condition::Any(parts) => all(parts).map(Condition::Any),
            Condition::Not(part) => Some(Condition::Not(Box::new(self.checked_at(*part, level + 1)?))),
            Condition::At(path, demanded) => {
                let path = self.path(path);
                let Demanded::Compared(comparison, value) = demanded else {
                    return Some(Condition::At(path, demanded));
                };
                let value = self.settled(&path, value)?;
                let has_order = matches!(value, AttributeValue::S(_) | AttributeValue::N(_) | AttributeValue::B(_));
                if comparison != Comparison::Equal && !has_order {
                    self.refuse(format!("{}: only numbers, texts and bytes have an order", path.join(".")));
                    return None;
                }
                Some(Condition::At(path, Demanded::Compared(comparison, value)))
            }
        }
    }

    /// The value in the form in which a table keeps it.
    fn settled(&mut self, path: &[String], mut value: AttributeValue) -> Option<AttributeValue> {
        match value::settle(path, &mut value) {
            Ok(()) => Some(value),
            Err(reason) => {
                self.refuse(reason);
                None
            }
        }
    }
}

/// The condition of a filter of items with these attributes, with its values in the form in which a table keeps them.
///
/// # Errors
/// The reason why no item is asked for it.
pub fn filter(condition: Condition, attributes: &[&str]) -> Result<Condition, String> {
    let RawEdit { clauses, invalid, .. } = RawEdit::default().only_if(condition);
    if let Some(reason) = invalid {
        return Err(reason);
    }
    let leaves: Vec<_> = clauses.demands.iter().flat_map(Condition::leaves).collect();
    let names = leaves.iter().filter_map(|(path, _)| path.first());
    if let Some(name) = names.into_iter().find(|name| !attributes.contains(&name.as_str())) {
        return Err(value::undeclared(name));
    }
    check_count(&leaves)?;
    Ok(Condition::All(clauses.demands))
}

pub(super) fn check_count<T>(leaves: &[T]) -> Result<(), String> {
    if leaves.len() > MAX_CONDITIONS { Err(format!("there are at most {MAX_CONDITIONS} conditions")) } else { Ok(()) }
}

/// Two paths of which one is the other, or leads to it. `DynamoDB` refuses an update of both.
pub(super) fn overlap<'a>(paths: &[&'a [String]]) -> Option<[&'a [String]; 2]> {
    let pairs =
        paths.iter().enumerate().flat_map(|(index, one)| paths[index + 1..].iter().map(move |other| [*one, *other]));
    pairs.into_iter().find(|[one, other]| one.starts_with(other) || other.starts_with(one))
}
