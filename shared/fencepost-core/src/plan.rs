//! Prepares a write: turns the observed state of a key and the intended change into a request.

use crate::WriteId;
use crate::condition::{self, Clauses, Commit, ConditionalWrite, Demand, Operation};
use crate::edit::{Room, room};
use crate::format::item::{Attributes, Diff};
use crate::format::layout::{Deletes, Layout};
use crate::format::row::{self, Row, check_size, size_of_item};
use crate::format::value;
use crate::format::{AsKind, Unwritable};
use crate::{Base, ItemVersion, SentWrite, Version, is_soon};
use std::time::{Duration, SystemTime};

pub enum Write<'a> {
    Create(Attributes),
    Revive(&'a Row, Attributes),
    Update(&'a Row, Diff),
    /// Edits the item, in a window from this version on, if the item has [room](room()) for it. Holds the row, if it was
    /// seen.
    Edit(ItemVersion, Option<&'a Row>, &'a Clauses),
    /// Edits the item at the version of this row alone.
    EditAt(&'a Row, &'a Clauses),
    /// Deletes the item at this version. Holds the row, if it was read.
    Delete(ItemVersion, Option<&'a Row>),
}

/// A write in the form sent, with its description for the judge.
pub struct Prepared {
    pub request: ConditionalWrite,
    pub sent: SentWrite,
    /// Whether the version may be made up by a client.
    pub is_named_by_client: bool,
}

impl Write<'_> {
    pub fn row(&self) -> Option<ItemVersion> {
        match self {
            Write::Create(_) => None,
            Write::Revive(row, _) | Write::Update(row, ..) | Write::EditAt(row, _) => Some(row.at),
            Write::Edit(at, ..) | Write::Delete(at, _) => Some(*at),
        }
    }
}

impl<'a> Write<'a> {
    /// Builds the request and its description for the judge. Fills in the ids to forget. A tombstone left by the write
    /// is kept for the `retention`, from `now` on.
    ///
    /// # Errors
    /// [`Unwritable::Fenced`]: the observed row has seen a higher token. Acquire the lease again.
    pub fn prepare(
        self,
        layout: &'a Layout,
        key: &Attributes,
        commit: Commit<'_>,
        now: SystemTime,
        retention: Duration,
    ) -> Result<Prepared, Unwritable> {
        let row = match &self {
            Write::Create(_) => None,
            Write::Revive(row, _) | Write::Update(row, _) | Write::EditAt(row, _) => {
                row.check_fence(commit.fence)?;
                check_room(layout, row.at)?;
                Some(*row)
            }
            Write::Edit(at, row, _) => {
                check_room(layout, *at)?;
                row.map_or(Ok(()), |row| row.check_fence(commit.fence))?;
                *row
            }
            Write::Delete(at, row) => {
                check_room(layout, *at)?;
                let holds = row.and_then(|row| row.attributes.get(layout.names.holds)?.as_m());
                if layout.held.is_some() && holds.is_some_and(|holds| !holds.is_empty()) {
                    return Err(Unwritable::Held);
                }
                *row
            }
        };
        let prune = row.map(|row| prunable(layout, row, commit.id, commit.burn)).unwrap_or_default();
        let commit = &Commit { prune: &prune, ..commit };
        let demand_of = |at, row: Option<&'a Row>| match row {
            Some(row) => Some(Demand::of(layout, row)),
            None => Demand::at(layout, at),
        };
        let is_named_by_client = matches!(self, Write::Delete(..));
        let (request, on) = match self {
            Write::Create(item) => (create(layout, item, key, commit)?, Base::NoRow(first_version(layout))),
            Write::Revive(row, mut item) => {
                // The key stays, also where it is a field of the value.
                item.retain(|name, _| !key.contains_key(name));
                item.extend(row::no_holds(layout));
                let change = Diff::between(&leftovers(layout, row), item);
                (change_row(layout, row, change, key, commit)?, Demand::of(layout, row).base())
            }
            Write::Update(row, mut change) => {
                value::keep_all_sets(&row.attributes, &mut change)?;
                (change_row(layout, row, change, key, commit)?, Demand::of(layout, row).base())
            }
            Write::Edit(at, row, clauses) => {
                let demand = demand_of(at, row).ok_or_else(too_long_edit)?;
                let demand = match room(layout, row, clauses)? {
                    Room::InWindow => demand.in_window(),
                    Room::AtItsVersion | Room::Unknown => demand,
                };
                let edit = |commit: &Commit<'_>| condition::edit_within(key.clone(), &demand, commit, clauses);
                // Forgetting ids is optional.
                let write = edit(commit).or_else(|| edit(&Commit { prune: &[], ..*commit }));
                (write.ok_or_else(too_long_edit)?, demand.base())
            }
            Write::EditAt(row, clauses) => {
                room(layout, Some(row), clauses)?;
                let demand = Demand::of(layout, row);
                let write = condition::edit_within(key.clone(), &demand, commit, clauses);
                (write.ok_or_else(too_long_edit)?, demand.base())
            }
            Write::Delete(at, row) => {
                let demand = demand_of(at, row).ok_or_else(too_long)?;
                (delete(layout, &demand, key, commit, now + retention)?, demand.base())
            }
        };
        let mut sent = SentWrite { id: commit.id, on, fence: commit.fence, rules: layout.rules() };
        if let (Base::NoRow(_), Operation::Put { item }, Some(ends)) = (on, &request.action, layout.expires_at) {
            // TTL may remove the row before a later send meets the key, so another row proves nothing.
            sent.rules.rows_may_vanish |= is_soon(item.get(ends).and_then(row::read_number), now);
        }
        Ok(Prepared { request, sent, is_named_by_client })
    }
}

