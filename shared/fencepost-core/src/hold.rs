//! Holds: parts of a number that are taken for a row before the row is there, and what became of them (pure).
//!
//! The row that decides is the only proof. Before it is created, everything that was taken for it can be given back. After
//! it, nothing is left to do but to remove the holds.

use crate::format::item::{Attributes, size_of};
use crate::format::layout::{Layout, MOST_HOLDS};
use crate::format::names::Names;
use crate::format::number::Number;
use crate::format::row::{self, MAX_ITEM, Row};
use crate::format::{AsKind, AttributeValue, Unwritable};
use crate::{Incarnation, ItemVersion, Version, WriteId};
use std::time::Duration;

/// The most holds that one write removes because their rows are there.
pub const LARGEST_CLEAR: usize = 8;

/// Whether an item of so many bytes has room for all holds that it may have, if they are like this one.
#[must_use]
pub fn has_room(bytes: usize, hold: &Hold) -> bool {
    let (name, value) = hold.stored();
    let most = usize::try_from(MOST_HOLDS).unwrap_or(usize::MAX);
    bytes.saturating_add(most.saturating_mul(name.len() + size_of(&value) + 1)) <= MAX_ITEM
}

/// A part of the number of a row, taken for a row of another table.
#[derive(Clone, PartialEq, Debug)]
pub struct Hold {
    /// The attempt that took it. It took from all of its rows under this id, and creates one row under it.
    pub attempt: WriteId,
    /// What was taken: a whole number above 0.
    pub quantity: String,
    /// The key of the row that decides: the partition key and the sort key, if there is one.
    pub key: Vec<AttributeValue>,
    /// The tombstone on which the attempt creates this row. `None` if the key was free.
    pub base: Option<ItemVersion>,
}

/// The row that decides about a hold, as far as that is of use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Deciding {
    pub at: ItemVersion,
    pub is_tombstone: bool,
    /// The attempt that placed it.
    pub placed_by: Option<WriteId>,
}

/// What became of the attempt that took a hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fate {
    /// It has placed its row. The number stays lower.
    Committed,
    /// It has not placed its row, and never will.
    Dead,
    /// It may still place its row.
    Undecided,
    /// Its row is in a state that no writer of this crate leaves. Nothing is known of the hold.
    Corrupt,
}

/// What to do about a hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settlement {
    /// Remove it. The number stays as it is.
    Remove,
    /// Add the quantity back and remove it, in one write.
    GiveBack,
    /// Keep its attempt from placing the row, and look again.
    Burn,
    /// Look again later: the attempt may be about to place its row.
    Wait,
    /// Leave it to a person.
    Leave,
}

/// Finds out the fate of the attempt that took a hold on this base, from the row that decides. `None` stands for a missing
/// row.
///
/// The row that decides is never deleted, never ends, and keeps its tombstones. So its version only rises, and a row or a
/// tombstone that is not the base stays another one for ever. The attempt demands the base in its only create.
#[must_use]
pub fn fate(attempt: WriteId, base: Option<ItemVersion>, row: Option<Deciding>) -> Fate {
    match (row, base) {
        (None, None) => Fate::Undecided,
        (None, Some(_)) => Fate::Corrupt,
        (Some(row), _) if !row.is_tombstone && row.placed_by == Some(attempt) => Fate::Committed,
        (Some(row), Some(base)) if row.at.incarnation == base.incarnation => {
            if row.at.version < base.version {
                Fate::Corrupt
            } else if row.at == base && row.is_tombstone {
                Fate::Undecided
            } else {
                Fate::Dead
            }
        }
        (Some(_), _) => Fate::Dead,
    }
}

/// What to do about a hold with this fate that was watched for so long.
///
/// The time is for progress, never for safety. An attempt that is slow and burned begins again, and nothing else happens.
#[must_use]
pub fn settlement(fate: Fate, watched: Duration, patience: Duration) -> Settlement {
    match fate {
        Fate::Committed => Settlement::Remove,
        Fate::Dead => Settlement::GiveBack,
        Fate::Undecided if watched >= patience => Settlement::Burn,
        Fate::Undecided => Settlement::Wait,
        Fate::Corrupt => Settlement::Leave,
    }
}

impl Deciding {
    #[must_use]
    pub fn of(layout: &Layout, row: &Row) -> Self {
        let placed_by = row.attributes.get(layout.names.placed_by).and_then(row::read_id).map(WriteId::from_bytes);
        Deciding { at: row.at, is_tombstone: row.is_tombstone, placed_by }
    }
}

