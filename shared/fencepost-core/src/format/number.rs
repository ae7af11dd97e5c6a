//! [`Number`]: a number as `DynamoDB` stores it.

use super::InvalidValue;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// The most significant digits of a number.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html>
pub const MAX_DIGITS: usize = 38;
/// The valid exponents of the leading digit: 1E-130 to 9.99…9E+125.
const EXPONENTS: std::ops::RangeInclusive<i64> = -130..=125;

pub const MALFORMED: InvalidValue = InvalidValue::Malformed(Cow::Borrowed("not a number"));

/// The text is a number, but has more than 38 significant digits, or is too large or too small.
pub const OUT_OF_RANGE: InvalidValue = InvalidValue::OutOfRange(Cow::Borrowed(
    "a number has at most 38 significant digits and lies between 1e-130 and 9.99e+125, or is 0",
));

/// The value of a number: its digits times ten to the power of the exponent. `Display` gives each value one text.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Digits {
    pub negative: bool,
    /// The digits, without zeros at either end. Empty for zero.
    pub significant: String,
    pub exponent: i64,
}

/// A number in the notation of `DynamoDB`: exact decimal text with up to 38 significant digits.
///
/// ```
/// # extern crate fencepost_core as fencepost;
/// use fencepost::Number;
///
/// assert_eq!(Number::from(-3).as_str(), "-3");
/// assert_eq!(Number::parse("0.1").map(|number| number.to_string()), Some("0.1".to_owned()));
/// assert_eq!(Number::parse("one"), None);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Number(String);

impl Number {
    /// Reads decimal text such as `-1.5` or `2e3`. `None` if it is not a number, has more than 38 significant digits, or
    /// lies outside the range of `DynamoDB`: 1e-130 to 9.99e+125, their negatives, and 0.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Digits::parse(text).ok().map(|number| Number(number.to_string()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The number, if it is whole and has at most 38 digits.
    pub fn to_whole(&self) -> Option<i128> {
        self.floor_and_ceiling().filter(|(floor, ceiling)| floor == ceiling).map(|(floor, _)| floor)
    }

    /// The nearest whole numbers: the largest not above this one, the smallest not below it. `None` beyond 38 digits.
    pub fn floor_and_ceiling(&self) -> Option<(i128, i128)> {
        let Digits { negative, significant, exponent } = Digits::parse(&self.0).ok()?;
        let zeros = usize::try_from(exponent).unwrap_or(0);
        let whole = usize::try_from(length(&significant) + exponent.min(0)).unwrap_or(0);
        if whole + zeros > MAX_DIGITS {
            return None;
        }
        let magnitude: i128 = format!("0{}{}", &significant[..whole], "0".repeat(zeros)).parse().ok()?;
        let next = magnitude + i128::from(exponent < 0);
        Some(if negative { (-next, -magnitude) } else { (magnitude, next) })
    }
}

impl FromStr for Number {
    type Err = InvalidValue;

    /// See [`Number::parse`].
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        Digits::parse(text).map(Number::from)
    }
}

impl From<Digits> for Number {
    fn from(digits: Digits) -> Self {
        Number(digits.to_string())
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

impl Digits {
    pub const ZERO: Digits = Digits { negative: false, significant: String::new(), exponent: 0 };

    /// Takes time and memory in proportion to the text, with any exponent. Nothing is ever rounded.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        let (negative, unsigned) = split_sign(text);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(MALFORMED);
        }
        let without_tail = all.trim_end_matches('0');
        let digits = without_tail.trim_start_matches('0');
        if digits.is_empty() {
            return Ok(Digits::ZERO);
        }
        let exponent = exponent.saturating_add(length(&all) - length(without_tail)).saturating_sub(length(fraction));
        let leading = exponent.saturating_add(length(digits) - 1);
        if digits.len() > MAX_DIGITS || !EXPONENTS.contains(&leading) {
            return Err(OUT_OF_RANGE);
        }
        Ok(Digits { negative, significant: digits.to_owned(), exponent })
    }
}

