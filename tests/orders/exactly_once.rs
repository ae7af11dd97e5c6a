//! The same request any number of times, in any way: one effect, and each time the same answer.

use super::shop::{PRODUCTS, Shop, TABLES, adjustment, cancellation, number, order};
use crate::engine::Engine;
use crate::faults::{Broken, Network, Rates};
use crate::scenarios::world::{Answer, Event};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A request that must count once.
#[derive(Clone, Copy, Debug)]
pub enum Deed {
    Order,
    Adjustment,
    Cancellation,
}

impl Deed {
    pub const ALL: [Self; 3] = [Deed::Order, Deed::Adjustment, Deed::Cancellation];

    /// Its event, at a shop that has 10 of the product `a`.
    pub async fn prepare(self, engine: &Engine) -> Event {
        let shop = Shop::on(engine);
        shop.stock_up(&[("a", 10)]).await;
        match self {
            Deed::Order => order("k-1", &[("a", 4)]),
            Deed::Adjustment => adjustment("a", -4).key("k-1"),
            Deed::Cancellation => {
                let placed = shop.place("k-1", &[("a", 4)]).await;
                placed.shown(201);
                cancellation(&placed.order())
            }
        }
    }

    /// Asserts that the product was written once for it, and that all its answers are the same.
    pub fn assert_once(self, engine: &Engine, answers: &[Answer]) {
        let (status, stock, version) = match self {
            Deed::Order => (201, 6, 2),
            Deed::Adjustment => (200, 6, 2),
            Deed::Cancellation => (200, 10, 3),
        };
        let row = engine.row(PRODUCTS, "productId", "a");
        assert_eq!((number(&row, "stock"), number(&row, "_version")), (stock, version), "{self:?}");
        for answer in answers {
            assert_eq!((answer.status, &answer.body), (status, &answers[0].body), "{self:?}");
            assert_eq!(answer.etag(), answers[0].etag(), "{self:?}");
        }
        let first = answers.iter().filter(|answer| !answer.is_replay()).count();
        assert!(first <= 1 || matches!(self, Deed::Cancellation), "{self:?}: {first} answers are no replays");
    }
}

#[tokio::test]
async fn ten_times_one_after_another_is_once() {
    for deed in Deed::ALL {
        let engine = Engine::with_tables(TABLES);
        let event = deed.prepare(&engine).await;
        let shop = Shop::on(&engine);
        let mut answers = Vec::new();
        for _ in 0..10 {
            answers.push(shop.send(&event).await);
        }
        deed.assert_once(&engine, &answers);
    }
}

#[tokio::test]
async fn ten_times_by_ten_new_functions_after_every_token_is_forgotten_is_once() {
    for deed in Deed::ALL {
        let engine = Engine::with_tables(TABLES);
        let event = deed.prepare(&engine).await;
        let mut answers = Vec::new();
        for _ in 0..10 {
            answers.push(Shop::on(&engine).send(&event).await);
            engine.forget_tokens();
        }
        deed.assert_once(&engine, &answers);
    }
}

/// Ten clients at once on a network with these faults, each until it has an answer; then one more, late.
async fn ten_at_once(deed: Deed, rates: Rates, seed: u64) {
    println!("{deed:?}, seed {seed}");
    let engine = Engine::embedded(TABLES);
    let event = deed.prepare(&engine).await;
    let network = Network::new(&engine, rates, Broken::Nothing, fastrand::Rng::with_seed(seed));
    let (start, mut clients) = (Instant::now(), JoinSet::new());
    for _ in 0..10 {
        let (shop, event) = (Shop::over(&network, start), event.clone());
        clients.spawn(async move { shop.settle(&event).await });
    }
    let mut answers = clients.join_all().await;
    // Until everything that is still under way has arrived.
    tokio::time::sleep(Duration::from_mins(15)).await;
    engine.forget_tokens();
    answers.push(Shop::on(&engine).send(&event).await);
    let late = answers.last().expect("just pushed");
    assert!(late.is_replay() || matches!(deed, Deed::Cancellation), "{late:?}");
    deed.assert_once(&engine, &answers);
}

#[tokio::test(start_paused = true)]
async fn ten_times_at_once_is_once() {
    for deed in Deed::ALL {
        for seed in 0..10 {
            ten_at_once(deed, Rates::default(), seed).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn ten_times_at_once_with_answers_lost_is_once() {
    let rates = Rates {
        dropped: 30,
        answer_lost: 150,
        applied_500: 150,
        refused_500: 30,
        held: 30,
        second_copy: 100,
        throttled: 20,
        transaction_conflict: 50,
        in_progress: 30,
        mismatch: 20,
        tokens_forgotten: 50,
        mixed_reasons: 50,
        unprocessed: 50,
        ..Rates::default()
    };
    for deed in Deed::ALL {
        for seed in (0..8).chain([fastrand::u64(..)]) {
            ten_at_once(deed, rates, seed).await;
        }
    }
}
