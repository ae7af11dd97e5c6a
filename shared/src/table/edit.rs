//! [`Edit`]: a change that needs no version, so that many writers do not conflict.

use super::bounds::{Bounds, before, negative};
use crate::error::Failure;
use crate::layout::Layout;
use crate::number::{MAX_DIGITS, Number};
use crate::protocol::condition::{AddedNumber, Clauses, Demanded};
use crate::protocol::item::Attributes;
use crate::version::{ItemVersion, Versioned};
use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use std::ops::RangeInclusive;

/// A change that depends on the old item only through conditions: it adds to numbers within bounds, sets values and
/// removes them.
///
/// An edit demands no exact version. So edits of one item do not conflict with each other.
///
/// ```
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
/// [`Table::update_with_retry`](crate::Table::update_with_retry).
#[derive(Clone, Default, Debug)]
pub struct Edit {
    clauses: Clauses,
    bands: Vec<Bands>,
    seen: Option<ItemVersion>,
    invalid: Option<String>,
}

/// An attribute with a value that follows from the range of a number.
#[derive(Clone, Debug)]
struct Bands {
    number: usize,
    attribute: String,
    ranges: Vec<(RangeInclusive<i64>, AttributeValue)>,
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

/// An applied edit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edited<T> {
    /// The version made by the edit.
    pub at: ItemVersion,
    /// The item as the answer shows it. It may show later changes too. `None` if it was deleted.
    pub item: Option<Versioned<T>>,
}

impl Edit {
    /// Adds `by` to the number at `path`, if the result keeps its [`Bounds`]: a range such as `0..=100` or `0..` for
    /// the result, or `..` for none of its own.
    #[must_use]
    pub fn add(path: impl Into<AttributePath>, by: impl Into<Number>, bounds: impl Into<Bounds>) -> Self {
        Edit::default().and_add(path, by, bounds)
    }

    /// Sets the value at `path`. A path into a map demands that the map is there.
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
        self.clauses.numbers.push(AddedNumber { path, by: by.to_string(), low, high });
        self
    }

    /// Sets one more value.
    #[must_use]
    pub fn and_set(mut self, path: impl Into<AttributePath>, value: &impl Serialize) -> Self {
        let path = self.path(path);
        if let Some(value) = self.encode(&path, value) {
            self = self.and_set_attribute(path, value);
        }
        self
    }

    /// Sets one more value, in the form of `DynamoDB`.
    #[must_use]
    pub fn and_set_attribute(mut self, path: impl Into<AttributePath>, value: AttributeValue) -> Self {
        let path = self.path(path);
        self.demand_map(&path);
        self.clauses.set.push((path, value));
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

    /// Demands this value at `path`.
    #[must_use]
    pub fn only_if(self, path: impl Into<AttributePath>, value: &impl Serialize) -> Self {
        self.demand_value(path, value, Demanded::Equal)
    }

    /// Demands at most this value at `path`, or none. Numbers are compared as numbers, texts byte by byte.
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
        self.clauses.is_to_change = self.clauses.numbers.is_empty();
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

    /// Names a state in which the item was seen. The edit then needs no read.
    #[must_use]
    pub fn seen(mut self, at: ItemVersion) -> Self {
        self.seen = Some(at);
        self
    }

    pub(super) fn seen_at(&self) -> Option<ItemVersion> {
        self.seen
    }

    fn encode(&mut self, path: &[String], value: &impl Serialize) -> Option<AttributeValue> {
        let encoded = serde_dynamo::to_attribute_value(value);
        encoded.map_err(|error| self.invalid = Some(format!("{}: {error}", path.join(".")))).ok()
    }

    fn number(&self, number: usize) -> Option<i128> {
        whole(&self.clauses.numbers[number].by)
    }

    /// The clauses to send if the item is as in `attributes`: with the bands that follow from them. Without
    /// attributes, the last band of each number is guessed.
    pub(crate) fn resolve(&self, layout: &Layout, attributes: Option<&Attributes>) -> Result<Clauses, Failure> {
        let invalid = |reason: String| Failure::InvalidRecord { reason };
        if let Some(reason) = &self.invalid {
            return Err(invalid(reason.clone()));
        }
        let Clauses { numbers, set, remove, stamps, demands, .. } = &self.clauses;
        let paths = numbers.iter().map(|number| &number.path).chain(set.iter().map(|(path, _)| path)).chain(remove);
        let tops = paths.chain(demands.iter().map(|(path, _)| path)).filter_map(|path| path.first());
        let named = tops.chain(stamps.iter().map(|(name, _)| name));
        for name in named.chain(self.bands.iter().map(|bands| &bands.attribute)) {
            if !layout.attributes.contains(&name.as_str()) {
                return Err(invalid(format!("{name} is not among the attributes that its Record declares")));
            }
        }
        let mut clauses = self.clauses.clone();
        for Bands { number, attribute, ranges } in &self.bands {
            let by = self.number(*number).unwrap_or_default();
            let current = attributes.and_then(|item| number_at(item, &numbers[*number].path));
            let next = current.and_then(whole).and_then(|current| current.checked_add(by));
            let is_next = |(range, _): &&(RangeInclusive<i64>, AttributeValue)| contains(range, next);
            let Some((range, value)) = ranges.iter().find(is_next).or(ranges.last()) else {
                return Err(invalid(format!("{attribute} has no bands")));
            };
            let (Some(low), Some(high)) = (before(*range.start(), by), before(*range.end(), by)) else {
                return Err(invalid(format!("{attribute} has bands whose numbers need more than {MAX_DIGITS} digits")));
            };
            narrow(&mut clauses.numbers[*number], low, high);
            clauses.stamps.push((attribute.clone(), value.clone()));
        }
        Ok(clauses)
    }
}

