//! What an edit asks of an item: the clauses to send, and which of them the item surely does not meet.
//!
//! Where it is not sure how `DynamoDB` compares two values, `DynamoDB` decides.

use super::bounds::{before, narrowed, whole};
use super::builder::{Bands, Choice, RawEdit, check_count, overlap};
use super::compare::{brief, is_equal, is_likely, is_met, words};
use crate::condition::{Clauses, Condition};
use crate::format::item::{Attributes, value_at};
use crate::format::layout::Layout;
use crate::format::number::{MAX_DIGITS, Number};
use crate::format::value::LAST_END;
use crate::format::{AsKind, AttributeValue, Unwritable, value};
use crate::version::ItemVersion;
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

/// What the protocol asks of an edit. It is a trait, so that the methods of [`RawEdit`] are those for its users.
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

    /// The clause that keeps this item from taking the edit, and what the item has there. `None` if there may be several.
    fn refusing_clause(&self, item: &Attributes) -> Option<String>;

    /// Whether it changes every item that takes it, because it adds to a number or appends to a list.
    fn always_changes(&self) -> bool;

    /// The state in which its user has seen the item.
    fn seen_at(&self) -> Option<ItemVersion>;
}

impl Resolve for RawEdit {
    fn resolve(&self, layout: &Layout, attributes: Option<&Attributes>) -> Result<Clauses, Unwritable> {
        let invalid = |reason: String| Unwritable::InvalidRecord { reason };
        if let Some(reason) = &self.invalid {
            return Err(invalid(reason.clone()));
        }
        let Clauses { numbers, stamps, .. } = &self.clauses;
        let mut written = self.written();
        let choices = self.choices.iter().flat_map(|choice| [&choice.when, &choice.otherwise]);
        let leaves: Vec<_> = self.clauses.demands.iter().chain(choices).flat_map(Condition::leaves).collect();
        let demanded = leaves.iter().filter_map(|(path, _)| path.first());
        let tops = written.iter().filter_map(|path| path.first()).chain(demanded);
        let alone: Vec<_> =
            stamps.iter().map(|(name, _)| name).chain(self.bands.iter().map(|bands| &bands.attribute)).collect();
        if let Some(name) = tops.chain(alone.iter().copied()).find(|name| !layout.attributes.contains(&name.as_str())) {
            return Err(invalid(value::undeclared(name)));
        }
        if written.is_empty() && self.clauses.holds.is_empty() {
            return Err(invalid("the edit changes nothing".to_owned()));
        }
        check_count(&leaves).map_err(invalid)?;
        written.extend(alone.into_iter().map(std::slice::from_ref));
        if let Some([one, other]) = overlap(&written) {
            let [one, other] = [one, other].map(|path| path.join("."));
            let twice = if one == other { format!("{one} twice") } else { format!("{one} and {other}") };
            return Err(invalid(format!("the edit changes {twice}, and may change each value only once")));
        }
        let mut clauses = self.clauses.clone();
        clauses.demands.extend(self.of_holds.iter().cloned());
        self.choose(&mut clauses, attributes);
        for (path, value) in &mut clauses.set {
            *value = as_stored(attributes, path, value).map_err(invalid)?;
        }
        for number in
            clauses.numbers.iter_mut().filter(|number| layout.expires_at == number.path.first().map(|name| &**name))
        {
            // A result at which TTL would not look.
            let ends =
                whole(&number.by).and_then(|by| Some((by.checked_neg()?, i128::from(LAST_END).checked_sub(by)?)));
            let narrowed = ends.and_then(|(low, high)| narrowed(number, low, high));
            let never = || invalid(format!("{}: no result of the add is the end of a value", number.path.join(".")));
            *number = narrowed.ok_or_else(never)?;
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
        let sure = self.doubts(item).into_iter().find(|doubt| doubt.is_sure).map(|doubt| doubt.unmet);
        sure.or(passed.then_some(Unmet::WindowPassed))
    }

    fn reason(&self, item: &Attributes) -> Option<Unmet> {
        let mut doubts = self.doubts(item).into_iter().map(|doubt| doubt.unmet);
        let first = doubts.next()?;
        doubts.all(|unmet| unmet == first).then_some(first)
    }

    fn refusing_clause(&self, item: &Attributes) -> Option<String> {
        let mut doubts = self.doubts(item);
        let index = doubts.iter().position(|doubt| doubt.is_sure).or((doubts.len() == 1).then_some(0))?;
        let Doubt { asks, paths, .. } = doubts.swap_remove(index);
        let found = paths.iter().map(|path| {
            let found = format!("{} = {}", path.join("."), brief(value_at(item, path)));
            // Both are brief, and so they may look the same.
            if found == asks { found + " with other contents" } else { found }
        });
        Some(format!("the edit asks for {asks}, and the item has {}", found.collect::<Vec<_>>().join(", ")))
    }

    fn always_changes(&self) -> bool {
        !self.clauses.numbers.is_empty() || !self.clauses.append.is_empty()
    }

    fn seen_at(&self) -> Option<ItemVersion> {
        self.seen
    }
}

impl RawEdit {
    /// The paths that are written beside the attributes that follow from others.
    fn written(&self) -> Vec<&[String]> {
        let Clauses { numbers, set, remove, append, .. } = &self.clauses;
        let values = set.iter().chain(append).map(|(path, _)| path);
        let paths = numbers.iter().map(|number| &number.path).chain(values).chain(remove);
        paths.chain(self.choices.iter().map(|choice| &choice.path)).map(Vec::as_slice).collect()
    }

