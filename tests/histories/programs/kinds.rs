//! Plays the kinds of items, without their types.

use super::catalog::{KINDS, Of, Row, item_of};
use super::plan::{Answer, Read, Step, Task};
use super::player::{Noted, Own, Player};
use super::records::*;
use super::single::perform;
use super::told::{Does, Shown, Told, shown};
use super::writing::edit_of;
use fencepost::{Attempt, Call, Deadline, Failure, Item, ItemVersion, Key, Reads, Store, Table};
use serde_json::Value;
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A kind of items that is played.
pub trait Playable: Sync {
    fn perform<'a>(
        &self,
        player: &'a Player,
        task: &'a Task,
        row: Row,
        by: &'a Call,
        noted: &'a Noted<'a>,
    ) -> Boxed<'a, Told>;
    fn read(&self, player: &Player, reads: &mut Reads, row: Row, read: Read, task: &Task) -> Box<dyn InAttempt>;
    /// The mistake of a read, if the row does not read back as the value that a decision left there, or otherwise than
    /// from its attributes `raw`.
    fn reads_back<'a>(
        &self,
        store: &'a Store,
        row: Row,
        row_at: (Key, Value),
        by: Option<u64>,
        own: &'a Own,
    ) -> Boxed<'a, Option<String>>;
}

pub static PLAYED: &[&dyn Playable] = all_subjects!(Of, [Flat, Builds]);

/// A kind as this client's build knows it.
pub fn played(player: &Player, kind: usize) -> &'static dyn Playable {
    if player.is_older && KINDS[kind].table() == Before::TABLE { &Of::<Before>(PhantomData) } else { PLAYED[kind] }
}

/// An item in an attempt.
pub trait InAttempt: Send + Sync {
    fn row(&self) -> Row;
    fn look(&self, attempt: &Attempt, noted: &Noted<'_>) -> Result<Shown, Failure>;
    /// Adds the step. Notes what it has to look at for this. `None` if it does nothing.
    fn does(
        &self,
        attempt: &mut Attempt,
        step: &Step,
        id: u64,
        looks: &mut Vec<Shown>,
        noted: &Noted<'_>,
    ) -> Result<Option<(Does, Option<ItemVersion>)>, Failure>;
}

struct Handle<T> {
    row: Row,
    item: Item<T>,
}

impl<T: Subject> InAttempt for Handle<T> {
    fn row(&self) -> Row {
        self.row
    }

    fn look(&self, attempt: &Attempt, noted: &Noted<'_>) -> Result<Shown, Failure> {
        noted.own.plays("Attempt::get");
        noted.own.plays("Attempt::knows");
        let (known, seen) = (attempt.knows(self.item)?, attempt.get(self.item)?);
        Ok(Shown { is_certain: known, ..shown(self.row, seen.as_ref()) })
    }

    fn does(
        &self,
        attempt: &mut Attempt,
        step: &Step,
        id: u64,
        looks: &mut Vec<Shown>,
        noted: &Noted<'_>,
    ) -> Result<Option<(Does, Option<ItemVersion>)>, Failure> {
        let plays = |name| noted.own.plays(name);
        Ok(match step {
            Step::Nothing => None,
            Step::Check => {
                if attempt.knows(self.item)? {
                    plays("Attempt::check");
                    looks.push(self.look(attempt, noted)?);
                    attempt.check(self.item)?;
                    Some((Does::Check, None))
                } else {
                    None
                }
            }
            Step::Put(change) => {
                looks.push(self.look(attempt, noted)?);
                match attempt.get(self.item)? {
                    Some(_) if change.answer == Answer::Keep => None,
                    Some(now) => {
                        plays("Attempt::update_at");
                        let next = noted.changed(self.row, *change, &now.value, id);
                        let at = attempt.update_at(self.item, &next)?;
                        Some((noted.made(self.row, &next), Some(at)))
                    }
                    None => {
                        plays("Attempt::put_if_absent");
                        plays("Attempt::version_after_put");
                        let next = noted.drawn::<T>(self.row, change.draw.unwrap_or(id), id);
                        let version = attempt.version_after_put(self.item)?;
                        let at = attempt.put_if_absent(self.item, &next)?;
                        assert_eq!(at.version, version, "the version after a put");
                        Some((noted.made(self.row, &next), Some(at)))
                    }
                }
            }
            Step::Delete => {
                looks.push(self.look(attempt, noted)?);
                if attempt.get(self.item)?.is_none() {
                    return Ok(None);
                }
                plays("Attempt::delete_at");
                attempt.delete_at(self.item)?;
                Some((Does::Delete, None))
            }
            Step::Edit(of) | Step::Blind(of) => {
                let (of, edit) = edit_of::<T>(of, None, id, noted);
                if matches!(step, Step::Blind(_)) {
                    plays("Attempt::edit_blind");
                    attempt.edit_blind(self.item, &edit)?;
                } else {
                    plays("Attempt::edit");
                    attempt.edit(self.item, &edit)?;
                }
                Some((Does::Edit(of), None))
            }
        })
    }
}

impl<T: Subject> Playable for Of<T> {
    fn perform<'a>(
        &self,
        player: &'a Player,
        task: &'a Task,
        row: Row,
        call: &'a Call,
        noted: &'a Noted<'a>,
    ) -> Boxed<'a, Told> {
        Box::pin(perform::<T>(player, task, row, call, noted))
    }

    fn read(&self, player: &Player, reads: &mut Reads, row: Row, read: Read, task: &Task) -> Box<dyn InAttempt> {
        let plays = |name| player.client.scene.plays(name);
        let table = player.table::<T>(task, &Call::new(Deadline::within(Duration::from_mins(5))));
        let (name, key) = (format!("{row:?}"), player.key(row));
        let item = match read {
            Read::Fresh => {
                plays("Reads::item");
                reads.item(name, &table, key)
            }
            Read::Later => {
                plays("Reads::later");
                reads.later(name, &table, key)
            }
            Read::Remembered => {
                plays("Reads::remembered");
                reads.remembered(name, &table, key)
            }
        };
        Box::new(Handle { row, item })
    }

    fn reads_back<'a>(
        &self,
        store: &'a Store,
        row: Row,
        (key, raw): (Key, Value),
        by: Option<u64>,
        own: &'a Own,
    ) -> Boxed<'a, Option<String>> {
        Box::pin(async move {
            match store.table::<T>(T::TABLE).get(key).await {
                Ok(read) => {
                    own.plays("Table::live");
                    let raw = serde_json::from_value::<Option<_>>(raw).expect("attributes");
                    let live = raw.map_or(Ok(None), Table::<T>::live).expect("it was read");
                    if live != read {
                        return Some(format!("{row:?} is another item where its attributes are read"));
                    }
                    let values = own.values.lock().expect("no panic");
                    let left = by.and_then(|by| values.get(&(row, by))?.downcast_ref::<T>());
                    let is_same = left.is_none_or(|left| read.as_ref().is_some_and(|read| read.value == *left));
                    let read = read.and_then(|read| item_of(&read.value));
                    (!is_same).then(|| {
                        format!("{row:?} does not read back as it was stored, {:?}, {read:?}", left.map(item_of))
                    })
                }
                Err(failure) => Some(format!("{row:?} cannot be read: {failure}")),
            }
        })
    }
}
