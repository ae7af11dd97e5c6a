//! What an edit asks of an item: the clauses to send, and which of them the item surely does not meet.
//!
//! Where it is not sure how `DynamoDB` compares two values, `DynamoDB` decides.

use super::bounds::{before, narrowed, whole};
use super::builder::{Bands, Edit, overlap};
use crate::condition::{Clauses, Demanded};
use crate::format::item::{Attributes, value_at};
use crate::format::layout::Layout;
use crate::format::number::{MAX_DIGITS, Number};
use crate::format::{AsKind, AttributeValue, Unwritable, value};
use crate::version::ItemVersion;
use std::mem;
use std::ops::RangeInclusive;

/// What keeps a live item from taking an edit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unmet {
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
}

/// What the protocol asks of an edit. It is a trait, so that the methods of [`Edit`] are those for its users.
pub trait Resolve {
    /// The clauses to send if the item is as in `attributes`: with the bands that follow from them. Without
    /// attributes, the last band of each number is guessed.
    ///
    /// # Errors
    /// [`Unwritable::InvalidRecord`]: no item of this table takes such an edit.
    fn resolve(&self, layout: &Layout, attributes: Option<&Attributes>) -> Result<Clauses, Unwritable>;

    /// What surely keeps this item from taking the edit. `passed`: the row has left the window. With `None`, the edit may
    /// need another band than the guessed one, and some values only `DynamoDB` compares.
    fn unmet(&self, item: &Attributes, passed: bool) -> Option<Unmet>;

    /// Why `DynamoDB` refused the edit of this item, although nothing surely refuses it. `None` if there may be several
    /// reasons.
    fn reason(&self, item: &Attributes) -> Option<Unmet>;

    /// Whether it adds to a number.
    fn adds(&self) -> bool;

    /// The state in which its user has seen the item.
    fn seen_at(&self) -> Option<ItemVersion>;
}

impl Resolve for Edit {
    fn resolve(&self, layout: &Layout, attributes: Option<&Attributes>) -> Result<Clauses, Unwritable> {
        let invalid = |reason: String| Unwritable::InvalidRecord { reason };
        if let Some(reason) = &self.invalid {
            return Err(invalid(reason.clone()));
        }
        let Clauses { numbers, set, remove, stamps, demands, .. } = &self.clauses;
        let paths = numbers.iter().map(|number| &number.path).chain(set.iter().map(|(path, _)| path)).chain(remove);
        let tops = paths.chain(demands.iter().map(|(path, _)| path)).filter_map(|path| path.first());
        let named = tops.chain(stamps.iter().map(|(name, _)| name));
        for name in named.chain(self.bands.iter().map(|bands| &bands.attribute)) {
            if !layout.attributes.contains(&name.as_str()) {
                return Err(invalid(value::undeclared(name)));
            }
        }
        let has_order = |value: &AttributeValue| {
            matches!(value, AttributeValue::S(_) | AttributeValue::N(_) | AttributeValue::B(_))
        };
        for (path, demanded) in demands {
            if let Demanded::AtMostIfThere(most) = demanded
                && !has_order(most)
            {
                return Err(invalid(format!("{}: only numbers, texts and bytes have an order", path.join("."))));
            }
        }
        if numbers.is_empty() && set.is_empty() && remove.is_empty() {
            return Err(invalid("the edit changes nothing".to_owned()));
        }
        let alone = stamps.iter().map(|(name, _)| name).chain(self.bands.iter().map(|bands| &bands.attribute));
        let written = numbers.iter().map(|number| &number.path).chain(set.iter().map(|(path, _)| path)).chain(remove);
        let written: Vec<_> = written.map(Vec::as_slice).chain(alone.map(std::slice::from_ref)).collect();
        if let Some([one, other]) = overlap(&written) {
            let [one, other] = [one, other].map(|path| path.join("."));
            return Err(invalid(format!("the edit changes {one} and {other}, and may change each value only once")));
        }
        let mut clauses = self.clauses.clone();
        clauses.is_to_change &= !self.adds();
        for (path, value) in &mut clauses.set {
            *value = as_stored(attributes, path, value).map_err(invalid)?;
        }
        for Bands { number, attribute, ranges } in &self.bands {
            let by = self.number(*number).unwrap_or_default();
            let current = attributes.and_then(|item| number_at(item, &numbers[*number].path));
            let next = current.and_then(|current| sum(current, by));
            let too_long =
                || invalid(format!("{attribute} has bands whose numbers need more than {MAX_DIGITS} digits"));
            // DynamoDB refuses bounds that no number keeps.
            let mut possible = Vec::with_capacity(ranges.len());
            for (range, value) in ranges {
                let ends = before(*range.start(), by).zip(before(*range.end(), by)).ok_or_else(too_long)?;
                let narrowed = narrowed(&clauses.numbers[*number], ends.0, ends.1);
                possible.extend(narrowed.map(|narrowed| (range, value, narrowed)));
            }
            let guessed =
                possible.iter().position(|(range, ..)| contains(range, next)).or(possible.len().checked_sub(1));
            let Some((_, value, narrowed)) = guessed.map(|guessed| possible.swap_remove(guessed)) else {
                return Err(invalid(format!("{attribute} has no band with a number within the bounds of the add")));
            };
            clauses.numbers[*number] = narrowed;
            clauses.stamps.push((attribute.clone(), value.clone()));
        }
        let set = clauses.set.iter().map(|(path, value)| (path.as_slice(), value));
        for (path, value) in set.chain(clauses.stamps.iter().map(|(name, value)| (std::slice::from_ref(name), value))) {
            if let [name] = path
                && layout.expires_at == Some(name)
            {
                value::check_end(name, value).map_err(invalid)?;
            }
        }
        Ok(clauses)
    }

