//! The attributes of this crate beside those of the caller, and [`Row`], which reads them.

use crate::epoch_seconds;
use crate::format::item::{Attributes, digest, size_of_attributes};
use crate::format::layout::{Deletes, Layout, Settings};
use crate::format::names::Names;
use crate::format::{AsKind, AttributeValue, Unwritable};
use crate::{Incarnation, ItemVersion, Memory, SeenRow, Trace, Version, WriteId, is_fenced};
use std::collections::HashMap;
use std::time::SystemTime;

/// A row from a read or a refusal.
///
/// A *foreign* row was written by another program, and was not adopted yet: it has no incarnation and no memory.
#[derive(Clone, Debug)]
pub struct Row {
    pub at: ItemVersion,
    /// Whether the row has a version. Only a foreign row may have none, and is then at version 0.
    pub has_version: bool,
    pub is_tombstone: bool,
    pub purge_at: Option<u64>,
    pub fence: Option<u64>,
    pub memory: Memory,
    /// The size of the item in bytes, without the attributes of this crate. Stays when `attributes` are not kept.
    pub bytes: usize,
    pub attributes: Attributes,
}

impl Row {
    pub fn read(layout: &Layout, attributes: Attributes) -> Result<Self, Unwritable> {
        match Self::read_without_values(layout, &attributes) {
            Ok(row) => Ok(Row { bytes: size_of_item(&layout.names, &attributes), attributes, ..row }),
            Err(failure) => Err(naming_the_key(layout, &attributes, failure)),
        }
    }

    fn read_without_values(layout: &Layout, attributes: &Attributes) -> Result<Self, Unwritable> {
        let names = &layout.names;
        let SeenRow { version, incarnation, memory, fence, .. } =
            seen(layout, attributes).ok_or_else(|| corrupt_version(names, attributes))?;
        let memory = match memory {
            None if incarnation.is_foreign() && !attributes.contains_key(names.writes) => Memory::default(),
            memory => memory.ok_or_else(|| corrupt_memory(names, attributes))?,
        };
        let is_tombstone = is_tombstone(layout, attributes, version)?;
        if is_tombstone && incarnation.is_foreign() {
            let has_mark = layout.marks_by_version() && attributes.contains_key(names.buried);
            let mark = if has_mark { names.buried } else { names.purge_at };
            let reason = format!("it has {mark}, which marks a tombstone here, but no {}", names.incarnation);
            return Err(Unwritable::CorruptItem { reason });
        }
        if attributes.contains_key(names.fence) && fence.is_none() {
            return Err(malformed(names.fence));
        }
        let purge_at = if is_tombstone { purge_at(names, attributes)? } else { None };
        let has_version = attributes.contains_key(names.version);
        let at = ItemVersion { version, incarnation };
        Ok(Row { at, has_version, is_tombstone, purge_at, fence, memory, bytes: 0, attributes: Attributes::new() })
    }

    pub fn check_fence(&self, token: Option<u64>) -> Result<(), Unwritable> {
        if is_fenced(self.fence, token) { Err(Unwritable::Fenced) } else { Ok(()) }
    }
}

/// Names the row that is corrupt by its key, which each row in an answer has.
pub fn naming_the_key(layout: &Layout, attributes: &Attributes, failure: Unwritable) -> Unwritable {
    let names = [Some(layout.partition_key), layout.sort_key].into_iter().flatten();
    let key: Vec<_> = names.filter_map(|name| Some(format!("{name} {:?}", attributes.get(name)?))).collect();
    match failure {
        Unwritable::CorruptItem { reason } => {
            Unwritable::CorruptItem { reason: format!("{reason} (the row with the key {})", key.join(", ")) }
        }
        failure => failure,
    }
}

/// Whether a row of this crate is a tombstone: it was deleted and has not been written since.
///
/// The mark of a tombstone is the version made by the delete. Another program raises the version with its write, which
/// brings the row back to life. Without other writers, the time of a tombstone is mark enough.
pub fn is_tombstone(layout: &Layout, attributes: &Attributes, version: Version) -> Result<bool, Unwritable> {
    let Names { buried, purge_at, .. } = layout.names;
    match attributes.get(buried).filter(|_| layout.marks_by_version()) {
        Some(value) => Ok(read_number(value).ok_or_else(|| malformed(buried))? == version.get()),
        None => Ok(layout.marks_by_time() && attributes.contains_key(purge_at)),
    }
}

