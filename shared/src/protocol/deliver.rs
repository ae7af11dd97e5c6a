//! [`Delivery`]: one logical change. It sends each write until the outcome is proved.

use crate::call::Call;
use crate::error::{Failure, Source};
use crate::protocol::condition::ConditionalWrite;
use crate::protocol::hedge::Race;
use crate::protocol::item::Attributes;
use crate::protocol::patience::Patience;
use crate::protocol::send::{Address, ReadOutcome, Send, SendOutcome, Sender, send_span};
use crate::retry::{Conflicts, DualClockDeadline, Line, MIN_SEND_TIME, RetryPolicy, fraction};
use std::pin::Pin;
use std::time::{Duration, SystemTime};
use std::{marker, mem};
use tracing::debug;
use tracing::instrument::{Instrument, Instrumented};

/// The time in which all sends of one change leave, counted from the start of the change. A signature lives for 5
/// minutes from its date; a clock may be ahead by almost as much. So all copies are gone 14 minutes after the start.
pub(super) const SEND_WINDOW: Duration = Duration::from_mins(4);
/// The same where only a token keeps a second copy from being applied. `DynamoDB` knows a token for 10 minutes, so all
/// copies must be gone by then: 1 minute, 5 for the life of a signature, and 4 for a clock ahead.
const SEND_WINDOW_OF_TOKEN: Duration = Duration::from_mins(1);

type Boxed<'s, T> = Pin<Box<dyn Future<Output = T> + marker::Send + 's>>;

/// The sends of one logical change, with the window in which they may leave and the conflicts so far.
pub(crate) struct Delivery<'a> {
    pub(crate) sender: &'a Sender,
    pub(crate) call: &'a Call,
    window: DualClockDeadline,
    signed_by: SystemTime,
    attempts: u32,
    conflicts: Conflicts,
    pub(crate) line: Line,
    /// The time left at the last conflict.
    left: Duration,
    pub(crate) round_trip: Duration,
}

/// The last send of a write, refused because its condition did not hold.
pub(crate) struct Refusal<F> {
    pub by: F,
    /// Set if another send may have been applied, or may still be: its answer was lost or is still awaited.
    pub pending: Option<Source>,
}

impl Refusal<Option<Attributes>> {
    /// Reads the refusing row, if there is one. Returns it with the pending send. While a send is pending, an
    /// unreadable row means `OutcomeUnknown`.
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

    pub(crate) fn read_row<T>(
        self,
        read: impl Fn(&Attributes) -> Result<T, Failure>,
    ) -> Result<(T, Option<Source>), Failure> {
        match self.read(read)? {
            (Some(row), pending) => Ok((row, pending)),
            (None, Some(source)) => Err(Failure::OutcomeUnknown { source }),
            (None, None) => Err(Failure::CorruptItem { reason: "a write was refused where no row is".to_owned() }),
        }
    }
}

impl<'a> Delivery<'a> {
    pub(crate) fn new(sender: &'a Sender, call: &'a Call) -> Self {
        Delivery::of(sender, call, false)
    }

    /// `relies_on_token`: only a token keeps second copies of its sends from being applied.
    pub(crate) fn of(sender: &'a Sender, call: &'a Call, relies_on_token: bool) -> Self {
        let time = if relies_on_token { SEND_WINDOW_OF_TOKEN } else { SEND_WINDOW };
        let now = sender.clock.now();
        let window = DualClockDeadline::within(time, now);
        let signed_by = now + time;
        let left = call.deadline().remaining();
        Delivery {
            sender,
            call,
            window,
            signed_by,
            attempts: 0,
            conflicts: Conflicts::default(),
            line: Line::default(),
            left,
            round_trip: Duration::ZERO,
        }
    }

