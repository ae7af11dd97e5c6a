//! [`Table::add`]: sends an add until its outcome is proved. Moves its window forward, and burns an unproved add.

use super::add::{Add, Added, Stand};
use super::commit::RowChange;
use super::handle::Table;
use super::key::Key;
use super::prepare::Write;
use super::record::Record;
use crate::call::Call;
use crate::error::{Failure, UpdateError};
use crate::protocol::condition::Demand;
use crate::protocol::item::Attributes;
use crate::protocol::row::Row;
use crate::protocol::seen_rows::size_of_crowd;
use crate::protocol::settle::is_in_window;
use crate::version::{ItemVersion, Versioned};
use std::sync::Arc;
use std::{fmt, mem};

/// Why an item refused an add. Nothing was written. Each holds the item.
#[non_exhaustive]
pub enum NotAdded<T> {
    /// The result would be outside the bounds.
    OutOfRange(Box<Versioned<T>>),
    /// The item has no number there.
    NotANumber(Box<Versioned<T>>),
    /// An attribute is not as the add demands.
    NotAsDemanded(Box<Versioned<T>>),
}

impl<T> NotAdded<T> {
    /// The item.
    #[must_use]
    pub fn item(&self) -> &Versioned<T> {
        let (NotAdded::OutOfRange(item) | NotAdded::NotANumber(item) | NotAdded::NotAsDemanded(item)) = self;
        item
    }

    /// The name of the reason, and a sentence.
    fn said(&self) -> [&'static str; 2] {
        match self {
            NotAdded::OutOfRange(_) => ["OutOfRange", "the result would be outside the bounds"],
            NotAdded::NotANumber(_) => ["NotANumber", "the item has no such number"],
            NotAdded::NotAsDemanded(_) => ["NotAsDemanded", "an attribute is not as demanded"],
        }
    }
}

impl<T> fmt::Display for NotAdded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([_, why], version) = (self.said(), self.item().version());
        write!(f, "nothing was added: {why} (the item is at version {version})")
    }
}

impl<T> fmt::Debug for NotAdded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.said()[0]).field(&self.item().at).finish()
    }
}

impl<T: Record> Table<T> {
    /// Adds to numbers of the item, exactly once, at any version. An add conflicts only if as many other writes as the
    /// [add window](crate::Settings::add_window) or more are applied to the item between its look and its write. It is
    /// then sent again. The window is one for a row of another program, and for each row of a table with [programs that
    /// write as they like](crate::Settings::open_to_any).
    ///
    /// A warm add, of an item seen before by this client, sends one write. A cold one reads first. Each of these costs
    /// one more write: more other writes than the window allows since the item was seen, a wrong guess of a band, a
    /// lost answer. If an answer is lost and the item then refuses the add, one more write burns the add: afterwards
    /// the refusal is certain, because no copy of the add can be applied.
    ///
    /// # Errors
    /// [`UpdateError::NotFound`]: the key has no item. [`UpdateError::Refused`]: [`NotAdded`] says why the item refused
    /// the add, and holds the item. [`UpdateError::Failed`]: see [`Failure`].
    pub async fn add(&self, key: impl Into<Key>, add: &Add) -> Result<Added<T>, UpdateError<NotAdded<T>>> {
        match self.add_change(key, add, &self.call())?.run().await {
            Ok((at, row)) => Ok(Self::added(at, row)),
            Err(UpdateError::NotFound) => Err(UpdateError::NotFound),
            Err(UpdateError::Failed(failure)) => Err(failure.into()),
            Err(UpdateError::Refused(refused)) => {
                let (stand, row) = *refused;
                let Some(current) = Self::decode(&row)? else { return Err(UpdateError::NotFound) };
                Err(UpdateError::Refused(match stand {
                    Stand::NotANumber => NotAdded::NotANumber(Box::new(current)),
                    Stand::NotAsDemanded => NotAdded::NotAsDemanded(Box::new(current)),
                    _ => NotAdded::OutOfRange(Box::new(current)),
                }))
            }
        }
    }

    /// Adds like [`Table::add`]. If the item refuses the add, changes it by the decision instead, like
    /// [`Table::update_with_retry`]. Both are one change: at most one of them is applied.
    ///
    /// Use it if an add serves most items, and some need an exact version.
    #[cfg_attr(not(any(feature = "http", feature = "testing")), expect(dead_code, reason = "only `http` needs it"))]
    pub(crate) async fn add_or_update<R>(
        &self,
        key: impl Into<Key>,
        add: &Add,
        decide: impl Fn(&T) -> Result<Option<T>, R>,
    ) -> Result<Versioned<T>, UpdateError<R>> {
        let call = &self.call();
        let mut change = self.add_change(key, add, call)?;
        match change.run().await {
            Ok((at, row)) => Self::added(at, row).item.ok_or(UpdateError::NotFound),
            Err(UpdateError::NotFound) => Err(UpdateError::NotFound),
            Err(UpdateError::Failed(failure)) => Err(failure.into()),
            // The update is the same change. It burns the add, if a late copy of it may still be applied.
            Err(UpdateError::Refused(refused)) => {
                self.update_from(Self::live(Some(refused.1))?, None, &mut change.change, decide).await
            }
        }
    }

    fn add_change<'a>(&'a self, key: impl Into<Key>, add: &'a Add, call: &'a Call) -> Result<AddChange<'a>, Failure> {
        let decodes = |row: &Row| Ok(Self::decode(row)?.is_some());
        let change = self.change(key, call)?;
        Ok(AddChange { add, decodes, call, change, pauses: 0, is_stale: false, crowd: None })
    }

    /// The answer to an add with the new version `at`, by the row that shows it.
    fn added(at: ItemVersion, row: Option<Row>) -> Added<T> {
        Added { at, item: row.and_then(|row| Self::decode(&row).ok().flatten()) }
    }
}

