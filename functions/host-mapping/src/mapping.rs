//! A mapping: which instance is behind an address, and in which cell.

use fencepost::idempotency::derived_id;
use fencepost::newest::{Fence, Instance};
use fencepost::request::Ip;
use fencepost::timestamp::Timestamp;
use fencepost::{Incarnation, ItemVersion, Record, Version};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What is known of one address. It is the key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mapping {
    /// The cell that the instance belongs to.
    pub cell_id: String,
    /// The instance.
    pub instance_id: String,
    /// When the instance was created, in milliseconds since 1970: which of two is the newer one.
    pub creation_timestamp: u64,
}

impl Record for Mapping {
    const PARTITION_KEY: &'static str = "hostIp";
    const ATTRIBUTES: &'static [&'static str] = &["cellId", "instanceId", "creationTimestamp"];
}

impl Instance for Mapping {
    const ORDERED_BY: &'static str = "creationTimestamp";
    const NAMED_BY: &'static str = "instanceId";
}

impl Mapping {
    /// Which state of the address this is, for its `ETag`. A mapping is never changed, only replaced by that of another
    /// instance, so it follows from what it says.
    #[must_use]
    pub fn at(&self) -> ItemVersion {
        let at = self.creation_timestamp;
        let says = derived_id(&["mapping", &at.to_string(), &self.instance_id, &self.cell_id]);
        let incarnation = says.as_bytes().first_chunk().copied().unwrap_or_default();
        ItemVersion {
            // No tag names the version 0, which is that of nothing.
            version: Version::new(at.max(1)).unwrap_or(Version::ABSENT),
            incarnation: Incarnation::from_bytes(incarnation),
        }
    }
}

/// A mapping as clients see it.
#[must_use]
pub fn show(ip: Ip, mapping: &Mapping) -> Value {
    json!({
        "hostIp": ip.to_string(),
        "cellId": mapping.cell_id,
        "instanceId": mapping.instance_id,
        "creationTimestamp": Timestamp::from_epoch_millis(mapping.creation_timestamp),
    })
}

/// What clients are shown of an instance: when it was created, and its name where one is meant.
#[must_use]
pub fn show_fence(fence: &Fence) -> [(&'static str, Value); 2] {
    [("creationTimestamp", json!(Timestamp::from_epoch_millis(fence.order))), ("instanceId", json!(fence.name))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost::http::State;

    #[test]
    fn each_mapping_has_a_tag_of_its_own_that_comes_back_even_that_of_1970() {
        let mapping = |creation_timestamp, instance: &str, cell: &str| Mapping {
            cell_id: cell.to_owned(),
            instance_id: instance.to_owned(),
            creation_timestamp,
        };
        let all = [mapping(0, "a", "c"), mapping(1, "a", "c"), mapping(1, "b", "c"), mapping(1, "a", "d")];
        for (index, one) in all.iter().enumerate() {
            assert_eq!(ItemVersion::from_etag(&one.at().etag()), Some(one.at()));
            assert!(all[..index].iter().all(|other| other.at() != one.at()), "{one:?}");
        }
    }
}
