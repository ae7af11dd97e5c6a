//! A second send while the first is still awaited. Together, the two answers prove the outcome.

use super::accounts::{Account, TABLE, add_one, call};
use crate::harness::engine::Engine;
use crate::harness::pool::{Counts, Fate, Pool};
use fencepost::{Call, Deadline, Key, Store, Table};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const HANDSHAKE: Duration = Duration::from_millis(800);
const HOP: Duration = Duration::from_millis(5);

/// A store over simulated connections with an account `a-1` at version 1.
struct World {
    engine: Engine,
    pool: Pool,
    table: Table<Account>,
    key: Key,
}

impl World {
    /// A client directly after its first answer and a handshake, with so many idle connections.
    async fn connected(connections: usize) -> Self {
        let engine = Engine::with_tables(&[(TABLE, "accountId")]);
        let direct: Table<Account> = Store::new(&engine.client()).table(TABLE);
        let key = Key::from("a-1");
        direct.create(&key, &Account { balance: 50 }).await.expect("a free key");
        let answering = engine.clone();
        let pool = Pool::new(HANDSHAKE, HOP, move |operation, body| answering.answer(operation, body));
        let table = Store::new(&pool.client()).table(TABLE);
        let world = World { engine, pool, table, key };
        world.table.get(&world.key).await.expect("an answer");
        world.pool.open(connections - 1);
        world.forget_counts();
        world
    }

    fn forget_counts(&self) {
        let _ = self.pool.take_counts();
        self.engine.take_log();
    }

    /// The number of requests sent, and of connections opened.
    fn sent(&self) -> (u32, u32) {
        let Counts { requests, opened, .. } = self.pool.take_counts();
        (requests, opened)
    }
}

#[tokio::test(start_paused = true)]
async fn dead_connections_are_used_up_at_once_after_a_freeze() {
    for freeze in [30, 300] {
        let world = World::connected(4).await;
        world.pool.kill_idle();
        sleep(Duration::from_secs(freeze)).await;
        let (began, first) = (Instant::now(), call());
        world.table.in_call(&first).create("a-2", &Account { balance: 1 }).await.expect("a free key");
        let took = began.elapsed();
        assert_eq!(took, HOP * 4 + HANDSHAKE + HOP * 2, "no pause between them");
        assert_eq!((first.tally().lost_answers, world.sent()), (4, (5, 1)), "one handshake and no other beside it");
        assert_eq!(world.pool.idle(), 1);

        let world = World::connected(4).await;
        world.pool.kill_idle();
        sleep(Duration::from_secs(freeze)).await;
        let began = Instant::now();
        world.table.in_call(&call()).update_with_retry(&world.key, add_one).await.expect("a live account");
        assert_eq!((began.elapsed(), world.sent()), (HOP * 4 + HANDSHAKE + HOP * 4, (6, 1)));
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
    let short = Call::new(Deadline::within(Duration::from_millis(900)));
    world.table.in_call(&short).create("a-2", &Account { balance: 1 }).await.expect_err("no answer");
    world.forget_counts();
    world.table.get(&world.key).await.expect("an answer");
    assert_eq!(world.sent(), (1, 1), "one handshake and no other beside it");
}
