//! What a decision over several items sees, and the steps that it adds.

use super::reads::{Item, Known, KnownRow, Required, invalid};
use crate::error::Failure;
use crate::protocol::condition::{self, Action, ConditionalWrite};
use crate::protocol::item::size_of_attributes;
use crate::protocol::judge::{Base, SentWrite, WriteId};
use crate::protocol::row::Row;
use crate::protocol::send::{Address, step};
use crate::table::prepare::{Observed, Stamp, Write, committed};
use crate::table::{Record, Table};
use crate::version::{ItemVersion, Version, Versioned};
use aws_sdk_dynamodb::types::TransactWriteItem;
use std::ops::RangeInclusive;
use std::time::SystemTime;

/// The most bytes that the items of a transaction may have together (`DynamoDB` quota).
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// What a decision makes of the items that it sees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Plan<A, R> {
    /// Apply the steps that were added, all or none; this is the answer once they are. Without a step it is `Keep`.
    Commit(A),
    /// Write nothing: this is the answer.
    Keep(A),
    /// Write nothing: the answer is no, for this reason.
    Refuse(R),
}

/// One observe-decide-write over several items: what is known of them, and the steps added so far.
///
/// Each attempt begins without steps. A step is one of an item that is named in [`Reads`], at most one each.
#[derive(Debug)]
pub struct Attempt {
    rows: Vec<KnownRow>,
    id: WriteId,
    now: SystemTime,
    steps: Vec<Step>,
}

/// What a step does.
#[derive(Debug)]
pub(super) enum Role {
    /// It writes at what was seen, and leaves the write id.
    Writes(SentWrite),
    /// It demands that the row is still what was seen.
    Checks(Base),
    /// It adds to a number, whatever the version is.
    Adds,
    /// It demands that a lease is held under this token.
    Requires(u64),
}

impl Role {
    /// What it demands of its row.
    pub(super) fn base(&self) -> Option<Base> {
        match self {
            Role::Writes(sent) => Some(sent.on),
            Role::Checks(on) => Some(*on),
            Role::Adds | Role::Requires(_) => None,
        }
    }
}

/// One step of a transaction, ready to be sent any number of times.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) row: usize,
    pub(super) role: Role,
    /// The attribute after whose time TTL may remove the row, if its table has one.
    pub(super) expires_at: Option<&'static str>,
    request: TransactWriteItem,
    bytes: usize,
}

impl Step {
    #[cfg(test)]
    pub(super) fn for_test(role: Role) -> Self {
        Step { row: 0, role, expires_at: None, request: TransactWriteItem::builder().build(), bytes: 0 }
    }

    pub(super) fn request(&self) -> TransactWriteItem {
        self.request.clone()
    }
}

impl Attempt {
    pub(super) fn new(rows: Vec<KnownRow>, id: WriteId) -> Self {
        Attempt { rows, id, now: SystemTime::UNIX_EPOCH, steps: Vec::new() }
    }

    pub(super) fn begin(&mut self, now: SystemTime) {
        self.now = now;
        self.steps.clear();
    }

    pub(super) fn to_be_read(&self) -> Vec<usize> {
        (0..self.rows.len()).filter(|&row| self.rows[row].read_first).collect()
    }

    pub(super) fn address(&self, row: usize) -> &Address {
        &self.rows[row].address
    }

    pub(super) fn name(&self, row: usize) -> &str {
        &self.rows[row].name
    }

    pub(super) fn learn(&mut self, row: usize, known: Known) {
        self.rows[row].known = known;
    }

    /// The steps, within the limits of one transaction.
    pub(super) fn take_steps(&mut self) -> Result<Vec<Step>, Failure> {
        let bytes = self.steps.iter().map(|step| step.bytes).sum();
        if bytes > MAX_BYTES {
            return Err(Failure::TooLarge { bytes, limit: MAX_BYTES });
        }
        Ok(std::mem::take(&mut self.steps))
    }

    /// Whether anything is known of the item: always, unless it was named by [`Reads::later`] and has not refused yet.
    #[must_use]
    pub fn knows<T: Record>(&self, item: Item<T>) -> bool {
        !matches!(self.rows[item.row].known, Known::Nothing)
    }

