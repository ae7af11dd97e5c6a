//! [`Holder`]: takes parts of items for an order, gives them back, and settles the holds that it meets.

use super::editing::RowEdited;
use super::handle::RawTable;
use crate::call::Call;
use crate::driver::attempt::{BoxFuture, HoldKeeper, Settled, Taken};
use crate::driver::read_rows;
use crate::driver::rows::{Decider, Known, KnownRow, Take};
use crate::driver::send::Address;
use crate::error::{Failure, FailureKind};
use crate::store::Store;
use fencepost_core::condition::Holds;
use fencepost_core::edit::RawEdit;
use fencepost_core::format::item::{Attributes, size_of_attributes};
use fencepost_core::format::layout::{Layout, MOST_HOLDS};
use fencepost_core::format::row::Row;
use fencepost_core::hold::{Deciding, Fate, Hold, LARGEST_CLEAR, Settlement, fate, holds_of, settlement};
use fencepost_core::{MIN_SEND_TIME, Number, RetryPolicy, WriteId, fraction};
use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;
use tracing::debug;

/// How long a hold is watched before it is burned by whoever needs what it holds.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most holds of others at which a take looks, to remove those whose orders are placed.
const LOOKS: usize = 4;
/// How often a give-back is made again on an item that has changed meanwhile.
const GIVE_BACKS: usize = 8;

/// Keeps the holds of one change.
#[derive(Debug)]
pub(crate) struct Holder {
    store: Store,
    call: Call,
    /// The attempts that have placed their rows, as far as this change has seen.
    committed: HashSet<WriteId>,
    /// When each undecided hold was seen first, by the clock of this client.
    watched: HashMap<WriteId, Duration>,
    rounds: u32,
    /// How long an undecided hold is watched before it is burned.
    patience: Duration,
}

impl Holder {
    pub(crate) fn boxed(store: &Store, call: &Call) -> Box<dyn HoldKeeper> {
        Self::with_patience(store, call, PATIENCE)
    }

    pub(super) fn with_patience(store: &Store, call: &Call, patience: Duration) -> Box<dyn HoldKeeper> {
        let (committed, watched) = Default::default();
        Box::new(Holder { store: store.in_call(call), call: call.clone(), committed, watched, rounds: 0, patience })
    }

    fn table_of(&self, row: &KnownRow) -> RawTable {
        RawTable {
            store: self.store.clone(),
            name: row.address.table.clone(),
            layout: row.layout,
            tombstone_retention: row.retention,
            fence: row.fence,
            remembers_items: row.remembers_items,
            follows: row.follows.unwrap_or(nothing_follows),
            held_for: None,
        }
    }

    async fn take_one(&self, row: &KnownRow, take: &Take) -> Taken {
        let Known::Row(known) = &row.known else { return Taken::Refused(Known::Absent) };
        let table = self.table_of(row);
        // A read costs a fifth of a refused write.
        let has_probably_passed = !row.is_fresh && table.has_probably_passed(&row.address.key);
        let read = if has_probably_passed { table.observe(&row.address.key, &self.call).await } else { Ok(None) };
        let seen = match &read {
            Ok(read) => read.as_ref().filter(|row| !row.is_tombstone).unwrap_or(known),
            Err(_) => known,
        };
        let clear = self.clears(row, seen, take.hold.attempt).await;
        let holds = Holds { place: Some(take.hold.stored()), free: None, clear };
        let edit = take.edit.clone().with_holds(row.layout.names.holds, holds);
        match table.edit_row("take", row.address.key.clone(), Some(seen.clone()), &edit, &self.call).await {
            Ok(RowEdited::Applied(_)) => Taken::Landed,
            Ok(RowEdited::Refused(row)) => Taken::Refused(Known::Row(*row)),
            Ok(RowEdited::NotFound) => Taken::Refused(Known::Absent),
            Err(failure) => Taken::Failed(failure),
        }
    }

