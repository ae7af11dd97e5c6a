//! [`Table::add`]: sends an add until its outcome is proved. Moves its window forward, and burns what cannot be proved.

use super::add::{Add, Added, Stand};
use super::commit::RowChange;
use super::handle::Table;
use super::key::Key;
use super::prepare::{Observed, check_room, prunable, sent_write};
use super::raw::RawTable;
use super::record::Record;
use super::update::Decision;
use crate::call::Call;
use crate::error::{AddError, Failure, Source, UpdateError};
use crate::layout::Layout;
use crate::protocol::after::{AfterAdd, after_add, after_burn, committed, is_in_window, made, while_open};
use crate::protocol::condition::{self, Addition, Demand, Remember};
use crate::protocol::deliver::{Delivery, Refusal, WriteOutcome};
use crate::protocol::item::Attributes;
use crate::protocol::judge::{Fate, SeenRow, SentWrite, fate, judge, may_still_land};
use crate::protocol::memory::WriteId;
use crate::protocol::row::{self, Row};
use crate::protocol::seen_rows::InCrowd;
use crate::protocol::send::Send;
use crate::version::{ItemVersion, Version, Versioned};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

impl<T: Record> Table<T> {
    /// Adds to numbers of the item, exactly once, at any version. An add conflicts only if [`Record::ADD_WINDOW`] or more
    /// other writes are applied to the item between its look and its write. It is then sent again. A row that
    /// another program wrote has a window of one, and so has each row of a table with
    /// [`OtherWriters::Any`](crate::OtherWriters::Any).
    ///
    /// A warm add, of an item that this client has seen, sends one write. A cold one reads first. Each of these costs
    /// one more write: more other writes since the item was seen than [`Record::ADD_WINDOW`] allows, a band that was
    /// guessed wrong, a lost answer. If an answer is lost and the item then refuses the add, one more write burns the
    /// add: afterwards no copy of it can be applied, and the refusal is certain.
    ///
    /// # Errors
    /// [`AddError::NotFound`]: the key has no item. [`AddError::OutOfRange`]: the result would be outside the bounds;
    /// the error holds the item. [`AddError::NotANumber`]: the item has no such number. [`AddError::NotAsDemanded`]: an
    /// attribute is not as the add demands. [`AddError::Failed`]: see [`Failure`].
    pub async fn add(&self, key: &Key, add: &Add, call: &Call) -> Result<Added<T>, AddError<T>> {
        match self.add_change(key, add, call)?.run().await? {
            Ended::Added { at, row } => Ok(Self::added(at, row)),
            Ended::NotFound => Err(AddError::NotFound),
            Ended::Refused(RefusedAdd { stand, row, .. }) => {
                let Some(current) = Self::decode(&row)? else { return Err(AddError::NotFound) };
                Err(match stand {
                    Stand::NotANumber => AddError::NotANumber(Box::new(current)),
                    Stand::NotAsDemanded => AddError::NotAsDemanded(Box::new(current)),
                    _ => AddError::OutOfRange(Box::new(current)),
                })
            }
        }
    }

    /// Adds like [`Table::add`]. If the item refuses the add, changes it by the decision instead, like
    /// [`Table::update_with_retry`]. Both are one change: at most one of them is applied.
    ///
    /// Use it if an add serves most items, and some need an exact version.
    ///
    /// # Errors
    /// See [`Table::update_with_retry`]. [`UpdateError::NotFound`] also says that the add was applied and the item was
    /// deleted after it.
    pub async fn add_or_update<R>(
        &self,
        key: &Key,
        add: &Add,
        call: &Call,
        decide: impl Fn(&T) -> Decision<T, R>,
    ) -> Result<Versioned<T>, UpdateError<R>> {
        match self.add_change(key, add, call)?.run().await? {
            Ended::Added { at, row } => Self::added(at, row).item.ok_or(UpdateError::NotFound),
            Ended::NotFound => Err(UpdateError::NotFound),
            // The update burns the add, if a late copy of it may still be applied.
            Ended::Refused(RefusedAdd { row, mut change, .. }) => {
                self.update_from(Observed::of(Some(row))?, None, &mut change, decide).await
            }
        }
    }

