//! A mapping as clients see it: its tag and its JSON.

use crate::mapping::Mapping;
use crate::operation::{ID, Schema, TIMESTAMP};
use fencepost::http::{Ip, Validator};
use fencepost::lww::OrderKey;
use fencepost::{Timestamp, derived_id};
use serde_json::{Value, json};

impl Mapping {
    /// The state of the address, for its `ETag`.
    #[must_use]
    pub fn tag(&self) -> MappingTag {
        let says = derived_id(&["mapping", &self.creation_timestamp.to_string(), &self.instance_id, &self.cell_id]);
        let digest = says.as_bytes().first_chunk().copied().unwrap_or_default();
        MappingTag { creation_timestamp: self.creation_timestamp, digest }
    }
}

/// One state of an address, which its `ETag` tells from others. Another instance can replace a mapping. The mapping
/// itself never changes. So its content determines the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MappingTag {
    creation_timestamp: u64,
    /// The first characters of a digest over the whole mapping.
    digest: [u8; 8],
}

/// `"<creationTimestamp>.<digest>"`.
impl Validator for MappingTag {
    fn etag(self) -> String {
        format!("\"{}.{}\"", self.creation_timestamp, self.digest.escape_ascii())
    }

    fn from_etag(tag: &str) -> Option<Self> {
        let (creation_timestamp, digest) = tag.strip_prefix('"')?.strip_suffix('"')?.split_once('.')?;
        let digest: [u8; 8] = digest.as_bytes().try_into().ok()?;
        if !digest.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte)) {
            return None;
        }
        let at = MappingTag { creation_timestamp: creation_timestamp.parse().ok()?, digest };
        (at.etag() == tag).then_some(at)
    }

    fn number(self) -> u64 {
        self.creation_timestamp
    }
}

/// The schema of a mapping.
pub const MAPPING: Schema = Schema::Named(
    "Mapping",
    &Schema::Object(&[
        ("hostIp", Schema::Json(r#"{"type":"string"}"#)),
        ("cellId", ID),
        ("instanceId", ID),
        ("creationTimestamp", TIMESTAMP),
    ]),
);

/// The mapping as JSON, as clients see it.
#[must_use]
pub fn to_json(ip: Ip, mapping: &Mapping) -> Value {
    json!({
        "hostIp": ip.to_string(),
        "cellId": mapping.cell_id,
        "instanceId": mapping.instance_id,
        "creationTimestamp": Timestamp::from_epoch_millis(mapping.creation_timestamp),
    })
}

/// The order key of an instance as JSON members: its creation time, with its name if it has one.
#[must_use]
pub fn order_key_to_json(key: &OrderKey) -> [(&'static str, Value); 2] {
    [("creationTimestamp", json!(Timestamp::from_epoch_millis(key.order))), ("instanceId", json!(key.name))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mapping_has_a_tag_of_its_own_that_comes_back_even_that_of_1970() {
        let mapping = |creation_timestamp, instance: &str, cell: &str| Mapping {
            cell_id: cell.to_owned(),
            instance_id: instance.to_owned(),
            creation_timestamp,
        };
        let all = [mapping(0, "a", "c"), mapping(1, "a", "c"), mapping(1, "b", "c"), mapping(1, "a", "d")];
        for (index, one) in all.iter().enumerate() {
            assert_eq!(MappingTag::from_etag(&one.tag().etag()), Some(one.tag()));
            assert!(all[..index].iter().all(|other| other.tag() != one.tag()), "{one:?}");
        }
    }
}
