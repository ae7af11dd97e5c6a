//! [`RetryPolicy`]: how long to wait between sends and attempts, and what comes before an attempt among [`Rivals`].

use std::time::Duration;

/// The line of writers at an item, as its row shows it.
///
/// It is no lock: nothing is decided by it but how long a writer waits. So a ticket that is lost, taken twice or never used
/// delays others, and endangers nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Line {
    /// The last ticket taken. The first one is 1.
    pub given: u64,
    /// The last ticket whose writer has committed.
    pub served: u64,
}

impl Line {
    /// The tickets between the last one served and this one.
    fn ahead_of(self, ticket: u64) -> u64 {
        ticket.saturating_sub(self.served).saturating_sub(1)
    }
}

/// The place of one writer in a line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) enum Place {
    /// It has not asked for a ticket.
    #[default]
    Outside,
    /// It holds this ticket.
    Ticket(u64),
    /// It was given none, so there is no line for it.
    NoLine,
}

/// What one change knows of the other writers of its item.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Rivals {
    /// The races that it has lost.
    pub conflicts: u32,
    /// Its place in the line at the item.
    pub place: Place,
    /// Whether it has lost a race since it last looked.
    pub is_refused: bool,
    /// Whether the next read is a look.
    pub is_looking: bool,
    /// Whether it has looked since its last race or ticket.
    pub has_looked: bool,
    /// The version at which it saw the item before.
    pub seen: u64,
}

impl Rivals {
    pub fn lost_race(&mut self) {
        self.conflicts += 1;
        (self.is_refused, self.has_looked) = (true, false);
    }

    pub fn has_read(&mut self) {
        if std::mem::take(&mut self.is_looking) {
            (self.is_refused, self.has_looked) = (false, true);
        }
    }

    pub fn has_asked(&mut self, ticket: Option<u64>) {
        self.place = ticket.map_or(Place::NoLine, Place::Ticket);
        self.has_looked = false;
    }

    /// The ticket to store as served. `None` if it has none.
    pub fn ticket(&self) -> Option<u64> {
        if let Place::Ticket(ticket) = self.place { Some(ticket) } else { None }
    }
}

/// What comes before an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Approach {
    /// Nothing: it is sent.
    Send,
    /// A ticket is taken, and its answer shows the item.
    TakeTicket,
    /// After this pause, the rows are read and decided on again.
    Look(Duration),
}

/// The retry policy of one change: how many attempts, and how long a send is awaited.
///
/// Change the fields of the default, and pass it to `Store::with_policy`:
///
/// ```
/// # extern crate fencepost_core as fencepost;
/// let mut policy = fencepost::RetryPolicy::default();
/// policy.max_attempts = 10;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The most attempts (observe-decide-write rounds) before a call fails with *contention*. Default 40. Of 100 writers
    /// on one item, most need three; on one that other programs write too, the unluckiest writer needs about 15. The
    /// deadline usually ends a call first.
    pub max_attempts: u32,
    /// The time without an answer after which an identical second send leaves. Default 150 ms, which is about 30 times
    /// a usual answer of `DynamoDB`. Hardly any request is sent twice. A lost answer is noticed while the row still
    /// remembers the write.
    ///
    /// The first send is still awaited. The first answer with a proof counts. At most two sends are in flight. A client
    /// that was not answered within the last minute sends no second one, because it is probably still connecting. After
    /// a broken connection, the second send also waits for as long as opening one has taken so far.
    pub hedge_after: Duration,
    /// The longest that one send is awaited. Default 2 s, because name look-up and TLS handshake take most of a second
    /// on a 128 MB function, and giving a send up closes its connection. Every two lost answers double it, up to four
    /// times as long, because two sends are in flight together. With 2 s, 4 s and 8 s, a service that is slow, and not
    /// gone, is still heard in a call of 10 s.
    ///
    /// After its first answer, the client knows how long it takes to open a connection. From then on it awaits a send
    /// for twice the longest of these times, but at least for four times `hedge_after` and at most for this long. If both
    /// sends of a write are lost, the next one leaves that soon. The item may be so busy that it has forgotten the write
    /// by then.
    pub send_limit: Duration,
    /// The longest round trip that the pauses assume: 20 ms, because a slow round trip is no reason to wait longer.
    #[doc(hidden)]
    pub max_round_trip: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            max_attempts: 40,
            hedge_after: Duration::from_millis(150),
            send_limit: Duration::from_secs(2),
            max_round_trip: Duration::from_millis(20),
        }
    }
}

