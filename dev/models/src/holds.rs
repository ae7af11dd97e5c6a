//! The front of orders with holds: what a call takes, places, gives back and settles. In production, these are
//! `Attempt::send` and `Holder`. Each edit of a product and each burn is a part of its call, with a machine of its own.

use crate::front::{Next, at, bare, bits, live};
use crate::state::{End, Kind, Known, Run, Scene, World};
use crate::table::{Does, Hold, Row, Stored, Write, version};
use fencepost_core::hold::{Deciding, Fate, Settlement, fate, settlement};
use fencepost_core::{Base, WriteId};
use std::collections::BTreeSet;
use std::time::Duration;

/// How far an order or a settlement has come.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Progress {
    pub decisions: u32,
    /// What the attempt of the last decision has taken, or may have taken.
    pub taken: Vec<Hold>,
    /// Whether it is not known what became of one of its takes.
    has_failed: bool,
    /// The parts under way, and what follows them.
    parts: usize,
    then: Then,
    /// Whether holds are in its way, and it may look at their orders next.
    pub is_settling: bool,
    /// The holds in its way that are not known to be placed.
    open: Vec<Hold>,
    /// Whether it has looked at their orders before.
    has_looked: bool,
    /// The attempts that are known to be placed.
    placed: BTreeSet<WriteId>,
}

/// What follows the parts of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
enum Then {
    #[default]
    Decide,
    /// Place the order, if all is taken.
    Place,
    Settle,
    End(bool),
}

/// Whether there was a moment during the call at which a product had too little.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Refusal {
    is_true: bool,
    /// How much was missing, if these holds of other orders are placed at last.
    maybe: Vec<(i8, Vec<Hold>)>,
}

impl Refusal {
    #[must_use]
    pub fn may_be_true(&self) -> bool {
        self.is_true || !self.maybe.is_empty()
    }
}

impl Kind {
    /// The products at which an order or a settlement looks, with what it takes.
    #[must_use]
    pub fn lines(self) -> Vec<(usize, i8)> {
        match self {
            Kind::Place(_, lines) => lines.to_vec(),
            Kind::Settle(product) => vec![(product, 0)],
            _ => Vec::new(),
        }
    }
}

fn known(stored: Option<&Stored>) -> Known {
    stored.map_or(Known::Absent, |stored| Known::There(stored.clone()))
}

fn item(world: &World, place: usize) -> Option<&Row> {
    world.rows[place].as_ref().and_then(Stored::item)
}

fn product(run: &Run, place: usize) -> Option<&Row> {
    live(run, place).ok().flatten()
}

/// What becomes of the attempt that took a hold.
fn fate_of(world: &World, hold: &Hold) -> Fate {
    fate(hold.attempt, hold.base, item(world, hold.order).map(deciding))
}

fn deciding(row: &Row) -> Deciding {
    Deciding { at: row.at, is_tombstone: row.purge_at.is_some(), placed_by: row.orders.placed_by }
}

impl Scene {
    /// Decides. Before that, gives back what a refused attempt has taken.
    pub fn orders(&self, world: &mut World, caller: usize) {
        let kind = world.callers[caller].kind;
        let Some(run) = &mut world.callers[caller].run else { return };
        if !run.progress.taken.is_empty() {
            let order = run.progress.taken[0].order;
            let goes_on = self.lacks("one-create") && matches!(live(run, order), Err(()));
            return if goes_on { self.places(world, caller) } else { self.gives_back(world, caller, Then::Decide) };
        }
        run.progress.decisions += 1;
        if run.is_late || run.progress.decisions > self.attempts {
            return Self::end(world, caller, End::NotApplied);
        }
        let Kind::Place(order, lines) = kind else {
            let holds = kind
                .lines()
                .iter()
                .filter_map(|(place, _)| product(run, *place))
                .any(|row| !row.orders.holds.is_empty());
            return if holds { self.watches(world, caller, 1) } else { Self::end(world, caller, End::NotApplied) };
        };
        if matches!(live(run, order), Ok(Some(_))) {
            return Self::end(world, caller, End::Replayed);
        }
        let stock = |place: usize| product(run, place).map_or(0, |row| row.stock);
        let most = |place: usize| {
            let held = product(run, place).map(|row| row.orders.holds.values().map(|hold| hold.quantity).sum::<i8>());
            stock(place) + held.unwrap_or_default()
        };
        let is_short = lines.iter().position(|(place, quantity)| stock(*place) < *quantity);
        let is_final = lines.iter().any(|(place, quantity)| most(*place) < *quantity);
        match is_short {
            Some(_) if is_final || self.lacks("provisional") => self.refuses(world, caller),
            Some(line) => self.watches(world, caller, line + 1),
            None => self.takes(world, caller, order, lines),
        }
    }

