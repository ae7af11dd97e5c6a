//! The changes of a device as edits, which need no version. Time is an argument.
//!
//! Each comes to the same as its decision in [`device`](super::device), on a device that takes it. Where an expression
//! cannot say it, there is no edit.

use super::device::{Adjustment, OnLimit, Status, WIDE_NUMBERS, is_wide, largest};
use fencepost::json::{Decimal, Object, to_attribute};
use fencepost::{Bounds, Edit, Number, Timestamp};
use serde_json::Value;
use std::time::Duration;

/// The adjustment as an edit. `None` if it may clamp, if it changes nothing, if `by` is wide, if its limits leave no number
/// that is not wide, or if no expression can hold the name.
#[must_use]
pub fn adjustment_as_edit(adjustment: &Adjustment, now: Timestamp) -> Option<Edit> {
    let Adjustment { attribute, by, min, max, on_limit } = adjustment;
    if *on_limit == OnLimit::Clamp || *by == Decimal::from(0) || is_wide(by) || !(1..=255).contains(&attribute.len()) {
        return None;
    }
    let largest = largest();
    let smallest = Decimal::from(0).minus(&largest).to_decimal().ok()?;
    let before = |limit: &Decimal| limit.minus(by).to_decimal().ok();
    let low = before(min.as_ref().map_or(&smallest, |min| min.max(&smallest)))?;
    let high = before(max.as_ref().map_or(&largest, |max| max.min(&largest)))?;
    if low > high {
        return None; // no number that is not wide is within the limits
    }
    let edit = Edit::add(["state", attribute.as_str()], by, Bounds::Before(Number::from(&low), Number::from(&high)));
    Some(edit.only_without(WIDE_NUMBERS).stamp("updatedAt", &now))
}

/// The most members of a patch that is an edit, and the most names in their paths. The edit is within the 4 KB of an
/// expression.
const MAX_EDITED: usize = 16;
const MAX_NAMES: usize = 64;

/// The patch of a state that has all members of the patch, as an edit. It puts plain values in their places, so the
/// state has no more values than before. `None` if the patch has a list or an empty object, a wide number, or too much.
#[must_use]
pub fn patch_as_edit(patch: &Object, now: Timestamp) -> Option<Edit> {
    if !(1..=MAX_NAMES).contains(&patch.count()) || patch.numbers().iter().any(is_wide) {
        return None;
    }
    let mut members = Vec::new();
    list_members(&["state".to_owned()], patch.to_value(), &mut members)?;
    if members.len() > MAX_EDITED || members.iter().map(|(path, _)| path.len()).sum::<usize>() > MAX_NAMES {
        return None;
    }
    let edit = members.into_iter().fold(Edit::default(), |edit, (path, value)| {
        let edit = edit.only_with(path.clone());
        if value.is_null() { edit.and_remove(path) } else { edit.and_set_attribute(path, to_attribute(&value)) }
    });
    Some(edit.only_if_changed().only_without(WIDE_NUMBERS).stamp("updatedAt", &now))
}

/// Lists the plain values in a patch with their paths. `None` if it has values of other kinds.
fn list_members(path: &[String], value: Value, members: &mut Vec<(Vec<String>, Value)>) -> Option<()> {
    match value {
        Value::Object(inner) if !inner.is_empty() => {
            inner.into_iter().try_for_each(|(name, value)| list_members(&[path, &[name]].concat(), value, members))
        }
        Value::Object(_) | Value::Array(_) => None,
        value => {
            members.push((path.to_vec(), value));
            Some(())
        }
    }
}

/// The status as an edit.
#[must_use]
pub fn status_as_edit(status: Status, now: Timestamp) -> Edit {
    Edit::set("status", &status).only_if_changed().stamp("updatedAt", &now)
}

/// The configuration as an edit. `None` if no device can be as old as the interval.
#[must_use]
pub fn config_as_edit(config: &Object, interval: Duration, now: Timestamp) -> Option<Edit> {
    let before = now.epoch_millis()?.checked_sub(interval.as_millis().try_into().ok()?)?;
    let edit = Edit::default().and_set_attribute("config", config.to_attribute()).only_if_changed();
    let edit = edit.only_if("status", &Status::Online);
    let edit = edit.only_if_at_most("configUpdatedAt", &Timestamp::from_epoch_millis(before)?);
    Some(edit.stamp("configUpdatedAt", &now).stamp("updatedAt", &now))
}
