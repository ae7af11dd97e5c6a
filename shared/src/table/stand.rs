//! [`Edit::resolve`]: the clauses of an edit for an item. [`Stand`]: how the item stands to the edit.

use super::bounds::before;
use super::edit::{Bands, Edit};
use crate::error::Failure;
use crate::layout::Layout;
use crate::number::{MAX_DIGITS, Number};
use crate::protocol::condition::{AddedNumber, Clauses, Demanded};
use crate::protocol::item::Attributes;
use aws_sdk_dynamodb::types::AttributeValue;
use std::ops::RangeInclusive;

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
    pub(super) fn number(&self, number: usize) -> Option<i128> {
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
        if numbers.is_empty() && set.is_empty() && remove.is_empty() {
            return Err(invalid("the edit changes nothing".to_owned()));
        }
        let mut clauses = self.clauses.clone();
        clauses.is_to_change &= !self.adds();
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
        let would_change = self.adds()
            || set.iter().any(|(path, value)| value_at(item, path) != Some(value))
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
        (Demanded::AtMostIfThere(_) | Demanded::Missing, value) => value.is_none(),
        (Demanded::There, value) => value.is_some(),
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
    use serde::Serialize;

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
        let map = AttributeValue::M([("old".to_owned(), AttributeValue::N("6".to_owned()))].into());
        let item: Attributes = item(1).into_iter().chain([("map".to_owned(), map)]).collect();
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
