//! The exactly-once operations on one item: observe, decide, write conditionally, judge, decide again.
//!
//! [`Table::update_with_retry`] reads the item itself, and decides again after a conflict, on the item in the refusal.
//! [`Table::update_at_version`] serves a client with a version of its own, and returns a conflict to this client. Each
//! operation is one decision, which [`Attempt::decided`] makes until the change has an outcome.

use super::decision::{Decision, Upserted};
use super::handle::{Table, invalid};
use super::key::Key;
use super::record::Record;
use crate::driver::attempt::{Attempt, Done, Next};
use crate::driver::rows::Known;
use crate::driver::send::Address;
use crate::driver::{MAX_ROWS, read_rows};
use crate::error::{Error, Failure, UpdateError, VersionError};
use fencepost_core::condition::Demand;
use fencepost_core::format::item::Attributes;
use fencepost_core::format::row::Row;
use fencepost_core::plan::{Write, check_room};
use fencepost_core::{ItemVersion, Version, Versioned, hold};
use std::fmt;

/// Why a create was refused: the key is taken by this item.
pub struct Exists<T>(pub Box<Versioned<T>>);

impl<T> fmt::Display for Exists<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing was created: the key is taken, by an item at version {}", self.0.version())
    }
}

impl<T> fmt::Debug for Exists<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Exists").field(&self.0.at).finish()
    }
}

/// The item that a decision has kept, or none, or why it has written nothing.
type Kept<T, E> = Result<Option<Versioned<T>>, E>;

/// The write of an item to a key without one: a free key, or that of a tombstone.
fn creating(tombstone: Option<&Row>, item: Attributes) -> Write<'_> {
    match tombstone {
        None => Write::Create(item),
        Some(tombstone) => Write::Revive(tombstone, item),
    }
}

/// A decision on an item that is there.
pub(super) fn updating<T, D: Decision<T>>(
    decide: impl Fn(&T) -> D,
) -> impl Fn(Option<&T>) -> Result<Option<T>, UpdateError<D::Reason>> {
    move |current| decide(current.ok_or(UpdateError::NotFound)?).into_decision().map_err(UpdateError::Refused)
}

impl<T: Record> Table<T> {
    /// Reads the item, strongly consistent. Returns `None` if the key has no row or a tombstone.
    ///
    /// # Errors
    /// [`FailureKind::Unavailable`](crate::FailureKind::Unavailable): the table did not answer before the deadline; call again later.
    /// [`FailureKind::CorruptItem`](crate::FailureKind::CorruptItem): repair the row. [`FailureKind::Rejected`](crate::FailureKind::Rejected): correct the set-up.
    pub async fn get(&self, key: impl Into<Key>) -> Result<Option<Versioned<T>>, Failure> {
        self.get_as(&key.into(), Self::decode).await
    }

    /// The item, read as by [`Table::get`], with the sum of what is [held](crate::Holds) in it.
    ///
    /// Most of what is held belongs to orders that are placed, of which the row was not told yet. The rest belongs to orders on
    /// their way, or to those whose process has died, and may come back.
    ///
    /// # Errors
    /// See [`Table::get`].
    pub async fn get_with_held(&self, key: impl Into<Key>) -> Result<Option<(Versioned<T>, i128)>, Failure> {
        let with_held = |row: &Row| Self::decode(row)?.map(|item| Ok((item, Self::held_in(row)?))).transpose();
        self.get_as(&key.into(), with_held).await
    }

    /// Reads the row at this key, and shows it so.
    async fn get_as<A>(
        &self,
        key: &Key,
        show: impl Fn(&Row) -> Result<Option<A>, Failure>,
    ) -> Result<Option<A>, Failure> {
        let key = self.key_attributes(key).map_err(|failure| failure.at(|| self.place("get", None)))?;
        let row = self.raw.observe(&key, &self.call()).await;
        let item = row.and_then(|row| row.as_ref().map_or(Ok(None), show));
        item.map_err(|failure| failure.at(|| self.place("get", Some(&key))))
    }

