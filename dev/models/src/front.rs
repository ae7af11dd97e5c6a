//! The front: what a call decides on the rows that it knows. In production, these are `Table`, `Attempt`, `Leases` and
//! `LwwTable`. All that follows a decision is done by production's machine.

use crate::state::{Applied, End, Held, Kind, Known, Run, Said, Scene, World};
use crate::table::{Does, LeaseRow, OrderKey, Row, Stored, Write, version};
use fencepost_core::lease::{AfterAcquire, StoredLease, judge_acquire, judge_renewal};
use fencepost_core::{
    Base, ItemVersion, Line, Plan, Role, SentWrite, Step, Verdict, WriteId, anchors_of, epoch_seconds, is_soon,
};
use std::time::{Duration, SystemTime};

/// The place of the lease and of the first row.
pub const FIRST: usize = 0;
/// The place of the second row: another product, an order, or the item written under a lease.
pub const SECOND: usize = 1;
const MOST: i8 = 9;
const REFILL: i8 = 5;
/// How long a tombstone is kept.
const RETENTION: Duration = Duration::from_hours(1);
/// How long the row of a lease is kept.
pub const LEASE_RETENTION: Duration = Duration::from_hours(7 * 24);

/// What follows a decision.
pub enum Next {
    Answer(End),
    Send(Sending),
}

pub struct Sending {
    pub writes: Vec<Write>,
    pub plan: Plan,
    /// Whether an update follows the add from now on.
    pub has_turned: bool,
}

/// The rows that a call reads before its first decision.
#[must_use]
pub fn first_reads(kind: Kind) -> &'static [usize] {
    match kind {
        Kind::Adds { reads_first: true } | Kind::Checked => &[FIRST, SECOND],
        Kind::Adds { .. } | Kind::Cancel | Kind::Restock { reads_second: true } | Kind::Required | Kind::Fenced => {
            &[SECOND]
        }
        Kind::Add(_) | Kind::AddInBand | Kind::AddAhead(_) | Kind::AddOrUpdate | Kind::Update | Kind::Delete => {
            &[FIRST]
        }
        // An order reads nothing. A taken key and a product that refuses show themselves.
        _ => &[],
    }
}

/// The live item. `Err` if it is known that there is none.
pub(crate) fn live(run: &Run, row: usize) -> Result<Option<&Row>, ()> {
    match &run.known[row] {
        Known::Nothing => Ok(None),
        Known::There(Stored::Item(row)) if row.purge_at.is_none() => Ok(Some(row)),
        _ => Err(()),
    }
}

impl Scene {
    /// Decides on the rows as the call knows them.
    #[must_use]
    pub fn decide(&self, world: &World, caller: usize) -> Next {
        let Some(run) = &world.callers[caller].run else { return Next::Answer(End::NotApplied) };
        let kind = world.callers[caller].kind;
        let wall = self.now(world, caller).wall;
        let writes = match kind {
            Kind::Acquire | Kind::Renew | Kind::Release => self.lease_writes(world, caller, run, wall),
            Kind::Register(key, value) => Some(vec![bare(FIRST, Does::Register(key, value))]),
            Kind::Unregister(key) => {
                let purge_at = epoch_seconds(wall + RETENTION);
                Some(vec![bare(FIRST, Does::Unregister(key, purge_at))])
            }
            Kind::Place(..) | Kind::Take(_) | Kind::Back(_) | Kind::Burn(_) => {
                self.write_of_order(world, caller, run).map(|write| vec![write])
            }
            Kind::Required | Kind::Fenced => self.writes_under_lease(world, caller, run),
            kind if kind.is_transaction() => self.steps(kind, run).ok().and_then(|writes| self.anchored(run, writes)),
            _ => self.write(world, caller, run, wall).map(|write| vec![write]),
        };
        let Some(writes) = writes else { return Next::Answer(End::NotApplied) };
        let has_turned = kind == Kind::AddOrUpdate && matches!(writes[0].does, Does::Set(_));
        let is_fenced = writes.iter().any(|write| {
            run.known[write.row].item().is_some_and(|row| row.seen().refuses(write.fence)) && !self.lacks("fence")
        });
        if is_fenced {
            return Next::Answer(End::NotApplied);
        }
        let lines_up_at = match (kind, &*writes) {
            (Kind::Update, [write]) if !self.rules.versions_may_repeat => match write.on {
                Some(Base::Row { incarnation, .. }) if !incarnation.is_foreign() => {
                    let line = run.known[write.row].item().map_or(Line::default(), |row| row.line);
                    Some((write.row, incarnation, line))
                }
                _ => None,
            },
            _ => None,
        };
        let plan = Plan {
            steps: writes.iter().map(|write| self.step(kind, write)).collect(),
            lines_up_at,
            gives_way: kind == Kind::AddOrUpdate && !has_turned,
            rereads: matches!(kind, Kind::Take(_) | Kind::Back(_)),
            is_transaction: writes.len() > 1 || (kind.is_change() && self.rules.versions_may_repeat),
        };
        Next::Send(Sending { writes, plan, has_turned })
    }

