//! The exactly-once operations on one item: observe, decide, write conditionally, judge, decide again.
//!
//! [`Table::update_with_retry`] owns the read: a conflict is decided again on the item that the
//! refusal returned. [`Table::update_at_version`] answers a client that named a version: a conflict
//! is its answer. Both, and create and delete, write through `commit.rs`.

use super::commit::{Committed, RowChange};
use super::handle::Table;
use super::key::Key;
use super::prepare::{Observed, Write};
use super::record::Record;
use crate::call::Call;
use crate::error::{CreateError, DeleteError, Failure, UpdateError, VersionedUpdateError};
use crate::protocol::deliver::until_read;
use crate::protocol::row::Row;
use crate::version::{ItemVersion, Version, Versioned};

/// What a decision makes of the current value. Pure and sync, so that it can be made again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision<T, R> {
    /// Write this value in its place. Always a write, also where nothing differs.
    Put(T),
    /// Write nothing: it is as it should be.
    Keep,
    /// Write nothing: the answer is no, for this reason.
    Refuse(R),
}

impl<T, R> Decision<T, R> {
    /// The same decision with another kind of reason.
    pub fn map_refusal<S>(self, map: impl FnOnce(R) -> S) -> Decision<T, S> {
        match self {
            Decision::Put(value) => Decision::Put(value),
            Decision::Keep => Decision::Keep,
            Decision::Refuse(reason) => Decision::Refuse(map(reason)),
        }
    }
}

impl<T: Record> Table<T> {
    /// The item as it is now (strongly consistent); `None` where nothing is, or a tombstone.
    ///
    /// # Errors
    /// [`Failure::Unavailable`] when the table does not answer before the deadline: try later.
    /// [`Failure::CorruptItem`] and [`Failure::Rejected`]: repair the row or the set-up.
    pub async fn get(&self, key: &Key, call: &Call) -> Result<Option<Versioned<T>>, Failure> {
        match self.observe(key, call).await? {
            Observed::Absent | Observed::Tombstone(_) => Ok(None),
            Observed::Live(_, current) => Ok(Some(current)),
        }
    }

    /// Creates the item if the key is free: one write, two where a deleted item left its tombstone.
    ///
    /// # Errors
    /// [`CreateError::Exists`] with what is there. [`CreateError::Failed`]: see [`Failure`].
    pub async fn create(&self, key: &Key, value: &T, call: &Call) -> Result<Versioned<T>, CreateError<T>>
    where
        T: Clone,
    {
        let mut change = RowChange::new(self, key, call)?;
        let mut observed = Observed::Absent;
        loop {
            let write = match &observed {
                Observed::Absent => Write::Create(value),
                Observed::Tombstone(row) => Write::Revive(row, value),
                Observed::Live(_, current) => return Err(CreateError::Exists(Box::new(current.clone()))),
            };
            match change.commit(write).await? {
                Committed::Applied(at) => return Ok(Versioned { value: value.clone(), at }),
                Committed::Conflict(current) => observed = current,
            }
        }
    }

    /// Changes the item by a decision that is made again, on the current item, as often as other
    /// writers come first: one read, then one write an attempt.
    ///
    /// `decide` gets the current value and must be pure. `Keep` gives the current item back unwritten.
    ///
    /// # Errors
    /// [`UpdateError::NotFound`]: nothing is there. [`UpdateError::Refused`]: the decision's own no.
    /// [`UpdateError::Failed`] with [`Failure::Contention`]: nothing was applied, the same call may win;
    /// with [`Failure::OutcomeUnknown`]: an answer was lost and nothing proves what became of the write.
    pub async fn update_with_retry<R>(
        &self,
        key: &Key,
        call: &Call,
        decide: impl Fn(&T) -> Decision<T, R>,
    ) -> Result<Versioned<T>, UpdateError<R>> {
        let mut change = RowChange::new(self, key, call)?;
        let mut observed = self.observe(key, call).await?;
        loop {
            let Observed::Live(row, current) = observed else { return Err(UpdateError::NotFound) };
            let next = match decide(&current.value) {
                Decision::Put(next) => next,
                Decision::Keep => return Ok(current),
                Decision::Refuse(reason) => return Err(UpdateError::Refused(reason)),
            };
            match change.commit(Write::Update(&row, &current.value, &next)).await? {
                Committed::Applied(at) => return Ok(Versioned { value: next, at }),
                Committed::Conflict(current) => observed = current,
            }
        }
    }

