//! A second send while the first is still awaited. Together, the two answers prove the outcome.

use super::accounts::{Account, TABLE, add_one, call};
use crate::harness::engine::Engine;
use crate::harness::pool::{Counts, Fate, Pool};
use fencepost::{Call, Deadline, Key, Store, Table};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{Instant, sleep};

pub const HANDSHAKE: Duration = Duration::from_millis(800);
pub const HOP: Duration = Duration::from_millis(5);

/// A store over simulated connections with an account `a-1` at version 1.
pub struct World {
    pub engine: Engine,
    pub pool: Pool,
    pub table: Table<Account>,
    pub key: Key,
}

impl World {
    pub async fn cold_with(handshake: Duration) -> Self {
        let engine = Engine::with_tables(&[(TABLE, "accountId")]);
        let direct: Table<Account> = Store::new(&engine.client()).table(TABLE);
        let key = Key::from("a-1");
        direct.create(&key, &Account { balance: 50 }).await.expect("a free key");
        let answering = engine.clone();
        let pool = Pool::new(handshake, HOP, move |operation, body| answering.answer(operation, body));
        let table = Store::new(&pool.client()).table(TABLE);
        let world = World { engine, pool, table, key };
        world.forget_counts();
        world
    }

    /// A client directly after its first answer and a handshake, with so many idle connections.
    pub async fn connected(connections: usize) -> Self {
        Self::connected_with(HANDSHAKE, connections).await
    }

    pub async fn connected_with(handshake: Duration, connections: usize) -> Self {
        let world = Self::cold_with(handshake).await;
        world.table.get(&world.key).await.expect("an answer");
        world.pool.open(connections - 1);
        world.forget_counts();
        world
    }

    pub fn forget_counts(&self) {
        let _ = self.pool.take_counts();
        self.engine.take_log();
    }

    /// The number of requests sent, and of connections opened.
    pub fn sent(&self) -> (u32, u32) {
        let Counts { requests, opened, .. } = self.pool.take_counts();
        (requests, opened)
    }

    /// Adds one. Gives the lost answers, and how long it took.
    pub async fn add_one(&self) -> (u32, Duration) {
        let (began, call) = (Instant::now(), call());
        self.table.in_call(&call).update_with_retry(&self.key, add_one).await.expect("a live account");
        (call.tally().lost_answers, began.elapsed())
    }
}

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[tokio::test(start_paused = true)]
async fn dead_connections_are_used_up_at_once_after_a_freeze() {
    for freeze in [30, 300] {
        let world = World::connected(4).await;
        world.pool.kill_idle();
        sleep(Duration::from_secs(freeze)).await;
        let (began, call) = (Instant::now(), call());
        world.table.in_call(&call).create("a-2", &Account { balance: 1 }).await.expect("a free key");
        let took = began.elapsed();
        assert!(took <= HANDSHAKE + millis(400), "{took:?}");
        assert_eq!(took, HOP * 4 + HANDSHAKE + HOP * 2, "no pause between them");
        assert_eq!((call.tally().lost_answers, world.sent()), (4, (5, 1)), "one handshake and no other beside it");
        assert_eq!(world.pool.idle(), 1);

        let world = World::connected(4).await;
        world.pool.kill_idle();
        sleep(Duration::from_secs(freeze)).await;
        let (_, took) = world.add_one().await;
        assert_eq!((took, world.sent()), (HOP * 4 + HANDSHAKE + HOP * 4, (6, 1)));
    }
}

#[tokio::test(start_paused = true)]
async fn at_most_two_sends_of_a_request_are_ever_in_flight() {
    for fate in [Fate::Dropped, Fate::AnswerLost] {
        let world = World::connected(3).await;
        world.pool.next(&[Fate::Answered]);
        world.pool.all_after(fate);
        let began = Instant::now();
        let keep = |account: &Account| Ok::<_, Infallible>(Some(account.clone()));
        let _ = world.table.update_with_retry(&world.key, keep).await;
        let _ = world.table.in_call(&Call::new(Deadline::within(Duration::from_secs(30)))).get(&world.key).await;
        let counts = world.pool.take_counts();
        assert_eq!(counts.most_in_flight, 2, "{fate:?}");
        assert!(counts.requests >= 5 && began.elapsed() <= Duration::from_mins(1), "{fate:?}: {counts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_send_that_was_given_up_closes_its_connection_and_the_hedge_of_the_next_one_waits_for_another() {
    let world = World::connected(2).await;
    world.pool.next(&[Fate::Dropped, Fate::Dropped]);
    let short = Call::new(Deadline::within(millis(900)));
    world.table.in_call(&short).create("a-2", &Account { balance: 1 }).await.expect_err("no answer");
    world.forget_counts();
    world.table.get(&world.key).await.expect("an answer");
    assert_eq!(world.sent(), (1, 1), "one handshake and no other beside it");
}