    /// The step as it is described to the machine. Some rules are taken away by a description that is not true.
    fn step(&self, kind: Kind, write: &Write) -> Step {
        let role = match (&write.does, write.id, write.on) {
            (Does::Check, ..) if write.on.is_some() => Role::Checks(write.on.expect("it demands a state")),
            (Does::Require { token }, ..) => Role::Requires(*token),
            (Does::Add { .. }, None, _) if self.lacks("bare-proves-nothing") => {
                Role::Writes(SentWrite { id: bits(0), on: Base::NoRow(version(1)), fence: None, rules: self.rules })
            }
            (Does::Add { .. }, None, _) => Role::Adds,
            _ if matches!(kind, Kind::Burn(_)) => Role::Repeats,
            (Does::Add { .. }, Some(_), Some(on)) if self.lacks("unburned-is-unknown") => Role::Checks(on),
            (_, Some(id), Some(on)) => Role::Writes(self.sent(id, write.fence, on)),
            _ => Role::Repeats,
        };
        let is_named_by_client = matches!(kind, Kind::Delete | Kind::DeleteAtVersion);
        Step { row: write.row, role, rules: self.rules, is_named_by_client }
    }

    fn sent(&self, id: WriteId, fence: Option<u64>, on: Base) -> SentWrite {
        let mut rules = self.rules;
        if self.lacks("forgotten-is-unknown") {
            rules.remembered = 99; // The row is said to remember for ever.
        }
        rules.rows_may_vanish &= !self.lacks("no-tombstone-where-rows-vanish");
        rules.values_may_end &= !self.lacks("values-end");
        SentWrite { id, on, fence, rules }
    }

    /// A write with the id of the attempt. `seen` is the row whose old ids it removes.
    pub fn stamped(&self, run: &Run, row: usize, on: Base, seen: Option<&Row>, does: Does) -> Write {
        let id = run.change.attempts().id;
        let incarnation = if let Base::Row { incarnation, .. } = on { Some(incarnation) } else { None };
        let mut burns = run.change.attempts().ids_to_burn(row, incarnation);
        burns.retain(|burned| *burned != id);
        let forgets = seen
            .and_then(|row| Some(row.memory()?.prunable(row.at.version, self.remembered(), id, burns.len())))
            .unwrap_or_default();
        let demands = seen.filter(|_| self.rules.versions_may_repeat).map(|row| row.stock);
        Write { row, on: Some(on), id: Some(id), does, fence: None, forgets, burns, demands }
    }

    /// How many commits a row keeps an id.
    pub fn remembered(&self) -> u64 {
        self.rules.remembered - u64::from(self.lacks("prune-late"))
    }

    fn set(&self, run: &Run, place: usize, row: &Row, stock: i8) -> Write {
        self.stamped(run, place, at(row.at, 1), Some(row), Does::Set(stock))
    }

    /// Creates the item, on a tombstone if one is known. `None` if the key is taken.
    fn create(&self, run: &Run, row: usize) -> Option<Write> {
        match &run.known[row] {
            Known::There(Stored::Item(dead)) if dead.purge_at.is_some() => Some(self.set(run, row, dead, 1)),
            Known::Nothing | Known::Absent => Some(self.stamped(run, row, Base::NoRow(version(1)), None, Does::Set(1))),
            _ => None,
        }
    }

