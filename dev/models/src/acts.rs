//! How a world begins, and what may happen next in it.

use crate::front::FIRST;
use crate::play::{Act, HOUR, WEEK};
use crate::state::{Caller, Flight, History, Kind, Request, Scene, Way, World};
use crate::table::Stored;
use fencepost_core::Outcome;
use std::time::Duration;

/// When each world begins: far enough from 1970 for every margin.
const BEGIN: Duration = Duration::from_hours(500_000);
const SECOND: Duration = Duration::from_secs(1);

impl Scene {
    /// The worlds from which the scene begins: with each way to cancel, and with each clock ahead of the other.
    #[must_use]
    pub fn start(&self) -> Vec<World> {
        let calls = self.calls.iter().map(|&(process, kind)| Caller { process, kind, ..Caller::default() });
        let parts = self.calls.iter().enumerate().flat_map(|(whole, &(process, kind))| {
            let part = move |_| Caller { process, part_of: Some(whole), ..Caller::default() };
            kind.lines().into_iter().map(part)
        });
        let world = |ahead: [Duration; 2], shows_all: bool| World {
            rows: self.rows.clone(),
            callers: calls.clone().chain(parts.clone()).collect(),
            flights: Vec::new(),
            now: BEGIN,
            left: self.budget,
            tokens: Vec::new(),
            shows_all,
            history: History { ahead, ..History::default() },
        };
        let (apart, none) = (self.lease.apart, Duration::ZERO);
        let clocks = [[none, none], [none, apart], [apart, none]];
        let clocks = if apart.is_zero() { &clocks[..1] } else { &clocks };
        let cancels = self.calls.iter().any(|(_, kind)| kind.is_transaction() || *kind == Kind::Required);
        let ways: &[bool] = if cancels { &[true, false] } else { &[true] };
        clocks.iter().flat_map(|ahead| ways.iter().map(|all| world(*ahead, *all))).collect()
    }

    /// What may happen next.
    pub fn acts(&self, world: &World, acts: &mut Vec<Act>) {
        self.events(world, acts);
        let left = &world.left;
        for (index, caller) in world.callers.iter().enumerate() {
            if caller.began.is_none() && caller.part_of.is_none() {
                Self::beginnings(world, index, caller, acts);
            }
            let Some(run) = &caller.run else { continue };
            let is_awaited = |flight: &&Flight| flight.caller == index && flight.way == Way::Awaited;
            let awaited = world.flights.iter().filter(is_awaited).count();
            acts.extend((left.hedges > 0 && awaited == 1 && !run.is_late).then_some(Act::Hedge(index)));
            let may_drop = (awaited > 0 && caller.part_of.is_none()) || !caller.kind.lines().is_empty();
            acts.extend((left.drops > 0 && may_drop).then_some(Act::Drop(index)));
            let late: &[bool] = if left.deadlines > 0 { &[false, true] } else { &[false] };
            acts.extend(late.iter().filter(|_| run.progress.settles()).map(|is_late| Act::Settle(index, *is_late)));
        }
        // Of two ways of one length, the checker tells the one with the last steps here: late requests are easier to
        // follow than second copies.
        for (index, flight) in world.flights.iter().enumerate().rev() {
            self.fates(world, index, flight, acts);
        }
    }

    fn beginnings(world: &World, index: usize, caller: &Caller, acts: &mut Vec<Act>) {
        let is_looking = caller.kind == Kind::DeleteAtVersion && caller.looked.is_none();
        let is_held = match caller.kind {
            Kind::Renew | Kind::Release | Kind::Required | Kind::Fenced => world.history.held[caller.process].is_some(),
            _ => true,
        };
        if is_looking && world.rows[FIRST].is_some() {
            acts.push(Act::Look(index));
        } else if !is_looking && is_held {
            acts.push(Act::Begin(index));
        }
    }

    /// What may become of a request.
    fn fates(&self, world: &World, index: usize, flight: &Flight, acts: &mut Vec<Act>) {
        let left = &world.left;
        let is_write = matches!(flight.request, Request::Attempt { .. } | Request::Burn(_));
        match &flight.way {
            Way::Unheard => acts.push(Act::Meet(index, false)),
            Way::Met if left.copies > 0 && is_write => acts.push(Act::Copy(index)),
            Way::Met => {}
            Way::Answered(..) => acts.extend([Act::Deliver(index, false), Act::Deliver(index, true)]),
            Way::Awaited => {
                let late: &[bool] = if left.deadlines > 0 { &[false, true] } else { &[false] };
                for is_late in late {
                    acts.push(Act::Meet(index, *is_late));
                    if left.losses > 0 {
                        acts.push(Act::MeetUnheard(index, *is_late));
                        acts.push(Act::GiveUp(index, Outcome::Unknown, *is_late));
                    }
                    if left.throttles > 0 {
                        let throttled = Some(Duration::ZERO);
                        acts.push(Act::Turn(index, Outcome::NotApplied { throttled }, *is_late));
                    }
                }
                let kind = world.callers[flight.caller].kind;
                let is_change = kind.is_change() || matches!(kind, Kind::Take(_) | Kind::Back(_));
                if left.rejections > 0 && is_change && matches!(flight.request, Request::Attempt { .. }) {
                    acts.push(Act::Reject(index));
                }
                if self.is_random() && left.losses > 0 {
                    acts.push(Act::GiveUp(index, Outcome::Broken, false));
                    acts.extend(is_write.then_some(Act::GiveUp(index, Outcome::Mismatch, false)));
                }
                if self.is_random() && left.throttles > 0 {
                    acts.push(Act::Turn(index, Outcome::Expired, false));
                    acts.push(Act::Turn(index, Outcome::NotApplied { throttled: None }, false));
                }
            }
        }
    }

    /// Events beside the calls.
    fn events(&self, world: &World, acts: &mut Vec<Act>) {
        let left = &world.left;
        for (row, stored) in world.rows.iter().enumerate() {
            let Some(stored) = stored else { continue };
            if let Stored::Item(item) = stored {
                let (is_live, is_foreign) =
                    (item.purge_at.is_none() && item.stock < 9, item.at.incarnation.is_foreign());
                let may_update = left.others.get(row).is_some_and(|left| *left > 0);
                acts.extend((may_update && is_live && !is_foreign).then_some(Act::Other(row)));
                acts.extend((left.overwrites > 0 && is_live).then_some(Act::Overwrite(row)));
            }
            let is_due = stored.purge_at().is_some_and(|purge_at| purge_at <= world.now.as_secs());
            acts.extend(is_due.then_some(Act::Ttl(row)));
        }
        acts.extend((left.resets > 0 && world.rows[FIRST] != self.rows[FIRST]).then_some(Act::Reset(FIRST)));
        let is_there = world.rows.iter().any(Option::is_some) || !self.rules.values_may_end;
        acts.extend((left.removals > 0 && is_there).then_some(Act::Remove));
        acts.extend((left.hours > 0).then_some(Act::Pass(HOUR)));
        acts.extend((left.seconds > 0).then_some(Act::Pass(SECOND)));
        acts.extend((left.weeks > 0).then_some(Act::Pass(WEEK)));
    }
}
