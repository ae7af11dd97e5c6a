//! [`ClientState`]: what all changes of one client know together: its connections, and how often it may still ask a table
//! that throttles.

use super::policy::RetryPolicy;
use std::time::Duration;

/// The tokens of a client that was never throttled, the price of a resend, and the reward for an answer without one.
/// Source: <https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html>
const CAPACITY: u32 = 100 * PRICE;
const PRICE: u32 = 5;
const REWARD: u32 = 1;

/// The time without an answer after which a connection may be gone. Pools and servers drop idle ones then.
const CONNECTION_LIFE: Duration = Duration::from_mins(1);

/// The state that all changes of one client share.
///
/// The retry tokens follow the rules of the SDKs. A throttled request is sent again for a price. An answer gives the price
/// of its last resend back, or a small reward if it took none. So a table that throttles now and then is asked for as long
/// as a call may take. A table that throttles everything is soon asked once for each call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClientState {
    tokens: u32,
    /// When the last answer came.
    last_answer: Option<Duration>,
    /// Whether a send ended without an answer since the last one came: its connection may be gone, or was never made.
    is_broken: bool,
    /// The longest time between a send and its answer where the send probably had to open a connection.
    slowest_opening: Duration,
}

impl Default for ClientState {
    fn default() -> Self {
        ClientState { tokens: CAPACITY, last_answer: None, is_broken: false, slowest_opening: Duration::ZERO }
    }
}

impl ClientState {
    /// Pays for sending a throttled request again. `false` if too little is left.
    pub(crate) fn pay(&mut self) -> bool {
        let left = self.tokens.checked_sub(PRICE);
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }

    /// Notes an answer of the table to a request that was not throttled.
    pub(crate) fn not_throttled(&mut self, after_throttling: bool) {
        let back = if after_throttling { PRICE } else { REWARD };
        self.tokens = (self.tokens + back).min(CAPACITY);
    }

    fn is_warm(&self, at: Duration) -> bool {
        self.last_answer.is_some_and(|last| at.saturating_sub(last) < CONNECTION_LIFE)
    }

    /// Whether a send at this time probably opens a connection.
    pub(crate) fn opens_connection(&self, at: Duration) -> bool {
        self.is_broken || !self.is_warm(at)
    }

    /// Notes how a send ended that took this long.
    pub(crate) fn ended(&mut self, is_answered: bool, at: Duration, took: Duration, opened: bool) {
        if is_answered {
            if opened {
                self.slowest_opening = self.slowest_opening.max(took);
            }
            self.last_answer = Some(at);
        }
        self.is_broken = !is_answered;
    }

    /// The time without an answer after which an identical send follows. `None` if the client had no answer in the last
    /// minute: it is then probably connecting, where a second handshake beside the first would make both slower. After
    /// a broken connection, the next send gets the time to open another one first.
    pub(crate) fn hedge_after(&self, policy: &RetryPolicy, at: Duration) -> Option<Duration> {
        let opening = if self.is_broken { self.slowest_opening } else { Duration::ZERO };
        self.is_warm(at).then(|| policy.hedge_after.saturating_add(opening))
    }

    /// How long a send is awaited after this many lost answers.
    pub(crate) fn send_limit(&self, policy: &RetryPolicy, lost: u32) -> Duration {
        policy.limit_after(self.last_answer.map(|_| self.slowest_opening), lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_throttles_everything_is_soon_asked_once_for_each_call() {
        let mut client = ClientState::default();
        assert_eq!((0..1000).filter(|_| client.pay()).count(), 100);
        client.not_throttled(true);
        assert!(client.pay() && !client.pay(), "an answer gives the price back");
        for _ in 0..PRICE {
            assert!(!client.pay());
            client.not_throttled(false);
        }
        assert!(client.pay() && !client.pay(), "five answers are worth one resend");
        (0..10_000).for_each(|_| client.not_throttled(false));
        assert_eq!((0..1000).filter(|_| client.pay()).count(), 100, "it saves no more than it had");
    }

    #[test]
    fn a_client_hedges_for_a_minute_after_an_answer_and_later_after_a_broken_connection() {
        let (policy, seconds) = (RetryPolicy::default(), Duration::from_secs);
        let mut client = ClientState::default();
        assert_eq!((client.hedge_after(&policy, seconds(1)), client.opens_connection(seconds(1))), (None, true));
        client.ended(true, seconds(2), seconds(1), true);
        assert_eq!(client.hedge_after(&policy, seconds(61)), Some(policy.hedge_after));
        assert!(!client.opens_connection(seconds(61)) && client.opens_connection(seconds(62)));
        assert_eq!(client.hedge_after(&policy, seconds(62)), None);
        client.ended(false, seconds(10), seconds(9), false);
        assert_eq!(client.hedge_after(&policy, seconds(11)), Some(policy.hedge_after + seconds(1)));
        assert!(client.opens_connection(seconds(11)));
        client.ended(true, seconds(12), Duration::from_millis(10), false);
        assert_eq!(client.hedge_after(&policy, seconds(13)), Some(policy.hedge_after));
        assert_eq!(client.send_limit(&policy, 0), policy.send_limit, "twice the second that it took to open one");
    }
}
