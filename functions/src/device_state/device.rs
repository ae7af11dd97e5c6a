//! A device and its pure decisions. Time is an argument.

use crate::operation::{ID, OBJECT, Schema, TIMESTAMP, VERSION};
use fencepost::http::{Problem, Resource};
use fencepost::json::{Decimal, MAX_VALUES, Object, value_of};
use fencepost::{Attributes, Diff, ItemVersion, Record, Settings, Source, Timestamp};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::time::Duration;

/// The value of one device. Its id is the key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// Whether the device can be reached.
    pub status: Status,
    /// The state: free-form.
    #[serde(skip)] // fencepost::json converts free-form JSON to attributes exactly
    pub state: Object,
    /// The configuration: free-form.
    #[serde(skip)]
    pub config: Object,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the last write.
    pub updated_at: Timestamp,
    /// The time of the last change of the configuration. Creation does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_updated_at: Option<Timestamp>,
}

/// Whether a device can be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The device can be reached.
    Online,
    /// The device cannot be reached.
    Offline,
}

impl Record for Device {
    const PARTITION_KEY: &'static str = "deviceId";
    const ATTRIBUTES: &'static [&'static str] =
        &["status", "state", "config", "createdAt", "updatedAt", "configUpdatedAt", WIDE_NUMBERS];
    /// Many clients may adjust one device at once.
    const SETTINGS: Settings = Settings::own().remembered_writes(40).edit_window(32);

    fn encode(&self) -> Result<Attributes, Source> {
        let mut attributes: Attributes = serde_dynamo::to_item(self)?;
        attributes.insert("state".to_owned(), self.state.to_attribute());
        attributes.insert("config".to_owned(), self.config.to_attribute());
        mark_wide(&mut attributes, &self.state)?;
        Ok(attributes)
    }

    /// The free-form objects may be large, and they are exact already.
    fn check_read_back(&self, _: &Attributes) -> Result<(), Source> {
        Ok(())
    }

    /// The free-form objects may be large. One that stays as it is is not encoded.
    fn diff(old: &Self, new: &Self) -> Result<Diff, Source> {
        let mut before: Attributes = serde_dynamo::to_item(old)?;
        let mut after: Attributes = serde_dynamo::to_item(new)?;
        if old.config != new.config {
            after.insert("config".to_owned(), new.config.to_attribute());
        }
        if old.state != new.state {
            after.insert("state".to_owned(), new.state.to_attribute());
            mark_wide(&mut before, &old.state)?;
            mark_wide(&mut after, &new.state)?;
        }
        Ok(Diff::between(&before, after))
    }

    fn decode(attributes: &Attributes) -> Result<Self, Source> {
        let object = |name: &str| -> Result<Object, Source> {
            let attribute = attributes.get(name).ok_or_else(|| format!("{name} is missing"))?;
            Ok(Object::from_attribute(attribute).map_err(|reason| format!("{name}: {reason}"))?)
        };
        let (state, config) = (object("state")?, object("config")?);
        let rest: Device = serde_dynamo::from_item(Self::own_attributes(attributes, &["state", "config"]))?;
        Ok(Device { state, config, ..rest })
    }
}

impl Resource for Device {
    const NOT_FOUND: (&'static str, &'static str) = ("device_not_found", "there is no device with this id");
    const EXISTS: (&'static str, &'static str) = ("device_exists", "there is a device with this id");

    fn location(&self, id: &str) -> String {
        format!("/devices/{id}")
    }

    fn to_json(&self, id: &str, at: ItemVersion) -> impl Serialize {
        Shown {
            config: &self.config,
            config_updated_at: self.config_updated_at,
            created_at: self.created_at,
            device_id: id,
            state: &self.state,
            status: self.status,
            updated_at: self.updated_at,
            version: at.version.get(),
        }
    }
}

/// The schema of a status.
pub const STATUS: Schema = Schema::Named("DeviceStatus", &Schema::OneOf(&["online", "offline"]));

/// The schema of a device.
pub const DEVICE: Schema = Schema::Named(
    "Device",
    &Schema::Object(&[
        ("config", OBJECT),
        ("configUpdatedAt?", TIMESTAMP),
        ("createdAt", TIMESTAMP),
        ("deviceId", ID),
        ("state", OBJECT),
        ("status", STATUS),
        ("updatedAt", TIMESTAMP),
        ("version", VERSION),
    ]),
);

/// A device as clients see it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a, 'i> {
    config: &'a Object,
    #[serde(skip_serializing_if = "Option::is_none")]
    config_updated_at: Option<Timestamp>,
    created_at: Timestamp,
    device_id: &'i str,
    state: &'a Object,
    status: Status,
    updated_at: Timestamp,
    version: u64,
}

/// A change of one number in `state`, relative to the current number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Adjustment {
    /// The literal top-level name in `state`.
    pub attribute: String,
    /// The number to add.
    pub by: Decimal,
    /// The lowest allowed result.
    pub min: Option<Decimal>,
    /// The highest allowed result.
    pub max: Option<Decimal>,
    /// The behaviour at a limit.
    pub on_limit: OnLimit,
}

