//! [`Change`]: the machine of one change. It is told what happened, and says what to do next.
//!
//! A change reads rows, is decided, and sends its steps as one attempt until their outcome is proved. A write of one row is
//! a change of one step. If an attempt was refused, whoever decides does so again, on the rows of the refusal.
//!
//! Between a call of [`Change::poll`] that returns `None` and the next event, a change holds nothing but this state.
//! Dropping it drops no more than the call itself: the fate of a dropped change is unknown.

use super::attempts::{Attempts, OpenAttempt};
use super::client::ClientState;
use super::exchange::{Around, End, Exchange, Kind, Leave, Next, Outcome, Why, Window};
use super::fault::{Cause, Fault, SendId};
use super::judge::{Base, SeenRow, SentWrite, Verdict};
use super::memory::WriteId;
use super::policy::{Approach, Line, MIN_SEND_TIME, RetryPolicy, Rivals, fraction};
use super::refusal::{
    Reason, RefusedStep, Role, Seen, Step, judge_after_loss, judge_one, judge_refusal, judge_steps,
    steps_may_still_land,
};
use super::settle::{After, Facts, after, can_be_burned, committed, made};
use super::time::{Draw, Now};
use super::version::{Incarnation, ItemVersion};
use std::mem;
use std::time::{Duration, SystemTime};

/// The time in which all sends of one change leave, counted from the start of the change. A signature lives for 5
/// minutes from its date; a clock may be ahead by almost as much. So all copies are gone 14 minutes after the start.
const SEND_WINDOW: Duration = Duration::from_mins(4);
/// The same where only a token keeps a second copy from being applied. `DynamoDB` knows a token for 10 minutes, so all
/// copies must be gone by then: 1 minute, 5 for the life of a signature, and 4 for a clock ahead.
const SEND_WINDOW_OF_TOKEN: Duration = Duration::from_mins(1);

/// What a change needs to know from its beginning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Terms {
    /// Its retry policy.
    pub policy: RetryPolicy,
    /// Whether only a token keeps a second copy of its sends from being applied.
    pub relies_on_token: bool,
}

/// One attempt, as it was decided.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Plan {
    /// Its steps, which are applied together or not at all.
    pub steps: Vec<Step>,
    /// The row with a line of writers, if the attempt waits in it for its turn, as the row shows it.
    pub lines_up_at: Option<(usize, Incarnation, Line)>,
    /// Whether another decision follows if the service rejects the attempt.
    pub gives_way: bool,
    /// Whether the steps are sent as a transaction, with a token.
    pub is_transaction: bool,
    /// Whether the row is read again after throttling, because the write would come too late by then.
    pub rereads: bool,
}

/// What to do next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Send this request.
    Send(Leave, What),
    /// Tell this to whoever decides. Every send in flight is dropped.
    Tell(Told),
}

/// A request.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum What {
    /// Read these rows.
    Read(Vec<usize>),
    /// Send the steps of the attempt.
    Attempt {
        /// The ticket to store as the last one served.
        serve: Option<u64>,
        /// The token, if the steps are sent as a transaction. All sends of one attempt have the same.
        token: Option<[u64; 2]>,
    },
    /// Write the id of this write into its row, and the ids of these others, so that no copy of them is applied.
    Burn {
        /// The place of the row.
        row: usize,
        /// The write to burn.
        sent: SentWrite,
        /// Earlier attempts, which the same row would remember.
        others: Vec<WriteId>,
        /// The id of the tombstone and the time from which it is kept, if the burn takes a free key.
        tombstone: Option<(WriteId, SystemTime)>,
    },
    /// Take a ticket from the line at this row.
    Ticket {
        /// The place of the row.
        row: usize,
        /// The identity of the row.
        incarnation: Incarnation,
    },
}

/// What is told to whoever decides.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Told {
    /// The rows were read.
    Read,
    /// The wait is over.
    Waited,
    /// The attempt was applied.
    Applied {
        /// The id of the attempt.
        id: WriteId,
        /// The state of its row, if it has one step with an id.
        at: Option<ItemVersion>,
    },
    /// An earlier attempt was applied. The last one was not, and never will be.
    Earlier {
        /// The id of the earlier attempt.
        id: WriteId,
        /// The state that it left.
        at: ItemVersion,
    },
    /// The attempt was not applied. Decide again on the rows of the refusal.
    NotApplied {
        /// The rows to read before, because they may show an earlier attempt as applied.
        unseen: Vec<usize>,
        /// The row that a burn has shown, which is later than the refusal.
        burned: Option<usize>,
    },
    /// The service rejected the attempt, which [gives way](Plan::gives_way).
    GaveWay,
    /// The attempt was not sent, because other writers would probably be first. Read these rows, and decide again. The read
    /// begins after a pause. If it is empty, the answer to a ticket has shown the row.
    Look(Vec<usize>),
    /// The only step was refused. It [repeats](Role::Repeats), so whoever made it judges the row.
    Refused {
        /// Set if another send may have been applied, or may still be.
        pending: Option<Cause>,
    },
    /// The change ended without a proof that it was applied.
    Failed(Fault),
    /// The open attempts are burned as far as that can be done.
    GivenUp {
        /// Whether one of them may be applied all the same.
        is_doubtful: bool,
    },
}

