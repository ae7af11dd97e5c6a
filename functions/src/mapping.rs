//! A mapping, which `host-mapping` and `delete-mapping` change: the instance behind an address with its cell.

use crate::function::Variable;
use fencepost::Record;
use fencepost::lww::LwwRecord;
use serde::{Deserialize, Serialize};

/// The table of mappings.
pub const MAPPINGS_TABLE: Variable = Variable::table("MAPPINGS_TABLE", "the table of host mappings");

/// The value of one address. The address is the key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Record)]
#[record(key = "hostIp")]
#[serde(rename_all = "camelCase")]
pub struct Mapping {
    /// The cell of the instance.
    pub cell_id: String,
    /// The id of the instance.
    pub instance_id: String,
    /// The creation time of the instance, in milliseconds since 1970. It decides which of two instances is newer.
    pub creation_timestamp: u64,
}

impl LwwRecord for Mapping {
    const ORDERED_BY: &'static str = "creationTimestamp";
    const NAMED_BY: &'static str = "instanceId";
}
