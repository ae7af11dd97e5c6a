//! [`Table::add`]: sends an add until its outcome is proved. Moves its window forward, and burns what cannot be proved.

use super::add::{Add, Added, Stand};
use super::commit::RowChange;
use super::handle::Table;
use super::key::Key;
use super::prepare::{Observed, check_room, prunable, sent_write};
use super::record::Record;
use super::update::Decision;
use crate::call::Call;
use crate::error::{AddError, Failure, Source, UpdateError};
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
    /// Adds to numbers of the item, exactly once, at any version. An add conflicts only if [`Settings::add_window`](crate::Settings::add_window) or more
    /// other writes are applied to the item between its look and its write. It is then sent again. A row that
    /// another program wrote has a window of one, and so has each row of a table with
    /// [programs that write as they like](crate::Settings::open_to_any).
    ///
    /// A warm add, of an item that this client has seen, sends one write. A cold one reads first. Each of these costs
    /// one more write: more other writes since the item was seen than [`Settings::add_window`](crate::Settings::add_window) allows, a band that was
    /// guessed wrong, a lost answer. If an answer is lost and the item then refuses the add, one more write burns the
    /// add: afterwards no copy of it can be applied, and the refusal is certain.
    ///
    /// # Errors
    /// [`AddError::NotFound`]: the key has no item. [`AddError::OutOfRange`]: the result would be outside the bounds;
    /// the error holds the item. [`AddError::NotANumber`]: the item has no such number. [`AddError::NotAsDemanded`]: an
    /// attribute is not as the add demands. [`AddError::Failed`]: see [`Failure`].
    pub async fn add(&self, key: &Key, add: &Add, call: &Call) -> Result<Added<T>, AddError<T>> {
        let change = AddChange::new(self, key, add, call)?;
        match change.run(key).await? {
            Ended::Added(added) => Ok(added),
            Ended::NotFound => Err(AddError::NotFound),
            Ended::Refused(refused) => Err(match refused.stand {
                Stand::NotANumber => AddError::NotANumber(Box::new(refused.current)),
                Stand::NotAsDemanded => AddError::NotAsDemanded(Box::new(refused.current)),
                _ => AddError::OutOfRange(Box::new(refused.current)),
            }),
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
        let change = AddChange::new(self, key, add, call)?;
        match change.run(key).await? {
            Ended::Added(added) => added.item.ok_or(UpdateError::NotFound),
            Ended::NotFound => Err(UpdateError::NotFound),
            // The update burns the add, if a late copy of it may still be applied.
            Ended::Refused(refused) => {
                let RefusedAdd { row, current, mut change, .. } = *refused;
                self.update_from(Observed::Live(row, current), None, &mut change, decide).await
            }
        }
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
    fn differs_from<T: Record>(&self, row: &Row) -> bool {
        let differs = |item: &Attributes| T::ATTRIBUTES.iter().any(|name| item.get(*name) != row.attributes.get(*name));
        self.item().is_some_and(differs)
    }
}

/// One add. It keeps its write id in all windows, until it is burned.
struct AddChange<'a, T> {
    table: &'a Table<T>,
    key: Attributes,
    add: &'a Add,
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
enum Ended<'a, T> {
    Added(Added<T>),
    NotFound,
    /// Nothing was applied.
    Refused(Box<RefusedAdd<'a, T>>),
}

/// An add that its item refused.
struct RefusedAdd<'a, T> {
    stand: Stand,
    row: Row,
    current: Versioned<T>,
    /// What is done instead is the same change.
    change: RowChange<'a, T>,
}

/// What is known after a refusal: the add was applied, or it never will be under this id.
enum Settled {
    Landed(Version, Option<Attributes>),
    NotApplied(Option<Attributes>),
}

impl<'a, T: Record> AddChange<'a, T> {
    fn new(table: &'a Table<T>, key: &Key, add: &'a Add, call: &'a Call) -> Result<Self, Failure> {
        let key = Table::<T>::key_attributes(key)?;
        let id = WriteId::from_random(table.sender().rng.next_u64());
        let delivery = table.delivery(call);
        Ok(AddChange { table, key, add, call, id, delivery, pauses: 0, is_stale: false, open: None, crowd: None })
    }

