//! [`Table::add`]: sends an add until its outcome is proved. Moves its window forward, and burns what cannot be proved.

use super::add::{Add, Added, Why};
use super::handle::Table;
use super::key::Key;
use super::prepare::Observed;
use super::record::Record;
use crate::call::Call;
use crate::error::{AddError, Failure, Source};
use crate::protocol::condition::{self, Addition, Remember, Window};
use crate::protocol::deliver::{Delivery, Refusal, Send, WriteOutcome};
use crate::protocol::item::Attributes;
use crate::protocol::judge::{Base, SeenRow, SentWrite, Verdict, judge};
use crate::protocol::memory::WriteId;
use crate::protocol::row::{self, Row};
use crate::protocol::seen_rows::InCrowd;
use crate::version::{ItemVersion, Version};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

impl<T: Record> Table<T> {
    /// Adds to numbers of the item, exactly once, at any version. Adds to one item do not conflict, however many
    /// callers race.
    ///
    /// A warm add, of an item that this client has seen, sends one write. A cold one reads first. Each of these costs
    /// one more write: more other writes since the item was seen than [`Record::ADD_WINDOW`] allows, a band that was
    /// guessed wrong, a lost answer. If an answer is lost and the item then refuses the add, one more write burns the
    /// add: afterwards no copy of it can be applied, and the refusal is certain.
    ///
    /// # Errors
    /// [`AddError::NotFound`]: the key has no item. [`AddError::OutOfRange`]: the result would be outside the bounds;
    /// the error holds the item. [`AddError::NotANumber`]: the item has no such number. [`AddError::Demand`]: an
    /// attribute is not as the add demands. [`AddError::Failed`]: see [`Failure`].
    pub async fn add(&self, key: &Key, add: &Add, call: &Call) -> Result<Added<T>, AddError<T>> {
        let Some(sight) = self.sight(key, add, call).await? else { return Err(AddError::NotFound) };
        let key = Self::key_attributes(key)?;
        let id = WriteId::from_random(self.sender().rng.next_u64());
        let delivery = Delivery::new(self.sender(), call);
        AddChange { table: self, key, add, call, id, delivery, sight, pauses: 0, is_stale: false, crowd: None }
            .run()
            .await
    }

    /// Where the add starts from: the state that the caller names, the row that this client saw last, or a read.
    async fn sight(&self, key: &Key, add: &Add, call: &Call) -> Result<Option<Sight>, Failure> {
        let attributes = Self::key_attributes(key)?;
        if let Some(seen) = self.sender().seen_rows.get(&self.name, &attributes) {
            return Ok(Some(Sight::of_row(&seen.row, seen.has_item)));
        }
        if let Some(at) = add.seen_at() {
            return Ok(Some(Sight { at, row: None, has_item: false }));
        }
        Ok(match self.observe(key, call).await? {
            Observed::Absent | Observed::Tombstone(_) => None,
            Observed::Live(row, _) => {
                self.sender().seen_rows.insert(&self.name, &attributes, &row, self.remembers_items);
                Some(Sight::of_row(&Arc::new(row), true))
            }
        })
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
}

/// One add. It keeps its write id in all windows, until it is burned.
struct AddChange<'a, T> {
    table: &'a Table<T>,
    key: Attributes,
    add: &'a Add,
    call: &'a Call,
    id: WriteId,
    delivery: Delivery<'a>,
    sight: Sight,
    /// How often the add has waited because its window was passed.
    pauses: u32,
    /// Whether the row that the add starts from was seen before the last pause.
    is_stale: bool,
    crowd: Option<InCrowd>,
}

/// What is known after a refusal: the add was applied, or it never will be under this id.
enum Settled {
    Landed(Version, Option<Attributes>),
    NotApplied(Option<Attributes>),
}

