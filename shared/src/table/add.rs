//! [`Add`]: a change of numbers that needs no version, so that many writers do not conflict.

use super::record::Record;
use crate::error::Failure;
use crate::number::Number;
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
/// let take = Add::to("stock", -3).within(0..=1_000_000).bands(
///     "status",
///     [(0..=0, "out_of_stock"), (1..=5, "low_stock"), (6..=1_000_000, "in_stock")],
/// );
/// # drop(take);
/// ```
///
/// Sums are those of `DynamoDB`: exact up to 38 significant digits. If the numbers of an item may need more digits than
/// that, use [`Table::update_with_retry`](crate::Table::update_with_retry).
#[derive(Clone, Debug)]
pub struct Add {
    addition: Addition,
    bands: Vec<Bands>,
    seen: Option<ItemVersion>,
    invalid: Option<String>,
}

/// An attribute whose value follows from the range of a number.
#[derive(Clone, Debug)]
struct Bands {
    /// The position of the number among those of the add.
    number: usize,
    attribute: String,
    /// The ranges of the new number, each with its value.
    bands: Vec<(RangeInclusive<i64>, AttributeValue)>,
}

/// The names that lead to a number, from the top of the item.
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

/// An add that was applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Added<T> {
    /// The version that the add made.
    pub at: ItemVersion,
    /// The item as the answer shows it. If an answer was lost, it may show later changes too. `None` if the item was
    /// deleted since.
    pub item: Option<Versioned<T>>,
}

impl Add {
    /// Adds `by` to the number at `path`. Without [`Add::within`], the result is any `i64`.
    #[must_use]
    pub fn to(path: impl Into<AddPath>, by: impl Into<Number>) -> Self {
        let add = Add { addition: Addition::default(), bands: Vec::new(), seen: None, invalid: None };
        add.and_to(path, by)
    }

    /// Adds to one more number of the same item. All numbers change, or none.
    #[must_use]
    pub fn and_to(mut self, path: impl Into<AddPath>, by: impl Into<Number>) -> Self {
        let (path, by) = (path.into().0, by.into());
        if path.is_empty() {
            self.invalid = Some("the path of a number is empty".to_owned());
        }
        let bounds = [i64::MIN, i64::MAX].map(|bound| i128::from(bound) - by.to_whole().unwrap_or_default());
        let [low, high] = bounds.map(|bound| bound.to_string());
        self.addition.numbers.push(AddedNumber { path, by: by.to_string(), low, high });
        self
    }

    /// Demands that the result is within this range. Speaks of the number that was named last, whose amount must be
    /// whole.
    #[must_use]
    pub fn within(mut self, range: RangeInclusive<i64>) -> Self {
        match self.number(self.addition.numbers.len() - 1) {
            Some(by) => self.bound(|bound| i128::from(bound) - by, &range),
            None => self.invalid = Some("only a whole amount has whole bounds: use Add::from_between".to_owned()),
        }
        self
    }

    /// Demands that the current number, before the add, is between these two, both included. Speaks of the number that
    /// was named last.
    #[must_use]
    pub fn from_between(mut self, low: &Number, high: &Number) -> Self {
        if let Some(number) = self.addition.numbers.last_mut() {
            (number.low, number.high) = (low.to_string(), high.to_string());
        }
        self
    }

    /// Sets an attribute by the range in which the result is. Speaks of the number that was named last, which must be
    /// whole. Ranges must not overlap, and a result outside all of them is refused. An empty range is left out.
    ///
    /// The library guesses the range from the number that it saw last. A wrong guess is refused and costs one more
    /// request.
    #[must_use]
    pub fn bands(
        mut self,
        attribute: &str,
        bands: impl IntoIterator<Item = (RangeInclusive<i64>, impl Serialize)>,
    ) -> Self {
        let number = self.addition.numbers.len() - 1;
        let mut encoded = Vec::new();
        for (range, value) in bands.into_iter().filter(|(range, _)| !range.is_empty()) {
            if let Some(value) = self.encode(attribute, &value) {
                encoded.push((range, value));
            }
        }
        if self.number(number).is_none() {
            self.invalid = Some("only a whole amount has bands".to_owned());
        }
        self.bands.push(Bands { number, attribute: attribute.to_owned(), bands: encoded });
        self
    }

    /// Sets an attribute to a value, whatever it was.
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

    /// Names a state in which the item was seen. The add then needs no read, even if this process does not know the
    /// item.
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

    /// The amount that is added to a number, if it is whole.
    fn number(&self, number: usize) -> Option<i128> {
        self.addition.numbers[number].by.parse().ok()
    }

    fn bound(&mut self, before: impl Fn(i64) -> i128, range: &RangeInclusive<i64>) {
        if let Some(number) = self.addition.numbers.last_mut() {
            (number.low, number.high) = (before(*range.start()).to_string(), before(*range.end()).to_string());
        }
    }