    /// Takes from all products at once, under a new id.
    fn takes(&self, world: &mut World, caller: usize, order: usize, lines: &[(usize, i8)]) {
        let Some(run) = &mut world.callers[caller].run else { return };
        let decisions = if self.lacks("new-attempt") { 1 } else { run.progress.decisions };
        let attempt = bits(1000 * (caller as u64 + 1) + 900 + u64::from(decisions));
        let base = run.stored(order).and_then(Stored::item).map(|row| row.at);
        let hold =
            |(product, quantity): &(usize, i8)| Hold { attempt, product: *product, quantity: *quantity, order, base };
        run.progress.taken = lines.iter().map(hold).collect();
        run.progress.has_failed = false;
        let takes = run.progress.taken.iter().map(|hold| Kind::Take(*hold)).collect();
        self.begin_parts(world, caller, takes, Then::Place);
    }

    /// Sends the create of the order.
    fn places(&self, world: &mut World, caller: usize) {
        match self.decide(world, caller) {
            Next::Send(sending) => self.sends(world, caller, sending),
            Next::Answer(end) => Self::end(world, caller, end),
        }
    }

    fn gives_back(&self, world: &mut World, caller: usize, then: Then) {
        let Some(run) = &world.callers[caller].run else { return };
        let backs: Vec<_> = run.progress.taken.iter().map(|hold| Kind::Back(*hold)).collect();
        if backs.is_empty() { self.go_on(world, caller, then) } else { self.begin_parts(world, caller, backs, then) }
    }

    /// A call ends, because its create failed. If it may still be applied, all is left to others.
    pub fn order_failed(&self, world: &mut World, caller: usize, is_unknown: bool) {
        if is_unknown && !self.lacks("owner-leaves") {
            return Self::end(world, caller, End::Unknown);
        }
        if let Some(run) = &mut world.callers[caller].run {
            run.is_late &= !self.lacks("owner-leaves");
        }
        self.gives_back(world, caller, Then::End(is_unknown));
    }

    /// Begins parts of a call, each in a place of its own.
    fn begin_parts(&self, world: &mut World, caller: usize, kinds: Vec<Kind>, then: Then) {
        let Some(run) = &mut world.callers[caller].run else { return };
        (run.progress.parts, run.progress.then) = (kinds.len(), then);
        let first = self.calls[..caller].iter().map(|(_, kind)| kind.lines().len()).sum::<usize>() + self.calls.len();
        for (part, kind) in (first..).zip(kinds) {
            let mut rows = vec![Known::Nothing; world.rows.len()];
            let Some(run) = &world.callers[caller].run else { return };
            match kind {
                Kind::Take(hold) | Kind::Clear(hold) => rows[hold.product].clone_from(&run.known[hold.product]),
                Kind::Back(hold) => rows[hold.product] = known(world.rows[hold.product].as_ref()),
                Kind::Burn(hold) => rows[hold.order] = known(world.rows[hold.order].as_ref()),
                _ => {}
            }
            let began = world.callers[caller].began;
            let one = &mut world.callers[part];
            (one.kind, one.began, one.uses) = (kind, began, one.uses + 1);
            let first = 1000 * (part as u64 + 1) + 20 * u64::from(one.uses);
            let run = self.run(world, part, first, rows);
            world.callers[part].run = Some(run);
            self.decided(world, part);
            self.follow(world, part);
        }
    }

