//! [`Exchange`]: one request, sent until an answer proves its outcome.
//!
//! If a send is not answered soon, an identical one follows, the *hedge*, and both are awaited. The first proof decides.
//!
//! After a lost answer, a send stays *pending* until a refusal is judged, because the answer to a resend speaks only of the
//! resend. A send still in flight at a refusal is pending too. While a send is pending, an exchange of a write ends with a
//! success, a refusal, or as unknown.

use super::client::ClientState;
use super::fault::{Cause, SendId};
use super::patience::Patience;
use super::policy::{MIN_SEND_TIME, RetryPolicy};
use super::time::{Draw, Now};
use std::time::{Duration, SystemTime};

/// The most sends of one request in flight together. A third would triple the load on a slow table.
const MAX_IN_FLIGHT: usize = 2;

/// The proof from the answer to one send about **this send** alone. A read is applied if its answer is complete.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// It was applied.
    Applied,
    /// Its condition did not hold.
    Refused,
    /// It was not applied. The same request may be applied when it is sent again.
    NotApplied {
        /// If the send was throttled: how long the service asks to wait.
        throttled: Option<Duration>,
    },
    /// It was not applied, because its signature was too old or wrong. Sign it again, once.
    Expired,
    /// It was not applied, and sending it again is useless.
    Rejected,
    /// Nothing is proved: it may have been applied, or may be applied later.
    Unknown,
    /// Nothing is proved either: the connection broke before an answer came. It may have been dead before the send.
    Broken,
    /// Nothing is proved: the service claims that another request has used the token. Tokens are random.
    Mismatch,
}

/// Why a send leaves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Why {
    /// It is the first of its change.
    First,
    /// The attempt before it lost a race.
    Conflict,
    /// The send before it was not answered soon.
    Hedge,
    /// The send before it ended like this.
    After(Outcome),
}

/// A send that is due.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Leave {
    /// Its number.
    pub id: SendId,
    /// How long its answer is awaited.
    pub timeout: Duration,
    /// The time by which it must be signed, if it is a write. All copies of it are gone soon after.
    pub leave_by: Option<SystemTime>,
    /// The number of earlier sends with a token mistaken by the service for the token of another request.
    pub mismatches: u32,
    /// Why it leaves.
    pub why: Why,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    Read,
    Write,
}

/// The time in which the sends of a change may leave, on both clocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Window {
    ends_at: Duration,
    pub leave_by: SystemTime,
}

impl Window {
    pub fn within(time: Duration, now: Now) -> Self {
        Window { ends_at: now.at + time, leave_by: now.wall + time }
    }

    fn is_over(self, now: Now) -> bool {
        now.at >= self.ends_at || now.wall >= self.leave_by
    }
}

/// How an exchange ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum End {
    Applied,
    /// `pending` is set if another send may have been applied, or may still be.
    Refused {
        pending: Option<Cause>,
    },
    Rejected {
        by: SendId,
        pending: Option<Cause>,
    },
    OutOfTime {
        pending: Option<Cause>,
        not_now: Option<Cause>,
    },
}

pub(crate) enum Next {
    Leave(Leave),
    End(End),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Exchange {
    kind: Kind,
    flights: Vec<Flight>,
    /// When another send is due. `None`: after the next answer at the earliest.
    due: Option<Duration>,
    why: Why,
    patience: Patience,
    pending: Option<SendId>,
    not_now: Option<SendId>,
    rejected: Option<SendId>,
    mismatches: u32,
    signed_again: bool,
    /// Whether it asks what became of an earlier send, which is worth more than the load.
    asks_about_pending: bool,
    /// How long the last send took.
    pub round_trip: Duration,
}

/// A send in flight.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Flight {
    id: SendId,
    sent_at: Duration,
    opens_connection: bool,
    was_signed_again: bool,
    /// The time after the hand-over at which a hedge is due. `None` once it runs, or if this send is not hedged.
    hedge_after: Option<Duration>,
}

/// What an exchange is told beside its event.
pub(crate) struct Around<'a> {
    pub now: Now,
    pub policy: &'a RetryPolicy,
    pub client: &'a mut ClientState,
}

impl Exchange {
    /// An exchange whose first send is due at this time.
    pub fn new(kind: Kind, due: Duration, why: Why) -> Self {
        Exchange {
            kind,
            flights: Vec::with_capacity(MAX_IN_FLIGHT),
            due: Some(due),
            why,
            patience: Patience::default(),
            pending: None,
            not_now: None,
            rejected: None,
            mismatches: 0,
            signed_again: false,
            asks_about_pending: false,
            round_trip: Duration::ZERO,
        }
    }

    /// The same, if it asks what became of an earlier send: it goes on without retry tokens.
    pub fn about_pending(mut self, is_so: bool) -> Self {
        self.asks_about_pending = is_so;
        self
    }

    /// When it wants to be polled again, if no answer comes before.
    pub fn wake_at(&self) -> Option<Duration> {
        self.due
    }

