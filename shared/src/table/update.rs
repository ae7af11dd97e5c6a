//! The exactly-once operations on one item: observe, decide, write conditionally, judge, decide again.
//!
//! [`Table::update_with_retry`] reads the item itself, and decides again after a conflict, on the item in the refusal.
//! [`Table::update_at_version`] serves a client with a version of its own, and returns a conflict to this client. Both
//! write through `commit.rs`, and so do create and delete.

use super::commit::RowChange;
use super::handle::Table;
use super::key::Key;
use super::prepare::{Write, check_room};
use super::record::Record;
use crate::call::Call;
use crate::error::{Error, Failure, UpdateError, VersionError};
use crate::protocol::condition::Demand;
use crate::protocol::deliver::{MAX_ROWS, read_rows};
use crate::protocol::item::Attributes;
use crate::protocol::row::Row;
use crate::protocol::send::Address;
use crate::version::{ItemVersion, Version, Versioned};
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

impl<T: Record> Table<T> {
    /// Reads the item, strongly consistent. Returns `None` if the key has no row or a tombstone.
    ///
    /// # Errors
    /// [`Failure::Unavailable`]: the table did not answer before the deadline; call again later.
    /// [`Failure::CorruptItem`]: repair the row. [`Failure::Rejected`]: correct the set-up.
    pub async fn get(&self, key: impl Into<Key>) -> Result<Option<Versioned<T>>, Failure> {
        let observed = self.observe(&Self::key_attributes(&key.into())?, &self.call()).await?;
        Ok(observed.map(|(_, current)| current))
    }

    /// The item as this client saw it last, if the table [remembers items](Table::remembering_items). Sends nothing. The
    /// item may be out of date.
    #[cfg_attr(not(any(feature = "http", feature = "testing")), expect(dead_code, reason = "only `http` needs it"))]
    pub(crate) fn last_seen(&self, key: impl Into<Key>) -> Option<Versioned<T>> {
        let row = self.raw.remembered(&Self::key_attributes(&key.into()).ok()?)?;
        Self::decode(&row).ok().flatten()
    }

    /// Creates the item if the key is free. Sends one write, or two if the key holds the tombstone of a deleted item.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`Exists`]: the key is taken; the reason holds the item. [`Error::Failed`]: see [`Failure`].
    pub async fn create(&self, key: impl Into<Key>, value: &T) -> Result<Versioned<T>, Error<Exists<T>>>
    where
        T: Clone,
    {
        let call = &self.call();
        let mut change = self.change(key, call)?;
        let told = async {
            let mut row: Option<Row> = None;
            loop {
                if let Some(current) = row.as_ref().map(Self::decode).transpose()?.flatten() {
                    return Ok(Err(Error::Refused(Exists(Box::new(current)))));
                }
                let item = Self::encode(value)?;
                let attempt = change.prepare(match &row {
                    None => Write::Create(item),
                    Some(tombstone) => Write::Revive(tombstone, item),
                })?;
                match change.commit(attempt).await? {
                    (Some((_, at)), _) => return Ok(Ok(Versioned { value: value.clone(), at })),
                    (None, current) => row = current?,
                }
            }
        }
        .await;
        match told {
            // The key is taken, as with `Exists`.
            Err(failure @ Failure::CorruptItem { .. }) => Err(failure.into()),
            told => change.end(told).await,
        }
    }

    /// Changes the item by a decision. After each conflict, decides again on the current item. Sends one read, then one
    /// write per attempt.
    ///
    /// `decide` gets the current value, and must be pure and sync, because it runs again after a conflict. `Ok(Some(new))`
    /// writes the new value in place of the current one, even if they are equal. `Ok(None)` keeps the current item without
    /// a write. `Err(reason)` refuses. So `?` works inside.
    ///
    /// # Errors
    /// [`UpdateError::NotFound`]: the key has no item. [`UpdateError::Refused`]: the decision refused; the error holds
    /// its reason. [`UpdateError::Failed`] with [`Failure::Contention`]: nothing was applied; repeat the call, because
    /// it may win. [`UpdateError::Failed`] with [`Failure::OutcomeUnknown`]: an answer was lost, so the write may have
    /// been applied, or may still be. That variant says what to do. For all others, see [`Failure`].
    pub async fn update_with_retry<R>(
        &self,
        key: impl Into<Key>,
        decide: impl Fn(&T) -> Result<Option<T>, R>,
    ) -> Result<Versioned<T>, UpdateError<R>> {
        let call = &self.call();
        let mut change = self.change(key, call)?;
        // A remembered item may be out of date. So only a write rests on it, which demands its version.
        let remembered = self.raw.remembered(&change.address.key);
        let remembered = remembered.and_then(|row| Self::live(Some((*row).clone())).ok().flatten());
        let (observed, remembered) = match remembered {
            Some(live) => (Some(live), Some(call)),
            None => (self.observe(&change.address.key, call).await?, None),
        };
        let told = self.update_from(observed, remembered, &mut change, decide).await;
        change.end(told).await
    }