    /// The item as it was seen; `None` where nothing is, or a tombstone.
    ///
    /// # Errors
    /// [`Failure::CorruptItem`]: what is stored does not decode.
    pub fn get<T: Record>(&self, item: Item<T>) -> Result<Option<Versioned<T>>, Failure> {
        match &self.rows[item.row].known {
            Known::Nothing | Known::Absent | Known::Lost => Ok(None),
            Known::Row(row) => Table::<T>::decode(row),
        }
    }

    /// Adds a step that creates the item, where nothing is, or a tombstone. Gives the version that it will have.
    ///
    /// # Errors
    /// [`Failure::InvalidTransaction`]: it is there already. [`Failure::TooLarge`], [`Failure::InvalidRecord`].
    pub fn put_if_absent<T: Record>(&mut self, item: Item<T>, value: &T) -> Result<ItemVersion, Failure> {
        let known = &self.rows[item.row];
        match &known.known {
            Known::Nothing | Known::Absent | Known::Lost => self.write(item, &Write::Create(value)),
            Known::Row(row) => match Observed::<T>::of(row.clone())? {
                Observed::Tombstone(row) => self.write(item, &Write::Revive(&row, value)),
                Observed::Live(..) | Observed::Absent => Err(invalid(format!("{} is there already", known.name))),
            },
        }
    }

    /// Adds a step that puts `value` in the place of what was seen, if it is still at that version. Gives the version
    /// that it will have.
    ///
    /// # Errors
    /// [`Failure::InvalidTransaction`]: nothing was seen there. [`Failure::TooLarge`], [`Failure::InvalidRecord`].
    pub fn update_at<T: Record>(&mut self, item: Item<T>, value: &T) -> Result<ItemVersion, Failure> {
        let (row, current) = self.live(item)?;
        self.write(item, &Write::Update(&row, &current.value, value))
    }

    /// Adds a step that deletes what was seen, if it is still at that version. Gives the tombstone's version.
    ///
    /// # Errors
    /// [`Failure::InvalidTransaction`]: nothing was seen there.
    pub fn delete_at<T: Record>(&mut self, item: Item<T>) -> Result<Version, Failure> {
        let (_, current) = self.live(item)?;
        Ok(self.write(item, &Write::<T>::Delete(current.at))?.version)
    }

    /// Adds a step that writes nothing, but demands that the item is still as it was seen: at that version, or absent.
    ///
    /// # Errors
    /// [`Failure::InvalidTransaction`]: it was not read.
    pub fn check<T: Record>(&mut self, item: Item<T>) -> Result<(), Failure> {
        self.check_row(item.row)
    }

    /// Adds a [`check`](Attempt::check) of every item that was read and has no step yet.
    ///
    /// # Errors
    /// As [`Attempt::check`].
    pub fn check_rest(&mut self) -> Result<(), Failure> {
        for row in 0..self.rows.len() {
            let has_step = self.steps.iter().any(|step| step.row == row);
            if !has_step && !matches!(self.rows[row].known, Known::Nothing | Known::Lost) {
                self.check_row(row)?;
            }
        }
        Ok(())
    }

    /// Adds a step that adds `by` to a whole number of the item, if the result is within `within`. It loses to no
    /// version, and leaves no write id: a transaction that has only such steps is recognised by its token alone.
    ///
    /// # Errors
    /// [`Failure::InvalidTransaction`]: the attribute is none that the `Record` declares.
    pub fn add_within<T: Record>(
        &mut self,
        item: Item<T>,
        attribute: &str,
        by: i64,
        within: RangeInclusive<i64>,
    ) -> Result<(), Failure> {
        if !T::ATTRIBUTES.contains(&attribute) {
            return Err(invalid(format!("{attribute} is not among the attributes that its Record declares")));
        }
        // Conditions cannot compute, so the bounds of the result become bounds of what is there. Those may be beyond i64.
        let before = |bound: i64| i128::from(bound) - i128::from(by);
        let (low, high) = (before(*within.start()), before(*within.end()));
        self.check_fence(item)?;
        let known = &self.rows[item.row];
        let add = condition::add_between(known.address.key.clone(), attribute, by, low, high);
        let add = condition::fenced(add, known.fence).ok_or_else(|| invalid("an addition is too long".to_owned()))?;
        self.add(item.row, add, Role::Adds, T::EXPIRES_AT)
    }