    fn add_change<'a>(&'a self, key: &Key, add: &'a Add, call: &'a Call) -> Result<AddChange<'a>, Failure> {
        let (table, key) = (&self.raw, Self::key_attributes(key)?);
        let (id, delivery) = (table.new_id(), table.delivery(call));
        let decodes = |row: &Row| Ok(Self::decode(row)?.is_some());
        let pauses = 0;
        Ok(AddChange { table, key, add, decodes, call, id, delivery, pauses, is_stale: false, open: None, crowd: None })
    }

    /// The answer to an add that made the version `at`, by the row that shows it.
    fn added(at: ItemVersion, row: Option<Row>) -> Added<T> {
        Added { at, item: row.and_then(|row| Self::decode(&row).ok().flatten()) }
    }
}

/// A state of the row that a send may start from.
struct Sight {
    at: ItemVersion,
    /// The row, unless the caller only named its state.
    row: Option<Arc<Row>>,
    has_item: bool,
}

impl Sight {
    fn of_row(row: &Arc<Row>, has_item: bool) -> Self {
        Sight { at: row.at, row: Some(Arc::clone(row)), has_item }
    }

    fn item(&self) -> Option<&Attributes> {
        self.row.as_ref().filter(|_| self.has_item).map(|row| &row.attributes)
    }

    /// Whether a declared attribute of the row has another value than here.
    fn differs_from(&self, row: &Row, layout: &Layout) -> bool {
        let differs =
            |item: &Attributes| layout.attributes.iter().any(|name| item.get(*name) != row.attributes.get(*name));
        self.item().is_some_and(differs)
    }
}

/// One add. It keeps its write id in all windows, until it is burned.
struct AddChange<'a> {
    table: &'a RawTable,
    key: Attributes,
    add: &'a Add,
    /// Whether a row has an item that decodes.
    decodes: fn(&Row) -> Result<bool, Failure>,
    call: &'a Call,
    id: WriteId,
    delivery: Delivery<'a>,
    /// How often the add has waited because its window was passed.
    pauses: u32,
    /// Whether the row that the add starts from was seen before the last pause.
    is_stale: bool,
    /// The sends that were refused, if a second copy of one may still be applied.
    open: Option<SentWrite>,
    crowd: Option<InCrowd>,
}

/// How an add ended.
enum Ended<'a> {
    /// The add made this version. The row shows it, unless it is not known.
    Added {
        at: ItemVersion,
        row: Option<Row>,
    },
    NotFound,
    /// Nothing was applied.
    Refused(RefusedAdd<'a>),
}

/// An add that its item refused.
struct RefusedAdd<'a> {
    stand: Stand,
    row: Row,
    /// An update in its place is the same change.
    change: RowChange<'a>,
}

/// What is known after a refusal: the add was applied, or it never will be under this id.
enum Settled {
    Landed(Version, Option<Attributes>),
    NotApplied(Option<Attributes>),
}