    /// Sends one write until an answer proves the outcome: the write is shown as applied, or the last send was refused.
    /// If the previous attempt lost a race, waits first.
    ///
    /// If a send is not answered soon, an identical one follows, and both are awaited. The first proof decides.
    ///
    /// After a lost answer, a send stays *pending* until a refusal is judged, because the answer to a resend speaks
    /// only of the resend. A send still in flight at a refusal is pending too. While a send is pending, the loop ends
    /// with a success, a refusal or [`Failure::OutcomeUnknown`].
    ///
    /// The sends are boxed, so that the loop is compiled once for each kind of outcome, not for each of its callers.
    pub(crate) async fn until_proved<'s, A, F, S>(
        &mut self,
        send: impl Fn(Send) -> S + Sync,
    ) -> Result<Result<A, Refusal<F>>, Failure>
    where
        S: Future<Output = SendOutcome<A, F>> + marker::Send + 's,
    {
        self.deliver(&|sent| Box::pin(send(sent))).await
    }

    /// Sends a write of one row [until its outcome is proved](Delivery::until_proved). Returns the shown row.
    pub(crate) async fn write(
        &mut self,
        table: &str,
        write: &ConditionalWrite,
    ) -> Result<Result<Option<Attributes>, Refusal<Option<Attributes>>>, Failure> {
        let sender = self.sender;
        self.until_proved(|send| sender.write(table, write.clone(), send)).await
    }

    async fn deliver<'s, A, F>(
        &mut self,
        send: &(dyn Fn(Send) -> Boxed<'s, SendOutcome<A, F>> + Sync),
    ) -> Result<Result<A, Refusal<F>>, Failure> {
        self.pause_after_conflict().await?;
        self.attempts += 1;
        self.call.count_attempt();
        let mut race = Race::new();
        let mut sends = Sends::default();
        // Why the next send leaves, in one word for its span.
        let mut why = if self.attempts == 1 { FIRST } else { "conflict" };
        loop {
            let Some((outcome, (left_at_send, was_signed_again, span))) = race.next().await else {
                let is_pending = sends.pending.is_some() || race.is_in_flight();
                match self.time_to_send(is_pending, &sends.patience) {
                    Some(timeout) => {
                        let why = mem::replace(&mut why, HEDGE);
                        if why == FIRST {
                            self.call.count_change();
                        }
                        let span = send_span(self.attempts, why);
                        let request = send(Send { timeout, signed_by: self.signed_by, mismatches: sends.mismatches })
                            .instrument(span.clone());
                        let note = (self.call.deadline().remaining(), sends.signed_again, span);
                        race.send(request, note, self.sender.hedge_after());
                    }
                    None if race.is_in_flight() => {}
                    None => return Err(self.out_of_time(sends)),
                }
                continue;
            };
            why = outcome.name();
            span.record("outcome", why);
            match outcome {
                SendOutcome::Applied(shown) => {
                    self.sender.budget.answered(sends.patience.is_throttled());
                    return Ok(Ok(shown));
                }
                SendOutcome::Refused(by) => {
                    self.sender.budget.answered(sends.patience.is_throttled());
                    self.round_trip = left_at_send.saturating_sub(self.call.deadline().remaining());
                    let unanswered = || race.is_in_flight().then(|| "another send is not answered yet".into());
                    let pending = sends.pending.or_else(unanswered);
                    return Ok(Err(Refusal { by, pending }));
                }
                SendOutcome::NotApplied(source) => {
                    self.call.count_not_now(&source);
                    sends.not_applied(source);
                }
                SendOutcome::Expired(source) if was_signed_again => sends.rejected = Some(source),
                SendOutcome::Expired(source) => {
                    sends.signed_again = true;
                    sends.not_applied(source);
                }
                SendOutcome::Rejected(source) => sends.rejected = Some(source),
                SendOutcome::Unknown(source) => {
                    self.call.count_lost_answer();
                    sends.lost(source);
                }
                SendOutcome::Broken(source) => {
                    self.call.count_lost_answer();
                    sends.broken(source);
                }
                SendOutcome::Mismatch(source) => sends.mismatch(source),
            }
            if sends.rejected.is_some() {
                if race.is_in_flight() {
                    continue;
                }
                return Err(sends.rejected());
            }
            let is_too_much = sends.patience.is_throttled() && !self.sender.budget.pay();
            if is_too_much && sends.pending.is_none() && !race.is_in_flight() {
                return Err(self.out_of_time(sends));
            }
            // The pause leaves time for one more send, which may prove the outcome of the last one.
            let pause = sends.patience.pause(self.sender.rng.next_u64());
            race.send_after(pause.min(self.call.deadline().remaining() / 2));
        }
    }

    /// The failure of a change that gives up after these attempts.
    pub(crate) fn contention(&self) -> Failure {
        Failure::Contention { attempts: self.attempts }
    }

    /// Records that the last attempt lost its race. The item had moved on by `behind` versions.
    pub(crate) fn conflict(&mut self, behind: u64) {
        let left = self.call.deadline().remaining();
        let observed = mem::replace(&mut self.left, left).saturating_sub(left);
        self.conflicts.met(behind, observed, self.round_trip);
        self.call.count_conflict();
    }

    /// Whether an attempt has just lost its race for the first time.
    pub(crate) fn met_others(&self) -> bool {
        self.conflicts.count == 1
    }

    /// Waits for a part of `bound`, and for at most half of the time left.
    pub(crate) async fn spread(&self, bound: Duration) -> Result<(), Failure> {
        let left = self.call.deadline().remaining();
        let pause = fraction(bound, self.sender.rng.next_u64()).min(left / 2);
        if left <= pause.saturating_add(MIN_SEND_TIME) {
            return Err(self.contention());
        }
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// Waits before the next attempt after a conflict. Fails if no attempts or no time are left. The pause is here,
    /// before the write, not before the decision. So an answer without a write is given at once.
    async fn pause_after_conflict(&mut self) -> Result<(), Failure> {
        // Steps without a version are refused without a conflict. The number of attempts bounds them too.
        if self.conflicts.count == 0 && self.attempts < self.sender.policy.max_attempts {
            return Ok(());
        }
        let left = self.call.deadline().remaining();
        let policy = &self.sender.policy;
        let pause = match self.line.ahead() {
            Some(ahead) => policy.pause_in_line(ahead, self.round_trip),
            None => policy.conflict_pause(&self.conflicts, self.sender.rng.next_u64()),
        };
        let pause = pause.min(left / 2);
        let enough_time = left > pause.saturating_add(MIN_SEND_TIME);
        if self.attempts >= self.sender.policy.max_attempts || !enough_time {
            return Err(self.contention());
        }
        tokio::time::sleep(pause).await;
        self.conflicts.paused(pause);
        Ok(())
    }

    /// The timeout of the next send. `None` if it must not be sent any more.
    fn time_to_send(&self, is_pending: bool, patience: &Patience) -> Option<Duration> {
        let left = self.call.deadline().remaining();
        // With nothing pending, a send without time for its answer would only turn "not applied" into "unknown".
        let needed = if is_pending { Duration::from_millis(1) } else { MIN_SEND_TIME };
        if left < needed || self.window.remaining(self.sender.clock.now()).is_zero() {
            return None;
        }
        Some(self.sender.send_limit(patience.lost_answers()).min(left))
    }

    fn out_of_time(&self, sends: Sends) -> Failure {
        match (sends.pending, sends.not_now) {
            (Some(source), _) => Failure::OutcomeUnknown { source },
            (None, Some(source)) => Failure::Unavailable { source },
            (None, None) if self.conflicts.count > 0 => self.contention(),
            (None, None) => Failure::Unavailable { source: "no time was left to send the write".into() },
        }
    }
}