impl<T: Record> AddChange<'_, T> {
    async fn run(mut self) -> Result<Added<T>, AddError<T>> {
        loop {
            let addition = self.add.resolve::<T>(self.sight.item())?;
            let sent = self.sent();
            let write = self.prepare(&addition)?;
            let table = self.table;
            let send = |send: Send| table.sender().write(&table.name, write.clone(), send.timeout);
            let refusal = match self.delivery.until_proved(send).await? {
                WriteOutcome::Applied(new) => {
                    let at = ItemVersion { version: self.sight.at.version.next(), ..self.sight.at };
                    let at = new.as_ref().and_then(row::seen).map_or(at, |seen| version_of(&seen));
                    return Ok(self.added(at, new));
                }
                WriteOutcome::Refused(refusal) => refusal,
            };
            let round_trip = refusal.round_trip;
            let item = match self.settle(&sent, refusal).await? {
                Settled::Landed(version, item) => {
                    return Ok(self.added(ItemVersion { version, ..self.sight.at }, item));
                }
                Settled::NotApplied(item) => item,
            };
            let Some(item) = item else {
                table.sender().seen_rows.remove(&table.name, &self.key);
                return Err(AddError::NotFound);
            };
            let row = Arc::new(Row::read(item).map_err(AddError::Failed)?);
            row.check_fence(table.fence)?;
            let Some(current) = Table::<T>::decode(&row)? else { return Err(AddError::NotFound) };
            table.sender().seen_rows.insert(&table.name, &self.key, &row, table.remembers_items);
            let passed = !is_in_window(&sent, row.at);
            let why = self.add.why::<T>(&addition, &row.attributes, passed);
            self.sight = Sight::of_row(&row, true);
            match why {
                Why::NotANumber => return Err(AddError::NotANumber(Box::new(current))),
                Why::OutOfRange => return Err(AddError::OutOfRange(Box::new(current))),
                Why::Demand => return Err(AddError::NotAsDemanded(Box::new(current))),
                Why::OtherBand => {}
                Why::WindowPassed => self.spread(round_trip).await?,
            }
        }
    }

    fn sent(&self) -> SentWrite {
        let ItemVersion { version, incarnation } = self.sight.at;
        let on = Base::Row { version, window: T::ADD_WINDOW, incarnation };
        SentWrite { id: self.id, on, remembered: T::REMEMBERED_WRITES, fence: self.table.fence }
    }

    fn window(&self) -> Window {
        Window { from: self.sight.at, size: T::ADD_WINDOW }
    }

    fn prepare(&self, addition: &Addition) -> Result<condition::ConditionalWrite, Failure> {
        let mut prune = Vec::new();
        if let Some(row) = &self.sight.row {
            row.check_fence(self.table.fence)?;
            prune = row.memory.prunable(row.at.version, T::REMEMBERED_WRITES, self.id);
        }
        let remember = Remember { id: self.id, prune: &prune };
        condition::add_within(self.key.clone(), self.window(), remember, addition)
            .and_then(|write| condition::fenced(write, self.table.fence))
            .ok_or_else(|| Failure::InvalidRecord { reason: "the add names too many attributes".to_owned() })
    }

    /// Finds out what became of a refused add. Burns it if an answer was lost and a copy may still be applied.
    async fn settle(&mut self, sent: &SentWrite, refusal: Refusal<Option<Attributes>>) -> Result<Settled, Failure> {
        let Refusal { by: item, pending, .. } = refusal;
        let seen = item.as_ref().and_then(row::seen);
        match (judge(sent, seen.as_ref()), pending) {
            (Verdict::Landed(version), _) => Ok(Settled::Landed(version, item)),
            // A caller may name a version that it made up. A version that was read never goes down.
            (Verdict::Corrupt, None) if self.sight.row.is_some() => {
                Err(Failure::CorruptItem { reason: "its version went down".to_owned() })
            }
            (Verdict::NeverApplied, _) | (_, None) => Ok(Settled::NotApplied(item)),
            (Verdict::Open, Some(source)) => self.burn(sent, source).await,
            (Verdict::Unproved | Verdict::Corrupt, Some(source)) => Err(Failure::OutcomeUnknown { source }),
        }
    }

    /// Makes sure that no copy of the add is applied any more. `lost` is the answer that makes this necessary.
    async fn burn(&mut self, sent: &SentWrite, lost: Source) -> Result<Settled, Failure> {
        let table = self.table;
        let burn = condition::burn(self.key.clone(), self.window(), self.id);
        let send = |send: Send| table.sender().write(&table.name, burn.clone(), send.timeout);
        let settled = match self.delivery.until_proved(send).await {
            Ok(WriteOutcome::Applied(new)) => Settled::NotApplied(new),
            Ok(WriteOutcome::Refused(refusal)) => {
                let seen = refusal.by.as_ref().and_then(row::seen);
                match judge(sent, seen.as_ref()) {
                    Verdict::Landed(version) => Settled::Landed(version, refusal.by),
                    Verdict::NeverApplied => Settled::NotApplied(refusal.by),
                    _ => return Err(Failure::OutcomeUnknown { source: lost }),
                }
            }
            Err(_) => return Err(Failure::OutcomeUnknown { source: lost }),
        };
        // The row refuses the burned id. What follows is a new write.
        self.id = WriteId::from_random(table.sender().rng.next_u64());
        Ok(settled)
    }

    /// Waits so long that the adds that wait with this one pass each other. Then starts from the row that this client
    /// saw last, if that is later. If it is not, the next send usually only finds out the current row. The add then
    /// starts from that row at once.
    async fn spread(&mut self, round_trip: Duration) -> Result<(), Failure> {
        let (sender, name) = (self.table.sender(), &self.table.name);
        self.call.count_conflict();
        if mem::take(&mut self.is_stale) {
            return Ok(());
        }
        self.pauses += 1;
        if let (None, Some(seen)) = (&self.crowd, sender.seen_rows.get(name, &self.key)) {
            self.crowd = Some(InCrowd::enter(&seen.crowd));
        }
        let crowd = self.crowd.as_ref().map_or(1, InCrowd::size);
        self.delivery.spread(sender.policy.spread_bound(self.pauses, crowd, T::ADD_WINDOW, round_trip)).await?;
        // The row has left every window in which this add was sent, so no copy of it can be applied any more. Thus the
        // add may start from any later version of that row.
        let later = sender.seen_rows.get(name, &self.key).filter(|seen| {
            let (seen, own) = (seen.row.at, self.sight.at);
            seen.incarnation == own.incarnation && seen.version > own.version
        });
        self.is_stale = later.is_none();
        if let Some(seen) = later {
            self.sight = Sight::of_row(&seen.row, seen.has_item);
        }
        Ok(())
    }

    /// The answer to an add that made the version `at`, by the row that shows it.
    fn added(&self, at: ItemVersion, item: Option<Attributes>) -> Added<T> {
        let row = item.and_then(|item| Row::read(item).ok());
        if let Some(row) = &row {
            self.table.sender().seen_rows.insert(&self.table.name, &self.key, row, self.table.remembers_items);
        }
        Added { at, item: row.and_then(|row| Table::<T>::decode(&row).ok().flatten()) }
    }
}

fn version_of(seen: &SeenRow) -> ItemVersion {
    ItemVersion { version: seen.version, incarnation: seen.incarnation }
}

fn is_in_window(sent: &SentWrite, at: ItemVersion) -> bool {
    match sent.on {
        Base::NoRow => false,
        Base::Row { version, window, incarnation } => {
            let (first, now) = (version.get(), at.version.get());
            at.incarnation == incarnation && (first..first + window).contains(&now)
        }
    }
}
