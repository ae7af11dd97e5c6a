//! [`Patience`] (pure): how long to wait before the next send, and how many answers were lost, given the failed sends.

use crate::policy::RetryPolicy;
use std::time::Duration;

/// The number of broken connections in a row after which a send still follows at once. A pool may hold several
/// connections that died while the process was frozen. Each shows it only when a request is sent on it. More than these
/// are no leftovers: the network or the service is in trouble.
const MAX_DEAD_CONNECTIONS: u32 = 4;

/// How much longer than by itself a client waits because the service asks for it. The SDKs keep to the same bound.
const MOST_BEYOND: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Patience {
    failed: u32,
    lost: u32,
    broken: u32,
    /// If the last send was throttled: how long the service then asked to wait.
    throttled: Option<Duration>,
    /// Whether the last send was refused for now and not throttled: it has most likely met a transaction.
    is_held: bool,
}

impl Patience {
    pub fn not_applied(&mut self) {
        self.broken = 0;
        self.failed += 1;
        (self.throttled, self.is_held) = (None, false);
    }

    /// Notes a send that was refused for now. If it was throttled, the service asks to wait for this long. Otherwise it
    /// has most likely met a transaction.
    pub fn not_now(&mut self, throttled: Option<Duration>) {
        self.not_applied();
        (self.throttled, self.is_held) = (throttled, throttled.is_none());
    }

    pub fn is_throttled(&self) -> bool {
        self.throttled.is_some()
    }

    pub fn lost(&mut self) {
        self.not_applied();
        self.lost += 1;
    }

    /// Notes a send with a broken connection. The first ones in a row do not count as failures, because the connection
    /// was probably dead before the send.
    pub fn broken(&mut self) {
        (self.throttled, self.is_held) = (None, false);
        self.broken += 1;
        if self.broken > MAX_DEAD_CONNECTIONS {
            self.failed += 1;
            self.lost += 1;
        }
    }

    pub fn lost_answers(&self) -> u32 {
        self.lost
    }

    pub fn pause(&self, random: u64) -> Duration {
        if (1..=MAX_DEAD_CONNECTIONS).contains(&self.broken) {
            return Duration::ZERO;
        }
        let pause = RetryPolicy::resend_pause(self.failed, self.is_held, random);
        self.throttled.map_or(pause, |asked| asked.clamp(pause, pause + MOST_BEYOND))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(patience: &Patience) -> (u128, u32) {
        let pause = patience.pause(u64::MAX).as_nanos().div_ceil(1_000_000);
        (pause, patience.lost_answers())
    }

    #[test]
    fn four_broken_connections_in_a_row_use_up_no_patience_and_the_fifth_does() {
        let mut patience = Patience::default();
        for _ in 0..4 {
            patience.broken();
            assert_eq!(next(&patience), (0, 0));
        }
        patience.broken();
        assert_eq!(next(&patience), (20, 1));
        patience.broken();
        assert_eq!(next(&patience), (40, 2));
    }

    #[test]
    fn a_failure_of_another_kind_lets_four_more_connections_break() {
        let mut patience = Patience::default();
        (0..4).for_each(|_| patience.broken());
        patience.not_applied();
        assert_eq!(next(&patience), (20, 0));
        patience.broken();
        assert_eq!(next(&patience), (0, 0));
    }

    #[test]
    fn a_throttled_send_waits_for_as_long_as_the_service_asks_but_no_five_seconds_longer_than_by_itself() {
        let asked = |millis| {
            let mut patience = Patience::default();
            patience.not_now(Some(Duration::from_millis(millis)));
            let asked = next(&patience).0;
            patience.broken();
            assert_eq!((next(&patience), patience.is_throttled()), ((0, 0), false), "it is not asked for twice");
            asked
        };
        assert_eq!([asked(0), asked(300), asked(60_000)], [20, 300, 5020]);
    }

    #[test]
    fn a_send_that_met_a_transaction_waits_three_times_as_long() {
        let mut patience = Patience::default();
        patience.not_now(None);
        assert_eq!(next(&patience), (60, 0));
        patience.not_now(None);
        assert_eq!(next(&patience), (120, 0));
        patience.lost();
        assert_eq!(next(&patience), (80, 1), "another failure is no sign of a transaction");
        patience.not_now(None);
        (0..5).for_each(|_| patience.broken());
        assert_eq!(next(&patience), (320, 2));
    }

    #[test]
    fn refusals_for_now_lengthen_the_pause_and_are_no_lost_answers() {
        let mut patience = Patience::default();
        patience.not_applied();
        patience.not_applied();
        assert_eq!(next(&patience), (40, 0));
        patience.lost();
        patience.lost();
        assert_eq!(next(&patience), (160, 2));
    }
}
