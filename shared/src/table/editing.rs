//! [`Table::edit`]: sends an edit until its outcome is proved. Moves its window forward, and burns an unproved edit.

use super::commit::RowChange;
use super::edit::{Edit, Edited};
use super::handle::Table;
use super::key::Key;
use super::prepare::{Prepared, Write};
use super::record::Record;
use super::room::{Room, room};
use super::stand::Stand;
use crate::call::Call;
use crate::error::{Failure, UpdateError};
use crate::protocol::condition::{Clauses, Demand};
use crate::protocol::item::Attributes;
use crate::protocol::memory::UNSEEN_IDS;
use crate::protocol::row::Row;
use crate::protocol::seen_rows::size_of_crowd;
use crate::protocol::settle::is_in_window;
use crate::version::{ItemVersion, Versioned};
use std::sync::Arc;
use std::{fmt, mem};

/// Why an item refused an edit. Nothing was written. Each holds the item.
#[non_exhaustive]
pub enum NotEdited<T> {
    /// The result of an add would be outside its bounds.
    OutOfRange(Box<Versioned<T>>),
    /// The item has no number there.
    NotANumber(Box<Versioned<T>>),
    /// A value is not as the edit demands.
    NotAsDemanded(Box<Versioned<T>>),
    /// The item is already as the edit would leave it. Only an edit made with [`Edit::only_if_changed`] is refused for it.
    Unchanged(Box<Versioned<T>>),
    /// A condition does not hold. Only `DynamoDB` knows which, because it compared numbers with decimals, bytes, sets,
    /// lists or maps, and more than one kind of condition has such values.
    ConditionFailed(Box<Versioned<T>>),
}

impl<T> NotEdited<T> {
    /// The item.
    #[must_use]
    pub fn item(&self) -> &Versioned<T> {
        match self {
            NotEdited::OutOfRange(item)
            | NotEdited::NotANumber(item)
            | NotEdited::NotAsDemanded(item)
            | NotEdited::Unchanged(item)
            | NotEdited::ConditionFailed(item) => item,
        }
    }

    /// The name of the reason, and a sentence.
    fn said(&self) -> [&'static str; 2] {
        match self {
            NotEdited::OutOfRange(_) => ["OutOfRange", "the result would be outside the bounds"],
            NotEdited::NotANumber(_) => ["NotANumber", "the item has no such number"],
            NotEdited::NotAsDemanded(_) => ["NotAsDemanded", "a value is not as demanded"],
            NotEdited::Unchanged(_) => ["Unchanged", "the item is already so"],
            NotEdited::ConditionFailed(_) => ["ConditionFailed", "one of several conditions does not hold"],
        }
    }
}

impl<T> fmt::Display for NotEdited<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([_, why], version) = (self.said(), self.item().version());
        write!(f, "nothing was changed: {why} (the item is at version {version})")
    }
}

impl<T> fmt::Debug for NotEdited<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.said()[0]).field(&self.item().at).finish()
    }
}

impl<T: Record> Table<T> {
    /// Edits the item, exactly once, at any version. An edit conflicts only if as many other writes as the
    /// [edit window](crate::Settings::edit_window) or more are applied to the item between its look and its write. It is
    /// then sent again. The window is one for a row of another program, and for each row of a table with [programs that
    /// write as they like](crate::Settings::open_to_any).
    ///
    /// A warm edit, of an item seen before by this client, sends one write. A cold one reads first. Each of these costs
    /// one more write: more other writes than the window allows since the item was seen, a wrong guess of a band, an
    /// item that remembers many old writes and that this client [has not read](Edit::seen), a lost answer. If an answer is lost and the item then refuses the edit, one more write burns the edit: afterwards
    /// the refusal is certain, because no copy of the edit can be applied.
    ///
    /// # Errors
    /// [`UpdateError::NotFound`]: the key has no item. [`UpdateError::Refused`]: [`NotEdited`] says why the item refused
    /// the edit, and holds the item. [`UpdateError::Failed`]: see [`Failure`].
    pub async fn edit(&self, key: impl Into<Key>, edit: &Edit) -> Result<Edited<T>, UpdateError<NotEdited<T>>> {
        let call = &self.call();
        let mut change = self.edit_change(key, edit, call)?;
        let told = async {
            let (stand, row) = match change.run().await? {
                Ran::Edited(at, row) => return Ok(Ok(Self::edited(at, row))),
                Ran::NotFound => return Ok(Err(UpdateError::NotFound)),
                Ran::Refused(stand, row) => (stand, row),
            };
            let Some(current) = Self::decode(&row)?.map(Box::new) else { return Ok(Err(UpdateError::NotFound)) };
            let reason = if stand == Stand::Takes { edit.reason(&row.attributes) } else { Some(stand) };
            Ok(Err(UpdateError::Refused(match reason {
                Some(Stand::NotANumber) => NotEdited::NotANumber(current),
                Some(Stand::OutOfRange) => NotEdited::OutOfRange(current),
                Some(Stand::NotAsDemanded) => NotEdited::NotAsDemanded(current),
                Some(Stand::Unchanged) => NotEdited::Unchanged(current),
                Some(Stand::WindowPassed | Stand::Takes) | None => NotEdited::ConditionFailed(current),
            })))
        }
        .await;
        change.change.end(told).await
    }