    fn unmet(&self, item: &Attributes, passed: bool) -> Option<Unmet> {
        let sure = self.doubts(item).into_iter().find_map(|(unmet, is_sure)| is_sure.then_some(unmet));
        sure.or(passed.then_some(Unmet::WindowPassed))
    }

    fn reason(&self, item: &Attributes) -> Option<Unmet> {
        let mut doubts = self.doubts(item).into_iter().map(|(unmet, _)| unmet);
        let first = doubts.next()?;
        doubts.all(|unmet| unmet == first).then_some(first)
    }

    fn adds(&self) -> bool {
        !self.clauses.numbers.is_empty()
    }

    fn seen_at(&self) -> Option<ItemVersion> {
        self.seen
    }
}

impl Edit {
    /// Why the item may refuse the edit, each with whether it surely does. An item without doubts surely takes it.
    fn doubts(&self, item: &Attributes) -> Vec<(Unmet, bool)> {
        let Clauses { numbers, set, remove, demands, is_to_change, .. } = &self.clauses;
        let mut held = Vec::new();
        for (index, number) in numbers.iter().enumerate() {
            let current = number_at(item, &number.path);
            held.push((Unmet::NotANumber, Some(current.is_some())));
            let Some(current) = current else { continue };
            let next = self.number(index).and_then(|by| sum(current, by));
            let is_in_bounds = whole(&number.low).zip(whole(&number.high)).and_then(|(low, high)| {
                let (floor, ceiling) = floor_and_ceiling(current)?;
                Some(low <= floor && ceiling <= high)
            });
            held.push((Unmet::OutOfRange, is_in_bounds));
            for bands in self.bands.iter().filter(|bands| bands.number == index) {
                held.push((Unmet::OutOfRange, Some(bands.ranges.iter().any(|(range, _)| contains(range, next)))));
            }
        }
        held.extend(
            demands.iter().map(|(path, demanded)| (Unmet::NotAsDemanded, is_met(demanded, value_at(item, path)))),
        );
        if *is_to_change && !self.adds() {
            let sets = set.iter().map(|(path, value)| match as_stored(Some(item), path, value) {
                Ok(value) => value_at(item, path).map_or(Some(false), |old| is_equal(old, &value)),
                Err(_) => Some(false),
            });
            let removes = remove.iter().map(|path| Some(value_at(item, path).is_none()));
            let stays: Vec<_> = sets.chain(removes).collect();
            let surely_changes = stays.contains(&Some(false));
            held.push((Unmet::Unchanged, (surely_changes || !stays.contains(&None)).then_some(surely_changes)));
        }
        held.into_iter().filter(|(_, held)| *held != Some(true)).map(|(unmet, held)| (unmet, held.is_some())).collect()
    }
}

