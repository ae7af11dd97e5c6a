//! Clocks of clients that are off by less than the five minutes allowed by a signature.

use super::faults::{Network, Wire};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// By how many milliseconds a clock is off at most.
pub const BOUND: i64 = 299_000;

/// The wall clock of one client. It is right, or ahead or behind; or it runs at another rate and is set back; or it
/// is set to another time once.
#[derive(Clone, Debug)]
pub struct OffClock {
    start: Instant,
    /// Milliseconds.
    ahead: i64,
    /// By how many milliseconds it gains in an hour.
    gains: i64,
    /// When it is set to be ahead by so many milliseconds.
    set: Option<(Duration, i64)>,
    /// By how many milliseconds it is ahead at most.
    most: i64,
}

impl OffClock {
    pub fn draw(rng: &mut fastrand::Rng, start: Instant) -> Self {
        let (mut ahead, mut gains, mut set) = (rng.i64(-BOUND..=BOUND), 0, None);
        match rng.u32(..4) {
            0 => ahead = 0,
            1 => {}
            2 => gains = rng.i64(-600_000..=600_000),
            _ => set = Some((Duration::from_millis(rng.u64(..600_000)), rng.i64(-BOUND..=BOUND))),
        }
        OffClock { start, ahead, gains, set, most: BOUND }
    }

    /// It is ahead by so many milliseconds for ever, or behind.
    pub fn fixed(start: Instant, ahead: i64) -> Self {
        OffClock { start, ahead, gains: 0, set: None, most: i64::MAX }
    }

    /// By how many milliseconds it is ahead now.
    pub fn ahead(&self) -> i64 {
        let elapsed = self.start.elapsed();
        let ahead = match self.set {
            Some((at, to)) if at <= elapsed => to,
            _ => self.ahead,
        };
        if self.gains == 0 {
            return ahead.min(self.most);
        }
        let gained = self.gains * i64::try_from(elapsed.as_secs()).expect("a test is short") / 3600;
        // When it is as far off as it may be, it is set to the other end.
        let ahead = (ahead + gained + BOUND).rem_euclid(2 * BOUND + 1) - BOUND;
        ahead.min(self.most)
    }

    /// The time shown, where `epoch` is the time since 1970 at the start.
    pub fn now(&self, epoch: Duration) -> SystemTime {
        by_clock(SystemTime::UNIX_EPOCH + epoch + self.start.elapsed(), self.ahead())
    }

    /// The wire of its client, which dates requests by this clock.
    pub fn wire(&self, network: &Arc<Network>) -> Wire {
        let clock = self.clone();
        Wire::new(network).with_clock_ahead(move || clock.ahead())
    }
}

/// The time by a clock that is ahead by so many milliseconds.
pub fn by_clock(time: SystemTime, ahead: i64) -> SystemTime {
    let off = Duration::from_millis(ahead.unsigned_abs());
    if ahead < 0 { time - off } else { time + off }
}

/// The clocks of the clients of one history, drawn by a generator of their own: the rest of a seed's meaning does not
/// depend on them.
pub struct OffClocks {
    rng: Mutex<fastrand::Rng>,
    start: Instant,
}

impl OffClocks {
    pub fn of(seed: u64, start: Instant) -> Self {
        OffClocks { rng: Mutex::new(fastrand::Rng::with_seed(seed ^ 0xC10C_C10C_C10C)), start }
    }

    /// The clock of another client.
    pub fn draw(&self) -> OffClock {
        OffClock::draw(&mut self.rng.lock().expect("no panic while drawing"), self.start)
    }

    /// The same, but ahead by at most so many milliseconds, and in one of four cases by exactly so many: the writes of
    /// such a client stay acceptable longest.
    pub fn draw_often_far_ahead(&self, most: i64) -> OffClock {
        let mut rng = self.rng.lock().expect("no panic while drawing");
        let clock = match rng.u32(..4) {
            0 => OffClock::fixed(self.start, most),
            _ => OffClock::draw(&mut rng, self.start),
        };
        OffClock { most, ..clock }
    }
}