    /// The sum of what is held in a row of this table.
    pub(crate) fn held_in(row: &Row) -> Result<i128, Failure> {
        const { assert!(T::HOLDS.is_some(), "the Record of the items has no HOLDS") }
        Ok(hold::sum_of(&Self::LAYOUT.names, &row.attributes)?)
    }

    /// The item as this client saw it last, if the table [remembers items](Table::remembering_items). Sends nothing. The
    /// item may be out of date.
    #[cfg_attr(not(any(feature = "http", feature = "testing")), expect(dead_code, reason = "only `http` needs it"))]
    pub(crate) fn last_seen(&self, key: impl Into<Key>) -> Option<Versioned<T>> {
        let row = self.raw.remembered(&self.key_attributes(&key.into()).ok()?)?;
        Self::decode(&row).ok().flatten()
    }

    /// Creates the item if the key is free. Sends one write, or two if the key holds the tombstone of a deleted item. The
    /// answer has the value as a read will show it.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`Exists`]: the key is taken; the reason holds the item. [`Error::Failed`]: see [`Failure`].
    pub async fn create(&self, key: impl Into<Key>, value: &T) -> Result<Versioned<T>, Error<Exists<T>>> {
        let call = &self.call();
        let mut attempt = self.change("create", key, call)?;
        attempt.rows[0].is_read_first = false;
        let done = attempt.decided(self.sender(), call, |attempt| {
            let current = self.row(attempt).and_then(|row| row.map(Self::decode).transpose());
            let row = match current.map(Option::flatten) {
                Ok(None) => attempt.rows[0].known.row(),
                Ok(Some(current)) => return Ok(Next::Final(Err(Error::Refused(Exists(Box::new(current)))))),
                // The key is taken, as with `Exists`.
                Err(failure) => {
                    return Ok(Next::Answer(Err(Error::Failed(failure.at(|| attempt.place())))));
                }
            };
            let item = Self::encode(value, &attempt.rows[0].address.key)?;
            let read_back = T::decode(&item).map_err(|source| invalid(source.to_string()))?;
            Ok(Next::Send(self.raw.alone(attempt, creating(row, item))?, read_back))
        });
        let done = done.await?;
        self.told(&attempt, done)
    }

    /// Changes the item by a decision. After each conflict, decides again on the current item. Sends one read, then one
    /// write per attempt.
    ///
    /// `decide` gets the current value, and must be pure and sync, because it runs again after a conflict. It answers with
    /// the new value, with `None` to keep the item, or with an `Err` to refuse: see [`Decision`]. So `?` works inside.
    ///
    /// # Errors
    /// [`UpdateError::NotFound`]: the key has no item. [`UpdateError::Refused`]: the decision refused; the error holds
    /// its reason. [`UpdateError::Failed`] with [`FailureKind::Contention`](crate::FailureKind::Contention): nothing was applied; repeat the call, because
    /// it may win. [`UpdateError::Failed`] with [`FailureKind::OutcomeUnknown`](crate::FailureKind::OutcomeUnknown): an answer was lost, so the write may have
    /// been applied, or may still be. That variant says what to do. For all others, see [`Failure`].
    pub async fn update_with_retry<D: Decision<T>>(
        &self,
        key: impl Into<Key>,
        decide: impl Fn(&T) -> D,
    ) -> Result<Versioned<T>, UpdateError<D::Reason>> {
        let decide = updating(decide);
        let (attempt, done) = self.decided("update_with_retry", key, &decide, |_, next| next).await?;
        match done {
            Done::Answered(kept) => kept?.ok_or(UpdateError::NotFound),
            Done::Applied(applied) => {
                let (value, at) = self.committed(&attempt, applied)?;
                Ok(Versioned { value, at })
            }
        }
    }