pub fn first_version(layout: &Layout) -> Version {
    Version::new(layout.first_version).unwrap_or(Version::ABSENT.next())
}

/// Checks that a write can raise the version of the row. A row with a version too high would be unreadable.
pub fn check_room(layout: &Layout, at: ItemVersion) -> Result<(), Unwritable> {
    if at.version.has_room_for(layout.window) {
        return Ok(());
    }
    let reason = format!("{} is so close to 2^53 - 1 that it cannot rise", layout.names.version);
    Err(Unwritable::CorruptItem { reason })
}

pub fn prunable(layout: &Layout, row: &Row, id: WriteId, burn: &[WriteId]) -> Vec<WriteId> {
    row.memory.prunable(row.at.version, layout.remembered, id, burn.len())
}

fn create(
    layout: &Layout,
    mut item: Attributes,
    key: &Attributes,
    commit: &Commit<'_>,
) -> Result<ConditionalWrite, Unwritable> {
    item.extend(key.clone());
    check_size(size_of_item(&layout.names, &item), 0)?;
    item.extend(row::first_attributes(layout, commit.id));
    condition::fenced(condition::put_if_absent(layout, item), &layout.names, commit.fence).ok_or_else(too_long)
}

/// Changes these attributes of the value. Leaves all others alone. The row is live afterwards.
fn change_row(
    layout: &Layout,
    row: &Row,
    mut diff: Diff,
    key: &Attributes,
    commit: &Commit<'_>,
) -> Result<ConditionalWrite, Unwritable> {
    let names = &layout.names;
    // A mark of another version must not become that of the row. Under another name, the time of a foreign row is not ours.
    let is_ours = !row.at.incarnation.is_foreign() || layout.marks_by_time();
    let marks = if is_ours { &[names.buried, names.purge_at][..] } else { &[names.buried] };
    let marks = marks.iter().filter(|name| row.attributes.contains_key(**name));
    diff.0.extend(marks.map(|&name| (name.to_owned(), None)));
    check_size(size_of_item(names, diff.applied(&row.attributes)), row.bytes)?;
    let demand = Demand::of(layout, row);
    let write = condition::update_at(key.clone(), &demand, commit, &diff).or_else(|| {
        let mut item = row.attributes.clone();
        diff.apply(&mut item);
        row::advance(names, &mut item, row.at, commit.id, commit.prune, commit.burn);
        condition::put_at(&demand, commit, item)
    });
    write.ok_or_else(too_long)
}

