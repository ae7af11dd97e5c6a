//! Reads many items of one table by their keys.

use super::handle::Table;
use super::key::Key;
use super::record::Record;
use crate::error::Failure;
use crate::protocol::batch::{MAX_ROWS, read_rows};
use crate::protocol::row::Row;
use crate::protocol::send::Address;
use crate::version::Versioned;

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
