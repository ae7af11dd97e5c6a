//! [`room`]: whether an item has room for an edit, although the edit demands no version.

use super::bounds::whole;
use crate::condition::Clauses;
use crate::format::item::{Attributes, LONGEST_NUMBER, size_of, value_at};
use crate::format::layout::Layout;
use crate::format::row::{MAX_ITEM, Row, check_size};
use crate::format::{AsKind, AttributeValue, Unwritable};

/// The part of the 4 KB beside the largest item that this crate does not need for its own attributes. An edit of an item
/// that was not seen may use it.
const SPARE: usize = 2560;

/// The room of an item for an edit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// There is room for as many such edits as fit into the window. Several clients may send theirs at once.
    InWindow,
    /// There is room for this edit. Another one beside it may be too much, so it demands the version of the row.
    AtItsVersion,
    /// Only the current row tells.
    Unknown,
}

/// The room of an item for an edit, by the row that was seen last.
///
/// # Errors
/// [`Unwritable::TooLarge`]: the edit would make this row too large.
pub fn room(layout: &Layout, row: Option<&Row>, clauses: &Clauses) -> Result<Room, Unwritable> {
    let unseen = Attributes::new();
    let (bytes, item) = row.map_or((MAX_ITEM - SPARE, &unseen), |row| (row.bytes, &row.attributes));
    let (added, removed) = growth(clauses, item);
    // Something is removed once, and appended by each edit of the window.
    let appended = clauses.append.iter().map(|(_, members)| size_of(members)).sum::<usize>();
    let grows_by = added.saturating_sub(removed) + appended;
    let most = usize::try_from(layout.window).unwrap_or(usize::MAX).saturating_mul(grows_by);
    if grows_by == 0 || most <= MAX_ITEM.saturating_sub(bytes) {
        return Ok(Room::InWindow);
    }
    if item.is_empty() {
        return Ok(Room::Unknown);
    }
    check_size(bytes + grows_by, bytes)?;
    Ok(Room::AtItsVersion)
}

/// The sum of two whole numbers.
fn sum(number: &AttributeValue, by: &str) -> Option<AttributeValue> {
    Some(AttributeValue::N(whole(number.as_n()?)?.checked_add(whole(by)?)?.to_string()))
}

