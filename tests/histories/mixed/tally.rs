//! The item that Fencepost and another program write together, with the contents of its stored rows.

use crate::harness::states::number;
use crate::histories::item::Stored;
use fencepost::{ItemVersion, Names, Record, Settings};
use judges::register;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub const TABLE: &str = "Tallies";
pub const KEY: &str = "id";
/// Only Fencepost writes notes.
pub const NOTES: &str = "Notes";
/// The attribute names of a table from another program.
pub const NAMES: Names = Names::DEFAULT.version("version").purge_at("endsAt");
/// The first number for operations of the other program.
pub const FOREIGN: u64 = 1 << 32;
/// The operation that removes ended tombstones.
pub const SWEEP: u64 = u64::MAX;

/// The other writers, as the `Record` declares them.
pub const NOBODY: u8 = 0;
pub const VERSIONED: u8 = 1;
pub const ANY: u8 = 2;

/// Every change leaves the number of its operation and counts. An add only counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tally<const OTHERS: u8> {
    pub operations: Vec<u64>,
    pub count: i64,
}

impl<const OTHERS: u8> Record for Tally<OTHERS> {
    const PARTITION_KEY: &'static str = KEY;
    const ATTRIBUTES: &'static [&'static str] = &["operations", "count"];
    const SETTINGS: Settings = match OTHERS {
        NOBODY => Settings::without_ttl().swept(),
        VERSIONED => Settings::without_ttl().shared_with_versioned_writers().swept(),
        _ => Settings::open_to_any(),
    }
    .names(NAMES)
    .remembered_writes(12)
    .add_window(4);
}

/// The row that a transaction creates beside the tally.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    pub by: u64,
}

impl Record for Note {
    const PARTITION_KEY: &'static str = KEY;
    const ATTRIBUTES: &'static [&'static str] = &["by"];
}

/// The contents of a stored row, from any writer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Counts {
    pub operations: Vec<u64>,
    pub count: i64,
}

impl register::Value for Counts {
    type Amount = i64;

    fn plus(&self, amount: &i64) -> Option<Self> {
        Some(Counts { count: self.count + amount, ..self.clone() })
    }
}

impl Stored for Counts {
    /// A refused change is decided again. If the old values return, a second copy is applied in addition.
    const COPIES_COUNT: bool = false;

    fn of(row: &Value) -> Option<Self> {
        if !row.is_object() || row["_buried"]["N"].as_str().is_some_and(|at| row["version"]["N"] == at) {
            return None;
        }
        let operations = row["operations"]["L"].as_array().into_iter().flatten();
        let operations = operations.map(|number| number["N"].as_str().expect("a number").parse().expect("small"));
        let count = row["count"]["N"].as_str().map_or(0, |count| count.parse().expect("small"));
        Some(Counts { operations: operations.collect(), count })
    }

    /// Rows of the other program have no incarnation.
    fn is_at(row: &Value, at: ItemVersion) -> bool {
        version_of(row) == at.version.get()
    }

    /// Versions of the other program may fall.
    fn judged(_: ItemVersion) -> Option<register::Version> {
        None
    }

    fn first(number: u64) -> Self {
        Counts { operations: vec![number], count: 0 }
    }

    fn changed(&self, number: u64) -> Self {
        let operations = self.operations.iter().copied().chain([number]).collect();
        Counts { operations, count: self.count + 1 }
    }

    fn amount(_: u64) -> i64 {
        1
    }
}

impl<const OTHERS: u8> From<Counts> for Tally<OTHERS> {
    fn from(Counts { operations, count }: Counts) -> Self {
        Tally { operations, count }
    }
}

impl<const OTHERS: u8> From<Tally<OTHERS>> for Counts {
    fn from(Tally { operations, count }: Tally<OTHERS>) -> Self {
        Counts { operations, count }
    }
}

/// The version of a stored row, 0 if it has none.
pub fn version_of(row: &Value) -> u64 {
    number(row, "version").unwrap_or_default()
}
