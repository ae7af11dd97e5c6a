//! The item that the writers race for, in two builds of a program.

use crate::harness::states;
use crate::histories::item::Stored;
use fencepost::{Add, ItemVersion, Record, Settings};
use judges::register;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub const TABLE: &str = "Ledgers";
pub const NOTES: &str = "Notes";
/// The attribute that only today's build knows.
pub const NOTED: &str = "noted";
/// The highest stock. It is low to make refusals common.
pub const MOST: i64 = 10;
/// The number of writes that a ledger remembers.
pub const REMEMBERED: u64 = 12;

/// The form in which a build stores the ledger.
pub trait Build: Record + From<Ledger> + Into<Ledger> + Clone {}

impl Build for Ledger {}
impl Build for Today {}

/// The ledger in today's build, with an attribute unknown to the build before, and another window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Today {
    #[serde(flatten)]
    ledger: Ledger,
    /// The operation of the last change by this build. Adds, and all changes by the build before, leave it unchanged.
    noted: Option<u64>,
}

impl Record for Today {
    const PARTITION_KEY: &'static str = Ledger::PARTITION_KEY;
    const ATTRIBUTES: &'static [&'static str] = &["operations", "stock", "level", NOTED];
    const SETTINGS: Settings = Ledger::SETTINGS.add_window(4);
}

impl From<Ledger> for Today {
    fn from(ledger: Ledger) -> Self {
        Today { noted: ledger.operations.last().copied(), ledger }
    }
}

impl From<Today> for Ledger {
    fn from(today: Today) -> Self {
        today.ledger
    }
}

/// The ledger in the build before.
///
/// Every change leaves the number of its operation, which shows a change that is applied twice. An add changes only the
/// stock. The level follows from the stock.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Record)]
#[record(key = "id", settings = Settings::own().remembered_writes(REMEMBERED).add_window(REMEMBERED))]
pub struct Ledger {
    pub operations: Vec<u64>,
    pub stock: i64,
    pub level: String,
}

impl Ledger {
    fn of(stock: i64) -> Self {
        Ledger { operations: Vec::new(), stock, level: if stock < 5 { "low" } else { "high" }.to_owned() }
    }

    /// Whether the value follows the rules of the ledger.
    pub fn is_right(&self) -> bool {
        (0..=MOST).contains(&self.stock) && self.level == Ledger::of(self.stock).level
    }
}

impl register::Value for Ledger {
    type Amount = i64;

    fn plus(&self, amount: &i64) -> Option<Self> {
        let sum = Ledger { operations: self.operations.clone(), ..Ledger::of(self.stock + amount) };
        Some(sum).filter(Ledger::is_right)
    }
}

impl Stored for Ledger {
    const COPIES_COUNT: bool = true;

    fn of(row: &Value) -> Option<Self> {
        if !is_live(row) {
            return None;
        }
        let number = |value: &Value| value["N"].as_str().and_then(|number| number.parse::<i64>().ok());
        let operations = row["operations"]["L"].as_array()?.iter().map(number);
        let operations = operations.map(|number| number.and_then(|number| number.try_into().ok()));
        let level = row["level"]["S"].as_str()?.to_owned();
        Some(Ledger { operations: operations.collect::<Option<_>>()?, stock: number(&row["stock"])?, level })
    }

    fn is_at(row: &Value, at: ItemVersion) -> bool {
        state_of(row) == Some(at)
    }

    fn judged(at: ItemVersion) -> Option<register::Version> {
        Some(states::version(at))
    }

    fn first(number: u64) -> Self {
        Ledger { operations: vec![number], ..Ledger::of(5) }
    }

    fn changed(&self, number: u64) -> Self {
        let operations = self.operations.iter().copied().chain([number]).collect();
        Ledger { operations, ..Ledger::of((self.stock + 3) % (MOST + 1)) }
    }

    fn amount(number: u64) -> i64 {
        let drawn = i64::try_from(number * 7919 % 12).expect("small");
        if drawn < 6 { drawn - 6 } else { drawn - 5 }
    }
}

/// The row that some transactions put beside the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "id")]
pub struct Note {
    pub by: i64,
}

/// The add of an operation: up to 6 either way, never 0.
pub fn add(number: u64) -> Add {
    Add::to("stock", Ledger::amount(number), 0..=MOST).bands("level", "stock", [(0..=4, "low"), (5..=MOST, "high")])
}

/// The state of a stored row. `None` if there is no row.
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