/// The time that must be left until the deadline for a first send of a write: about 30 times a usual answer. With less
/// time left, a send would often only turn "not applied" into "unknown".
pub const MIN_SEND_TIME: Duration = Duration::from_millis(150);
/// The bound of the pause before the first resend of a write (after throttling or a lost answer). The pause is drawn
/// between 0 and the bound. Each further resend doubles the bound. A broken connection is followed by another send at
/// once, up to 4 times in a row: after the process was frozen, all connections of its pool may be dead.
const RESEND_PAUSE: Duration = Duration::from_millis(20);
/// The same after a transaction conflict: three times as long as a transaction takes. A refused transaction costs as much
/// as one that counts, and a busy row has others waiting.
const TRANSACTION_PAUSE: Duration = Duration::from_millis(60);
/// The longest bound of the pause between two looks at the holds of an item.
const MAX_HOLD_PAUSE: Duration = Duration::from_millis(250);
const MAX_RESEND_PAUSE: Duration = Duration::from_secs(1);
/// The bound of the first pause after a conflict, in round trips. The pause is drawn between 0 and the bound.
const CONFLICT_PAUSE: u32 = 3;
/// Of ten changes, so many do not pause after their first conflict: if two writers met, nobody is in the way any more.
const AT_ONCE_OF_TEN: u64 = 4;
/// An item that moves on by so many versions during the first pause has a crowd.
const CROWD: u64 = 3;
/// How long a turn at an item is assumed to take, in tenths of a round trip. A writer needs one round trip. If all came
/// that close, each delay would make the next writer find the item taken.
const TENTHS_OF_TURN: u32 = 11;
/// The most turns that a writer waits before it looks again. Writers before it may have left without a write.
const MOST_TURNS: u32 = 128;
/// The longest pause after a conflict. A pause also never takes more than half of the time left.
const MAX_CONFLICT_PAUSE: Duration = Duration::from_millis(3500);

impl RetryPolicy {
    /// The longest that a send is awaited after `lost` lost answers to the same request. `opening` is the longest that
    /// the client took to open a connection and be answered on it. `None` before its first answer.
    pub fn limit_after(&self, opening: Option<Duration>, lost: u32) -> Duration {
        let least = self.hedge_after.saturating_mul(4);
        let first =
            opening.map_or(self.send_limit, |opening| opening.saturating_mul(2).max(least).min(self.send_limit));
        grown(first, 2, lost / 2, self.send_limit.saturating_mul(4))
    }

    /// The pause before the next send of the same write. `sends` counts the sends that failed so far. `is_held`: the last
    /// one met a transaction.
    ///
    /// Uses full jitter: the pause is anywhere between 0 and the bound. `random` (64 random bits) picks it.
    pub fn resend_pause(sends: u32, is_held: bool, random: u64) -> Duration {
        let first = if is_held { TRANSACTION_PAUSE } else { RESEND_PAUSE };
        fraction(grown(first, 2, sends.saturating_sub(1), MAX_RESEND_PAUSE), random)
    }

    /// The pause of a writer in a crowd after it was throttled for this time. The first pause is the longest: whoever came later
    /// waits for those who have waited already.
    pub fn crowded_pause(throttled: u32, random: u64) -> Duration {
        let bound = MAX_RESEND_PAUSE / (1 << throttled.saturating_sub(1).min(4));
        bound / 2 + fraction(bound / 2, random)
    }

    /// The bound of the pause before the holds of an item are looked at again, after so many looks.
    pub fn hold_pause(looks: u32) -> Duration {
        grown(RESEND_PAUSE, 2, looks.saturating_sub(1), MAX_HOLD_PAUSE)
    }

