//! The service: a request meets the table, and an answer shows what it met.

use crate::promises::{AGAIN, DECIDED, FENCED, REQUIRED, TOKENS};
use crate::state::{Applied, Flight, Kind, Request, Rows, Run, Scene, Way, World};
use crate::table::{Does, OrderKey, Row, Stored, Write, order};
use fencepost_core::{Answer, Base, ItemVersion, Outcome, Reason, Seen, SeenRow, Trace, is_lost};

impl Scene {
    /// In random play, whether something rare happens now.
    pub fn happens(&self, world: &World, one_in: u64) -> bool {
        let now = u64::try_from(world.now.as_nanos()).unwrap_or_default();
        self.seed.is_some_and(|seed| scramble(seed ^ now ^ world.flights.len() as u64).is_multiple_of(one_in))
    }

    /// What the machine is shown of a row. Without some rules, less than there is.
    fn seen(&self, run: &Run, stored: Option<&Stored>) -> Option<SeenRow> {
        let row = stored?.item()?;
        let mut memory = row.memory.clone();
        if let Some(memory) = &mut memory {
            let attempts = run.change.attempts();
            let is_hidden = |id| self.lacks("judge") || (self.lacks("knows-earlier") && attempts.is_open(id));
            memory.retain(|id, _| !is_hidden(*id));
            if self.lacks("burned-is-not-applied") {
                for trace in memory.values_mut() {
                    *trace = Trace::Applied(trace.version());
                }
            }
        }
        let ends_at = row.purge_at.filter(|_| !self.lacks("margin"));
        Some(SeenRow { ends_at, ..Row { memory, ..row.clone() }.seen() })
    }

    /// A request arrives at the table. Returns the answer with the rows that it shows.
    pub fn arrive(&self, world: &mut World, flight: usize) -> (Answer, Rows) {
        let Flight { caller, request, way, .. } = world.flights[flight].clone();
        let is_copy = !matches!(way, Way::Awaited | Way::Unheard);
        match request {
            Request::Read(rows) => {
                let is_stale = self.lacks("ask-rows");
                let mut shown: Rows = rows.iter().map(|row| (*row, world.rows[*row].clone())).collect();
                // A batch may leave rows out.
                shown.truncate(if self.happens(world, 4) { 1 } else { usize::MAX });
                let mut answer = Answer::of(Outcome::Applied, true);
                if let Some(run) = &world.callers[caller].run {
                    let known = |row: usize| run.stored(row).filter(|_| is_stale && run.has_sent);
                    let seen = |(row, stored): &(usize, Option<Stored>)| {
                        (*row, self.seen(run, known(*row).or(stored.as_ref())))
                    };
                    answer.rows = shown.iter().map(seen).collect();
                }
                (answer, shown)
            }
            Request::Ticket(row) => {
                let mut answer = Answer::of(Outcome::Applied, true);
                if let Some(Stored::Item(row)) = &mut world.rows[row] {
                    row.line.given += 1;
                    answer.ticket = Some(row.line.given);
                }
                let shown = vec![(row, world.rows[row].clone())];
                if let Some(run) = &world.callers[caller].run {
                    answer.rows = shown.iter().map(|(row, stored)| (*row, self.seen(run, stored.as_ref()))).collect();
                }
                (answer, shown)
            }
            Request::Attempt { writes, token, serve } => self.meet(world, caller, &writes, token, serve, is_copy),
            Request::Burn(write) => self.meet(world, caller, &[write], None, None, is_copy),
        }
    }

    fn meet(
        &self,
        world: &mut World,
        caller: usize,
        writes: &[Write],
        token: Option<[u64; 2]>,
        serve: Option<u64>,
        is_copy: bool,
    ) -> (Answer, Rows) {
        if token.is_some_and(|token| world.tokens.contains(&token)) {
            return (Answer::of(Outcome::Applied, true), Vec::new());
        }
        Self::note_instance(world, writes);
        let next: Vec<_> =
            writes.iter().map(|write| write.meets(world.rows[write.row].as_ref(), self.without)).collect();
        if next.iter().any(Option::is_none) {
            return self.refusal(world, caller, writes, &next);
        }
        let is_burn = writes.iter().all(|write| matches!(write.does, Does::Burn))
            || matches!(writes, [Write { on: Some(Base::NoRow(_)), does: Does::Bury { .. }, .. }]);
        if !is_burn {
            Self::note(world, caller, writes, &next, is_copy);
        }
        let before: Rows = writes.iter().map(|write| (write.row, world.rows[write.row].clone())).collect();
        for (write, next) in writes.iter().zip(next) {
            world.rows[write.row] = next.flatten();
            if let (Some(serve), Some(Stored::Item(row))) = (serve, &mut world.rows[write.row]) {
                row.line.served = row.line.served.max(serve);
            }
        }
        world.tokens.extend(token.filter(|_| self.keeps_tokens()));
        let mut answer = Answer::of(Outcome::Applied, true);
        let [Write { row, does, .. }] = writes else { return (answer, Vec::new()) };
        // A delete of an instance returns the row that it replaced, every other write the new one.
        let shown = if matches!(does, Does::Unregister(..)) { before } else { vec![(*row, world.rows[*row].clone())] };
        if let Some(run) = &world.callers[caller].run {
            answer.rows = shown.iter().map(|(row, stored)| (*row, self.seen(run, stored.as_ref()))).collect();
        }
        (answer, shown)
    }

