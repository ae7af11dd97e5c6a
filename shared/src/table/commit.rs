//! One change of one item: a transaction of one step, sent as a write of its own.

use super::handle::{RawTable, Table};
use super::record::Record;
use crate::call::Call;
use crate::driver::attempt::{Applied, Attempt, Done};
use crate::driver::rows::{Known, Sending, WriteStep};
use crate::driver::send::{Address, Requests};
use crate::error::{Failure, FailureKind};
use fencepost_core::condition::Commit;
use fencepost_core::format::item::Attributes;
use fencepost_core::format::row::Row;
use fencepost_core::plan::{Prepared, Write};
use fencepost_core::{ItemVersion, Role, Versioned};

/// What a change of one item tells without a write.
pub(super) type Told<T, E> = Result<Versioned<T>, E>;

impl RawTable {
    /// A change of the item at this key.
    pub(super) fn change(&self, operation: &'static str, key: Attributes, call: &Call) -> Attempt {
        let address = Address { table: self.name.clone(), key };
        let mut attempt = Attempt::of_one(operation, address, self.layout, Requests::ROW, self.sender(), call);
        let row = &mut attempt.rows[0];
        (row.retention, row.fence, row.is_read_first) = (self.tombstone_retention, self.fence, true);
        row.remembers_items = self.remembers_items && !self.layout.demands_values();
        row.held_for.clone_from(&self.held_for);
        row.follows = self.keeping.map(|keeping| keeping.follows);
        attempt.holds = self.keeping.map(|keeping| (keeping.keeper)(&self.store, call));
        attempt
    }

    /// The row after an applied edit. If no answer showed it, reads it: a transaction returns none.
    pub(super) async fn row_after_edit(
        &self,
        attempt: &Attempt,
        shown: Left,
        made: ItemVersion,
        call: &Call,
    ) -> Result<Option<Row>, Failure> {
        let key = &attempt.rows[0].address.key;
        let row = match shown {
            // The edit was applied. Only the item is not known.
            Ok(None) if attempt.rows[0].known.row().is_some() => Ok(attempt.rows[0].known.row().cloned()),
            Ok(None) if self.layout.demands_values() => {
                self.observe(key, call).await.map_err(|failure| match failure {
                    Failure { kind: FailureKind::CorruptItem { .. }, .. } => failure,
                    failure => {
                        Failure::of(FailureKind::OutcomeUnknown { source: failure.into() }).at(|| attempt.place())
                    }
                })
            }
            shown => shown,
        };
        self.keep_seen(key, row.as_ref().ok().and_then(Option::as_ref), Some(made));
        row
    }

    /// Keeps the state of a row, with its item if this table remembers items. A warm edit starts from it. `made` is the
    /// state that a change of this client has made.
    pub(super) fn keep_seen(&self, key: &Attributes, row: Option<&Row>, made: Option<ItemVersion>) {
        if let Some(row) = row.filter(|_| !self.layout.demands_values()) {
            self.remember(key, row, made);
        }
    }

    /// The write as the only step of an attempt.
    pub(super) fn alone(&self, attempt: &Attempt, write: Write<'_>) -> Result<Sending, Failure> {
        let attempts = attempt.attempts();
        let burn = attempts.ids_to_burn(0, write.row().map(|at| at.incarnation));
        let commit = Commit { id: attempts.id, prune: &[], burn: &burn, fence: self.fence };
        let key = &attempt.rows[0].address.key;
        let prepared = write.prepare(self.layout, key, commit, attempt.now, self.tombstone_retention)?;
        let Prepared { mut request, sent, is_named_by_client } = prepared;
        if self.remembers_items {
            request.show_new_row();
        }
        let step = WriteStep { is_named_by_client, ..WriteStep::new(0, Role::Writes(sent), request) };
        Ok(Sending::alone(step, self.layout))
    }
}

/// The row that a change has left, if its answer shows it, or why that row is unusable.
type Left = Result<Option<Row>, Failure>;

impl<T: Record> Table<T> {
    /// The row of the attempt, if it holds an item or a tombstone. After a refusal, a row that has seen a higher token
    /// refuses every further write.
    pub(super) fn row<'a>(&self, attempt: &'a Attempt) -> Result<Option<&'a Row>, Failure> {
        let row = match &attempt.rows[0].known {
            Known::Row(row) => row,
            Known::Damaged(reason) => return Err(Failure::of(FailureKind::CorruptItem { reason: reason.clone() })),
            _ => return Ok(None),
        };
        if attempt.last.is_some() {
            row.check_fence(self.raw.fence)?;
        }
        Ok(Some(row))
    }

    /// The state that an applied change has left, with its row.
    pub(super) fn applied<W>(attempt: &Attempt, applied: Applied<W>) -> Result<(W, ItemVersion, Left), Failure> {
        let Applied { answer, at, shown } = applied;
        let row = shown.map(|item| Row::read(Self::LAYOUT, item)).transpose().map_err(Failure::from);
        let at = at.ok_or_else(|| {
            let source = "no row tells the version that was made".into();
            Failure::of(FailureKind::OutcomeUnknown { source }).at(|| attempt.place())
        })?;
        Ok((answer, at, row))
    }

    /// The same, after the table has remembered the row.
    pub(super) fn committed<W>(&self, attempt: &Attempt, applied: Applied<W>) -> Result<(W, ItemVersion), Failure> {
        let (answer, at, row) = Self::applied(attempt, applied)?;
        self.raw.saw(&attempt.rows[0].address.key, row.ok().flatten().as_ref(), Some(at));
        Ok((answer, at))
    }

    /// The item after a change that has written its value, or what was told without a write.
    pub(super) fn told<E: From<Failure>>(&self, attempt: &Attempt, done: Done<Told<T, E>, T>) -> Told<T, E> {
        match done {
            Done::Answered(told) => told,
            Done::Applied(applied) => {
                let (value, at) = self.committed(attempt, applied)?;
                Ok(Versioned { value, at })
            }
        }
    }
}