/// What the answer to a send shows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Answer {
    /// What it proves.
    pub outcome: Outcome,
    /// Whether the service said anything.
    pub is_answered: bool,
    /// The rows that it shows: those of a read, or that of an applied write.
    pub rows: Vec<(usize, Option<SeenRow>)>,
    /// Why each step was refused or rejected.
    pub reasons: Vec<Reason>,
    /// Whether a rejection depends on the stored data, so that a copy may be applied to later data.
    pub depends_on_data: bool,
    /// The ticket that was taken.
    pub ticket: Option<u64>,
}

impl Answer {
    /// An answer that shows nothing beside its outcome.
    #[must_use]
    pub fn of(outcome: Outcome, is_answered: bool) -> Self {
        Answer { outcome, is_answered, rows: Vec::new(), reasons: Vec::new(), depends_on_data: false, ticket: None }
    }
}

/// The cost of a change so far.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Cost {
    /// 1 if it has sent a write.
    pub changes: u32,
    /// Attempts and burns.
    pub attempts: u32,
    /// Attempts that lost a race.
    pub conflicts: u32,
    /// Lost answers to sends of a write.
    pub lost_answers: u32,
}

/// One change.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Change {
    policy: RetryPolicy,
    window: Window,
    /// Its attempts.
    attempts: Attempts,
    rivals: Rivals,
    round_trip: Duration,
    /// The time before which it does not look.
    looks_at: Duration,
    /// The number of writes sent, burns included.
    rounds: u32,
    sends: u32,
    /// How often an attempt was given up because it was throttled.
    throttled: u32,
    phase: Phase,
    exchange: Option<Exchange>,
    told: Option<Told>,
    /// The send of the attempt that was rejected because of the stored data, and why each step was.
    rejected: Option<(SendId, Vec<Reason>)>,
    cost: Cost,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Deciding,
    Waiting(Duration),
    Reading(Reading),
    TakingTicket(usize, Incarnation),
    Attempting(Plan, Option<[u64; 2]>),
    Burning(Burning),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Reading {
    left: Vec<usize>,
    batches: u32,
    seen: Vec<(usize, Option<SeenRow>)>,
    /// The attempt whose lease was lost, if its rows are read to find out its fate.
    after_loss: Option<(Refused, Cause)>,
}

/// An attempt with the reasons of its refusal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Refused {
    plan: Plan,
    reasons: Vec<Reason>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Burning {
    row: usize,
    sent: SentWrite,
    tombstone: Option<(WriteId, SystemTime)>,
    /// The writes to burn instead if there is no burn of this one.
    or: Vec<(usize, SentWrite)>,
    then: Then,
}

/// What follows a burn.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Then {
    /// The refused attempt is settled.
    Settle(Refused, Cause),
    /// The rejected attempt, sent last by this send, is settled.
    Reject(SendId),
    /// The open attempt, which the next one would not exclude, is settled. The others could not be burned.
    Exclude { plan: Plan, open: OpenAttempt, others: Vec<OpenAttempt> },
    /// The change gives up.
    GiveUp,
}

impl Refused {
    fn steps(&self) -> impl Iterator<Item = RefusedStep<'_>> + Clone {
        self.plan.steps.iter().zip(&self.reasons).map(|(step, reason)| RefusedStep { step: *step, reason })
    }

    fn first_write(&self) -> Option<SentWrite> {
        self.plan.steps.iter().find_map(Step::write)
    }
}

impl Change {
    /// A change that begins now, under this id.
    #[must_use]
    pub fn new(terms: Terms, id: WriteId, now: Now) -> Self {
        let time = if terms.relies_on_token { SEND_WINDOW_OF_TOKEN } else { SEND_WINDOW };
        Change {
            policy: terms.policy,
            window: Window::within(time, now),
            attempts: Attempts::new(id),
            rivals: Rivals::default(),
            round_trip: Duration::ZERO,
            looks_at: now.at,
            rounds: 0,
            sends: 0,
            throttled: 0,
            phase: Phase::Deciding,
            exchange: None,
            told: None,
            rejected: None,
            cost: Cost::default(),
        }
    }

