//! One act in a world: what callers, network, other programs and time do. The callers are production's machines: they are
//! asked and told as the driver of the crate does.

use crate::front::{FIRST, Next, Sending, bits, first_reads, held, number};
use crate::service::{does_of, scramble};
use crate::state::{Applied, Caller, End, Flight, Known, Progress, Request, Rows, Run, Said, Scene, Way, World};
use crate::table::{Does, Stored, Write, content, row, version};
use fencepost_core::{
    Action, Answer, Base, Change, ClientState, Fault, ItemVersion, Leave, Line, Outcome, Reason, RetryPolicy, SendId,
    SentWrite, Terms, Told, What, Why, WriteId, epoch_seconds,
};
use std::time::{Duration, SystemTime};

/// What may happen next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Act {
    /// A call looks at the version that it will name.
    Look(usize),
    Begin(usize),
    /// A request meets the table, and its caller hears the answer if it waits for one. With `true`, its time is over then.
    Meet(usize, bool),
    /// A request meets the table, and its answer is lost.
    MeetUnheard(usize, bool),
    /// A caller waits no longer for a request, which may still arrive.
    GiveUp(usize, Outcome, bool),
    /// A request is turned away. It is not applied.
    Turn(usize, Outcome, bool),
    /// A request is rejected because of the stored data.
    Reject(usize),
    /// A caller has waited so long that it sends an identical request.
    Hedge(usize),
    /// The network delivers a second copy.
    Copy(usize),
    /// The future of a call is dropped.
    Drop(usize),
    Other(usize),
    /// A call looks at the orders of the holds that are in its way. With `true`, its time is over instead.
    Settle(usize, bool),
    Overwrite(usize),
    Reset(usize),
    Remove,
    Ttl(usize),
    Pass(Duration),
    /// An answer on its way arrives, once or twice. Only random play has this.
    Deliver(usize, bool),
}

pub const HOUR: Duration = Duration::from_hours(1);
/// A week and ten minutes: TTL has removed the row of a lease that was written before.
pub const WEEK: Duration = Duration::from_mins(7 * 24 * 60 + 10);

impl Scene {
    /// Begins a call.
    fn begin(&self, world: &mut World, caller: usize) {
        world.callers[caller].began = Some(world.now);
        let number = caller as u64 + 1;
        let first = self.seed.map_or(number * 1000, |seed| scramble(seed.wrapping_mul(8) + number) >> 5);
        let mut run = self.run(world, caller, first, vec![Known::Nothing; world.rows.len()]);
        let kind = world.callers[caller].kind;
        let products = kind.lines().into_iter().map(|(product, _)| product);
        let reads = first_reads(kind).iter().copied().chain(kind.order()).chain(products).collect();
        run.change.read(reads, self.now(world, caller));
        world.callers[caller].run = Some(run);
        self.follow(world, caller);
    }

    /// The machine of a call that draws its numbers from this one on, for a client that was answered before.
    pub fn run(&self, world: &World, caller: usize, first: u64, known: Vec<Known>) -> Run {
        let now = self.now(world, caller);
        let mut policy = RetryPolicy::default();
        policy.max_attempts = self.attempts;
        if !self.is_random() {
            policy.hedge_after = Duration::ZERO;
        }
        let terms = Terms { policy, relies_on_token: self.rules.versions_may_repeat };
        let (mut client, mut warm) = (ClientState::default(), Change::new(terms, bits(0), now));
        warm.read(vec![FIRST], now);
        if let Some(Action::Send(Leave { id, .. }, _)) = warm.poll(now, &mut client, &mut || 0) {
            let answer = Answer { rows: vec![(FIRST, None)], ..Answer::of(Outcome::Applied, true) };
            warm.answered(id, answer, now, &mut client, &mut || 0);
        }
        Run {
            change: Change::new(terms, bits(first), now),
            client,
            known,
            writes: Vec::new(),
            answers: Vec::new(),
            shown: Vec::new(),
            refusal: Vec::new(),
            has_sent: false,
            has_turned: false,
            is_late: false,
            drawn: first,
            used: first,
            progress: Progress::default(),
        }
    }

