//! [`Task`]: the work of a run on a row. [`Found`]: the findings of a run so far.

use super::explain::{Kind, kind_of};
use crate::call::Call;
use crate::deadline::Deadline;
use crate::driver::attempt::{Applied, Attempt, Done, Next};
use crate::driver::rows::Sending;
use crate::driver::send::{Address, Requests};
use crate::error::{Failure, FailureKind};
use crate::store::Store;
use fencepost_core::condition::{self, Commit, ConditionalWrite};
use fencepost_core::epoch_seconds;
use fencepost_core::format::item::Attributes;
use fencepost_core::format::layout::{self, Deletes, Layout};
use fencepost_core::format::row::Row;
use fencepost_core::{Version, WriteId};
use std::time::Duration;

/// How long one row is written to, before the run ends with a failure.
const PATIENCE: Duration = Duration::from_mins(1);

/// The work of a run on the rows of a table. Each write is conditional: it overwrites no change of another writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Task {
    /// Explains each row. Writes nothing.
    Explain,
    /// Adopts the rows of other programs ahead of time: raises the version by one, and gives the row an incarnation and a
    /// memory. Without this, the first change of each row does it.
    Adopt,
    /// Removes tombstones after their time, in a table without TTL on that time
    /// ([`WithoutTtl::swept`](crate::WithoutTtl::swept)).
    Sweep,
    /// Gives each item and each tombstone a new incarnation, after the table was restored to an earlier moment.
    ///
    /// Later writes reach the same version numbers again. A tag or a version that a client saw after that moment, and a
    /// write that is still on its way, would then match another state. A new incarnation ends them all.
    ///
    /// Stop all writers before. After a lost answer, a row with a new incarnation no longer shows the outcome of the
    /// write. A create is told that it was not applied.
    Restamp,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Written {
    applied: bool,
    changed: bool,
    removed: bool,
}

impl Written {
    pub(super) fn count_in(self, found: &mut Found) {
        found.written += u64::from(self.applied);
        found.changed_meanwhile += u64::from(self.changed);
        found.removed_meanwhile += u64::from(self.removed);
    }
}

impl Task {
    /// The table for this task. A sweep goes by marks in every table: a time alone may be that of a value.
    pub(super) fn layout(self, layout: &Layout) -> Layout {
        let settings = layout::Settings { deletes: Deletes::Sweep, ..layout.settings };
        if self == Task::Sweep { Layout { settings, ..*layout } } else { *layout }
    }

    pub(super) fn is_for(self, kind: Kind, row: &Row, now: u64) -> bool {
        match self {
            Task::Explain => false,
            Task::Adopt => kind == Kind::Foreign && Version::new(row.at.version.get() + 1).is_some(),
            Task::Sweep => kind == Kind::Tombstone && row.purge_at.is_some_and(|time| time <= now),
            Task::Restamp => matches!(kind, Kind::Live | Kind::Tombstone),
        }
    }

    fn write(self, layout: &Layout, key: Attributes, row: &Row, id: WriteId, now: u64) -> Option<ConditionalWrite> {
        match self {
            Task::Explain => None,
            Task::Adopt => condition::adopt_at(layout, key, row, &Commit { id, prune: &[], burn: &[], fence: None }),
            Task::Sweep => condition::sweep_at(layout, key, row, now),
            Task::Restamp => condition::restamp_at(layout, key, row, id.as_incarnation()),
        }
    }

    /// Writes to one row. A row that changed meanwhile is written as it is by then, if it still needs it.
    ///
    /// All sends of one write carry one id. A refusal by a row with such an id as its incarnation is an echo of a send
    /// with a lost answer. A write of another state of the row has another id: two lives of a row never share an
    /// incarnation.
    pub(super) async fn write_to(
        self,
        store: &Store,
        table: &str,
        layout: &Layout,
        key: Attributes,
        row: Row,
    ) -> Result<Written, Failure> {
        let (sender, call) = (store.sender(), Call::new(Deadline::within(PATIENCE)));
        let mut ids = Vec::new();
        let (mut row, mut so_far) = (row, Written::default());
        let address = Address { table: table.to_owned(), key: key.clone() };
        let mut attempt = Attempt::of_one("maintenance", address, &ANY, Requests::ROW, sender, &call);
        let done = attempt.decided(sender, &call, |attempt| {
            let now = epoch_seconds(attempt.now);
            if let Some(refused) = attempt.refused_by(|row| Ok::<_, Failure>(row.clone())) {
                let (attributes, pending) = refused?;
                let Some(attributes) = attributes else {
                    // A row that is gone after a lost answer to its removal is taken for removed by this run.
                    let applied = self == Task::Sweep && pending.is_some();
                    return Ok(Next::Answer(Written { applied, removed: !applied, ..so_far }));
                };
                let (kind, now_there) = kind_of(&attributes, layout);
                let Ok(now_there) = now_there else { return Ok(Next::Answer(Written { changed: true, ..so_far })) };
                if ids.contains(&now_there.at.incarnation) {
                    return Ok(Next::Answer(Written { applied: true, ..so_far }));
                }
                so_far.changed = true;
                if !self.is_for(kind, &now_there, now) {
                    return Ok(Next::Answer(so_far));
                }
                attempt.lost_race();
                row = now_there;
            }
            let id = WriteId::from_random(sender.rng.next_u64());
            ids.push(id.as_incarnation());
            let Some(write) = self.write(layout, key.clone(), &row, id, now) else {
                return Err(Failure::of(FailureKind::Rejected {
                    source: "the names of the attributes are too long".into(),
                }));
            };
            Ok(Next::Send(Sending::repeating(write), Written { applied: true, ..so_far }))
        });
        match done.await? {
            Done::Answered(written) | Done::Applied(Applied { answer: written, .. }) => Ok(written),
        }
    }
}

/// A table of any rows. The machine looks at none of them.
static ANY: Layout = Layout::of_key("key");

/// The findings and changes of a [`Run`](super::Run) so far.
///
/// A run that was interrupted in a page reads it again, and counts its rows as they are then.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Found {
    /// Items of this crate.
    pub live: u64,
    /// Tombstones.
    pub tombstones: u64,
    /// Items that another program wrote and that are not adopted.
    pub foreign: u64,
    /// Leases.
    pub leases: u64,
    /// Rows of which the newest instance wins.
    pub mappings: u64,
    /// Rows that contradict themselves. They are left alone.
    pub damaged: u64,
    /// Rows that the run has written or removed. In a dry run, those that it would write or remove.
    pub written: u64,
    /// Rows that changed between the read and the write. Where needed, they were written again.
    pub changed_meanwhile: u64,
    /// Rows that were removed between the read and the write.
    pub removed_meanwhile: u64,
}

impl Found {
    /// All rows that were read.
    #[must_use]
    pub fn rows(&self) -> u64 {
        let Found { live, tombstones, foreign, leases, mappings, damaged, .. } = self;
        live + tombstones + foreign + leases + mappings + damaged
    }

    pub(super) fn count(&mut self, kind: Kind) {
        *match kind {
            Kind::Live => &mut self.live,
            Kind::Tombstone => &mut self.tombstones,
            Kind::Foreign => &mut self.foreign,
            Kind::Lease => &mut self.leases,
            Kind::Mapping => &mut self.mappings,
            Kind::Damaged => &mut self.damaged,
        } += 1;
    }
}