impl Hold {
    /// The name and the value of the hold in the map of its row.
    #[must_use]
    pub fn stored(&self) -> (String, AttributeValue) {
        let quantity = [AttributeValue::N(self.quantity.clone())];
        let base = self.base.map(|at| [row::bytes(at.incarnation.as_bytes()), row::number(at.version.get())]);
        let parts = quantity.into_iter().chain(self.key.iter().cloned()).chain(base.into_iter().flatten());
        (self.attempt.name(), AttributeValue::L(parts.collect()))
    }

    fn read(name: &str, value: &AttributeValue) -> Option<Self> {
        let attempt = WriteId::from_name(name)?;
        let AttributeValue::L(parts) = value else { return None };
        let [AttributeValue::N(quantity), rest @ ..] = &**parts else { return None };
        let (key, base) = match rest {
            [] => return None,
            [key @ .., incarnation, version] if rest.len() > 2 => {
                let version = Version::new(row::read_number(version)?)?;
                (key, Some(ItemVersion { version, incarnation: Incarnation::from_bytes(row::read_id(incarnation)?) }))
            }
            key => (key, None),
        };
        Some(Hold { attempt, quantity: quantity.clone(), key: key.to_vec(), base })
    }

    /// The key of the row that decides, in a table with this layout. `None` if the table has other keys.
    #[must_use]
    pub fn key_in(&self, layout: &Layout) -> Option<Attributes> {
        let names: Vec<_> = [Some(layout.partition_key), layout.sort_key].into_iter().flatten().collect();
        let key = names.iter().map(|name| (*name).to_owned()).zip(self.key.iter().cloned());
        (names.len() == self.key.len()).then(|| key.collect())
    }
}

/// The values of a key in the order in which a hold has them.
#[must_use]
pub fn key_of(layout: &Layout, key: &Attributes) -> Vec<AttributeValue> {
    let names = [Some(layout.partition_key), layout.sort_key].into_iter().flatten();
    names.filter_map(|name| key.get(name).cloned()).collect()
}

/// The holds of a row, in the order of their ids. `None` if this crate did not write one of them, or if the row has no map
/// of them yet.
#[must_use]
pub fn holds_of(names: &Names, attributes: &Attributes) -> Option<Vec<Hold>> {
    let map = attributes.get(names.holds)?.as_m()?;
    let mut holds = map.iter().map(|(name, value)| Hold::read(name, value)).collect::<Option<Vec<_>>>()?;
    holds.sort_by_key(|hold| hold.attempt);
    Some(holds)
}

/// The holds of a row that may have no map of them yet.
///
/// # Errors
/// `CorruptItem`: this crate did not write one of them.
pub fn read_holds(names: &Names, attributes: &Attributes) -> Result<Vec<Hold>, Unwritable> {
    match holds_of(names, attributes) {
        None if attributes.contains_key(names.holds) => Err(malformed(names)),
        holds => Ok(holds.unwrap_or_default()),
    }
}

/// The sum of what is held in a row.
///
/// # Errors
/// As [`read_holds`].
pub fn sum_of(names: &Names, attributes: &Attributes) -> Result<i128, Unwritable> {
    let mut sum = Some(0_i128);
    for hold in read_holds(names, attributes)? {
        sum = sum.zip(whole(&hold.quantity)).and_then(|(sum, more)| sum.checked_add(more));
    }
    sum.ok_or_else(|| malformed(names))
}

fn malformed(names: &Names) -> Unwritable {
    let reason = format!("{} is malformed, so this crate did not write it", names.holds);
    Unwritable::CorruptItem { reason }
}

/// The item as it would be if all that is held came back. `None` if nothing is held.
#[must_use]
pub fn with_all_back(layout: &Layout, item: &Attributes) -> Option<Attributes> {
    let (number, held) = (layout.held?, sum_of(&layout.names, item).ok().filter(|held| *held > 0)?);
    let most = whole(item.get(number)?.as_n()?)?.checked_add(held)?;
    let mut item = item.clone();
    item.insert(number.to_owned(), AttributeValue::N(most.to_string()));
    Some(item)
}