    /// Its attempts: the id of the next one, and those that it excludes.
    #[must_use]
    pub fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    /// How many writes it has begun to send, burns included.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// How long the last read or refused send took.
    #[must_use]
    pub fn round_trip(&self) -> Duration {
        self.round_trip
    }

    /// The failure of a change that gives up after these attempts.
    #[must_use]
    pub fn contention(&self) -> Fault {
        Fault::Contention { attempts: self.rounds }
    }

    /// The cost since the last call.
    pub fn take_cost(&mut self) -> Cost {
        mem::take(&mut self.cost)
    }

    /// Reads these rows. Those left out by an answer are asked for again.
    pub fn read(&mut self, rows: Vec<usize>, now: Now) {
        if rows.is_empty() {
            return self.has_read_all();
        }
        let reading = Reading { left: rows, batches: 0, seen: Vec::new(), after_loss: None };
        self.begin_reading(reading, now.at.max(self.looks_at));
    }

    /// Makes the next read a look after this pause, or after half of the time left. Fails if none would be left to write.
    fn looks_after(&mut self, pause: Duration, now: Now) -> bool {
        let pause = pause.min(now.left / 2);
        if now.left <= pause.saturating_add(MIN_SEND_TIME) {
            self.fail(self.contention());
            return false;
        }
        (self.looks_at, self.rivals.is_looking) = (now.at + pause, true);
        true
    }

    /// Waits for a part of `bound`, and for at most half of the time left.
    pub fn wait(&mut self, bound: Duration, now: Now, draw: Draw<'_>) {
        let pause = fraction(bound, draw()).min(now.left / 2);
        if now.left <= pause.saturating_add(MIN_SEND_TIME) {
            return self.fail(self.contention());
        }
        self.phase = Phase::Waiting(now.at + pause);
    }

    /// Notes that the last attempt lost its race.
    pub fn lost_race(&mut self) {
        self.rivals.lost_race();
        self.cost.conflicts += 1;
    }

    /// Notes that the last attempt was refused because its row was old. It has met nobody.
    pub fn was_late(&mut self) {
        self.cost.conflicts += 1;
    }

    /// Sends an attempt. Before it, burns the open attempts that it would not exclude, and looks or takes a ticket if other
    /// writers would probably be first.
    pub fn attempt(&mut self, plan: Plan, now: Now, draw: Draw<'_>) {
        self.exclude(plan, Vec::new(), now, draw);
    }

    /// Gives up: burns the open attempts, so that nothing is applied.
    pub fn give_up(&mut self, now: Now, draw: Draw<'_>) {
        let next = if self.attempts.check_remembered().is_ok() { self.attempts.take_one_beside(&[]) } else { None };
        match next {
            Some(open) => self.burn(open.writes(), Then::GiveUp, now, draw),
            None => self.tell(Told::GivenUp { is_doubtful: self.attempts.is_doubtful() }),
        }
    }

    /// When it wants to be polled again, if nothing happens before.
    #[must_use]
    pub fn wake_at(&self) -> Option<Duration> {
        match (&self.told, &self.phase) {
            (Some(_), _) => Some(Duration::ZERO),
            (None, Phase::Waiting(until)) => Some(*until),
            (None, _) => self.exchange.as_ref()?.wake_at(),
        }
    }

    /// What to do now. Call it again until it returns `None`, because two sends may be due at once.
    pub fn poll(&mut self, now: Now, client: &mut ClientState, draw: Draw<'_>) -> Option<Action> {
        loop {
            if let Some(told) = self.told.take() {
                return Some(Action::Tell(told));
            }
            if let Phase::Waiting(until) = self.phase {
                if now.at < until {
                    return None;
                }
                self.tell(Told::Waited);
                continue;
            }
            let around = &mut Around { now, policy: &self.policy, client };
            match self.exchange.as_mut()?.poll(self.window, &mut self.sends, around)? {
                Next::Leave(leave) => {
                    self.cost.changes += u32::from(leave.why == Why::First && leave.leave_by.is_some());
                    return Some(Action::Send(leave, self.what()));
                }
                Next::End(end) => self.ended(end, Answer::of(Outcome::Unknown, false), now, draw),
            }
        }
    }