    /// Adds the clauses of each choice by what this item makes likely.
    fn choose(&self, clauses: &mut Clauses, item: Option<&Attributes>) {
        clauses.is_to_change &= !self.always_changes();
        let is_chosen = |choice: &Choice| {
            item.is_none_or(|item| is_likely(&choice.when, item) || !is_likely(&choice.otherwise, item))
        };
        let mut chosen: Vec<_> = self.choices.iter().map(is_chosen).collect();
        if clauses.is_to_change && clauses.set.is_empty() && clauses.remove.is_empty() && !chosen.contains(&true) {
            // Nothing would change. So DynamoDB is asked for an item that changes.
            chosen.fill(true);
        }
        for (Choice { path, value, when, otherwise }, is_chosen) in self.choices.iter().zip(chosen) {
            clauses.demands.push(if is_chosen { when.clone() } else { otherwise.clone() });
            if is_chosen {
                clauses.set.push((path.clone(), value.clone()));
                clauses.is_to_change = false; // Where the condition holds, the value is another one.
            }
        }
    }

    /// Why the item may refuse the edit. An item without doubts surely takes it.
    fn doubts<'a>(&'a self, item: &Attributes) -> Vec<Doubt<'a>> {
        let Clauses { numbers, set, remove, demands, is_to_change, .. } = &self.clauses;
        let mut doubts = Vec::new();
        let mut ask = |unmet, is_met: Option<bool>, asks: &dyn Fn() -> String, paths: Vec<&'a [String]>| {
            if is_met != Some(true) {
                doubts.push(Doubt { unmet, is_sure: is_met.is_some(), asks: asks(), paths });
            }
        };
        for (index, number) in numbers.iter().enumerate() {
            let (path, current) = (number.path.as_slice(), number_at(item, &number.path));
            ask(Unmet::NotANumber, Some(current.is_some()), &|| "a number to add to".to_owned(), vec![path]);
            let Some(current) = current else { continue };
            let next = self.number(index).and_then(|by| sum(current, by));
            let is_in_bounds = whole(&number.low).zip(whole(&number.high)).and_then(|(low, high)| {
                let (floor, ceiling) = floor_and_ceiling(current)?;
                Some(low <= floor && ceiling <= high)
            });
            let bounds = || {
                let result = [&number.low, &number.high].map(|end| whole(end)?.checked_add(whole(&number.by)?));
                match result {
                    [Some(low), Some(high)] => format!("a result from {low} to {high} when {} is added", number.by),
                    _ if number.low == number.high => {
                        format!("the number {}, to which {} is added", number.low, number.by)
                    }
                    _ => format!("a number from {} to {}, to which {} is added", number.low, number.high, number.by),
                }
            };
            ask(Unmet::OutOfRange, is_in_bounds, &bounds, vec![path]);
            for bands in self.bands.iter().filter(|bands| bands.number == index) {
                let is_in_one = bands.ranges.iter().any(|(range, _)| contains(range, next));
                let asks = || format!("a number within the bands of {} after {} is added", bands.attribute, number.by);
                ask(Unmet::OutOfRange, Some(is_in_one), &asks, vec![path]);
            }
        }
        for condition in demands.iter().chain(&self.of_holds) {
            ask(Unmet::NotAsDemanded, is_met(condition, item), &|| words(condition), paths_of(&[condition]));
        }
        for Choice { when, otherwise, .. } in &self.choices {
            let is_either = match [when, otherwise].map(|condition| is_met(condition, item)) {
                [Some(true), _] | [_, Some(true)] => Some(true),
                [Some(false), Some(false)] => Some(false),
                _ => None,
            };
            let asks = || format!("{} or {}", words(when), words(otherwise));
            ask(Unmet::NotAsDemanded, is_either, &asks, paths_of(&[when, otherwise]));
        }
        if *is_to_change && !self.always_changes() {
            let sets = set.iter().map(|(path, value)| match as_stored(Some(item), path, value) {
                Ok(value) => value_at(item, path).map_or(Some(false), |old| is_equal(old, &value)),
                Err(_) => Some(false),
            });
            let removes = remove.iter().map(|path| Some(value_at(item, path).is_none()));
            let choices = self.choices.iter().map(|choice| is_met(&choice.when, item).map(|is_set| !is_set));
            let stays: Vec<_> = sets.chain(removes).chain(choices).collect();
            let surely_changes = stays.contains(&Some(false));
            let changes = (surely_changes || !stays.contains(&None)).then_some(surely_changes);
            ask(Unmet::Unchanged, changes, &|| "another value".to_owned(), self.written());
        }
        doubts
    }
}

