//! [`Delivery`]: one logical change. It sends each write until the outcome is proved.

use crate::call::Call;
use crate::error::{Failure, Source};
use crate::protocol::item::Attributes;
use crate::protocol::send::{ReadOutcome, SendOutcome, Sender};
use crate::retry::{Conflicts, DualClockDeadline, fraction};
use std::time::Duration;
use tracing::debug;

/// The time in which all sends of one change leave, counted from the start of the change. A signature lives about 5
/// minutes and the token of a transaction 10. So a late copy of the first send is refused before the row can forget the
/// write id.
const SEND_WINDOW: Duration = Duration::from_mins(4);

/// The sends of one logical change: the window in which they may leave, and the conflicts so far.
pub(crate) struct Delivery<'a> {
    sender: &'a Sender,
    call: &'a Call,
    window: DualClockDeadline,
    attempts: u32,
    conflicts: Conflicts,
}

/// One send of a write.
pub(crate) struct Send {
    /// The time to wait for the answer.
    pub timeout: Duration,
    /// The number of earlier sends whose token `DynamoDB` took for the token of another request.
    pub mismatches: u32,
}

/// The proved outcome of a write and all its sends.
pub(crate) enum WriteOutcome<A, F> {
    /// The write was applied. Holds the attributes that the last answer returned.
    Applied(A),
    /// The last send was refused.
    Refused(Refusal<F>),
}

/// A send whose condition did not hold.
pub(crate) struct Refusal<F> {
    /// The row, or the reasons, of the refusal.
    pub by: F,
    /// The time from the send to its answer.
    pub round_trip: Duration,
    /// Set if the answer to an earlier send was lost. That send may have been applied, or may still be.
    pub pending: Option<Source>,
}

impl Refusal<Option<Attributes>> {
    /// Reads the row that refused, if there is one. Returns it with the pending send. While a send is pending, a row
    /// that cannot be read means `OutcomeUnknown`.
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

    /// Sends one write until an answer proves the outcome. If the previous attempt lost a race, waits first.
    ///
    /// A send whose answer was lost stays *pending* until a refusal is judged, because the answer to a resend speaks
    /// about that resend only. While a send is pending, the loop ends with a success, a refusal or
    /// [`Failure::OutcomeUnknown`].
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
            // The pause leaves time for one more send before the deadline, because that send may prove the outcome of
            // the last one.
            let pause = self.sender.policy.resend_pause(sends, self.sender.rng.next_u64());
            tokio::time::sleep(pause.min(self.call.deadline().remaining() / 2)).await;
        }
    }

    /// Records that the last attempt lost its race. The item had moved on by `behind` versions.
    pub(crate) fn conflict(&mut self, behind: u64, round_trip: Duration) {
        self.conflicts.met(behind, round_trip);
        self.call.count_conflict();
    }

    /// Waits for a part of `bound`, and for at most half of the time left.
    pub(crate) async fn spread(&self, bound: Duration) -> Result<(), Failure> {
        let left = self.call.deadline().remaining();
        let pause = fraction(bound, self.sender.rng.next_u64()).min(left / 2);
        if left <= pause.saturating_add(self.sender.policy.first_timeout) {
            return Err(Failure::Contention { attempts: self.attempts });
        }
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// Waits before the next attempt after a conflict. Fails if no attempts or no time are left. The pause is here,
    /// before the write, and not before the decision. So an answer that needs no write is given at once.
    async fn pause_after_conflict(&mut self) -> Result<(), Failure> {
        // Steps without a version are refused without a conflict. The number of attempts bounds them too.
        if self.conflicts.count == 0 && self.attempts < self.sender.policy.max_attempts {
            return Ok(());
        }
        let left = self.call.deadline().remaining();
        let pause = self.sender.policy.conflict_pause(&self.conflicts, self.sender.rng.next_u64()).min(left / 2);
        let enough_time = left > pause.saturating_add(self.sender.policy.first_timeout);
        if self.attempts >= self.sender.policy.max_attempts || !enough_time {
            return Err(Failure::Contention { attempts: self.attempts });
        }
        tokio::time::sleep(pause).await;
        self.conflicts.paused(pause);
        Ok(())
    }

    /// The timeout of the next send. `None` if it must not be sent any more.
    fn time_to_send(&self, pending: bool, lost: u32) -> Option<Duration> {
        let left = self.call.deadline().remaining();
        // With nothing pending, a send that cannot wait for its answer would only turn "not applied" into "unknown".
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

/// Reads until an answer arrives or time is up.
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

/// Waits before the next read. `reads` counts the reads so far. Fails with `source` if no time would be left for an
/// answer.
pub(crate) async fn pause_before_read(sender: &Sender, call: &Call, reads: u32, source: Source) -> Result<(), Failure> {
    let pause = sender.policy.resend_pause(reads, sender.rng.next_u64());
    if call.deadline().remaining() < pause.saturating_add(sender.policy.first_timeout) {
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
