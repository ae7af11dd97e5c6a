//! The states of items, as rows and answers tell them.

use fencepost::ItemVersion;
use judges::register::Version;
use serde_json::Value;

/// The number of an attribute, if it has one.
pub fn number(row: &Value, name: &str) -> Option<u64> {
    row[name]["N"].as_str()?.parse().ok()
}

/// The version told to a client, in the type of the judges.
pub fn version(at: ItemVersion) -> Version {
    let row = at.incarnation.as_bytes().try_into().expect("a row of Fencepost");
    Version { row, number: at.version.get() }
}