    /// Calls the machine of a caller with a source of numbers: the next ones not used, or random ones.
    fn with<T>(
        &self,
        run: &mut Run,
        call: impl FnOnce(&mut Change, &mut ClientState, &mut dyn FnMut() -> u64) -> T,
    ) -> T {
        let Run { change, client, drawn, .. } = run;
        let own = number(change.attempts().id);
        let mut draw = || {
            if self.lacks("own-id") {
                return own;
            }
            *drawn = if self.is_random() { scramble(*drawn) >> 5 } else { *drawn + 1 };
            *drawn
        };
        call(change, client, &mut draw)
    }

    /// Does what the machine of a caller says until it has nothing to say.
    pub fn follow(&self, world: &mut World, caller: usize) {
        for round in 0.. {
            assert!(round < 50, "the machine is busy for ever");
            let now = self.now(world, caller);
            let Some(run) = &mut world.callers[caller].run else { break };
            let action = self.with(run, |change, client, draw| change.poll(now, client, draw));
            run.change.take_cost();
            match action {
                None => break,
                Some(Action::Tell(told)) => self.told(world, caller, told),
                Some(Action::Send(leave, what)) => self.send(world, caller, leave, &what),
            }
        }
        let Caller { run, .. } = &mut world.callers[caller];
        let Some(run) = run else {
            let own = (0..world.flights.len()).filter(|flight| world.flights[*flight].caller == caller);
            let own: Vec<_> = own.collect();
            for flight in own {
                world.is_given_up(flight);
            }
            return self.part_ended(world, caller);
        };
        run.used = run.used.max(number(run.change.attempts().id));
        if !self.is_random() {
            run.drawn = run.used;
        }
    }

    fn send(&self, world: &mut World, caller: usize, leave: Leave, what: &What) {
        let has_room = !self.happens(world, 20);
        let Some(run) = &mut world.callers[caller].run else { return };
        let request = match what {
            What::Read(rows) => Some(Request::Read(rows.clone())),
            What::Ticket { row, .. } => Some(Request::Ticket(*row)),
            What::Attempt { serve, token } => {
                run.used = token.iter().flatten().copied().fold(run.used, u64::max);
                let mut writes = run.writes.clone();
                let is_first = matches!(leave.why, Why::First | Why::Conflict);
                if self.lacks("same-id") && !is_first {
                    run.used += 1;
                    writes
                        .iter_mut()
                        .filter(|write| write.id.is_some())
                        .for_each(|write| write.id = Some(bits(run.used)));
                }
                Some(Request::Attempt { writes, token: *token, serve: *serve })
            }
            What::Burn { row, sent, others, tombstone } => {
                run.used = tombstone.map_or(run.used, |(id, _)| run.used.max(number(id)));
                self.burn(run, *row, sent, others, *tombstone).filter(|_| has_room).map(Request::Burn)
            }
        };
        let met = &mut world.callers[caller].met;
        met.hedge |= leave.why == Why::Hedge;
        met.burn |= matches!(request, Some(Request::Burn(_)));
        met.ticket |= matches!(request, Some(Request::Ticket(_)));
        let now = self.now(world, caller);
        let Some(run) = &mut world.callers[caller].run else { return };
        let Some(request) = request else {
            return self.with(run, |change, _, draw| change.cannot_be_made(leave.id, now, draw));
        };
        if self.is_random() {
            run.change.handed_over(leave.id, now);
        }
        let is_at_once = !self.is_random() && matches!(request, Request::Read(_) | Request::Ticket(_));
        let is_told_burned = matches!(&request, Request::Burn(burn) if self.is_told_burned(run, burn));
        world.flights.push(Flight { caller, send: leave.id, request, way: Way::Awaited });
        if is_told_burned {
            let flight = world.flights.pop().expect("it was pushed");
            self.answer(world, &flight, Answer::of(Outcome::Applied, true), Vec::new());
        } else if is_at_once {
            let flight = world.flights.len() - 1;
            let (answer, shown) = self.arrive(world, flight);
            let flight = world.flights.pop().expect("it was pushed");
            self.answer(world, &flight, answer, shown);
        }
    }