/// How a live item stands to an edit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stand {
    /// The item has no number there.
    NotANumber,
    /// The result would be outside the bounds.
    OutOfRange,
    /// A value is not as demanded.
    NotAsDemanded,
    /// The edit would change nothing.
    Unchanged,
    /// The row has left the window.
    WindowPassed,
    /// It takes the edit, perhaps with another band than the guessed one. Whether a number with decimals is within the
    /// bounds, only `DynamoDB` tells.
    Takes,
}

impl Edit {
    /// How an item stands to this edit, as far as can be told here. `passed`: the row has left the window.
    pub(crate) fn stand(&self, item: &Attributes, passed: bool) -> Stand {
        let Clauses { numbers, set, remove, demands, is_to_change, .. } = &self.clauses;
        for (index, number) in numbers.iter().enumerate() {
            let Some(current) = number_at(item, &number.path) else { return Stand::NotANumber };
            let [current, low, high] = [current, &number.low, &number.high].map(whole);
            let (Some(current), Some(low), Some(high)) = (current, low, high) else { continue };
            let next = current.checked_add(self.number(index).unwrap_or_default());
            let mut bands = self.bands.iter().filter(|bands| bands.number == index);
            let has_bands = bands.all(|bands| bands.ranges.iter().any(|(range, _)| contains(range, next)));
            if !(low..=high).contains(&current) || !has_bands {
                return Stand::OutOfRange;
            }
        }
        let would_change = set.iter().any(|(path, value)| value_at(item, path) != Some(value))
            || remove.iter().any(|path| value_at(item, path).is_some());
        if !demands.iter().all(|(path, demanded)| is_met(demanded, value_at(item, path))) {
            Stand::NotAsDemanded
        } else if *is_to_change && !would_change {
            Stand::Unchanged
        } else if passed {
            Stand::WindowPassed
        } else {
            Stand::Takes
        }
    }
}

fn is_met(demanded: &Demanded, value: Option<&AttributeValue>) -> bool {
    match (demanded, value) {
        (Demanded::Equal(demanded), value) => value == Some(demanded),
        (Demanded::AtMostIfThere(AttributeValue::S(most)), Some(AttributeValue::S(text))) => text <= most,
        // Only `DynamoDB` compares numbers.
        (Demanded::AtMostIfThere(AttributeValue::N(_)), Some(AttributeValue::N(_))) => true,
        (Demanded::AtMostIfThere(_), value) => value.is_none(),
        (Demanded::There, value) => value.is_some(),
        (Demanded::Missing, value) => value.is_none(),
        (Demanded::Map, value) => value.is_some_and(AttributeValue::is_m),
    }
}