fn delete(
    layout: &Layout,
    demand: &Demand<'_>,
    key: &Attributes,
    commit: &Commit<'_>,
    purge_at: SystemTime,
) -> Result<ConditionalWrite, Unwritable> {
    if layout.deletes == Deletes::Remove {
        return condition::remove_at(key.clone(), demand, commit).ok_or_else(too_long);
    }
    let purge_at = row::end_of_tombstone(layout, purge_at);
    // If values have a TTL attribute of their own, TTL looks at no other attribute. So the tombstone needs it too.
    let mut diff = Diff::default();
    diff.0.extend(layout.attributes.iter().map(|&name| (name.to_owned(), None)));
    if let (Some(name), Some(seconds)) = (layout.ttl_of_values(), purge_at) {
        diff.0.insert(name.to_owned(), Some(row::number(seconds)));
    }
    let bury = |commit: &Commit<'_>| condition::bury_at(key.clone(), demand, commit, &diff, purge_at);
    // Forgetting ids is optional.
    bury(commit).or_else(|| bury(&Commit { prune: &[], ..*commit })).ok_or_else(too_long)
}

/// The error for a delete with too many attributes. Any other write too long for an update is sent as a whole item.
fn too_long() -> Unwritable {
    Unwritable::InvalidRecord { reason: "its Record declares more attributes than one request can name".to_owned() }
}

fn too_long_edit() -> Unwritable {
    Unwritable::InvalidRecord { reason: "the edit names too many attributes".to_owned() }
}

