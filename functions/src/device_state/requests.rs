//! Parses bodies to typed requests. All 400s about bodies come from here.

use crate::device_state::device::{Adjustment, Device, OnLimit, STATUS, Status};
use crate::operation::{NUMBER, OWN_NAMES, Schema};
use fencepost::Timestamp;
use fencepost::http::{Fields, Problem, Request};
use fencepost::json::{Object, value_of};
use serde::Serialize;
use serde_json::{Value, json};

/// The schema of a new device.
pub const NEW_DEVICE: Schema =
    Schema::Named("NewDevice", &Schema::Object(&[("state", OWN_NAMES), ("status?", STATUS), ("config?", OWN_NAMES)]));

/// Parses the new device in `{state, status?="offline", config?={}}`. It is created at `now`.
pub fn parse_device(request: &Request, now: Timestamp) -> Result<Device, Problem> {
    let mut fields = request.fields()?;
    let device = Device {
        state: fields.required_object("state")?,
        status: fields.optional_text("status")?.map_or(Ok(Status::Offline), |text| parse_status_name(&text))?,
        config: fields.optional_object("config")?.unwrap_or_default(),
        created_at: now,
        updated_at: now,
        config_updated_at: None,
    };
    fields.finish()?;
    Ok(device)
}

/// The payload of the request for a new device, in one notation and with its defaults. The time of the request is left
/// out.
#[must_use]
pub fn payload_of_device(device: &Device) -> impl Serialize {
    #[derive(Serialize)]
    struct Payload<'a> {
        config: &'a Object,
        state: &'a Object,
        status: Status,
    }
    Payload { config: &device.config, state: &device.state, status: device.status }
}

/// The schema of an adjustment.
pub const ADJUSTMENT: Schema = Schema::Named(
    "DeviceAdjustment",
    &Schema::Object(&[
        (
            "attribute",
            Schema::Json(r#"{"type":"string","description":"The name of a number at the top level of the state."}"#),
        ),
        ("by", NUMBER),
        ("min?", NUMBER),
        ("max?", NUMBER),
        ("onLimit?", Schema::With(r#"{"default":"refuse"}"#, &Schema::OneOf(&["refuse", "clamp"]))),
    ]),
);

/// Parses the adjustment in `{attribute, by, min?, max?, onLimit?="refuse"}`.
pub fn parse_adjustment(request: &Request) -> Result<Adjustment, Problem> {
    let mut fields = request.fields()?;
    let adjustment = Adjustment {
        attribute: fields.required_text("attribute")?,
        by: fields.required_number("by")?,
        min: fields.optional_number("min")?,
        max: fields.optional_number("max")?,
        on_limit: fields.optional_text("onLimit")?.map_or(Ok(OnLimit::Refuse), |text| parse_on_limit(&text))?,
    };
    fields.finish()?;
    if let (Some(min), Some(max)) = (&adjustment.min, &adjustment.max)
        && min > max
    {
        return Err(Fields::invalid("min", "invalid_value", "min must not be above max"));
    }
    Ok(adjustment)
}

/// The payload of the request for an adjustment, in one notation and with its defaults.
#[must_use]
pub fn payload_of_adjustment(adjustment: &Adjustment) -> Value {
    json!({
        "attribute": adjustment.attribute,
        "by": value_of(&adjustment.by),
        "min": adjustment.min.as_ref().map(value_of),
        "max": adjustment.max.as_ref().map(value_of),
        "onLimit": match adjustment.on_limit {
            OnLimit::Refuse => "refuse",
            OnLimit::Clamp => "clamp",
        },
    })
}

/// The schema of a request for a status.
pub const NEW_STATUS: Schema = Schema::Object(&[("status", STATUS)]);

/// Parses the status in `{status}`.
pub fn parse_status(request: &Request) -> Result<Status, Problem> {
    let mut fields = request.fields()?;
    let status = parse_status_name(&fields.required_text("status")?)?;
    fields.finish()?;
    Ok(status)
}

fn parse_status_name(text: &str) -> Result<Status, Problem> {
    match text {
        "online" => Ok(Status::Online),
        "offline" => Ok(Status::Offline),
        _ => Err(Fields::invalid("status", "invalid_value", "the status is online or offline")),
    }
}

fn parse_on_limit(text: &str) -> Result<OnLimit, Problem> {
    match text {
        "refuse" => Ok(OnLimit::Refuse),
        "clamp" => Ok(OnLimit::Clamp),
        _ => Err(Fields::invalid("onLimit", "invalid_value", "onLimit is refuse or clamp")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost::http::Body;
    use std::time::{Duration, SystemTime};

    fn request(body: &str) -> Request {
        Request { body: Body { text: body.to_owned(), is_base64: false }, ..Request::default() }
    }

    #[test]
    fn equal_requests_have_equal_payloads_and_others_do_not() {
        let adjustment =
            |body: &str| payload_of_adjustment(&parse_adjustment(&request(body)).expect("one")).to_string();
        let first = adjustment(r#"{"attribute":"n","by":1,"max":100}"#);
        assert_eq!(adjustment(r#" {"onLimit": "refuse", "max": 1e2, "by": 1.0, "attribute": "\u006e"}"#), first);
        for other in [
            r#"{"attribute":"m","by":1,"max":100}"#,
            r#"{"attribute":"n","by":2,"max":100}"#,
            r#"{"attribute":"n","by":1,"min":100}"#,
            r#"{"attribute":"n","by":1}"#,
            r#"{"attribute":"n","by":1,"max":100,"onLimit":"clamp"}"#,
        ] {
            assert_ne!(adjustment(other), first, "{other}");
        }
        let device = |body: &str, millis: u64| {
            let now = Timestamp::from(SystemTime::UNIX_EPOCH + Duration::from_millis(millis));
            serde_json::to_string(&payload_of_device(&parse_device(&request(body), now).expect("a device")))
                .expect("JSON")
        };
        let first = device(r#"{"state":{"b":1.50,"a":{}}}"#, 0);
        // Existing records have hashes of this text. A change here makes their repeats other requests.
        assert_eq!(first, r#"{"config":{},"state":{"a":{},"b":1.5},"status":"offline"}"#);
        assert_eq!(device(r#"{"config":{},"status":"offline","state":{"a":{},"b":15e-1}}"#, 1), first);
        for other in [
            r#"{"state":{"b":1.5}}"#,
            r#"{"state":{"b":1.5,"a":{}},"status":"online"}"#,
            r#"{"state":{"b":1.5,"a":{}},"config":{"a":1}}"#,
            r#"{"state":{"b":"1.5","a":{}}}"#,
        ] {
            assert_ne!(device(other, 0), first, "{other}");
        }
    }
}