    /// What is to be sent if the item is as in `attributes`: with the bands that follow from them. Without attributes,
    /// the last band of each number is guessed.
    ///
    /// # Errors
    /// [`Failure::InvalidRecord`] if the add names attributes that the `Record` does not declare.
    pub(crate) fn resolve<T: Record>(&self, attributes: Option<&Attributes>) -> Result<Addition, Failure> {
        let invalid = |reason: String| Failure::InvalidRecord { reason };
        if let Some(reason) = &self.invalid {
            return Err(invalid(reason.clone()));
        }
        let Addition { numbers, set, equal, missing } = &self.addition;
        let tops = numbers.iter().map(|number| &number.path[0]);
        let named = tops.chain(set.iter().map(|(name, _)| name)).chain(self.bands.iter().map(|bands| &bands.attribute));
        let named = named.chain(equal.iter().map(|(name, _)| name)).chain(missing);
        for name in named {
            if !T::ATTRIBUTES.contains(&name.as_str()) {
                return Err(invalid(format!("{name} is not among the attributes that its Record declares")));
            }
        }
        let mut addition = self.addition.clone();
        for Bands { number, attribute, bands } in &self.bands {
            let by = self.number(*number).unwrap_or_default();
            let current = attributes.and_then(|item| number_at(item, &numbers[*number].path));
            let current: Option<i128> = current.and_then(|current| current.parse().ok());
            let is_next = |(range, _): &&(RangeInclusive<i64>, AttributeValue)| {
                current.is_some_and(|current| contains(range, current + by))
            };
            let Some((range, value)) = bands.iter().find(is_next).or(bands.last()) else {
                return Err(invalid(format!("{attribute} has no bands")));
            };
            let number = &mut addition.numbers[*number];
            narrow(number, i128::from(*range.start()) - by, i128::from(*range.end()) - by);
            addition.set.push((attribute.clone(), value.clone()));
        }
        Ok(addition)
    }
}

/// Why a live item refused an add.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// The item has no number there.
    NotANumber,
    /// The result would be outside the bounds.
    OutOfRange,
    /// The result is in another band than the one that was guessed.
    OtherBand,
    /// More writes were committed since the item was seen than the window allows.
    WindowPassed,
    /// An attribute is not as demanded.
    Demand,
    /// The item shows no reason. Either its numbers are not whole and out of range, or it is a later state than the one
    /// that refused.
    NotShown,
}

impl Add {
    /// Why an item refused this add, which was sent as `sent`. `passed` says that the row has left the window.
    pub(crate) fn why<T: Record>(&self, sent: &Addition, item: &Attributes, passed: bool) -> Why {
        for number in &self.addition.numbers {
            let Some(current) = number_at(item, &number.path) else { return Why::NotANumber };
            let [current, low, high] = [current, &number.low, &number.high].map(|text| text.parse::<i128>().ok());
            if let (Some(current), Some(low), Some(high)) = (current, low, high)
                && !(low..=high).contains(&current)
            {
                return Why::OutOfRange;
            }
        }
        let is_in_a_band = |bands: &Bands| {
            let current = number_at(item, &self.addition.numbers[bands.number].path).and_then(|text| text.parse().ok());
            let by = self.number(bands.number).unwrap_or_default();
            current.is_some_and(|current: i128| bands.bands.iter().any(|(range, _)| contains(range, current + by)))
        };
        if !self.bands.iter().all(is_in_a_band) {
            return Why::OutOfRange;
        }
        let is_kept = |(name, value): &(String, AttributeValue)| item.get(name) == Some(value);
        if passed {
            Why::WindowPassed
        } else if self.resolve::<T>(Some(item)).is_ok_and(|resolved| resolved != *sent) {
            Why::OtherBand
        } else if !sent.equal.iter().all(is_kept) || sent.missing.iter().any(|name| item.contains_key(name)) {
            Why::Demand
        } else {
            Why::NotShown
        }
    }
}

fn contains(range: &RangeInclusive<i64>, number: i128) -> bool {
    (i128::from(*range.start())..=i128::from(*range.end())).contains(&number)
}

/// Narrows the bounds of the current number.
fn narrow(number: &mut AddedNumber, low: i128, high: i128) {
    let [low_before, high_before] = [&number.low, &number.high].map(|bound| bound.parse::<i128>().ok());
    number.low = low_before.map_or(low, |before| before.max(low)).to_string();
    number.high = high_before.map_or(high, |before| before.min(high)).to_string();
}

/// The number at a path, as text. `None` if there is none.
fn number_at<'a>(item: &'a Attributes, path: &[String]) -> Option<&'a str> {
    let (first, rest) = path.split_first()?;
    let value = rest.iter().try_fold(item.get(first)?, |value, name| value.as_m().ok()?.get(name))?;
    value.as_n().ok().map(String::as_str)
}
