//! Measures slow connections: a handshake that takes most of a second, late answers, and a pool of connections dead
//! after a freeze.
//!
//! Time is virtual, as in [`crate::crowd`].
#![expect(clippy::disallowed_methods, reason = "reads the paused clock")]

use crate::pool::{Fate, Pool};
use crate::table::{self, Counter, NAME};
use crate::wire::{Wire, chance, paused, store};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// The time of a handshake: name look-up and TLS on a 128 MB function.
pub const HANDSHAKE: Duration = Duration::from_millis(800);
/// The time by which an answer is late.
pub const LATE: Duration = Duration::from_millis(200);
/// The dead connections of a pool.
pub const DEAD: usize = 4;

/// A way to wait for answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// `update_with_retry`, with the default policy.
    Fencepost,
    /// Reads and writes with timeouts. A timeout drops the send, and after a pause the request is sent again. The
    /// timeout is 150 ms if the client was answered in the last minute and otherwise 2 s. It doubles after each lost
    /// answer. The pause is between 0 and 20 ms, with a bound that doubles too.
    HangUp,
}

/// A trouble of connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// None: one open connection, and answers in time.
    None,
    /// The client has no connection. The answer to the read is [`LATE`].
    ColdAndLateRead,
    /// The client has one connection. The answer to the write is [`LATE`].
    LateWrite,
    /// The client has two connections. The answer to the write is lost.
    LostWrite,
    /// The process was frozen for five minutes, and [`DEAD`] connections died.
    Freeze,
}

/// The cost of one update.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cost {
    /// The time of the update.
    pub time: Duration,
    /// The number of sends given up or cut off by a broken connection.
    pub lost: u32,
    /// The number of requests.
    pub requests: u32,
}

/// Raises a counter by one in this trouble.
///
/// # Panics
/// If the update fails, which it does not.
#[must_use]
pub fn update(way: Way, trouble: Trouble, hop: Duration, seed: u64) -> Cost {
    paused(updated(way, trouble, hop, seed))
}

async fn updated(way: Way, trouble: Trouble, hop: Duration, seed: u64) -> Cost {
    let wire = Wire::new(hop);
    let pool = Pool::new(HANDSHAKE, hop, move |operation, body| wire.answer(operation, body));
    let (start, rng) = (Instant::now(), chance(fastrand::Rng::with_seed(seed)));
    let new_process = || store(&pool.client(), start, rng.clone()).table::<Counter>(NAME);
    let mut table = new_process();
    // The first request opens a connection. So the client knows how long this takes.
    table::create(&table, "one").await;
    let mut answered = Some(Instant::now());
    match trouble {
        Trouble::None => {}
        Trouble::ColdAndLateRead => {
            (table, answered) = (new_process(), None);
            pool.close_idle();
            pool.next(&[Fate::Late(LATE)]);
        }
        Trouble::LateWrite => pool.next(&[Fate::Answered, Fate::Late(LATE)]),
        Trouble::LostWrite => {
            pool.open(1);
            pool.next(&[Fate::Answered, Fate::AnswerLost]);
        }
        Trouble::Freeze => {
            pool.open(DEAD - pool.idle());
            pool.kill_idle();
            sleep(Duration::from_mins(5)).await;
        }
    }
    let _ = pool.take_counts();
    let began = Instant::now();
    let lost = match way {
        Way::Fencepost => {
            let call = table::call();
            assert!(table::raise_in(&table, "one", &call).await, "{trouble:?}");
            call.tally().lost_answers
        }
        Way::HangUp => read_and_write(&pool.client(), &mut answered, fastrand::Rng::with_seed(seed)).await,
    };
    Cost { time: began.elapsed(), lost, requests: pool.take_counts().requests }
}

/// The way to hang up. Returns the number of sends of the write given up or cut off by a broken connection. It takes a
/// refusal after a lost answer for its own write, which is right only because there is no other writer here.
async fn read_and_write(client: &Client, answered: &mut Option<Instant>, mut rng: fastrand::Rng) -> u32 {
    let mut patience = HungUp::default();
    let read = loop {
        if let Some(Ok(read)) = patience.within(*answered, table::read(client)).await {
            break read;
        }
        patience.pause(&mut rng).await;
    };
    *answered = Some(Instant::now());
    let mut patience = HungUp::default();
    loop {
        match patience.within(*answered, table::write(client, read)).await {
            Some(Ok(())) => return patience.lost,
            Some(Err(SdkError::ServiceError(refused))) if refused.err().is_conditional_check_failed_exception() => {
                return patience.lost;
            }
            _ => patience.pause(&mut rng).await,
        }
    }
}

/// The lost answers of one request.
#[derive(Default)]
struct HungUp {
    lost: u32,
}

impl HungUp {
    async fn within<A>(&self, answered: Option<Instant>, request: impl Future<Output = A>) -> Option<A> {
        let connected = answered.is_some_and(|answered| answered.elapsed() < Duration::from_mins(1));
        let first = Duration::from_millis(if connected { 150 } else { 2000 });
        timeout((first * 2_u32.pow(self.lost)).min(Duration::from_secs(2)), request).await.ok()
    }

    async fn pause(&mut self, rng: &mut fastrand::Rng) {
        let bound = 20 << self.lost;
        self.lost += 1;
        sleep(Duration::from_millis(rng.u64(0..bound))).await;
    }
}
