//! [`Table::edit`]: sends an edit until its outcome is proved. Moves its window forward, and burns an unproved edit.

use super::edit::Edit;
use super::handle::{RawTable, Table};
use super::key::Key;
use super::record::Record;
use super::update::updating;
use crate::call::Call;
use crate::driver::attempt::{Applied, Attempt, Done, Next};
use crate::driver::row_cache::size_of_crowd;
use crate::driver::rows::{Contest, Known, Sending};
use crate::driver::send::{Address, Requests};
use crate::error::{Failure, FailureKind, UpdateError};
use fencepost_core::condition::{self, Clauses, Demand};
use fencepost_core::edit::{RawEdit, Resolve, Room, Unmet, room};
use fencepost_core::format::item::Attributes;
use fencepost_core::format::row::{self, Row};
use fencepost_core::hold;
use fencepost_core::plan::Write;
use fencepost_core::{ItemVersion, Role, SentWrite, UNSEEN_IDS, Versioned, WriteId, is_in_window};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, mem};

/// An applied edit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edited<T> {
    /// The version made by the edit.
    pub at: ItemVersion,
    /// The item as the answer shows it. It may show later changes too. `None` if it was deleted since.
    pub item: Result<Option<Versioned<T>>, Undecodable>,
}

/// The edit was applied, and its row is unusable now or does not decode as the type of the table. Repair the row.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the edit was applied, and its item cannot be used: {reason}; correct its type if that is wrong, or repair the item"
)]
pub struct Undecodable {
    /// The problem with the item, by its attribute.
    pub reason: String,
}

/// An item refused an edit. Nothing was written.
#[non_exhaustive]
pub struct NotEdited<T> {
    /// Why.
    pub reason: NotEditedReason,
    /// The clause that refused it, and what the item has there, in words. `None` if there may be several.
    pub clause: Option<String>,
    /// The item that refused it.
    pub item: Box<Versioned<T>>,
}

/// Why an item refused an edit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotEditedReason {
    /// The result of an add would be outside its bounds.
    OutOfRange,
    /// The item has no number at the path of an add.
    NotANumber,
    /// A condition does not hold, or a value is not of the type that a clause needs.
    NotAsDemanded,
    /// The edit would change nothing.
    Unchanged,
    /// One of several conditions does not hold, and only `DynamoDB` can tell which.
    ConditionFailed,
}

impl fmt::Display for NotEditedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotEditedReason::OutOfRange => "the result would be outside the bounds",
            NotEditedReason::NotANumber => "the item has no such number",
            NotEditedReason::NotAsDemanded => "the item is not as demanded",
            NotEditedReason::Unchanged => "the item is already so",
            NotEditedReason::ConditionFailed => "one of several conditions does not hold",
        })
    }
}

impl<T> fmt::Display for NotEdited<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing was changed: {} (the item is at version {})", self.reason, self.item.version())?;
        self.clause.as_ref().map_or(Ok(()), |clause| write!(f, "; {clause}"))
    }
}

impl<T> fmt::Debug for NotEdited<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotEdited { reason, clause, item } = self;
        f.debug_struct("NotEdited").field("reason", reason).field("clause", clause).field("at", &item.at).finish()
    }
}

