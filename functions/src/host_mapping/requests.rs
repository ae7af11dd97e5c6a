//! Parses bodies and queries to typed requests. All 400s about them come from here.

use crate::mapping::Mapping;
use crate::operation::{GIVEN_TIMESTAMP, ID, Member, Schema};
use fencepost::Timestamp;
use fencepost::http::{Problem, Request};
use fencepost::lww::OrderKey;

/// The schema of an address.
pub const IP: Schema = Schema::Json(
    r#"{"anyOf":[{"type":"string","format":"ipv4"},{"type":"string","format":"ipv6"}],"description":"IPv4 or IPv6. Upper case and `::ffff:` forms are normalised; leading zeros in IPv4 are refused."}"#,
);

/// The schema of a new mapping.
pub const NEW_MAPPING: Schema =
    Schema::Object(&[("cellId", ID), ("instanceId", ID), ("creationTimestamp", GIVEN_TIMESTAMP)]);

/// Parses the mapping in `{cellId, instanceId, creationTimestamp}`.
pub fn parse_mapping(request: &Request, now: Timestamp) -> Result<Mapping, Problem> {
    let mut fields = request.fields()?;
    let cell_id = fields.required_id("cellId")?.to_string();
    let instance_id = fields.required_id("instanceId")?.to_string();
    let creation_timestamp = fields.required_past("creationTimestamp", now)?.epoch_millis().unwrap_or_default();
    fields.finish()?;
    Ok(Mapping { cell_id, instance_id, creation_timestamp })
}

/// The parameters of a deletion.
pub const DELETION: &[Member] = &[
    ("hostIp", IP),
    ("creationTimestamp", GIVEN_TIMESTAMP),
    ("instanceId?", Schema::With(r#"{"description":"Without it, every instance of that moment is meant."}"#, &ID)),
];

/// Parses the instance to delete in `?creationTimestamp=…&instanceId=…`. Without an id, all instances of that moment
/// are deleted. Without a timestamp, the problem is `condition_required`.
pub fn parse_deletion(request: &Request, now: Timestamp) -> Result<OrderKey, Problem> {
    let query = request.query_of(&["creationTimestamp", "instanceId"])?;
    let name = query.optional_id("instanceId")?.map(|id| id.to_string());
    match query.optional_past("creationTimestamp", now)? {
        Some(moment) => Ok(OrderKey { order: moment.epoch_millis().unwrap_or_default(), name }),
        None => Err(Problem::condition_required(
            "say which instance is to be deleted: ?creationTimestamp=…, and &instanceId=… for one of several",
        )),
    }
}
