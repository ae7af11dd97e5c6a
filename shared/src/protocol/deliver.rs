//! [`Delivery`]: one logical change, each of its writes sent until it is proved what became of it.

use crate::call::Call;
use crate::error::{Failure, Source};
use crate::protocol::item::Attributes;
use crate::protocol::send::{ReadOutcome, SendOutcome, Sender};
use crate::retry::{Conflicts, DualClockDeadline};
use std::time::Duration;
use tracing::debug;

/// All sends of one change leave within this time of the first. A signature lives about 5 minutes and the token of a
/// transaction 10, so a late copy of the first send is refused before the row can forget the write id.
const SEND_WINDOW: Duration = Duration::from_mins(4);

/// The sends of one logical change: until when they may leave, and what they met so far.
pub(crate) struct Delivery<'a> {
    sender: &'a Sender,
    call: &'a Call,
    window: DualClockDeadline,
    attempts: u32,
    conflicts: Conflicts,
}

/// One send of a write.
pub(crate) struct Send {
    /// How long it waits for its answer.
    pub timeout: Duration,
    /// How often the token of an earlier send was mistaken for another request's.
    pub mismatches: u32,
}

/// What is proved about a write and all its sends.
pub(crate) enum WriteOutcome<A, F> {
    /// It was applied; what the answer to the last send shows of it.
    Applied(A),
    /// The last send was refused.
    Refused(Refusal<F>),
}

/// A send whose condition did not hold.
pub(crate) struct Refusal<F> {
    /// What refused it.
    pub by: F,
    /// How long it took, from the send to its answer.
    pub round_trip: Duration,
    /// An earlier send that was not answered, if there was one: it may have been applied, or may be later.
    pub pending: Option<Source>,
}

impl Refusal<Option<Attributes>> {
    /// What the row that refused says, where there is one, and what is pending: as long as something is, a row that cannot
    /// be read proves nothing.
    pub(crate) fn read<T>(
        self,
        read: impl Fn(&Attributes) -> Result<T, Failure>,
    ) -> Result<(Option<T>, Option<Source>), Failure> {
        match (self.by.as_ref().map(read).transpose(), self.pending) {
            (Ok(read), pending) => Ok((read, pending)),
            (Err(_), Some(source)) => Err(Failure::OutcomeUnknown { source }),
            (Err(failure), None) => Err(failure),
        }
    }
}

impl<'a> Delivery<'a> {
    pub(crate) fn new(sender: &'a Sender, call: &'a Call) -> Self {
        let window = DualClockDeadline::within(SEND_WINDOW, sender.clock.now());
        Delivery { sender, call, window, attempts: 0, conflicts: Conflicts::default() }
    }

    /// Sends one write until an answer says what became of it; after a conflict not before a pause.
    ///
    /// An answer that was lost stays *pending* until a refusal is judged: what a resend is answered
    /// speaks about that resend only. While something is pending, whatever ends the loop without a
    /// refusal ends it as [`Failure::OutcomeUnknown`].
    pub(crate) async fn until_proved<A, F, S>(
        &mut self,
        send: impl Fn(Send) -> S,
    ) -> Result<WriteOutcome<A, F>, Failure>
    where
        S: Future<Output = SendOutcome<A, F>>,
    {
        self.pause_after_conflict().await?;
        let mut pending: Option<Source> = None;
        let mut lost = 0;
        let mut mismatches = 0;
        let mut sends = 0;
        let mut signed_again = false;
        let mut not_now: Option<Source> = None;
        self.attempts += 1;
        self.call.count_attempt();
        loop {
            let Some(timeout) = self.time_to_send(pending.is_some(), lost) else {
                return Err(self.out_of_time(pending, not_now));
            };
            sends += 1;
            let left = self.call.deadline().remaining();
            match send(Send { timeout, mismatches }).await {
                SendOutcome::Applied(shown) => return Ok(WriteOutcome::Applied(shown)),
                SendOutcome::Refused(by) => {
                    let round_trip = left.saturating_sub(self.call.deadline().remaining());
                    return Ok(WriteOutcome::Refused(Refusal { by, round_trip, pending }));
                }
                SendOutcome::NotApplied(source) => not_now = Some(source),
                SendOutcome::Expired(source) if signed_again => return Err(rejected(pending, source)),
                SendOutcome::Expired(source) => {
                    signed_again = true;
                    not_now = Some(source);
                }
                SendOutcome::Rejected(source) => return Err(rejected(pending, source)),
                SendOutcome::Unknown(source) => {
                    debug!(sends, reason = %source, "answer lost");
                    self.call.count_lost_answer();
                    lost += 1;
                    pending = Some(source);
                }
                SendOutcome::Mismatch(source) => {
                    mismatches += 1;
                    pending = Some(source);
                }
            }
            // Never past the deadline, and with time left for one more send: it may prove what became of the last.
            let pause = self.sender.policy.resend_pause(sends, self.sender.rng.next_u64());
            tokio::time::sleep(pause.min(self.call.deadline().remaining() / 2)).await;
        }
    }