/// The time after which the row may be removed, in epoch seconds. `None` if it has none.
pub fn purge_at(names: &Names, attributes: &Attributes) -> Result<Option<u64>, Unwritable> {
    let Some(value) = attributes.get(names.purge_at) else { return Ok(None) };
    read_number(value).map(Some).ok_or_else(|| malformed(names.purge_at))
}

pub fn tombstone(layout: &Layout, key: &Attributes, id: WriteId, purge_at: SystemTime) -> Attributes {
    let mut item = key.clone();
    item.extend(first_attributes(layout, id));
    if layout.marks_by_version() {
        item.insert(layout.names.buried.to_owned(), number(layout.first_version));
    }
    if let Some(seconds) = end_of_tombstone(layout, purge_at) {
        let ends = [layout.names.purge_at].into_iter().chain(layout.ttl_of_values());
        item.extend(ends.map(|name| (name.to_owned(), number(seconds))));
    }
    item
}

/// When a tombstone may be removed, in epoch seconds. `None` if it is kept for ever.
pub fn end_of_tombstone(layout: &Layout, purge_at: SystemTime) -> Option<u64> {
    (layout.deletes != Deletes::Keep).then(|| epoch_seconds(purge_at))
}

/// When TTL or a sweep may remove the row, in epoch seconds: as a tombstone, or because its value ends.
fn ends_at(layout: &Layout, attributes: &Attributes, version: Version) -> Option<u64> {
    let is_tombstone = is_tombstone(layout, attributes, version).unwrap_or(false);
    let name = if is_tombstone { Some(layout.names.purge_at) } else { None };
    let time = |name: Option<&str>| attributes.get(name?).and_then(read_number);
    time(name).or_else(|| time(layout.expires_at))
}

fn malformed(name: &str) -> Unwritable {
    Unwritable::CorruptItem { reason: format!("{name} is malformed, so this crate did not write it") }
}

fn corrupt_version(names: &Names, attributes: &Attributes) -> Unwritable {
    let Names { version, incarnation, .. } = names;
    let reason = match (attributes.get(*version), attributes.get(*incarnation)) {
        (Some(number), _) if read_version(number).is_none() => {
            format!("{version} is not a whole number from 0 to 2^53 - 1")
        }
        (_, Some(bytes)) if read_id(bytes).is_none() => format!("{incarnation} does not have 8 bytes"),
        _ => format!("it has {incarnation} but no {version} of 1 or more"),
    };
    Unwritable::CorruptItem { reason }
}

/// The error for a row with an unreadable memory.
fn corrupt_memory(names: &Names, attributes: &Attributes) -> Unwritable {
    let Names { writes, incarnation, .. } = names;
    let reason = match attributes.get(*writes) {
        Some(_) if !attributes.contains_key(*incarnation) => format!("it has {writes} but no {incarnation}"),
        Some(_) => format!("{writes} is malformed, so this crate did not write it"),
        None => format!("it has {incarnation} but no {writes}"),
    };
    Unwritable::CorruptItem { reason }
}

/// Reads the parts of a row used by the judge. `None` if the version or the incarnation cannot be read.
pub fn seen(layout: &Layout, attributes: &Attributes) -> Option<SeenRow> {
    let names = &layout.names;
    let version = attributes.get(names.version).map_or(Some(Version::ABSENT), read_version)?;
    let fence = attributes.get(names.fence).and_then(read_number);
    let ends_at = ends_at(layout, attributes, version);
    let Some(incarnation) = attributes.get(names.incarnation) else {
        // The digest covers the version too. So it tells version 0 from a missing one.
        let all: Vec<_> = layout.attributes.iter().copied().chain([names.version]).collect();
        let incarnation = Incarnation::of_content(digest(attributes, &all));
        return Some(SeenRow { version, incarnation, memory: None, fence, ends_at });
    };
    let incarnation = Incarnation::from_bytes(read_id(incarnation)?);
    let memory = attributes.get(names.writes).and_then(read_memory);
    (version != Version::ABSENT).then_some(SeenRow { version, incarnation, memory, fence, ends_at })
}

pub fn read_number(value: &AttributeValue) -> Option<u64> {
    value.as_n()?.parse().ok()
}

fn read_version(value: &AttributeValue) -> Option<Version> {
    Version::new(read_number(value)?)
}

