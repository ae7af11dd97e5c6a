//! The front of orders with holds: what a call takes, places, gives back and settles. In production, these are
//! `Attempt::send` and `Holder`. Each edit of a product and each burn is a part of its call, with a machine of its own.

use crate::front::{FIRST, at, bare, bits, live};
use crate::state::{Caller, End, Kind, Known, Run, Scene, Then, World};
use crate::table::{Does, Hold, Row, Stored, Write, version};
use fencepost_core::Base;
use fencepost_core::hold::{Deciding, Fate, Settlement, fate, settlement};
use std::collections::BTreeSet;
use std::time::Duration;

impl Kind {
    /// The products at which an order or a settlement looks, with what it takes.
    pub(crate) fn lines(self) -> Vec<(usize, i8)> {
        match self {
            Kind::Place(_, lines) => lines.to_vec(),
            Kind::Settle(product) => vec![(product, 0)],
            _ => Vec::new(),
        }
    }

    pub(crate) fn order(self) -> Option<usize> {
        if let Kind::Place(order, _) = self { Some(order) } else { None }
    }
}

impl Row {
    fn has(&self, hold: &Hold) -> bool {
        self.holds.contains_key(&hold.attempt)
    }

    fn is_live(&self) -> bool {
        self.purge_at.is_none()
    }
}

fn known(world: &World, place: usize) -> Known {
    world.rows[place].clone().map_or(Known::Absent, Known::There)
}

fn item(rows: &[Option<Stored>], place: usize) -> Option<&Row> {
    rows[place].as_ref().and_then(Stored::item)
}

fn product(run: &Run, place: usize) -> Option<&Row> {
    live(run, place).ok().flatten()
}

fn sum<'a>(holds: impl IntoIterator<Item = &'a Hold>) -> i8 {
    holds.into_iter().map(|hold| hold.quantity).sum()
}

fn deciding(world: &World, order: usize) -> Option<Deciding> {
    let row = item(&world.rows, order)?;
    Some(Deciding { at: row.at, is_tombstone: !row.is_live(), placed_by: row.placed_by })
}

/// What becomes of the attempt that took a hold.
fn fate_in(world: &World, hold: &Hold) -> Fate {
    fate(hold.attempt, hold.base, deciding(world, hold.order))
}

impl Scene {
    /// Decides. Before that, gives back what a refused attempt has taken.
    pub fn orders(&self, world: &mut World, caller: usize) {
        let kind = world.callers[caller].kind;
        let Some(run) = &mut world.callers[caller].run else { return };
        match run.progress.taken.first() {
            Some(hold) if self.lacks("one-create") && live(run, hold.order).is_err() => {
                return self.write_decided(world, caller);
            }
            Some(_) => return self.gives_back(world, caller, Then::Decide),
            None => {}
        }
        run.progress.decisions += 1;
        if run.is_late || run.progress.decisions > self.attempts {
            return Self::end(world, caller, End::NotApplied);
        }
        let lines = kind.lines();
        let stock = |place: usize| product(run, place).map_or(0, |row| row.stock);
        let held = |place: usize| product(run, place).map_or(0, |row| sum(row.holds.values()));
        let is_short = lines.iter().position(|(place, quantity)| stock(*place) < *quantity);
        let is_final = lines.iter().any(|(place, quantity)| stock(*place) + held(*place) < *quantity);
        match (kind.order(), is_short) {
            (None, _) if held(lines[0].0) == 0 => Self::end(world, caller, End::NotApplied),
            (None, _) => self.watches(world, caller, 1),
            (Some(order), _) if matches!(live(run, order), Ok(Some(_))) => Self::end(world, caller, End::Replayed),
            (_, Some(_)) if is_final || self.lacks("provisional") => Self::refuses(world, caller),
            (_, Some(line)) => self.watches(world, caller, line + 1),
            (Some(order), None) => self.takes(world, caller, order),
        }
    }