impl<T: Record> Table<T> {
    /// Edits the item, exactly once, at any version. An edit conflicts only if as many other writes as the
    /// [edit window](crate::Settings::edit_window) or more are applied to the item between its look and its write. It is
    /// then sent again. The window is one for a row of another program, and for each row of a table with [programs that
    /// write as they like](crate::Settings::open_to_any).
    ///
    /// A warm edit, of an item that this client has edited before, sends one write. (Any look warms it up, if the table
    /// [remembers items](Table::remembering_items).) A cold one reads first. Each of these costs
    /// one more write: more other writes than the window allows since the item was seen, a wrong guess of a band, an
    /// item that remembers many old writes and that this client [has not read](Edit::seen), a lost answer. If an answer is lost and the item then refuses the edit, one more write burns the edit: afterwards
    /// the refusal is certain, because no copy of the edit can be applied.
    ///
    /// # Errors
    /// [`UpdateError::NotFound`]: the key has no item. [`UpdateError::Refused`]: [`NotEdited`] says why the item refused
    /// the edit, and holds the item. [`UpdateError::Failed`]: see [`Failure`].
    pub async fn edit(&self, key: impl Into<Key>, edit: &Edit<T>) -> Result<Edited<T>, UpdateError<NotEdited<T>>> {
        let call = &self.call();
        let (mut attempt, mut editing) = self.editing(key, edit)?;
        let done = attempt.decided(self.sender(), call, |attempt| {
            Ok(match editing.next(attempt)? {
                Go::Send(sending) => Next::Send(sending, ()),
                Go::Read => Next::Read(vec![0]),
                Go::Wait(bound) => Next::Wait(bound),
                Go::NotFound => Next::Answer(UpdateError::NotFound),
                Go::Refused(unmet, row) => {
                    let refused = Self::not_edited(edit, unmet, &row)?;
                    match hold::with_all_back(Self::LAYOUT, &row.attributes) {
                        Some(most) if edit.raw.unmet(&most, false).is_none() => {
                            attempt.rows[0].known = Known::Row(*row);
                            Next::Answer(refused)
                        }
                        // Nothing that is held would change it.
                        _ => Next::Final(refused),
                    }
                }
            })
        });
        let applied = match done.await? {
            Done::Answered(error) => return Err(error),
            Done::Applied(applied) => applied,
        };
        let ((), at, row) = Self::applied(&attempt, applied)?;
        let row = self.raw.row_after_edit(&attempt, row, at, call).await;
        match row.and_then(|row| row.as_ref().map_or(Ok(None), Self::decode)) {
            Ok(item) => Ok(Edited { at, item: Ok(item) }),
            Err(Failure { kind: FailureKind::CorruptItem { reason }, .. }) => {
                Ok(Edited { at, item: Err(Undecodable { reason }) })
            }
            Err(failure) => Err(failure.into()),
        }
    }

    fn not_edited(edit: &Edit<T>, unmet: Option<Unmet>, row: &Row) -> Result<UpdateError<NotEdited<T>>, Failure> {
        let Some(current) = Self::decode(row)?.map(Box::new) else { return Ok(UpdateError::NotFound) };
        let reason = match unmet.or_else(|| edit.raw.reason(&row.attributes)) {
            Some(Unmet::NotANumber) => NotEditedReason::NotANumber,
            Some(Unmet::OutOfRange) => NotEditedReason::OutOfRange,
            Some(Unmet::NotAsDemanded) => NotEditedReason::NotAsDemanded,
            Some(Unmet::Unchanged) => NotEditedReason::Unchanged,
            Some(Unmet::WindowPassed) | None => NotEditedReason::ConditionFailed,
        };
        let clause = edit.raw.refusing_clause(&row.attributes);
        Ok(UpdateError::Refused(NotEdited { reason, clause, item: current }))
    }

    /// Edits like [`Table::edit`]. If the item refuses the edit, changes it by the decision instead, like
    /// [`Table::update_with_retry`]. Both are one change: at most one of them is applied.
    ///
    /// Use it if an edit serves most items, and some need an exact version.
    #[cfg_attr(not(any(feature = "http", feature = "testing")), expect(dead_code, reason = "only `http` needs it"))]
    pub(crate) async fn edit_or_update<R>(
        &self,
        key: impl Into<Key>,
        edit: &Edit<T>,
        decide: impl Fn(&T) -> Result<Option<T>, R>,
    ) -> Result<Versioned<T>, UpdateError<R>> {
        let call = &self.call();
        let (mut attempt, mut editing) = self.editing(key, edit)?;
        editing.gives_way = true;
        let (mut is_updating, decide) = (false, updating(decide));
        let done = attempt.decided(self.sender(), call, |attempt| {
            if !is_updating {
                match editing.next(attempt)? {
                    Go::Send(sending) => return Ok(Next::Send(sending, None)),
                    Go::Read => return Ok(Next::Read(vec![0])),
                    Go::Wait(bound) => return Ok(Next::Wait(bound)),
                    Go::NotFound => return Ok(Next::Answer(Err(UpdateError::NotFound))),
                    // The update is the same change. It burns the edit, if a late copy of it may still be applied.
                    Go::Refused(_, row) => attempt.rows[0].known = Known::Row(*row),
                }
                is_updating = true;
            }
            self.updated(attempt, &decide, |_, next| Some(next))
        });
        let applied = match done.await? {
            Done::Answered(kept) => return kept?.ok_or(UpdateError::NotFound),
            Done::Applied(applied) => applied,
        };
        let (value, at, row) = Self::applied(&attempt, applied)?;
        if let Some(value) = value {
            self.raw.saw(&attempt.rows[0].address.key, row.ok().flatten().as_ref(), Some(at));
            return Ok(Versioned { value, at });
        }
        // It was the edit. The row shows its result.
        let row = self.raw.row_after_edit(&attempt, row, at, call).await;
        match row.and_then(|row| row.as_ref().map_or(Ok(None), Self::decode)) {
            Ok(item) => item.ok_or(UpdateError::NotFound),
            Err(Failure { kind: FailureKind::CorruptItem { .. }, .. }) => {
                let source = "the edit was applied, and its item cannot be read".into();
                Err(Failure::of(FailureKind::OutcomeUnknown { source }).at(|| attempt.place()).into())
            }
            Err(failure) => Err(failure.into()),
        }
    }