    /// Notes that the last attempt lost its race: the item had moved on by `behind` versions.
    pub(crate) fn conflict(&mut self, behind: u64, round_trip: Duration) {
        self.conflicts.met(behind, round_trip);
        self.call.count_conflict();
    }

    /// Waits before another attempt, or says that there is none left. It is the write that waits, not the
    /// decision: an answer that needs no write is given at once.
    async fn pause_after_conflict(&mut self) -> Result<(), Failure> {
        // Steps that name no version are refused without a conflict; they are bounded all the same.
        if self.conflicts.count == 0 && self.attempts < self.sender.policy.max_attempts {
            return Ok(());
        }
        let left = self.call.deadline().remaining();
        let pause = self.sender.policy.conflict_pause(&self.conflicts, self.sender.rng.next_u64()).min(left / 2);
        let enough_time = left > pause + self.sender.policy.first_timeout;
        if self.attempts >= self.sender.policy.max_attempts || !enough_time {
            return Err(Failure::Contention { attempts: self.attempts });
        }
        tokio::time::sleep(pause).await;
        self.conflicts.paused(pause);
        Ok(())
    }

    /// How long the next send may wait for its answer; `None` when it must not be sent any more.
    fn time_to_send(&self, pending: bool, lost: u32) -> Option<Duration> {
        let left = self.call.deadline().remaining();
        // With nothing pending, a send that cannot wait for its answer would only make an unknown.
        let needed = if pending { Duration::from_millis(1) } else { self.sender.policy.first_timeout };
        if left < needed || self.window.remaining(self.sender.clock.now()).is_zero() {
            return None;
        }
        Some(self.sender.policy.timeout(lost, self.sender.connected()).min(left))
    }

    fn out_of_time(&self, pending: Option<Source>, not_now: Option<Source>) -> Failure {
        match (pending, not_now) {
            (Some(source), _) => Failure::OutcomeUnknown { source },
            (None, Some(source)) => Failure::Unavailable { source },
            (None, None) if self.conflicts.count > 0 => Failure::Contention { attempts: self.attempts },
            (None, None) => Failure::Unavailable { source: "no time was left to send the write".into() },
        }
    }
}

/// Reads until it is answered or time is up.
pub(crate) async fn until_read<A, S>(sender: &Sender, call: &Call, read: impl Fn(Duration) -> S) -> Result<A, Failure>
where
    S: Future<Output = ReadOutcome<A>>,
{
    let mut unanswered = 0;
    let mut signed_again = false;
    loop {
        let timeout = sender.policy.timeout(unanswered, sender.connected());
        let source = match read(timeout.min(call.deadline().remaining())).await {
            ReadOutcome::Read(found) => return Ok(found),
            ReadOutcome::Rejected(source) => return Err(Failure::Rejected { source }),
            ReadOutcome::Expired(source) if signed_again => return Err(Failure::Rejected { source }),
            ReadOutcome::Expired(source) => {
                signed_again = true;
                source
            }
            ReadOutcome::Again(source) => source,
        };
        unanswered += 1;
        pause_before_read(sender, call, unanswered, source).await?;
    }
}

/// Waits before something is read again that was asked for `reads` times so far. Fails with `source` if no time is left
/// for the answer.
pub(crate) async fn pause_before_read(sender: &Sender, call: &Call, reads: u32, source: Source) -> Result<(), Failure> {
    let pause = sender.policy.resend_pause(reads, sender.rng.next_u64());
    if call.deadline().remaining() < pause + sender.policy.first_timeout {
        return Err(Failure::Unavailable { source });
    }
    tokio::time::sleep(pause).await;
    Ok(())
}

fn rejected(pending: Option<Source>, source: Source) -> Failure {
    match pending {
        Some(source) => Failure::OutcomeUnknown { source },
        None => Failure::Rejected { source },
    }
}
