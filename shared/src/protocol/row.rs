//! The attributes of this crate beside those of the caller, and [`Row`], which reads them.

use crate::error::Failure;
use crate::protocol::item::{Attributes, size_of_attributes};
use crate::protocol::judge::{SeenRow, is_fenced};
use crate::protocol::memory::{Memory, Trace, WriteId};
use crate::version::{Incarnation, ItemVersion, Version};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::HashMap;

/// Number: the version of the last committed write.
pub(crate) const VERSION: &str = "_version";
/// Binary: the incarnation of the row.
pub(crate) const INCARNATION: &str = "_incarnation";
/// Map of write id to number: the version of the row before each recent write; negative if the write was burned.
pub(crate) const WRITES: &str = "_writes";
/// Number, epoch seconds: marks a tombstone, and says when TTL may remove it. By default the TTL attribute of the
/// table.
pub(crate) const PURGE_AT: &str = "_purgeAt";

/// Number: the highest fencing token of all writes that had one.
pub(crate) const FENCE: &str = "_fence";

/// The attributes of this crate. A value of the caller must not have them.
pub(crate) const OWNED: [&str; 5] = [VERSION, INCARNATION, WRITES, PURGE_AT, FENCE];

/// A row that was read, or that a refusal returned.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub at: ItemVersion,
    /// The time after which TTL may remove the row. `Some` makes the row a tombstone, for as long as the row exists.
    pub purge_at: Option<u64>,
    /// The highest fencing token that the row has seen.
    pub fence: Option<u64>,
    /// The recent writes.
    pub memory: Memory,
    /// All attributes, of this crate and of the caller.
    pub attributes: Attributes,
}

impl Row {
    /// Reads the attributes of this crate.
    ///
    /// # Errors
    /// [`Failure::CorruptItem`] if one is missing or malformed, so that another program or an older build wrote the row.
    /// Repair the row.
    pub(crate) fn read(attributes: Attributes) -> Result<Self, Failure> {
        let SeenRow { version, incarnation, memory, fence } =
            seen(&attributes).ok_or_else(|| corrupt(VERSION, INCARNATION))?;
        let memory = memory.ok_or_else(|| corrupt_memory(&attributes))?;
        let purge_at = purge_at(&attributes)?;
        Ok(Row { at: ItemVersion { version, incarnation }, purge_at, fence, memory, attributes })
    }

    /// Checks that the row has not seen a higher token than this one.
    ///
    /// # Errors
    /// [`Failure::Fenced`] if it has.
    pub(crate) fn check_fence(&self, token: Option<u64>) -> Result<(), Failure> {
        if is_fenced(self.fence, token) { Err(Failure::Fenced) } else { Ok(()) }
    }

    /// The time in an attribute of the value, in epoch seconds.
    pub(crate) fn epoch_seconds(&self, name: &str) -> Option<u64> {
        read_number(self.attributes.get(name)?)
    }
}

/// The time after which TTL may remove the row, in epoch seconds. `None` if the row is not a tombstone.
///
/// # Errors
/// [`Failure::CorruptItem`] if the attribute is malformed.
pub(crate) fn purge_at(attributes: &Attributes) -> Result<Option<u64>, Failure> {
    let Some(value) = attributes.get(PURGE_AT) else { return Ok(None) };
    read_number(value).map(Some).ok_or_else(|| corrupt(PURGE_AT, PURGE_AT))
}

fn corrupt(one: &str, other: &str) -> Failure {
    let names = if one == other { one.to_owned() } else { format!("{one} or {other}") };
    Failure::CorruptItem { reason: format!("{names} is missing or malformed, so it was not written by this crate") }
}

/// The error for a row whose memory cannot be read. Rows of stored format 1, in which 16 numbered slots held the ids of
/// recent writes, say so.
fn corrupt_memory(attributes: &Attributes) -> Failure {
    let is_slot = |value: &AttributeValue| value.is_b();
    match attributes.get(WRITES) {
        Some(AttributeValue::M(slots)) if slots.values().any(is_slot) => Failure::CorruptItem {
            reason: format!(
                "an older build wrote it (stored format 1, this build reads 2): stop all writers, then set {WRITES} to an empty map"
            ),
        },
        _ => corrupt(WRITES, WRITES),
    }
}

/// Reads the parts of a row that the judge needs. `None` if the version or the incarnation cannot be read.
pub(crate) fn seen(attributes: &Attributes) -> Option<SeenRow> {
    let version = Version::new(read_number(attributes.get(VERSION)?)?).filter(|v| *v != Version::ABSENT)?;
    let incarnation = Incarnation::from_bytes(read_id(attributes.get(INCARNATION)?)?);
    let memory = attributes.get(WRITES).and_then(read_memory);
    let fence = attributes.get(FENCE).and_then(read_number);
    Some(SeenRow { version, incarnation, memory, fence })
}

pub(crate) fn read_number(value: &AttributeValue) -> Option<u64> {
    value.as_n().ok()?.parse().ok()
}

fn read_id(value: &AttributeValue) -> Option<[u8; 8]> {
    value.as_b().ok()?.as_ref().try_into().ok()
}

fn read_memory(value: &AttributeValue) -> Option<Memory> {
    let traces = value.as_m().ok()?;
    traces.iter().map(|(name, version)| Some((WriteId::from_name(name)?, read_trace(version)?))).collect()
}

fn read_trace(value: &AttributeValue) -> Option<Trace> {
    let number: i64 = value.as_n().ok()?.parse().ok()?;
    let version = Version::new(number.unsigned_abs())?;
    Some(if number < 0 { Trace::Burned(version) } else { Trace::Applied(version) })
}

pub(crate) fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

pub(crate) fn bytes(value: [u8; 8]) -> AttributeValue {
    AttributeValue::B(Blob::new(value))
}

/// The attributes of this crate in a row that the write `id` creates on a free key.
pub(crate) fn first_attributes(id: WriteId) -> Attributes {
    let before = Version::ABSENT;
    let trace = (id.name(), number(before.get()));
    HashMap::from([
        (VERSION.to_owned(), number(before.next().get())),
        (INCARNATION.to_owned(), bytes(*id.as_bytes())),
        (WRITES.to_owned(), AttributeValue::M(HashMap::from([trace]))),
    ])
}

/// Updates the attributes of this crate in a whole item that replaces the row: raises the version, stores the id in the
/// memory, removes the ids in `prune` from it, and makes the row live.
pub(crate) fn advance(item: &mut Attributes, at: ItemVersion, id: WriteId, prune: &[WriteId]) {
    item.insert(VERSION.to_owned(), number(at.version.next().get()));
    item.remove(PURGE_AT);
    if let Some(AttributeValue::M(traces)) = item.get_mut(WRITES) {
        traces.retain(|name, _| !prune.iter().any(|old| old.name() == *name));
        traces.insert(id.name(), number(at.version.get()));
    }
}

/// The largest item that is sent: the 400 KB of `DynamoDB` less room for the attributes of this crate. So an item that
/// could be created can also be changed and deleted.
pub(crate) const MAX_ITEM: usize = 400 * 1024 - 4096;

/// Refuses an item that would be too large, before anything is sent. Does not count the attributes of this crate.
pub(crate) fn check_size(item: &Attributes) -> Result<(), Failure> {
    let ours = |name: &String| OWNED.contains(&name.as_str());
    let bytes = size_of_attributes(item.iter().filter(|(name, _)| !ours(name)));
    if bytes > MAX_ITEM {
        return Err(Failure::TooLarge { bytes, limit: MAX_ITEM });
    }
    Ok(())
}