    /// Whether a burn is not sent, and told as applied all the same: a rule is missing.
    fn is_told_burned(&self, run: &Run, burn: &Write) -> bool {
        let is_open = burn.id.is_some_and(|id| run.change.attempts().id != id);
        self.lacks("burn") || (self.lacks("burns-beside") && is_open)
    }

    /// The burn of a write, from the row that refused it or is known. `None` if there is none.
    fn burn(
        &self,
        run: &Run,
        row: usize,
        sent: &SentWrite,
        others: &[WriteId],
        tombstone: Option<(WriteId, SystemTime)>,
    ) -> Option<Write> {
        let write = |on, id, does, demands| {
            let burns = others.iter().copied().filter(|other| *other != id).collect();
            Some(Write { row, on: Some(on), id: Some(id), does, fence: None, forgets: Vec::new(), burns, demands })
        };
        let Base::Row { version, window, incarnation } = sent.on else {
            let (id, from) = tombstone?;
            let is_order = run.writes.iter().any(|write| matches!(write.does, Does::Place(_)));
            let purge_at = if is_order { u64::MAX } else { epoch_seconds(from + Duration::from_hours(1)) };
            return write(sent.on, id, Does::Bury { purge_at }, None);
        };
        let refused_by = run.refusal.iter().find(|(of, _)| *of == row).and_then(|(_, stored)| stored.as_ref());
        let known = refused_by.or(run.stored(row)).and_then(Stored::item);
        if incarnation.is_foreign()
            || known.is_some_and(|row| row.at.incarnation != incarnation || row.at.version < version)
        {
            return None;
        }
        let version = known.map_or(version, |row| row.at.version);
        let window = if window == 1 || self.rules.versions_may_repeat { 1 } else { self.window };
        let demands = known.filter(|_| self.rules.versions_may_repeat).map(|row| row.stock);
        write(Base::Row { version, window, incarnation }, sent.id, Does::Burn, demands)
    }

    /// The caller of a send hears its answer.
    fn answer(&self, world: &mut World, flight: &Flight, mut answer: Answer, shown: Rows) {
        let Flight { caller, send, request, .. } = flight;
        let now = self.now(world, *caller);
        let Some(run) = world.callers[*caller].run.as_mut().filter(|run| run.change.awaits(*send)) else { return };
        let is_lost = matches!(answer.outcome, Outcome::Unknown | Outcome::Broken | Outcome::Mismatch);
        if is_lost && self.lacks("lost-is-pending") {
            answer.outcome = Outcome::NotApplied { throttled: None };
        }
        if matches!(answer.outcome, Outcome::Applied | Outcome::Refused) {
            match request {
                Request::Read(_) => {
                    run.shown.retain(|(row, _)| !shown.iter().any(|(of, _)| of == row));
                    run.shown.extend(shown);
                }
                Request::Attempt { .. } if answer.outcome == Outcome::Refused => {
                    (run.refusal, run.shown) = (shown, Rows::new());
                }
                Request::Attempt { .. } | Request::Burn(_) | Request::Ticket(_) => run.shown = shown,
            }
        }
        let is_rejected = answer.outcome == Outcome::Rejected;
        let is_refused = answer.outcome == Outcome::Refused && matches!(request, Request::Attempt { .. });
        self.with(run, |change, client, draw| change.answered(*send, answer, now, client, draw));
        world.callers[*caller].met.loss |= is_lost || is_rejected;
        if is_refused && self.lacks("judge-first") {
            Self::learn_refusal(world, *caller, None);
            if let Next::Answer(end) = self.decide(world, *caller) {
                Self::end(world, *caller, end);
            }
        }
        let awaits = |send: SendId| world.callers[*caller].run.as_ref().is_some_and(|run| run.change.awaits(send));
        let mut is_missing = false;
        for other in world.flights.iter_mut().filter(|other| other.caller == *caller) {
            if matches!(other.way, Way::Awaited | Way::Answered(..)) && !awaits(other.send) {
                is_missing |= other.send != *send && matches!(request, Request::Attempt { .. });
                let way = if other.way == Way::Awaited { Way::Unheard } else { Way::Met };
                (other.way, other.send) = (way, SendId(0));
            }
        }
        world.callers[*caller].met.loss |= is_missing;
    }

