//! [`Add`]: a change of numbers that needs no version, so that many writers do not conflict.

use super::bounds::{Bounds, before, negative};
use crate::error::Failure;
use crate::layout::Layout;
use crate::number::{MAX_DIGITS, Number};
use crate::protocol::condition::{AddedNumber, Addition};
use crate::protocol::item::Attributes;
use crate::version::{ItemVersion, Versioned};
use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use std::ops::RangeInclusive;

/// A change of one or more numbers of an item by fixed amounts, within bounds.
///
/// The outcome depends on the old numbers only through the bounds. So an add demands no exact version, and adds to one
/// item do not conflict with each other. The field calls this *escrow* (O'Neil 1986) or a *bounded counter*.
///
/// ```
/// use fencepost::Add;
///
/// // Takes 3 from the stock, but never below 0. The status follows from the new stock.
/// let take = Add::to("stock", -3, 0..=1_000_000).bands(
///     "status",
///     "stock",
///     [(0..=0, "out_of_stock"), (1..=5, "low_stock"), (6..=1_000_000, "in_stock")],
/// );
/// # drop(take);
/// ```
///
/// Sums are those of `DynamoDB`: exact up to 38 significant digits. If the numbers of an item may need more digits, use
/// [`Table::update_with_retry`](crate::Table::update_with_retry).
#[derive(Clone, Debug)]
pub struct Add {
    addition: Addition,
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

/// The path of names to a number, from the top of the item.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddPath(Vec<String>);

impl From<&str> for AddPath {
    /// A top-level attribute. The name is literal: a dot in it separates nothing.
    fn from(name: &str) -> Self {
        AddPath(vec![name.to_owned()])
    }
}

impl From<&String> for AddPath {
    fn from(name: &String) -> Self {
        AddPath::from(name.as_str())
    }
}

impl<const N: usize> From<[&str; N]> for AddPath {
    /// A member of a map: the attribute, then the members, as in `["state", "brightness"]`.
    fn from(names: [&str; N]) -> Self {
        AddPath(names.map(str::to_owned).into())
    }
}

/// An applied add.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Added<T> {
    /// The version made by the add.
    pub at: ItemVersion,
    /// The item as the answer shows it. It may show later changes too. `None` if it was deleted.
    pub item: Option<Versioned<T>>,
}

impl Add {
    /// Adds `by` to the number at `path`, if the result keeps its [`Bounds`]: a range such as `0..=100` or `0..` for
    /// the result, or `..` for none of its own.
    #[must_use]
    pub fn to(path: impl Into<AddPath>, by: impl Into<Number>, bounds: impl Into<Bounds>) -> Self {
        let add = Add { addition: Addition::default(), bands: Vec::new(), seen: None, invalid: None };
        add.and_to(path, by, bounds)
    }

    /// Adds to one more number of the same item. All numbers change, or none.
    #[must_use]
    pub fn and_to(mut self, path: impl Into<AddPath>, by: impl Into<Number>, bounds: impl Into<Bounds>) -> Self {
        let (path, by) = (path.into().0, by.into());
        if path.is_empty() {
            self.invalid = Some("the path of a number is empty".to_owned());
        }
        let [low, high] = bounds.into().of_current(&by).unwrap_or_else(|| {
            self.invalid = Some("only a whole amount has whole bounds: use Bounds::Before".to_owned());
            [negative(&by), negative(&by)]
        });
        self.addition.numbers.push(AddedNumber { path, by: by.to_string(), low, high });
        self
    }

    /// Sets an attribute by the range of the result of the number at `path`. The path leads to one of the numbers of
    /// this add; its amount must be whole. Ranges must not overlap. A result outside all of them is refused.
    ///
    /// The library guesses the range from the number seen last. A wrong guess is refused and costs one more request.
    #[must_use]
    pub fn bands(
        mut self,
        attribute: &str,
        path: impl Into<AddPath>,
        bands: impl IntoIterator<Item = (RangeInclusive<i64>, impl Serialize)>,
    ) -> Self {
        let path = path.into().0;
        let mut encoded = Vec::new();
        for (range, value) in bands.into_iter().filter(|(range, _)| !range.is_empty()) {
            if let Some(value) = self.encode(attribute, &value) {
                encoded.push((range, value));
            }
        }
        match self.addition.numbers.iter().position(|number| number.path == path) {
            Some(number) if self.number(number).is_some() => {
                self.bands.push(Bands { number, attribute: attribute.to_owned(), ranges: encoded });
            }
            Some(_) => self.invalid = Some("only a whole amount has bands".to_owned()),
            None => self.invalid = Some(format!("the bands of {attribute} are those of a number that is not added to")),
        }
        self
    }

    /// Sets an attribute to a value, without a demand on its old value.
    #[must_use]
    pub fn set(mut self, attribute: &str, value: &impl Serialize) -> Self {
        if let Some(value) = self.encode(attribute, value) {
            self.addition.set.push((attribute.to_owned(), value));
        }
        self
    }

    /// Demands that an attribute has this value.
    #[must_use]
    pub fn only_if(mut self, attribute: &str, value: &impl Serialize) -> Self {
        if let Some(value) = self.encode(attribute, value) {
            self.addition.equal.push((attribute.to_owned(), value));
        }
        self
    }

    /// Demands that an attribute is missing.
    #[must_use]
    pub fn only_without(mut self, attribute: &str) -> Self {
        self.addition.missing.push(attribute.to_owned());
        self
    }

    /// Names a state in which the item was seen. The add then needs no read.
    #[must_use]
    pub fn seen(mut self, at: ItemVersion) -> Self {
        self.seen = Some(at);
        self
    }

    pub(super) fn seen_at(&self) -> Option<ItemVersion> {
        self.seen
    }

