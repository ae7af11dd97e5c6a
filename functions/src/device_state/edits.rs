//! The changes of a device as edits, which need no version. Time is an argument.
//!
//! Each comes to the same as its decision in [`device`](super::device), on a device that takes it. Where an expression
//! cannot say it, there is no edit.

use super::device::{Adjustment, Device, OnLimit, Status, WIDE_NUMBERS, is_wide, largest};
use fencepost::field::{Field, Member, Optional};
use fencepost::json::{Decimal, Object};
use fencepost::{Bounds, Edit, Number, Timestamp};
use serde_json::Value;
use std::time::Duration;

const STATUS: Field<Device, Status> = Field::of("status");
const STATE: Field<Device, Object> = Field::with("state", |state| Ok(state.to_attribute()));
const CONFIG: Field<Device, Object> = Field::with("config", |config| Ok(config.to_attribute()));
const UPDATED_AT: Field<Device, Timestamp> = Field::of("updatedAt");
const CONFIG_UPDATED_AT: Field<Device, Timestamp, Optional> = Field::of("configUpdatedAt");
const WIDE: Field<Device, bool, Optional> = Field::of(WIDE_NUMBERS);

/// A place in the state of a device.
type Place = Field<Device, Value, Member>;

/// The adjustment as an edit. `None` if it may clamp, if it changes nothing, if `by` is wide, if its limits leave no number
/// that is not wide, or if no expression can hold the name.
#[must_use]
pub fn adjustment_as_edit(adjustment: &Adjustment, now: Timestamp) -> Option<Edit<Device>> {
    let Adjustment { attribute, by, min, max, on_limit } = adjustment;
    if *on_limit == OnLimit::Clamp || *by == Decimal::from(0) || is_wide(by) {
        return None;
    }
    let number = STATE.member(attribute).ok()?.number();
    let largest = largest();
    let smallest = Decimal::from(0).minus(&largest).to_decimal().ok()?;
    let before = |limit: &Decimal| limit.minus(by).to_decimal().ok();
    let low = before(min.as_ref().map_or(&smallest, |min| min.max(&smallest)))?;
    let high = before(max.as_ref().map_or(&largest, |max| max.min(&largest)))?;
    if low > high {
        return None; // no number that is not wide is within the limits
    }
    let edit = number.add(by.into(), Bounds::Before(Number::from(&low), Number::from(&high)));
    Some(edit.only_if(WIDE.is_none()).stamp(&UPDATED_AT, now))
}

/// The most members of a patch that is an edit, and the most names in their paths. The edit is within the 4 KB of an
/// expression.
const MAX_EDITED: usize = 16;
const MAX_NAMES: usize = 64;

/// The patch of a state that has all members of the patch, as an edit. It puts plain values in their places, so the
/// state has no more values than before. `None` if the patch has a list or an empty object, a wide number, or too much.
#[must_use]
pub fn patch_as_edit(patch: &Object, now: Timestamp) -> Option<Edit<Device>> {
    if !(1..=MAX_NAMES).contains(&patch.count()) || patch.numbers().iter().any(is_wide) {
        return None;
    }
    let Value::Object(patched) = patch.to_value() else { return None };
    let mut members = Vec::new();
    for (name, value) in patched {
        list_members(STATE.member(&name).ok()?, 2, value, &mut members)?;
    }
    if members.len() > MAX_EDITED || members.iter().map(|(_, _, names)| names).sum::<usize>() > MAX_NAMES {
        return None;
    }
    let edit = members.into_iter().fold(Edit::default(), |edit, (place, value, _)| {
        let edit = edit.only_if(place.is_some());
        edit.and(if value.is_null() { place.remove() } else { place.set(value) })
    });
    Some(edit.only_if_changed().only_if(WIDE.is_none()).stamp(&UPDATED_AT, now))
}

/// Lists the plain values at a place, each with its own place and the count of the names that lead to it. `None` if there
/// are values of other kinds.
fn list_members(place: Place, names: usize, value: Value, members: &mut Vec<(Place, Value, usize)>) -> Option<()> {
    match value {
        Value::Object(inner) if !inner.is_empty() => inner
            .into_iter()
            .try_for_each(|(name, value)| list_members(place.member(&name).ok()?, names + 1, value, members)),
        Value::Object(_) | Value::Array(_) => None,
        value => {
            members.push((place, value, names));
            Some(())
        }
    }
}

/// The status as an edit.
pub fn status_as_edit(status: Status, now: Timestamp) -> Edit<Device> {
    STATUS.set(status).only_if_changed().stamp(&UPDATED_AT, now)
}

/// The configuration as an edit. `None` if no device can be as old as the interval.
#[must_use]
pub fn config_as_edit(config: &Object, interval: Duration, now: Timestamp) -> Option<Edit<Device>> {
    let before = now.epoch_millis()?.checked_sub(interval.as_millis().try_into().ok()?)?;
    let latest = Timestamp::from_epoch_millis(before)?;
    let is_due = CONFIG_UPDATED_AT.is_none().or(CONFIG_UPDATED_AT.is_at_most(latest));
    let edit = CONFIG.set(config.clone()).only_if_changed().only_if(STATUS.is(Status::Online)).only_if(is_due);
    Some(edit.stamp(&CONFIG_UPDATED_AT, now).stamp(&UPDATED_AT, now))
}