/// Compares two texts of numbers by their values, exactly. A text that is no number counts as 0.
pub fn compare(one: &str, other: &str) -> Ordering {
    let [one, other] = [one, other].map(|text| Digits::parse(text).unwrap_or(Digits::ZERO));
    let sign = |number: &Digits| match (number.significant.is_empty(), number.negative) {
        (true, _) => 0,
        (false, true) => -1,
        (false, false) => 1,
    };
    let magnitude = |number: &Digits| (length(&number.significant) + number.exponent, number.significant.clone());
    let signs = sign(&one).cmp(&sign(&other));
    let [less, more] = if one.negative { [&other, &one] } else { [&one, &other] };
    signs.then_with(|| magnitude(less).cmp(&magnitude(more)))
}

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.significant.is_empty() {
            return f.write_str("0");
        }
        if self.negative {
            f.write_str("-")?;
        }
        let most = i64::try_from(MAX_DIGITS).unwrap_or(i64::MAX);
        let before_point = length(&self.significant) + self.exponent;
        let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
        if before_point > most || -self.exponent > most {
            let (first, rest) = self.significant.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            write!(f, "{first}{point}{rest}e{:+}", before_point - 1)
        } else if self.exponent >= 0 {
            write!(f, "{}{}", self.significant, zeros(self.exponent))
        } else if let Ok(at @ 1..) = usize::try_from(before_point) {
            let (whole, fraction) = self.significant.split_at(at);
            write!(f, "{whole}.{fraction}")
        } else {
            write!(f, "0.{}{}", zeros(-before_point), self.significant)
        }
    }
}

fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Parses an exponent. An exponent with too many digits for an `i64` becomes one far out of range.
fn parse_exponent(text: &str) -> Result<i64, InvalidValue> {
    let (negative, digits) = split_sign(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(MALFORMED);
    }
    let magnitude = digits.parse().unwrap_or(i64::MAX);
    Ok(if negative { -magnitude } else { magnitude })
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

/// Whether this is the one text of a number that is not scientific. Most stored numbers are.
pub fn is_plain(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "1"));
    let is_one_text = (whole == "0" || !whole.starts_with('0')) && !fraction.ends_with('0');
    let is_short = !whole.is_empty() && !fraction.is_empty() && whole.len() + fraction.len() <= MAX_DIGITS;
    let are_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    text == "0" || is_short && is_one_text && are_digits(whole) && are_digits(fraction) && digits != "0"
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
    fn numbers_are_compared_by_value_whatever_their_texts() {
        let ascending =
            ["-1e60", "-10", "-9.5", "-9", "-1e-9", "0", "1e-130", "0.5", "9", "9.25", "9.5", "10", "9e37", "1e125"];
        for (index, one) in ascending.iter().enumerate() {
            for (at, other) in ascending.iter().enumerate() {
                assert_eq!(compare(one, other), index.cmp(&at), "{one} {other}");
            }
        }
        assert_eq!((compare("10", "1e1"), compare("-0", "0.0")), (Ordering::Equal, Ordering::Equal));
    }

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

    /// Most stored numbers are in this form, and are not parsed.
    #[test]
    fn a_number_is_plain_if_it_is_its_own_text_without_an_exponent() {
        let (longest, nines) = ("9".repeat(37), "0.".to_owned() + &"9".repeat(37));
        for text in ["0", "7", "-7", "10", "-10.5", "0.1", "-0.001", "10.01", &longest, &nines] {
            assert!(is_plain(text), "{text}");
        }
        for text in
            ["", "-", "-0", "+1", "01", "-01", "00", "1.0", "1.", ".5", "-.5", "0.0", "1.50", "1e1", "a", "1.a", "1a"]
        {
            assert!(!is_plain(text), "{text}");
        }
        assert!(
            !is_plain(&format!("1{longest}")) && !is_plain(&format!("{longest}.12")) && !is_plain(&format!("{nines}9"))
        );
    }

    #[test]
    fn a_number_has_one_text_and_what_is_none_is_refused() {
        let (large, small) = (format!("1{}", "0".repeat(37)), format!("0.{}1", "0".repeat(37)));
        for (text, one) in [
            ("-007.50", "-7.5"),
            ("1E+2", "100"),
            ("-0e9", "0"),
            ("1e37", &large),
            ("1e38", "1e+38"),
            ("1e-38", &small),
            ("12e-39", "1.2e-38"),
            ("-125e38", "-1.25e+40"),
        ] {
            assert_eq!(Digits::parse(text).expect("a number").to_string(), one, "{text}");
        }
        for text in ["", ".", "-", "1.2.3", "1e", "1e+", "1ex", "e1", "1e1.5", "NaN", "--1", "1 "] {
            assert_eq!(Digits::parse(text), Err(MALFORMED), "{text}");
        }
        for text in ["1e126", "1e-131", "1e99999999999999999999", &"1".repeat(39)] {
            assert_eq!(Digits::parse(text), Err(OUT_OF_RANGE), "{text}");
        }
        assert_eq!(MALFORMED.to_string(), "not a number");
    }
}
