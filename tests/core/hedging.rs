//! A second send while the first is still awaited. Together, the two answers prove the outcome.

use super::accounts::{Account, TABLE, add_one, call};
use crate::harness::engine::Engine;
use crowds::pool::{Counts, Fate, Pool};
use fencepost::lease::LeaseTerms;
use fencepost::{Call, Deadline, Error, Failure, Key, Reads, Store, Table};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{Instant, sleep};

pub const HANDSHAKE: Duration = Duration::from_millis(800);
pub const HOP: Duration = Duration::from_millis(5);
pub const LATE: Fate = Fate::Late(Duration::from_millis(200));
pub const LEASES: &str = "Leases";
/// The delay of a hedge.
pub const HEDGE_AFTER: Duration = Duration::from_millis(150);

/// A store over simulated connections with an account `a-1` at version 1.
pub struct World {
    pub engine: Engine,
    pub pool: Pool,
    pub store: Store,
    pub table: Table<Account>,
    pub key: Key,
}

impl World {
    /// A client without any answer or connection yet.
    pub async fn cold() -> Self {
        Self::cold_with(HANDSHAKE).await
    }

    pub async fn cold_with(handshake: Duration) -> Self {
        let engine = Engine::with_tables(&[(TABLE, "accountId"), (LEASES, "leaseKey")]);
        let direct: Table<Account> = Store::new(&engine.client()).table(TABLE);
        let key = Key::from("a-1");
        direct.create(&key, &Account { balance: 50 }).await.expect("a free key");
        let answering = engine.clone();
        let pool = Pool::new(handshake, HOP, move |operation, body| answering.answer(operation, body));
        let store = Store::new(&pool.client());
        let world = World { table: store.table(TABLE), engine, pool, store, key };
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
async fn an_uncontended_update_is_one_read_and_one_write_even_if_each_answer_is_a_little_late() {
    let world = World::connected(1).await;
    world.pool.all_after(Fate::Late(millis(130)));
    assert_eq!(world.add_one().await, (0, millis(280)));
    assert_eq!(world.sent(), (2, 0));
    assert_eq!(world.engine.take_counts(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_cold_client_waits_for_its_handshake_and_a_late_answer_on_one_connection() {
    let world = World::cold().await;
    world.pool.next(&[LATE]);
    let (began, call) = (Instant::now(), call());
    world.table.in_call(&call).create("a-2", &Account { balance: 1 }).await.expect("a free key");
    assert!(began.elapsed() <= millis(1100), "{:?}", began.elapsed());
    assert_eq!((call.tally().lost_answers, world.sent()), (0, (1, 1)));

    let world = World::cold().await;
    world.pool.next(&[LATE]);
    let (lost, took) = world.add_one().await;
    assert!(took <= millis(1100), "{took:?}");
    assert_eq!((lost, world.sent()), (0, (2, 1)));
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
async fn a_lost_transaction_and_a_lost_acquire_are_found_out_by_their_hedges_too() {
    let world = World::connected(2).await;
    let began = Instant::now();
    let mut reads = Reads::new();
    let new = reads.later("account", &world.table, "a-2");
    world.pool.next(&[Fate::AnswerLost]);
    let done = world.store.transact_with_retry(reads, |attempt| {
        attempt.put_if_absent(new, &Account { balance: 1 })?;
        Ok::<_, Error>(())
    });
    done.await.expect("a free key");
    assert_eq!((began.elapsed(), world.sent()), (HEDGE_AFTER + HOP * 2, (2, 0)));

    let world = World::connected(2).await;
    world.pool.next(&[Fate::AnswerLost]);
    let began = Instant::now();
    let lease = world.store.leases(LEASES).acquire("k", "me", LeaseTerms::default()).await;
    assert_eq!(lease.expect("a free lease").renewals(), 0);
    assert_eq!((began.elapsed(), world.sent()), (HEDGE_AFTER + HOP * 2, (2, 0)));
}

#[tokio::test(start_paused = true)]
async fn a_read_is_hedged_and_so_is_a_batch_of_reads() {
    for fate in [Fate::AnswerLost, Fate::Dropped] {
        let world = World::connected(2).await;
        world.pool.next(&[fate]);
        let began = Instant::now();
        world.table.get(&world.key).await.expect("an answer");
        assert_eq!((began.elapsed(), world.sent()), (HEDGE_AFTER + HOP * 2, (2, 0)), "{fate:?}");

        let world = World::connected(2).await;
        let began = Instant::now();
        let mut reads = Reads::new();
        let account = reads.item("account", &world.table, &world.key);
        world.pool.next(&[fate]);
        let read = world.store.transact_with_retry(reads, |attempt| Ok::<_, Error>(attempt.get(account)?.is_some()));
        assert!(read.await.expect("an answer"));
        assert_eq!((began.elapsed(), world.sent()), (HEDGE_AFTER + HOP * 2, (2, 0)), "{fate:?}");
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

#[tokio::test(start_paused = true)]
async fn a_hedge_does_not_outlast_the_deadline() {
    for allowed in [100, 149, 200, 350, 1000, 3000] {
        let world = World::connected(3).await;
        world.pool.all_after(Fate::Dropped);
        let (began, allowed) = (Instant::now(), millis(allowed));
        let call = Call::new(Deadline::within(allowed));
        let created = world.table.in_call(&call).create("a-2", &Account { balance: 1 }).await;
        let Err(Error::Failed(failure)) = created else { panic!("{created:?}") };
        assert!(began.elapsed() <= allowed + millis(1), "{allowed:?}: {:?}", began.elapsed());
        assert_eq!(failure.is_outcome_unknown(), allowed >= HEDGE_AFTER, "{allowed:?}: {failure:?}");
        let call = Call::new(Deadline::within(allowed));
        let began = Instant::now();
        let read = world.table.in_call(&call).get(&world.key).await.expect_err("no answer");
        assert!(matches!(read, Failure::Unavailable { .. }), "{read:?}");
        assert!(began.elapsed() <= allowed + millis(1), "{allowed:?}: {:?}", began.elapsed());
    }
}
