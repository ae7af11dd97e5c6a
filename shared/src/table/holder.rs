//! [`Holder`]: takes parts of items for an order, gives them back, and settles the holds that it meets.

use super::editing::RowEdited;
use super::handle::RawTable;
use crate::call::Call;
use crate::driver::attempt::{BoxFuture, HoldKeeper, Settled, Taken};
use crate::driver::read_rows;
use crate::driver::row_cache::LARGEST_ITEM;
use crate::driver::rows::{Decider, Known, KnownRow, Take};
use crate::driver::send::Address;
use crate::error::{Failure, FailureKind};
use crate::store::Store;
use fencepost_core::condition::Holds;
use fencepost_core::edit::RawEdit;
use fencepost_core::format::AsKind;
use fencepost_core::format::item::{Attributes, size_of_attributes};
use fencepost_core::format::layout::{Layout, MOST_HOLDS};
use fencepost_core::format::number::compare;
use fencepost_core::format::row::Row;
use fencepost_core::hold::{Deciding, Fate, Hold, LARGEST_CLEAR, Settlement, fate, holds_of, read_holds, settlement};
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
/// The most time for a write that is of use to others alone.
const FOR_OTHERS: Duration = Duration::from_millis(500);
/// How often a give-back is made again on an item that has changed meanwhile.
const GIVE_BACKS: usize = 8;