    fn told(&self, world: &mut World, caller: usize, told: Told) {
        let now = self.now(world, caller);
        let Caller { run, met, .. } = &mut world.callers[caller];
        let Some(run) = run else { return };
        met.open |= run.change.attempts().is_doubtful();
        match told {
            Told::Read | Told::Waited => {
                run.learn();
                self.decided(world, caller);
            }
            Told::NotApplied { unseen, burned } => {
                Self::learn_refusal(world, caller, burned);
                let unread = unseen.into_iter().filter(|_| !self.lacks("reads-unseen")).collect();
                self.read_or_decide(world, caller, unread);
            }
            Told::Look(unread) => {
                run.learn();
                self.read_or_decide(world, caller, unread);
            }
            Told::GaveWay => {
                let rows = run.writes.iter().map(|write| write.row).collect();
                run.has_turned = true;
                run.change.read(rows, now);
            }
            Told::Applied { id, at } => self.applied(world, caller, id, at),
            Told::Earlier { id, at } => {
                let is_single = run.writes.len() == 1;
                world.callers[caller].met.earlier = true;
                self.applied(world, caller, id, is_single.then_some(at));
            }
            Told::Refused { pending } => {
                let shown = run.refusal.first().and_then(|(_, stored)| stored.clone());
                run.known[FIRST] = shown.clone().map_or(Known::Absent, Known::There);
                match self.judge_repeated(world, caller, shown.as_ref(), pending.is_some()) {
                    Some(end) => Self::end(world, caller, end),
                    None => self.decided(world, caller),
                }
            }
            Told::Failed(fault) => self.failed(world, caller, fault),
            Told::GivenUp { is_doubtful } => {
                let is_doubtful = is_doubtful || world.callers[caller].part_of.is_some();
                Self::end(world, caller, if is_doubtful { End::Unknown } else { End::NotApplied });
            }
        }
    }

    /// A failure while an attempt is open is unknown, unless it is burned.
    fn failed(&self, world: &mut World, caller: usize, fault: Fault) {
        let now = self.now(world, caller);
        let Caller { run: Some(run), part_of, .. } = &mut world.callers[caller] else { return };
        let is_doubtful = run.change.attempts().is_doubtful() && !self.lacks("open-is-unknown");
        let is_part = part_of.is_some();
        let has_parts = !run.progress.taken.is_empty();
        match fault {
            fault if has_parts => self.order_failed(world, caller, matches!(fault, Fault::Unknown(_))),
            _ if is_part && !is_doubtful => Self::end(world, caller, End::Unknown),
            Fault::Unknown(_) => Self::end(world, caller, End::Unknown),
            _ if is_doubtful => self.with(run, |change, _, draw| change.give_up(now, draw)),
            Fault::VersionWentDown => {
                // The version was made up. A second copy may be applied when the row reaches it.
                let id = run.change.attempts().id;
                Self::end(world, caller, End::NotApplied);
                world.callers[caller].open.push(id);
            }
            _ => Self::end(world, caller, End::NotApplied),
        }
    }

    /// Reads these rows before the next decision, if there are any.
    fn read_or_decide(&self, world: &mut World, caller: usize, unread: Vec<usize>) {
        let now = self.now(world, caller);
        match &mut world.callers[caller].run {
            Some(run) if !unread.is_empty() => run.change.read(unread, now),
            _ => self.decided(world, caller),
        }
    }

    fn decided(&self, world: &mut World, caller: usize) {
        let has_parts = !world.callers[caller].kind.lines().is_empty();
        if has_parts { self.orders(world, caller) } else { self.write_decided(world, caller) }
    }

    pub fn write_decided(&self, world: &mut World, caller: usize) {
        let next = self.decide(world, caller);
        let now = self.now(world, caller);
        let Sending { writes, plan, has_turned } = match next {
            Next::Answer(end) => return Self::end(world, caller, end),
            Next::Send(sending) => sending,
        };
        if let [Write { does: Does::Release { .. }, .. }] = &*writes {
            world.history.held[world.callers[caller].process] = None;
        }
        let Some(run) = &mut world.callers[caller].run else { return };
        let id = run.change.attempts().id;
        let attempts = run.change.attempts();
        run.answers.retain(|(of, _)| *of != id && attempts.is_open(*of));
        run.answers.push((id, does_of(&writes)));
        (run.writes, run.has_sent, run.has_turned) = (writes, true, run.has_turned || has_turned);
        (run.shown, run.refusal) = (Rows::new(), Rows::new());
        self.with(run, |change, _, draw| change.attempt(plan, now, draw));
    }