/// A state of the row from which a send may start, with the row unless the caller only named its state. The row has no
/// attributes if they were not kept.
type Sight = (ItemVersion, Option<Arc<Row>>);

struct AddChange<'a> {
    add: &'a Add,
    decodes: fn(&Row) -> Result<bool, Failure>,
    call: &'a Call,
    change: RowChange<'a>,
    /// How often the add has waited because its window was passed.
    pauses: u32,
    /// Whether the row at the start of the add was seen before the last pause.
    is_stale: bool,
    /// Keeps this add in the crowd at its row.
    crowd: Option<Arc<()>>,
}

impl AddChange<'_> {
    /// Returns the version made by the add, with the row that shows it, if it can be read.
    ///
    /// # Errors
    /// [`UpdateError::Refused`]: the row refused the add. An update in its place is the same change.
    async fn run(&mut self) -> Result<(ItemVersion, Option<Row>), UpdateError<Box<(Stand, Row)>>> {
        let (table, add, layout) = (self.change.table, self.add, self.change.table.layout);
        let (mut at, mut seen) = match self.known_sight() {
            Some(sight) => sight,
            None => match table.observe(&self.change.address.key, self.call).await? {
                Some(row) if (self.decodes)(&row)? => {
                    self.remember(Some(&row));
                    let stand = add.stand(&row.attributes, false);
                    if !matches!(stand, Stand::Takes | Stand::Unclear) {
                        return Err(UpdateError::Refused(Box::new((stand, row))));
                    }
                    (row.at, Some(Arc::new(row)))
                }
                _ => return Err(UpdateError::NotFound),
            },
        };
        loop {
            let addition = add.resolve(layout, seen.as_ref().map(|row| &row.attributes))?;
            let attempt = self.change.prepare(Write::Add(at, seen.as_deref(), &addition))?;
            let (applied, item) = self.change.send(&attempt).await?;
            if let Some((_, at)) = applied {
                return Ok((at, self.row_of_added(item).await?));
            }
            let row = item.map(|row| Row::read(layout, row)).transpose()?;
            let has_item = row.as_ref().map_or(Ok(false), self.decodes)?;
            if let Some(row) = &row {
                row.check_fence(table.fence)?;
            }
            let Some(row) = row.filter(|_| has_item) else {
                table.sender().seen_rows.remove(&table.name, &self.change.address.key);
                return Err(UpdateError::NotFound);
            };
            self.remember(Some(&row));
            let differs = |seen: &Row| {
                layout.attributes.iter().any(|name| seen.attributes.get(*name) != row.attributes.get(*name))
            };
            let stand = add.stand(&row.attributes, !is_in_window(&attempt.sent, row.at));
            let goes_on = match stand {
                Stand::Takes | Stand::WindowPassed => true,
                // The burn showed a later state than the refusal, or the add demanded other values.
                Stand::Unclear => {
                    self.change.attempts.is_burned(attempt.sent.id)
                        || (layout.demands_values() && seen.as_deref().is_some_and(differs))
                }
                Stand::NotANumber | Stand::OutOfRange | Stand::NotAsDemanded => false,
            };
            if !goes_on {
                return Err(UpdateError::Refused(Box::new((stand, row))));
            }
            (at, seen) = (row.at, Some(Arc::new(row)));
            if stand == Stand::WindowPassed {
                (at, seen) = self.spread((at, seen)).await?;
            }
        }
    }

    /// The start of the add without a read: the row last seen by this client, or the state named by the caller.
    fn known_sight(&self) -> Option<Sight> {
        if self.change.table.layout.demands_values() {
            return None; // What was seen last may be of a higher version than the row.
        }
        let row = self.change.table.sender().seen_rows.get(&self.change.table.name, &self.change.address.key);
        let at = row.as_ref().map_or(self.add.seen_at(), |row| Some(row.at))?;
        let has_attributes = row.as_ref().is_some_and(|row| !row.attributes.is_empty());
        (has_attributes || Demand::at(self.change.table.layout, at).is_some()).then_some((at, row))
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

    /// Waits long enough for the adds waiting with this one to pass each other. Returns the start of the next send: the
    /// row last seen by this client, if it is later than `sight`. If it is not, the next send usually only finds out
    /// the current row. The add then starts from that row at once.
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
        let spread = self.change.delivery.spread(bound).await;
        spread.map_err(|failure| self.change.attempts.failed(failure))?;
        // The row has left every window in which this add was sent. So no copy of it can be applied any more, and it
        // may start from any later version of the row.
        let later = sender.seen_rows.get(name, &self.change.address.key).filter(|seen| {
            let (seen, own) = (seen.at, sight.0);
            seen.incarnation == own.incarnation && seen.version > own.version
        });
        self.is_stale = later.is_none();
        Ok(later.map_or(sight, |seen| (seen.at, Some(seen))))
    }

    /// The row after an applied add. If the answer shows no item, reads it: a transaction returns none.
    async fn row_of_added(&self, item: Option<Attributes>) -> Result<Option<Row>, Failure> {
        let row = match item {
            Some(item) => Row::read(self.change.table.layout, item).ok(),
            // The add was applied. Only the item is not known.
            None => (self.change.table.observe(&self.change.address.key, self.call).await)
                .map_err(|failure| Failure::OutcomeUnknown { source: failure.into() })?,
        };
        self.remember(row.as_ref());
        Ok(row)
    }
}