    fn editing<'a>(&'a self, key: impl Into<Key>, edit: &'a Edit<T>) -> Result<(Attempt, Editing<'a>), Failure> {
        let edit = &edit.raw;
        // An invalid edit sends nothing, not even a read.
        edit.resolve(Self::LAYOUT, None).map_err(|error| Failure::from(error).at(|| self.place("edit", None)))?;
        let mut attempt = self.change("edit", key, &self.call())?;
        let editing = self.raw.editing(&mut attempt, edit, |row| Ok(Self::decode(row)?.is_some()));
        Ok((attempt, editing))
    }
}

/// What became of an edit of a row whose type is not known.
pub(super) enum RowEdited {
    /// It was applied, and left this row, if an answer showed it.
    Applied(Option<Box<Row>>),
    Refused(Box<Row>),
    NotFound,
}

impl RawTable {
    /// Edits the row at this key like [`Table::edit`]. Starts from the row as it is known, or else from a look.
    pub(super) async fn edit_row(
        &self,
        operation: &'static str,
        key: Attributes,
        known: Option<Row>,
        edit: &RawEdit,
        call: &Call,
    ) -> Result<RowEdited, Failure> {
        let mut attempt = self.change(operation, key, call);
        attempt.rows[0].known = known.map_or(Known::Nothing, Known::Row);
        let mut editing = self.editing(&mut attempt, edit, |row| Ok(!row.is_tombstone));
        editing.rereads = true;
        let done = attempt.decided(self.sender(), call, |attempt| {
            Ok(match editing.next(attempt)? {
                Go::Send(sending) => Next::Send(sending, ()),
                Go::Read => Next::Read(vec![0]),
                Go::Wait(bound) => Next::Wait(bound),
                Go::NotFound => Next::Answer(RowEdited::NotFound),
                Go::Refused(_, row) => Next::Answer(RowEdited::Refused(row)),
            })
        });
        let Applied { at, shown, .. } = match done.await? {
            Done::Answered(edited) => return Ok(edited),
            Done::Applied(applied) => applied,
        };
        let row = shown.and_then(|item| Row::read(self.layout, item).ok());
        self.keep_seen(&attempt.rows[0].address.key, row.as_ref(), at);
        Ok(RowEdited::Applied(row.map(Box::new)))
    }

    /// Ends the state of a key on which an attempt may create its row: leaves a tombstone on a free key, or raises the version of
    /// the tombstone that is there. `false` if the key is in another state by now, so that nothing is left to end.
    pub(super) async fn burn_base(&self, key: Attributes, row: Option<&Row>, call: &Call) -> Result<bool, Failure> {
        let sender = self.sender();
        let write = if let Some(row) = row {
            condition::raise_tombstone(self.layout, key.clone(), row)
        } else {
            let item = row::tombstone(self.layout, &key, sender.new_id(), sender.clock.now());
            Some(condition::put_if_absent(self.layout, item))
        };
        let Some(write) = write else { return Ok(false) };
        let address = Address { table: self.name.clone(), key };
        let mut attempt = Attempt::of_one("burn", address, self.layout, Requests::ROW, sender, call);
        // Whoever burns looks at the row again, so what refused the burn is of no use.
        let done = attempt.repeated(sender, call, &write, |_| Ok::<_, Failure>(())).await?;
        Ok(matches!(done, Done::Applied(_)))
    }

    fn editing<'a>(
        &'a self,
        attempt: &mut Attempt,
        edit: &'a RawEdit,
        decodes: fn(&Row) -> Result<bool, Failure>,
    ) -> Editing<'a> {
        attempt.rows[0].is_read_first = false;
        attempt.rows[0].remembers_items = false; // It remembers rows by itself, also without their items.
        let (sent, crowd) = Default::default();
        Editing {
            edit,
            table: self,
            decodes,
            gives_way: false,
            rereads: false,
            sent,
            pauses: 0,
            is_stale: false,
            crowd,
        }
    }
}

