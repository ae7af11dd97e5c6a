//! [`Restamp`]: gives every row of a restored table a new incarnation.

use crate::call::Call;
use crate::error::{Failure, Source};
use crate::layout::{Layout, Names};
use crate::protocol::condition::{self, ACQUIRE_ID, EXPIRES_AT, LEASE_KEY, RENEWALS, TOKEN};
use crate::protocol::deliver::{Delivery, Send, WriteOutcome, until_read};
use crate::protocol::item::Attributes;
use crate::protocol::memory::WriteId;
use crate::protocol::row::Row;
use crate::retry::Deadline;
use crate::store::Store;
use crate::version::ItemVersion;
use std::time::Duration;
use thiserror::Error as ThisError;
use tokio::task::JoinSet;

/// How long a page is asked for, and how long a row is written to, before the run ends with a failure.
const PATIENCE: Duration = Duration::from_mins(1);

/// The number of writes that are in flight at once.
const IN_FLIGHT: usize = 16;

/// Gives every row of a table a new incarnation. [`Store::restamp`] makes it.
///
/// A table that was restored to an earlier moment has old versions. Later writes reach the same version numbers again.
/// A tag or a version that a client saw after that moment, and a write that is still on its way, would then match
/// another state. A new incarnation ends them all: no condition with the old one holds again.
///
/// Run it while nobody writes to the table. It writes only on the condition that a row is as it was read, so it never
/// overwrites a change. But a writer whose answer is lost while its row gets a new incarnation can no longer be told
/// what became of its write, and one that creates is told that it was not applied.
///
/// It changes the incarnation of live rows and of tombstones, and nothing else. It may be run any number of times: a
/// run that ended early is simply made again from the start.
///
/// ```
/// use fencepost::Store;
/// use fencepost::table::{RestampError, Restamped};
///
/// async fn restamp(client: &aws_sdk_dynamodb::Client) -> Result<Restamped, RestampError> {
///     let mut run = Store::new(client).restamp("accounts-restored", ["accountId"]);
///     while run.next_page().await? {
///         println!("{} rows so far", run.so_far().live);
///     }
///     Ok(run.so_far())
/// }
/// ```
#[derive(Debug)]
pub struct Restamp {
    store: Store,
    table: String,
    key: Vec<String>,
    layout: Layout,
    writes: bool,
    position: Position,
    so_far: Restamped,
}

/// The place of a run in its table.
#[derive(Debug)]
enum Position {
    Start,
    After(Attributes),
    End,
}

/// What a run has found so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Restamped {
    /// Live rows that have a new incarnation, or that would get one.
    pub live: u64,
    /// Tombstones that have a new incarnation, or that would get one.
    pub tombstones: u64,
    /// Rows without a version and an incarnation. They are left alone: mappings have none, and other programs write
    /// their own rows.
    pub unversioned: u64,
    /// Rows that changed between the read and the write. They were read again and are counted above. Any such row says
    /// that somebody writes to the table.
    pub changed_meanwhile: u64,
    /// Rows that were removed between the read and the write.
    pub removed_meanwhile: u64,
}

/// Why a run ended early.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum RestampError {
    /// The table has leases. Their tokens must not be restored: start with an empty table. Tokens then begin with the
    /// time of day, so they are higher than all before.
    #[error(
        "this is a table of leases, and a restored token would be given out twice: start with an empty table instead"
    )]
    Leases,
    /// See [`Failure`]. Rows before this one may have a new incarnation. Run it again.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl Store {
    /// A run that gives every row of the table with this name a new incarnation. `key` has the name of the partition
    /// key, and of the sort key if there is one. Sends nothing.
    pub fn restamp<N: Into<String>>(&self, table: impl Into<String>, key: impl IntoIterator<Item = N>) -> Restamp {
        Restamp {
            store: self.clone(),
            table: table.into(),
            key: key.into_iter().map(Into::into).collect(),
            layout: Layout::of_key(""),
            writes: true,
            position: Position::Start,
            so_far: Restamped::default(),
        }
    }
}

impl Restamp {
    /// Sets the names that this crate's attributes have in the table. Without this, they are the default names.
    #[must_use]
    pub fn with_names(self, names: Names) -> Self {
        Restamp { layout: Layout { names, ..self.layout }, ..self }
    }

    /// Makes it a run that only counts and writes nothing.
    #[must_use]
    pub fn counting_only(self) -> Self {
        Restamp { writes: false, ..self }
    }

    /// What was found so far.
    #[must_use]
    pub fn so_far(&self) -> Restamped {
        self.so_far
    }