    async fn run(mut self, key: &Key) -> Result<Ended<'a, T>, Failure> {
        let (table, add) = (self.table, self.add);
        let mut sight = match self.known_sight() {
            Some(sight) => sight,
            None => match table.observe(key, self.call).await? {
                Observed::Absent | Observed::Tombstone(_) => return Ok(Ended::NotFound),
                Observed::Live(row, current) => {
                    self.remember(&row);
                    let stand = add.stand(&row.attributes, false);
                    if !matches!(stand, Stand::Takes | Stand::Unclear) {
                        return Ok(self.refused(stand, row, current));
                    }
                    Sight::of_row(&Arc::new(row), true)
                }
            },
        };
        loop {
            let addition = add.resolve::<T>(sight.item())?;
            let sent = self.sent(&sight)?;
            let write = self.prepare(&sight, &addition)?;
            let token = table.new_token();
            let send = |send: Send| table.send(write.clone(), token.as_deref(), send);
            let proved = self.delivery.until_proved(send).await;
            let refusal = match proved.map_err(|failure| self.failed(failure))? {
                WriteOutcome::Applied(None) => return Ok(Ended::Added(self.added_unseen(key, &sent).await?)),
                WriteOutcome::Applied(Some(new)) => {
                    let at = seen(table, &new).map_or(committed(&sent), |seen| version_of(&seen));
                    return Ok(Ended::Added(self.added(at, Some(new))));
                }
                WriteOutcome::Refused(refusal) => refusal,
            };
            let round_trip = refusal.round_trip;
            let item = match self.settle(&sight, &sent, refusal).await? {
                Settled::Landed(version, item) => return Ok(Ended::Added(self.added(made(&sent, version), item))),
                Settled::NotApplied(item) => item,
            };
            let row = item.map(|row| Row::read(Table::<T>::LAYOUT, row)).transpose()?;
            let live = row.map(|row| Ok::<_, Failure>((Table::<T>::decode(&row)?, row))).transpose()?;
            if let Some((_, row)) = &live {
                row.check_fence(table.fence)?;
            }
            let Some((Some(current), row)) = live else {
                table.sender().seen_rows.remove(&table.name, &self.key);
                return Ok(Ended::NotFound);
            };
            self.remember(&row);
            sight = match add.stand(&row.attributes, !is_in_window(&sent, row.at)) {
                Stand::Takes => Sight::of_row(&Arc::new(row), true),
                // The burn showed a later state than the one that refused.
                Stand::Unclear if sent.id != self.id => Sight::of_row(&Arc::new(row), true),
                // The add demanded other values than those of the row.
                Stand::Unclear if Table::<T>::LAYOUT.demands_values() && sight.differs_from::<T>(&row) => {
                    Sight::of_row(&Arc::new(row), true)
                }
                Stand::WindowPassed => self.spread(Sight::of_row(&Arc::new(row), true), round_trip).await?,
                stand => return Ok(self.refused(stand, row, current)),
            };
        }
    }

    /// Where the add starts from without a read: the row that this client saw last, or the state that the caller names.
    fn known_sight(&self) -> Option<Sight> {
        if Table::<T>::LAYOUT.demands_values() {
            return None; // What was seen last may be of a higher version than the row.
        }
        let sight = match self.table.sender().seen_rows.get(&self.table.name, &self.key) {
            Some(seen) => Sight::of_row(&seen.row, seen.has_item),
            None => self.add.seen_at().map(|at| Sight { at, row: None, has_item: false })?,
        };
        (sight.has_item || Demand::at(Table::<T>::LAYOUT, sight.at).is_some()).then_some(sight)
    }

    fn remember(&self, row: &Row) {
        if Table::<T>::LAYOUT.demands_values() {
            return;
        }
        self.table.sender().seen_rows.insert(&self.table.name, &self.key, row, self.table.remembers_items);
    }

    fn refused(self, stand: Stand, row: Row, current: Versioned<T>) -> Ended<'a, T> {
        let change = RowChange::after(self.table, self.key, self.open, self.delivery);
        Ended::Refused(Box::new(RefusedAdd { stand, row, current, change }))
    }

    /// The failure of an add that ends here.
    fn failed(&self, failure: Failure) -> Failure {
        if self.open.is_some() { while_open(failure) } else { failure }
    }

    /// The window of the next send.
    fn demand(sight: &Sight) -> Result<Demand<'_>, Failure> {
        let layout = Table::<T>::LAYOUT;
        let demand = sight.row.as_ref().map(|row| Demand::of(layout, row)).or_else(|| Demand::at(layout, sight.at));
        demand.map(Demand::in_window).ok_or_else(too_long)
    }

    fn sent(&self, sight: &Sight) -> Result<SentWrite, Failure> {
        Ok(sent_write(Table::<T>::LAYOUT, self.id, self.table.fence, Self::demand(sight)?.base()))
    }

    fn prepare(&self, sight: &Sight, addition: &Addition) -> Result<condition::ConditionalWrite, Failure> {
        let layout = Table::<T>::LAYOUT;
        check_room(layout, sight.at)?;
        let mut prune = Vec::new();
        if let Some(row) = &sight.row {
            row.check_fence(self.table.fence)?;
            prune = prunable(layout, row, self.id, &[]);
        }
        let remember = Remember { id: self.id, prune: &prune, burn: &[] };
        condition::add_within(self.key.clone(), &Self::demand(sight)?, &remember, addition)
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
        let seen = item.as_ref().and_then(|item| seen(self.table, item));
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
                let row = item.and_then(|item| Row::read(Table::<T>::LAYOUT, item).ok());
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
        let Some(burn) = condition::burn(self.key.clone(), &Self::demand(sight)?, self.id, is_tombstone) else {
            return Err(Failure::OutcomeUnknown { source: lost });
        };
        let send = |send: Send| table.sender().write(&table.name, burn.clone(), send.timeout);
        let settled = match self.delivery.until_proved(send).await {
            Ok(WriteOutcome::Applied(new)) => Settled::NotApplied(new),
            Ok(WriteOutcome::Refused(refusal)) => {
                let seen = refusal.by.as_ref().and_then(|item| seen(table, item));
                match after_burn(judge(sent, seen.as_ref()).traced()) {
                    AfterAdd::Landed(version) => Settled::Landed(version, refusal.by),
                    AfterAdd::NotApplied => Settled::NotApplied(refusal.by),
                    _ => return Err(Failure::OutcomeUnknown { source: lost }),
                }
            }
            Err(_) => return Err(Failure::OutcomeUnknown { source: lost }),
        };
        // The row refuses the burned id. What follows is a new write.
        self.id = WriteId::from_random(table.sender().rng.next_u64());
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
        let bound = sender.policy.spread_bound(self.pauses, crowd, Table::<T>::LAYOUT.window, round_trip);
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

    /// The answer to an add whose answer shows no row: a transaction returns none. Reads the row.
    async fn added_unseen(&self, key: &Key, sent: &SentWrite) -> Result<Added<T>, Failure> {
        let item = match self.table.observe(key, self.call).await {
            Ok(Observed::Live(row, current)) => {
                self.remember(&row);
                Some(current)
            }
            Ok(Observed::Absent | Observed::Tombstone(_)) => None,
            // The add was applied. Only the item is not known.
            Err(failure) => return Err(Failure::OutcomeUnknown { source: failure.into() }),
        };
        Ok(Added { at: committed(sent), item })
    }

    /// The answer to an add that made the version `at`, by the row that shows it.
    fn added(&self, at: ItemVersion, item: Option<Attributes>) -> Added<T> {
        let row = item.and_then(|item| Row::read(Table::<T>::LAYOUT, item).ok());
        if let Some(row) = &row {
            self.remember(row);
        }
        Added { at, item: row.and_then(|row| Table::<T>::decode(&row).ok().flatten()) }
    }
}

/// What the judge must know of a row.
fn seen<T: Record>(_: &Table<T>, attributes: &Attributes) -> Option<SeenRow> {
    row::seen(Table::<T>::LAYOUT, attributes)
}

fn too_long() -> Failure {
    Failure::InvalidRecord { reason: "the add names too many attributes".to_owned() }
}

fn version_of(seen: &SeenRow) -> ItemVersion {
    ItemVersion { version: seen.version, incarnation: seen.incarnation }
}