    /// The bound of the pause before an add is sent again after its window has passed. `pauses` counts the pauses, this
    /// one included, and `crowd` the adds of this client that wait at the same item.
    ///
    /// Without a pause, each round trip lets one window of adds through and refuses all others. So the adds spread over
    /// as many round trips as they need if each lets a quarter of a window through. A client that is alone there does
    /// not see the others. It starts at 4 round trips. Each further pause is up to 8 times as long.
    ///
    /// The table shows callers that know nothing of the item and begin at once, with hops of 5 ms each way and a window
    /// of 32. `cargo dev bench` measures it with the real code. Its engine has no capacity, and `DynamoDB` takes 1,000
    /// write units a second on one item. So the times of a thousand callers are left out.
    ///
    /// | callers | requests each, one client | slowest | requests each, a client each | slowest |
    /// |---|---|---|---|---|
    /// | 10 | 2.0 | 20 ms | 2.0 | 20 ms |
    /// | 100 | 2.7 | 0.1 s | 3.0 | 0.1 s |
    /// | 1,000 | 3.0 | | 5.6 | |
    pub fn spread_bound(&self, pauses: u32, crowd: u64, window: u64, round_trip: Duration) -> Duration {
        let round_trip = round_trip.min(self.max_round_trip);
        let together = u32::try_from(crowd.saturating_mul(4) / window.max(1)).unwrap_or(u32::MAX);
        let alone = grown(round_trip.saturating_mul(4), 8, pauses.saturating_sub(1), MAX_CONFLICT_PAUSE);
        round_trip.saturating_mul(together).max(alone).min(MAX_CONFLICT_PAUSE)
    }

    /// What comes before the next attempt of a change that knows this of the other writers. `line` is that at the item, if
    /// it has one, and `version` that of the row on which the change was decided.
    ///
    /// A refused write costs as much as one that counts, and five times a strongly consistent read. So a change looks by a
    /// read where its write would probably be refused, and a pause comes before the look, since it makes every row old.
    ///
    /// 1. A change without a conflict is sent. If others wait in line, it takes a ticket first.
    /// 2. After the first conflict, four of ten changes are sent at once, on the row of the refusal. The others pause for at
    ///    most three round trips and look. An item that has moved on by three versions has a crowd: they take a ticket.
    /// 3. After the second conflict, every change takes a ticket.
    /// 4. In line, it waits for the turns ahead of it, less the round trip of its look. It is sent if its turn has come, or
    ///    if the item has stood still since it last looked: those ahead have left.
    /// 5. Where there is no line, the bound of the pause doubles with each conflict.
    ///
    /// All pauses are measured in round trips, because the round trip decides whether two attempts meet: an attempt wins if
    /// nobody commits between the sight of its row and its write, one round trip later.
    pub(crate) fn approach(
        &self,
        rivals: &Rivals,
        line: Option<Line>,
        version: u64,
        round_trip: Duration,
        random: u64,
    ) -> Approach {
        let moved = version.saturating_sub(rivals.seen);
        match (line, rivals.place) {
            (Some(line), Place::Ticket(ticket)) => {
                let ahead = line.ahead_of(ticket);
                let is_abandoned = rivals.has_looked && moved == 0;
                if ahead == 0 || is_abandoned {
                    Approach::Send
                } else {
                    Approach::Look(self.pause_in_line(ahead, round_trip))
                }
            }
            (Some(line), Place::Outside)
                if line.given > line.served || rivals.conflicts > 1 || rivals.has_looked && moved >= CROWD =>
            {
                Approach::TakeTicket
            }
            _ if !rivals.is_refused || rivals.conflicts == 1 && random % 10 < AT_ONCE_OF_TEN => Approach::Send,
            _ => Approach::Look(fraction(self.conflict_bound(rivals.conflicts, round_trip), random)),
        }
    }

    /// The pause of a writer with this many others ahead of it in the line at an item.
    fn pause_in_line(&self, ahead: u64, round_trip: Duration) -> Duration {
        let round_trip = round_trip.min(self.max_round_trip);
        let turns = u32::try_from(ahead).unwrap_or(MOST_TURNS).min(MOST_TURNS);
        let wait = (round_trip.saturating_mul(turns * TENTHS_OF_TURN) / 10).saturating_sub(round_trip);
        wait.min(MAX_CONFLICT_PAUSE)
    }

