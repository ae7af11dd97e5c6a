//! A device, and what may become of it: pure decisions, told the time.

use fencepost::http::{Problem, Resource};
use fencepost::json::{Decimal, Object, value_of};
use fencepost::timestamp::Timestamp;
use fencepost::{Attributes, Decision, ItemVersion, Record, Source};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::time::Duration;

/// What is known of one device. Its id is the key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// Whether it can be reached.
    pub status: Status,
    /// What it does: free-form.
    #[serde(skip)] // free-form JSON goes to attributes through fencepost::json, exactly
    pub state: Object,
    /// How it is set up: free-form.
    #[serde(skip)]
    pub config: Object,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was written last.
    pub updated_at: Timestamp,
    /// When its configuration was changed last; creation does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_updated_at: Option<Timestamp>,
}

/// Whether a device can be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It can.
    Online,
    /// It can not.
    Offline,
}

impl Record for Device {
    const PARTITION_KEY: &'static str = "deviceId";
    const ATTRIBUTES: &'static [&'static str] =
        &["status", "state", "config", "createdAt", "updatedAt", "configUpdatedAt"];

    fn encode(&self) -> Result<Attributes, Source> {
        let mut attributes: Attributes = serde_dynamo::to_item(self)?;
        attributes.insert("state".to_owned(), self.state.to_attribute());
        attributes.insert("config".to_owned(), self.config.to_attribute());
        Ok(attributes)
    }

    fn decode(mut attributes: Attributes) -> Result<Self, Source> {
        let mut object = |name: &str| -> Result<Object, Source> {
            let attribute = attributes.remove(name).ok_or_else(|| format!("{name} is missing"))?;
            Ok(Object::from_attribute(attribute).map_err(|reason| format!("{name}: {reason}"))?)
        };
        let (state, config) = (object("state")?, object("config")?);
        let rest: Device = serde_dynamo::from_item(attributes)?;
        Ok(Device { state, config, ..rest })
    }
}

impl Resource for Device {
    const NOT_FOUND: (&'static str, &'static str) = ("device_not_found", "there is no device with this id");
    const EXISTS: (&'static str, &'static str) = ("device_exists", "there is a device with this id");

    fn location(&self, id: &str) -> String {
        format!("/devices/{id}")
    }

    fn to_json(&self, id: &str, at: ItemVersion) -> Value {
        let mut json = json!({
            "deviceId": id,
            "status": self.status,
            "state": self.state,
            "config": self.config,
            "version": at.version.get(),
            "createdAt": self.created_at,
            "updatedAt": self.updated_at,
        });
        if let Some(changed) = self.config_updated_at {
            json["configUpdatedAt"] = json!(changed);
        }
        json
    }
}

/// A change of one number in `state`, relative to what is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Adjustment {
    /// The literal top-level name in `state`.
    pub attribute: String,
    /// What is added to it.
    pub by: Decimal,
    /// What the result may not be below.
    pub min: Option<Decimal>,
    /// What the result may not be above.
    pub max: Option<Decimal>,
    /// What happens at a limit.
    pub on_limit: OnLimit,
}

/// What an adjustment does whose result is outside its limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnLimit {
    /// It is refused.
    Refuse,
    /// Its result is moved to the limit.
    Clamp,
}

/// Why a change is refused by the state of the device. Nothing is written then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The result would be outside the limits.
    LimitReached {
        /// What the attribute is now.
        current: Decimal,
    },
    /// The attribute is missing, or is no number.
    NotANumber,
    /// The exact result has more digits than are kept.
    NotRepresentable,
    /// The device is offline.
    Offline,
    /// The configuration was changed only a moment ago.
    ChangedTooRecently {
        /// How long until it may be changed again.
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
            Refusal::Offline => Problem::refused("device_offline", "the device must be online to be configured"),
            Refusal::ChangedTooRecently { wait } => {
                Problem::refused("changed_too_recently", "the configuration was changed a moment ago").retry_after(wait)
            }
        }
    }
}

/// Merges a patch into the state. A patch that changes nothing writes nothing.
#[must_use]
pub fn decide_patch(device: &Device, patch: &Object, now: Timestamp) -> Decision<Device, Refusal> {
    put_if_changed(device, Device { state: device.state.merged(patch), ..device.clone() }, now)
}

/// Adds to one number of the state, exactly, within limits.
///
/// The limits are compared with the exact sum, before it has to be representable: so a clamp that
/// ends at a limit never fails for digits that nobody asked to keep.
#[must_use]
pub fn decide_adjust(device: &Device, adjustment: &Adjustment, now: Timestamp) -> Decision<Device, Refusal> {
    let Some(current) = device.state.number(&adjustment.attribute) else {
        return Decision::Refuse(Refusal::NotANumber);
    };
    let sum = current.plus(&adjustment.by);
    let below = adjustment.min.as_ref().filter(|min| sum.compare(min) == Ordering::Less);
    let above = adjustment.max.as_ref().filter(|max| sum.compare(max) == Ordering::Greater);
    let result = match (below.or(above), adjustment.on_limit) {
        (None, _) => sum.to_decimal(),
        (Some(limit), OnLimit::Clamp) => Ok(limit.clone()),
        (Some(_), OnLimit::Refuse) => return Decision::Refuse(Refusal::LimitReached { current }),
    };
    let Ok(result) = result else {
        return Decision::Refuse(Refusal::NotRepresentable);
    };
    let state = device.state.with_number(&adjustment.attribute, &result);
    put_if_changed(device, Device { state, ..device.clone() }, now)
}

/// Sets the status. The status that it has already writes nothing.
#[must_use]
pub fn decide_status(device: &Device, status: Status, now: Timestamp) -> Decision<Device, Refusal> {
    put_if_changed(device, Device { status, ..device.clone() }, now)
}

/// Replaces the configuration: only while online, and not sooner than `interval` after the last change.
///
/// The configuration that it has already is no change: it is answered with the device as it is, is
/// not held to the interval and does not start it anew. So a client whose answer was lost can repeat
/// its request, and learns that it is done instead of `changed_too_recently`.
#[must_use]
pub fn decide_config(
    device: &Device,
    config: &Object,
    interval: Duration,
    now: Timestamp,
) -> Decision<Device, Refusal> {
    if device.status == Status::Offline {
        return Decision::Refuse(Refusal::Offline);
    }
    if device.config == *config {
        return Decision::Keep;
    }
    if let Some(changed) = device.config_updated_at {
        // `changed` may lie ahead of this function's clock; then the wait is the longer for it.
        let wait = (interval + changed.since(now)).saturating_sub(now.since(changed));
        if !wait.is_zero() {
            return Decision::Refuse(Refusal::ChangedTooRecently { wait });
        }
    }
    let next = Device { config: config.clone(), config_updated_at: Some(now), ..device.clone() };
    put_if_changed(device, next, now)
}

/// Writes the next value at this time, unless it is the same.
fn put_if_changed(device: &Device, next: Device, now: Timestamp) -> Decision<Device, Refusal> {
    if next == *device { Decision::Keep } else { Decision::Put(Device { updated_at: now, ..next }) }
}

#[cfg(test)]
mod tests;