    /// Refuses an item that has seen a higher fencing token than its table writes under.
    pub(super) fn check_fence<T: Record>(&self, item: Item<T>) -> Result<(), Failure> {
        let KnownRow { known, fence, .. } = &self.rows[item.row];
        if let Known::Row(row) = known { row.check_fence(*fence) } else { Ok(()) }
    }

    /// Adds a step that writes nothing, but demands that the lease is still held under this token. Whoever has been
    /// replaced without knowing it changes nothing then.
    ///
    /// # Errors
    /// [`Failure::Fenced`]: it was seen not to be. Look at what else was seen first, where that decides.
    /// [`Failure::InvalidTransaction`]: it has a step already.
    pub fn require(&mut self, lease: Required) -> Result<(), Failure> {
        let KnownRow { address, known, fence, .. } = &self.rows[lease.row];
        match (known, fence) {
            (Known::Nothing, Some(token)) => {
                let check = condition::check_held(address.key.clone(), *token);
                let requires = Role::Requires(*token);
                self.add(lease.row, check, requires, None)
            }
            _ => Err(Failure::Fenced),
        }
    }

    fn live<T: Record>(&self, item: Item<T>) -> Result<(Row, Versioned<T>), Failure> {
        let known = &self.rows[item.row];
        if let Known::Row(row) = &known.known
            && let Observed::Live(row, current) = Observed::of(row.clone())?
        {
            return Ok((row, current));
        }
        Err(invalid(format!("{} is not there", known.name)))
    }

    fn write<T: Record>(&mut self, item: Item<T>, write: &Write<'_, T>) -> Result<ItemVersion, Failure> {
        let known = &self.rows[item.row];
        let stamp = Stamp { id: self.id, purge_at: self.now + known.retention, fence: known.fence };
        let (request, sent) = write.prepare(&known.address.key, stamp)?;
        self.add(item.row, request, Role::Writes(sent), T::EXPIRES_AT)?;
        Ok(committed(&sent))
    }

    fn check_row(&mut self, row: usize) -> Result<(), Failure> {
        let known = &self.rows[row];
        let key = known.address.key.clone();
        let (request, base) = match &known.known {
            Known::Nothing | Known::Lost => return Err(invalid(format!("{} was not read", known.name))),
            Known::Absent => (condition::check_absent(known.partition_key, key), Base::NoRow),
            Known::Row(row) => {
                let ItemVersion { version, incarnation } = row.at;
                (condition::check_at(key, row.at), Base::Row { version, incarnation })
            }
        };
        self.add(row, request, Role::Checks(base), None)
    }

    fn add(
        &mut self,
        row: usize,
        write: ConditionalWrite,
        role: Role,
        expires_at: Option<&'static str>,
    ) -> Result<(), Failure> {
        let known = &self.rows[row];
        if self.steps.iter().any(|step| step.row == row) {
            return Err(invalid(format!("{} has two steps; a transaction takes one of each item", known.name)));
        }
        let bytes = size(&write, &known.known);
        let request = step(&known.address.table, write).map_err(|source| invalid(source.to_string()))?;
        self.steps.push(Step { row, role, expires_at, request, bytes });
        Ok(())
    }
}

/// What the item takes that a step leaves behind: what it writes, and what it leaves alone of the row.
fn size(write: &ConditionalWrite, known: &Known) -> usize {
    let kept = |is_kept: &dyn Fn(&String) -> bool| {
        let Known::Row(row) = known else { return 0 };
        size_of_attributes(row.attributes.iter().filter(|(name, _)| is_kept(name)))
    };
    match &write.action {
        Action::Put { item } => size_of_attributes(item),
        Action::Check { .. } => kept(&|_| true),
        Action::Update { .. } => {
            let is_named = |name: &String| write.names.values().any(|named| named == name);
            kept(&|name| !is_named(name)) + size_of_attributes(&write.values)
        }
    }
}