/// A hold that is not known to be placed, in the row at this place.
struct Open {
    place: usize,
    hold: Hold,
    /// Whether it has left the row since.
    is_gone: bool,
}

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
        let KnownRow { retention, fence, remembers_items, .. } = *row;
        let table = self.table(&row.address.table, row.layout);
        RawTable { tombstone_retention: retention, fence, remembers_items, ..table }
    }

    /// A table whose own holds are nobody's concern.
    fn table(&self, name: &str, layout: &'static Layout) -> RawTable {
        RawTable {
            store: self.store.clone(),
            name: name.to_owned(),
            layout,
            tombstone_retention: Duration::ZERO,
            fence: None,
            remembers_items: false,
            keeping: None,
            held_for: None,
        }
    }

    async fn take_one(&self, row: &KnownRow, take: &Take) -> Taken {
        let Known::Row(known) = &row.known else { return Taken::Refused(Known::Absent) };
        let table = self.table_of(row);
        // A read costs a fifth of a refused write.
        let has_probably_passed = !row.is_fresh && table.has_probably_passed(&row.address.key);
        let read = if has_probably_passed { table.observe(&row.address.key, &self.call).await } else { Ok(None) };
        let read = read.unwrap_or_default().filter(|row| !row.is_tombstone);
        let seen = read.as_ref().unwrap_or(known);
        let clear = self.clears(row, seen, take.hold.attempt).await;
        let cleared = count(&clear);
        let holds = Holds { place: Some(take.hold.stored()), free: None, clear };
        let edit = take.edit.clone().with_holds(row.layout.names.holds, holds);
        // Only a row that was just read may refuse without being asked. A large one takes much heap twice.
        let is_kept = row.is_fresh && size_of_attributes(&known.attributes) <= LARGEST_ITEM;
        let from = read.or_else(|| is_kept.then(|| known.clone()));
        match table.edit_row("take", row.address.key.clone(), from, &edit, &self.call).await {
            Ok(RowEdited::Applied(_)) => {
                self.call.counts().holds_removed += cleared;
                Taken::Landed
            }
            Ok(RowEdited::Refused(row)) => Taken::Refused(Known::Row(*row)),
            Ok(RowEdited::NotFound) => Taken::Refused(Known::Absent),
            Err(failure) => Taken::Failed(failure),
        }
    }

    /// The holds that a take removes along the way, because their attempts have placed their rows. Takers choose different ones.
    async fn clears(&self, row: &KnownRow, seen: &Row, attempt: WriteId) -> Vec<String> {
        let holds = holds_of(&row.layout.names, &seen.attributes).unwrap_or_default();
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
        let is_burned = self.table(&decider.table, decider.layout).burn_base(key, row, &self.call).await?;
        self.call.counts().holds_burned += u32::from(is_burned);
        Ok(())
    }

    /// Gives back what this hold has taken. Returns the row as it is then.
    async fn give_back(&self, row: &KnownRow, mut known: Known, hold: &Hold) -> Result<Known, Failure> {
        let (Some(number), Some(follows)) = (row.layout.held, row.follows) else { return Ok(known) };
        let (table, key) = (self.table_of(row), &row.address.key);
        let as_taken = table.remembered(key).filter(|seen| holds_it(row.layout, &seen.attributes, hold));
        if let (Known::Nothing, Some(seen)) = (&known, as_taken) {
            known = Known::Row(seen.as_ref().clone());
        }
        for _ in 0..GIVE_BACKS {
            let seen = match known {
                Known::Row(seen) if !seen.is_tombstone => seen,
                Known::Nothing => match table.observe(key, &self.call).await? {
                    Some(seen) if !seen.is_tombstone => seen,
                    other => return Ok(other.map_or(Known::Absent, Known::Row)),
                },
                other => return Ok(other),
            };
            if !holds_it(row.layout, &seen.attributes, hold) {
                return Ok(Known::Row(seen));
            }
            let edit = follows(&seen.attributes, back(number, &hold.quantity))?;
            let holds = Holds { free: Some(hold.attempt.name()), ..Holds::default() };
            let edit = edit.with_holds(row.layout.names.holds, holds);
            known = match table.edit_row("give_back", key.clone(), Some(seen), &edit, &self.call).await? {
                RowEdited::Applied(after) => {
                    self.call.counts().holds_given_back += 1;
                    return Ok(after.map_or(Known::Nothing, |after| Known::Row(*after)));
                }
                RowEdited::Refused(now) => Known::Row(*now),
                RowEdited::NotFound => return Ok(Known::Absent),
            };
        }
        Ok(known)
    }

    /// Removes holds whose attempts have placed their rows, as many as one write does.
    async fn remove(&self, row: &KnownRow, seen: &Row, placed: &[WriteId], call: &Call) -> Result<Known, Failure> {
        let clear: Vec<_> = placed.iter().take(LARGEST_CLEAR).map(|placed| placed.name()).collect();
        let cleared = count(&clear);
        let edit = RawEdit::default().with_holds(row.layout.names.holds, Holds { clear, ..Holds::default() });
        let table = self.table_of(row);
        let edited = table.edit_row("settle", row.address.key.clone(), Some(seen.clone()), &edit, call).await?;
        Ok(match edited {
            RowEdited::Applied(after) => {
                self.call.counts().holds_removed += cleared;
                after.map_or(Known::Nothing, |after| Known::Row(*after))
            }
            RowEdited::Refused(now) => Known::Row(*now),
            RowEdited::NotFound => Known::Absent,
        })
    }

    async fn wait(&mut self) -> bool {
        self.rounds += 1;
        let random = self.store.sender().rng.next_u64();
        // Whoever is in no hurry looks rarely.
        let rarely = self.patience.saturating_sub(PATIENCE) / 4;
        let pause = fraction(RetryPolicy::hold_pause(self.rounds).max(rarely), random);
        if self.call.deadline().remaining() < pause + MIN_SEND_TIME {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }

    /// The holds in these rows that are not known to be placed.
    fn open(&mut self, rows: &[KnownRow], looked_at: &[usize]) -> Result<Vec<Open>, Failure> {
        let mut open = Vec::new();
        for &place in looked_at {
            let row = &rows[place];
            let placed = self.store.sender().row_cache.placed(&row.address.table, &row.address.key);
            self.committed.extend(placed);
            let holds = holds_known(row)?.into_iter().filter(|hold| !self.committed.contains(&hold.attempt));
            open.extend(holds.map(|hold| Open { place, hold, is_gone: false }));
        }
        Ok(open)
    }

    /// The fates of these holds. Nothing is known of those whose table does not say where its orders are.
    async fn fates_of(&self, rows: &[KnownRow], open: &[Open]) -> Result<Vec<(Fate, Option<Row>)>, Failure> {
        let mut fates: Vec<_> = open.iter().map(|_| (Fate::Corrupt, None)).collect();
        let mut asked = vec![false; open.len()];
        while let Some((decider, first)) = (0..open.len()).find_map(|index| {
            let decider = rows[open[index].place].held_for.as_ref().filter(|_| !asked[index])?;
            Some((decider, index))
        }) {
            let is_there = |open: &Open| rows[open.place].held_for.as_ref().is_some_and(|of| of.table == decider.table);
            let places: Vec<_> = (first..open.len()).filter(|&index| is_there(&open[index])).collect();
            let holds: Vec<_> = places.iter().map(|&index| &open[index].hold).collect();
            for (place, fate) in places.iter().zip(self.fates(decider, &holds).await?) {
                (fates[*place], asked[*place]) = (fate, true);
            }
        }
        Ok(fates)
    }

    /// Finds out what becomes of the holds in these rows. A hold that is undecided is watched, and burned at last.
    async fn settle_all(
        &mut self,
        rows: &[KnownRow],
        looked_at: &[usize],
        needs_none: bool,
    ) -> Result<Settled, Failure> {
        let mut open = self.open(rows, looked_at)?;
        let mut latest: HashMap<usize, Known> = HashMap::new();
        while !open.is_empty() {
            let fates = self.fates_of(rows, &open).await?;
            let (now, mut has_changed, mut left) = (self.store.sender().elapsed(), false, Vec::new());
            for (open, (fate, deciding)) in open.into_iter().zip(fates) {
                let since = *self.watched.entry(open.hold.attempt).or_insert(now);
                match settlement(fate, now.saturating_sub(since), self.patience) {
                    Settlement::Remove => {
                        has_changed |= self.is_placed(rows, &open, deciding, &mut latest);
                    }
                    // It is not placed, so what it took has come back.
                    _ if open.is_gone => has_changed = true,
                    Settlement::GiveBack => {
                        let known = latest.remove(&open.place).unwrap_or(Known::Nothing);
                        let known = self.give_back(&rows[open.place], known, &open.hold).await;
                        let known = known.unwrap_or(Known::Nothing);
                        let is_back =
                            !matches!(known, Known::Nothing) && !has_hold(&rows[open.place], &known, &open.hold);
                        latest.insert(open.place, known);
                        has_changed |= is_back;
                        if !is_back {
                            left.push(open);
                        }
                    }
                    Settlement::Burn => {
                        if let Some(decider) = &rows[open.place].held_for
                            && let Err(failure) = self.burn(decider, &open.hold, deciding.as_ref()).await
                        {
                            debug!(%failure, "an attempt was not burned");
                        }
                        left.push(open);
                    }
                    Settlement::Wait | Settlement::Leave => left.push(open),
                }
            }
            if has_changed {
                latest.retain(|_, known| !matches!(known, Known::Nothing));
                return Ok(Settled { learned: latest.into_iter().collect(), stands: false });
            }
            let Some(first) = left.first().map(|open| &rows[open.place]) else { break };
            let can_be_decided = left.iter().any(|open| rows[open.place].held_for.is_some());
            if !can_be_decided || !self.wait().await {
                return Err(held(first));
            }
            let places: HashSet<_> = left.iter().map(|open| open.place).collect();
            for place in places {
                let row = &rows[place];
                let seen = self.table_of(row).observe(&row.address.key, &self.call).await?;
                latest.insert(place, seen.map_or(Known::Absent, Known::Row));
            }
            for open in &mut left {
                open.is_gone = !has_hold(&rows[open.place], &latest[&open.place], &open.hold);
            }
            open = left;
        }
        if latest.iter().any(|(place, known)| has_more(&rows[*place], known)) {
            return Ok(Settled { learned: latest.into_iter().collect(), stands: false });
        }
        self.make_room(rows, looked_at, needs_none).await
    }

    /// Notes that the row for which this was taken is there. Whether it is a row of this change that was not seen so: its own, from
    /// an earlier call.
    fn is_placed(
        &mut self,
        rows: &[KnownRow],
        open: &Open,
        deciding: Option<Row>,
        latest: &mut HashMap<usize, Known>,
    ) -> bool {
        let row = &rows[open.place];
        self.committed.insert(open.hold.attempt);
        self.store.sender().row_cache.note_placed(&row.address.table, &row.address.key, open.hold.attempt);
        let (Some(decider), Some(deciding)) = (&row.held_for, deciding) else { return false };
        let key = open.hold.key_in(decider.layout);
        let own =
            rows.iter().position(|row| row.address.table == decider.table && Some(&row.address.key) == key.as_ref());
        let Some(own) = own.filter(|&own| !matches!(&rows[own].known, Known::Row(known) if known.at == deciding.at))
        else {
            return false;
        };
        latest.insert(own, Known::Row(deciding));
        true
    }

    /// Removes placed holds from a row that has no room for others, or that needs to have none, so that the decision may try
    /// again. All holds of the rows are placed.
    async fn make_room(&self, rows: &[KnownRow], looked_at: &[usize], needs_none: bool) -> Result<Settled, Failure> {
        for &place in looked_at {
            let (row, placed) = (&rows[place], holds_known(&rows[place])?);
            let is_full = placed.len() as u64 >= MOST_HOLDS && !row.refused.is_empty();
            if let Known::Row(seen) = &row.known
                && (is_full || needs_none && !placed.is_empty())
            {
                let placed: Vec<_> = placed.iter().map(|hold| hold.attempt).collect();
                let removed = self.remove(row, seen, &placed, &self.call).await;
                let known = removed.map_err(|failure| {
                    debug!(%failure, "placed holds were not removed");
                    held(row)
                });
                return Ok(Settled { learned: vec![(place, known?)], stands: false });
            }
        }
        self.help_others(rows, looked_at).await?;
        Ok(Settled { learned: Vec::new(), stands: true })
    }

    /// Removes placed holds from a row that has many. If it is sold out, nobody takes from it any more and removes them along the
    /// way, and everybody who is refused asks about them all.
    async fn help_others(&self, rows: &[KnownRow], looked_at: &[usize]) -> Result<(), Failure> {
        for &place in looked_at {
            let mut placed: Vec<_> = holds_known(&rows[place])?.iter().map(|hold| hold.attempt).collect();
            let Known::Row(seen) = &rows[place].known else { continue };
            if placed.len() < LARGEST_CLEAR {
                continue;
            }
            // Others may do the same with the same row.
            let start = self.store.sender().rng.next_u64() % placed.len() as u64;
            placed.rotate_left(usize::try_from(start).unwrap_or_default());
            if let Err(failure) = self.remove(&rows[place], seen, &placed, &self.call.at_most(FOR_OTHERS)).await {
                debug!(%failure, "placed holds were not removed");
            }
            break;
        }
        Ok(())
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

/// The edit that adds this quantity back to the number at this attribute, whatever the number is.
fn back(number: &str, quantity: &str) -> RawEdit {
    const MOST: i128 = 10_i128.pow(37);
    match Number::parse(quantity) {
        Some(quantity) => RawEdit::default().and_add(number, quantity, .., Some((-MOST, MOST))),
        None => RawEdit::refused(format!("a hold has the quantity {quantity}")),
    }
}

/// The holds in a row as it is known.
fn holds_known(row: &KnownRow) -> Result<Vec<Hold>, Failure> {
    match &row.known {
        Known::Row(known) if row.layout.held.is_some() && !known.is_tombstone => {
            Ok(read_holds(&row.layout.names, &known.attributes)?)
        }
        _ => Ok(Vec::new()),
    }
}

fn count(names: &[String]) -> u32 {
    u32::try_from(names.len()).unwrap_or(u32::MAX)
}

/// Whether a row has this hold as it is known now.
fn has_hold(row: &KnownRow, now: &Known, hold: &Hold) -> bool {
    now.row().is_some_and(|now| holds_it(row.layout, &now.attributes, hold))
}

fn holds_it(layout: &Layout, item: &Attributes, hold: &Hold) -> bool {
    let holds = item.get(layout.names.holds).and_then(AsKind::as_m);
    holds.is_some_and(|holds| holds.contains_key(&hold.attempt.name()))
}

/// Whether the held number of a row is higher now than when it was decided on.
fn has_more(row: &KnownRow, now: &Known) -> bool {
    let number = |known: &Known| {
        known.row().zip(row.layout.held).and_then(|(row, number)| row.attributes.get(number)?.as_n().cloned())
    };
    number(&row.known).zip(number(now)).is_none_or(|(before, now)| compare(&now, &before).is_gt())
}

fn held(row: &KnownRow) -> Failure {
    let key: Attributes = row.address.key.clone();
    let name = if row.name.is_empty() { format!("{key:?}") } else { row.name.clone() };
    Failure::of(FailureKind::Held { name })
}

/// Waits for all of these at once.
pub(super) async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
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