    /// The holds that a take removes along the way, because their attempts have placed their rows. Takers choose different ones.
    async fn clears(&self, row: &KnownRow, seen: &Row, attempt: WriteId) -> Vec<String> {
        let holds = holds_of(row.layout, &seen.attributes).unwrap_or_default();
        let known = self.store.sender().row_cache.placed(&row.address.table, &row.address.key);
        let is_known = |hold: &&Hold| known.contains(&hold.attempt);
        let mut clear: Vec<_> = holds.iter().filter(is_known).map(|hold| hold.attempt).collect();
        let size = size_of_attributes(&seen.attributes);
        let of_holds = seen.attributes.get(row.layout.names.holds).map_or(0, fencepost_core::format::item::size_of);
        let is_dear = (size + of_holds / holds.len().max(1)).div_ceil(1024) > (size - of_holds).div_ceil(1024);
        if is_dear && let Some(decider) = &row.held_for {
            let start = holds.partition_point(|hold| hold.attempt < attempt);
            let others = holds[start..].iter().chain(&holds[..start]).filter(|hold| !known.contains(&hold.attempt));
            let some: Vec<_> = others.take(LOOKS).collect();
            if let Ok(fates) = self.fates(decider, &some).await {
                let placed = some.iter().zip(fates).filter(|(_, (fate, _))| *fate == Fate::Committed);
                clear.extend(placed.map(|(hold, _)| hold.attempt));
            }
        }
        let start = clear.partition_point(|other| *other < attempt);
        clear.rotate_left(start);
        clear.truncate(LARGEST_CLEAR);
        clear.iter().map(|placed| placed.name()).collect()
    }

    /// The fates of these holds, each with the row that decides.
    async fn fates(&self, decider: &Decider, holds: &[&Hold]) -> Result<Vec<(Fate, Option<Row>)>, Failure> {
        let (sender, mut fates) = (self.store.sender(), Vec::new());
        for holds in holds.chunks(crate::driver::MAX_ROWS) {
            let keys: Vec<_> = holds.iter().map(|hold| hold.key_in(decider.layout)).collect();
            let mut asked: Vec<Address> = Vec::new();
            for key in keys.iter().flatten() {
                if !asked.iter().any(|address| address.key == *key) {
                    asked.push(Address { table: decider.table.clone(), key: key.clone() });
                }
            }
            let found = if asked.is_empty() { Vec::new() } else { read_rows(sender, &self.call, &asked).await? };
            for (hold, key) in holds.iter().zip(&keys) {
                let place = asked.iter().position(|address| Some(&address.key) == key.as_ref());
                let Some(place) = place else {
                    fates.push((Fate::Corrupt, None));
                    continue;
                };
                let row = found[place].clone().map(|item| Row::read(decider.layout, item)).transpose();
                fates.push(match row {
                    Ok(row) => {
                        let deciding = row.as_ref().map(|row| Deciding::of(decider.layout, row));
                        (fate(hold.attempt, hold.base, deciding), row)
                    }
                    Err(_) => (Fate::Corrupt, None),
                });
            }
        }
        Ok(fates)
    }

    /// Keeps the attempt of this hold from placing its row, whose current state is this one.
    async fn burn(&self, decider: &Decider, hold: &Hold, row: Option<&Row>) -> Result<(), Failure> {
        let Some(key) = hold.key_in(decider.layout) else { return Ok(()) };
        let table = RawTable {
            store: self.store.clone(),
            name: decider.table.clone(),
            layout: decider.layout,
            tombstone_retention: Duration::ZERO,
            fence: None,
            remembers_items: false,
            follows: nothing_follows,
            held_for: None,
        };
        table.burn_base(key, row, &self.call).await
    }

    /// Gives back what this hold has taken. Returns the row as it is then.
    async fn give_back(&self, row: &KnownRow, mut known: Known, hold: &Hold) -> Result<Known, Failure> {
        let (Some(number), Some(follows)) = (row.layout.held, row.follows) else { return Ok(known) };
        let (table, key) = (self.table_of(row), &row.address.key);
        for _ in 0..GIVE_BACKS {
            let seen = match known {
                Known::Row(seen) if !seen.is_tombstone => seen,
                Known::Nothing => match table.observe(key, &self.call).await? {
                    Some(seen) if !seen.is_tombstone => seen,
                    other => return Ok(other.map_or(Known::Absent, Known::Row)),
                },
                other => return Ok(other),
            };
            let holds = holds_of(row.layout, &seen.attributes).unwrap_or_default();
            if !holds.iter().any(|other| other.attempt == hold.attempt) {
                return Ok(Known::Row(seen));
            }
            let edit = follows(&seen.attributes, back(number, &hold.quantity))?;
            let holds = Holds { free: Some(hold.attempt.name()), ..Holds::default() };
            let edit = edit.with_holds(row.layout.names.holds, holds);
            known = match table.edit_row("give_back", key.clone(), Some(seen), &edit, &self.call).await? {
                RowEdited::Applied(Some(after)) => return Ok(Known::Row(*after)),
                RowEdited::Applied(None) => return Ok(Known::Nothing),
                RowEdited::Refused(now) => Known::Row(*now),
                RowEdited::NotFound => return Ok(Known::Absent),
            };
        }
        Ok(known)
    }

