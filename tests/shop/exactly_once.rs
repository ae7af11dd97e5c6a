//! The same request any number of times, in any way: one effect and always the same answer.

use super::world::{Shop, TABLES, adjustment, cancellation, order};
use crate::harness::answers::Answer;
use crate::harness::clients::{client_whose, lost};
use crate::harness::engine::{Engine, number};
use crate::harness::events::Event;
use crate::harness::faults::{Broken, Rates, network_that_breaks};
use crate::harness::functions::PRODUCTS;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A request with one effect.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Order,
    Adjustment,
    Cancellation,
}

impl Deed {
    const ALL: [Self; 3] = [Deed::Order, Deed::Adjustment, Deed::Cancellation];

    /// Its event, at a shop with 10 of the product `a`.
    async fn prepare(self, engine: &Engine) -> Event {
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

    /// Asserts that the product was written once for it, with the same answer each time.
    fn assert_once(self, engine: &Engine, answers: &[Answer]) {
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

/// Ten clients at once on a network with these faults, each until it has an answer; then one more, late.
async fn ten_at_once(deed: Deed, rates: Rates, seed: u64) {
    println!("{deed:?}, seed {seed}");
    let engine = Engine::embedded(TABLES);
    let event = deed.prepare(&engine).await;
    let network = network_that_breaks(&engine, rates, Broken::Nothing, fastrand::Rng::with_seed(seed));
    let (start, mut clients) = (Instant::now(), JoinSet::new());
    for _ in 0..10 {
        let (shop, event) = (Shop::over(&network, start), event.clone());
        clients.spawn(async move { shop.settle(&event).await });
    }
    let mut answers = clients.join_all().await;
    // Until all requests on their way have arrived.
    tokio::time::sleep(Duration::from_mins(15)).await;
    engine.forget_tokens();
    answers.push(Shop::on(&engine).send(&event).await);
    let late = answers.last().expect("just pushed");
    assert!(late.is_replay() || matches!(deed, Deed::Cancellation), "{late:?}");
    deed.assert_once(&engine, &answers);
}

#[tokio::test(start_paused = true)]
async fn ten_times_at_once_is_once_also_with_answers_lost() {
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
        garbled: 50,
        ..Rates::default()
    };
    for deed in Deed::ALL {
        for seed in 0..10 {
            ten_at_once(deed, Rates::default(), seed).await;
        }
        for seed in (0..8).chain([fastrand::u64(..)]) {
            ten_at_once(deed, rates, seed).await;
        }
    }
}

/// Before its refusal, the order is read once more. If this read fails, an earlier copy may have placed it.
#[tokio::test(start_paused = true)]
async fn a_refusal_that_cannot_be_looked_at_again_does_not_say_that_nothing_was_ever_applied() {
    let shop = Shop::with(&[("a", 1)]).await;
    let blind = client_whose(&shop.engine, |engine, _, operation, body| {
        if operation == "GetItem" {
            return lost();
        }
        engine.answer(operation, body)
    });
    let blind = shop.reached_by(&blind);
    for too_much in [order("k-1", &[("a", 2)]), adjustment("a", -2).key("k-1")] {
        let problem = blind.send(&too_much).await.says(503, "unavailable");
        let detail = problem["detail"].as_str().expect("a detail");
        let earlier = "this request applied nothing; an earlier one with the same Idempotency-Key";
        assert!(detail.contains(earlier), "{too_much:?}: {detail}");
    }
}