/// The behaviour of an adjustment with a result outside its limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnLimit {
    /// The adjustment is refused.
    Refuse,
    /// The result becomes the limit.
    Clamp,
}

/// Why the state of the device refuses a change. Nothing is written then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The result would be outside the limits.
    LimitReached {
        /// The current number.
        current: Decimal,
    },
    /// The attribute is missing or is not a number.
    NotANumber,
    /// The exact result has more digits than an item keeps, or is out of range.
    NotRepresentable,
    /// The device is offline.
    Offline,
    /// The state would have more values than are taken.
    TooManyValues,
    /// The last change of the configuration was too recent.
    ChangedTooRecently {
        /// The time until the configuration may be changed again.
        wait: Duration,
    },
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::LimitReached { current } => {
                Problem::refused("limit_reached", "the result would be outside the limits")
                    .with("current", value_of(&current))
            }
            Refusal::NotANumber => Problem::refused("not_a_number", "the state has no number of this name"),
            Refusal::NotRepresentable => {
                Problem::refused("not_representable", "the exact result has more than 38 digits or is out of range")
            }
            Refusal::TooManyValues => {
                let detail = format!("the state would have more than {MAX_VALUES} members and elements");
                Problem::invalid("", "too_many_values", detail)
            }
            Refusal::Offline => Problem::refused("device_offline", "the device must be online to be configured"),
            Refusal::ChangedTooRecently { wait } => {
                Problem::refused("changed_too_recently", "the configuration was changed a moment ago").retry_after(wait)
            }
        }
    }
}

/// The attribute of a device with a wide number at the top level of its state.
///
/// DynamoDB adds with 38 digits, while the engines disagree about longer sums. A number that is not wide has at most 18
/// decimals and is at most 10^18 in size, which keeps the sum of two such numbers within 38 digits. A device with this
/// attribute is adjusted at a version instead, by [`decide_adjust`].
pub(super) const WIDE_NUMBERS: &str = "wideNumbers";

/// Marks a device with a wide number at the top level of its state.
fn mark_wide(attributes: &mut Attributes, state: &Object) -> Result<(), Source> {
    if state.numbers().iter().any(is_wide) {
        attributes.insert(WIDE_NUMBERS.to_owned(), serde_dynamo::to_attribute_value(true)?);
    }
    Ok(())
}

/// The most decimals of a number that is not wide.
const MAX_DECIMALS: u64 = 18;

/// The largest number that is not wide.
pub(super) fn largest() -> Decimal {
    Decimal::from(1_000_000_000_000_000_000)
}

pub(super) fn is_wide(number: &Decimal) -> bool {
    let largest = largest();
    number.decimals() > MAX_DECIMALS
        || *number > largest
        || number.plus(&largest).compare(&Decimal::from(0)) == Ordering::Less
}

/// Merges a patch into the state. Writes nothing if the patch changes nothing.
///
/// # Errors
/// [`Refusal::TooManyValues`].
pub fn decide_patch(device: &Device, patch: &Object, now: Timestamp) -> Result<Option<Device>, Refusal> {
    put_state(device, device.state.merged(patch), now)
}

/// Adds to one number of the state, exactly, within limits.
///
/// Compares the limits with the exact sum before it must fit into an item. So a clamp at a limit never fails because of
/// digits dropped by the clamp.
///
/// # Errors
/// [`Refusal::NotANumber`], [`Refusal::LimitReached`], [`Refusal::NotRepresentable`], [`Refusal::TooManyValues`].
pub fn decide_adjust(device: &Device, adjustment: &Adjustment, now: Timestamp) -> Result<Option<Device>, Refusal> {
    let current = device.state.number(&adjustment.attribute).ok_or(Refusal::NotANumber)?;
    let sum = current.plus(&adjustment.by);
    let below = adjustment.min.as_ref().filter(|min| sum.compare(min) == Ordering::Less);
    let above = adjustment.max.as_ref().filter(|max| sum.compare(max) == Ordering::Greater);
    let result = match (below.or(above), adjustment.on_limit) {
        (None, _) => sum.to_decimal(),
        (Some(limit), OnLimit::Clamp) => Ok(limit.clone()),
        (Some(_), OnLimit::Refuse) => return Err(Refusal::LimitReached { current }),
    };
    let result = result.map_err(|_| Refusal::NotRepresentable)?;
    put_state(device, device.state.with_number(&adjustment.attribute, &result), now)
}

/// Sets the status. Writes nothing if the device has that status already.
pub fn decide_status(device: &Device, status: Status, now: Timestamp) -> Result<Option<Device>, Refusal> {
    Ok(put_if_changed(device, Device { status, ..device.clone() }, now))
}