    /// Decides and writes, beginning with the observed row. If the row is only remembered, `remembered` has the call in
    /// which it is read before any answer without a write.
    pub(super) async fn update_from<R>(
        &self,
        mut observed: Option<(Row, Versioned<T>)>,
        mut remembered: Option<&Call>,
        change: &mut RowChange<'_>,
        decide: impl Fn(&T) -> Result<Option<T>, R>,
    ) -> Result<Result<Versioned<T>, UpdateError<R>>, Failure> {
        // The values of the attempts that may have been applied.
        let mut earlier = Vec::new();
        loop {
            let Some((row, current)) = observed else { return Ok(Err(UpdateError::NotFound)) };
            change.is_from_memory = remembered.is_some();
            let next = match (decide(&current.value), remembered.take()) {
                (Ok(Some(next)), _) => next,
                (_, Some(call)) => {
                    observed = self.observe(&change.address.key, call).await?;
                    continue;
                }
                (Ok(None), None) => return Ok(Ok(current)),
                (Err(reason), None) => return Ok(Err(UpdateError::Refused(reason))),
            };
            let id = change.attempts.id;
            let attempt = change.prepare(Write::Update(&row, Self::diff(&current.value, &next)?))?;
            // The row that refuses the attempt may be as large. Only one of them is held at a time.
            drop((row, current));
            let (applied, current) = change.commit(attempt).await?;
            if applied.is_some() || change.attempts.is_open(id) {
                earlier.push((id, next));
            }
            let Some((applied, at)) = applied else {
                observed = Self::live(current?)?;
                continue;
            };
            if let Some((_, value)) = earlier.into_iter().find(|(id, _)| *id == applied) {
                return Ok(Ok(Versioned { value, at }));
            }
            // It was an add. The row shows its result.
            return match current.and_then(Self::live) {
                Ok(Some((_, current))) => Ok(Ok(current)),
                Ok(None) => Ok(Err(UpdateError::NotFound)),
                Err(_) => {
                    let source = "the add was applied, and its item cannot be read".into();
                    Err(Failure::OutcomeUnknown { source })
                }
            };
        }
    }

    /// Changes the item only if it is still at the version seen by the client. Never decides again after a conflict.
    /// Sends one read and one write, or only the read if the version is already stale.
    ///
    /// # Errors
    /// [`VersionError::Conflict`]: the item is at another version; the error holds the current item. For the
    /// others, see [`Table::update_with_retry`].
    pub async fn update_at_version<R>(
        &self,
        key: impl Into<Key>,
        at: ItemVersion,
        decide: impl Fn(&T) -> Result<Option<T>, R>,
    ) -> Result<Versioned<T>, VersionError<T, R>> {
        let call = &self.call();
        let mut change = self.change(key, call)?;
        let Some((row, current)) = self.observe(&change.address.key, call).await? else {
            return Err(VersionError::NotFound);
        };
        if current.at != at {
            return Err(VersionError::Conflict(Box::new(current)));
        }
        let next = match decide(&current.value) {
            Ok(Some(next)) => next,
            Ok(None) => return Ok(current),
            Err(reason) => return Err(VersionError::Refused(reason)),
        };
        let attempt = change.prepare(Write::Update(&row, Self::diff(&current.value, &next)?))?;
        drop((row, current));
        let told = async {
            match change.commit(attempt).await? {
                (Some((_, at)), _) => Ok(Ok(Versioned { value: next, at })),
                (None, current) => Ok(Err(Self::conflict(current?)?)),
            }
        }
        .await;
        change.end(told).await
    }

