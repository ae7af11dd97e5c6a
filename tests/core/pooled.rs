//! A store over simulated connections: each takes a handshake to open, and is closed when its request is dropped.

use super::accounts::{Account, TABLE, add_one, call};
use crate::harness::engine::{Engine, number};
use crowds::pool::{Counts, Fate, Pool};
use fencepost::{ItemVersion, Key, Store, Table};
use std::time::Duration;
use tokio::time::Instant;

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
    pub at: ItemVersion,
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
        let at = direct.create(&key, &Account { balance: 50 }).await.expect("a free key").at;
        let answering = engine.clone();
        let pool = Pool::new(handshake, HOP, move |operation, body| answering.answer(operation, body));
        let store = Store::new(&pool.client());
        let world = World { table: store.table(TABLE), engine, pool, store, key, at };
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

    /// The version and the balance of the account.
    pub fn stored(&self) -> (i64, i64) {
        let row = self.engine.row(TABLE, "accountId", "a-1");
        (number(&row, "_version"), number(&row, "balance"))
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