/// Why an item may refuse an edit.
struct Doubt<'a> {
    unmet: Unmet,
    /// Whether it surely does.
    is_sure: bool,
    /// What the edit asks for, in words.
    asks: String,
    /// The paths to the values that decide.
    paths: Vec<&'a [String]>,
}

/// The paths that conditions name, each once.
fn paths_of<'a>(conditions: &[&'a Condition]) -> Vec<&'a [String]> {
    let mut paths: Vec<&[String]> = Vec::new();
    for (path, _) in conditions.iter().flat_map(|condition| condition.leaves()) {
        if !paths.contains(&path.as_slice()) {
            paths.push(path);
        }
    }
    paths
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
    use crate::condition::{Comparison, Demanded};
    use crate::edit::Bounds;
    use crate::edit::built::{add, at_most_or_missing, compared, is, missing, set, there, v};

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
            assert_eq!(add("n", by, ..).unmet(&item(current), false), unmet, "{current} {by}");
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
            let add = add("n", number(by), ..);
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
        let sums =
            add("n", number("9e37"), ..).bands("state", "n", [(i64::MIN..=-1, v("below")), (0..=i64::MAX, v("above"))]);
        let state = |current: &str| {
            let resolved = sums.resolve(LAYOUT, Some(&huge(current))).expect("valid").stamps;
            (resolved[0].1.as_s().expect("a text").clone(), sums.unmet(&huge(current), false))
        };
        assert_eq!(state(&nines), ("above".to_owned(), Some(Unmet::OutOfRange)), "the sum is more than an i128 holds");
        assert_eq!(state("-90000000000000000000000000000000000005"), ("below".to_owned(), None));
        assert!(add("n", number("9e37"), 0..=1).invalid.is_none());
        assert!(add("n", number(&nines), -1..=0).invalid.is_some(), "-1 less {nines} has 39 digits");
    }

    #[test]
    fn a_band_in_which_the_bounds_leave_no_number_is_not_guessed() {
        let take = |bands: &[(RangeInclusive<i64>, &str)]| {
            let bounds = Bounds::Before(Number::from(-3), Number::from(9));
            let edit =
                add("n", -6, bounds).bands("state", "n", bands.iter().map(|(range, name)| (range.clone(), v(*name))));
            edit.resolve(LAYOUT, None).map(|clauses| clauses.stamps[0].1.clone())
        };
        let (low, high) = ((-9..=3, "low"), (4..=99, "high"));
        assert_eq!(take(&[low, high.clone()]).expect("a band"), AttributeValue::S("low".to_owned()));
        assert!(take(&[high]).expect_err("none").to_string().contains("has no band with a number within"));
    }

    #[test]
    fn an_edit_that_changes_a_value_twice_is_refused_by_the_names_of_both_paths() {
        let twice = |edit: RawEdit| edit.resolve(LAYOUT, None).expect_err("twice").to_string();
        for (edit, named) in [
            (set(["state", "x"], v(1)).and_remove("state"), "state.x and state"),
            (add("n", 1, ..).bands("n", "n", [(0..=9, v(1))]), "n twice"),
        ] {
            assert!(twice(edit.clone()).contains(&format!("the edit changes {named},")), "{edit:?}");
        }
        let members = set(["state", "x"], v(1)).and_set(["state", "y"], v(2)).and_remove(["state", "xy"]);
        assert!(members.resolve(LAYOUT, None).is_ok());
    }

    #[test]
    fn a_result_outside_all_bands_of_its_number_is_out_of_range() {
        let banded = add("n", 1, ..).bands("state", "n", [(0..=9, v("open")), (20..=29, v("shut"))]);
        for (current, unmet) in [
            (8, None),
            (9, Some(Unmet::OutOfRange)),
            (19, None),
            (29, Some(Unmet::OutOfRange)),
            (-2, Some(Unmet::OutOfRange)),
        ] {
            assert_eq!(banded.unmet(&item(current), false), unmet, "{current}");
        }
    }

    #[test]
    fn an_item_takes_an_edit_that_changes_it_if_its_values_are_as_demanded_and_the_window_has_not_passed() {
        let (plus, put) = (add("n", 1, ..), set(["map", "old"], v(7)));
        let map = AttributeValue::M([("old".to_owned(), AttributeValue::N("6".to_owned()))].into());
        let item: Attributes = item(1).into_iter().chain([("map".to_owned(), map)]).collect();
        for (edit, unmet) in [
            (plus.clone().only_if(is("state", v("open"))), None),
            (plus.clone().only_if(is("state", v("shut"))), Some(Unmet::NotAsDemanded)),
            (plus.clone().only_if(is("state", v("open"))).only_if(missing("state")), Some(Unmet::NotAsDemanded)),
            (plus.clone().only_if(missing("other")).only_if(there("state")), None),
            (plus.clone().only_if(there("other")), Some(Unmet::NotAsDemanded)),
            (plus.clone().only_if(at_most_or_missing("state", v("open"))), None),
            (plus.clone().only_if(at_most_or_missing("state", v("opem"))), Some(Unmet::NotAsDemanded)),
            (plus.clone().only_if(at_most_or_missing("other", v("opem"))), None),
            (plus.clone().only_if(at_most_or_missing("n", v("1"))), Some(Unmet::NotAsDemanded)),
            (plus.clone().only_if(at_most_or_missing("n", v(0))), Some(Unmet::NotAsDemanded)),
            (plus.clone().only_if(at_most_or_missing("n", v(1))), None),
            (plus.clone().only_if(at_most_or_missing("n", v(0.5))), None), // only DynamoDB compares it
            (plus.clone().only_if_changed(), None),
            (put.clone().only_if_changed(), None),
            (put.clone().and_set(["map", "old"], v(6)), None),
            (set(["map", "old"], v(6)), None),
            (set(["map", "old"], v(6)).only_if_changed().stamp("state", v("shut")), Some(Unmet::Unchanged)),
            (set(["map", "old"], v("6")).only_if_changed(), None),
            (RawEdit::default().and_remove("other").only_if_changed(), Some(Unmet::Unchanged)),
            (RawEdit::default().and_remove("other").and_remove(["map", "old"]).only_if_changed(), None),
            (set(["state", "x"], v(6)), Some(Unmet::NotAsDemanded)),
            (RawEdit::default().and_remove(["other", "x"]), Some(Unmet::NotAsDemanded)),
        ] {
            assert_eq!(edit.unmet(&item, false), unmet, "{edit:?}");
            let passed = unmet.or(Some(Unmet::WindowPassed));
            assert_eq!(edit.unmet(&item, true), passed, "{edit:?}, too late");
        }
        assert_eq!(add("other", 1, ..).unmet(&item, true), Some(Unmet::NotANumber));
    }

    /// The reason after a refusal: the only one that is sure, or the only one.
    #[test]
    fn values_that_only_dynamodb_compares_refuse_nothing_here_and_are_the_reason_if_there_is_no_other() {
        use AttributeValue::{B, N, Ns, Ss};
        let (text, half) = (str::to_owned, Number::parse("0.5").expect("a number"));
        let (pair, list) = (Ss(vec![text("a"), text("b")]), AttributeValue::L(vec![N(text("1.5"))]));
        let bytes = |byte: u8| B(Vec::from([byte]));
        let stored = [("n", N(text("1.50"))), ("set", pair.clone()), ("list", list.clone()), ("bytes", bytes(7))];
        let item: Attributes = stored.map(|(name, value)| (text(name), value)).into();
        let demand = |name: &str, demanded| {
            let mut edit = set("state", v("shut"));
            edit.clauses.demands.push(Condition::At(vec![text(name)], demanded));
            edit
        };
        let [equal, most] =
            [Comparison::Equal, Comparison::AtMost].map(|by| move |value| Demanded::Compared(by, value));
        let other = |value| RawEdit::default().and_set("n", value).only_if_changed();
        for (edit, unmet, reason) in [
            (demand("n", equal(N(text("1.5")))), None, Some(Unmet::NotAsDemanded)),
            (demand("n", equal(N(text("1.50")))), None, None),
            (demand("n", equal(bytes(1))), Some(Unmet::NotAsDemanded), Some(Unmet::NotAsDemanded)),
            (demand("n", most(N(text("1.4")))), None, Some(Unmet::NotAsDemanded)),
            (demand("set", equal(Ss(vec![text("b"), text("a")]))), None, Some(Unmet::NotAsDemanded)),
            (demand("set", equal(Ns(vec![text("1")]))), Some(Unmet::NotAsDemanded), Some(Unmet::NotAsDemanded)),
            (demand("set", equal(pair)), None, None),
            (demand("list", equal(AttributeValue::L(vec![N(text("1.50"))]))), None, Some(Unmet::NotAsDemanded)),
            (demand("list", equal(list)), None, None),
            (demand("bytes", equal(bytes(8))), Some(Unmet::NotAsDemanded), Some(Unmet::NotAsDemanded)),
            (demand("bytes", most(bytes(8))), None, Some(Unmet::NotAsDemanded)),
            (demand("bytes", most(N(text("8")))), Some(Unmet::NotAsDemanded), Some(Unmet::NotAsDemanded)),
            (other(N(text("1.5"))), None, Some(Unmet::Unchanged)),
            (other(N(text("1.5"))).only_if(is("list", v([1.25]))), None, None),
            (other(bytes(7)), None, None),
            (add("n", 1, 2..=3), None, None),
            (add("n", 1, 0..=2), Some(Unmet::OutOfRange), Some(Unmet::OutOfRange)),
            (add("n", 1, Bounds::Before(half.clone(), half)), None, Some(Unmet::OutOfRange)),
        ] {
            assert_eq!((edit.unmet(&item, false), edit.reason(&item)), (unmet, reason), "{edit:?}");
        }
        let bands = add("n", 1, ..).bands("state", "n", [(0..=3, v("few")), (4..=9, v("many"))]);
        let resolved = bands.resolve(LAYOUT, Some(&item)).expect("valid").stamps;
        assert_eq!(resolved[0].1.as_s().map(String::as_str), Some("few"), "2.5 lies between 0 and 3");
    }

    #[test]
    fn an_edit_names_only_attributes_of_its_record_and_no_empty_path() {
        let resolve = |edit: RawEdit| edit.resolve(LAYOUT, None).map(drop).map_err(|error| error.to_string());
        let none: [&str; 0] = [];
        for edit in [
            set("x", v(1)),
            RawEdit::default().and_remove(["x", "y"]),
            set("n", v(1)).stamp("x", v(1)),
            set("n", v(1)).only_if(there("x")),
            add("x", 1, ..),
        ] {
            assert!(resolve(edit.clone()).expect_err("not declared").contains("x is not among"), "{edit:?}");
        }
        for edit in [set(none, v(1)), add(none, 1, ..), set("n", v(1)).only_if(there(none))] {
            assert!(resolve(edit).expect_err("no path").contains("path of a value is empty"));
        }
        let one = || set("n", v(1));
        for edit in [
            one().only_if(at_most_or_missing("state", v(None::<i64>))),
            one().only_if(at_most_or_missing("state", v([1]))),
        ] {
            assert!(resolve(edit).expect_err("no order").contains("have an order"));
        }
        let low = [(0..=9, v("low"))];
        resolve(add("n", 1, ..).bands("state", "x", low.clone())).expect_err("bands of no number");
        let half = Number::parse("0.5").expect("a number");
        resolve(add("n", half, ..).bands("state", "n", low)).expect_err("bands of a decimal");
        assert_eq!(resolve(set(["state", "x"], v(1))), Ok(()));
    }

    #[test]
    fn an_edit_knows_the_state_it_was_given_and_demands_a_difference_only_if_it_adds_nothing() {
        let version = crate::Version::new(3).expect("small");
        let at = ItemVersion { version, incarnation: crate::Incarnation::from_bytes([7; 8]) };
        let changed = set("state", v("done")).only_if_changed();
        assert_eq!((changed.clone().seen(at).seen_at(), changed.seen_at()), (Some(at), None));
        assert!(changed.resolve(LAYOUT, None).expect("valid").is_to_change);
        assert!(!changed.and_add("n", 1, .., None).resolve(LAYOUT, None).expect("valid").is_to_change);
    }

    #[test]
    fn a_value_is_raised_or_filled_in_where_it_is_lower_or_missing_and_otherwise_left_alone() {
        let n = || vec!["n".to_owned()];
        let least = |value: AttributeValue| {
            let lower = Condition::Any(vec![missing("n"), compared("n", Comparison::Less, value.clone())]);
            RawEdit::default().and_choose("n", value.clone(), [lower, compared("n", Comparison::AtLeast, value)])
        };
        let filled = |value| RawEdit::default().and_choose("n", value, [missing("n"), there("n")]);
        let of = |value: Option<AttributeValue>| value.map(|value| ("n".to_owned(), value)).into_iter().collect();
        let text = |text: &str| AttributeValue::N(text.to_owned());
        for (edit, stored, is_set, unmet) in [
            (least(v(5)), Some(v(4)), true, None),
            (least(v(5)), None, true, None),
            (least(v(5)), Some(v(5)), false, None),
            (least(v(5)), Some(v(6)), false, None),
            (least(text("5.5")), Some(text("5.4")), true, None),
            (least(text("5.5")), Some(text("5.6")), false, None),
            (least(AttributeValue::B(vec![2])), Some(AttributeValue::B(vec![1, 9])), true, None),
            (least(AttributeValue::B(vec![2])), Some(AttributeValue::B(vec![2, 0])), false, None),
            (least(v("b")), Some(v("ab")), true, None),
            (least(v(5)), Some(v("4")), true, Some(Unmet::NotAsDemanded)),
            (filled(v(5)), Some(v("4")), false, None),
            (filled(v(5)), None, true, None),
        ] {
            let item: Attributes = of(stored);
            let clauses = edit.resolve(LAYOUT, Some(&item)).expect("valid");
            let set: Vec<_> = clauses.set.iter().map(|(path, _)| path.clone()).collect();
            assert_eq!((set, edit.unmet(&item, false)), (if is_set { vec![n()] } else { vec![] }, unmet), "{edit:?}");
            assert_eq!(clauses.demands.len(), 1, "the item is as it was guessed");
            let changed = edit.only_if_changed();
            let clauses = changed.resolve(LAYOUT, Some(&item)).expect("valid");
            assert!(!clauses.is_to_change && !clauses.set.is_empty(), "its condition is that it changes: {clauses:?}");
            let is_sure = unmet.is_none()
                && !item.values().any(|value| matches!(value, AttributeValue::B(_)))
                && !item.values().any(|value| value.as_n().is_some_and(|text| text.contains('.')));
            if is_sure && !is_set {
                assert_eq!(changed.unmet(&item, false), Some(Unmet::Unchanged), "{changed:?}");
            }
        }
        let unseen = least(v(5)).resolve(LAYOUT, None).expect("valid");
        assert_eq!(unseen.set.len(), 1, "without an item, the value is guessed to change");
    }

    #[test]
    fn conditions_are_joined_as_in_logic_and_what_only_dynamodb_tells_stays_open() {
        let item: Attributes = [("n".to_owned(), v(1)), ("state".to_owned(), v([1.5]))].into();
        let (yes, no) = (is("n", v(1)), is("n", v(2)));
        let open = is("state", v([2.5]));
        let not = |condition: &Condition| Condition::Not(Box::new(condition.clone()));
        let [any, all] = [Condition::Any, Condition::All]
            .map(|join| move |one: &Condition, other: &Condition| join(vec![one.clone(), other.clone()]));
        for (condition, met) in [
            (not(&yes), Some(false)),
            (not(&no), Some(true)),
            (not(&open), None),
            (any(&no, &yes), Some(true)),
            (any(&open, &yes), Some(true)),
            (any(&no, &open), None),
            (any(&no, &no), Some(false)),
            (all(&yes, &yes), Some(true)),
            (all(&yes, &open), None),
            (all(&open, &no), Some(false)),
            (not(&compared("other", Comparison::Less, v(1))), Some(true)),
            (compared("other", Comparison::AtLeast, v(1)), Some(false)),
            (compared("n", Comparison::More, v(0)), Some(true)),
            (compared("n", Comparison::More, v(1)), Some(false)),
            (compared("n", Comparison::Less, v("2")), Some(false)),
            (Condition::At(vec!["state".to_owned()], Demanded::Type("L")), Some(true)),
        ] {
            assert_eq!(is_met(&condition, &item), met, "{condition:?}");
        }
    }

    #[test]
    fn conditions_are_bounded_and_made_of_others() {
        let refused = |condition: Condition| set("n", v(1)).only_if(condition).resolve(LAYOUT, None).map(drop);
        let nested = |levels| (1..levels).fold(is("n", v(1)), |inner, _| Condition::Not(Box::new(inner)));
        let many = |count| Condition::Any(vec![is("n", v(1)); count]);
        assert_eq!([refused(nested(8)), refused(many(100))], [Ok(()), Ok(())]);
        for (condition, reason) in [
            (nested(9), "at most 8 levels"),
            (many(101), "at most 100 conditions"),
            (many(0), "made of no others"),
            (Condition::All(Vec::new()), "made of no others"),
            (compared("n", Comparison::Less, v(true)), "have an order"),
        ] {
            assert!(refused(condition).expect_err(reason).to_string().contains(reason), "{reason}");
        }
        let twice = set("n", v(1)).only_if(many(60)).only_if(many(60));
        assert!(twice.resolve(LAYOUT, None).is_err(), "together");
        let both = set("n", v(1)).only_if(Condition::All(vec![is("n", v(2)), is("n", v(3))]));
        assert_eq!(both.clauses.demands.len(), 2, "each part of an outer conjunction is a condition of its own");
    }

    #[test]
    fn the_end_of_a_value_stays_one_at_which_ttl_looks() {
        let layout = Layout { expires_at: Some("n"), ..*LAYOUT };
        let bounds = |edit: RawEdit| {
            let numbers = edit.resolve(&layout, None).map_err(|error| error.to_string())?.numbers;
            Ok::<_, String>((numbers[0].low.clone(), numbers[0].high.clone()))
        };
        assert_eq!(bounds(add("n", 60, ..)), Ok(("-60".to_owned(), "253402300739".to_owned())));
        assert_eq!(bounds(add("n", 60, 0..=99)), Ok(("-60".to_owned(), "39".to_owned())));
        let half = Number::parse("0.5").expect("a number");
        for never in [add("n", 60, -9..=-1), add("n", half, ..)] {
            assert!(bounds(never).expect_err("no end").contains("the end of a value"));
        }
        assert_eq!(bounds(add("state", 60, -9..=-1)), Ok(("-69".to_owned(), "-61".to_owned())));
    }

    #[test]
    fn two_edits_are_one_with_all_clauses_of_both() {
        let bands = |n: &str| add(n, 1, ..).bands("state", n, [(0..=9, v("low"))]);
        let both = add("m", 2, ..).and(bands("n")).and(set("l", v([1]))).only_if_changed();
        let layout = Layout { attributes: &["n", "m", "l", "state"], ..Layout::of_key("id") };
        let clauses = both.resolve(&layout, None).expect("valid");
        let added: Vec<_> = clauses.numbers.iter().map(|number| (number.path[0].as_str(), &*number.high)).collect();
        assert_eq!(added, [("m", "9223372036854775805"), ("n", "8")], "the bands are still those of n");
        assert_eq!((clauses.set.len(), clauses.stamps.len(), clauses.is_to_change), (1, 1, false));
        let invalid = set("n", v(1)).and(set(["n", ""], v(1)));
        assert!(invalid.resolve(&layout, None).is_err());
    }

    #[test]
    fn members_are_appended_to_a_list_that_is_there() {
        let append = RawEdit::default().and_append("state", vec![v(1), v("a")]);
        let with = |value: AttributeValue| Attributes::from([("state".to_owned(), value)]);
        for (value, unmet) in [(v([0]), None), (v("a"), Some(Unmet::NotAsDemanded))] {
            assert_eq!(append.unmet(&with(value), false), unmet);
        }
        assert_eq!(append.unmet(&Attributes::new(), false), Some(Unmet::NotAsDemanded));
        assert_eq!(append.clone().only_if_changed().unmet(&with(v([0])), false), None, "it always changes the item");
        assert!(append.and(set("state", v([1]))).resolve(LAYOUT, None).is_err(), "it writes the list twice");
    }

    #[test]
    fn a_refusal_says_which_clause_refused_and_what_the_item_has_there() {
        let item: Attributes = item(3).into_iter().chain([("l".to_owned(), v([1, 3]))]).collect();
        let clause = |edit: RawEdit| edit.refusing_clause(&item);
        let either = Condition::Any(vec![is("state", v("shut")), compared("n", Comparison::More, v(5))]);
        for (edit, text) in [
            (add("n", -5, 0..=99), "the edit asks for a result from 0 to 99 when -5 is added, and the item has n = 3"),
            (add("state", 1, ..), "the edit asks for a number to add to, and the item has state = \"open\""),
            (
                set("n", v(1)).only_if(either),
                "the edit asks for (state = \"shut\" or n > 5), and the item has state = \"open\", n = 3",
            ),
            (set("n", v(1)).only_if(there("m")), "the edit asks for a value at m, and the item has m = nothing"),
            (set("n", v(3)).only_if_changed(), "the edit asks for another value, and the item has n = 3"),
            (
                set("n", v(1)).only_if(is("l", v([1, 2]))),
                "the edit asks for l = a list of 2, and the item has l = a list of 2 with other contents",
            ),
            (
                add("n", Number::parse("9e125").expect("a number"), ..),
                "the edit asks for the number -9e+125, to which 9e+125 is added, and the item has n = 3",
            ),
        ] {
            assert_eq!(clause(edit).as_deref(), Some(text));
        }
        assert_eq!(clause(add("n", -5, ..)), None, "the item takes it");
    }

    #[test]
    fn a_whole_number_stays_within_the_range_of_its_type() {
        let unsigned = Some((0, u64::MAX.into()));
        for (by, bounds, range, expected) in [
            ("-5", Bounds::Any, unsigned, Some(["5", "18446744073709551620"])),
            ("-5", Bounds::from(-9..=9), unsigned, Some(["5", "14"])),
            ("5", Bounds::from(0..=9), Some((0, 7)), Some(["-5", "2"])),
            ("1e1", Bounds::Before(Number::from(-20), Number::from(20)), Some((0, 7)), Some(["-10", "-3"])),
            ("-1", Bounds::from(0..), unsigned, Some(["1", "18446744073709551616"])),
            ("-1", Bounds::from(0..), None, Some(["1", "9223372036854775808"])),
            ("0.5", Bounds::Any, unsigned, None),
            (
                "1",
                Bounds::Any,
                Some((i128::MIN, i128::MAX)),
                Some(["-99999999999999999999999999999999999999", "99999999999999999999999999999999999999"]),
            ),
        ] {
            let by = Number::parse(by).expect("a number");
            let current = bounds.clone().of_current(&by, range);
            assert_eq!(current, expected.map(|ends| ends.map(str::to_owned)), "{by} {bounds:?}");
        }
        let never = RawEdit::default().and_add("n", 1, -9..=-1, Some((0, 255)));
        assert!(never.resolve(LAYOUT, None).is_err(), "no unsigned number is negative");
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