    fn what(&self) -> What {
        match &self.phase {
            Phase::Deciding | Phase::Waiting(_) => What::Read(Vec::new()),
            Phase::Reading(reading) => What::Read(reading.left.clone()),
            Phase::TakingTicket(row, incarnation) => What::Ticket { row: *row, incarnation: *incarnation },
            Phase::Attempting(plan, token) => {
                let served = plan.lines_up_at.map_or(0, |(.., line)| line.served);
                What::Attempt { serve: self.rivals.ticket().map(|ticket| ticket.max(served)), token: *token }
            }
            Phase::Burning(Burning { row, sent, tombstone, .. }) => {
                let incarnation = if let Base::Row { incarnation, .. } = sent.on { Some(incarnation) } else { None };
                let others = self.attempts.ids_to_burn(*row, incarnation);
                What::Burn { row: *row, sent: *sent, others, tombstone: *tombstone }
            }
        }
    }

    /// The request of this send was handed over to the network.
    pub fn handed_over(&mut self, id: SendId, now: Now) {
        if let Some(exchange) = &mut self.exchange {
            exchange.handed_over(id, now);
        }
    }

    /// Whether the answer to this send is still of use. Other sends are dropped.
    #[must_use]
    pub fn awaits(&self, id: SendId) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.is_in_flight(id))
    }

    /// Whether a row that is read now may tell what became of an attempt. Otherwise nobody judges it.
    #[must_use]
    pub fn asks_for_fates(&self) -> bool {
        self.attempts.is_doubtful() || matches!(&self.phase, Phase::Reading(reading) if reading.after_loss.is_some())
    }

    /// There is no such request: a burn that would be too long, or of a row that nobody has seen.
    pub fn cannot_be_made(&mut self, id: SendId, now: Now, draw: Draw<'_>) {
        if !self.awaits(id) {
            return;
        }
        self.exchange = None;
        match mem::replace(&mut self.phase, Phase::Deciding) {
            Phase::Burning(Burning { or, then, .. }) => {
                self.rounds -= 1;
                self.cost.attempts = self.cost.attempts.saturating_sub(1);
                self.burn(or, then, now, draw);
            }
            _ => self.fail(Fault::Unavailable(Cause::Said("the request cannot be made"))),
        }
    }

    /// A send ended. Those that are not in flight any more are ignored.
    pub fn answered(&mut self, id: SendId, answer: Answer, now: Now, client: &mut ClientState, draw: Draw<'_>) {
        let Some(exchange) = self.exchange.as_mut().filter(|exchange| exchange.is_in_flight(id)) else { return };
        let is_write = !matches!(self.phase, Phase::Reading(_) | Phase::TakingTicket(..));
        self.cost.lost_answers += u32::from(is_write && matches!(answer.outcome, Outcome::Unknown | Outcome::Broken));
        if answer.outcome == Outcome::Rejected && answer.depends_on_data {
            self.rejected = Some((id, answer.reasons.clone()));
        }
        let around = &mut Around { now, policy: &self.policy, client };
        if let Some(end) = exchange.answered(id, answer.outcome, answer.is_answered, draw, around) {
            if matches!(end, End::Applied | End::Refused { .. }) {
                self.round_trip = exchange.round_trip;
            }
            self.ended(end, answer, now, draw);
        } else if matches!(answer.outcome, Outcome::NotApplied { throttled: Some(_) }) && !exchange.may_be_applied() {
            self.reread(now, draw);
        }
    }

    /// Gives up a throttled attempt that would be too late after a pause. None of its sends was applied, nor ever will be.
    fn reread(&mut self, now: Now, draw: Draw<'_>) {
        let Phase::Attempting(plan, _) = &self.phase else { return };
        if !plan.rereads {
            return;
        }
        let rows = plan.steps.iter().map(|step| step.row).collect();
        (self.exchange, self.phase) = (None, Phase::Deciding);
        self.throttled += 1;
        if self.looks_after(RetryPolicy::crowded_pause(self.throttled, draw()), now) {
            self.tell(Told::Look(rows));
        }
    }

    fn ended(&mut self, end: End, answer: Answer, now: Now, draw: Draw<'_>) {
        self.exchange = None;
        for (row, seen) in &answer.rows {
            self.attempts.judge(*row, seen.as_ref(), now.wall);
        }
        match mem::replace(&mut self.phase, Phase::Deciding) {
            Phase::Deciding | Phase::Waiting(_) => {}
            Phase::Reading(reading) => self.has_read(reading, end, answer.rows, now, draw),
            Phase::TakingTicket(row, _) => match fault_of_read(end) {
                // Without the permission to take one, or without its row, it goes on as if there were no line.
                None | Some(Fault::Rejected(_)) => {
                    self.rivals.has_asked(answer.ticket);
                    self.tell(Told::Look(if answer.rows.is_empty() { vec![row] } else { Vec::new() }));
                }
                Some(fault) => self.fail(fault),
            },
            Phase::Attempting(plan, _) => self.has_attempted(plan, end, answer, now, draw),
            Phase::Burning(burning) => self.has_burned(burning, end, &answer, now, draw),
        }
    }

    fn begin_reading(&mut self, reading: Reading, due: Duration) {
        let exchange = Exchange::new(Kind::Read, due, Why::First).about_pending(reading.after_loss.is_some());
        (self.phase, self.exchange) = (Phase::Reading(reading), Some(exchange));
    }

    fn has_read(
        &mut self,
        mut reading: Reading,
        end: End,
        rows: Vec<(usize, Option<SeenRow>)>,
        now: Now,
        draw: Draw<'_>,
    ) {
        let mut fault = fault_of_read(end);
        reading.left.retain(|row| !rows.iter().any(|(answered, _)| answered == row));
        reading.seen.extend(rows);
        if fault.is_none() && !reading.left.is_empty() {
            reading.batches += 1;
            let pause = RetryPolicy::resend_pause(reading.batches, false, draw());
            if now.left >= pause.saturating_add(MIN_SEND_TIME) {
                return self.begin_reading(reading, now.at + pause);
            }
            let said = "some rows were not read: the table is throttled, or the answer was full";
            fault = Some(Fault::Unavailable(Cause::Said(said)));
        }
        match (reading.after_loss, fault) {
            (Some((refused, pending)), fault) => {
                // If the rows cannot be asked, nothing is proved.
                let verdict = if fault.is_some() { Verdict::Unproved } else { after_loss(&refused, &reading.seen) };
                self.conclude(&refused, Some(pending), after(verdict, at_last(true)), None, now, draw);
            }
            (None, Some(fault)) => self.fail(fault),
            (None, None) => self.has_read_all(),
        }
    }

    fn has_read_all(&mut self) {
        self.rivals.has_read();
        match (self.attempts.landed, self.attempts.check_remembered()) {
            (None, Err(fault)) => self.fail(fault),
            (None, Ok(())) => self.tell(Told::Read),
            (Some((id, at)), _) => self.tell(Told::Earlier { id, at }),
        }
    }

    /// Burns one of the open attempts that the plan would not exclude, or sends the plan.
    fn exclude(&mut self, plan: Plan, others: Vec<OpenAttempt>, now: Now, draw: Draw<'_>) {
        let writes: Vec<_> = plan.steps.iter().filter(|step| step.write().is_some()).map(|step| step.row).collect();
        if let Some(open) = self.attempts.take_one_beside(&writes) {
            return self.burn(open.writes(), Then::Exclude { plan, open, others }, now, draw);
        }
        self.attempts.stay_open(others);
        self.line_up(plan, now, draw);
    }

    fn line_up(&mut self, plan: Plan, now: Now, draw: Draw<'_>) {
        let version = match plan.steps.iter().find_map(|step| step.role.base()) {
            Some(Base::Row { version, .. }) => version.get(),
            _ => 0,
        };
        let line = plan.lines_up_at.map(|(.., line)| line);
        let random = if self.rivals.is_refused { draw() } else { 0 };
        let approach = self.policy.approach(&self.rivals, line, version, self.round_trip, random);
        self.rivals.seen = version;
        match (approach, plan.lines_up_at) {
            (Approach::TakeTicket, Some((row, incarnation, _))) => {
                self.phase = Phase::TakingTicket(row, incarnation);
                self.exchange = Some(Exchange::new(Kind::Read, now.at, Why::First));
            }
            (Approach::Look(pause), _) if self.looks_after(pause, now) => {
                // Whoever judges the refusing row itself rests on no other.
                if plan.steps.iter().any(|step| step.role == Role::Repeats) {
                    self.rivals.has_read();
                    return self.send(plan, now, draw);
                }
                // A required lease is judged by its own step alone.
                let looked_at = plan.steps.iter().filter(|step| !matches!(step.role, Role::Requires(_)));
                self.tell(Told::Look(looked_at.map(|step| step.row).collect()));
            }
            (Approach::Look(_), _) => {}
            _ => self.send(plan, now, draw),
        }
    }

    fn send(&mut self, plan: Plan, now: Now, draw: Draw<'_>) {
        if self.rounds >= self.policy.max_attempts {
            return self.fail(self.contention());
        }
        let token = plan.is_transaction.then(|| [draw(), draw()]);
        self.exchange = Some(self.begin_round(now));
        self.phase = Phase::Attempting(plan, token);
    }

    /// Begins to send a write.
    fn begin_round(&mut self, now: Now) -> Exchange {
        self.rounds += 1;
        self.cost.attempts += 1;
        self.rejected = None;
        let why = if self.rounds == 1 { Why::First } else { Why::Conflict };
        Exchange::new(Kind::Write, now.at.max(self.looks_at), why)
    }

    fn has_attempted(&mut self, plan: Plan, end: End, answer: Answer, now: Now, draw: Draw<'_>) {
        let id = self.attempts.id;
        match end {
            End::Applied => {
                // In a window, only the row tells which version the write made.
                let seen = answer.rows.into_iter().find_map(|(_, seen)| seen);
                let write = plan.steps.iter().find_map(Step::write).filter(|_| plan.steps.len() == 1);
                let at = write.map(|sent| seen.map_or(committed(&sent), |row| row.at()));
                self.tell(Told::Applied { id, at });
            }
            End::Refused { pending } => {
                if plan.steps.iter().any(|step| step.role == Role::Repeats) {
                    return self.tell(Told::Refused { pending });
                }
                // A copy of a rejected send may have been applied before this one was refused.
                let pending = pending.or(self.rejected.as_ref().map(|(by, _)| Cause::Send(*by)));
                self.settle(Refused { plan, reasons: answer.reasons }, pending, now, draw);
            }
            End::Rejected { pending: Some(cause), .. } => self.fail(Fault::Unknown(cause)),
            End::Rejected { by, pending: None } => self.has_been_rejected(by, &plan, now, draw),
            End::OutOfTime { pending, not_now } => self.fail(match (pending, not_now) {
                (Some(cause), _) => Fault::Unknown(cause),
                (None, Some(cause)) => Fault::Unavailable(cause),
                (None, None) if self.rivals.conflicts > 0 => self.contention(),
                (None, None) => Fault::Unavailable(Cause::Said("no time was left to send the write")),
            }),
        }
    }

    /// A rejected attempt was not applied. Where the stored data is the reason, a copy of it may be when the data are
    /// others, so it is burned, or the attempt that takes its place excludes it.
    fn has_been_rejected(&mut self, by: SendId, plan: &Plan, now: Now, draw: Draw<'_>) {
        let Some((_, reasons)) = self.rejected.take() else {
            return if plan.gives_way { self.tell(Told::GaveWay) } else { self.fail(Fault::Rejected(by)) };
        };
        if plan.gives_way {
            let steps = plan.steps.iter().map(|step| RefusedStep { step: *step, reason: &Reason::None });
            return match self.attempts.leave_open(&steps.collect::<Vec<_>>(), WriteId::from_random(draw())) {
                Ok(()) => self.tell(Told::GaveWay),
                Err(fault) => self.fail(fault),
            };
        }
        let is_reason = |at: usize| reasons.get(at).is_some_and(|reason| *reason == Reason::Rejected);
        let writes =
            plan.steps.iter().enumerate().filter_map(|(at, step)| Some((is_reason(at), step.row, step.write()?)));
        // An item without room may have none for the burn either, so it is the last to be burned.
        let (reasons, mut writes): (Vec<_>, Vec<_>) = writes.partition(|(is_reason, ..)| *is_reason);
        writes.extend(reasons);
        let writes = writes.into_iter().map(|(_, row, sent)| (row, sent)).collect();
        self.burn(writes, Then::Reject(by), now, draw);
    }

    /// Finds out the fate of the attempt, which was refused for these reasons. `pending` is set if another send of it may
    /// have been applied, or may still be.
    fn settle(&mut self, refused: Refused, pending: Option<Cause>, now: Now, draw: Draw<'_>) {
        // An earlier attempt excludes this one, so its pending sends are not applied either.
        for step in refused.steps().filter(RefusedStep::is_shown) {
            self.attempts.judge(step.step.row, step.seen(), now.wall);
        }
        if let Some((id, at)) = self.attempts.landed {
            return self.tell(Told::Earlier { id, at });
        }
        let steps: Vec<_> = refused.steps().collect();
        let verdict = judge_refusal(&steps, now.wall).traced();
        let is_lease_lost = steps.iter().any(RefusedStep::is_lease_lost);
        let to_burn = steps.iter().filter(|step| step.burn_helps());
        let to_burn: Vec<_> = to_burn.filter_map(|step| Some((step.step.row, step.write()?))).collect();
        let facts = Facts { is_pending: pending.is_some(), is_lease_lost, can_burn: !to_burn.is_empty() };
        match (after(verdict, facts), pending) {
            (After::AskRows, Some(pending)) => {
                let rows = refused.plan.steps.iter().filter(|step| step.write().is_some()).map(|step| step.row);
                let left: Vec<_> = rows.collect();
                let reading = Reading { left, batches: 0, seen: Vec::new(), after_loss: Some((refused, pending)) };
                if reading.left.is_empty() {
                    return self.has_read(reading, End::Applied, Vec::new(), now, draw);
                }
                self.begin_reading(reading, now.at);
            }
            (After::Burn, Some(pending)) => self.burn(to_burn, Then::Settle(refused, pending), now, draw),
            (follows, pending) => self.conclude(&refused, pending, follows, None, now, draw),
        }
    }

    /// Tells what became of a refused attempt. `burned` is the row that a burn has shown.
    fn conclude(
        &mut self,
        refused: &Refused,
        pending: Option<Cause>,
        follows: After,
        burned: Option<usize>,
        now: Now,
        draw: Draw<'_>,
    ) {
        let id = self.attempts.id;
        match (follows, pending) {
            (After::Landed(version), _) => {
                let sent = refused.first_write();
                // The version is that of the row that showed it, which of several steps may be any.
                let at = sent.filter(|_| refused.plan.steps.len() == 1).map(|sent| made(&sent, version));
                return self.tell(Told::Applied { id: sent.map_or(id, |sent| sent.id), at });
            }
            (After::NotApplied, _) => {}
            (_, Some(cause)) => return self.fail(Fault::Unknown(cause)),
            // Without a pending send, the only other case is `Corrupt`.
            (_, None) => {
                let fault = self.attempts.check_remembered().err().unwrap_or(Fault::VersionWentDown);
                return self.fail(fault);
            }
        }
        if let Err(fault) = self.attempts.check_remembered() {
            return self.fail(fault);
        }
        let steps: Vec<_> = refused.steps().collect();
        let unseen = self.attempts.unseen(|row| steps.iter().any(|step| step.step.row == row && step.is_shown()));
        // A burned attempt goes on under another id already.
        if burned.is_none()
            && steps_may_still_land(&steps, now.wall)
            && let Err(fault) = self.attempts.leave_open(&steps, WriteId::from_random(draw()))
        {
            return self.fail(fault);
        }
        self.tell(Told::NotApplied { unseen, burned });
    }

    /// Keeps any further copy of an attempt from being applied: burns one of these writes of it, together with the open
    /// attempts that the same row would remember. Goes on under another id.
    fn burn(&mut self, mut writes: Vec<(usize, SentWrite)>, then: Then, now: Now, draw: Draw<'_>) {
        writes.retain(|(_, sent)| can_be_burned(sent));
        if writes.is_empty() {
            return self.after_burn(then, Burned::Impossible, now, draw);
        }
        let (row, sent) = writes.remove(0);
        let tombstone = matches!(sent.on, Base::NoRow(_)).then(|| (WriteId::from_random(draw()), now.wall));
        // A burn is no attempt: however many there were, their outcome is asked for.
        self.exchange = Some(self.begin_round(now).about_pending(true));
        self.phase = Phase::Burning(Burning { row, sent, tombstone, or: writes, then });
    }

    fn has_burned(&mut self, burning: Burning, end: End, answer: &Answer, now: Now, draw: Draw<'_>) {
        let Burning { row, sent, then, .. } = burning;
        let verdict = match end {
            End::Applied => Verdict::NeverApplied,
            End::Refused { .. } => {
                let seen = match answer.reasons.first() {
                    Some(Reason::Refused(Seen::Row(seen))) => seen.as_ref(),
                    _ => None,
                };
                self.attempts.judge(row, seen, now.wall);
                judge_steps([judge_one(&sent, seen, now.wall)].into_iter()).traced()
            }
            End::Rejected { by, .. } => {
                return self.after_burn(then, Burned::Failed(Fault::Rejected(by)), now, draw);
            }
            End::OutOfTime { pending, not_now } => {
                let cause = pending.or(not_now).unwrap_or(Cause::Said("no time was left to burn an attempt"));
                return self.after_burn(then, Burned::Failed(Fault::Unavailable(cause)), now, draw);
            }
        };
        // The row refuses a burned id, so the next write is a new one.
        self.attempts.id = WriteId::from_random(draw());
        self.after_burn(then, Burned::Judged { row, sent, verdict }, now, draw);
    }

    fn after_burn(&mut self, then: Then, burned: Burned, now: Now, draw: Draw<'_>) {
        let (verdict, at) = match burned {
            Burned::Judged { row, sent, verdict } => (verdict, Some((row, sent))),
            Burned::Impossible | Burned::Failed(_) => (Verdict::Unproved, None),
        };
        match then {
            Then::Settle(..) | Then::Reject(_) | Then::Exclude { .. } if self.attempts.landed.is_some() => {
                self.fail(Fault::Unknown(Cause::Said("an earlier attempt was applied")));
            }
            Then::Settle(refused, pending) => {
                let row = at.map(|(row, _)| row);
                self.conclude(&refused, Some(pending), after(verdict, at_last(true)), row, now, draw);
            }
            Then::Reject(by) => match (verdict, at) {
                (Verdict::Landed(version), Some((_, sent))) => {
                    self.tell(Told::Applied { id: sent.id, at: Some(made(&sent, version)) });
                }
                (verdict, _) if verdict.is_final() => self.fail(Fault::Rejected(by)),
                _ => self.fail(Fault::Unknown(Cause::Send(by))),
            },
            Then::Exclude { plan, open, mut others } => match (burned, verdict) {
                // There is no burn of a step that adopts a row, nor of a create where rows may vanish. Without a change, a
                // copy of the open attempt would be the only one, as after an answer without a step.
                (Burned::Impossible, _) if plan.changes() => {
                    self.fail(Fault::Unknown(Cause::Said("an earlier attempt may still be applied")));
                }
                (Burned::Impossible, _) => {
                    others.push(open);
                    self.exclude(plan, others, now, draw);
                }
                (Burned::Failed(fault), _) => self.fail(fault.while_open()),
                (Burned::Judged { sent, .. }, Verdict::Landed(version)) => {
                    self.tell(Told::Earlier { id: open.id, at: made(&sent, version) });
                }
                (Burned::Judged { row, .. }, verdict) if verdict.is_final() => {
                    self.attempts.stay_open(others);
                    self.tell(Told::NotApplied { unseen: Vec::new(), burned: Some(row) });
                }
                (Burned::Judged { .. }, _) => {
                    self.fail(Fault::Unknown(Cause::Said("the burn of an earlier attempt proved nothing")));
                }
            },
            Then::GiveUp if verdict == Verdict::NeverApplied => self.give_up(now, draw),
            Then::GiveUp => self.tell(Told::GivenUp { is_doubtful: true }),
        }
    }

    fn fail(&mut self, fault: Fault) {
        self.tell(match self.attempts.landed {
            Some((id, at)) => Told::Earlier { id, at },
            None => Told::Failed(fault),
        });
    }

    fn tell(&mut self, told: Told) {
        self.phase = Phase::Deciding;
        self.exchange = None;
        self.told = Some(told);
    }
}