    fn refusal(
        &self,
        world: &World,
        caller: usize,
        writes: &[Write],
        next: &[Option<Option<Stored>>],
    ) -> (Answer, Rows) {
        let mut answer = Answer::of(Outcome::Refused, true);
        let (mut shown, mut is_first) = (Rows::new(), true);
        for (write, next) in writes.iter().zip(next) {
            // A service may name only one of the steps that did not hold.
            let is_named = next.is_none() && (is_first || world.shows_all);
            is_first &= next.is_some();
            if !is_named {
                let is_busy = next.is_some() && self.happens(world, 4);
                answer.reasons.push(if is_busy { Reason::NotNow } else { Reason::None });
                continue;
            }
            let stored = world.rows[write.row].clone();
            let seen = match (&write.does, &world.callers[caller].run) {
                (Does::Require { token }, _) => {
                    let lease = stored.as_ref().and_then(Stored::lease);
                    let is_lost = lease.is_some_and(|lease| is_lost(*token, lease.token, lease.holder.is_some()));
                    Seen::Lease { is_lost }
                }
                (_, Some(run)) => Seen::Row(self.seen(run, stored.as_ref())),
                (_, None) => Seen::Row(None),
            };
            answer.reasons.push(Reason::Refused(seen));
            shown.push((write.row, stored));
        }
        (answer, shown)
    }

    /// Notes what is applied, for the promises.
    fn note(world: &mut World, caller: usize, writes: &[Write], next: &[Option<Option<Stored>>], is_copy: bool) {
        let history = &mut world.history;
        for (write, next) in writes.iter().zip(next) {
            let row = world.rows[write.row].as_ref();
            match (&write.does, row, next) {
                (Does::Acquire { .. }, row, Some(Some(Stored::Lease(next)))) => {
                    let is_again = |lease: &Stored| {
                        lease.lease().is_some_and(|lease| lease.holder.is_none() && lease.acquire_id == next.acquire_id)
                    };
                    if row.is_some_and(is_again) {
                        history.broken.get_or_insert(AGAIN);
                    }
                    if next.token <= history.acquired {
                        history.broken.get_or_insert(TOKENS);
                    }
                    history.acquired = history.acquired.max(next.token);
                }
                (Does::Require { token }, ..) if *token < history.acquired => {
                    history.broken.get_or_insert(REQUIRED);
                }
                (Does::Set(_) | Does::Bury { .. }, Some(Stored::Item(row)), _) => {
                    let is_it = matches!(write.on, Some(Base::Row { version, incarnation, .. })
                        if version == row.at.version && incarnation == row.at.incarnation);
                    if !is_it {
                        history.broken.get_or_insert(DECIDED);
                    }
                }
                _ => {}
            }
            if let Some(fence) = write.fence {
                if fence < history.written {
                    history.broken.get_or_insert(FENCED);
                }
                history.written = history.written.max(fence);
            }
        }
        let id = writes.iter().find_map(|write| write.id);
        let at = match (writes, next) {
            ([Write { id: Some(_), row, .. }], [Some(after)]) => match (after, &world.rows[*row]) {
                (Some(Stored::Item(row)), _) => Some(row.at),
                (_, Some(Stored::Item(row))) => Some(ItemVersion { version: row.at.version.next(), ..row.at }),
                _ => None,
            },
            _ => None,
        };
        let one = &mut world.callers[caller];
        if one.part_of.is_some() {
            return;
        }
        one.is_excused |= is_copy && one.end.is_some() && id.is_some_and(|id| one.open.contains(&id));
        one.is_excused |= is_copy && one.end.is_some() && matches!(one.kind, Kind::Register(..));
        one.applied.push(Applied { id, at, does: does_of(writes) });
    }

    /// Notes the greatest instance that has arrived.
    fn note_instance(world: &mut World, writes: &[Write]) {
        let (key, is_deleted) = match writes {
            [Write { does: Does::Register(key, _), .. }] => (*key, false),
            [Write { does: Does::Unregister(key, _), .. }] => (*key, true),
            _ => return,
        };
        let rank = |(key, is_deleted): (OrderKey, bool)| (order(key), is_deleted);
        if world.history.greatest.is_none_or(|greatest| rank(greatest) < rank((key, is_deleted))) {
            world.history.greatest = Some((key, is_deleted));
        }
    }
}

/// The effects of writes, each with its row.
#[must_use]
pub fn does_of(writes: &[Write]) -> Vec<(usize, Does)> {
    writes.iter().map(|write| (write.row, write.does.clone())).collect()
}

/// The next of a row of numbers that look random (`SplitMix64`).
#[must_use]
pub fn scramble(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
