//! One logical change to one key: each of its conditional writes is sent until it is proved what became of it.

use super::handle::Table;
use super::key::Key;
use super::prepare::{Observed, Stamp, Write, committed, soon_purged};
use super::record::Record;
use crate::call::Call;
use crate::error::Failure;
use crate::protocol::deliver::{Delivery, Refusal, Send, WriteOutcome};
use crate::protocol::item::Attributes;
use crate::protocol::judge::{Base, SentWrite, Verdict, WriteId, judge};
use crate::protocol::row::{self, Row};
use crate::version::ItemVersion;

/// How a write ended.
pub(crate) enum Committed<T> {
    /// It was applied, and left the row at this version.
    Applied(ItemVersion),
    /// It was not applied and never will be; this is what stands there instead.
    Conflict(Observed<T>),
}

/// One logical change to one key: one write id, one window for all its sends.
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

    /// Sends `write` until it is proved to be applied or dead; after a conflict not before a pause.
    pub(crate) async fn commit(&mut self, write: Write<'_, T>) -> Result<Committed<T>, Failure> {
        let RowChange { table, key, id, delivery } = self;
        let purge_at = table.sender().clock.now() + table.tombstone_retention;
        let stamp = Stamp { id: *id, purge_at, fence: table.fence };
        let (request, sent) = write.prepare(key, stamp)?;
        let send = |send: Send| table.sender().write(&table.name, request.clone(), send.timeout);
        match delivery.until_proved(send).await? {
            WriteOutcome::Applied(_) => Ok(Committed::Applied(committed(&sent))),
            WriteOutcome::Refused(refusal) => self.refused(&sent, refusal, matches!(write, Write::Delete(_))),
        }
    }

    /// What a refusal proves, and what follows from it. A client may have named the version that the write was
    /// conditioned on, without its being read here.
    fn refused(
        &mut self,
        sent: &SentWrite,
        refusal: Refusal<Option<Attributes>>,
        named_by_client: bool,
    ) -> Result<Committed<T>, Failure> {
        let Refusal { by: item, round_trip, pending } = refusal;
        let seen = item.as_ref().and_then(row::seen);
        let verdict = judge(sent, seen.as_ref());
        if verdict == Verdict::Landed {
            return Ok(Committed::Applied(committed(sent)));
        }
        let current = item.map(Row::read).transpose();
        // Unknown is answered only while a send is pending; otherwise what is not mine is a conflict.
        if let Some(source) = pending {
            let refused_by = current.as_ref().ok().and_then(Option::as_ref);
            let proved = verdict == Verdict::NeverApplied
                && !soon_purged(sent, refused_by, T::EXPIRES_AT, self.table.sender().clock.now());
            if !proved {
                return Err(Failure::OutcomeUnknown { source });
            }
        }
        if let Ok(Some(row)) = &current {
            row.check_fence(sent.fence)?;
        }
        // A delete may name a version that its client made up; every other write names one that was read.
        if verdict == Verdict::Corrupt && !named_by_client {
            return Err(Failure::CorruptItem { reason: "its version went down".to_owned() });
        }
        // A create that finds the key taken has not lost a race; a write on a row that moved on has.
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
