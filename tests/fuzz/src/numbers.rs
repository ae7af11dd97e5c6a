//! `numbers`: two texts, one per line, as numbers, compared with `bigdecimal`.

use bigdecimal::BigDecimal;
use fencepost::json::{Decimal, Exact};
use fencepost::{InvalidValue, Number};
use std::cmp::Ordering;

/// The significant digits, and the exponents of the leading one, that `DynamoDB` keeps.
const DIGITS: u64 = 38;
const EXPONENTS: std::ops::RangeInclusive<i64> = -130..=125;

pub fn play(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut lines = text.split('\n');
    let [first, second] = [(); 2].map(|()| checked(lines.next().unwrap_or_default()));
    let (Some(a), Some(b)) = (first, second) else { return };
    let (exact_a, exact_b) = (exact(&a), exact(&b));
    assert_eq!(a.cmp(&b), exact_a.cmp(&exact_b));
    assert_eq!(a == b, exact_a == exact_b);
    check_exact(&a.plus(&b), &(&exact_a + &exact_b), &a);
    check_exact(&a.minus(&b), &(&exact_a - &exact_b), &b);
}

fn check_exact(ours: &Exact, theirs: &BigDecimal, other: &Decimal) {
    assert_eq!(ours.compare(other), theirs.cmp(&exact(other)));
    match ours.to_decimal() {
        Ok(decimal) => assert_eq!(exact(&decimal), *theirs),
        Err(error) => {
            assert!(matches!(error, InvalidValue::OutOfRange(_)), "{error:?}");
            assert!(!is_kept(theirs), "{theirs} fits");
        }
    }
}

/// The number in this text, after a comparison with the reading of `bigdecimal`.
fn checked(text: &str) -> Option<Decimal> {
    let theirs = is_number(text).then(|| text.parse::<BigDecimal>().ok()).flatten();
    match Decimal::parse(text) {
        Ok(number) => {
            match theirs {
                Some(theirs) => assert_eq!(exact(&number), theirs, "{text:?}"),
                None => assert_eq!(number.to_string(), "0", "{text:?}: any exponent leaves 0 what it is"),
            }
            check_text(&number);
            Some(number)
        }
        Err(InvalidValue::OutOfRange(_)) => {
            assert!(theirs.is_none_or(|theirs| !is_kept(&theirs)), "{text:?} fits");
            None
        }
        Err(InvalidValue::Malformed(_)) => {
            let is_json = text.trim() == text && serde_json::from_str::<serde_json::Number>(text).is_ok();
            assert!(!is_json, "{text:?} is a number of JSON");
            None
        }
    }
}

/// Whether `bigdecimal` may read the text: it has our notation, without an exponent that would take all memory.
fn is_number(text: &str) -> bool {
    let exponent = text.split_once(['e', 'E']).map_or(Ok(0), |(_, exponent)| exponent.parse::<i64>());
    text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
        && exponent.is_ok_and(|exponent| exponent.abs() < 10_000)
}

fn check_text(number: &Decimal) {
    let text = number.to_string();
    assert_eq!(Decimal::parse(&text).as_ref(), Ok(number), "{text}");
    assert_eq!(serde_json::from_str::<serde_json::Number>(&text).map(|json| json.to_string()).ok(), Some(text.clone()));
    assert_eq!(Number::parse(&text).map(|number| number.to_string()).as_deref(), Some(text.as_str()));
    assert_eq!(Number::from(number).as_str(), text);
    assert_eq!(number.cmp(number), Ordering::Equal);
    assert!(text.len() <= 80, "{text}");
    assert!(is_kept(&exact(number)), "{text}");
    let decimals =
        text.split_once('.').filter(|_| !text.contains('e')).map_or(0, |(_, decimals)| decimals.len() as u64);
    assert!(text.contains('e') || number.decimals() == decimals, "{text}");
}

fn exact(number: &Decimal) -> BigDecimal {
    number.to_string().parse().expect("the text of a number is one")
}

fn is_kept(number: &BigDecimal) -> bool {
    let (digits, scale) = number.normalized().as_bigint_and_exponent();
    let digits = digits.magnitude().to_string();
    let leading = i64::try_from(digits.len()).expect("few digits") - 1 - scale;
    digits == "0" || (digits.len() as u64 <= DIGITS && EXPONENTS.contains(&leading))
}