    /// Takes from all products at once, under the id of a new attempt.
    fn takes(&self, world: &mut World, caller: usize, order: usize) {
        let lines = world.callers[caller].kind.lines();
        let Some(run) = &mut world.callers[caller].run else { return };
        let decisions = if self.lacks("new-attempt") { 1 } else { run.progress.decisions };
        let attempt = bits(1000 * (caller as u64 + 1) + 900 + u64::from(decisions));
        let base = run.known[order].item().map(|row| row.at);
        let holds = lines.into_iter().map(|(product, quantity)| Hold { attempt, product, quantity, order, base });
        (run.progress.taken, run.progress.has_failed) = (holds.collect(), false);
        let takes = run.progress.taken.iter().map(|hold| Kind::Take(*hold)).collect();
        self.begin_parts(world, caller, takes, Then::Place);
    }

    fn gives_back(&self, world: &mut World, caller: usize, then: Then) {
        let Some(run) = &world.callers[caller].run else { return };
        let backs: Vec<_> = run.progress.taken.iter().map(|hold| Kind::Back(*hold)).collect();
        if backs.is_empty() { self.orders(world, caller) } else { self.begin_parts(world, caller, backs, then) }
    }

    /// The create of an order has failed. If it may still be applied, all that was taken is left to others.
    pub fn order_failed(&self, world: &mut World, caller: usize, is_unknown: bool) {
        let (Some(run), leaves) = (&mut world.callers[caller].run, !self.lacks("owner-leaves")) else { return };
        run.is_late &= leaves;
        let is_left = is_unknown && leaves;
        if is_left { Self::end(world, caller, End::Unknown) } else { self.gives_back(world, caller, Then::Fail) }
    }

    /// Begins parts of a call, each in its place among the callers.
    fn begin_parts(&self, world: &mut World, caller: usize, kinds: Vec<Kind>, then: Then) {
        let Some(run) = &mut world.callers[caller].run else { return };
        (run.progress.parts, run.progress.then) = (kinds.len(), then);
        let first = self.calls[..caller].iter().map(|(_, kind)| kind.lines().len()).sum::<usize>() + self.calls.len();
        for (part, kind) in (first..).zip(kinds) {
            let mut rows = vec![Known::Nothing; world.rows.len()];
            let Some(run) = &mut world.callers[caller].run else { return };
            run.progress.begun += 1;
            let first = 1000 * (caller as u64 + 1) + 100 + 20 * run.progress.begun;
            match kind {
                Kind::Take(hold) => rows[hold.product].clone_from(&run.known[hold.product]),
                // Whoever gives back looks at the product first.
                Kind::Back(hold) => rows[hold.product] = known(world, hold.product),
                Kind::Burn(hold) => rows[hold.order] = known(world, hold.order),
                _ => {}
            }
            (world.callers[part].kind, world.callers[part].began) = (kind, world.callers[caller].began);
            world.callers[part].run = Some(self.run(world, part, first, rows));
            self.write_decided(world, part);
            self.follow(world, part);
        }
    }

    /// A part of a call has ended. What follows depends on all that began with it.
    pub fn part_ended(&self, world: &mut World, part: usize) {
        let Caller { part_of: Some(caller), end, kind, met, .. } = &mut world.callers[part] else { return };
        let (caller, Some(end)) = (*caller, end.take()) else { return };
        let (kind, _) = (std::mem::replace(kind, Kind::Idle), std::mem::take(met));
        let lines = world.callers[caller].kind.lines().len();
        // The answer has shown the product as it is now.
        let now =
            if let Kind::Take(hold) | Kind::Back(hold) = kind { known(world, hold.product) } else { Known::Nothing };
        let Some(run) = &mut world.callers[caller].run else { return };
        let (progress, mut is_settled) = (&mut run.progress, false);
        match (kind, end) {
            (Kind::Take(_), End::Applied(_)) | (Kind::Back(_), End::Unknown) => {}
            (Kind::Take(_), End::Unknown) => progress.has_failed = true,
            (Kind::Take(hold) | Kind::Back(hold), _) => {
                progress.taken.retain(|taken| *taken != hold || kind == Kind::Back(hold));
                is_settled = !now.item().is_some_and(|row| row.has(&hold));
                run.known[hold.product] = now;
            }
            _ => {}
        }
        progress.parts -= 1;
        let has_all = progress.taken.len() == lines || self.lacks("takes-all");
        let has_failed = progress.has_failed && !self.lacks("unproved-is-no-take");
        match progress.then {
            _ if progress.parts > 0 => {}
            Then::Place if has_failed => self.gives_back(world, caller, Then::Fail),
            Then::Place if !has_all => self.gives_back(world, caller, Then::Decide),
            Then::Place => self.write_decided(world, caller),
            Then::Settle if !is_settled => {}
            Then::Fail => Self::end(world, caller, End::NotApplied),
            Then::Settle | Then::Decide => {
                progress.taken.clear();
                self.orders(world, caller);
            }
        }
        self.follow(world, caller);
    }