/// The bytes that an edit adds to this item, and those that it removes. An attribute that is not in `item` counts as new.
fn growth(clauses: &Clauses, item: &Attributes) -> (usize, usize) {
    let name = |path: &[String]| path.last().map_or(0, String::len) + usize::from(path.len() > 1);
    let (mut added, mut removed) = (0, 0);
    let stamps = clauses.stamps.iter().map(|(name, value)| (std::slice::from_ref(name), value));
    for (path, value) in clauses.set.iter().map(|(path, value)| (path.as_slice(), value)).chain(stamps) {
        added += size_of(value);
        match value_at(item, path) {
            Some(old) => removed += size_of(old),
            None => added += name(path),
        }
    }
    for path in &clauses.remove {
        removed += value_at(item, path).map_or(0, |old| size_of(old) + name(path));
    }
    for number in &clauses.numbers {
        let old = value_at(item, &number.path);
        added += old.and_then(|old| sum(old, &number.by)).map_or(LONGEST_NUMBER, |sum| size_of(&sum));
        removed += old.map_or(0, size_of);
    }
    (added, removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriteId;
    use crate::edit::built::{add, set, v};
    use crate::edit::{RawEdit, Resolve};
    use crate::format::layout::Settings;
    use crate::format::row;

    const LAYOUT: Layout = Layout {
        attributes: &["text", "n"],
        settings: Settings { window: 4, ..Settings::own() },
        ..Layout::of_key("id")
    };

    fn text(bytes: usize) -> String {
        "x".repeat(bytes)
    }

    /// A row of so many bytes, with a number of one digit.
    fn row_of(bytes: usize) -> Row {
        let mut item = row::first_attributes(&LAYOUT, WriteId::from_random(1));
        let rest = "text".len() + "n".len() + 3;
        item.insert("text".to_owned(), AttributeValue::S(text(bytes - rest)));
        item.insert("n".to_owned(), AttributeValue::N("9".to_owned()));
        let row = Row::read(&LAYOUT, item).expect("a row");
        assert_eq!(row.bytes, bytes);
        row
    }

    #[test]
    fn an_edit_has_a_window_where_a_window_of_such_edits_has_room_and_is_refused_where_it_alone_has_none() {
        let room_of = |row: Option<&Row>, edit: &RawEdit| {
            let clauses = edit.resolve(&LAYOUT, row.map(|row| &row.attributes)).expect("valid");
            room(&LAYOUT, row, &clauses).map_err(|failure| matches!(failure, Unwritable::TooLarge { .. }))
        };
        let grown = |bytes: usize, by: usize| set("text", v(text(bytes - "text".len() - "n".len() - 3 + by)));
        let least = MAX_ITEM - 4 * 10;
        for (bytes, expected) in [
            (least, Ok(Room::InWindow)),
            (least + 1, Ok(Room::AtItsVersion)),
            (MAX_ITEM - 10, Ok(Room::AtItsVersion)),
            (MAX_ITEM - 9, Err(true)),
            (MAX_ITEM + 1000, Err(true)),
        ] {
            let row = row_of(bytes);
            assert_eq!(room_of(Some(&row), &grown(bytes, 10)), expected, "{bytes}");
            assert_eq!(room_of(Some(&row), &grown(bytes, 0)), Ok(Room::InWindow), "{bytes}");
            let forgotten = Row { attributes: Attributes::new(), memory: row.memory.clone(), ..row };
            assert_eq!(room_of(Some(&forgotten), &grown(bytes, 10)), Ok(Room::Unknown), "{bytes}");
        }
        let full = row_of(MAX_ITEM);
        for (by, expected) in [(-1, Ok(Room::InWindow)), (1, Ok(Room::InWindow)), (999, Err(true))] {
            assert_eq!(room_of(Some(&full), &add("n", by, ..)), expected, "{by}");
        }
        let removed = RawEdit::default().and_remove("text").and_set("n", v(1));
        assert_eq!(room_of(Some(&full), &removed), Ok(Room::InWindow));
        let spare = |more: usize| set("text", v(text(SPARE / 4 - "text".len() + more)));
        assert_eq!([0, 1].map(|more| room_of(None, &spare(more))), [Ok(Room::InWindow), Ok(Room::Unknown)]);
    }

    #[test]
    fn the_growth_of_an_item_is_the_difference_of_its_sizes() {
        let value = |json: &str| AttributeValue::S(json.to_owned());
        let map = |members: &[(&str, AttributeValue)]| {
            let members = members.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
            Attributes::from([("text".to_owned(), AttributeValue::M(members.collect()))])
        };
        let long = value("a longer text");
        let before = map(&[("a", value("old")), ("bcd", value("b"))]);
        for (edit, after) in [
            (set(["text", "a"], v("a longer text")), map(&[("a", long.clone()), ("bcd", value("b"))])),
            (set(["text", "efgh"], v("new")), map(&[("a", value("old")), ("bcd", value("b")), ("efgh", value("new"))])),
            (RawEdit::default().and_remove(["text", "bcd"]), map(&[("a", value("old"))])),
            (RawEdit::default().and_remove(["text", "none"]), before.clone()),
            (RawEdit::default().and_remove("text"), Attributes::new()),
            (
                set("n", v("x")),
                before
                    .iter()
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .chain([("n".to_owned(), value("x"))])
                    .collect(),
            ),
        ] {
            let clauses = edit.resolve(&LAYOUT, Some(&before)).expect("valid");
            let (added, removed) = growth(&clauses, &before);
            let sizes = [&before, &after].map(|item| row::size_of_item(&LAYOUT.names, item));
            assert_eq!(sizes[0] + added, sizes[1] + removed, "{edit:?}");
        }
    }
}