const FIRST: &str = "first";

const HEDGE: &str = "hedge";

/// The findings from the ended sends of one write, as long as none decides.
#[derive(Default)]
struct Sends {
    patience: Patience,
    /// Set if a send may have been applied, or may still be.
    pending: Option<Source>,
    not_now: Option<Source>,
    rejected: Option<Source>,
    mismatches: u32,
    signed_again: bool,
}

impl Sends {
    fn not_applied(&mut self, source: Source) {
        self.patience.not_now(&source);
        self.not_now = Some(source);
    }

    fn lost(&mut self, source: Source) {
        debug!(reason = %source, "answer lost");
        self.patience.lost();
        self.pending = Some(source);
    }

    fn broken(&mut self, source: Source) {
        debug!(reason = %source, "connection broken");
        self.patience.broken();
        self.pending = Some(source);
    }

    fn mismatch(&mut self, source: Source) {
        self.patience.not_applied();
        self.mismatches += 1;
        self.pending = Some(source);
    }

    fn rejected(self) -> Failure {
        match (self.pending, self.rejected) {
            (Some(source), _) => Failure::OutcomeUnknown { source },
            (None, source) => Failure::Rejected { source: source.unwrap_or_else(|| "it was rejected".into()) },
        }
    }
}

/// Reads until an answer arrives or time is up. A second one hedges a late one.
pub(crate) async fn until_read<A, S>(sender: &Sender, call: &Call, read: impl Fn(Duration) -> S) -> Result<A, Failure>
where
    S: Future<Output = ReadOutcome<A>>,
{
    let mut race = Race::<Instrumented<S>, _>::new();
    let mut patience = Patience::default();
    let mut signed_again = false;
    let mut why = FIRST;
    loop {
        let Some((outcome, (was_signed_again, span))) = race.next().await else {
            let timeout = sender.send_limit(patience.lost_answers()).min(call.deadline().remaining());
            let span = send_span(0, mem::replace(&mut why, HEDGE));
            race.send(read(timeout).instrument(span.clone()), (signed_again, span), sender.hedge_after());
            continue;
        };
        why = outcome.name_of_read();
        span.record("outcome", why);
        let source = match outcome {
            SendOutcome::Applied(found) => {
                sender.budget.answered(patience.is_throttled());
                return Ok(found);
            }
            SendOutcome::Refused(never) => match never {},
            SendOutcome::Rejected(source) => return Err(Failure::Rejected { source }),
            SendOutcome::Expired(source) if was_signed_again => return Err(Failure::Rejected { source }),
            SendOutcome::Expired(source) => {
                signed_again = true;
                patience.not_applied();
                source
            }
            SendOutcome::NotApplied(source) => {
                call.count_not_now(&source);
                patience.not_now(&source);
                source
            }
            SendOutcome::Unknown(source) | SendOutcome::Mismatch(source) => {
                patience.lost();
                source
            }
            SendOutcome::Broken(source) => {
                patience.broken();
                source
            }
        };
        let pause = patience.pause(sender.rng.next_u64());
        let is_too_much = patience.is_throttled() && !sender.budget.pay();
        if has_time_to_read(call, pause) && !is_too_much {
            race.send_after(pause);
        } else if !race.is_in_flight() {
            return Err(Failure::Unavailable { source });
        }
    }
}