    /// Creates or changes the item by a decision, which gets the current value, or `None` if the key has no item. After each
    /// conflict, decides again on what is there. Sends one read, then one write per attempt.
    ///
    /// The decision is as in [`Table::update_with_retry`]. Its answer `None` keeps what is there, also if that is nothing. So
    /// this operation also is an update that shows the item before it:
    ///
    /// ```
    /// # use fencepost::{Failure, Record, Table, Upserted};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Clone, Serialize, Deserialize, Record)]
    /// #[record(key = "page")]
    /// struct Visits { count: u64 }
    ///
    /// async fn visit(visits: &Table<Visits>, page: &str) -> Result<Upserted<Visits>, Failure> {
    ///     Ok(visits.upsert_with_retry(page, |now| Visits { count: now.map_or(1, |now| now.count + 1) }).await?)
    /// }
    ///
    /// async fn reset(visits: &Table<Visits>, page: &str) -> Result<u64, Failure> {
    ///     match visits.upsert_with_retry(page, |now| now.map(|_| Visits { count: 0 })).await? {
    ///         Upserted::Updated { old, .. } => Ok(old.count),
    ///         _ => Ok(0), // It was never visited.
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`]: the decision refused; the error holds its reason. [`Error::Failed`]: as of
    /// [`Table::update_with_retry`].
    pub async fn upsert_with_retry<D: Decision<T>>(
        &self,
        key: impl Into<Key>,
        decide: impl Fn(Option<&T>) -> D,
    ) -> Result<Upserted<T>, Error<D::Reason>> {
        let decide = |current: Option<&T>| decide(current).into_decision().map_err(Error::Refused);
        let (attempt, done) = self.decided("upsert_with_retry", key, &decide, |old, new| (old, new)).await?;
        match done {
            Done::Answered(told) => told.map(Upserted::Kept),
            Done::Applied(applied) => {
                let ((old, value), at) = self.committed(&attempt, applied)?;
                let new = Versioned { value, at };
                Ok(match old {
                    Some(old) => Upserted::Updated { old, new },
                    None => Upserted::Created(new),
                })
            }
        }
    }

    /// Decides on the item at this key, which may be a remembered one, until the change has an outcome.
    async fn decided<E, W>(
        &self,
        operation: &'static str,
        key: impl Into<Key>,
        decide: &impl Fn(Option<&T>) -> Result<Option<T>, E>,
        written: impl Fn(Option<Versioned<T>>, T) -> W,
    ) -> Result<(Attempt, Done<Kept<T, E>, W>), Failure> {
        let call = &self.call();
        let mut attempt = self.change(operation, key, call)?;
        // A remembered item may be out of date. So only a write rests on it, which demands its version.
        if let Some(row) = self.raw.remembered(&attempt.rows[0].address.key) {
            (attempt.rows[0].known, attempt.rows[0].is_fresh) = (Known::Row((*row).clone()), false);
        }
        let done = attempt.decided(self.sender(), call, |attempt| self.updated(attempt, decide, &written)).await?;
        Ok((attempt, done))
    }

    /// One decision on the item. `written` makes the answer of the old item and the new value.
    pub(super) fn updated<E, W>(
        &self,
        attempt: &Attempt,
        decide: &impl Fn(Option<&T>) -> Result<Option<T>, E>,
        written: impl FnOnce(Option<Versioned<T>>, T) -> W,
    ) -> Result<Next<Kept<T, E>, W>, Failure> {
        let is_fresh = attempt.rows[0].is_fresh;
        let row = self.row(attempt)?;
        let current = match row.map(Self::decode).transpose() {
            Err(_) if !is_fresh => return Ok(Next::Read(vec![0])),
            current => current?.flatten(),
        };
        Ok(match decide(current.as_ref().map(|current| &current.value)) {
            Ok(Some(next)) => {
                let write = match (row, &current) {
                    (Some(row), Some(current)) => Write::Update(row, Self::diff(&current.value, &next)?),
                    (free, _) => creating(free, Self::encode(&next, &attempt.rows[0].address.key)?),
                };
                Next::Send(self.raw.alone(attempt, write)?, written(current, next))
            }
            _ if !is_fresh => Next::Read(vec![0]),
            Ok(None) => Next::Answer(Ok(current)),
            Err(refused) => Next::Answer(Err(refused)),
        })
    }

    /// Changes the item only if it is still at the version seen by the client. Never decides again after a conflict.
    /// Sends one read and one write, or only the read if the version is already stale.
    ///
    /// # Errors
    /// [`VersionError::Conflict`]: the item is at another version; the error holds the current item. For the
    /// others, see [`Table::update_with_retry`].
    pub async fn update_at_version<D: Decision<T>>(
        &self,
        key: impl Into<Key>,
        at: ItemVersion,
        decide: impl Fn(&T) -> D,
    ) -> Result<Versioned<T>, VersionError<T, D::Reason>> {
        let call = &self.call();
        let mut attempt = self.change("update_at_version", key, call)?;
        let done = attempt.decided(self.sender(), call, |attempt| {
            let row = self.row(attempt)?;
            let (Some(row), Some(current)) = (row, row.map(Self::decode).transpose()?.flatten()) else {
                return Ok(Next::Answer(Err(VersionError::NotFound)));
            };
            if current.at != at || attempt.last.is_some() {
                return Ok(Next::Final(Err(VersionError::Conflict(Box::new(current)))));
            }
            Ok(match decide(&current.value).into_decision() {
                Ok(Some(next)) => {
                    let write = Write::Update(row, Self::diff(&current.value, &next)?);
                    Next::Send(self.raw.alone(attempt, write)?, next)
                }
                Ok(None) => Next::Answer(Ok(current)),
                Err(reason) => Next::Answer(Err(VersionError::Refused(reason))),
            })
        });
        let done = done.await?;
        self.told(&attempt, done)
    }

    /// Deletes the item if it is still at this version, which a read or an answer has shown. Sends one write. Reads
    /// first only if another program wrote the row, if versions may repeat
    /// ([`Settings::open_to_any`](crate::Settings::open_to_any)), or if the item may have [holds](crate::Holds). Leaves a tombstone or nothing, as set in
    /// [`Record::SETTINGS`]. Returns the version made by the delete.
    ///
    /// # Errors
    /// [`VersionError::NotFound`]: the item is gone already. [`VersionError::Conflict`]: the item is at another version;
    /// the error holds the current item. [`VersionError::Failed`]: see [`Failure`].
    pub async fn delete_at_version(&self, key: impl Into<Key>, at: ItemVersion) -> Result<Version, VersionError<T>> {
        Self::is_deleted();
        let call = &self.call();
        // A client may name any version. Whether a row is so near the last one, only the row tells.
        let needs_no_row = Demand::at(Self::LAYOUT, at).is_some()
            && check_room(Self::LAYOUT, at).is_ok()
            && Self::LAYOUT.held.is_none();
        let mut attempt = self.change("delete_at_version", key, call)?;
        attempt.rows[0].is_read_first = !needs_no_row;
        let done = attempt.decided(self.sender(), call, |attempt| {
            let row = self.row(attempt)?;
            let is_there = row.is_some_and(|row| row.at == at && !row.is_tombstone);
            if attempt.last.is_some() || !needs_no_row && !is_there {
                return Ok(Next::Final(match row.map(Self::decode).transpose()?.flatten() {
                    Some(current) => VersionError::Conflict(Box::new(current)),
                    None => VersionError::NotFound,
                }));
            }
            Ok(Next::Send(self.raw.alone(attempt, Write::Delete(at, row))?, ()))
        });
        let done = done.await?;
        self.deleted(&attempt, done)
    }

    /// Deletes the item at any version. Sends one read, then one write per attempt. Returns its version.
    ///
    /// # Errors
    /// [`UpdateError::NotFound`]: the key has no item. [`UpdateError::Failed`]: see [`Failure`].
    pub async fn delete(&self, key: impl Into<Key>) -> Result<Version, UpdateError> {
        Self::is_deleted();
        let call = &self.call();
        let mut attempt = self.change("delete", key, call)?;
        // The value is not decoded, so that an item with a value that does not decode can be deleted.
        let done = attempt.decided(self.sender(), call, |attempt| {
            let row = self.row(attempt)?.filter(|row| !row.is_tombstone);
            let Some(row) = row else { return Ok(Next::Answer(UpdateError::NotFound)) };
            Ok(Next::Send(self.raw.alone(attempt, Write::Delete(row.at, Some(row)))?, ()))
        });
        let done = done.await?;
        self.deleted(&attempt, done)
    }

    /// Deletes the item at any version, and returns it as it was. Sends what [`Table::delete`] sends.
    ///
    /// # Errors
    /// As [`Table::delete`], and [`FailureKind::CorruptItem`](crate::FailureKind::CorruptItem) if the value does not decode:
    /// the item is then still there.
    pub async fn delete_returning(&self, key: impl Into<Key>) -> Result<Versioned<T>, UpdateError> {
        Self::is_deleted();
        let call = &self.call();
        let mut attempt = self.change("delete_returning", key, call)?;
        let done = attempt.decided(self.sender(), call, |attempt| {
            let row = self.row(attempt)?;
            let (Some(row), Some(current)) = (row, row.map(Self::decode).transpose()?.flatten()) else {
                return Ok(Next::Answer(UpdateError::NotFound));
            };
            Ok(Next::Send(self.raw.alone(attempt, Write::Delete(row.at, Some(row)))?, current))
        });
        match done.await? {
            Done::Answered(error) => Err(error),
            Done::Applied(applied) => Ok(self.committed(&attempt, applied)?.0),
        }
    }

    /// Does not compile where no item is ever deleted.
    const fn is_deleted() {
        const { assert!(!T::SETTINGS.0.decides, "an item that decides about holds is never deleted: update it instead") }
    }

    fn deleted<E: From<Failure>>(&self, attempt: &Attempt, done: Done<E, ()>) -> Result<Version, E> {
        match done {
            Done::Answered(error) => Err(error),
            Done::Applied(applied) => Ok(self.committed(attempt, applied)?.1.version),
        }
    }
}

impl<T: Record> Table<T> {
    /// Reads the items with these keys, each strongly consistent, and returns them in the order of the keys. `None`
    /// stands for a key without an item, and an error for a row that cannot be used
    /// ([`FailureKind::CorruptItem`](crate::FailureKind::CorruptItem)): the others are shown all the same. A key may be named
    /// more than once, and is then read once.
    ///
    /// Any number of keys is read, in batches of 100, one after the other. The items are not read at one moment. Use a
    /// transaction to decide on several items together.
    ///
    /// # Errors
    /// See [`Failure`]. If it [is retryable](Failure::is_retryable), read again.
    pub async fn get_many(
        &self,
        keys: impl IntoIterator<Item = impl Into<Key>>,
    ) -> Result<Vec<Result<Option<Versioned<T>>, Failure>>, Failure> {
        let keys: Vec<Key> = keys.into_iter().map(Into::into).collect();
        let call = &self.call();
        let mut items = Vec::with_capacity(keys.len());
        for keys in keys.chunks(MAX_ROWS) {
            let mut rows: Vec<Address> = Vec::with_capacity(keys.len());
            let mut places = Vec::with_capacity(keys.len());
            for key in keys {
                let row = Address {
                    table: self.raw.name.clone(),
                    key: self.key_attributes(key).map_err(|failure| failure.at(|| self.place("get_many", None)))?,
                };
                // DynamoDB refuses a batch with the same row twice.
                places.push(rows.iter().position(|other| *other == row).unwrap_or(rows.len()));
                if places.last() == Some(&rows.len()) {
                    rows.push(row);
                }
            }
            let found = read_rows(self.sender(), call, &rows).await?;
            let read = |item: Option<_>| item.map(|item| Row::read(Self::LAYOUT, item)).transpose();
            let found: Vec<_> = found.into_iter().map(read).collect();
            for (row, item) in rows.iter().zip(&found) {
                if let Ok(item) = item {
                    self.raw.saw(&row.key, item.as_ref(), None);
                }
            }
            for place in places {
                let item = match &found[place] {
                    Ok(row) => row.as_ref().map_or(Ok(None), Self::decode),
                    Err(unusable) => Err(unusable.clone().into()),
                };
                items.push(item.map_err(|failure| failure.at(|| self.place("get_many", Some(&rows[place].key)))));
            }
        }
        Ok(items)
    }
}
