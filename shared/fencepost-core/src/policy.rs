//! [`RetryPolicy`]: how long to wait between sends and attempts, also in a [`Line`].

use std::time::Duration;

/// The conflicts of one change so far.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Conflicts {
    pub count: u32,
    pub pauses: u32,
    /// Conflicts since the last pause. 1 means that only the first attempt after the pause has lost.
    pub since_pause: u32,
    /// The time from the conflict before to the last one. Pauses and waits are part of it.
    pub observed: Duration,
    pub round_trip: Duration,
    /// The number of versions that the item moved on between its observation and the last refusal.
    pub behind: u64,
}

impl Conflicts {
    pub fn met(&mut self, behind: u64, observed: Duration, round_trip: Duration) {
        self.count += 1;
        self.since_pause += 1;
        self.behind = behind;
        self.observed = observed;
        self.round_trip = round_trip;
    }

    pub fn paused(&mut self, pause: Duration) {
        if !pause.is_zero() {
            self.pauses += 1;
            self.since_pause = 0;
        }
    }

    /// Whether other writers commit more than twice in five round trips. At that rate, a fresh attempt meets one of
    /// them about every second time. A single commit shows no rate, however short the time in which it was made.
    fn crowded(&self) -> bool {
        let observed = self.observed.saturating_mul(2);
        u32::try_from(self.behind)
            .map_or(true, |behind| behind > 1 && self.round_trip.saturating_mul(behind).saturating_mul(5) > observed)
    }
}

/// The place of one writer among those that wait for their turn at an item.
///
/// It is no lock: nothing is decided by it but how long a writer waits. So a ticket that is lost, taken twice or never used
/// delays others, and endangers nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Line {
    /// The number of the ticket, counted from 1 per item. `None` if none was taken.
    pub ticket: Option<u64>,
    /// The last ticket whose writer has committed, as far as this writer has seen.
    pub served: u64,
}

impl Line {
    /// The tickets between the last one served and that of this writer. `None` if it has no ticket.
    pub fn ahead(self) -> Option<u64> {
        Some(self.ticket?.saturating_sub(self.served).saturating_sub(1))
    }

    /// The last ticket served once this writer has committed. `None` if it has no ticket.
    pub fn served_then(self) -> Option<u64> {
        Some(self.ticket?.max(self.served))
    }
}