    /// The one write of a change of one item. `None` if the item refuses it.
    fn write(&self, world: &World, caller: usize, run: &Run, wall: SystemTime) -> Option<Write> {
        let kind = world.callers[caller].kind;
        let purge_at = epoch_seconds(wall + RETENTION);
        if kind == Kind::Create {
            return self.create(run, FIRST);
        }
        if kind == Kind::DeleteAtVersion {
            let looked = world.callers[caller].looked.filter(|_| !run.has_sent)?;
            return Some(self.stamped(run, FIRST, at(looked, 1), None, Does::Bury { purge_at }));
        }
        let row = live(run, FIRST).ok()??;
        let window = if self.lacks("window-within-memory") { self.window + 2 } else { self.window };
        let add = |by: i8, of: ItemVersion, (low, high): (i8, i8)| {
            // A first send starts from a version, without a look at the value.
            let takes = !run.has_sent || (low - by..=high - by).contains(&row.stock);
            let does = Does::Add { by, low: low - by, high: high - by };
            let window = if self.rules.versions_may_repeat { 1 } else { window };
            let seen = Some(row).filter(|_| of == row.at);
            takes.then(|| self.stamped(run, FIRST, at(of, window), seen, does))
        };
        match kind {
            Kind::Add(by) => add(by, row.at, (0, MOST)),
            Kind::AddInBand if row.stock <= 0 && run.has_sent => None,
            Kind::AddInBand => add(-1, row.at, if row.stock <= 1 { (0, 0) } else { (1, MOST) }),
            Kind::AddAhead(_) if run.has_sent => add(1, row.at, (0, MOST)),
            Kind::AddAhead(ahead) => {
                add(1, ItemVersion { version: version(row.at.version.get() + ahead), ..row.at }, (0, MOST))
            }
            Kind::AddOrUpdate
                if !run.has_turned
                    && let Some(write) = add(-1, row.at, (0, MOST)) =>
            {
                Some(write)
            }
            Kind::AddOrUpdate => Some(self.set(run, FIRST, row, if row.stock > 0 { row.stock - 1 } else { REFILL })),
            Kind::Update => (row.stock < MOST).then(|| self.set(run, FIRST, row, row.stock + 1)),
            Kind::Delete => {
                // Beside programs that use versions, no TTL removes a tombstone.
                let purge_at = if self.rules.rows_may_vanish { u64::MAX } else { purge_at };
                let does = if self.rules.versions_may_repeat { Does::Remove } else { Does::Bury { purge_at } };
                Some(self.stamped(run, FIRST, at(row.at, 1), Some(row), does))
            }
            _ => None,
        }
    }

    /// The steps of a transaction. `Err` if the rows refuse it.
    fn steps(&self, kind: Kind, run: &Run) -> Result<Vec<Write>, ()> {
        let add = |row: usize, by: i8| bare(row, Does::Add { by, low: -by.min(0), high: MOST - by.max(0) });
        let first = live(run, FIRST)?;
        match kind {
            Kind::Adds { .. } => {
                let take = first.map_or(2, |row| row.stock.min(2));
                live(run, SECOND)?;
                if take > 0 { Ok(vec![add(FIRST, -take), add(SECOND, 1)]) } else { Err(()) }
            }
            Kind::Order if first.is_some_and(|row| row.stock <= 0) => Err(()),
            Kind::Order => Ok(vec![self.create(run, SECOND).ok_or(())?, add(FIRST, -1)]),
            Kind::Cancel => {
                let order = live(run, SECOND)?.filter(|order| order.stock > 0).ok_or(())?;
                Ok(vec![self.set(run, SECOND, order, 0), add(FIRST, 1)])
            }
            Kind::Restock { .. } if first.is_some_and(|row| row.stock < 2) => Ok(vec![add(FIRST, 2)]),
            Kind::Restock { reads_second: true } => {
                live(run, SECOND)?;
                Ok(vec![add(SECOND, 1), add(FIRST, -2)])
            }
            Kind::Restock { reads_second: false } => Ok(vec![self.create(run, SECOND).ok_or(())?, add(FIRST, -2)]),
            _ => {
                let (first, second) = (first.ok_or(())?, live(run, SECOND)?.ok_or(())?);
                if first.stock >= MOST {
                    return Err(());
                }
                let check = Write { on: Some(at(second.at, 1)), ..bare(SECOND, Does::Check) };
                Ok(vec![self.set(run, FIRST, first, first.stock + 1), check])
            }
        }
    }