/// The attributes of a tombstone beside the key and those of this crate. None may come back to life.
fn leftovers(layout: &Layout, row: &Row) -> Attributes {
    let (ours, keys) = (layout.names.all(), [Some(layout.partition_key), layout.sort_key]);
    let mut attributes = row.attributes.clone();
    attributes.retain(|name, _| !ours.contains(&name.as_str()) && !keys.contains(&Some(name.as_str())));
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::built::v;
    use crate::edit::{RawEdit, Resolve};
    use crate::format::AttributeValue;
    use crate::format::layout::Settings;
    use crate::judge::TableRules;
    use std::time::UNIX_EPOCH;

    /// The boundary of the size of an expression lies among these numbers of attributes.
    #[test]
    fn a_delete_that_has_no_room_to_forget_ids_forgets_none() {
        let names: Vec<&str> = (0..700).map(|number| &*format!("a{number}").leak()).collect();
        let (names, key) = (&*names.leak(), Attributes::from([("id".to_owned(), AttributeValue::S("1".to_owned()))]));
        let [id, old] = [1, 2].map(WriteId::from_random);
        let mut fitting = 0;
        for count in 0..=names.len() {
            let layout = Layout { attributes: &names[..count], ..Layout::of_key("id") };
            let row = Row::read(&layout, row::first_attributes(&layout, old)).expect("a row");
            let is_sent = |prune: &[WriteId]| {
                let commit = Commit { id, prune, burn: &[], fence: None };
                delete(&layout, &Demand::of(&layout, &row), &key, &commit, UNIX_EPOCH).is_ok()
            };
            let fits = is_sent(&[]);
            assert_eq!(is_sent(&[old; 8]), fits, "{count} attributes");
            fitting += usize::from(fits);
        }
        assert!((1..names.len()).contains(&fitting), "{fitting}");
    }

    #[test]
    fn an_edit_that_has_no_room_to_forget_ids_forgets_none() {
        let layout = Layout { attributes: &["counts"], ..Layout::of_key("id") };
        let key = Attributes::from([("id".to_owned(), AttributeValue::S("1".to_owned()))]);
        let with_ids = |count: u64| {
            let mut attributes = row::first_attributes(&layout, WriteId::from_random(1));
            let ids = (0..count).map(|number| (WriteId::from_random(100 + number).name(), row::number(number)));
            attributes.insert(layout.names.writes.to_owned(), AttributeValue::M(ids.collect()));
            attributes.insert(layout.names.version.to_owned(), row::number(1000));
            attributes.insert("counts".to_owned(), AttributeValue::M([].into()));
            Row::read(&layout, attributes).expect("a row")
        };
        let (few, many) = (with_ids(1), with_ids(40));
        let (mut forgetting, mut fitting) = (0, 0);
        for count in 1..400 {
            let edit = (0..count).fold(RawEdit::default(), |edit, value: u64| {
                edit.and_set(vec!["counts".to_owned(), format!("n{value}")], v(value))
            });
            let prepared = |row: &Row| {
                let commit = Commit { id: WriteId::from_random(2), prune: &[], burn: &[], fence: None };
                let clauses = edit.resolve(&layout, Some(&row.attributes)).expect("an edit");
                Write::Edit(row.at, Some(row), &clauses).prepare(&layout, &key, commit, UNIX_EPOCH, Duration::ZERO).ok()
            };
            let (few, many) = (prepared(&few), prepared(&many));
            assert_eq!(few.is_some(), many.is_some(), "{count} values");
            let forgets = |prepared: &Prepared| {
                prepared.request.names.values().any(|name| *name == WriteId::from_random(100).name())
            };
            forgetting += usize::from(many.as_ref().is_some_and(forgets));
            fitting += usize::from(many.is_some());
        }
        assert!(0 < forgetting && forgetting < fitting && fitting < 400, "{forgetting} of {fitting}");
    }

    #[test]
    fn a_write_forgets_what_its_row_need_not_remember_any_more() {
        let of_key = Layout::of_key("id");
        let layout = Layout { settings: Settings { remembered: 1, ..of_key.settings }, ..of_key };
        let [id, old] = [1, 2].map(WriteId::from_random);
        let mut attributes = row::first_attributes(&layout, old);
        attributes.insert(layout.names.version.to_owned(), row::number(1000));
        let row = Row::read(&layout, attributes).expect("a row");
        let commit = Commit { id, prune: &[], burn: &[], fence: None };
        let write = Write::Update(&row, Diff::default());
        let prepared = write.prepare(&layout, &Attributes::new(), commit, UNIX_EPOCH, Duration::ZERO).expect("a write");
        assert!(prepared.request.names.values().any(|name| *name == old.name()), "{:?}", prepared.request);
    }

    #[test]
    fn a_create_whose_value_ends_soon_may_vanish_and_a_version_rises_only_where_it_has_room() {
        let layout = Layout { attributes: &["a", "ends"], expires_at: Some("ends"), ..Layout::of_key("id") };
        let key = Attributes::from([("id".to_owned(), AttributeValue::S("1".to_owned()))]);
        let commit = Commit { id: WriteId::from_random(1), prune: &[], burn: &[], fence: None };
        let now = UNIX_EPOCH + Duration::from_hours(100);
        for (ends, may_vanish) in [(Some(100 * 3600 + 60), true), (Some(200 * 3600), false), (None, false)] {
            let item = ends.map(|ends| ("ends".to_owned(), row::number(ends))).into_iter().collect();
            let prepared = Write::Create(item).prepare(&layout, &key, commit, now, Duration::ZERO).expect("an item");
            assert_eq!(prepared.sent.rules, TableRules { rows_may_vanish: may_vanish, ..layout.rules() }, "{ends:?}");
        }
        let at = |below| ItemVersion {
            version: Version::new((1_u64 << 53) - 1 - below).expect("a version"),
            incarnation: commit.id.as_incarnation(),
        };
        assert!(check_room(&layout, at(1)).is_ok() && check_room(&layout, at(0)).is_err());
    }
}
