//! What the world gives: the wall clock and chance, handed in so that tests can give their own.
#![expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the wall clock; everything else is told the time"
)]

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// The wall clock and a source of random bits.
///
/// Production uses [`Ambient::system`]. A test gives its own two functions, and the same code runs
/// under virtual time and replays from a seed.
#[derive(Clone)]
pub struct Ambient {
    now: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    random: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl Ambient {
    /// The machine's clock and the operating system's randomness.
    ///
    /// Write ids come from the operating system each time, not from a generator in this process: two
    /// copies of one memory snapshot would otherwise give two changes the same id.
    ///
    /// # Panics
    /// Asked for randomness, where the operating system gives none: nothing could be written safely.
    #[must_use]
    pub fn system() -> Self {
        Ambient::new(SystemTime::now, || getrandom::u64().expect("the operating system gives random bytes"))
    }

    /// A clock and a source of random bits of the caller's.
    pub fn new(
        now: impl Fn() -> SystemTime + Send + Sync + 'static,
        random: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        Ambient { now: Arc::new(now), random: Arc::new(random) }
    }

    /// The time of day.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        (self.now)()
    }

    /// 64 random bits.
    #[must_use]
    pub fn random(&self) -> u64 {
        (self.random)()
    }
}

impl fmt::Debug for Ambient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ambient")
    }
}