    /// The holds of these first products are in the way. Next, the call looks at their orders.
    fn watches(&self, world: &mut World, caller: usize, products: usize) {
        let kind = world.callers[caller].kind;
        let Some(run) = &mut world.callers[caller].run else { return };
        let rows = kind.lines().into_iter().take(products).filter_map(|(place, _)| product(run, place));
        let is_open = |hold: &&Hold| kind.order() != Some(hold.order) || !self.lacks("own-holds-too");
        let open = rows.flat_map(|row| row.holds.values().filter(is_open).copied()).collect();
        (run.progress.open, run.progress.has_looked, run.progress.then) = (open, false, Then::Settle);
    }

    /// Looks at the orders of the holds in the way, and does the first thing that is to do. Time is for progress only, so any
    /// hold may have been watched for long enough.
    pub fn settles(&self, world: &mut World, caller: usize) {
        let kind = world.callers[caller].kind;
        let Some(mut run) = world.callers[caller].run.take() else { return };
        let (mut has_changed, mut part) = (run.is_late, None);
        let looks_again = std::mem::replace(&mut run.progress.has_looked, true);
        for hold in std::mem::take(&mut run.progress.open) {
            let is_gone = looks_again && !item(&world.rows, hold.product).is_some_and(|row| row.has(&hold));
            match settlement(self.fate(world, &hold), Duration::ZERO, Duration::ZERO) {
                Settlement::Remove => {
                    let order = known(world, hold.order);
                    has_changed |= kind.order() == Some(hold.order) && run.known[hold.order] != order;
                    run.known[hold.order] = order;
                    continue;
                }
                _ if is_gone => {
                    has_changed |= !self.lacks("gone-came-back");
                    continue;
                }
                Settlement::Burn if !self.lacks("burns-first") => part = part.or(Some(Kind::Burn(hold))),
                Settlement::GiveBack | Settlement::Burn => part = part.or(Some(Kind::Back(hold))),
                Settlement::Wait | Settlement::Leave => {}
            }
            run.progress.open.push(hold);
        }
        let is_open = !run.progress.open.is_empty();
        for (place, _) in kind.lines().into_iter().filter(|_| looks_again && has_changed) {
            run.known[place] = known(world, place);
        }
        world.callers[caller].run = Some(run);
        match part {
            _ if has_changed => self.orders(world, caller),
            Some(part) => self.begin_parts(world, caller, vec![part], Then::Settle),
            None if !is_open => Self::refuses(world, caller),
            None => {}
        }
        self.follow(world, caller);
    }

    /// Tells that a product has too little, unless the order is there. What others hold for the same order is no reason.
    fn refuses(world: &mut World, caller: usize) {
        let kind = world.callers[caller].kind;
        let (Some(order), Some(run)) = (kind.order(), &world.callers[caller].run) else {
            return Self::end(world, caller, End::NotApplied);
        };
        let missing = |(place, quantity): (usize, i8)| {
            let Some(row) = product(run, place) else { return (quantity, Vec::new()) };
            let (same, others): (Vec<Hold>, Vec<_>) = row.holds.values().partition(|hold| hold.order == order);
            (quantity - row.stock - sum(&same), others)
        };
        world.callers[caller].missing = kind.lines().into_iter().map(missing).collect();
        let is_there = item(&world.rows, order).is_some_and(Row::is_live);
        Self::end(world, caller, if is_there { End::Replayed } else { End::SoldOut });
    }

    /// What becomes of a hold, as far as a call can see.
    fn fate(&self, world: &World, hold: &Hold) -> Fate {
        let base = hold.base.filter(|_| !self.lacks("hold-names-base"));
        let mut seen = deciding(world, hold.order);
        if let (Some(seen), Some(base), true) = (&mut seen, base, self.lacks("names-attempt"))
            && seen.at.incarnation == base.incarnation
        {
            seen.placed_by = Some(hold.attempt);
        }
        fate(hold.attempt, base, seen)
    }