    /// The bound of the pause after so many conflicts.
    fn conflict_bound(&self, conflicts: u32, round_trip: Duration) -> Duration {
        let first = round_trip.min(self.max_round_trip).saturating_mul(CONFLICT_PAUSE);
        grown(first, 2, conflicts.saturating_sub(1), MAX_CONFLICT_PAUSE)
    }
}

/// `first` times `factor` to the power of `times`, but at most `cap`.
fn grown(first: Duration, factor: u32, times: u32, cap: Duration) -> Duration {
    let factor = factor.checked_pow(times).unwrap_or(u32::MAX);
    first.checked_mul(factor).map_or(cap, |grown| grown.min(cap))
}

/// The part of `bound` that `random` picks: 0 gives zero, `u64::MAX` gives nearly all of it.
pub fn fraction(bound: Duration, random: u64) -> Duration {
    let nanos = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
    let part = (u128::from(nanos) * u128::from(random)) >> 64;
    Duration::from_nanos(u64::try_from(part).unwrap_or(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(10);

    #[test]
    fn pauses_stay_within_their_bounds_however_often_it_is_tried() {
        let policy = RetryPolicy::default();
        for round in 0..200 {
            for random in [0, 1, u64::MAX / 2, u64::MAX] {
                assert!(policy.conflict_bound(round, Duration::from_millis(1 << (round % 20))) <= MAX_CONFLICT_PAUSE);
                assert!(RetryPolicy::resend_pause(round, true, random) <= MAX_RESEND_PAUSE);
                assert!(policy.limit_after(None, round) <= 4 * policy.send_limit);
            }
        }
    }

    #[test]
    fn the_limit_of_a_send_doubles_with_every_second_lost_answer() {
        let policy = RetryPolicy::default();
        let millis: Vec<_> = (0..8).map(|lost| policy.limit_after(None, lost).as_millis()).collect();
        assert_eq!(millis, [2000, 2000, 4000, 4000, 8000, 8000, 8000, 8000]);
    }

    #[test]
    fn after_the_first_answer_a_send_is_awaited_for_twice_the_time_that_a_connection_takes_to_open() {
        let limit =
            |opening, lost| RetryPolicy::default().limit_after(Some(Duration::from_millis(opening)), lost).as_millis();
        assert_eq!([limit(0, 0), limit(300, 0), limit(400, 0), limit(1000, 0)], [600, 600, 800, 2000]);
        assert_eq!([limit(1100, 0), limit(u64::MAX, 0)], [2000, 2000], "no longer than before the first answer");
        assert_eq!([limit(30, 1), limit(30, 2), limit(30, 4), limit(30, 8)], [600, 1200, 2400, 8000]);
    }

    const EMPTY: Line = Line { given: 4, served: 4 };
    /// A random number that says "wait".
    const WAIT: u64 = u64::MAX;
    /// One that says "at once".
    const NOW: u64 = 3;

    /// What a writer does at version 10 after so many conflicts, refused or having looked since at version `seen`.
    fn approach(conflicts: u32, place: Place, seen: Option<u64>, line: Option<Line>, random: u64) -> Approach {
        let (is_refused, has_looked) = (conflicts > 0 && seen.is_none(), seen.is_some());
        let seen = seen.unwrap_or(10);
        let rivals = Rivals { conflicts, place, is_refused, has_looked, seen, is_looking: false };
        RetryPolicy::default().approach(&rivals, line, 10, ROUND_TRIP, random)
    }

    fn look(millis: u64) -> Approach {
        Approach::Look(Duration::from_millis(millis).saturating_sub(Duration::from_nanos(1)))
    }

    #[test]
    fn a_writer_is_sent_looks_or_takes_a_ticket_by_what_it_knows_of_the_others() {
        let waiting = Line { given: 5, ..EMPTY };
        for (name, conflicts, seen, line, random, expected) in [
            ("nobody was met", 0, None, Some(EMPTY), WAIT, Approach::Send),
            ("others wait", 0, None, Some(waiting), WAIT, Approach::TakeTicket),
            ("others wait where no line is", 0, None, None, WAIT, Approach::Send),
            ("four of ten are sent at once", 1, None, Some(EMPTY), NOW, Approach::Send),
            ("the others wait", 1, None, Some(EMPTY), WAIT, look(30)),
            ("the item stood still", 1, Some(10), Some(EMPTY), WAIT, Approach::Send),
            ("it moved a little", 1, Some(8), Some(EMPTY), WAIT, Approach::Send),
            ("it moved fast", 1, Some(7), Some(EMPTY), WAIT, Approach::TakeTicket),
            ("others have come meanwhile", 1, Some(10), Some(waiting), NOW, Approach::TakeTicket),
            ("twice refused", 2, None, Some(EMPTY), NOW, Approach::TakeTicket),
            ("twice refused where no line is", 2, None, None, WAIT, look(60)),
            ("ten times", 10, None, None, WAIT, look(3500)),
            ("it moved fast where no line is", 2, Some(1), None, WAIT, Approach::Send),
        ] {
            assert_eq!(approach(conflicts, Place::Outside, seen, line, random), expected, "{name}");
        }
        let no_line = |seen| approach(1, Place::NoLine, seen, Some(waiting), WAIT);
        assert_eq!((no_line(None), no_line(Some(1))), (look(30), Approach::Send), "no ticket was given");
        let drawn = (20..40).filter(|&random| approach(1, Place::Outside, None, Some(EMPTY), random) == Approach::Send);
        assert_eq!(drawn.count(), 8, "four of ten");
    }

    #[test]
    fn a_writer_in_line_waits_for_the_turns_before_it_less_the_round_trip_of_its_look() {
        let place = |ticket, seen| approach(1, Place::Ticket(ticket), seen, Some(EMPTY), WAIT);
        let millis = |ticket| match place(ticket, None) {
            Approach::Look(pause) => pause.as_millis(),
            other => panic!("{other:?}"),
        };
        assert_eq!([6, 7, 15, 105].map(millis), [1, 12, 100, 1090]);
        assert_eq!([133, 134, u64::MAX].map(millis), [1398; 3], "it looks again");
        assert_eq!([place(5, None), place(3, None)], [Approach::Send; 2], "its turn has come");
        assert_eq!(place(6, Some(10)), Approach::Send, "those ahead have left");
        assert_eq!(place(6, Some(9)), Approach::Look(Duration::from_millis(1)), "they are at work");
    }

    #[test]
    fn pauses_are_as_long_as_round_trips_make_them_but_a_slow_one_is_no_reason_to_wait() {
        let first = |millis| RetryPolicy::default().conflict_bound(1, Duration::from_millis(millis)).as_millis();
        assert_eq!([first(4), first(10), first(20), first(2000)], [12, 30, 60, 60]);
    }

    #[test]
    fn only_a_look_ends_the_wait_after_a_lost_race() {
        let mut rivals = Rivals::default();
        rivals.lost_race();
        rivals.has_read();
        assert!(rivals.is_refused && !rivals.has_looked, "another read is no look");
        rivals.is_looking = true;
        rivals.has_read();
        assert!(!rivals.is_refused && rivals.has_looked && !rivals.is_looking);
        rivals.has_asked(Some(7));
        assert_eq!((rivals.ticket(), rivals.has_looked), (Some(7), false), "its turns begin here");
        rivals.has_asked(None);
        assert_eq!((rivals.ticket(), rivals.place), (None, Place::NoLine));
    }

    #[test]
    fn an_add_waits_for_as_long_as_the_known_crowd_needs_and_longer_each_time_if_it_sees_no_other() {
        let policy = RetryPolicy::default();
        let bound = |pauses, crowd| policy.spread_bound(pauses, crowd, 32, ROUND_TRIP).as_millis();
        assert_eq!([1, 2, 3, 4, u32::MAX].map(|pauses| bound(pauses, 1)), [40, 320, 2560, 3500, 3500]);
        assert_eq!([32, 320, 1000, u64::MAX / 4].map(|crowd| bound(1, crowd)), [40, 400, 1250, 3500]);
        assert_eq!(bound(2, 1000), 1250, "the longer one counts");
        let slow = policy.spread_bound(1, 1, 32, Duration::from_secs(2));
        assert_eq!(slow, 4 * policy.max_round_trip, "a slow round trip is no reason to wait");
    }
}
