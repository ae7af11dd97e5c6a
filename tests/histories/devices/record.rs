//! The item that the writers race for, what they did, and what they were told.

use fencepost::{Failure, ItemVersion, Record, Versioned};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

pub const TABLE: &str = "Ledgers";

/// Every change leaves the number of its operation, so that one applied twice is seen in the value itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    pub operations: Vec<u64>,
}

impl Record for Ledger {
    const PARTITION_KEY: &'static str = "id";
    const ATTRIBUTES: &'static [&'static str] = &["operations"];
}

/// What an operation was told.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// Applied, and this is the state that it left.
    Applied(ItemVersion),
    /// Not applied, and nothing is claimed about the row.
    NotApplied,
    /// Not applied (or only read); this was the row's state at some moment of the call.
    Saw(ItemVersion),
    /// Not applied (or only read); at some moment of the call nothing was there.
    SawNothing,
    /// Nobody knows.
    Unknown,
}

#[derive(Debug)]
pub struct Operation {
    pub number: u64,
    pub what: &'static str,
    pub began: Instant,
    pub ended: Instant,
    pub told: Told,
}

pub fn by_failure(failure: &Failure) -> Told {
    match failure {
        Failure::Contention { .. } | Failure::Unavailable { .. } | Failure::Rejected { .. } => Told::NotApplied,
        Failure::OutcomeUnknown { .. } => Told::Unknown,
        _ => panic!("no such thing happens here: {failure}"),
    }
}

pub fn at<T>(versioned: &Versioned<T>) -> Told {
    Told::Saw(versioned.at)
}

/// The state that a stored row is in; `None` for no row and for a tombstone's reader.
pub fn state_of(row: &Value) -> Option<ItemVersion> {
    let version = row["_version"]["N"].as_str()?.parse().ok().and_then(fencepost::Version::new)?;
    let base64 = row["_incarnation"]["B"].as_str()?;
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&aws_smithy_types::base64::decode(base64).ok()?);
    Some(ItemVersion { version, incarnation: fencepost::Incarnation::from_bytes(bytes) })
}

pub fn is_live(row: &Value) -> bool {
    row.is_object() && row.get("_purgeAt").is_none()
}
