//! The time of day of a test.

use super::engine::store;
use aws_sdk_dynamodb::Client;
use fencepost::{Store, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// 10:00 on 7 March 2026, in milliseconds since 1970.
pub const TEN_O_CLOCK: u64 = 1_772_877_600_000;

/// A time of day set by the test. Copies show the same time.
#[derive(Clone)]
pub struct Clock {
    begins_at: u64,
    /// Since when it runs with tokio's time, if it does.
    runs_since: Option<Instant>,
    ahead: Arc<AtomicU64>,
    /// By how much each look sets it forward.
    tick: u64,
}

impl Clock {
    /// Stands still, unless it is set forward.
    pub fn standing(at: u64) -> Self {
        Clock { begins_at: at, runs_since: None, ahead: Arc::default(), tick: 0 }
    }

    /// Goes on by a millisecond at each look: no two looks give the same time.
    pub fn ticking(at: u64) -> Self {
        Clock { tick: 1, ..Self::standing(at) }
    }

    /// Runs with tokio's time, which is to be paused, since this moment.
    pub fn running_since(since: Instant) -> Self {
        Clock { runs_since: Some(since), ..Self::standing(TEN_O_CLOCK) }
    }

    /// Milliseconds since 1970.
    pub fn now(&self) -> u64 {
        let ran = self.runs_since.map_or(0, |since| millis(since.elapsed()));
        self.begins_at + ran + self.ahead.fetch_add(self.tick, SeqCst)
    }

    /// A moment as the answers show it.
    pub fn shows(&self, in_millis: u64) -> String {
        Timestamp::from_epoch_millis(self.now() + in_millis).expect("a moment").to_string()
    }

    /// Sets it forward and leaves the monotonic clock where it is, as if the machine had stood still.
    pub fn set_forward(&self, millis: u64) {
        self.ahead.fetch_add(millis, SeqCst);
    }

    /// A store under this clock.
    pub fn store(&self, client: &Client) -> Store {
        store(client, self.looks(), || fastrand::u64(..))
    }

    /// It as a function.
    pub fn looks(&self) -> impl Fn() -> SystemTime + Send + Sync + 'static {
        let clock = self.clone();
        move || SystemTime::UNIX_EPOCH + Duration::from_millis(clock.now())
    }
}

pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("small")
}