    /// Changes the item only if it is still at the version that the client has seen: one read and one
    /// write, or no write when the version is stale already. A conflict is never decided again.
    ///
    /// # Errors
    /// [`VersionedUpdateError::Conflict`] with the current item; the others as for [`Table::update_with_retry`].
    pub async fn update_at_version<R>(
        &self,
        key: &Key,
        at: ItemVersion,
        call: &Call,
        decide: impl Fn(&T) -> Decision<T, R>,
    ) -> Result<Versioned<T>, VersionedUpdateError<T, R>> {
        use VersionedUpdateError as E;
        let mut change = RowChange::new(self, key, call)?;
        let Observed::Live(row, current) = self.observe(key, call).await? else { return Err(E::NotFound) };
        if current.at != at {
            return Err(E::Conflict(Box::new(current)));
        }
        let next = match decide(&current.value) {
            Decision::Put(next) => next,
            Decision::Keep => return Ok(current),
            Decision::Refuse(reason) => return Err(E::Refused(reason)),
        };
        match change.commit(Write::Update(&row, &current.value, &next)).await? {
            Committed::Applied(at) => Ok(Versioned { value: next, at }),
            Committed::Conflict(Observed::Live(_, current)) => Err(E::Conflict(Box::new(current))),
            Committed::Conflict(Observed::Absent | Observed::Tombstone(_)) => Err(E::NotFound),
        }
    }

    /// Deletes the item if it is still at this version: one write, no read. A tombstone stays, and
    /// the version it returns is the tombstone's.
    ///
    /// # Errors
    /// [`DeleteError::NotFound`]: it is gone already. [`DeleteError::Conflict`] with the current item.
    pub async fn delete_at_version(&self, key: &Key, at: ItemVersion, call: &Call) -> Result<Version, DeleteError<T>> {
        let mut change = RowChange::new(self, key, call)?;
        match change.commit(Write::Delete(at)).await? {
            Committed::Applied(at) => Ok(at.version),
            Committed::Conflict(Observed::Live(_, current)) => Err(DeleteError::Conflict(Box::new(current))),
            Committed::Conflict(Observed::Absent | Observed::Tombstone(_)) => Err(DeleteError::NotFound),
        }
    }

    /// Deletes the item, whatever its version is: one read, then one write an attempt.
    ///
    /// # Errors
    /// [`DeleteError::NotFound`]: nothing is there. [`DeleteError::Conflict`] does not occur.
    pub async fn delete(&self, key: &Key, call: &Call) -> Result<Version, DeleteError<T>> {
        let mut change = RowChange::new(self, key, call)?;
        let mut observed = self.observe(key, call).await?;
        loop {
            let Observed::Live(_, current) = observed else { return Err(DeleteError::NotFound) };
            match change.commit(Write::Delete(current.at)).await? {
                Committed::Applied(at) => return Ok(at.version),
                Committed::Conflict(current) => observed = current,
            }
        }
    }

    /// Reads the row until it is answered or time is up.
    async fn observe(&self, key: &Key, call: &Call) -> Result<Observed<T>, Failure> {
        let key = Self::key_attributes(key)?;
        let read = |timeout| self.sender().read(&self.name, key.clone(), timeout);
        match until_read(self.sender(), call, read).await? {
            None => Ok(Observed::Absent),
            Some(item) => Observed::of(Row::read(item)?),
        }
    }
}