/// The retry policy of one change: how many attempts, and how long a send is awaited.
///
/// Change the fields of the default, and pass it to `Store::with_policy`:
///
/// ```
/// let mut policy = fencepost_core::RetryPolicy::default(); // also `fencepost::RetryPolicy`
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
/// The bound of the pause before the first resend of a write (after throttling, a transaction conflict or a lost
/// answer). The pause is drawn between 0 and the bound. Each further resend doubles the bound. A broken connection is
/// followed by another send at once, up to 4 times in a row: after the process was frozen, all connections of its pool may
/// be dead.
const RESEND_PAUSE: Duration = Duration::from_millis(20);
const MAX_RESEND_PAUSE: Duration = Duration::from_secs(1);
/// The bound of the first pause after a conflict, in round trips. The pause is drawn between 0 and the bound. It lets ten
/// writers that met once pass each other.
const CONFLICT_PAUSE: u32 = 25;
/// The bound of every later pause after a conflict, in round trips: enough for a hundred writers.
const CROWD_PAUSE: u32 = 350;
/// The number of attempts in a row after a pause. Each is made at once, on the item that the last refusal returned.
const FRESH_ATTEMPTS: u32 = 3;
/// How long a turn at an item is assumed to take, in tenths of a round trip. A writer needs one round trip. If all came
/// that close, each delay would make the next writer find the item taken.
const TENTHS_OF_TURN: u32 = 12;
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

    /// The pause before the next send of the same write. `sends` counts the sends that failed so far.
    ///
    /// Uses full jitter: the pause is anywhere between 0 and the bound. `random` (64 random bits) picks it.
    pub fn resend_pause(sends: u32, random: u64) -> Duration {
        fraction(grown(RESEND_PAUSE, 2, sends.saturating_sub(1), MAX_RESEND_PAUSE), random)
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

    /// The pause of a writer with this many others ahead of it in the line at an item.
    ///
    /// Its next attempt is the look that tells whether its turn has come: if the row has moved on, the refusal shows the
    /// row, and the attempt after it follows at once. So it begins one round trip early.
    pub fn pause_in_line(&self, ahead: u64, round_trip: Duration) -> Duration {
        let round_trip = round_trip.min(self.max_round_trip);
        let turns = u32::try_from(ahead).unwrap_or(MOST_TURNS).min(MOST_TURNS);
        let wait = (round_trip.saturating_mul(turns * TENTHS_OF_TURN) / 10).saturating_sub(round_trip);
        wait.min(MAX_CONFLICT_PAUSE)
    }

    /// The pause before the next attempt of a change without a place in a line, given its `conflicts` so far.
    ///
    /// All pauses are measured in round trips, because the round trip decides whether two attempts meet. An attempt
    /// wins if no other writer commits between its observation and its write, one round trip later.
    ///
    /// 1. After the first conflict, the pause is anywhere within 25 round trips. It spreads out the writers that met.
    /// 2. After a pause, the observed item is stale: the next attempt is usually refused. The refusal returns the
    ///    current item, and **that** item is tried at once, without a pause, up to 3 times.
    /// 3. If those attempts are refused too, the pause is anywhere within 350 round trips. Then rule 2 applies again.
    /// 4. After the first pause, the refusal also shows how fast the item moves. If other writers commit more than
    ///    twice in five round trips, there is a crowd, and rule 3 applies at once. One commit alone is no crowd.
    ///
    /// The table shows writers that begin at once on one item, with hops of 5 ms each way. It is simulated with 300
    /// seeds for a hundred writers (mean; worst) and with 1,000 seeds for the others.
    ///
    /// | writers | requests per success | mean time |
    /// |---|---|---|
    /// | 2 | 2.5 | 89 ms |
    /// | 3 | 3.0 | 114 ms |
    /// | 5 | 3.5 | 137 ms |
    /// | 10 | 4.1 | 225 ms |
    /// | 100 | 5.5; 5.9 | 1.8 s |
    ///
    /// For comparison, a hundred writers need 7.4 requests without rule 4. With full jitter (25 ms to 1 s) and a read
    /// after each conflict, they need 12.5 requests and 0.8 s.
    pub fn conflict_pause(&self, conflicts: &Conflicts, random: u64) -> Duration {
        let round_trips = match conflicts {
            Conflicts { count: 0, .. } => return Duration::ZERO,
            Conflicts { pauses: 0, .. } => CONFLICT_PAUSE,
            Conflicts { pauses: 1, since_pause: 1, .. } if conflicts.crowded() => CROWD_PAUSE,
            Conflicts { since_pause, .. } if *since_pause > FRESH_ATTEMPTS => CROWD_PAUSE,
            _ => return Duration::ZERO,
        };
        let bound = conflicts.round_trip.min(self.max_round_trip).saturating_mul(round_trips);
        fraction(bound.min(MAX_CONFLICT_PAUSE), random)
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

    fn longest(conflicts: &Conflicts) -> u128 {
        (RetryPolicy::default().conflict_pause(conflicts, u64::MAX) + Duration::from_nanos(1)).as_millis()
    }

    #[test]
    fn pauses_stay_within_their_bounds_however_often_it_is_tried() {
        let policy = RetryPolicy::default();
        let mut conflicts = Conflicts::default();
        for round in 0..200 {
            conflicts.met(u64::MAX >> (round % 64), Duration::ZERO, Duration::from_millis(1 << (round % 20)));
            for random in [0, 1, u64::MAX / 2, u64::MAX] {
                assert!(policy.conflict_pause(&conflicts, random) <= MAX_CONFLICT_PAUSE);
                assert!(RetryPolicy::resend_pause(round, random) <= MAX_RESEND_PAUSE);
                assert!(policy.limit_after(None, round) <= 4 * policy.send_limit);
            }
            conflicts.paused(policy.conflict_pause(&conflicts, u64::MAX / 3));
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

    #[test]
    fn a_pause_is_followed_by_three_attempts_on_fresh_items_and_then_by_a_longer_one() {
        let mut conflicts = Conflicts::default();
        assert_eq!(longest(&conflicts), 0);
        for (pause, pauses) in [(250, 0), (3500, 1), (3500, 2)] {
            if pauses == 0 {
                conflicts.met(1, 20 * ROUND_TRIP, ROUND_TRIP);
            }
            assert_eq!((longest(&conflicts), conflicts.pauses), (pause, pauses));
            conflicts.paused(Duration::from_millis(100));
            for _ in 0..3 {
                conflicts.met(1, 20 * ROUND_TRIP, ROUND_TRIP);
                assert_eq!(longest(&conflicts), 0);
                conflicts.paused(Duration::ZERO);
            }
            conflicts.met(1, 20 * ROUND_TRIP, ROUND_TRIP);
        }
    }

    #[test]
    fn a_crowd_is_left_alone_after_the_first_pause_and_tried_after_the_others() {
        let after = |pauses, behind, observed| {
            let observed = Duration::from_millis(observed);
            longest(&Conflicts { count: 2, pauses, since_pause: 1, observed, round_trip: ROUND_TRIP, behind })
        };
        assert_eq!([after(1, 4, 110), after(1, 5, 110), after(2, 5, 110)], [0, 3500, 0]);
        // A lost answer took the time in which they were made.
        assert_eq!([after(1, 5, 260), after(1, 11, 260)], [0, 3500]);
        assert_eq!([after(1, 1, 10), after(1, 2, 10)], [0, 3500], "one commit is no crowd");
    }

    #[test]
    fn pauses_are_as_long_as_round_trips_make_them_but_a_slow_one_is_no_reason_to_wait() {
        let first = |millis| {
            let mut conflicts = Conflicts::default();
            conflicts.met(1, Duration::ZERO, Duration::from_millis(millis));
            longest(&conflicts)
        };
        assert_eq!([first(4), first(10), first(20), first(2000)], [100, 250, 500, 500]);
    }

    #[test]
    fn the_writers_ahead_hold_the_tickets_between_the_last_one_served_and_its_own() {
        let line = |ticket, served| Line { ticket, served };
        let places = [(1, 0), (2, 0), (9, 3), (3, 9)].map(|(ticket, served)| line(Some(ticket), served).ahead());
        assert_eq!(places, [0, 1, 5, 0].map(Some));
        assert_eq!([line(Some(9), 3), line(Some(3), 9)].map(Line::served_then), [Some(9); 2], "it never falls");
        assert_eq!((line(None, 3).ahead(), line(None, 3).served_then()), (None, None));
    }

    #[test]
    fn a_writer_in_line_waits_for_the_turns_before_it_less_the_round_trip_of_its_look() {
        let pause =
            |ahead, millis| RetryPolicy::default().pause_in_line(ahead, Duration::from_millis(millis)).as_millis();
        assert_eq!([0, 1, 2, 10, 100].map(|ahead| pause(ahead, 10)), [0, 2, 14, 110, 1190]);
        assert_eq!([pause(128, 10), pause(129, 10), pause(u64::MAX, 10)], [1526; 3], "it looks again");
        assert_eq!([pause(10, 20), pause(10, 2000)], [220; 2], "a slow round trip is no reason to wait");
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

    #[test]
    fn writers_are_a_crowd_when_they_commit_more_than_twice_in_five_round_trips() {
        let crowded = |behind, observed| {
            let observed = Duration::from_millis(observed);
            Conflicts { behind, observed, round_trip: ROUND_TRIP, ..Conflicts::default() }.crowded()
        };
        assert_eq!([crowded(2, 49), crowded(2, 50), crowded(1, 1), crowded(u64::MAX, 50)], [true, false, false, true]);
    }
}