    /// A part of a call has ended. What follows depends on all that began with it.
    pub fn part_ended(&self, world: &mut World, part: usize) {
        let one = &mut world.callers[part];
        let Some(caller) = one.part_of else { return };
        let Some(end) = one.end.take() else { return };
        let (kind, learned) = (std::mem::replace(&mut one.kind, Kind::Idle), std::mem::take(&mut one.learned));
        (one.met, one.applied_then) = Default::default();
        one.open.clear();
        let lines = world.callers[caller].kind.lines().len();
        let Some(run) = &mut world.callers[caller].run else { return };
        let progress = &mut run.progress;
        match (kind, &end) {
            (Kind::Take(_), End::Applied(_)) => {}
            (Kind::Take(_), End::Unknown) => progress.has_failed = true,
            _ => {
                if let Kind::Take(hold) = kind {
                    progress.taken.retain(|taken| *taken != hold);
                }
                learned.into_iter().for_each(|(row, stored)| run.known[row] = known(stored.as_ref()));
            }
        }
        progress.parts -= 1;
        if progress.parts > 0 {
            return;
        }
        let has_all = progress.taken.len() == lines;
        let has_failed = progress.has_failed && !self.lacks("unproved-is-no-take");
        let then = progress.then;
        let is_back = |hold: Hold| product(run, hold.product).is_none_or(|row| !has_hold(row, &hold));
        let is_settled = matches!(kind, Kind::Back(hold) if is_back(hold));
        match then {
            Then::Place if has_failed => self.gives_back(world, caller, Then::End(false)),
            Then::Place if !has_all => self.gives_back(world, caller, Then::Decide),
            Then::Settle if is_settled => self.go_on(world, caller, Then::Decide),
            then => self.go_on(world, caller, then),
        }
        self.follow(world, caller);
    }

    fn go_on(&self, world: &mut World, caller: usize, then: Then) {
        let Some(run) = &mut world.callers[caller].run else { return };
        match then {
            Then::Place => self.places(world, caller),
            Then::Settle => run.progress.is_settling = true,
            Then::End(is_unknown) => {
                Self::end(world, caller, if is_unknown { End::Unknown } else { End::NotApplied });
            }
            Then::Decide => {
                run.progress.taken.clear();
                self.orders(world, caller);
            }
        }
    }

    /// The holds of the first products are in the way of a decision. Whoever needs what they hold looks at their orders.
    fn watches(&self, world: &mut World, caller: usize, products: usize) {
        let lines = world.callers[caller].kind.lines();
        let own = if let Kind::Place(order, _) = world.callers[caller].kind { Some(order) } else { None };
        let Some(run) = &mut world.callers[caller].run else { return };
        let rows = lines.iter().take(products).filter_map(|(place, _)| product(run, *place));
        let holds = rows.flat_map(|row| row.orders.holds.values().copied());
        let is_open = |hold: &Hold| {
            let is_own = own == Some(hold.order) && self.lacks("own-holds-too");
            !run.progress.placed.contains(&hold.attempt) && !is_own
        };
        run.progress.open = holds.filter(is_open).collect();
        (run.progress.is_settling, run.progress.has_looked) = (true, false);
    }

    /// Looks at the orders of the holds in the way, and does the first thing that is to do. Time is for progress only, so any
    /// hold may have been watched for long enough.
    pub fn settles(&self, world: &mut World, caller: usize) {
        let own = if let Kind::Place(order, _) = world.callers[caller].kind { Some(order) } else { None };
        let Some(mut run) = world.callers[caller].run.take() else { return };
        let (mut has_changed, mut part, mut left) = (run.is_late, None, Vec::new());
        let Progress { open, placed, has_looked, is_settling, .. } = &mut run.progress;
        let looked_before = std::mem::replace(has_looked, true);
        *is_settling = false;
        for hold in std::mem::take(open) {
            let is_gone = looked_before && item(world, hold.product).is_none_or(|row| !has_hold(row, &hold));
            match settlement(self.fate(world, &hold), Duration::ZERO, Duration::ZERO) {
                Settlement::Remove => {
                    placed.insert(hold.attempt);
                    let order = known(world.rows[hold.order].as_ref());
                    if own == Some(hold.order) && run.known[hold.order] != order {
                        (run.known[hold.order], has_changed) = (order, true);
                    }
                    continue;
                }
                _ if is_gone => has_changed = true,
                Settlement::Burn if !self.lacks("burns-first") => part = part.or(Some(Kind::Burn(hold))),
                Settlement::GiveBack | Settlement::Burn => part = part.or(Some(Kind::Back(hold))),
                Settlement::Wait | Settlement::Leave => {}
            }
            left.push(hold);
        }
        // After a pause, it looks at the products again.
        for (place, _) in world.callers[caller].kind.lines() {
            let now = known(world.rows[place].as_ref());
            let stock = |known: &Known| known.item().map_or(0, |row| row.stock);
            let has_more = left.is_empty() && stock(&now) > stock(&run.known[place]);
            if looked_before && (has_changed || has_more) {
                (run.known[place], has_changed) = (now, true);
            }
        }
        let is_open = !left.is_empty();
        run.progress.open = left;
        let placed = kind_clears(&run, world.callers[caller].kind);
        world.callers[caller].run = Some(run);
        match (part, placed) {
            _ if has_changed => self.orders(world, caller),
            (Some(part), _) => self.begin_parts(world, caller, vec![part], Then::Settle),
            _ if is_open => {}
            (None, Some(hold)) => self.begin_parts(world, caller, vec![Kind::Clear(hold)], Then::Decide),
            (None, None) => self.refuses(world, caller),
        }
        self.follow(world, caller);
    }