    /// Edits like [`Table::edit`]. If the item refuses the edit, changes it by the decision instead, like
    /// [`Table::update_with_retry`]. Both are one change: at most one of them is applied.
    ///
    /// Use it if an edit serves most items, and some need an exact version.
    #[cfg_attr(not(any(feature = "http", feature = "testing")), expect(dead_code, reason = "only `http` needs it"))]
    pub(crate) async fn edit_or_update<R>(
        &self,
        key: impl Into<Key>,
        edit: &Edit,
        decide: impl Fn(&T) -> Result<Option<T>, R>,
    ) -> Result<Versioned<T>, UpdateError<R>> {
        let call = &self.call();
        let mut change = self.edit_change(key, edit, call)?;
        change.change.gives_way = true;
        let told = async {
            match change.run().await? {
                Ran::Edited(at, row) => Ok(Self::edited(at, row).item.ok_or(UpdateError::NotFound)),
                Ran::NotFound => Ok(Err(UpdateError::NotFound)),
                // The update is the same change. It burns the edit, if a late copy of it may still be applied.
                Ran::Refused(_, row) => {
                    change.change.gives_way = false;
                    self.update_from(Self::live(Some(row))?, None, &mut change.change, decide).await
                }
            }
        }
        .await;
        change.change.end(told).await
    }

    fn edit_change<'a>(
        &'a self,
        key: impl Into<Key>,
        edit: &'a Edit,
        call: &'a Call,
    ) -> Result<EditChange<'a>, Failure> {
        edit.resolve(Self::LAYOUT, None)?; // An invalid edit sends nothing, not even a read.
        let decodes = |row: &Row| Ok(Self::decode(row)?.is_some());
        let change = self.change(key, call)?;
        Ok(EditChange { edit, decodes, call, change, pauses: 0, is_stale: false, crowd: None })
    }

    /// The answer to an edit with the new version `at`, by the row that shows it.
    fn edited(at: ItemVersion, row: Option<Row>) -> Edited<T> {
        Edited { at, item: row.and_then(|row| Self::decode(&row).ok().flatten()) }
    }
}

/// A state of the row from which a send may start, with the row unless the caller only named its state. The row has no
/// attributes if they were not kept.
type Sight = (ItemVersion, Option<Arc<Row>>);

/// The outcome of an edit that did not fail.
enum Ran {
    /// It made this version. Holds the row that shows it, if it can be read.
    Edited(ItemVersion, Option<Row>),
    NotFound,
    /// The row refused the edit. An update in its place is the same change.
    Refused(Stand, Row),
}

struct EditChange<'a> {
    edit: &'a Edit,
    decodes: fn(&Row) -> Result<bool, Failure>,
    call: &'a Call,
    change: RowChange<'a>,
    /// How often the edit has waited because its window was passed.
    pauses: u32,
    /// Whether the row at the start of the edit was seen before the last pause.
    is_stale: bool,
    /// Keeps this edit in the crowd at its row.
    crowd: Option<Arc<()>>,
}

