//! [`Decimal`]: exact numbers with one text per value, 38 digits, and the range of `DynamoDB`.

use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use fencepost_core::InvalidValue;
use fencepost_core::format::number::{Digits, Number};
use serde_json::Value;
use std::cmp::Ordering;
use std::fmt;

/// A decimal number as a `DynamoDB` item keeps it, exactly.
///
/// Each value has one text (`Display`). So `1.0`, `1` and `1e0` are equal in every way once they are parsed. The text
/// is plain if at most 38 digits stand on either side of the point (`0.5`, `-1200`). Otherwise it is scientific
/// (`1e+100`, `1.5e-40`). Both are JSON.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Decimal(Digits);

impl Decimal {
    /// Parses a number in the notation of JSON, or in any notation that an engine returns (`1E+2`).
    ///
    /// Takes time and memory in proportion to the text, with any exponent.
    ///
    /// # Errors
    /// [`InvalidValue`]. Nothing is ever rounded.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        Digits::parse(text).map(Decimal)
    }

    /// Returns the exact sum, which may have more digits than a [`Decimal`].
    #[must_use]
    pub fn plus(&self, other: &Decimal) -> Exact {
        Exact(self.widen() + other.widen())
    }

    /// Returns the exact difference, which may have more digits than a [`Decimal`].
    #[must_use]
    pub fn minus(&self, other: &Decimal) -> Exact {
        Exact(self.widen() - other.widen())
    }

    /// The number of digits after the point, in plain notation.
    #[must_use]
    pub fn decimals(&self) -> u64 {
        u64::try_from(-self.0.exponent).unwrap_or(0)
    }

    /// The value as an arbitrary-precision number. It is small, because digits and exponent are bounded.
    fn widen(&self) -> BigDecimal {
        let digits: BigInt = self.0.significant.parse().unwrap_or_default();
        BigDecimal::new(if self.0.negative { -digits } else { digits }, -self.0.exponent)
    }
}

impl From<&Decimal> for Number {
    fn from(decimal: &Decimal) -> Self {
        Number::from(decimal.0.clone())
    }
}

impl From<i64> for Decimal {
    fn from(number: i64) -> Self {
        Decimal::parse(&number.to_string()).unwrap_or(Decimal(Digits::ZERO))
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        self.widen().cmp(&other.widen())
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The exact result of an addition. An item may not be able to keep it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exact(BigDecimal);

impl Exact {
    /// Compares the result with a number.
    #[must_use]
    pub fn compare(&self, other: &Decimal) -> Ordering {
        self.0.cmp(&other.widen())
    }

    /// Converts the result to a number that an item keeps.
    ///
    /// # Errors
    /// [`InvalidValue::OutOfRange`]: the result has more than 38 digits, or is outside the range.
    pub fn to_decimal(&self) -> Result<Decimal, InvalidValue> {
        let (digits, scale) = self.0.as_bigint_and_scale();
        Decimal::parse(&format!("{digits}e{}", -scale))
    }
}

/// Converts the number to a JSON value.
///
/// # Panics
/// Never: every text of a [`Decimal`] is JSON.
#[must_use]
pub fn value_of(number: &Decimal) -> Value {
    Value::Number(number.to_string().parse().expect("the text of a Decimal is JSON"))
}