    /// Removes holds whose attempts have placed their rows.
    async fn remove(&self, row: &KnownRow, seen: &Row, placed: &[WriteId]) -> Result<Known, Failure> {
        let clear = placed.iter().take(LARGEST_CLEAR).map(|placed| placed.name()).collect();
        let edit = RawEdit::default().with_holds(row.layout.names.holds, Holds { clear, ..Holds::default() });
        let table = self.table_of(row);
        let edited = table.edit_row("settle", row.address.key.clone(), Some(seen.clone()), &edit, &self.call).await?;
        Ok(match edited {
            RowEdited::Applied(after) => after.map_or(Known::Nothing, |after| Known::Row(*after)),
            RowEdited::Refused(now) => Known::Row(*now),
            RowEdited::NotFound => Known::Absent,
        })
    }

    async fn wait(&mut self) -> bool {
        self.rounds += 1;
        let random = self.store.sender().rng.next_u64();
        let pause = fraction(RetryPolicy::hold_pause(self.rounds), random);
        if self.call.deadline().remaining() < pause + MIN_SEND_TIME {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }

    async fn settle_all(
        &mut self,
        rows: &[KnownRow],
        looked_at: &[usize],
        needs_none: bool,
    ) -> Result<Settled, Failure> {
        let mut undecided: Vec<(usize, Hold)> = Vec::new();
        for &place in looked_at {
            let holds = holds_in(&rows[place]).into_iter();
            undecided.extend(holds.filter(|hold| !self.committed.contains(&hold.attempt)).map(|hold| (place, hold)));
        }
        let mut latest: HashMap<usize, Known> = HashMap::new();
        loop {
            let Some(decider) = undecided.first().and_then(|(place, _)| rows[*place].held_for.clone()) else {
                return match undecided.first() {
                    None => self.make_room(rows, looked_at, needs_none).await,
                    Some((place, _)) => Err(held(&rows[*place])),
                };
            };
            let holds: Vec<_> = undecided.iter().map(|(_, hold)| hold).collect();
            let fates = self.fates(&decider, &holds).await?;
            let (now, mut learned, mut left) = (self.store.sender().elapsed(), Vec::new(), Vec::new());
            for ((place, hold), (fate, deciding)) in undecided.into_iter().zip(fates) {
                let since = *self.watched.entry(hold.attempt).or_insert(now);
                // The row that decides may be one of this change: its own, from an earlier call.
                let own = rows.iter().position(|row| {
                    row.address.table == decider.table && Some(&row.address.key) == hold.key_in(decider.layout).as_ref()
                });
                if let (Some(own), Fate::Committed, Some(row)) = (own, fate, &deciding)
                    && !matches!(&rows[own].known, Known::Row(known) if known.at == row.at)
                {
                    learned.push((own, Known::Row(row.clone())));
                }
                match settlement(fate, now.saturating_sub(since), self.patience) {
                    Settlement::Remove => {
                        self.committed.insert(hold.attempt);
                    }
                    Settlement::GiveBack => {
                        let known = latest.remove(&place).unwrap_or(Known::Nothing);
                        let known = self.give_back(&rows[place], known, &hold).await?;
                        learned.retain(|(of, _)| *of != place);
                        learned.push((place, known));
                    }
                    Settlement::Burn => {
                        self.burn(&decider, &hold, deciding.as_ref()).await?;
                        left.push((place, hold));
                    }
                    Settlement::Wait | Settlement::Leave => left.push((place, hold)),
                }
            }
            if !learned.is_empty() {
                return Ok(Settled { learned, stands: false });
            }
            if left.is_empty() {
                return self.make_room(rows, looked_at, needs_none).await;
            }
            if !self.wait().await {
                return Err(held(&rows[left[0].0]));
            }
            // A hold that has left its row was settled: it was given back, or its row is there.
            let places: HashSet<_> = left.iter().map(|(place, _)| *place).collect();
            for place in places {
                let row = &rows[place];
                let seen = self.table_of(row).observe(&row.address.key, &self.call).await?;
                latest.insert(place, seen.map_or(Known::Absent, Known::Row));
            }
            let is_gone = |(place, hold): &(usize, Hold)| {
                let holds = latest.get(place).map(|known| holds_at(rows[*place].layout, known)).unwrap_or_default();
                !holds.iter().any(|other| other.attempt == hold.attempt)
            };
            if left.iter().any(is_gone) {
                return Ok(Settled { learned: latest.into_iter().collect(), stands: false });
            }
            undecided = left;
        }
    }

    /// Removes placed holds from a row that has no room for others, or that needs to have none, so that the decision may try
    /// again. All holds of the rows are placed.
    async fn make_room(&self, rows: &[KnownRow], looked_at: &[usize], needs_none: bool) -> Result<Settled, Failure> {
        for &place in looked_at {
            let (row, placed) = (&rows[place], holds_in(&rows[place]));
            let is_full = placed.len() as u64 >= MOST_HOLDS && !row.refused.is_empty();
            if let Known::Row(seen) = &row.known
                && (is_full || needs_none && !placed.is_empty())
            {
                let placed: Vec<_> = placed.iter().map(|hold| hold.attempt).collect();
                let learned = vec![(place, self.remove(row, seen, &placed).await?)];
                return Ok(Settled { learned, stands: false });
            }
        }
        Ok(Settled { learned: Vec::new(), stands: true })
    }
}

impl HoldKeeper for Holder {
    fn take<'a>(&'a self, rows: &'a [KnownRow], takes: &'a [Take]) -> BoxFuture<'a, Vec<Taken>> {
        Box::pin(join_all(takes.iter().map(|take| self.take_one(&rows[take.row], take)).collect()))
    }

    fn give_back<'a>(&'a self, rows: &'a [KnownRow], takes: &'a [Take]) -> BoxFuture<'a, Vec<(usize, Known)>> {
        let back = move |take: &'a Take| async move {
            match self.give_back(&rows[take.row], Known::Nothing, &take.hold).await {
                Ok(known) => Some((take.row, known)),
                Err(failure) => {
                    debug!(%failure, "what was taken is left to others");
                    None
                }
            }
        };
        Box::pin(async move { join_all(takes.iter().map(back).collect()).await.into_iter().flatten().collect() })
    }

    fn placed(&self, rows: &[KnownRow], takes: &[Take]) {
        for take in takes {
            let Address { table, key } = &rows[take.row].address;
            self.store.sender().row_cache.note_placed(table, key, take.hold.attempt);
        }
    }

    fn settle<'a>(
        &'a mut self,
        rows: &'a [KnownRow],
        looked_at: &'a [usize],
        needs_none: bool,
    ) -> BoxFuture<'a, Result<Settled, Failure>> {
        Box::pin(self.settle_all(rows, looked_at, needs_none))
    }
}