    /// The send that is due, or the end if there is no time for it.
    pub fn poll(&mut self, window: Window, sends: &mut u32, around: &mut Around<'_>) -> Option<Next> {
        let Around { now, policy, client } = around;
        if self.due.is_none_or(|due| now.at < due) {
            return None;
        }
        self.due = None;
        let Some(timeout) = self.time_to_send(window, *now, client.send_limit(policy, self.patience.lost_answers()))
        else {
            return self.flights.is_empty().then(|| Next::End(self.out_of_time()));
        };
        *sends += 1;
        let id = SendId(*sends);
        let hedge_after = client.hedge_after(policy, now.at).filter(|_| self.flights.len() + 1 < MAX_IN_FLIGHT);
        self.flights.push(Flight {
            id,
            sent_at: now.at,
            opens_connection: client.opens_connection(now.at),
            was_signed_again: self.signed_again,
            hedge_after,
        });
        let why = std::mem::replace(&mut self.why, Why::Hedge);
        let leave_by = (self.kind == Kind::Write).then_some(window.leave_by);
        Some(Next::Leave(Leave { id, timeout, leave_by, mismatches: self.mismatches, why }))
    }

    /// The time for an answer. `None` if there is too little for another send.
    fn time_to_send(&self, window: Window, now: Now, limit: Duration) -> Option<Duration> {
        if self.kind == Kind::Write {
            // With nothing pending, a send without time for its answer would only turn "not applied" into "unknown".
            let is_pending = self.pending.is_some() || !self.flights.is_empty();
            let needed = if is_pending { Duration::from_millis(1) } else { MIN_SEND_TIME };
            if now.left < needed || window.is_over(now) {
                return None;
            }
        }
        Some(limit.min(now.left))
    }

    /// The request of this send was handed over. The timer of its hedge starts here, not when it was built and signed.
    pub fn handed_over(&mut self, id: SendId, now: Now) {
        let flight = self.flights.iter_mut().find(|flight| flight.id == id);
        if let Some(after) = flight.and_then(|flight| flight.hedge_after.take()) {
            self.due = Some(now.at.saturating_add(after));
        }
    }

    /// A send ended. A send that is not in flight is ignored. `is_answered`: the service said something.
    pub fn answered(
        &mut self,
        id: SendId,
        outcome: Outcome,
        is_answered: bool,
        draw: Draw<'_>,
        Around { now, client, .. }: &mut Around<'_>,
    ) -> Option<End> {
        let place = self.flights.iter().position(|flight| flight.id == id)?;
        let flight = self.flights.remove(place);
        self.round_trip = now.at.saturating_sub(flight.sent_at);
        client.ended(is_answered, now.at, self.round_trip, flight.opens_connection);
        self.due = None;
        self.why = Why::After(outcome);
        match outcome {
            Outcome::Applied => {
                client.not_throttled(self.patience.is_throttled());
                return Some(End::Applied);
            }
            Outcome::Refused => {
                client.not_throttled(self.patience.is_throttled());
                let unanswered = || Cause::Said("another send is not answered yet");
                let pending = self.pending.map(Cause::Send).or_else(|| (!self.flights.is_empty()).then(unanswered));
                return Some(End::Refused { pending });
            }
            Outcome::NotApplied { throttled } => {
                self.patience.not_now(throttled);
                self.not_now = Some(id);
            }
            Outcome::Expired if !flight.was_signed_again => {
                self.signed_again = true;
                self.patience.not_applied();
                self.not_now = Some(id);
            }
            Outcome::Rejected | Outcome::Expired => self.rejected = Some(id),
            Outcome::Unknown => {
                self.patience.lost();
                self.pending = Some(id);
            }
            Outcome::Broken => {
                self.patience.broken();
                self.pending = Some(id);
            }
            Outcome::Mismatch => {
                self.patience.not_applied();
                self.mismatches += 1;
                self.pending = Some(id);
            }
        }
        if let Some(by) = self.rejected {
            let is_over = self.flights.is_empty() || self.kind == Kind::Read;
            return is_over.then(|| End::Rejected { by, pending: self.pending.map(Cause::Send) });
        }
        let is_too_much = self.patience.is_throttled() && !client.pay() && !self.asks_about_pending;
        let pause = self.patience.pause(draw());
        match self.kind {
            Kind::Read if is_too_much || now.left < pause.saturating_add(MIN_SEND_TIME) => {
                self.flights.is_empty().then(|| self.out_of_time())
            }
            Kind::Write if is_too_much && self.pending.is_none() && self.flights.is_empty() => Some(self.out_of_time()),
            Kind::Read => {
                self.due = Some(now.at + pause);
                None
            }
            // The pause leaves time for one more send, which may prove the outcome of the last one.
            Kind::Write => {
                self.due = Some(now.at + pause.min(now.left / 2));
                None
            }
        }
    }

    /// Whether a send may have been applied, or may still be.
    pub fn may_be_applied(&self) -> bool {
        self.pending.is_some() || !self.flights.is_empty()
    }

    fn out_of_time(&self) -> End {
        End::OutOfTime { pending: self.pending.map(Cause::Send), not_now: self.not_now.map(Cause::Send) }
    }

    pub fn is_in_flight(&self, id: SendId) -> bool {
        self.flights.iter().any(|flight| flight.id == id)
    }
}