/// What became of a burn.
#[derive(Clone, Copy)]
enum Burned {
    /// There is none of these writes.
    Impossible,
    /// It was not answered, or not in time.
    Failed(Fault),
    /// The row was written, or has refused the burn. It says this of the write.
    Judged { row: usize, sent: SentWrite, verdict: Verdict },
}

impl Plan {
    /// Whether it changes a row.
    fn changes(&self) -> bool {
        self.steps.iter().any(|step| !matches!(step.role, Role::Checks(_) | Role::Requires(_)))
    }
}

/// The failure of a read that ended like this.
fn fault_of_read(end: End) -> Option<Fault> {
    match end {
        End::Applied | End::Refused { .. } => None,
        End::Rejected { by, .. } => Some(Fault::Rejected(by)),
        End::OutOfTime { pending, not_now } => {
            let last = [pending, not_now].into_iter().flatten().max_by_key(|cause| match cause {
                Cause::Send(SendId(id)) => *id,
                _ => 0,
            });
            Some(Fault::Unavailable(last.unwrap_or(Cause::Said("no time was left to read"))))
        }
    }
}

/// The facts when nothing more can be done to prove anything.
const fn at_last(is_pending: bool) -> Facts {
    Facts { is_pending, is_lease_lost: false, can_burn: false }
}

/// Judges an attempt by the rows in its writes, after its lease was lost. No copy of it can be applied any more, so these
/// rows show whether an earlier copy was.
fn after_loss(refused: &Refused, seen: &[(usize, Option<SeenRow>)]) -> Verdict {
    let row_of = |row: usize| seen.iter().find(|(of, _)| *of == row).and_then(|(_, seen)| seen.clone());
    let writes = refused.plan.steps.iter().filter_map(|step| Some((step.write()?, row_of(step.row))));
    judge_after_loss(writes)
}
