//! [`Run`]: one task on all rows of a table, page by page.

use super::explain::{Explanation, Kind, explain_in, kind_of};
use super::write::{Found, Task, Written};
use crate::call::Call;
use crate::deadline::Deadline;
use crate::driver::read_page;
use crate::driver::send::PageRequest;
use crate::error::{Error, Failure, FailureKind, Place, Source};
use crate::listing::pages::Position;
use crate::settings::Settings;
use crate::store::Store;
use fencepost_core::epoch_seconds;
use fencepost_core::format::item::{Attributes, size_of_attributes};
use fencepost_core::format::layout::Layout;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long a page is asked for, before the run ends with a failure.
const PATIENCE: Duration = Duration::from_mins(1);
const IN_FLIGHT: usize = 16;
/// The bytes that a read unit reads and a write unit writes.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html>
const UNIT: (usize, usize) = (4096, 1024);

/// One task on all rows of a table. [`Store::maintain`] makes it.
///
/// It holds one page at a time, however large the table is. It may end early and go on later, also in another process
/// ([`Run::continuing`]), and it may be made again from the start at any time.
///
/// ```
/// use fencepost::maintenance::{Found, Task, WrongTable};
/// use fencepost::{Error, Store};
///
/// async fn restamp(client: &aws_sdk_dynamodb::Client) -> Result<Found, Error<WrongTable>> {
///     let mut run = Store::new(client).maintain(Task::Restamp, "accounts-restored", &["accountId"]);
///     while let Some(damaged) = run.next_page().await? {
///         println!("{} rows so far", run.so_far().rows());
///         for row in damaged {
///             println!("{:?}\n{}", row.key, row.explanation);
///         }
///     }
///     Ok(run.so_far())
/// }
/// ```
#[derive(Debug)]
pub struct Run {
    store: Store,
    table: String,
    key: &'static [&'static str],
    layout: Layout,
    task: Task,
    writes: bool,
    units_per_second: Option<NonZeroU32>,
    /// How long the next page has to wait for the units of the last one.
    owed: Duration,
    position: Position,
    so_far: Found,
}

/// A row and its explanation.
#[derive(Clone, PartialEq, Debug)]
pub struct Explained {
    /// The key of the row.
    pub key: Attributes,
    /// The account of the row.
    pub explanation: Explanation,
}

/// Why a run was refused: its task is not for this table. Nothing of the page was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WrongTable {
    /// The table has leases, which have no version. After a restore, start with an empty table: tokens then start from
    /// the time of day, higher than all before. A restored token would be given out twice.
    Leases,
    /// The table has rows of which the newest instance wins. They have no version to adopt.
    Mappings,
}

impl fmt::Display for WrongTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WrongTable::Leases => {
                "this is a table of leases, which have no version; after a restore, start with an empty table instead"
            }
            WrongTable::Mappings => {
                "this is a table where the newest instance wins; its rows have no version, so there is nothing to adopt"
            }
        })
    }
}

impl Store {
    /// One task on all rows of the table with this name. `key` has the names of its key. Sends nothing.
    ///
    /// # Panics
    /// If `key` has no name.
    pub fn maintain(&self, task: Task, table: impl Into<String>, key: &'static [&'static str]) -> Run {
        let partition_key = key.first().expect("a table has a partition key");
        Run {
            store: self.clone(),
            table: table.into(),
            key,
            layout: Layout::of_key(partition_key),
            task,
            writes: true,
            units_per_second: None,
            owed: Duration::ZERO,
            position: Position::Start,
            so_far: Found::default(),
        }
    }
}

impl Run {
    /// Sets how the table is set up. Without this, it has the default names. A row with a mark of a tombstone goes by it,
    /// and a row without one is a tombstone if it has the time of one.
    #[must_use]
    pub fn with_settings(self, settings: Settings) -> Self {
        Run { layout: Layout { settings: settings.0, ..self.layout }, ..self }
    }