    /// Tells that a product has too little, unless the order is there.
    fn refuses(&self, world: &mut World, caller: usize) {
        let Kind::Place(order, _) = world.callers[caller].kind else { return };
        let is_there = item(world, order).is_some_and(|row| row.purge_at.is_none());
        self.note_moment(world, caller);
        Self::end(world, caller, if is_there { End::Replayed } else { End::SoldOut });
    }

    /// What becomes of a hold, as far as a call can see.
    fn fate(&self, world: &World, hold: &Hold) -> Fate {
        let base = hold.base.filter(|_| !self.lacks("hold-names-base"));
        let mut seen = item(world, hold.order).map(deciding);
        if let (Some(seen), Some(base)) = (&mut seen, base)
            && self.lacks("names-attempt")
            && seen.at.incarnation == base.incarnation
        {
            seen.placed_by = Some(hold.attempt);
        }
        fate(hold.attempt, base, seen)
    }

    /// The one write of an order or of a part. `None` if there is nothing to write, or if the row refuses it.
    pub fn write_of_order(&self, world: &World, caller: usize, run: &Run) -> Option<Write> {
        let of = |place: usize, does: Does| {
            let row = product(run, place)?;
            Some(self.stamped(run, place, at(row.at, self.window), Some(row), does))
        };
        match world.callers[caller].kind {
            Kind::Place(order, _) => {
                let does = Does::Place(run.progress.taken.first()?.attempt);
                let tombstone = run.known[order].item();
                let on = tombstone.map_or(Base::NoRow(version(1)), |row| at(row.at, 1));
                Some(self.stamped(run, order, on, tombstone, does))
            }
            Kind::Take(hold) => {
                let row = product(run, hold.product).filter(|row| row.stock >= hold.quantity)?;
                let is_placed = |fate| fate == Fate::Committed || (fate == Fate::Undecided && self.lacks("proved"));
                let holds = row.orders.holds.values();
                let clear = holds.filter(|hold| is_placed(fate_of(world, hold))).map(|hold| hold.attempt).collect();
                of(hold.product, Does::Take(hold, clear))
            }
            Kind::Back(hold) | Kind::Clear(hold) if !has_hold(product(run, hold.product)?, &hold) => None,
            Kind::Back(hold) => of(hold.product, Does::GiveBack(hold)),
            Kind::Clear(hold) => of(hold.product, Does::Clear(hold)),
            Kind::Burn(hold) if !run.has_sent => match &run.known[hold.order] {
                Known::There(Stored::Item(row)) if row.purge_at.is_some() => {
                    Some(Write { on: Some(at(row.at, 1)), ..bare(hold.order, Does::Raise) })
                }
                Known::Absent => {
                    let (on, id) = (Some(Base::NoRow(version(1))), Some(run.change.attempts().id));
                    let does = Does::Bury { purge_at: self.order_kept_until(world) };
                    Some(Write { on, id, ..bare(hold.order, does) })
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// When TTL may remove the tombstone of an order: never.
    pub fn order_kept_until(&self, world: &World) -> u64 {
        if self.lacks("keeps-tombstones") { world.now.as_secs() } else { u64::MAX }
    }

    /// Notes for each order whether it could be told as sold out.
    pub fn note_moments(&self, world: &mut World) {
        for caller in 0..self.calls.len() {
            let maybe = std::mem::take(&mut world.callers[caller].refusal.maybe);
            for (missing, holds) in maybe {
                Self::note_missing(world, caller, missing, holds);
            }
            let one = &world.callers[caller];
            if one.run.is_some() {
                self.note_moment(world, caller);
            } else if one.end != Some(End::SoldOut) {
                world.callers[caller].refusal = Refusal::default();
            }
        }
    }

    /// Notes whether a product has too little for this order now. What its own attempts hold, or those of another call with the
    /// same key, is no reason.
    fn note_moment(&self, world: &mut World, caller: usize) {
        let Kind::Place(order, lines) = world.callers[caller].kind else { return };
        if item(world, order).is_some_and(|row| row.purge_at.is_none()) {
            return;
        }
        for &(place, quantity) in lines {
            let Some(row) = item(world, place) else { continue };
            let (same, others): (Vec<Hold>, Vec<Hold>) =
                row.orders.holds.values().partition(|hold| hold.order == order);
            let same = same.iter().map(|hold| hold.quantity).sum::<i8>();
            Self::note_missing(world, caller, quantity - row.stock - same, others);
        }
    }

    /// Notes that so much is missing, if all of these holds are placed at last.
    fn note_missing(world: &mut World, caller: usize, mut missing: i8, holds: Vec<Hold>) {
        let mut open = Vec::new();
        for hold in holds {
            match fate_of(world, &hold) {
                Fate::Committed => {}
                Fate::Dead => missing -= hold.quantity,
                _ => open.push(hold),
            }
        }
        let refusal = &mut world.callers[caller].refusal;
        if missing > 0 && open.is_empty() {
            (refusal.is_true, refusal.maybe) = (true, Vec::new());
        } else if missing > 0 && !refusal.is_true {
            refusal.maybe.push((missing, open));
            refusal
                .maybe
                .sort_by_key(|(missing, holds)| (*missing, holds.iter().map(|hold| hold.attempt).collect::<Vec<_>>()));
            refusal.maybe.dedup();
        }
    }

    /// Whether the sum of stock, holds and orders is exact for each product.
    #[must_use]
    pub fn has_exact_sums(&self, world: &World) -> bool {
        let places = self.calls.iter().filter_map(|(_, kind)| match kind {
            Kind::Place(order, lines) => Some((*order, *lines)),
            _ => None,
        });
        let orders: BTreeSet<_> = places.collect();
        let restocks = |caller: &crate::state::Caller| match caller.kind {
            Kind::Update => caller.applied.len(),
            _ => 0,
        };
        let restocked = world.callers.iter().map(restocks).sum::<usize>();
        let products: BTreeSet<_> =
            orders.iter().flat_map(|(_, lines)| lines.iter().map(|(place, _)| *place)).collect();
        products.into_iter().all(|place| {
            let (Some(first), Some(row)) = (self.rows[place].as_ref().and_then(Stored::item), item(world, place))
            else {
                return true;
            };
            let is_placed = |hold: &&Hold| fate_of(world, hold) != Fate::Committed;
            let held: i8 = row.orders.holds.values().filter(is_placed).map(|hold| hold.quantity).sum();
            let is_live = |order: usize| item(world, order).is_some_and(|row| row.purge_at.is_none() && row.stock > 0);
            let lines = orders.iter().filter(|(order, _)| is_live(*order)).flat_map(|(_, lines)| lines.iter());
            let ordered: i8 = lines.filter(|(product, _)| *product == place).map(|(_, quantity)| *quantity).sum();
            let others =
                self.budget.others.get(place).zip(world.left.others.get(place)).map_or(0, |(all, left)| all - left);
            let restocked = if place == 0 { restocked } else { 0 } + usize::from(others);
            let sum = usize::try_from(row.stock + held + ordered);
            row.purge_at.is_some() || sum == usize::try_from(first.stock).map(|stock| stock + restocked)
        })
    }
}

fn has_hold(row: &Row, hold: &Hold) -> bool {
    row.orders.holds.contains_key(&hold.attempt)
}

/// A hold that a settlement removes, because its order is placed.
fn kind_clears(run: &Run, kind: Kind) -> Option<Hold> {
    let Kind::Settle(place) = kind else { return None };
    product(run, place)?.orders.holds.values().next().copied()
}