    /// Makes some bare adds anchors, which leave the id. `None` if no row would remember the transaction.
    fn anchored(&self, run: &Run, mut steps: Vec<Write>) -> Option<Vec<Write>> {
        let is_add = |write: &&Write| write.id.is_none() && matches!(write.does, Does::Add { .. });
        let adds: Vec<_> = steps.iter().filter(is_add).map(|add| (add.row, run.stored(add.row).is_some())).collect();
        let writes: Vec<_> = steps.iter().filter(|write| write.id.is_some()).map(|write| write.row).collect();
        let anchors = anchors_of(&writes, &adds, &run.change.attempts().rows())?;
        for step in steps.iter_mut().filter(|step| anchors.contains(&step.row) && !self.lacks("anchor")) {
            let row = run.stored(step.row)?.item()?;
            *step = self.stamped(run, step.row, at(row.at, self.window), Some(row), step.does.clone());
        }
        Some(steps)
    }

    fn lease_writes(&self, world: &World, caller: usize, run: &Run, wall: SystemTime) -> Option<Vec<Write>> {
        let process = world.callers[caller].process;
        let purge_at = epoch_seconds(wall + LEASE_RETENTION);
        let (now, expires_at) = (millis(wall), millis(wall + self.lease.length));
        let does = match world.callers[caller].kind {
            Kind::Acquire => {
                let skew = if self.lacks("skew") { Duration::ZERO } else { self.lease.skew };
                let floor = if self.lacks("tokens-from-time") { 0 } else { now };
                let id = number(run.change.attempts().id);
                Does::Acquire { process, id, expires_at, cutoff: now - millis_of(skew), floor, purge_at }
            }
            Kind::Renew => {
                let Held { token, renewals, .. } = world.history.held[process]?;
                // After a faster renewal, it is made on top of that one.
                let at = run.stored(FIRST).and_then(Stored::lease).map_or(renewals, |lease| lease.renewals);
                Does::Renew { token, at, expires_at, purge_at }
            }
            _ => Does::Release { token: Self::token_of(run, world, process)?, purge_at },
        };
        Some(vec![bare(FIRST, does)])
    }

    fn token_of(run: &Run, world: &World, process: usize) -> Option<u64> {
        match run.writes.iter().map(|write| &write.does).next() {
            Some(Does::Release { token, .. } | Does::Require { token }) => Some(*token),
            _ => world.history.held[process].map(|held| held.token),
        }
    }

    fn writes_under_lease(&self, world: &World, caller: usize, run: &Run) -> Option<Vec<Write>> {
        let (process, kind) = (world.callers[caller].process, world.callers[caller].kind);
        let row = live(run, SECOND).ok()??;
        if kind == Kind::Fenced {
            let token = run.writes.first().and_then(|write| write.fence);
            let fence = token.or(world.history.held[process].map(|held| held.token));
            let add = Does::Add { by: 1, low: 0, high: 99 };
            let write = self.stamped(run, SECOND, at(row.at, self.window), Some(row), add);
            return Some(vec![Write { fence, ..write }]);
        }
        if run.known[FIRST] == Known::LostLease {
            return None;
        }
        let require = Does::Require { token: Self::token_of(run, world, process)? };
        Some(vec![bare(FIRST, require), self.set(run, SECOND, row, row.stock + 1)])
    }