/// Waits before the next read. Fails with `source` if no time would be left for an answer.
pub(crate) async fn pause_before_read(sender: &Sender, call: &Call, reads: u32, source: Source) -> Result<(), Failure> {
    let pause = RetryPolicy::resend_pause(reads, sender.rng.next_u64());
    if !has_time_to_read(call, pause) {
        return Err(Failure::Unavailable { source });
    }
    tokio::time::sleep(pause).await;
    Ok(())
}

fn has_time_to_read(call: &Call, pause: Duration) -> bool {
    call.deadline().remaining() >= pause.saturating_add(MIN_SEND_TIME)
}

/// The most rows of one batch (`DynamoDB` quota).
pub(crate) const MAX_ROWS: usize = 100;

/// Reads at most [`MAX_ROWS`] different rows until all are answered or time is up, and returns them in the order of
/// `rows`. Asks again, after a pause, for those missing from an answer.
pub(crate) async fn read_rows(
    sender: &Sender,
    call: &Call,
    rows: &[Address],
) -> Result<Vec<Option<Attributes>>, Failure> {
    let mut found = vec![None; rows.len()];
    let mut left: Vec<usize> = (0..rows.len()).collect();
    let mut batches = 0;
    while !left.is_empty() {
        if batches > 0 {
            let source = "some rows were not read: the table is throttled, or the answer was full".into();
            pause_before_read(sender, call, batches, source).await?;
        }
        batches += 1;
        let asked: Vec<Address> = left.iter().map(|&at| rows[at].clone()).collect();
        let mut answered = until_read(sender, call, |timeout| sender.read_batch(&asked, timeout)).await?;
        let mut position = 0..;
        left.retain(|&at| {
            let item = position.next().and_then(|position| answered.remove(&position));
            let is_left_out = item.is_none();
            found[at] = item.flatten();
            is_left_out
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_shows_no_row_is_unknown_while_a_send_is_pending() {
        let read = |pending: Option<Source>| Refusal { by: None, pending }.read_row(|_| Ok(())).map(drop);
        let (unknown, corrupt) = (read(Some("lost".into())), read(None));
        assert!(matches!(unknown, Err(Failure::OutcomeUnknown { .. })), "{unknown:?}");
        assert!(matches!(corrupt, Err(Failure::CorruptItem { .. })), "{corrupt:?}");
    }
}
