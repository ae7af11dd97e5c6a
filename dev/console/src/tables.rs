//! The rows of the tables as they are now, and what changes in them, also behind the back of this program.
//!
//! `DynamoDB` tells nobody of a change. So while somebody looks, the tables are read again and again.

use crate::rows::{Row, id_of};
use crate::watched::WatchedTable;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::DisplayErrorContext;
use fencepost::{Attributes, Clock, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// The most rows of one table that are read and shown.
const SHOWN: i32 = 200;

/// The tables at one moment.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The rows by their ids.
    pub rows: BTreeMap<String, Arc<Row>>,
    /// For each table, what was read of it.
    pub tables: Vec<Count>,
}

/// What was read of one table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Count {
    /// So many rows, and whether there are more.
    Read(usize, bool),
    /// Nothing, because of this.
    Failed(String),
}

/// The tables, read again and again.
#[derive(Debug)]
pub struct Tables {
    client: Client,
    watched: Vec<WatchedTable>,
    pause: Duration,
    clock: Clock,
    seen: watch::Sender<Arc<Seen>>,
}

impl Tables {
    /// Tables that this client reads, with this pause in between.
    #[must_use]
    pub fn new(client: Client, watched: Vec<WatchedTable>, pause: Duration) -> Arc<Self> {
        Arc::new(Tables { client, watched, pause, clock: Clock::system(), seen: watch::channel(Arc::default()).0 })
    }

    /// The tables themselves.
    pub fn tables(&self) -> &[WatchedTable] {
        &self.watched
    }

    /// The clock that says when a row has changed.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The tables as they are seen from now on. The first look may be an old one.
    pub fn watch(&self) -> watch::Receiver<Arc<Seen>> {
        self.seen.subscribe()
    }

    /// Reads the tables as long as somebody watches, until the runtime ends.
    pub async fn look(self: Arc<Self>) {
        let mut was_watched = false;
        loop {
            if self.seen.receiver_count() == 0 {
                was_watched = false;
                sleep(self.pause).await;
                continue;
            }
            let before = self.seen.borrow().clone();
            let seen = self.read(&before, was_watched).await;
            was_watched = true;
            let is_new = seen.tables != before.tables
                || seen.rows.len() != before.rows.len()
                || seen.rows.iter().any(|(id, row)| before.rows.get(id).is_none_or(|old| !Arc::ptr_eq(old, row)));
            if is_new {
                self.seen.send_replace(Arc::new(seen));
            }
            sleep(self.pause).await;
        }
    }

    /// Reads all tables. A row that has not changed stays the same row.
    async fn read(&self, before: &Seen, was_watched: bool) -> Seen {
        let now = Timestamp::from(self.clock.now()).epoch_millis().unwrap_or_default();
        let mut seen = Seen::default();
        for (number, table) in self.watched.iter().enumerate() {
            let (items, more) = match self.scan(table).await {
                Ok(read) => read,
                Err(why) => {
                    seen.tables.push(Count::Failed(why));
                    // Nobody knows what is there now. What was seen last is not gone.
                    let old = before.rows.iter().filter(|(_, row)| row.table == number);
                    seen.rows.extend(old.map(|(id, row)| (id.clone(), row.clone())));
                    continue;
                }
            };
            seen.tables.push(Count::Read(items.len(), more));
            for attributes in items {
                let id = id_of(table, &attributes);
                let row = match before.rows.get(&id) {
                    Some(old) if old.attributes == attributes => old.clone(),
                    _ => {
                        Arc::new(Row { id: id.clone(), table: number, attributes, seen_at: now, is_old: !was_watched })
                    }
                };
                seen.rows.insert(id, row);
            }
        }
        seen
    }

    /// The first rows of a table, and whether there are more.
    async fn scan(&self, table: &WatchedTable) -> Result<(Vec<Attributes>, bool), String> {
        let scan = self.client.scan().table_name(&table.name).consistent_read(true).limit(SHOWN);
        let page = scan.send().await.map_err(|error| DisplayErrorContext(error).to_string())?;
        let more = page.last_evaluated_key.is_some();
        Ok((page.items.unwrap_or_default(), more))
    }
}