    /// Gives the call the rows that refused its attempt, as the driver does.
    fn learn_refusal(world: &mut World, caller: usize, burned: Option<usize>) {
        let has_no_contest = world.callers[caller].part_of.is_some() || world.callers[caller].kind.order().is_some();
        let Some(run) = &mut world.callers[caller].run else { return };
        let mut is_race_lost = false;
        for (row, stored) in run.refusal.clone() {
            let Some(write) = run.writes.iter().find(|write| write.row == row) else { continue };
            if let Does::Require { .. } = write.does {
                run.known[row] = Known::LostLease;
                continue;
            }
            if let (Some(Base::Row { version, window, .. }), Some(Stored::Item(seen))) = (write.on, &stored) {
                let moved = seen.at.version.get().saturating_sub(version.get());
                is_race_lost |= window == 1 || moved >= window;
            }
            run.known[row] = stored.map_or(Known::Absent, Known::There);
        }
        if let Some((row, stored)) = run.shown.pop().filter(|(row, _)| burned == Some(*row)) {
            run.known[row] = stored.map_or(Known::Absent, Known::There);
        }
        // An edit pauses by itself, and takes no part in the contest of the others.
        let is_edit = matches!(&*run.writes, [Write { does: Does::Add { .. }, .. }]) || has_no_contest;
        if is_race_lost && !is_edit {
            run.change.lost_race();
        }
    }

    fn applied(&self, world: &mut World, caller: usize, id: WriteId, at: Option<ItemVersion>) {
        let wall = self.now(world, caller).wall;
        let Caller { run, process, .. } = &world.callers[caller];
        let Some(run) = run else { return };
        let shown = run.shown.first().and_then(|(_, stored)| stored.clone());
        let does = run.answers.iter().find(|(of, _)| *of == id).map(|(_, does)| does.clone());
        let process = *process;
        let end = match (run.writes.first().map(|write| &write.does), &shown) {
            (Some(Does::Register(..)), _) => End::Instance(Said::New),
            (Some(Does::Unregister(..)), Some(Stored::Instance(replaced))) if replaced.live.is_some() => {
                End::Instance(Said::Deleted)
            }
            (Some(Does::Unregister(..)), _) => End::Instance(Said::AlreadyGone),
            (Some(Does::Acquire { expires_at, .. } | Does::Renew { expires_at, .. }), Some(Stored::Lease(lease))) => {
                world.history.held[process] = Some(held(lease, self.counted(*expires_at, wall)));
                End::Applied(Applied { id: None, at: None, does: does.unwrap_or_default() })
            }
            _ => match does {
                Some(does) => End::Applied(Applied { id: Some(id), at, does }),
                // As in the crate: an attempt without an answer.
                None => End::Unknown,
            },
        };
        Self::end(world, caller, end);
    }

    pub fn end(world: &mut World, caller: usize, end: End) {
        let one = &mut world.callers[caller];
        let Some(Run { change, answers, .. }) = one.run.take() else { return };
        let open = answers.iter().map(|(id, _)| *id).filter(|id| change.attempts().is_open(*id));
        one.open = open.collect();
        (one.end, one.applied_then) = (Some(end), one.applied.len());
    }

    /// The caller of a request hears this answer, perhaps when its time is over.
    fn hear(&self, world: &mut World, flight: usize, answer: Answer, shown: Rows, is_late: bool) {
        let heard = world.flights[flight].clone();
        if is_late {
            world.left.deadlines -= 1;
            let whole = world.callers[heard.caller].part_of.unwrap_or(heard.caller);
            if let Some(run) = &mut world.callers[whole].run {
                run.is_late = true;
            }
        }
        self.answer(world, &heard, answer, shown);
        self.follow(world, heard.caller);
    }

    /// Lets this happen.
    pub fn act(&self, world: &mut World, act: &Act) {
        match act {
            Act::Meet(..) | Act::MeetUnheard(..) | Act::GiveUp(..) | Act::Turn(..) | Act::Reject(_) => {
                self.send_meets(world, act);
            }
            _ => self.other_act(world, act),
        }
        self.tidy(world);
    }

