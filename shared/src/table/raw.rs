//! [`RawTable`]: a table without the type of its values, which is all that a change needs.

use crate::call::Call;
use crate::error::Failure;
use crate::layout::Layout;
use crate::protocol::condition::ConditionalWrite;
use crate::protocol::deliver::{Delivery, until_read};
use crate::protocol::item::Attributes;
use crate::protocol::row::Row;
use crate::protocol::send::{Send, SendOutcome, Sender};
use crate::store::Store;
use std::sync::Arc;
use std::time::Duration;

/// A table without the type of its values. Changes are compiled once for it, and not once for each type.
#[derive(Clone)]
pub(crate) struct RawTable {
    pub store: Store,
    pub name: String,
    pub layout: &'static Layout,
    pub tombstone_retention: Duration,
    /// The fencing token of its writes.
    pub fence: Option<u64>,
    pub remembers_items: bool,
}

impl RawTable {
    pub(crate) fn sender(&self) -> &Sender {
        self.store.sender()
    }

    pub(crate) async fn observe(&self, key: &Attributes, call: &Call) -> Result<Option<Row>, Failure> {
        let read = |timeout| self.sender().read(&self.name, key.clone(), timeout);
        let row = until_read(self.sender(), call, read).await?;
        let row = row.map(|row| Row::read(self.layout, row)).transpose()?;
        self.saw(key, row.as_ref());
        Ok(row)
    }

    /// Sends a write of one item. Where versions may repeat, it goes as a transaction of one step: `DynamoDB` then applies
    /// no copy with the same token again.
    pub(crate) async fn send(
        &self,
        write: ConditionalWrite,
        token: Option<&str>,
        send: Send,
    ) -> SendOutcome<Option<Attributes>, Option<Attributes>> {
        let sender = self.sender();
        match token {
            None => sender.write(&self.name, write, send).await,
            Some(token) => sender.write_as_transaction(&self.name, write, token.to_owned(), send).await,
        }
    }

    /// A new change of an item of this table.
    pub(crate) fn delivery<'a>(&'a self, call: &'a Call) -> Delivery<'a> {
        Delivery::of(self.sender(), call, self.layout.demands_values())
    }

    pub(crate) fn new_token(&self) -> Option<String> {
        self.layout.demands_values().then(|| self.sender().new_token())
    }

    /// Remembers the row seen at this key, or its absence, if this table remembers items.
    pub(crate) fn saw(&self, key: &Attributes, row: Option<&Row>) {
        match row {
            _ if !self.remembers_items || self.layout.demands_values() => {}
            Some(row) => self.sender().seen_rows.insert(&self.name, key, row, true),
            None => self.sender().seen_rows.remove(&self.name, key),
        }
    }

    pub(crate) fn remembered(&self, key: &Attributes) -> Option<Arc<Row>> {
        let seen = self.remembers_items.then(|| self.sender().seen_rows.get(&self.name, key))??;
        Some(seen).filter(|row| !row.attributes.is_empty())
    }
}

pub(crate) fn invalid(reason: String) -> Failure {
    Failure::InvalidRecord { reason }
}