/// Whether a number is in the range. A number too large for an `i128` is not.
fn contains(range: &RangeInclusive<i64>, number: Option<i128>) -> bool {
    number.and_then(|number| i64::try_from(number).ok()).is_some_and(|number| range.contains(&number))
}

fn whole(text: &str) -> Option<i128> {
    Number::parse(text)?.to_whole()
}

fn narrow(number: &mut AddedNumber, low: i128, high: i128) {
    let [low_before, high_before] = [&number.low, &number.high].map(|bound| whole(bound));
    number.low = low_before.map_or(low, |before| before.max(low)).to_string();
    number.high = high_before.map_or(high, |before| before.min(high)).to_string();
}

fn number_at<'a>(item: &'a Attributes, path: &[String]) -> Option<&'a str> {
    value_at(item, path)?.as_n().ok().map(String::as_str)
}

fn value_at<'a>(item: &'a Attributes, path: &[String]) -> Option<&'a AttributeValue> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(item.get(first)?, |value, name| value.as_m().ok()?.get(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Record, Table};
    use serde_json::json;

    #[derive(Serialize, serde::Deserialize)]
    struct Counter {
        n: i64,
        state: String,
    }

    impl Record for Counter {
        const PARTITION_KEY: &'static str = "id";
        const ATTRIBUTES: &'static [&'static str] = &["n", "state"];
    }

    fn item(n: i64) -> Attributes {
        [("n", AttributeValue::N(n.to_string())), ("state", AttributeValue::S("open".to_owned()))]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    #[test]
    fn a_number_without_bounds_stays_a_whole_number_of_64_bits() {
        for (current, by, stand) in [
            (i64::MAX - 1, 1, Stand::Takes),
            (i64::MAX, 1, Stand::OutOfRange),
            (i64::MIN + 1, -1, Stand::Takes),
            (i64::MIN, -1, Stand::OutOfRange),
        ] {
            assert_eq!(Edit::add("n", by, ..).stand(&item(current), false), stand, "{current} {by}");
        }
    }

    #[test]
    fn the_bounds_of_any_amount_keep_the_result_within_64_bits() {
        let number = |text: &str| Number::parse(text).expect("a number");
        for (by, low, high) in [
            ("1e3", "-9223372036854776808", "9223372036854774807"),
            ("1e30", "-1000000000009223372036854775808", "-999999999990776627963145224193"),
            ("0.5", "-9223372036854775808", "9223372036854775806"),
            ("-0.5", "-9223372036854775807", "9223372036854775807"),
            ("1e-100", "-9223372036854775808", "9223372036854775806"),
            // No bound next to these has only 38 digits.
            (
                "99999999999999999999999999999999999999",
                "-99999999999999999999999999999999999999",
                "-99999999999999999999999999999999999999",
            ),
            ("-1e38", "1e38", "1e38"),
            ("+1e100", "-1e100", "-1e100"),
        ] {
            let add = Edit::add("n", number(by), ..);
            let AddedNumber { low: least, high: most, .. } = &add.clauses.numbers[0];
            assert_eq!((least.as_str(), most.as_str()), (low, high), "{by}");
            for bound in [low, high] {
                assert!(Number::parse(bound).is_some(), "{bound} has too many digits");
            }
        }
    }

    #[test]
    fn numbers_of_38_digits_are_added_without_overflow() {
        let number = |text: &str| Number::parse(text).expect("a number");
        let huge = |text: &str| Attributes::from([("n".to_owned(), AttributeValue::N(text.to_owned()))]);
        let nines = "9".repeat(38);
        let add =
            Edit::add("n", number("9e37"), ..).bands("state", "n", [(i64::MIN..=-1, "below"), (0..=i64::MAX, "above")]);
        let state = |current: &str| {
            let resolved = add.resolve(Table::<Counter>::LAYOUT, Some(&huge(current))).expect("valid").stamps;
            (resolved[0].1.as_s().expect("a text").clone(), add.stand(&huge(current), false))
        };
        assert_eq!(state(&nines), ("above".to_owned(), Stand::OutOfRange), "the sum is more than an i128 holds");
        assert_eq!(state("-90000000000000000000000000000000000005"), ("below".to_owned(), Stand::Takes));
        assert!(Edit::add("n", number("9e37"), 0..=1).invalid.is_none());
        assert!(Edit::add("n", number(&nines), -1..=0).invalid.is_some(), "-1 less {nines} has 39 digits");
    }

    #[test]
    fn a_result_outside_all_bands_of_its_number_is_out_of_range() {
        let add = Edit::add("n", 1, ..).bands("state", "n", [(0..=9, "open"), (20..=29, "shut")]);
        for (current, stand) in [
            (8, Stand::Takes),
            (9, Stand::OutOfRange),
            (19, Stand::Takes),
            (29, Stand::OutOfRange),
            (-2, Stand::OutOfRange),
        ] {
            assert_eq!(add.stand(&item(current), false), stand, "{current}");
        }
    }

    #[test]
    fn an_item_takes_an_edit_that_changes_it_if_its_values_are_as_demanded_and_the_window_has_not_passed() {
        let (add, set) = (Edit::add("n", 1, ..), Edit::set(["map", "old"], &7));
        let item: Attributes =
            serde_dynamo::to_item(json!({"n": 1, "state": "open", "map": {"old": 6}})).expect("an item");
        for (edit, stand) in [
            (add.clone().only_if("state", &"open"), Stand::Takes),
            (add.clone().only_if("state", &"shut"), Stand::NotAsDemanded),
            (add.clone().only_if("state", &"open").only_without("state"), Stand::NotAsDemanded),
            (add.clone().only_without("other").only_with("state"), Stand::Takes),
            (add.clone().only_with("other"), Stand::NotAsDemanded),
            (add.clone().only_if_at_most("state", &"open"), Stand::Takes),
            (add.clone().only_if_at_most("state", &"opem"), Stand::NotAsDemanded),
            (add.clone().only_if_at_most("other", &"opem"), Stand::Takes),
            (add.clone().only_if_at_most("n", &"1"), Stand::NotAsDemanded),
            (add.clone().only_if_at_most("n", &0), Stand::Takes), // only DynamoDB compares numbers
            (add.clone().only_if_changed(), Stand::Takes),
            (set.clone().only_if_changed(), Stand::Takes),
            (set.clone().and_set(["map", "old"], &6), Stand::Takes),
            (Edit::set(["map", "old"], &6), Stand::Takes),
            (Edit::set(["map", "old"], &6).only_if_changed().stamp("state", &"shut"), Stand::Unchanged),
            (Edit::set(["map", "old"], &"6").only_if_changed(), Stand::Takes),
            (Edit::default().and_remove("other").only_if_changed(), Stand::Unchanged),
            (Edit::default().and_remove("other").and_remove(["map", "old"]).only_if_changed(), Stand::Takes),
            (Edit::set(["state", "x"], &6), Stand::NotAsDemanded),
            (Edit::default().and_remove(["other", "x"]), Stand::NotAsDemanded),
        ] {
            assert_eq!(edit.stand(&item, false), stand, "{edit:?}");
            let passed = if stand == Stand::Takes { Stand::WindowPassed } else { stand };
            assert_eq!(edit.stand(&item, true), passed, "{edit:?}, too late");
        }
        assert_eq!(Edit::add("other", 1, ..).stand(&item, true), Stand::NotANumber);
    }

    #[test]
    fn an_edit_names_only_attributes_of_its_record_and_no_empty_path() {
        let resolve =
            |edit: Edit| edit.resolve(Table::<Counter>::LAYOUT, None).map(drop).map_err(|error| error.to_string());
        let none: [&str; 0] = [];
        for edit in [
            Edit::set("x", &1),
            Edit::default().and_remove(["x", "y"]),
            Edit::set("n", &1).stamp("x", &1),
            Edit::set("n", &1).only_with("x"),
            Edit::add("x", 1, ..),
        ] {
            assert!(resolve(edit.clone()).expect_err("not declared").contains("x is not among"), "{edit:?}");
        }
        for edit in [Edit::set(none, &1), Edit::add(none, 1, ..), Edit::set("n", &1).only_with(none)] {
            assert!(resolve(edit).expect_err("no path").contains("path of a value is empty"));
        }
        assert_eq!(resolve(Edit::set(["state", "x"], &1)), Ok(()));
    }
}