    /// What becomes of a send that is awaited or late.
    fn send_meets(&self, world: &mut World, act: &Act) {
        match *act {
            Act::Meet(flight, is_late) => {
                let was_awaited = world.flights[flight].way == Way::Awaited;
                let (answer, shown) = self.arrive(world, flight);
                if was_awaited && self.is_random() {
                    world.flights[flight].way = Way::Answered(Box::new(answer), shown);
                } else if was_awaited {
                    self.hear(world, flight, answer, shown, is_late);
                    world.met(flight);
                } else {
                    world.met(flight);
                }
            }
            Act::MeetUnheard(flight, is_late) => {
                world.left.losses -= 1;
                let _ = self.arrive(world, flight);
                self.hear(world, flight, Answer::of(Outcome::Unknown, false), Rows::new(), is_late);
                world.met(flight);
            }
            Act::GiveUp(flight, outcome, is_late) => {
                world.left.losses -= 1;
                self.hear(world, flight, Answer::of(outcome, false), Rows::new(), is_late);
                world.is_given_up(flight);
            }
            Act::Turn(flight, outcome, is_late) => {
                world.left.throttles -= 1;
                self.hear(world, flight, Answer::of(outcome, true), Rows::new(), is_late);
                world.flights.remove(flight);
            }
            Act::Reject(flight) => {
                world.left.rejections -= 1;
                let reasons = match &world.flights[flight].request {
                    Request::Attempt { writes, .. } => vec![Reason::Rejected; writes.len()],
                    _ => Vec::new(),
                };
                let answer = Answer { reasons, depends_on_data: true, ..Answer::of(Outcome::Rejected, true) };
                self.hear(world, flight, answer, Rows::new(), false);
                world.met(flight);
            }
            _ => {}
        }
    }

    fn other_act(&self, world: &mut World, act: &Act) {
        match *act {
            Act::Look(caller) => {
                world.callers[caller].looked = world.rows[FIRST].as_ref().and_then(Stored::item).map(|row| row.at);
            }
            Act::Begin(caller) => self.begin(world, caller),
            Act::Hedge(caller) => {
                world.left.hedges -= 1;
                let now = self.now(world, caller);
                let sends = world.flights.iter().filter(|flight| flight.caller == caller && flight.way == Way::Awaited);
                let sends: Vec<_> = sends.map(|flight| flight.send).collect();
                if let Some(run) = &mut world.callers[caller].run {
                    for send in sends {
                        run.change.handed_over(send, now);
                    }
                }
                self.follow(world, caller);
            }
            Act::Copy(flight) => {
                world.left.copies -= u8::from(!self.is_random());
                let _ = self.arrive(world, flight);
            }
            Act::Drop(caller) => {
                world.left.drops -= 1;
                world.callers[caller].met.loss = true;
                let is_own = |one: &usize| *one == caller || world.callers[*one].part_of == Some(caller);
                for one in (0..world.callers.len()).filter(is_own).collect::<Vec<_>>() {
                    Self::end(world, one, End::Unknown);
                    self.follow(world, one);
                }
            }
            Act::Settle(caller, is_late) => {
                world.left.deadlines -= u8::from(is_late);
                if let Some(run) = &mut world.callers[caller].run {
                    run.is_late |= is_late;
                }
                self.settles(world, caller);
            }
            Act::Deliver(flight, twice) => {
                let Way::Answered(answer, shown) = std::mem::replace(&mut world.flights[flight].way, Way::Met) else {
                    return;
                };
                let heard = world.flights[flight].clone();
                if twice {
                    self.answer(world, &heard, (*answer).clone(), shown.clone());
                }
                self.answer(world, &heard, *answer, shown);
                self.follow(world, heard.caller);
            }
            Act::Pass(time) => self.pass(world, time),
            _ => self.happen(world, act),
        }
    }