pub fn read_id(value: &AttributeValue) -> Option<[u8; 8]> {
    value.as_b()?.as_slice().try_into().ok()
}

fn read_memory(value: &AttributeValue) -> Option<Memory> {
    let traces = value.as_m()?;
    traces.iter().map(|(name, version)| Some((WriteId::from_name(name)?, read_trace(version)?))).collect()
}

fn read_trace(value: &AttributeValue) -> Option<Trace> {
    let number: i64 = value.as_n()?.parse().ok()?;
    let version = Version::new(number.unsigned_abs())?;
    Some(if number < 0 { Trace::Burned(version) } else { Trace::Applied(version) })
}

pub fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

pub fn bytes(value: &[u8]) -> AttributeValue {
    AttributeValue::B(Vec::from(value))
}

pub fn first_memory(id: WriteId, before: u64) -> AttributeValue {
    AttributeValue::M(HashMap::from([(id.name(), number(before))]))
}

/// The attributes of this crate in a row created by the write `id` on a free key.
pub fn first_attributes(layout: &Layout, id: WriteId) -> Attributes {
    let Settings { names, first_version, .. } = &layout.settings;
    let mut attributes = HashMap::from([
        (names.version.to_owned(), number(*first_version)),
        (names.incarnation.to_owned(), bytes(id.as_bytes())),
        (names.writes.to_owned(), first_memory(id, first_version - 1)),
    ]);
    attributes.extend(no_holds(layout));
    attributes
}

/// The empty map of holds, where rows have one.
pub fn no_holds(layout: &Layout) -> Option<(String, AttributeValue)> {
    layout.held.map(|_| (layout.names.holds.to_owned(), AttributeValue::M(HashMap::new())))
}

/// Updates the attributes of this crate in a whole item about to replace the row: raises the version, stores the id in
/// the memory, removes the ids in `prune` from it, and leaves those in `burn` as burned. Adopts a foreign row.
pub fn advance(
    names: &Names,
    item: &mut Attributes,
    at: ItemVersion,
    id: WriteId,
    prune: &[WriteId],
    burn: &[WriteId],
) {
    item.insert(names.version.to_owned(), number(at.version.next().get()));
    if at.incarnation.is_foreign() {
        item.insert(names.incarnation.to_owned(), bytes(id.as_bytes()));
        item.insert(names.writes.to_owned(), first_memory(id, at.version.get()));
    } else if let Some(AttributeValue::M(traces)) = item.get_mut(names.writes) {
        traces.retain(|name, _| !prune.iter().any(|old| old.name() == *name));
        traces.insert(id.name(), number(at.version.get()));
        let burned = || AttributeValue::N(format!("-{}", at.version.get()));
        traces.extend(burn.iter().map(|id| (id.name(), burned())));
    }
}

/// The largest item ever sent: the 400 KB of `DynamoDB` less room for the attributes of this crate. So every created
/// item can also be changed and deleted.
pub const MAX_ITEM: usize = 400 * 1024 - 4096;

/// The size of an item in bytes, without the attributes of this crate.
pub fn size_of_item<'a>(names: &Names, item: impl IntoIterator<Item = (&'a String, &'a AttributeValue)>) -> usize {
    let ours = names.all();
    size_of_attributes(item.into_iter().filter(|(name, _)| !ours.contains(&name.as_str())))
}

