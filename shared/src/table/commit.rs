//! One logical change to one key. It sends each conditional write until the outcome is proved.

use super::handle::Table;
use super::key::Key;
use super::prepare::{Observed, Stamp, Write, burnable, soon_purged};
use super::record::Record;
use crate::call::Call;
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
pub(crate) enum Committed<T> {
    /// The write was applied, and left the row at this version.
    Applied(ItemVersion),
    /// An earlier attempt was applied: a second copy of it, after it had been refused. So this one never will be.
    Earlier {
        /// The id of that attempt.
        id: WriteId,
        /// The version that it made.
        at: ItemVersion,
        /// The current state of the key, if it can be read.
        current: Option<Observed<T>>,
    },
    /// The write was not applied.
    Conflict {
        /// The current state of the key.
        current: Observed<T>,
        /// Its id, if a second copy of it may still be applied before the next write.
        open: Option<WriteId>,
    },
}

/// One logical change to one key. All its sends have one window.
///
/// An attempt that was refused and may still be applied is *open*. The next attempt has an id of its own and burns the
/// open ones in the same write, so at most one of them is applied, and the row tells which.
pub(crate) struct RowChange<'a, T> {
    table: &'a Table<T>,
    key: Attributes,
    id: WriteId,
    open: Vec<SentWrite>,
    delivery: Delivery<'a>,
}

impl<'a, T: Record> RowChange<'a, T> {
    pub(crate) fn new(table: &'a Table<T>, key: &Key, call: &'a Call) -> Result<Self, Failure> {
        let delivery = table.delivery(call);
        Ok(RowChange::after(table, Table::<T>::key_attributes(key)?, None, delivery))
    }

    /// The same change as an add that was refused. `open` is that add, if it may still be applied.
    pub(crate) fn after(table: &'a Table<T>, key: Attributes, open: Option<SentWrite>, delivery: Delivery<'a>) -> Self {
        let id = WriteId::from_random(table.sender().rng.next_u64());
        RowChange { table, key, id, open: Vec::from_iter(open), delivery }
    }

    /// Whether an earlier attempt may have been applied since it was refused.
    pub(crate) fn has_open_attempts(&self) -> bool {
        !self.open.is_empty()
    }

    /// Sends `write` until it is proved to be applied, or proved not to be. If the previous attempt lost a race, waits
    /// first.
    pub(crate) async fn commit(&mut self, write: Write<'_, T>) -> Result<Committed<T>, Failure> {
        let RowChange { table, key, id, open, delivery } = self;
        let now = table.sender().clock.now();
        let purge_at = now + table.tombstone_retention;
        let burn = burnable(open.iter(), write.incarnation());
        let stamp = Stamp { id: *id, burn: &burn, now, purge_at, fence: table.fence };
        let (mut request, sent) = write.prepare(key, stamp)?;
        if table.remembers_items {
            request.show_new_row();
        }
        let token = table.new_token();
        let send = |send: Send| table.send(request.clone(), token.as_deref(), send);
        let proved = delivery.until_proved(send).await;
        match proved.map_err(|failure| if open.is_empty() { failure } else { while_open(failure) })? {
            WriteOutcome::Applied(new) => {
                table.saw(key, request.new_row(new).and_then(|row| Row::read(Table::<T>::LAYOUT, row).ok()).as_ref());
                Ok(Committed::Applied(committed(&sent)))
            }
            WriteOutcome::Refused(refusal) => self.refused(&sent, refusal, matches!(write, Write::Delete(..))),
        }
    }

    /// Judges a refusal and returns what follows from it. `named_by_client` says that the write is conditioned on a
    /// version that the client named, without a read.
    fn refused(
        &mut self,
        sent: &SentWrite,
        refusal: Refusal<Option<Attributes>>,
        named_by_client: bool,
    ) -> Result<Committed<T>, Failure> {
        let Refusal { by: item, round_trip, pending } = refusal;
        let layout = Table::<T>::LAYOUT;
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
            return Ok(Committed::Earlier { id, at, current: current.and_then(observed).ok() });
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
            self.id = WriteId::from_random(self.table.sender().rng.next_u64());
            if self.open.len() > MOST_OPEN {
                return Err(while_open(self.delivery.contention()));
            }
        }
        Ok(Committed::Conflict { current: observed(current?)?, open })
    }
}

/// The attempt that was applied, and the version that it made.
fn landed((open, fate): &(SentWrite, Fate)) -> Option<(WriteId, ItemVersion)> {
    if let Fate::Landed(version) = *fate { Some((open.id, made(open, version))) } else { None }
}

fn observed<T: Record>(row: Option<Row>) -> Result<Observed<T>, Failure> {
    row.map_or(Ok(Observed::Absent), Observed::of)
}
