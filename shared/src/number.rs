//! [`Number`]: a number as `DynamoDB` stores it.

use std::fmt;

pub(crate) const MAX_DIGITS: usize = 38;

/// A number in the notation of `DynamoDB`: exact decimal text with up to 38 significant digits.
///
/// ```
/// use fencepost::Number;
///
/// assert_eq!(Number::from(-3).as_str(), "-3");
/// assert_eq!(Number::parse("0.1").map(|number| number.to_string()), Some("0.1".to_owned()));
/// assert_eq!(Number::parse("one"), None);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Number(String);

impl Number {
    /// Reads decimal text such as `-1.5` or `2e3`. `None` if it is not a number or has more than 38 significant digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let digits = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let significant = [whole, fraction].concat().trim_matches('0').len();
        let is_number = all_digits(whole) && all_digits(fraction) && exponent.parse::<i16>().is_ok();
        (is_number && significant <= MAX_DIGITS).then(|| Number(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A decimal as its type prints it.
    #[cfg(feature = "json")]
    pub(crate) fn of_decimal(text: String) -> Self {
        Number(text)
    }

    /// The number, if it is whole and has at most 38 digits.
    pub(crate) fn to_whole(&self) -> Option<i128> {
        self.floor_and_ceiling().filter(|(floor, ceiling)| floor == ceiling).map(|(floor, _)| floor)
    }

    /// The nearest whole numbers: the largest not above this one, the smallest not below it. `None` beyond 38 digits.
    pub(crate) fn floor_and_ceiling(&self) -> Option<(i128, i128)> {
        let (mantissa, exponent) = self.0.split_once(['e', 'E']).unwrap_or((&self.0, "0"));
        let (is_negative, digits) = match mantissa.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let digits = [whole, fraction].concat();
        let significant = digits.trim_end_matches('0');
        if significant.is_empty() {
            return Some((0, 0));
        }
        // The number is 0.DIGITS times ten to the power of this.
        let point = i64::try_from(whole.len()).ok()? + exponent.parse::<i64>().ok()?;
        let point = usize::try_from(point).unwrap_or(0);
        let zeros = point.saturating_sub(significant.len());
        let is_whole = point >= significant.len();
        let magnitude = significant[..point.min(significant.len())].trim_start_matches('0').to_owned();
        if magnitude.len() + zeros > MAX_DIGITS {
            return None;
        }
        let magnitude: i128 = format!("0{magnitude}{}", "0".repeat(zeros)).parse().ok()?;
        let next = magnitude + i128::from(!is_whole);
        Some(if is_negative { (-next, -magnitude) } else { (magnitude, next) })
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Self {
        Number(number.to_string())
    }
}

impl From<i32> for Number {
    fn from(number: i32) -> Self {
        Number(number.to_string())
    }
}

impl From<u32> for Number {
    fn from(number: u32) -> Self {
        Number(number.to_string())
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_whole_or_between_two_whole_numbers_in_any_notation() {
        let most = 10_i128.pow(38) - 1;
        for (text, expected) in [
            ("0", Some((0, 0))),
            ("-0.00e7", Some((0, 0))),
            ("+7", Some((7, 7))),
            ("-007.0", Some((-7, -7))),
            ("1e3", Some((1000, 1000))),
            ("1.25E+2", Some((125, 125))),
            ("12500e-2", Some((125, 125))),
            ("1.25e1", Some((12, 13))),
            ("-1.25e1", Some((-13, -12))),
            ("0.1", Some((0, 1))),
            ("-0.1", Some((-1, 0))),
            ("1e-130", Some((0, 1))),
            ("-12e-3", Some((-1, 0))),
            ("99999999999999999999999999999999999999", Some((most, most))),
            ("-9999999999999999999999999999999999999.9", Some((-(most + 1) / 10, -(most + 1) / 10 + 1))),
            ("1e38", None),
            ("-1e125", None),
        ] {
            let number = Number::parse(text).expect("a number");
            assert_eq!(number.floor_and_ceiling(), expected, "{text}");
            let whole = expected.filter(|(floor, ceiling)| floor == ceiling);
            assert_eq!(number.to_whole(), whole.map(|(floor, _)| floor), "{text}");
        }
    }
}
