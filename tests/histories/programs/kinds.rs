//! The kinds of items in programs, without their types.

use super::plan::{Answer, Read, Row, Step, Task};
use super::play::{Noted, Own, Player};
use super::records::*;
use super::single::perform;
use super::told::{Does, Shown, Told};
use super::values::{Draw, Item, canonical, json_of};
use super::writing::edit_of;
use fencepost::{Attempt, Call, Deadline, Failure, ItemVersion, Key, KeyPart, Reads, Store, Versioned};
use serde_json::{Value, json};
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The item that holds this value. `None` if it cannot be stored.
pub fn item_of<T: Subject>(value: &T) -> Option<Item> {
    let attributes = value.encode().ok()?;
    Some(attributes.iter().map(|(name, value)| (name.clone(), canonical(&json_of(value)))).collect())
}

/// A kind of items: all that a program needs to know of its type.
pub trait Kind: Sync {
    fn table(&self) -> &'static str;
    /// The names of the key, and the kinds of its parts.
    fn key(&self) -> (Vec<&'static str>, &'static str);
    /// The names of the attributes that hold the number of a change and the number for adds.
    fn by(&self) -> String;
    fn number(&self) -> String;
    fn expires_at(&self) -> Option<&'static str>;
    /// The settings in words.
    fn settings(&self) -> String;
    fn sample(&self, draw: &mut Draw) -> Item;
    fn perform<'a>(
        &self,
        player: &'a Player,
        task: &'a Task,
        row: Row,
        by: &'a Call,
        noted: &'a Noted<'a>,
    ) -> Boxed<'a, Told>;
    fn read(&self, player: &Player, reads: &mut Reads, row: Row, read: Read, task: &Task) -> Box<dyn InAttempt>;
    /// The mistake of a read, if the row does not read back as the value that a decision left there.
    fn reads_back<'a>(
        &self,
        store: &'a Store,
        row: Row,
        key: Key,
        by: Option<u64>,
        own: &'a Own,
    ) -> Boxed<'a, Option<String>>;
}

pub struct Of<T>(pub PhantomData<fn() -> T>);

pub static KINDS: &[&dyn Kind] = all_subjects!(Of, [Flat]);

/// The key of a row in its own form and in `DynamoDB`'s JSON. The rows of a table with a sort key share a partition.
pub fn key_of(row: Row, scene: &str) -> (Key, Value) {
    let (names, kinds) = KINDS[row.kind].key();
    let number = i64::from(row.key) - 1;
    let hashed = scene.bytes().fold(7u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let own = if kinds.len() == 1 { format!("{scene}-{number}") } else { scene.to_owned() };
    let part = |kind: char, is_sort: bool| match (kind, is_sort) {
        ('S', false) => (KeyPart::from(&own), json!({"S": own})),
        ('S', true) => (KeyPart::from(format!("line {number}")), json!({"S": format!("line {number}")})),
        ('N', false) => {
            let number = i64::try_from(hashed % 1_000_000_000_000).expect("small") * 10 + number;
            (KeyPart::from(number), json!({"N": number.to_string()}))
        }
        ('N', true) => (KeyPart::from(number), json!({"N": number.to_string()})),
        (_, is_sort) => {
            let bytes = if is_sort { vec![row.key] } else { own.clone().into_bytes() };
            let json = json!({"B": aws_smithy_types::base64::encode(&bytes)});
            (KeyPart::from(bytes), json)
        }
    };
    let mut parts = kinds.chars().enumerate().map(|(at, kind)| part(kind, at == 1));
    let (partition, partition_json) = parts.next().expect("a partition key");
    match (parts.next(), &names[..]) {
        (Some((sort, sort_json)), [one, two]) => {
            (Key::from((partition, sort)), json!({*one: partition_json, *two: sort_json}))
        }
        (_, [one, ..]) => (Key::from(partition), json!({*one: partition_json})),
        _ => unreachable!("a key has a name"),
    }
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
    item: fencepost::Item<T>,
}

impl<T: Subject> InAttempt for Handle<T> {
    fn row(&self) -> Row {
        self.row
    }

    fn look(&self, attempt: &Attempt, noted: &Noted<'_>) -> Result<Shown, Failure> {
        noted.own.plays("Attempt::get");
        noted.own.plays("Attempt::knows");
        let (known, seen) = (attempt.knows(self.item), attempt.get(self.item)?);
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
                if attempt.knows(self.item) {
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
                        let next = noted.changed(*change, &now.value, id);
                        let at = attempt.update_at(self.item, &next)?;
                        Some((noted.made(self.row, &next), Some(at)))
                    }
                    None => {
                        plays("Attempt::put_if_absent");
                        plays("Attempt::version_after_put");
                        let next = noted.drawn::<T>(change.draw.unwrap_or(id), id);
                        let version = attempt.version_after_put(self.item);
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

pub fn shown<T: Subject>(row: Row, seen: Option<&Versioned<T>>) -> Shown {
    let item = seen.map(|seen| item_of(&seen.value).expect("it was read"));
    Shown { row, at: seen.map(|seen| seen.at), item, is_certain: true }
}

impl<T: Subject> Kind for Of<T> {
    fn table(&self) -> &'static str {
        T::TABLE
    }

    fn key(&self) -> (Vec<&'static str>, &'static str) {
        ([Some(T::PARTITION_KEY), T::SORT_KEY].into_iter().flatten().collect(), T::KEY)
    }

    fn by(&self) -> String {
        T::ATTRIBUTES[0].to_owned()
    }

    fn number(&self) -> String {
        T::ATTRIBUTES[1].to_owned()
    }

    fn expires_at(&self) -> Option<&'static str> {
        T::EXPIRES_AT
    }

    fn settings(&self) -> String {
        format!("{:?}", T::SETTINGS)
    }

    fn sample(&self, draw: &mut Draw) -> Item {
        let drawn = (0..1_000).find_map(|_| {
            draw.is_odd = false;
            let value = T::drawn(draw);
            item_of(&value).filter(|_| !draw.is_odd)
        });
        drawn.unwrap_or_else(|| panic!("no value of {} can be stored", T::TABLE))
    }

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
        key: Key,
        by: Option<u64>,
        own: &'a Own,
    ) -> Boxed<'a, Option<String>> {
        Box::pin(async move {
            match store.table::<T>(T::TABLE).get(key).await {
                Ok(read) => {
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