    /// Says that the newest instance wins in the table. Takes the names in its [`LwwRecord`](crate::lww::LwwRecord): `ORDERED_BY`
    /// and `NAMED_BY`.
    #[must_use]
    pub fn of_instances(self, instance: [&'static str; 2]) -> Self {
        Run { layout: Layout { instance: Some(instance), ..self.layout }, ..self }
    }

    /// Makes it a run that counts its writes and sends none.
    #[must_use]
    pub fn counting_only(self) -> Self {
        Run { writes: false, ..self }
    }

    /// Sets how many capacity units of `DynamoDB` the run may use in a second, reads and writes together. It works out
    /// the units from the sizes of the rows, and reads pages of about one second.
    #[must_use]
    pub fn paced(self, units_per_second: NonZeroU32) -> Self {
        Run { units_per_second: Some(units_per_second), ..self }
    }

    /// Goes on after the row with this key, where an earlier run was interrupted that had found this.
    #[must_use]
    pub fn continuing(self, after: Attributes, so_far: Found) -> Self {
        Run { position: Position::After(after), so_far, ..self }
    }

    /// The findings so far.
    #[must_use]
    pub fn so_far(&self) -> Found {
        self.so_far
    }

    /// The place of the run. All rows before it are done.
    #[must_use]
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// Reads one page, at most 1 MB, and does the task on its rows. Returns all rows of the page with their
    /// explanations if the task is to explain, and otherwise the damaged ones. Returns `None` after the last page.
    ///
    /// # Errors
    /// [`Error::Refused`]: the task is not for this table. [`Error::Failed`]: rows before this one may be written
    /// already. Call it again if the failure [is retryable](Failure::is_retryable) or unknown; else correct the set-up.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Explained>>, Error<WrongTable>> {
        let after = match &self.position {
            Position::Start => None,
            Position::After(key) => Some(key.clone()),
            Position::End => return Ok(None),
        };
        tokio::time::sleep(self.owed).await;
        let (sender, call) = (self.store.sender(), Call::new(Deadline::within(PATIENCE)));
        // A row of 4 KB takes a unit.
        let limit = self.units_per_second.map(|units| i32::try_from(units.get()).unwrap_or(i32::MAX));
        let page =
            PageRequest { table: self.table.clone(), is_consistent: true, after, limit, ..PageRequest::default() };
        let (rows, last) = read_page(sender, &call, || Place::of_table("maintain", &self.table), &|leave| {
            Box::pin(sender.page(&page, leave))
        })
        .await?;
        let layout = self.task.layout(&self.layout);
        self.check_kinds(&rows, &layout).map_err(Error::Refused)?;
        let now = self.store.now();
        let (mut found, mut explained, mut writing) = (self.so_far, Vec::new(), JoinSet::new());
        let (mut bytes, mut units) = (0, 0);
        for attributes in rows {
            let size = size_of_attributes(&attributes);
            bytes += size;
            let (kind, row) = kind_of(&attributes, &layout);
            found.count(kind);
            if self.task == Task::Explain || kind == Kind::Damaged {
                let explanation = explain_in(&attributes, &layout, now);
                explained.push(Explained { key: self.key_of(attributes), explanation });
                continue;
            }
            let Ok(row) = row else { continue };
            if !self.task.is_for(kind, &row, epoch_seconds(self.store.clock().now())) {
                continue;
            }
            if !self.writes {
                found.written += 1;
                continue;
            }
            units += size.div_ceil(UNIT.1);
            let (task, store, table, key) =
                (self.task, self.store.clone(), self.table.clone(), self.key_of(attributes));
            writing.spawn(async move { task.write_to(&store, &table, &layout, key, row).await });
            if writing.len() >= IN_FLIGHT {
                join(&mut writing, &mut found).await?;
            }
        }
        while !writing.is_empty() {
            join(&mut writing, &mut found).await?;
        }
        self.owe(units + bytes.div_ceil(UNIT.0).max(1));
        self.so_far = found;
        self.position = last.map_or(Position::End, Position::After);
        Ok(Some(explained))
    }

    /// Refuses the whole page, before anything is written, if the task is not for this table.
    fn check_kinds(&self, rows: &[Attributes], layout: &Layout) -> Result<(), WrongTable> {
        let has = |wanted: Kind| rows.iter().any(|row| kind_of(row, layout).0 == wanted);
        match self.task {
            Task::Explain => Ok(()),
            _ if has(Kind::Lease) => Err(WrongTable::Leases),
            Task::Adopt if has(Kind::Mapping) => Err(WrongTable::Mappings),
            Task::Adopt | Task::Sweep | Task::Restamp => Ok(()),
        }
    }

    fn key_of(&self, row: Attributes) -> Attributes {
        row.into_iter().filter(|(name, _)| self.key.contains(&name.as_str())).collect()
    }

    fn owe(&mut self, units: usize) {
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        self.owed = self
            .units_per_second
            .map_or(Duration::ZERO, |rate| Duration::from_secs_f64(f64::from(units) / f64::from(rate.get())));
    }
}

async fn join(writing: &mut JoinSet<Result<Written, Failure>>, found: &mut Found) -> Result<(), Failure> {
    let unknown = |source: Source| Failure::of(FailureKind::OutcomeUnknown { source });
    if let Some(ended) = writing.join_next().await {
        ended.map_err(|error| unknown(error.into()))??.count_in(found);
    }
    Ok(())
}