    /// The one write of an order or of a part. `None` if there is nothing to write, or if the row refuses it.
    pub fn write_of_order(&self, world: &World, caller: usize, run: &Run) -> Option<Write> {
        let of = |hold: Hold, row: &Row, does: Does| {
            Some(self.stamped(run, hold.product, at(row.at, self.window), Some(row), does))
        };
        match world.callers[caller].kind {
            Kind::Place(order, _) => {
                let (seen, does) = (run.known[order].item(), Does::Place(run.progress.taken.first()?.attempt));
                let on = seen.map_or(Base::NoRow(version(1)), |row| at(row.at, 1));
                Some(self.stamped(run, order, on, seen, does))
            }
            Kind::Take(hold) => {
                let row = product(run, hold.product).filter(|row| row.stock >= hold.quantity)?;
                let is_placed = |fate| fate == Fate::Committed || (fate == Fate::Undecided && self.lacks("proved"));
                let placed = row.holds.values().filter(|hold| is_placed(self.fate(world, hold)));
                of(hold, row, Does::Take(hold, placed.map(|hold| hold.attempt).collect()))
            }
            Kind::Back(hold) => {
                let row = product(run, hold.product).filter(|row| row.has(&hold))?;
                of(hold, row, Does::GiveBack(hold))
            }
            // A burn on a tombstone raises its version, and leaves no id.
            Kind::Burn(hold) if !run.has_sent => match run.known[hold.order].item() {
                Some(row) if row.is_live() => None,
                Some(row) => Some(Write { on: Some(at(row.at, 1)), ..bare(hold.order, Does::Burn) }),
                None => {
                    // TTL never removes the tombstone of an order.
                    let purge_at = if self.lacks("keeps-tombstones") { world.now.as_secs() } else { u64::MAX };
                    let (on, id) = (Some(Base::NoRow(version(1))), Some(run.change.attempts().id));
                    Some(Write { on, id, ..bare(hold.order, Does::Bury { purge_at }) })
                }
            },
            _ => None,
        }
    }

    /// Whether stock, holds that are not placed and orders have the same sum as at the beginning, for each product.
    pub(crate) fn has_exact_sums(&self, world: &World) -> bool {
        let orders = self.calls.iter().filter_map(|(_, kind)| Some((kind.order()?, kind.lines())));
        let orders: BTreeSet<_> = orders.collect();
        let is_placed = |order: usize| item(&world.rows, order).is_some_and(|row| row.is_live() && row.stock > 0);
        let placed = orders.iter().filter(|(order, _)| is_placed(*order)).flat_map(|(_, lines)| lines);
        let updates = world.callers.iter().filter(|caller| caller.kind == Kind::Update && !caller.applied.is_empty());
        let restocked = updates.count() + usize::from(self.budget.others[FIRST] - world.left.others[FIRST]);
        let is_exact = |place: usize| {
            let first = item(&self.rows, place).filter(|row| row.is_live());
            let Some((first, row)) = first.zip(item(&world.rows, place)) else { return true };
            let held = sum(row.holds.values().filter(|hold| fate_in(world, hold) != Fate::Committed));
            let ordered: i8 = placed.clone().filter(|(of, _)| *of == place).map(|(_, quantity)| quantity).sum();
            let restocked = if place == FIRST { restocked } else { 0 };
            let is_same = usize::try_from(row.stock + held + ordered - first.stock) == Ok(restocked);
            if row.is_live() { is_same } else { row.holds.is_empty() }
        };
        orders.is_empty() || (0..world.rows.len()).all(is_exact)
    }
}

impl World {
    /// Whether a part of what was missing for this order belongs to others that are placed, or may still be.
    pub(crate) fn is_sold_out(&self, caller: &Caller) -> bool {
        let back = |holds: &[Hold]| sum(holds.iter().filter(|hold| fate_in(self, hold) == Fate::Dead));
        caller.missing.iter().any(|(missing, holds)| *missing > back(holds))
    }
}