    fn pass(&self, world: &mut World, time: Duration) {
        world.now += time;
        let left = &mut world.left;
        match time {
            HOUR => left.hours -= 1,
            WEEK => left.weeks -= 1,
            _ => left.seconds -= u8::from(!self.is_random()),
        }
        for caller in 0..world.callers.len() {
            let is_over = self.now(world, caller).left.is_zero() && world.callers[caller].run.is_some();
            while let Some(flight) =
                world.flights.iter().position(|flight| is_over && flight.caller == caller && flight.way == Way::Awaited)
            {
                self.hear(world, flight, Answer::of(Outcome::Unknown, false), Rows::new(), false);
                world.is_given_up(flight);
            }
            self.follow(world, caller);
        }
    }

    /// Events beside the calls.
    fn happen(&self, world: &mut World, act: &Act) {
        match *act {
            Act::Other(place) => {
                world.left.others[place] -= 1;
                let id = bits(100 * (1 + place as u64) + u64::from(world.left.others[place]));
                let Some(Stored::Item(row)) = &world.rows[place] else { return };
                let on = Base::Row { version: row.at.version, window: 1, incarnation: row.at.incarnation };
                // It is of the process of all callers, so it removes the ids of their answered changes.
                let mut memory = row.memory().unwrap_or_default();
                for caller in &world.callers {
                    if let Some(End::Applied(Applied { at: Some(at), .. })) = &caller.end
                        && at.incarnation == row.at.incarnation
                    {
                        memory.answered(at.version, self.window - u64::from(self.lacks("answered-early")));
                    }
                }
                let forgets = memory.prunable(row.at.version, self.remembered(), id, 0);
                let does = Does::Set(row.stock + 1);
                let write = Write {
                    row: place,
                    on: Some(on),
                    id: Some(id),
                    does,
                    fence: None,
                    forgets,
                    burns: Vec::new(),
                    demands: None,
                };
                if let Some(next) = write.meets(world.rows[place].as_ref(), self.without) {
                    world.rows[place] = next;
                }
            }
            Act::Overwrite(place) => {
                world.left.overwrites -= 1;
                let Some(Stored::Item(row)) = &mut world.rows[place] else { return };
                row.at.version = version(row.at.version.get() + 1);
                row.stock += 1;
                row.at.incarnation = content(row.at.version, row.stock);
                (row.memory, row.purge_at, row.line) = (None, None, Line::default());
            }
            Act::Reset(place) => {
                world.left.resets -= 1;
                world.rows[place].clone_from(&self.rows[place]);
            }
            Act::Remove => {
                world.left.removals -= 1;
                let place = self.last_row();
                world.rows[place] =
                    self.rules.values_may_end.then(|| row(1, 9000 + u64::from(world.left.removals), false));
            }
            Act::Ttl(place) => {
                world.rows[place] = None;
                // The memory of what has arrived ends with the tombstone.
                world.history.greatest = None;
            }
            _ => {}
        }
    }

    fn last_row(&self) -> usize {
        usize::from(self.calls.iter().any(|(_, kind)| kind.is_transaction()))
    }

    /// Drops dead requests and sorts the others, so that equal worlds are equal.
    fn tidy(&self, world: &mut World) {
        let World { flights, callers, now, left, .. } = world;
        flights.retain(|flight| {
            let began = callers[flight.caller].began.unwrap_or_default();
            let is_alive = *now <= began + self.life || self.lacks("requests-die");
            match flight.way {
                Way::Met => {
                    is_alive && left.copies > 0 && !matches!(flight.request, Request::Read(_) | Request::Ticket(_))
                }
                _ => is_alive || matches!(flight.way, Way::Awaited | Way::Answered(..)),
            }
        });
        if !self.is_random() && flights.len() > 1 {
            flights.sort_by_cached_key(fingerprint);
            flights.dedup_by(|one, other| one.way == Way::Met && one == other);
        }
    }
}

impl World {
    fn is_given_up(&mut self, flight: usize) {
        if self.flights[flight].way == Way::Awaited {
            (self.flights[flight].way, self.flights[flight].send) = (Way::Unheard, SendId(0));
        }
    }

    fn met(&mut self, flight: usize) {
        (self.flights[flight].way, self.flights[flight].send) = (Way::Met, SendId(0));
    }
}

fn fingerprint(flight: &Flight) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    flight.hash(&mut hasher);
    hasher.finish()
}
