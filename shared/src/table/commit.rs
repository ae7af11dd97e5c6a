//! One logical change to one key. It sends each conditional write until the outcome is proved.

use super::prepare::{Prepared, Stamp, Write, burnable, soon_purged};
use super::raw::RawTable;
use crate::error::Failure;
use crate::protocol::after::{AfterWrite, MOST_OPEN, after_write, committed, made, while_open};
use crate::protocol::deliver::{Delivery, Refusal, WriteOutcome};
use crate::protocol::item::Attributes;
use crate::protocol::judge::{Base, Fate, SentWrite, fate, judge, may_still_land};
use crate::protocol::memory::WriteId;
use crate::protocol::row::{self, Row};
use crate::protocol::send::Send;
use crate::version::ItemVersion;

/// The outcome of one write.
pub(crate) enum Committed {
    /// The write was applied, and left the row at this version.
    Applied(ItemVersion),
    /// An earlier attempt was applied: a second copy of it, after it had been refused. So this one never will be.
    Earlier {
        /// The id of that attempt.
        id: WriteId,
        /// The version that it made.
        at: ItemVersion,
        /// The current row, if there is one and it can be read.
        current: Result<Option<Row>, Failure>,
    },
    /// The write was not applied.
    Conflict {
        /// The current row.
        current: Option<Row>,
        /// Its id, if a second copy of it may still be applied before the next write.
        open: Option<WriteId>,
    },
}

/// One logical change to one key. All its sends have one window.
///
/// An attempt that was refused and may still be applied is *open*. The next attempt has an id of its own and burns the
/// open ones in the same write, so at most one of them is applied, and the row tells which.
pub(crate) struct RowChange<'a> {
    table: &'a RawTable,
    key: Attributes,
    id: WriteId,
    open: Vec<SentWrite>,
    delivery: Delivery<'a>,
}

impl<'a> RowChange<'a> {
    pub(crate) fn new(table: &'a RawTable, key: Attributes, delivery: Delivery<'a>) -> Self {
        RowChange::after(table, key, None, delivery)
    }

    /// The same change as an add that was refused. `open` is that add, if it may still be applied.
    pub(crate) fn after(table: &'a RawTable, key: Attributes, open: Option<SentWrite>, delivery: Delivery<'a>) -> Self {
        RowChange { table, key, id: table.new_id(), open: Vec::from_iter(open), delivery }
    }

    /// Whether an earlier attempt may have been applied since it was refused.
    pub(crate) fn has_open_attempts(&self) -> bool {
        !self.open.is_empty()
    }

    /// Builds the next attempt. It burns the open ones.
    pub(crate) fn prepare(&self, write: Write<'_>) -> Result<Prepared, Failure> {
        let RowChange { table, key, id, open, .. } = self;
        let now = table.sender().clock.now();
        let purge_at = now + table.tombstone_retention;
        let burn = burnable(open.iter(), write.incarnation());
        write.prepare(table.layout, key, Stamp { id: *id, burn: &burn, now, purge_at, fence: table.fence })
    }

    /// Sends the attempt until it is proved to be applied, or proved not to be. If the previous one lost a race, waits
    /// first.
    pub(crate) async fn commit(&mut self, attempt: Prepared) -> Result<Committed, Failure> {
        let Prepared { mut request, sent, is_named_by_client } = attempt;
        let RowChange { table, key, open, delivery, .. } = self;
        if table.remembers_items {
            request.show_new_row();
        }
        let token = table.new_token();
        let send = |send: Send| table.send(request.clone(), token.as_deref(), send);
        let proved = delivery.until_proved(send).await;
        match proved.map_err(|failure| if open.is_empty() { failure } else { while_open(failure) })? {
            WriteOutcome::Applied(new) => {
                table.saw(key, request.new_row(new).and_then(|row| Row::read(table.layout, row).ok()).as_ref());
                Ok(Committed::Applied(committed(&sent)))
            }
            WriteOutcome::Refused(refusal) => self.refused(&sent, refusal, is_named_by_client),
        }
    }

    /// Judges a refusal and returns what follows from it. `named_by_client` says that the write may demand a version
    /// that a client made up.
    fn refused(
        &mut self,
        sent: &SentWrite,
        refusal: Refusal<Option<Attributes>>,
        named_by_client: bool,
    ) -> Result<Committed, Failure> {
        let Refusal { by: item, round_trip, pending } = refusal;
        let layout = self.table.layout;
        let seen = item.as_ref().and_then(|item| row::seen(layout, item));
        let verdict = judge(sent, seen.as_ref()).traced();
        let current = item.map(|item| Row::read(layout, item)).transpose();
        let refused_by = current.as_ref().ok().and_then(Option::as_ref);
        let now = self.table.sender().clock.now();
        let fates: Vec<_> = self
            .open
            .iter()
            .map(|open| (*open, fate(open, seen.as_ref(), soon_purged(layout, open, refused_by, now))))
            .collect();
        if let Some((id, at)) = fates.iter().find_map(landed) {
            self.table.saw(&self.key, refused_by);
            return Ok(Committed::Earlier { id, at, current });
        }
        let is_soon = soon_purged(layout, sent, refused_by, now);
        let after = after_write(verdict, pending.is_some(), is_soon, named_by_client);
        match after {
            AfterWrite::Applied => return Ok(Committed::Applied(committed(sent))),
            AfterWrite::Conflict | AfterWrite::Unknown | AfterWrite::Corrupt => self.table.saw(&self.key, refused_by),
        }
        if let (AfterWrite::Unknown, Some(source)) = (after, pending) {
            return Err(Failure::OutcomeUnknown { source });
        }
        if fates.iter().any(|(_, fate)| *fate == Fate::Forgotten) {
            let source = "an earlier attempt may have been applied, and the row no longer remembers it".into();
            return Err(Failure::OutcomeUnknown { source });
        }
        let still_open = |(_, fate): &(SentWrite, Fate)| if let Fate::Open(open) = fate { Some(*open) } else { None };
        self.open = fates.iter().filter_map(still_open).collect();
        if let Ok(Some(row)) = &current {
            row.check_fence(sent.fence)?;
        }
        if after == AfterWrite::Corrupt {
            return Err(Failure::CorruptItem { reason: "its version went down".to_owned() });
        }
        // A create that finds the key taken has not lost a race. A write to a row that has moved on has lost one.
        if let Base::Row { version, .. } = sent.on {
            let now = seen.as_ref().map_or(version, |row| row.version);
            self.delivery.conflict(now.get().saturating_sub(version.get()), round_trip);
        }
        let open = may_still_land(sent, seen.as_ref(), is_soon).then_some(sent.id);
        if open.is_some() {
            self.open.push(sent.not_applied_before(seen.as_ref()));
            self.id = self.table.new_id();
            if self.open.len() > MOST_OPEN {
                return Err(while_open(self.delivery.contention()));
            }
        }
        Ok(Committed::Conflict { current: current?, open })
    }
}

/// The attempt that was applied, and the version that it made.
fn landed((open, fate): &(SentWrite, Fate)) -> Option<(WriteId, ItemVersion)> {
    if let Fate::Landed(version) = *fate { Some((open.id, made(open, version))) } else { None }
}
