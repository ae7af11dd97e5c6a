//! [`Clock`] and [`Rng`]: the wall clock and random bits, passed in for tests to replace.
#![expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock; all other code asks a Clock")]

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// A wall clock. A [`Store`](crate::Store) reads the time of day from nowhere else.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Clock::new(SystemTime::now)
    }

    /// A clock over `now`. Tests use it to run under virtual time.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Clock(Arc::new(now))
    }

    /// The time of day.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// A source of random bits. Write ids, transaction tokens and pauses come from here.
#[derive(Clone)]
pub struct Rng(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Rng {
    /// The operating system's randomness.
    ///
    /// Every draw asks the operating system. A generator inside the process would give the same write ids to two
    /// processes that were restored from one memory snapshot.
    ///
    /// # Panics
    /// Panics at a draw if the operating system has no randomness, because no write would be safe without it.
    #[must_use]
    pub fn system() -> Self {
        Rng::new(|| getrandom::u64().expect("the operating system gives random bytes"))
    }

    /// A source over `random`, which gives 64 bits. Tests use it to replay a run from its seed.
    pub fn new(random: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Rng(Arc::new(random))
    }

    /// 64 random bits.
    #[must_use]
    pub fn next_u64(&self) -> u64 {
        (self.0)()
    }
}

impl fmt::Debug for Rng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rng")
    }
}