    /// The end of a call whose write repeats, by the row that refused it. `None` if it goes on.
    #[must_use]
    pub fn judge_repeated(
        &self,
        world: &mut World,
        caller: usize,
        shown: Option<&Stored>,
        pending: bool,
    ) -> Option<End> {
        let wall = self.now(world, caller).wall;
        let process = world.callers[caller].process;
        let does = world.callers[caller].run.as_ref()?.writes.first()?.does.clone();
        let applied = || End::Applied(Applied { id: None, at: None, does: vec![(FIRST, does.clone())] });
        Some(match (&does, shown) {
            (Does::Register(mine, value), Some(Stored::Instance(stored))) => {
                if pending && is_soon(stored.purge_at, wall) && !self.lacks("newest-margin") {
                    return Some(End::Unknown);
                }
                End::Instance(judge_registration(*mine, stored.order_key, stored.live, *value))
            }
            (Does::Acquire { id, expires_at, .. }, Some(Stored::Lease(lease))) => {
                let until = match judge_acquire(&read(lease), &id.to_be_bytes(), *expires_at, pending) {
                    AfterAcquire::Mine => self.counted(*expires_at, wall),
                    AfterAcquire::Replayed => lease.expires_at - millis_of(self.lease.skew),
                    AfterAcquire::Held => return Some(End::NotApplied),
                    AfterAcquire::Released => return Some(End::Unknown),
                };
                world.history.held[process] = Some(held(lease, until));
                applied()
            }
            (Does::Renew { token, at, expires_at, .. }, Some(Stored::Lease(lease)))
                if lease.token == *token && lease.holder.is_some() =>
            {
                if !matches!(judge_renewal(&read(lease), *at, *expires_at), Verdict::Landed(_)) {
                    return None;
                }
                world.history.held[process] = Some(held(lease, self.counted(*expires_at, wall)));
                applied()
            }
            (Does::Renew { .. }, _) => {
                world.history.held[process] = None;
                End::NotApplied
            }
            // The release may have been applied before another holder acquired the lease.
            (Does::Release { .. }, Some(_)) if pending => End::Unknown,
            (Does::Unregister(..), _) => End::Instance(Said::Superseded),
            _ => End::NotApplied,
        })
    }

    /// Until when the lease counts as held, if this end was stored.
    #[must_use]
    pub fn counted(&self, expires_at: u64, wall: SystemTime) -> u64 {
        if self.lacks("counts-from-send") { millis(wall + self.lease.length) } else { expires_at }
    }
}

/// A write without an id.
pub fn bare(row: usize, does: Does) -> Write {
    Write { row, on: None, id: None, does, fence: None, forgets: Vec::new(), burns: Vec::new(), demands: None }
}

pub fn at(ItemVersion { version, incarnation }: ItemVersion, window: u64) -> Base {
    // An adoption demands exactly the version that was seen.
    Base::Row { version, window: if incarnation.is_foreign() { 1 } else { window }, incarnation }
}

#[must_use]
pub fn held(lease: &LeaseRow, until: u64) -> Held {
    Held { token: lease.token, renewals: lease.renewals, until }
}

#[must_use]
pub fn millis(time: SystemTime) -> u64 {
    millis_of(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

fn millis_of(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The write id with this number.
#[must_use]
pub fn bits(number: u64) -> WriteId {
    WriteId::from_random(number)
}

/// The number of a write id.
#[must_use]
pub fn number(id: WriteId) -> u64 {
    u64::from_be_bytes(*id.as_bytes())
}

/// The row of a lease as the crate reads it.
fn read(lease: &LeaseRow) -> StoredLease {
    let LeaseRow { token, renewals, expires_at, acquire_id, .. } = *lease;
    let holder = lease.holder.map(|holder| holder.to_string());
    StoredLease { holder, token, renewals, expires_at, acquire_id: acquire_id.to_be_bytes().to_vec() }
}

/// Judges a refused register, as the crate does.
#[must_use]
pub fn judge_registration(mine: OrderKey, stored: OrderKey, live: Option<u8>, value: u8) -> Said {
    match live {
        Some(live) if stored == mine && live == value => Said::Same,
        Some(_) if stored == mine => Said::Differs,
        _ => Said::Superseded,
    }
}

impl Known {
    #[must_use]
    pub fn item(&self) -> Option<&Row> {
        if let Known::There(Stored::Item(row)) = self { Some(row) } else { None }
    }
}