    fn encode(&mut self, attribute: &str, value: &impl Serialize) -> Option<AttributeValue> {
        let encoded = serde_dynamo::to_attribute_value(value);
        encoded.map_err(|error| self.invalid = Some(format!("{attribute}: {error}"))).ok()
    }

    fn number(&self, number: usize) -> Option<i128> {
        whole(&self.addition.numbers[number].by)
    }

    /// The addition to send if the item is as in `attributes`: with the bands that follow from them. Without
    /// attributes, the last band of each number is guessed.
    pub(crate) fn resolve(&self, layout: &Layout, attributes: Option<&Attributes>) -> Result<Addition, Failure> {
        let invalid = |reason: String| Failure::InvalidRecord { reason };
        if let Some(reason) = &self.invalid {
            return Err(invalid(reason.clone()));
        }
        let Addition { numbers, set, equal, missing } = &self.addition;
        let tops = numbers.iter().map(|number| &number.path[0]);
        let named = tops.chain(set.iter().map(|(name, _)| name)).chain(self.bands.iter().map(|bands| &bands.attribute));
        let named = named.chain(equal.iter().map(|(name, _)| name)).chain(missing);
        for name in named {
            if !layout.attributes.contains(&name.as_str()) {
                return Err(invalid(format!("{name} is not among the attributes that its Record declares")));
            }
        }
        let mut addition = self.addition.clone();
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
            narrow(&mut addition.numbers[*number], low, high);
            addition.set.push((attribute.clone(), value.clone()));
        }
        Ok(addition)
    }
}

/// How a live item stands to an add.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stand {
    /// The item has no number there.
    NotANumber,
    /// The result would be outside the bounds.
    OutOfRange,
    /// The row has left the window.
    WindowPassed,
    /// An attribute is not as demanded.
    NotAsDemanded,
    /// It takes the add, perhaps with another band than the guessed one.
    Takes,
    /// It has a number with decimals. Only `DynamoDB` compares it with the bounds.
    Unclear,
}

impl Add {
    /// How an item stands to this add, as far as can be told here. `passed`: the row has left the window.
    pub(crate) fn stand(&self, item: &Attributes, passed: bool) -> Stand {
        let Addition { numbers, equal, missing, .. } = &self.addition;
        let mut is_clear = true;
        for (index, number) in numbers.iter().enumerate() {
            let Some(current) = number_at(item, &number.path) else { return Stand::NotANumber };
            let [current, low, high] = [current, &number.low, &number.high].map(whole);
            let (Some(current), Some(low), Some(high)) = (current, low, high) else {
                is_clear = false;
                continue;
            };
            let next = current.checked_add(self.number(index).unwrap_or_default());
            let mut bands = self.bands.iter().filter(|bands| bands.number == index);
            let has_bands = bands.all(|bands| bands.ranges.iter().any(|(range, _)| contains(range, next)));
            if !(low..=high).contains(&current) || !has_bands {
                return Stand::OutOfRange;
            }
        }
        let is_kept = |(name, value): &(String, AttributeValue)| item.get(name) == Some(value);
        if passed {
            Stand::WindowPassed
        } else if !equal.iter().all(is_kept) || missing.iter().any(|name| item.contains_key(name)) {
            Stand::NotAsDemanded
        } else if is_clear {
            Stand::Takes
        } else {
            Stand::Unclear
        }
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
    let (first, rest) = path.split_first()?;
    let value = rest.iter().try_fold(item.get(first)?, |value, name| value.as_m().ok()?.get(name))?;
    value.as_n().ok().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Record, Table};

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
            assert_eq!(Add::to("n", by, ..).stand(&item(current), false), stand, "{current} {by}");
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
            let add = Add::to("n", number(by), ..);
            let AddedNumber { low: least, high: most, .. } = &add.addition.numbers[0];
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
            Add::to("n", number("9e37"), ..).bands("state", "n", [(i64::MIN..=-1, "below"), (0..=i64::MAX, "above")]);
        let state = |current: &str| {
            let resolved = add.resolve(Table::<Counter>::LAYOUT, Some(&huge(current))).expect("valid").set;
            (resolved[0].1.as_s().expect("a text").clone(), add.stand(&huge(current), false))
        };
        assert_eq!(state(&nines), ("above".to_owned(), Stand::OutOfRange), "the sum is more than an i128 holds");
        assert_eq!(state("-90000000000000000000000000000000000005"), ("below".to_owned(), Stand::Takes));
        assert!(Add::to("n", number("9e37"), 0..=1).invalid.is_none());
        assert!(Add::to("n", number(&nines), -1..=0).invalid.is_some(), "-1 less {nines} has 39 digits");
    }

    #[test]
    fn a_result_outside_all_bands_of_its_number_is_out_of_range() {
        let add = Add::to("n", 1, ..).bands("state", "n", [(0..=9, "open"), (20..=29, "shut")]);
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
    fn an_item_takes_an_add_if_its_other_attributes_are_as_demanded_and_its_window_has_not_passed() {
        let add = |state: &str| Add::to("n", 1, ..).only_if("state", &state);
        assert_eq!(add("open").stand(&item(1), false), Stand::Takes);
        assert_eq!(add("shut").stand(&item(1), false), Stand::NotAsDemanded);
        assert_eq!(add("open").only_without("state").stand(&item(1), false), Stand::NotAsDemanded);
        assert_eq!(add("open").only_without("other").stand(&item(1), false), Stand::Takes);
        assert_eq!(add("open").stand(&item(1), true), Stand::WindowPassed);
        assert_eq!(Add::to("other", 1, ..).stand(&item(1), true), Stand::NotANumber);
    }
}