/// A state of the row from which a send may start, with the row unless the caller only named its state. The row has no
/// attributes if they were not kept.
type Sight = (ItemVersion, Option<Arc<Row>>);

/// What follows for an edit.
enum Go {
    Send(Sending),
    Read,
    Wait(Duration),
    NotFound,
    /// The row refuses the edit. An update in its place is the same change.
    Refused(Option<Unmet>, Box<Row>),
}

/// The decisions of one edit.
struct Editing<'a> {
    edit: &'a RawEdit,
    table: &'a RawTable,
    decodes: fn(&Row) -> Result<bool, Failure>,
    /// Whether another change follows an edit that `DynamoDB` rejects, such as one that makes the item too large.
    gives_way: bool,
    /// Whether the row is read again after throttling.
    rereads: bool,
    /// The last send, with its start and its clauses.
    sent: Option<Sent>,
    /// How often the edit has waited because its window was passed.
    pauses: u32,
    /// Whether the row at the start of the edit was seen before the last pause.
    is_stale: bool,
    /// Keeps this edit in the crowd at its row.
    crowd: Option<Arc<()>>,
}

struct Sent {
    /// The state from which it started.
    sight: Sight,
    /// The edit itself. `None` if it waits, and starts again from there.
    edit: Option<(SentWrite, Clauses)>,
}