impl EditChange<'_> {
    async fn run(&mut self) -> Result<Ran, Failure> {
        let (table, edit, layout) = (self.change.table, self.edit, self.change.table.layout);
        let ((mut at, mut seen), mut clauses) = match self.known_sight() {
            Some(known) => known,
            None => match table.observe(&self.change.address.key, self.call).await? {
                Some(row) if (self.decodes)(&row)? => {
                    self.remember(Some(&row));
                    let stand = edit.stand(&row.attributes, false);
                    if stand != Stand::Takes {
                        return Ok(Ran::Refused(stand, row));
                    }
                    let clauses = edit.resolve(layout, Some(&row.attributes))?;
                    ((row.at, Some(Arc::new(row))), clauses)
                }
                _ => return Ok(Ran::NotFound),
            },
        };
        loop {
            let attempt = self.change.prepare(Write::Edit(at, seen.as_deref(), &clauses))?;
            let (applied, item) = self.change.send(&attempt).await?;
            if let Some((_, at)) = applied {
                return Ok(Ran::Edited(at, self.row_of_edited(item).await?));
            }
            let row = item.map(|row| Row::read(layout, row)).transpose()?;
            let has_item = row.as_ref().map_or(Ok(false), self.decodes)?;
            if let Some(row) = &row {
                row.check_fence(table.fence)?;
            }
            let Some(row) = row.filter(|_| has_item) else {
                table.sender().seen_rows.remove(&table.name, &self.change.address.key);
                return Ok(Ran::NotFound);
            };
            self.remember(Some(&row));
            let stand = edit.stand(&row.attributes, !is_in_window(&attempt.sent, row.at));
            let goes_on = stand == Stand::WindowPassed
                || stand == Stand::Takes && self.may_take(&attempt, seen.as_deref(), &row, &clauses)?;
            if !goes_on {
                return Ok(Ran::Refused(stand, row));
            }
            (at, seen) = (row.at, Some(Arc::new(row)));
            if stand == Stand::WindowPassed {
                (at, seen) = self.spread((at, seen)).await?;
            }
            clauses = edit.resolve(layout, seen.as_ref().map(|row| &row.attributes))?;
        }
    }

    /// Whether the row that refused the attempt may take the next one: the attempt had another band, or demanded other
    /// values, or it knew no ids to remove and the row has too many, or a burn shows a later state than the refusal. If not, a condition failed that only `DynamoDB` judges.
    fn may_take(&self, attempt: &Prepared, seen: Option<&Row>, row: &Row, clauses: &Clauses) -> Result<bool, Failure> {
        let layout = self.change.table.layout;
        let differs = |name: &&str| seen.is_some_and(|seen| seen.attributes.get(*name) != row.attributes.get(*name));
        Ok(self.change.attempts.is_burned(attempt.sent.id)
            || (seen.is_none() && row.memory.len() as u64 > layout.remembered + UNSEEN_IDS)
            || (layout.demands_values() && layout.attributes.iter().any(differs))
            || self.edit.resolve(layout, Some(&row.attributes))? != *clauses)
    }

    /// The start of the edit without a read, with its clauses there: the row last seen by this client, or the state named by
    /// the caller.
    fn known_sight(&self) -> Option<(Sight, Clauses)> {
        if self.change.table.layout.demands_values() {
            return None; // What was seen last may be of a higher version than the row.
        }
        let row = self.change.table.sender().seen_rows.get(&self.change.table.name, &self.change.address.key);
        let at = row.as_ref().map_or(self.edit.seen_at(), |row| Some(row.at))?;
        let has_attributes = row.as_ref().is_some_and(|row| !row.attributes.is_empty());
        let is_enough = has_attributes || Demand::at(self.change.table.layout, at).is_some();
        let clauses = self.clauses_in_window(row.as_deref()).filter(|_| is_enough)?;
        Some(((at, row), clauses))
    }

    /// The clauses of the edit for a row that may be out of date, if the row has room for it in its window. If not, only the
    /// current row tells.
    fn clauses_in_window(&self, row: Option<&Row>) -> Option<Clauses> {
        let layout = self.change.table.layout;
        let clauses = self.edit.resolve(layout, row.map(|row| &row.attributes)).ok()?;
        matches!(room(layout, row, &clauses), Ok(Room::InWindow)).then_some(clauses)
    }

    fn remember(&self, row: Option<&Row>) {
        let Some(row) = row.filter(|_| !self.change.table.layout.demands_values()) else { return };
        self.change.table.sender().seen_rows.insert(
            &self.change.table.name,
            &self.change.address.key,
            row,
            self.change.table.remembers_items,
        );
    }

    /// Waits long enough for the edits waiting with this one to pass each other. Returns the start of the next send: the
    /// row last seen by this client, if it is later than `sight`. If it is not, the next send usually only finds out
    /// the current row. The edit then starts from that row at once.
    async fn spread(&mut self, sight: Sight) -> Result<Sight, Failure> {
        let (sender, name) = (self.change.table.sender(), &self.change.table.name);
        self.call.count_conflict();
        if mem::take(&mut self.is_stale) {
            return Ok(sight);
        }
        self.pauses += 1;
        if self.crowd.is_none() {
            self.crowd = sender.seen_rows.enter_crowd(name, &self.change.address.key);
        }
        let crowd = self.crowd.as_ref().map_or(1, size_of_crowd);
        let round_trip = self.change.delivery.round_trip;
        let bound = sender.policy.spread_bound(self.pauses, crowd, self.change.table.layout.window, round_trip);
        self.change.delivery.spread(bound).await?;
        // The row has left every window in which this edit was sent. So no copy of it can be applied any more, and it
        // may start from any later version of the row.
        let later = sender.seen_rows.get(name, &self.change.address.key).filter(|seen| {
            let (seen, own) = (seen.at, sight.0);
            seen.incarnation == own.incarnation && seen.version > own.version
        });
        let later = later.filter(|seen| self.clauses_in_window(Some(seen)).is_some());
        self.is_stale = later.is_none();
        Ok(later.map_or(sight, |seen| (seen.at, Some(seen))))
    }

    /// The row after an applied edit. If the answer shows no item, reads it: a transaction returns none.
    async fn row_of_edited(&self, item: Option<Attributes>) -> Result<Option<Row>, Failure> {
        let row = match item {
            Some(item) => Row::read(self.change.table.layout, item).ok(),
            // The edit was applied. Only the item is not known.
            None => (self.change.table.observe(&self.change.address.key, self.call).await)
                .map_err(|failure| Failure::OutcomeUnknown { source: failure.into() })?,
        };
        self.remember(row.as_ref());
        Ok(row)
    }
}