fn nothing_follows(_: &Attributes, edit: RawEdit) -> Result<RawEdit, Failure> {
    Ok(edit)
}

/// The edit that adds this quantity back to the number at this attribute, whatever the number is.
fn back(number: &str, quantity: &str) -> RawEdit {
    const MOST: i128 = 10_i128.pow(37);
    match Number::parse(quantity) {
        Some(quantity) => RawEdit::default().and_add(number, quantity, .., Some((-MOST, MOST))),
        None => RawEdit::refused(format!("a hold has the quantity {quantity}")),
    }
}

fn holds_in(row: &KnownRow) -> Vec<Hold> {
    holds_at(row.layout, &row.known)
}

fn holds_at(layout: &Layout, known: &Known) -> Vec<Hold> {
    match known {
        Known::Row(row) if layout.held.is_some() && !row.is_tombstone => {
            holds_of(layout, &row.attributes).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn held(row: &KnownRow) -> Failure {
    let key: Attributes = row.address.key.clone();
    let name = if row.name.is_empty() { format!("{key:?}") } else { row.name.clone() };
    Failure::of(FailureKind::Held { name })
}

/// Waits for all of these at once.
async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        for (future, output) in waiting.iter_mut().filter(|(_, output)| output.is_none()) {
            if let Poll::Ready(ready) = future.as_mut().poll(context) {
                *output = Some(ready);
            }
        }
        if waiting.iter().all(|(_, output)| output.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    waiting.into_iter().filter_map(|(_, output)| output).collect()
}