impl Editing<'_> {
    /// What follows from the row as it is known.
    fn next(&mut self, attempt: &mut Attempt) -> Result<Go, Failure> {
        if mem::take(&mut attempt.has_looked) {
            self.sent = None; // No send of it was applied, nor ever will be.
        }
        let ((at, seen), clauses) = match self.sent.take() {
            Some(Sent { sight, edit: Some((sent, clauses)) }) => match self.after(attempt, &sent, &sight, &clauses)? {
                Ok(sight) => self.from(sight)?,
                Err(go) => return Ok(go),
            },
            Some(Sent { sight, edit: None }) => {
                let sight = self.later(attempt, sight);
                self.from(sight)?
            }
            None => match (self.known_sight(attempt), mem::replace(&mut attempt.rows[0].known, Known::Nothing)) {
                (Some(known), _) => known,
                (None, Known::Nothing) => return Ok(Go::Read),
                (None, Known::Row(row)) if (self.decodes)(&row)? => {
                    self.table.keep_seen(&attempt.rows[0].address.key, Some(&row), None);
                    let unmet = self.edit.unmet(&row.attributes, false);
                    if unmet.is_some() {
                        return Ok(Go::Refused(unmet, Box::new(row)));
                    }
                    self.from((row.at, Some(Arc::new(row))))?
                }
                (None, _) => return Ok(Go::NotFound),
            },
        };
        let sending = self.table.alone(attempt, Write::Edit(at, seen.as_deref(), &clauses))?;
        let [step] = &*sending.steps else { return Ok(Go::NotFound) };
        if let Role::Writes(sent) = step.role {
            self.sent = Some(Sent { sight: (at, seen), edit: Some((sent, clauses)) });
        }
        let (gives_way, rereads) = (self.gives_way, self.rereads);
        Ok(Go::Send(Sending { contest: Contest::None, gives_way, rereads, ..sending }))
    }

    /// The clauses of the edit where it starts from this row.
    fn from(&self, sight: Sight) -> Result<(Sight, Clauses), Failure> {
        let clauses = self.edit.resolve(self.table.layout, sight.1.as_ref().map(|row| &row.attributes))?;
        Ok((sight, clauses))
    }

    /// Where the next send starts after a refusal of this one.
    fn after(
        &mut self,
        attempt: &mut Attempt,
        sent: &SentWrite,
        (_, seen): &Sight,
        clauses: &Clauses,
    ) -> Result<Result<Sight, Go>, Failure> {
        let row = match mem::replace(&mut attempt.rows[0].known, Known::Nothing) {
            Known::Row(row) => Some(row),
            Known::Damaged(reason) => return Err(Failure::of(FailureKind::CorruptItem { reason })),
            _ => None,
        };
        if let Some(row) = &row {
            row.check_fence(self.table.fence)?;
        }
        // The value is not decoded: an item may be large, and the caller gets it from the answer of the edit.
        let Some(row) = row.filter(|row| !row.is_tombstone) else {
            self.table.sender().row_cache.remove(&self.table.name, &attempt.rows[0].address.key);
            return Ok(Err(Go::NotFound));
        };
        self.table.keep_seen(&attempt.rows[0].address.key, Some(&row), None);
        let unmet = self.edit.unmet(&row.attributes, !is_in_window(sent, row.at));
        let has_passed = unmet == Some(Unmet::WindowPassed);
        let goes_on =
            has_passed || unmet.is_none() && self.may_take(attempt, sent.id, seen.as_deref(), &row, clauses)?;
        if !goes_on {
            return Ok(Err(Go::Refused(unmet, Box::new(row))));
        }
        let sight = (row.at, Some(Arc::new(row)));
        Ok(if has_passed { self.spread(attempt, sight) } else { Ok(sight) })
    }

    /// Whether the row that refused the attempt may take the next one: the attempt had another band, or demanded other
    /// values, or it knew no ids to remove and the row has too many, or a burn shows a later state than the refusal. If not, a condition failed that only `DynamoDB` judges.
    fn may_take(
        &self,
        attempt: &Attempt,
        id: WriteId,
        seen: Option<&Row>,
        row: &Row,
        clauses: &Clauses,
    ) -> Result<bool, Failure> {
        let layout = self.table.layout;
        let differs = |name: &&str| seen.is_some_and(|seen| seen.attributes.get(*name) != row.attributes.get(*name));
        Ok(attempt.attempts().is_burned(id)
            || (seen.is_none() && row.memory.count() as u64 > layout.remembered + UNSEEN_IDS)
            || (layout.demands_values() && layout.attributes.iter().any(differs))
            || self.edit.resolve(layout, Some(&row.attributes))? != *clauses)
    }

    /// The start of the edit without a read, with its clauses there: the row last seen by this client, or the state named by
    /// the caller.
    fn known_sight(&self, attempt: &Attempt) -> Option<(Sight, Clauses)> {
        if self.table.layout.demands_values() || !matches!(attempt.rows[0].known, Known::Nothing) {
            return None; // What was seen last may be of a higher version than the row.
        }
        let row = self.table.sender().row_cache.get(&self.table.name, &attempt.rows[0].address.key);
        let at = row.as_ref().map_or(self.edit.seen_at(), |row| Some(row.at))?;
        let has_attributes = row.as_ref().is_some_and(|row| !row.attributes.is_empty());
        let is_enough = has_attributes || Demand::at(self.table.layout, at).is_some();
        let clauses = self.clauses_in_window(row.as_deref()).filter(|_| is_enough)?;
        Some(((at, row), clauses))
    }

    /// The clauses of the edit for a row that may be out of date, if the row has room for it in its window. If not, only the
    /// current row tells.
    fn clauses_in_window(&self, row: Option<&Row>) -> Option<Clauses> {
        let layout = self.table.layout;
        let clauses = self.edit.resolve(layout, row.map(|row| &row.attributes)).ok()?;
        matches!(room(layout, row, &clauses), Ok(Room::InWindow)).then_some(clauses)
    }

    /// Waits long enough for the edits waiting with this one to pass each other. If the start was not seen before the last
    /// pause, the last send usually only found out the current row. The edit then starts from that row at once.
    fn spread(&mut self, attempt: &mut Attempt, sight: Sight) -> Result<Sight, Go> {
        attempt.was_late();
        if mem::take(&mut self.is_stale) {
            return Ok(sight);
        }
        self.pauses += 1;
        let (sender, name) = (self.table.sender(), &self.table.name);
        if self.crowd.is_none() {
            self.crowd = sender.row_cache.enter_crowd(name, &attempt.rows[0].address.key);
        }
        let crowd = self.crowd.as_ref().map_or(1, size_of_crowd);
        self.sent = Some(Sent { sight, edit: None });
        Err(Go::Wait(sender.policy.spread_bound(self.pauses, crowd, self.table.layout.window, attempt.round_trip())))
    }

    /// The start of the send after a pause: the row last seen by this client, if it is later.
    fn later(&mut self, attempt: &Attempt, sight: Sight) -> Sight {
        // The row has left every window in which this edit was sent. So no copy of it can be applied any more, and it
        // may start from any later version of the row.
        let seen = self.table.sender().row_cache.get(&self.table.name, &attempt.rows[0].address.key);
        let later = seen.filter(|seen| {
            let (seen, own) = (seen.at, sight.0);
            seen.incarnation == own.incarnation && seen.version > own.version
        });
        let later = later.filter(|seen| self.clauses_in_window(Some(seen)).is_some());
        self.is_stale = later.is_none();
        later.map_or(sight, |seen| (seen.at, Some(seen)))
    }
}
