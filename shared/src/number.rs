//! [`Number`]: a number as `DynamoDB` stores it.

use std::fmt;

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
        (is_number && significant <= 38).then(|| Number(text.to_owned()))
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

    /// The number, if it is whole and its text has no fraction and no exponent.
    pub(crate) fn to_whole(&self) -> Option<i128> {
        self.0.parse().ok()
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