impl<'a> AddChange<'a> {
    async fn run(mut self) -> Result<Ended<'a>, Failure> {
        let (table, add, layout) = (self.table, self.add, self.table.layout);
        let mut sight = match self.known_sight() {
            Some(sight) => sight,
            None => match table.observe(&self.key, self.call).await? {
                Some(row) if (self.decodes)(&row)? => {
                    self.remember(&row);
                    let stand = add.stand(&row.attributes, false);
                    if !matches!(stand, Stand::Takes | Stand::Unclear) {
                        return Ok(self.refused(stand, row));
                    }
                    Sight::of_row(&Arc::new(row), true)
                }
                _ => return Ok(Ended::NotFound),
            },
        };
        loop {
            let addition = add.resolve(layout, sight.item())?;
            let sent = self.sent(&sight)?;
            let write = self.prepare(&sight, &addition)?;
            let token = table.new_token();
            let send = |send: Send| table.send(write.clone(), token.as_deref(), send);
            let proved = self.delivery.until_proved(send).await;
            let refusal = match proved.map_err(|failure| self.failed(failure))? {
                WriteOutcome::Applied(None) => return self.added_unseen(&sent).await,
                WriteOutcome::Applied(Some(new)) => {
                    let at = row::seen(layout, &new).map_or(committed(&sent), |seen| version_of(&seen));
                    return Ok(self.added(at, Some(new)));
                }
                WriteOutcome::Refused(refusal) => refusal,
            };
            let round_trip = refusal.round_trip;
            let item = match self.settle(&sight, &sent, refusal).await? {
                Settled::Landed(version, item) => return Ok(self.added(made(&sent, version), item)),
                Settled::NotApplied(item) => item,
            };
            let row = item.map(|row| Row::read(layout, row)).transpose()?;
            let has_item = row.as_ref().map_or(Ok(false), self.decodes)?;
            if let Some(row) = &row {
                row.check_fence(table.fence)?;
            }
            let Some(row) = row.filter(|_| has_item) else {
                table.sender().seen_rows.remove(&table.name, &self.key);
                return Ok(Ended::NotFound);
            };
            self.remember(&row);
            sight = match add.stand(&row.attributes, !is_in_window(&sent, row.at)) {
                Stand::Takes => Sight::of_row(&Arc::new(row), true),
                // The burn showed a later state than the one that refused.
                Stand::Unclear if sent.id != self.id => Sight::of_row(&Arc::new(row), true),
                // The add demanded other values than those of the row.
                Stand::Unclear if layout.demands_values() && sight.differs_from(&row, layout) => {
                    Sight::of_row(&Arc::new(row), true)
                }
                Stand::WindowPassed => self.spread(Sight::of_row(&Arc::new(row), true), round_trip).await?,
                stand => return Ok(self.refused(stand, row)),
            };
        }
    }

    /// Where the add starts from without a read: the row that this client saw last, or the state that the caller names.
    fn known_sight(&self) -> Option<Sight> {
        if self.table.layout.demands_values() {
            return None; // What was seen last may be of a higher version than the row.
        }
        let sight = match self.table.sender().seen_rows.get(&self.table.name, &self.key) {
            Some(seen) => Sight::of_row(&seen.row, seen.has_item),
            None => self.add.seen_at().map(|at| Sight { at, row: None, has_item: false })?,
        };
        (sight.has_item || Demand::at(self.table.layout, sight.at).is_some()).then_some(sight)
    }

    fn remember(&self, row: &Row) {
        if self.table.layout.demands_values() {
            return;
        }
        self.table.sender().seen_rows.insert(&self.table.name, &self.key, row, self.table.remembers_items);
    }

    fn refused(self, stand: Stand, row: Row) -> Ended<'a> {
        let change = RowChange::after(self.table, self.key, self.open, self.delivery);
        Ended::Refused(RefusedAdd { stand, row, change })
    }

    /// The failure of an add that ends here.
    fn failed(&self, failure: Failure) -> Failure {
        if self.open.is_some() { while_open(failure) } else { failure }
    }

    /// The window of the next send.
    fn demand<'s>(&self, sight: &'s Sight) -> Result<Demand<'s>, Failure> {
        let layout = self.table.layout;
        let demand = sight.row.as_ref().map(|row| Demand::of(layout, row)).or_else(|| Demand::at(layout, sight.at));
        demand.map(Demand::in_window).ok_or_else(too_long)
    }

    fn sent(&self, sight: &Sight) -> Result<SentWrite, Failure> {
        Ok(sent_write(self.table.layout, self.id, self.table.fence, self.demand(sight)?.base()))
    }

    fn prepare(&self, sight: &Sight, addition: &Addition) -> Result<condition::ConditionalWrite, Failure> {
        let layout = self.table.layout;
        check_room(layout, sight.at)?;
        let mut prune = Vec::new();
        if let Some(row) = &sight.row {
            row.check_fence(self.table.fence)?;
            prune = prunable(layout, row, self.id, &[]);
        }
        let remember = Remember { id: self.id, prune: &prune, burn: &[] };
        condition::add_within(self.key.clone(), &self.demand(sight)?, &remember, addition)
            .and_then(|write| condition::fenced(write, &layout.names, self.table.fence))
            .ok_or_else(too_long)
    }

    /// Finds out what became of a refused add. Burns it if an answer was lost and a copy may still be applied.
    async fn settle(
        &mut self,
        sight: &Sight,
        sent: &SentWrite,
        refusal: Refusal<Option<Attributes>>,
    ) -> Result<Settled, Failure> {
        let Refusal { by: item, pending, .. } = refusal;
        let seen = item.as_ref().and_then(|item| row::seen(self.table.layout, item));
        let verdict = judge(sent, seen.as_ref()).traced();
        let earlier = self.open.map(|open| fate(&open, seen.as_ref(), false));
        self.open = may_still_land(sent, seen.as_ref(), false).then(|| sent.not_applied_before(seen.as_ref()));
        match (after_add(verdict, pending.is_some()), pending) {
            (AfterAdd::NotApplied, None) if earlier == Some(Fate::Forgotten) => {
                let source = "an earlier send of it may have been applied, and the row no longer remembers it".into();
                Err(Failure::OutcomeUnknown { source })
            }
            (AfterAdd::Landed(version), _) => Ok(Settled::Landed(version, item)),
            (AfterAdd::NotApplied, _) => Ok(Settled::NotApplied(item)),
            (AfterAdd::Burn, Some(source)) => {
                let row = item.and_then(|item| Row::read(self.table.layout, item).ok());
                self.burn(sight, sent, row.is_some_and(|row| row.is_tombstone), source).await
            }
            (_, Some(source)) => Err(Failure::OutcomeUnknown { source }),
            (_, None) => Err(Failure::CorruptItem { reason: "its version went down".to_owned() }),
        }
    }

    /// Makes sure that no copy of the add is applied any more. `is_tombstone` says how the row was seen last, and `lost` is
    /// the answer that makes this necessary.
    async fn burn(
        &mut self,
        sight: &Sight,
        sent: &SentWrite,
        is_tombstone: bool,
        lost: Source,
    ) -> Result<Settled, Failure> {
        let table = self.table;
        let Some(burn) = condition::burn(self.key.clone(), &self.demand(sight)?, self.id, is_tombstone) else {
            return Err(Failure::OutcomeUnknown { source: lost });
        };
        let send = |send: Send| table.sender().write(&table.name, burn.clone(), send.timeout);
        let settled = match self.delivery.until_proved(send).await {
            Ok(WriteOutcome::Applied(new)) => Settled::NotApplied(new),
            Ok(WriteOutcome::Refused(refusal)) => {
                let seen = refusal.by.as_ref().and_then(|item| row::seen(table.layout, item));
                match after_burn(judge(sent, seen.as_ref()).traced()) {
                    AfterAdd::Landed(version) => Settled::Landed(version, refusal.by),
                    AfterAdd::NotApplied => Settled::NotApplied(refusal.by),
                    _ => return Err(Failure::OutcomeUnknown { source: lost }),
                }
            }
            Err(_) => return Err(Failure::OutcomeUnknown { source: lost }),
        };
        // The row refuses the burned id. What follows is a new write.
        self.id = table.new_id();
        self.open = None;
        Ok(settled)
    }

    /// Waits so long that the adds that wait with this one pass each other. Returns where the next send starts from:
    /// the row that this client saw last, if that is later than `sight`. If it is not, the next send usually only finds
    /// out the current row. The add then starts from that row at once.
    async fn spread(&mut self, sight: Sight, round_trip: Duration) -> Result<Sight, Failure> {
        let (sender, name) = (self.table.sender(), &self.table.name);
        self.call.count_conflict();
        if mem::take(&mut self.is_stale) {
            return Ok(sight);
        }
        self.pauses += 1;
        if let (None, Some(seen)) = (&self.crowd, sender.seen_rows.get(name, &self.key)) {
            self.crowd = Some(InCrowd::enter(&seen.crowd));
        }
        let crowd = self.crowd.as_ref().map_or(1, InCrowd::size);
        let bound = sender.policy.spread_bound(self.pauses, crowd, self.table.layout.window, round_trip);
        self.delivery.spread(bound).await.map_err(|failure| self.failed(failure))?;
        // The row has left every window in which this add was sent, so no copy of it can be applied any more. Thus the
        // add may start from any later version of that row.
        let later = sender.seen_rows.get(name, &self.key).filter(|seen| {
            let (seen, own) = (seen.row.at, sight.at);
            seen.incarnation == own.incarnation && seen.version > own.version
        });
        self.is_stale = later.is_none();
        Ok(later.map_or(sight, |seen| Sight::of_row(&seen.row, seen.has_item)))
    }

    /// The end of an add whose answer shows no row: a transaction returns none. Reads the row.
    async fn added_unseen(&self, sent: &SentWrite) -> Result<Ended<'a>, Failure> {
        match self.table.observe(&self.key, self.call).await {
            Ok(row) => {
                row.iter().for_each(|row| self.remember(row));
                Ok(Ended::Added { at: committed(sent), row })
            }
            // The add was applied. Only the item is not known.
            Err(failure) => Err(Failure::OutcomeUnknown { source: failure.into() }),
        }
    }

    /// The end of an add that made the version `at`, by the item that shows it.
    fn added(&self, at: ItemVersion, item: Option<Attributes>) -> Ended<'a> {
        let row = item.and_then(|item| Row::read(self.table.layout, item).ok());
        row.iter().for_each(|row| self.remember(row));
        Ended::Added { at, row }
    }
}

fn too_long() -> Failure {
    Failure::InvalidRecord { reason: "the add names too many attributes".to_owned() }
}

fn version_of(seen: &SeenRow) -> ItemVersion {
    ItemVersion { version: seen.version, incarnation: seen.incarnation }
}