/// Replaces the configuration, but only while the device is online, and at the earliest `interval` after the last
/// change.
///
/// A configuration that the device already has is not a change. The answer is the device as it is, also while it is
/// offline. The interval does not apply, and does not start again. So after a lost answer a client can repeat its
/// request. It gets a success instead of `changed_too_recently`.
///
/// # Errors
/// [`Refusal::Offline`], [`Refusal::ChangedTooRecently`].
pub fn decide_config(
    device: &Device,
    config: &Object,
    interval: Duration,
    now: Timestamp,
) -> Result<Option<Device>, Refusal> {
    if device.config == *config {
        return Ok(None);
    }
    if device.status == Status::Offline {
        return Err(Refusal::Offline);
    }
    if let Some(changed) = device.config_updated_at {
        // `changed` may lie ahead of this function's clock. The wait is then longer by that difference.
        let wait = (interval + changed.since(now)).saturating_sub(now.since(changed));
        if !wait.is_zero() {
            return Err(Refusal::ChangedTooRecently { wait });
        }
    }
    let next = Device { config: config.clone(), config_updated_at: Some(now), ..device.clone() };
    Ok(put_if_changed(device, next, now))
}

/// Writes the next state, unless it is the same. One with too many values is refused, so that every state written here
/// can also be changed here.
fn put_state(device: &Device, state: Object, now: Timestamp) -> Result<Option<Device>, Refusal> {
    if state != device.state && state.count() > MAX_VALUES {
        return Err(Refusal::TooManyValues);
    }
    Ok(put_if_changed(device, Device { state, ..device.clone() }, now))
}

/// Writes the next value with this time, unless nothing differs.
fn put_if_changed(device: &Device, next: Device, now: Timestamp) -> Option<Device> {
    (next != *device).then_some(Device { updated_at: now, ..next })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost::json;
    use std::time::SystemTime;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from(SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_877_600 + seconds))
    }

    fn object(text: &str) -> Object {
        Object::new(json::parse(text.as_bytes()).expect("JSON"), "").expect("an object")
    }

    fn device(state: &str) -> Device {
        Device {
            status: Status::Online,
            state: object(state),
            config: object(r#"{"fadeMs":200}"#),
            created_at: at(0),
            updated_at: at(0),
            config_updated_at: None,
        }
    }

    fn state_after(decision: Result<Option<Device>, Refusal>) -> String {
        match decision {
            Ok(Some(device)) => {
                assert_eq!(device.updated_at, at(9));
                serde_json::to_string(&device.state).expect("JSON")
            }
            other => panic!("expected a write, not {other:?}"),
        }
    }

    #[test]
    fn a_state_with_too_many_values_is_not_written_and_can_be_made_smaller() {
        let members = |count: usize| (0..count).map(|number| format!(r#""{number}":0"#)).collect::<Vec<_>>().join(",");
        let full = format!("{{{}}}", members(MAX_VALUES));
        let refused = Err(Refusal::TooManyValues);
        assert_eq!(decide_patch(&device(&full), &object(r#"{"one more":{}}"#), at(9)), refused);
        assert!(matches!(decide_patch(&device(&full), &object(r#"{"0":null,"one":1}"#), at(9)), Ok(Some(_))));
        // A row of another program, or of an earlier release.
        let stored = Object::new(
            serde_json::from_str(&format!(r#"{{"n":1,"old":{{{}}}}}"#, members(MAX_VALUES))).expect("JSON"),
            "",
        );
        let mut large = device("{}");
        large.state = stored.expect("an object");
        assert_eq!(decide_patch(&large, &object(r#"{"n":2}"#), at(9)), refused);
        assert_eq!(decide_patch(&large, &object(r#"{"n":1}"#), at(9)), Ok(None));
        assert_eq!(state_after(decide_patch(&large, &object(r#"{"old":null}"#), at(9))), r#"{"n":1}"#);
        assert!(matches!(decide_status(&large, Status::Offline, at(9)), Ok(Some(_))));
    }

    #[test]
    fn a_clock_that_is_behind_waits_longer_and_never_less() {
        let mut changed = device("{}");
        changed.config_updated_at = Some(at(1));
        let refused = decide_config(&changed, &object("{}"), Duration::from_mins(5), at(0));
        assert_eq!(refused, Err(Refusal::ChangedTooRecently { wait: Duration::from_secs(301) }));
    }

    #[test]
    fn the_difference_of_two_devices_is_that_of_their_attributes() {
        let states = ["{}", r#"{"a":1}"#, r#"{"a":1e30}"#, r#"{"a":1e30,"b":[]}"#];
        let devices = states.iter().flat_map(|state| {
            let configured = Device { config: object("{}"), config_updated_at: Some(at(1)), ..device(state) };
            [device(state), Device { status: Status::Offline, ..device(state) }, configured]
        });
        let devices: Vec<_> = devices.collect();
        for (old, new) in devices.iter().flat_map(|old| devices.iter().map(move |new| (old, new))) {
            let whole = Diff::between(&old.encode().expect("attributes"), new.encode().expect("attributes"));
            assert_eq!(Device::diff(old, new).expect("a difference"), whole);
        }
    }
}
