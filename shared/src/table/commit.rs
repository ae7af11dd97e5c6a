//! One logical change to one key. It sends each conditional write until the outcome is proved.

use super::handle::Table;
use super::key::Key;
use super::prepare::{Observed, Stamp, Write, soon_purged};
use super::record::Record;
use crate::call::Call;
use crate::error::Failure;
use crate::protocol::after::{AfterWrite, after_write, committed};
use crate::protocol::deliver::{Delivery, Refusal, Send, WriteOutcome};
use crate::protocol::item::Attributes;
use crate::protocol::judge::{Base, SentWrite, judge};
use crate::protocol::memory::WriteId;
use crate::protocol::row::{self, Row};
use crate::version::ItemVersion;

/// The outcome of one write.
pub(crate) enum Committed<T> {
    /// The write was applied, and left the row at this version.
    Applied(ItemVersion),
    /// The write was not applied and never will be. Holds the current state of the key.
    Conflict(Observed<T>),
}

/// One logical change to one key. It has one write id, and one send window for all its sends.
pub(crate) struct RowChange<'a, T> {
    table: &'a Table<T>,
    key: Attributes,
    id: WriteId,
    delivery: Delivery<'a>,
}

impl<'a, T: Record> RowChange<'a, T> {
    pub(crate) fn new(table: &'a Table<T>, key: &Key, call: &'a Call) -> Result<Self, Failure> {
        Ok(RowChange {
            table,
            key: Table::<T>::key_attributes(key)?,
            id: WriteId::from_random(table.sender().rng.next_u64()),
            delivery: Delivery::new(table.sender(), call),
        })
    }

    /// The same change as an add that was refused, under the id of that add.
    pub(crate) fn under(table: &'a Table<T>, key: Attributes, id: WriteId, delivery: Delivery<'a>) -> Self {
        RowChange { table, key, id, delivery }
    }

    /// Sends `write` until it is proved to be applied, or proved never to be. If the previous attempt lost a race,
    /// waits first.
    pub(crate) async fn commit(&mut self, write: Write<'_, T>) -> Result<Committed<T>, Failure> {
        let RowChange { table, key, id, delivery } = self;
        let purge_at = table.sender().clock.now() + table.tombstone_retention;
        let stamp = Stamp { id: *id, purge_at, fence: table.fence };
        let (mut request, sent) = write.prepare(key, stamp)?;
        if table.remembers_items {
            request.show_new_row();
        }
        let token = table.new_token();
        let send = |send: Send| table.send(request.clone(), token.as_deref(), send);
        match delivery.until_proved(send).await? {
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
        let is_soon = soon_purged(layout, sent, refused_by, self.table.sender().clock.now());
        let after = after_write(sent, verdict, pending.is_some(), is_soon, named_by_client);
        match after {
            AfterWrite::Applied => return Ok(Committed::Applied(committed(sent))),
            AfterWrite::EarlierApplied => {
                return Err(Failure::OutcomeUnknown { source: "an earlier attempt of this change was applied".into() });
            }
            AfterWrite::Conflict | AfterWrite::Unknown | AfterWrite::Corrupt => self.table.saw(&self.key, refused_by),
        }
        if let (AfterWrite::Unknown, Some(source)) = (after, pending) {
            return Err(Failure::OutcomeUnknown { source });
        }
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
        Ok(Committed::Conflict(match current? {
            Some(row) => Observed::of(row)?,
            None => Observed::Absent,
        }))
    }
}