fn whole(text: &str) -> Option<i128> {
    Number::parse(text)?.to_whole()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::layout::Layout;

    fn id(number: u64) -> WriteId {
        WriteId::from_random(number)
    }

    fn at(incarnation: u64, version: u64) -> ItemVersion {
        ItemVersion { version: Version::new(version).expect("small"), incarnation: id(incarnation).as_incarnation() }
    }

    #[test]
    fn an_attempt_has_the_fate_that_the_deciding_row_shows() {
        let row = |at, is_tombstone, placed_by| Some(Deciding { at, is_tombstone, placed_by });
        let (mine, other) = (Some(id(1)), Some(id(2)));
        for (base, seen, expected) in [
            (None, None, Fate::Undecided),
            (None, row(at(1, 1), false, mine), Fate::Committed),
            (None, row(at(1, 7), false, mine), Fate::Committed),
            (None, row(at(2, 1), false, other), Fate::Dead),
            (None, row(at(2, 1), false, None), Fate::Dead),
            (None, row(at(2, 1), true, None), Fate::Dead),
            (Some(at(9, 3)), row(at(9, 3), true, None), Fate::Undecided),
            (Some(at(9, 3)), row(at(9, 4), true, None), Fate::Dead),
            (Some(at(9, 3)), row(at(9, 4), false, mine), Fate::Committed),
            (Some(at(9, 3)), row(at(9, 4), false, other), Fate::Dead),
            // A restamp gives the tombstone another incarnation, which the create does not demand.
            (Some(at(9, 3)), row(at(8, 3), true, None), Fate::Dead),
            (Some(at(9, 3)), row(at(9, 2), true, None), Fate::Corrupt),
            (Some(at(9, 3)), None, Fate::Corrupt),
        ] {
            assert_eq!(fate(id(1), base, seen), expected, "{base:?} {seen:?}");
        }
    }

    #[test]
    fn only_an_undecided_hold_waits_and_it_is_burned_after_that() {
        let [before, after] = [999, 1000].map(Duration::from_millis);
        let settle = |fate| [before, after].map(|watched| settlement(fate, watched, after));
        assert_eq!(settle(Fate::Committed), [Settlement::Remove; 2]);
        assert_eq!(settle(Fate::Dead), [Settlement::GiveBack; 2]);
        assert_eq!(settle(Fate::Undecided), [Settlement::Wait, Settlement::Burn]);
        assert_eq!(settle(Fate::Corrupt), [Settlement::Leave; 2]);
    }

    #[test]
    fn what_is_held_is_added_to_the_number_and_nothing_else() {
        let layout = Layout { held: Some("stock"), ..Layout::of_key("id") };
        let hold = |attempt: u64, quantity: u64| {
            let key = vec![AttributeValue::S("o".to_owned())];
            Hold { attempt: id(attempt), quantity: quantity.to_string(), key, base: None }.stored()
        };
        let item = |stock: &str, holds: Vec<_>| {
            let stock = ("stock".to_owned(), AttributeValue::N(stock.to_owned()));
            Attributes::from([stock, ("_holds".to_owned(), AttributeValue::M(holds.into_iter().collect()))])
        };
        let both = || vec![hold(1, 3), hold(2, 4)];
        let back = with_all_back(&layout, &item("5", both())).expect("two holds");
        assert_eq!((&back["stock"], back.len()), (&AttributeValue::N("12".to_owned()), 2));
        assert_eq!(with_all_back(&layout, &item("5", Vec::new())), None);
        assert_eq!(with_all_back(&layout, &item("0.5", both())), None, "nobody takes parts of such a number");
        assert_eq!(with_all_back(&Layout::of_key("id"), &item("5", both())), None);
    }

    #[test]
    fn a_stored_hold_is_read_back_as_the_same() {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let of_key = Layout::of_key("orderId");
        let sorted = Layout { sort_key: Some("line"), ..of_key };
        for (layout, key) in [(&of_key, vec![text("o-1")]), (&sorted, vec![text("o-1"), row::number(7)])] {
            for base in [None, Some(at(9, 3))] {
                let hold = Hold { attempt: id(1), quantity: "3".to_owned(), key: key.clone(), base };
                let map = AttributeValue::M([hold.stored()].into());
                let row = Attributes::from([("_holds".to_owned(), map)]);
                assert_eq!(holds_of(&layout.names, &row), Some(vec![hold.clone()]));
                let named = hold.key_in(layout).expect("a key");
                assert_eq!(key_of(layout, &named), key);
                assert_eq!(hold.key_in(if layout.sort_key.is_some() { &of_key } else { &sorted }), None);
            }
        }
        let with = |value| Attributes::from([("_holds".to_owned(), AttributeValue::M([(id(1).name(), value)].into()))]);
        for damaged in
            [text("3"), AttributeValue::L(vec![row::number(3)]), AttributeValue::L(vec![text("3"), text("o")])]
        {
            assert_eq!(holds_of(&of_key.names, &with(damaged.clone())), None, "{damaged:?}");
        }
        assert_eq!(holds_of(&of_key.names, &Attributes::new()), None);
    }
}
