//! [`Bounds`]: the demands of an add on its number.

use crate::condition::AddedNumber;
use crate::format::number::{Number, compare};
use std::cmp::Ordering;
use std::ops::{RangeFrom, RangeFull, RangeInclusive, RangeToInclusive};

/// The largest whole number of 38 digits.
const LARGEST: i128 = 10_i128.pow(38) - 1;

/// The range demanded of the number by an add.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Bounds {
    /// The result is within the range of the field's type. Where that has none, such as for decimals, the result lies
    /// between [`i64::MIN`] and [`i64::MAX`], and keeps 1 away from both if the amount is not whole.
    Any,
    /// The result is within this range. The amount must be whole.
    Result(RangeInclusive<i64>),
    /// The result is not below this number. Its upper bound is that of [`Bounds::Any`]. The amount must be whole.
    AtLeast(i64),
    /// The current number, before the add, is between these two, both included.
    Before(Number, Number),
}

impl Bounds {
    /// Whether the lower bound is above the upper one.
    pub(super) fn are_reversed(&self) -> bool {
        match self {
            Bounds::Any | Bounds::AtLeast(_) => false,
            Bounds::Result(range) => range.is_empty(),
            Bounds::Before(low, high) => compare(low.as_str(), high.as_str()) == Ordering::Greater,
        }
    }

    /// The bounds of the current number if `by` is added to it, and the result is one of these whole numbers, if any.
    /// `None` if they are not whole numbers of at most 38 digits.
    pub(super) fn of_current(self, by: &Number, range: Option<(i128, i128)>) -> Option<[String; 2]> {
        let own = match self {
            Bounds::Any if range.is_some() => None,
            Bounds::Any => {
                let bounds = by.floor_and_ceiling().and_then(|(floor, ceiling)| {
                    Some([before(i64::MIN, floor)?.to_string(), before(i64::MAX, ceiling)?.to_string()])
                });
                // The numbers before so large an amount have 38 digits too. One of them is sure to fit: it makes 0.
                Some(bounds.unwrap_or_else(|| [negative(by), negative(by)]))
            }
            Bounds::Result(range) => {
                let by = by.to_whole()?;
                Some([before(*range.start(), by)?.to_string(), before(*range.end(), by)?.to_string()])
            }
            Bounds::AtLeast(least) => {
                let (by, most) = (by.to_whole()?, range.map_or(i64::MAX.into(), |(_, most)| most));
                Some([before(least, by)?.to_string(), most.saturating_sub(by).min(LARGEST).to_string()])
            }
            Bounds::Before(low, high) => Some([low.to_string(), high.to_string()]),
        };
        let Some((least, most)) = range else { return own };
        let by = by.to_whole()?;
        // Beyond 38 digits, no bound is left. If no number is within the rest, the first is greater than the last.
        let (low, high) = (least.saturating_sub(by).max(-LARGEST), most.saturating_sub(by).min(LARGEST));
        Some(match own {
            Some([own_low, own_high]) => {
                [narrower(own_low, low, Ordering::Less), narrower(own_high, high, Ordering::Greater)]
            }
            None => [low.to_string(), high.to_string()],
        })
    }
}

/// The bound, or the other one if the bound is on this side of it.
fn narrower(own: String, other: i128, side: Ordering) -> String {
    let other = other.to_string();
    if compare(&own, &other) == side { other } else { own }
}

impl From<RangeInclusive<i64>> for Bounds {
    fn from(range: RangeInclusive<i64>) -> Self {
        Bounds::Result(range)
    }
}

impl From<RangeFrom<i64>> for Bounds {
    fn from(range: RangeFrom<i64>) -> Self {
        Bounds::AtLeast(range.start)
    }
}

impl From<RangeToInclusive<i64>> for Bounds {
    fn from(range: RangeToInclusive<i64>) -> Self {
        Bounds::Result(i64::MIN..=range.end)
    }
}

impl From<RangeFull> for Bounds {
    fn from(_: RangeFull) -> Self {
        Bounds::Any
    }
}

/// The number to which `by` is added with this result. `None` if it has more digits than `DynamoDB` keeps.
pub(super) fn before(result: i64, by: i128) -> Option<i128> {
    let before = i128::from(result).checked_sub(by)?;
    (before.unsigned_abs() < 10_u128.pow(38)).then_some(before)
}

/// The number of a text, if it is whole.
pub(super) fn whole(text: &str) -> Option<i128> {
    Number::parse(text)?.to_whole()
}

pub(super) fn negative(number: &Number) -> String {
    let text = number.as_str();
    text.strip_prefix('-').map_or_else(|| format!("-{text}"), str::to_owned)
}

/// The number with the narrower of both bounds at either end. `None` if no number is within all of them.
pub(super) fn narrowed(number: &AddedNumber, low: i128, high: i128) -> Option<AddedNumber> {
    let low = narrower(number.low.clone(), low, Ordering::Less);
    let high = narrower(number.high.clone(), high, Ordering::Greater);
    (compare(&low, &high) != Ordering::Greater).then(|| AddedNumber { low, high, ..number.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_narrows_the_bounds_of_its_number_and_never_widens_them() {
        let bounds = |low: &str, high: &str| {
            let (path, by) = (vec!["n".to_owned()], "1".to_owned());
            let number = AddedNumber { path, by, low: low.to_owned(), high: high.to_owned() };
            narrowed(&number, 1, 10).map(|number| (number.low, number.high))
        };
        let is = |low: &str, high: &str| Some((low.to_owned(), high.to_owned()));
        assert_eq!(bounds("-5", "50.5"), is("1", "10"));
        assert_eq!(bounds("1.5", "9.5"), is("1.5", "9.5"));
        assert_eq!(bounds("0.5", "10.5"), is("1", "10"));
        assert_eq!(bounds("-1e60", "1e60"), is("1", "10"));
        assert_eq!([bounds("1e60", "1e61"), bounds("10.5", "20"), bounds("9", "8.5")], [None, None, None]);
    }
}