/// Refuses an item that would have too many bytes, before anything is sent. `before` are those that it has now: an item
/// that is too large already may become smaller.
pub fn check_size(bytes: usize, before: usize) -> Result<(), Unwritable> {
    if bytes > MAX_ITEM.max(before) {
        return Err(Unwritable::TooLarge { bytes, limit: MAX_ITEM });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::layout::{OtherWriters, Regions};

    const SHARED: Layout = Layout {
        attributes: &["a"],
        settings: Settings::of(OtherWriters::Versioned, Deletes::Sweep, Regions::One),
        ..Layout::of_key("id")
    };

    fn row(layout: &Layout, attributes: &[(&str, u64)]) -> Row {
        let attributes = attributes.iter().map(|(name, value)| ((*name).to_owned(), number(*value))).collect();
        Row::read(layout, attributes).expect("a row")
    }

    #[test]
    fn a_foreign_row_without_a_version_and_one_at_version_0_are_different_states_of_version_0() {
        let (none, zero) = (row(&SHARED, &[("a", 1)]), row(&SHARED, &[("a", 1), ("_version", 0)]));
        assert_eq!((none.has_version, zero.has_version), (false, true));
        assert_eq!([none.at.version, zero.at.version], [Version::ABSENT; 2]);
        assert!(none.at.incarnation.is_foreign() && zero.at.incarnation.is_foreign());
        assert_ne!(none.at, zero.at);
        assert_eq!(none.at, row(&SHARED, &[("a", 1), ("undeclared", 2)]).at);
    }

    #[test]
    fn a_row_is_a_tombstone_while_it_is_at_the_version_of_its_mark_and_a_time_alone_marks_older_ones() {
        let id = WriteId::from_bytes([7; 8]);
        let with = |layout: &Layout, more: &[(&str, u64)]| {
            let mut attributes = first_attributes(layout, id);
            attributes.extend(more.iter().map(|(name, value)| ((*name).to_owned(), number(*value))));
            Row::read(layout, attributes).expect("a row").is_tombstone
        };
        for (marks, is_tombstone) in [
            (&[][..], false),
            (&[("_buried", 5)], false),
            (&[("_version", 5), ("_buried", 5)], true),
            (&[("_version", 5), ("_buried", 5), ("_purgeAt", 9)], true),
            (&[("_version", 6), ("_buried", 5), ("_purgeAt", 9)], false),
            (&[("_version", 4), ("_buried", 5), ("_purgeAt", 9)], false),
            (&[("_purgeAt", 9)], true),
        ] {
            assert_eq!(with(&SHARED, marks), is_tombstone, "{marks:?}");
        }
        // Where TTL removes tombstones, their time is the mark. Under another name, a time was never one.
        let expires = Layout { settings: Settings::own(), ..SHARED };
        assert!(with(&expires, &[("_purgeAt", 9)]) && !with(&expires, &[("_version", 5), ("_buried", 5)]));
        let renamed =
            Layout { settings: Settings { names: Names::DEFAULT.purge_at("ttl"), ..SHARED.settings }, ..SHARED };
        assert!(!with(&renamed, &[("ttl", 9)]) && !with(&renamed, &[("_purgeAt", 9)]));
    }

    #[test]
    fn a_tombstone_without_an_incarnation_is_refused_by_the_name_of_its_mark() {
        let by_time = Layout { settings: Settings::own(), ..SHARED };
        for (layout, marks, named) in [
            (SHARED, &[("_version", 5), ("_buried", 5)][..], "_buried"),
            (SHARED, &[("_version", 5), ("_buried", 5), ("_purgeAt", 9)], "_buried"),
            (SHARED, &[("_version", 5), ("_purgeAt", 9)], "_purgeAt"),
            (by_time, &[("_version", 5), ("_buried", 5), ("_purgeAt", 9)], "_purgeAt"),
        ] {
            let attributes = marks.iter().map(|(name, value)| ((*name).to_owned(), number(*value))).collect();
            match Row::read(&layout, attributes) {
                Err(Unwritable::CorruptItem { reason }) => {
                    assert!(reason.starts_with(&format!("it has {named},")), "{marks:?}: {reason}");
                }
                other => panic!("{marks:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_new_row_remembers_that_its_create_was_applied_before_its_first_version() {
        let id = WriteId::from_bytes([7; 8]);
        for first_version in [1, 4] {
            let layout = Layout { settings: Settings { first_version, ..SHARED.settings }, ..SHARED };
            let row = Row::read(&layout, first_attributes(&layout, id)).expect("a row");
            assert_eq!(row.at.version.get(), first_version);
            let before = Version::new(first_version - 1).expect("a version");
            assert_eq!(row.memory.get(id), Some(Trace::Applied(before)));
        }
    }

    #[test]
    fn a_whole_item_that_replaces_a_row_forgets_what_is_pruned_and_nothing_else() {
        let ids = [1, 2, 3].map(|byte| WriteId::from_bytes([byte; 8]));
        let mut item = first_attributes(&SHARED, ids[0]);
        let burned = WriteId::from_bytes([9; 8]);
        for (at, id, prune, burn) in [(1, ids[1], &[][..], &[][..]), (2, ids[2], &[ids[0]], &[burned])] {
            let at = Row::read(&SHARED, item.clone())
                .map(|row| ItemVersion { version: Version::new(at).expect("small"), ..row.at });
            advance(&SHARED.names, &mut item, at.expect("a row"), id, prune, burn);
        }
        let row = Row::read(&SHARED, item).expect("a row");
        assert_eq!(row.at.version.get(), 3);
        let traces = ids.map(|id| row.memory.get(id));
        let applied = |at| Some(Trace::Applied(Version::new(at).expect("small")));
        assert_eq!(traces, [None, applied(1), applied(2)]);
        assert_eq!(row.memory.get(burned), Some(Trace::Burned(Version::new(2).expect("small"))));
    }

    /// 400 KB less 4 KB for the attributes of this crate, which do not count.
    #[test]
    fn an_item_of_396_kb_is_sent_and_a_larger_one_is_not() {
        let mut item = first_attributes(&SHARED, WriteId::from_bytes([7; 8]));
        for (bytes, is_sent) in [(405_503, true), (405_504, true), (405_505, false), (500_000, false)] {
            item.insert("a".to_owned(), AttributeValue::S("x".repeat(bytes - "a".len())));
            match check_size(size_of_item(&SHARED.names, &item), 0) {
                Ok(()) => assert!(is_sent, "{bytes}"),
                Err(Unwritable::TooLarge { bytes: counted, limit: 405_504 }) => {
                    assert_eq!((counted, is_sent), (bytes, false));
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert!(check_size(405_505, 405_505).is_ok() && check_size(405_506, 405_505).is_err());
    }

    #[test]
    fn a_row_that_cannot_be_read_says_which_attribute_is_wrong() {
        let id = WriteId::from_bytes([7; 8]);
        let text = AttributeValue::S("x".to_owned());
        let with = |name: &str, value: Option<AttributeValue>| {
            let mut attributes = first_attributes(&SHARED, id);
            attributes.insert("id".to_owned(), AttributeValue::S("k".to_owned()));
            match value {
                Some(value) => attributes.insert(name.to_owned(), value),
                None => attributes.remove(name),
            };
            attributes
        };
        let foreign = |name: &str, value| Attributes::from([(name.to_owned(), value)]);
        for (attributes, reason) in [
            (with("_version", Some(text.clone())), "_version is not a whole number"),
            (with("_version", Some(number(1 << 53))), "_version is not a whole number"),
            (with("_version", Some(number(0))), "it has _incarnation but no _version of 1 or more"),
            (with("_version", None), "it has _incarnation but no _version of 1 or more"),
            (with("_incarnation", Some(bytes(&[1]))), "_incarnation does not have 8 bytes"),
            (with("_incarnation", None), "it has _writes but no _incarnation"),
            (with("_writes", None), "it has _incarnation but no _writes"),
            (with("_writes", Some(text.clone())), "_writes is malformed"),
            (with("_fence", Some(text.clone())), "_fence is malformed"),
            (with("_purgeAt", Some(text.clone())), "_purgeAt is malformed"),
            (foreign("_version", text.clone()), "_version is not a whole number"),
            (foreign("_writes", AttributeValue::M(HashMap::new())), "it has _writes but no _incarnation"),
        ] {
            let failure = Row::read(&SHARED, attributes).expect_err(reason).to_string();
            assert!(failure.contains(reason) && failure.contains("(the row with the key "), "{reason}: {failure}");
        }
    }

    #[test]
    fn a_row_ends_as_a_tombstone_or_with_its_value_and_refuses_an_older_token() {
        let layout = Layout { attributes: &["a"], expires_at: Some("a"), ..Layout::of_key("id") };
        let own = |more: &[(&str, u64)]| {
            let mut attributes = first_attributes(&layout, WriteId::from_bytes([7; 8]));
            attributes.extend(more.iter().map(|(name, value)| ((*name).to_owned(), number(*value))));
            attributes
        };
        for (more, purge_at, ends_at) in
            [(&[][..], None, None), (&[("a", 5)], None, Some(5)), (&[("a", 5), ("_purgeAt", 9)], Some(9), Some(9))]
        {
            let (row, seen) = (Row::read(&layout, own(more)).expect("a row"), seen(&layout, &own(more)));
            assert_eq!((row.purge_at, seen.expect("a row").ends_at), (purge_at, ends_at), "{more:?}");
        }
        let row = Row::read(&layout, own(&[("_fence", 7)])).expect("a row");
        assert_eq!([6, 7, 8].map(|token| row.check_fence(Some(token)).is_ok()), [false, true, true]);
        assert!(row.check_fence(None).is_ok());
    }
}