    /// Reads one page, at most 1 MB, and gives its rows a new incarnation. Returns whether there may be another page.
    ///
    /// # Errors
    /// [`RestampError::Leases`]: start with an empty table instead. [`RestampError::Failed`]: call it again, for the
    /// same page, if the failure [is retryable](Failure::is_retryable) or its outcome is unknown; else correct the
    /// set-up.
    pub async fn next_page(&mut self) -> Result<bool, RestampError> {
        let after = match &self.position {
            Position::Start => None,
            Position::After(key) => Some(key.clone()),
            Position::End => return Ok(false),
        };
        let (sender, call) = (self.store.sender(), Call::new(Deadline::within(PATIENCE)));
        let page = until_read(sender, &call, |timeout| sender.scan(&self.table, after.clone(), timeout)).await?;
        if page.rows.iter().any(is_lease) {
            return Err(RestampError::Leases);
        }
        let mut found = self.so_far;
        let mut stamps = JoinSet::new();
        for row in page.rows {
            let Some(Row { at, is_tombstone, attributes, .. }) = stamped_row(&self.layout, row) else {
                found.unversioned += 1;
                continue;
            };
            if !self.writes {
                found.count(is_tombstone, &Stamped::default());
                continue;
            }
            let key = attributes.into_iter().filter(|(name, _)| self.key.contains(name)).collect();
            let (store, table, layout) = (self.store.clone(), self.table.clone(), self.layout);
            stamps.spawn(async move { (is_tombstone, stamp(&store, &table, &layout, key, at).await) });
            if stamps.len() >= IN_FLIGHT {
                found.join(&mut stamps).await?;
            }
        }
        while !stamps.is_empty() {
            found.join(&mut stamps).await?;
        }
        self.so_far = found;
        self.position = page.last.map_or(Position::End, Position::After);
        Ok(matches!(self.position, Position::After(_)))
    }
}

impl Restamped {
    fn count(&mut self, was_tombstone: bool, stamped: &Stamped) {
        self.changed_meanwhile += u64::from(stamped.changed);
        let kind = if stamped.removed {
            &mut self.removed_meanwhile
        } else if stamped.tombstone.unwrap_or(was_tombstone) {
            &mut self.tombstones
        } else {
            &mut self.live
        };
        *kind += 1;
    }

    /// Waits for one of the writes.
    async fn join(&mut self, stamps: &mut JoinSet<(bool, Result<Stamped, Failure>)>) -> Result<(), Failure> {
        let unknown = |source: Source| Failure::OutcomeUnknown { source };
        if let Some(ended) = stamps.join_next().await {
            let (was_tombstone, stamped) = ended.map_err(|error| unknown(error.into()))?;
            self.count(was_tombstone, &stamped?);
        }
        Ok(())
    }
}

/// What became of one row.
#[derive(Default)]
struct Stamped {
    /// Whether it changed after it was read.
    changed: bool,
    /// Whether it is a tombstone now, if it changed.
    tombstone: Option<bool>,
    /// Whether it is gone.
    removed: bool,
}

/// Gives one row a new incarnation. A row that changed meanwhile gets it on its current version.
///
/// Every send of one call carries the same new incarnation. So a refusal by a row that has it is an echo of a send
/// whose answer was lost.
async fn stamp(
    store: &Store,
    table: &str,
    layout: &Layout,
    key: Attributes,
    read: ItemVersion,
) -> Result<Stamped, Failure> {
    let (sender, call) = (store.sender(), Call::new(Deadline::within(PATIENCE)));
    let incarnation = WriteId::from_random(sender.rng.next_u64()).as_incarnation();
    let mut delivery = Delivery::new(sender, &call);
    let (mut at, mut stamped) = (read, Stamped::default());
    loop {
        let write = condition::restamp_at(key.clone(), &layout.names, at, incarnation);
        let send = |send: Send| sender.write(table, write.clone(), send.timeout);
        let refusal = match delivery.until_proved(send).await? {
            WriteOutcome::Applied(_) => return Ok(stamped),
            WriteOutcome::Refused(refusal) => refusal,
        };
        let Some(row) = refusal.by else { return Ok(Stamped { removed: true, ..stamped }) };
        let Some(Row { at: now, is_tombstone, .. }) = stamped_row(layout, row) else {
            return Err(Failure::CorruptItem { reason: "a row lost its version while it was restamped".to_owned() });
        };
        if now.incarnation == incarnation {
            return Ok(stamped);
        }
        let behind = now.version.get().saturating_sub(at.version.get());
        at = now;
        stamped = Stamped { changed: true, tombstone: Some(is_tombstone), removed: false };
        delivery.conflict(behind, refusal.round_trip);
    }
}

/// The row, if it has an incarnation.
fn stamped_row(layout: &Layout, attributes: Attributes) -> Option<Row> {
    Row::read(layout, attributes).ok().filter(|row| !row.at.incarnation.is_foreign())
}

/// Whether this is the row of a lease. Leases have tokens instead of versions.
fn is_lease(row: &Attributes) -> bool {
    [LEASE_KEY, TOKEN, RENEWALS, EXPIRES_AT, ACQUIRE_ID].iter().all(|name| row.contains_key(*name))
        && !row.contains_key(Names::DEFAULT.version)
}