    /// Deletes the item if it is still at this version, which a read or an answer has shown. Sends one write. Reads
    /// first only if another program wrote the row, or if versions may repeat
    /// ([`Settings::open_to_any`](crate::Settings::open_to_any)). Leaves a tombstone or nothing, as set in
    /// [`Record::SETTINGS`]. Returns the version made by the delete.
    ///
    /// # Errors
    /// [`VersionError::NotFound`]: the item is gone already. [`VersionError::Conflict`]: the item is at another version;
    /// the error holds the current item. [`VersionError::Failed`]: see [`Failure`].
    pub async fn delete_at_version(&self, key: impl Into<Key>, at: ItemVersion) -> Result<Version, VersionError<T>> {
        let call = &self.call();
        let mut change = self.change(key, call)?;
        // A client may name any version. Whether a row is so near the last one, only the row tells.
        let needs_no_row = Demand::at(Self::LAYOUT, at).is_some() && check_room(Self::LAYOUT, at).is_ok();
        let row = if needs_no_row { None } else { self.raw.observe(&change.address.key, call).await? };
        let is_there = row.as_ref().is_some_and(|row| row.at == at && !row.is_tombstone);
        if !needs_no_row && !is_there {
            return Err(Self::conflict(row)?);
        }
        let attempt = change.prepare(Write::Delete(at, row.as_ref()))?;
        drop(row);
        let told = async {
            match change.commit(attempt).await? {
                (Some((_, at)), _) => Ok(Ok(at.version)),
                (None, current) => Ok(Err(Self::conflict(current?)?)),
            }
        }
        .await;
        change.end(told).await
    }

    /// Deletes the item at any version. Sends one read, then one write per attempt. Returns its version.
    ///
    /// # Errors
    /// [`UpdateError::NotFound`]: the key has no item. [`UpdateError::Failed`]: see [`Failure`].
    pub async fn delete(&self, key: impl Into<Key>) -> Result<Version, UpdateError> {
        let call = &self.call();
        let mut change = self.change(key, call)?;
        // The value is not decoded, so that an item with a value that does not decode can be deleted.
        let told = async {
            let mut observed = self.raw.observe(&change.address.key, call).await?;
            loop {
                let Some(row) = observed.filter(|row| !row.is_tombstone) else { return Ok(Err(UpdateError::NotFound)) };
                let attempt = change.prepare(Write::Delete(row.at, Some(&row)))?;
                match change.commit(attempt).await? {
                    (Some((_, at)), _) => return Ok(Ok(at.version)),
                    (None, current) => observed = current?,
                }
            }
        }
        .await;
        change.end(told).await
    }

    fn conflict<R>(current: Option<Row>) -> Result<VersionError<T, R>, Failure> {
        let conflict = |(_, current)| VersionError::Conflict(Box::new(current));
        Ok(Self::live(current)?.map_or(VersionError::NotFound, conflict))
    }

    pub(super) fn change<'a>(&'a self, key: impl Into<Key>, call: &'a Call) -> Result<RowChange<'a>, Failure> {
        Ok(RowChange::new(&self.raw, Self::key_attributes(&key.into())?, self.raw.delivery(call)))
    }

    async fn observe(&self, key: &Attributes, call: &Call) -> Result<Option<(Row, Versioned<T>)>, Failure> {
        Self::live(self.raw.observe(key, call).await?)
    }
}

impl<T: Record> Table<T> {
    /// Reads the items with these keys, each strongly consistent, and returns them in the order of the keys. `None`
    /// stands for a key without an item. A key may be named more than once, and is then read once.
    ///
    /// Any number of keys is read, in batches of 100, one after the other. The items are not read at one moment. Use a
    /// transaction to decide on several items together.
    ///
    /// # Errors
    /// See [`Failure`]. If it [is retryable](Failure::is_retryable), read again.
    pub async fn get_many(
        &self,
        keys: impl IntoIterator<Item = impl Into<Key>>,
    ) -> Result<Vec<Option<Versioned<T>>>, Failure> {
        let keys: Vec<Key> = keys.into_iter().map(Into::into).collect();
        let call = &self.call();
        let mut items = Vec::with_capacity(keys.len());
        for keys in keys.chunks(MAX_ROWS) {
            let mut rows: Vec<Address> = Vec::with_capacity(keys.len());
            let mut places = Vec::with_capacity(keys.len());
            for key in keys {
                let row = Address { table: self.raw.name.clone(), key: Self::key_attributes(key)? };
                // DynamoDB refuses a batch with the same row twice.
                places.push(rows.iter().position(|other| *other == row).unwrap_or(rows.len()));
                if places.last() == Some(&rows.len()) {
                    rows.push(row);
                }
            }
            let found = read_rows(self.sender(), call, &rows).await?;
            let read = |item: Option<_>| item.map(|item| Row::read(Self::LAYOUT, item)).transpose();
            let found = found.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
            for (row, item) in rows.iter().zip(&found) {
                self.raw.saw(&row.key, item.as_ref());
            }
            for place in places {
                items.push(found[place].as_ref().map(Self::decode).transpose()?.flatten());
            }
        }
        Ok(items)
    }
}