/// Whether a demand is met. `None` if only `DynamoDB` tells.
fn is_met(demanded: &Demanded, value: Option<&AttributeValue>) -> Option<bool> {
    match (demanded, value) {
        (Demanded::Missing, value) => Some(value.is_none()),
        (Demanded::There, value) => Some(value.is_some()),
        (Demanded::Map, value) => Some(value.is_some_and(|value| value.as_m().is_some())),
        (Demanded::Equal(_), None) => Some(false),
        (Demanded::AtMostIfThere(_), None) => Some(true),
        (Demanded::Equal(demanded), Some(value)) => is_equal(demanded, value),
        (Demanded::AtMostIfThere(AttributeValue::S(most)), Some(AttributeValue::S(text))) => Some(text <= most),
        (Demanded::AtMostIfThere(AttributeValue::N(most)), Some(AttributeValue::N(number))) => {
            Some(whole(number)? <= whole(most)?)
        }
        (Demanded::AtMostIfThere(most), Some(value)) => {
            (mem::discriminant(most) != mem::discriminant(value)).then_some(false)
        }
    }
}

/// Whether `DynamoDB` takes two values for equal. `None` if only it tells: of two numbers in other notations, two sets in
/// another order, and lists and maps with such values.
fn is_equal(one: &AttributeValue, other: &AttributeValue) -> Option<bool> {
    match (one, other) {
        _ if one == other => Some(true),
        _ if mem::discriminant(one) != mem::discriminant(other) => Some(false),
        (AttributeValue::S(_) | AttributeValue::B(_) | AttributeValue::Bool(_), _) => Some(false),
        (AttributeValue::N(one), AttributeValue::N(other)) => Some(whole(one)? == whole(other)?),
        _ => None,
    }
}

/// Whether a number between these whole ones is in the range.
fn contains(range: &RangeInclusive<i64>, number: Option<(i128, i128)>) -> bool {
    number.is_some_and(|(floor, ceiling)| i128::from(*range.start()) <= floor && ceiling <= i128::from(*range.end()))
}

/// The nearest whole numbers to a sum, if they are no larger than an `i128`.
fn sum(current: &str, by: i128) -> Option<(i128, i128)> {
    let (floor, ceiling) = floor_and_ceiling(current)?;
    Some((floor.checked_add(by)?, ceiling.checked_add(by)?))
}

fn floor_and_ceiling(text: &str) -> Option<(i128, i128)> {
    Number::parse(text)?.floor_and_ceiling()
}

/// The value in the form of the one that it replaces: a list in place of a set is a set.
fn as_stored(item: Option<&Attributes>, path: &[String], value: &AttributeValue) -> Result<AttributeValue, String> {
    let mut value = value.clone();
    match item.and_then(|item| value_at(item, path)) {
        Some(stored) => value::keep_sets(&path.join("."), stored, &mut value).map(|()| value),
        None => Ok(value),
    }
}

fn number_at<'a>(item: &'a Attributes, path: &[String]) -> Option<&'a str> {
    value_at(item, path)?.as_n().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::AddedNumber;
    use crate::edit::Bounds;

    const LAYOUT: &Layout = &Layout { attributes: &["n", "state"], ..Layout::of_key("id") };

    fn item(n: i64) -> Attributes {
        [("n", AttributeValue::N(n.to_string())), ("state", AttributeValue::S("open".to_owned()))]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    #[test]
    fn a_number_without_bounds_stays_a_whole_number_of_64_bits() {
        for (current, by, unmet) in [
            (i64::MAX - 1, 1, None),
            (i64::MAX, 1, Some(Unmet::OutOfRange)),
            (i64::MIN + 1, -1, None),
            (i64::MIN, -1, Some(Unmet::OutOfRange)),
        ] {
            assert_eq!(Edit::add("n", by, ..).unmet(&item(current), false), unmet, "{current} {by}");
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
            ("-1e38", "1e+38", "1e+38"),
            ("+1e100", "-1e+100", "-1e+100"),
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
            let resolved = add.resolve(LAYOUT, Some(&huge(current))).expect("valid").stamps;
            (resolved[0].1.as_s().expect("a text").clone(), add.unmet(&huge(current), false))
        };
        assert_eq!(state(&nines), ("above".to_owned(), Some(Unmet::OutOfRange)), "the sum is more than an i128 holds");
        assert_eq!(state("-90000000000000000000000000000000000005"), ("below".to_owned(), None));
        assert!(Edit::add("n", number("9e37"), 0..=1).invalid.is_none());
        assert!(Edit::add("n", number(&nines), -1..=0).invalid.is_some(), "-1 less {nines} has 39 digits");
    }

    #[test]
    fn a_band_in_which_the_bounds_leave_no_number_is_not_guessed() {
        let take = |bands: &[(RangeInclusive<i64>, &str)]| {
            let bounds = Bounds::Before(Number::from(-3), Number::from(9));
            let edit = Edit::add("n", -6, bounds).bands("state", "n", bands.iter().cloned());
            edit.resolve(LAYOUT, None).map(|clauses| clauses.stamps[0].1.clone())
        };
        let (low, high) = ((-9..=3, "low"), (4..=99, "high"));
        assert_eq!(take(&[low, high.clone()]).expect("a band"), AttributeValue::S("low".to_owned()));
        assert!(take(&[high]).expect_err("none").to_string().contains("has no band with a number within"));
    }

    #[test]
    fn an_edit_that_changes_a_value_twice_is_refused_by_the_names_of_both_paths() {
        let twice = |edit: Edit| edit.resolve(LAYOUT, None).expect_err("twice").to_string();
        for (edit, named) in [
            (Edit::set(["state", "x"], &1).and_remove("state"), "state.x and state"),
            (Edit::add("n", 1, ..).bands("n", "n", [(0..=9, 1)]), "n and n"),
        ] {
            assert!(twice(edit.clone()).contains(&format!("the edit changes {named},")), "{edit:?}");
        }
        let members = Edit::set(["state", "x"], &1).and_set(["state", "y"], &2).and_remove(["state", "xy"]);
        assert!(members.resolve(LAYOUT, None).is_ok());
    }

    #[test]
    fn a_result_outside_all_bands_of_its_number_is_out_of_range() {
        let add = Edit::add("n", 1, ..).bands("state", "n", [(0..=9, "open"), (20..=29, "shut")]);
        for (current, unmet) in [
            (8, None),
            (9, Some(Unmet::OutOfRange)),
            (19, None),
            (29, Some(Unmet::OutOfRange)),
            (-2, Some(Unmet::OutOfRange)),
        ] {
            assert_eq!(add.unmet(&item(current), false), unmet, "{current}");
        }
    }

    #[test]
    fn an_item_takes_an_edit_that_changes_it_if_its_values_are_as_demanded_and_the_window_has_not_passed() {
        let (add, set) = (Edit::add("n", 1, ..), Edit::set(["map", "old"], &7));
        let map = AttributeValue::M([("old".to_owned(), AttributeValue::N("6".to_owned()))].into());
        let item: Attributes = item(1).into_iter().chain([("map".to_owned(), map)]).collect();
        for (edit, unmet) in [
            (add.clone().only_if("state", &"open"), None),
            (add.clone().only_if("state", &"shut"), Some(Unmet::NotAsDemanded)),
            (add.clone().only_if("state", &"open").only_without("state"), Some(Unmet::NotAsDemanded)),
            (add.clone().only_without("other").only_with("state"), None),
            (add.clone().only_with("other"), Some(Unmet::NotAsDemanded)),
            (add.clone().only_if_at_most("state", &"open"), None),
            (add.clone().only_if_at_most("state", &"opem"), Some(Unmet::NotAsDemanded)),
            (add.clone().only_if_at_most("other", &"opem"), None),
            (add.clone().only_if_at_most("n", &"1"), Some(Unmet::NotAsDemanded)),
            (add.clone().only_if_at_most("n", &0), Some(Unmet::NotAsDemanded)),
            (add.clone().only_if_at_most("n", &1), None),
            (add.clone().only_if_at_most("n", &0.5), None), // only DynamoDB compares it
            (add.clone().only_if_changed(), None),
            (set.clone().only_if_changed(), None),
            (set.clone().and_set(["map", "old"], &6), None),
            (Edit::set(["map", "old"], &6), None),
            (Edit::set(["map", "old"], &6).only_if_changed().stamp("state", &"shut"), Some(Unmet::Unchanged)),
            (Edit::set(["map", "old"], &"6").only_if_changed(), None),
            (Edit::default().and_remove("other").only_if_changed(), Some(Unmet::Unchanged)),
            (Edit::default().and_remove("other").and_remove(["map", "old"]).only_if_changed(), None),
            (Edit::set(["state", "x"], &6), Some(Unmet::NotAsDemanded)),
            (Edit::default().and_remove(["other", "x"]), Some(Unmet::NotAsDemanded)),
        ] {
            assert_eq!(edit.unmet(&item, false), unmet, "{edit:?}");
            let passed = unmet.or(Some(Unmet::WindowPassed));
            assert_eq!(edit.unmet(&item, true), passed, "{edit:?}, too late");
        }
        assert_eq!(Edit::add("other", 1, ..).unmet(&item, true), Some(Unmet::NotANumber));
    }

    /// The reason after a refusal: the only one that is sure, or the only one.
    #[test]
    fn values_that_only_dynamodb_compares_refuse_nothing_here_and_are_the_reason_if_there_is_no_other() {
        use AttributeValue::{B, N, Ns, Ss};
        let (text, half) = (str::to_owned, Number::parse("0.5").expect("a number"));
        let (set, list) = (Ss(vec![text("a"), text("b")]), AttributeValue::L(vec![N(text("1.5"))]));
        let bytes = |byte: u8| B(Vec::from([byte]));
        let stored = [("n", N(text("1.50"))), ("set", set.clone()), ("list", list.clone()), ("bytes", bytes(7))];
        let item: Attributes = stored.map(|(name, value)| (text(name), value)).into();
        let demand = |name: &str, demanded| {
            let mut edit = Edit::set("state", &"shut");
            edit.clauses.demands.push((vec![text(name)], demanded));
            edit
        };
        let (equal, most) = (Demanded::Equal, Demanded::AtMostIfThere);
        let other = |value| Edit::default().and_set_attribute("n", value).only_if_changed();
        for (edit, unmet, reason) in [
            (demand("n", equal(N(text("1.5")))), None, Some(Unmet::NotAsDemanded)),
            (demand("n", equal(N(text("1.50")))), None, None),
            (demand("n", equal(bytes(1))), Some(Unmet::NotAsDemanded), Some(Unmet::NotAsDemanded)),
            (demand("n", most(N(text("1.4")))), None, Some(Unmet::NotAsDemanded)),
            (demand("set", equal(Ss(vec![text("b"), text("a")]))), None, Some(Unmet::NotAsDemanded)),
            (demand("set", equal(Ns(vec![text("1")]))), Some(Unmet::NotAsDemanded), Some(Unmet::NotAsDemanded)),
            (demand("set", equal(set)), None, None),
            (demand("list", equal(AttributeValue::L(vec![N(text("1.50"))]))), None, Some(Unmet::NotAsDemanded)),
            (demand("list", equal(list)), None, None),
            (demand("bytes", equal(bytes(8))), Some(Unmet::NotAsDemanded), Some(Unmet::NotAsDemanded)),
            (demand("bytes", most(bytes(8))), None, Some(Unmet::NotAsDemanded)),
            (demand("bytes", most(N(text("8")))), Some(Unmet::NotAsDemanded), Some(Unmet::NotAsDemanded)),
            (other(N(text("1.5"))), None, Some(Unmet::Unchanged)),
            (other(N(text("1.5"))).only_if("list", &[1.25]), None, None),
            (other(bytes(7)), None, None),
            (Edit::add("n", 1, 2..=3), None, None),
            (Edit::add("n", 1, 0..=2), Some(Unmet::OutOfRange), Some(Unmet::OutOfRange)),
            (Edit::add("n", 1, Bounds::Before(half.clone(), half)), None, Some(Unmet::OutOfRange)),
        ] {
            assert_eq!((edit.unmet(&item, false), edit.reason(&item)), (unmet, reason), "{edit:?}");
        }
        let bands = Edit::add("n", 1, ..).bands("state", "n", [(0..=3, "few"), (4..=9, "many")]);
        let resolved = bands.resolve(LAYOUT, Some(&item)).expect("valid").stamps;
        assert_eq!(resolved[0].1.as_s().map(String::as_str), Some("few"), "2.5 lies between 0 and 3");
    }

    #[test]
    fn an_edit_names_only_attributes_of_its_record_and_no_empty_path() {
        let resolve = |edit: Edit| edit.resolve(LAYOUT, None).map(drop).map_err(|error| error.to_string());
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
        let set = || Edit::set("n", &1);
        for edit in [set().only_if_at_most("state", &None::<i64>), set().only_if_at_most("state", &[1])] {
            assert!(resolve(edit).expect_err("no order").contains("have an order"));
        }
        let low = [(0..=9, "low")];
        resolve(Edit::add("n", 1, ..).bands("state", "x", low.clone())).expect_err("bands of no number");
        let half = Number::parse("0.5").expect("a number");
        resolve(Edit::add("n", half, ..).bands("state", "n", low)).expect_err("bands of a decimal");
        assert_eq!(resolve(Edit::set(["state", "x"], &1)), Ok(()));
    }

    #[test]
    fn an_edit_knows_the_state_it_was_given_and_demands_a_difference_only_if_it_adds_nothing() {
        let version = crate::Version::new(3).expect("small");
        let at = ItemVersion { version, incarnation: crate::Incarnation::from_bytes([7; 8]) };
        let set = Edit::set("state", &"done").only_if_changed();
        assert_eq!((set.clone().seen(at).seen_at(), set.seen_at()), (Some(at), None));
        assert!(set.resolve(LAYOUT, None).expect("valid").is_to_change);
        assert!(!set.and_add("n", 1, ..).resolve(LAYOUT, None).expect("valid").is_to_change);
    }

    #[test]
    fn numbers_in_two_notations_are_equal_and_other_values_of_one_kind_only_if_they_are_the_same() {
        let n = |text: &str| AttributeValue::N(text.to_owned());
        let s = |text: &str| AttributeValue::S(text.to_owned());
        for (one, other, equal) in [
            (n("100"), n("1e2"), Some(true)),
            (n("100"), n("101"), Some(false)),
            (n("1.5"), n("1.50"), None),
            (s("a"), s("b"), Some(false)),
            (s("1"), n("1"), Some(false)),
            (AttributeValue::L(vec![n("1")]), AttributeValue::L(vec![n("2")]), None),
        ] {
            assert_eq!(is_equal(&one, &other), equal, "{one:?} {other:?}");
        }
    }
}
