//! The same request any number of times, in any way: one effect and always the same answer.
//!
//! A second copy of a refused attempt may land while the next attempt of its request is on its way. Each answer shows the order
//! as stored, under the tag of this state.

use super::world::{Shop, TABLES, adjustment, cancellation, order, shown_order};
use crate::harness::answers::Answer;
use crate::harness::clients::{client_whose, lost};
use crate::harness::engine::{Engine, number};
use crate::harness::events::Event;
use crate::harness::faults::{Broken, Rates, network_that_breaks};
use crate::harness::functions::{ORDERS, PRODUCTS};
use crate::harness::late::{Moments, Rival, Story};
use crate::harness::states::set_by_another;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
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

/// By one function, and by ten new ones after every token is forgotten.
#[tokio::test]
async fn ten_times_one_after_another_is_once() {
    for deed in Deed::ALL {
        for is_forgotten in [false, true] {
            let engine = Engine::with_tables(TABLES);
            let event = deed.prepare(&engine).await;
            let (mut shop, mut answers) = (Shop::on(&engine), Vec::new());
            for _ in 0..10 {
                answers.push(shop.send(&event).await);
                if is_forgotten {
                    engine.forget_tokens();
                    shop = Shop::on(&engine);
                }
            }
            deed.assert_once(&engine, &answers);
        }
    }
}

/// The token is forgotten. The rows prove the write: the client need not ask again.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_found_out_from_the_rows_once_its_token_is_forgotten() {
    for deed in Deed::ALL {
        let engine = Engine::with_tables(TABLES);
        let event = deed.prepare(&engine).await;
        let client = client_whose(&engine, |engine, writes, operation, body| {
            let answer = engine.answer(operation, body);
            if operation != "TransactWriteItems" || writes > 0 {
                return answer;
            }
            engine.forget_tokens();
            lost()
        });
        engine.take_log();
        let answer = Shop::on(&engine).reached_by(&client).send(&event).await;
        assert_eq!(engine.take_counts().1, 2, "{deed:?}");
        assert!(!answer.is_replay(), "{deed:?}");
        deed.assert_once(&engine, &[answer]);
    }
}

/// The product has moved on. An order and a cancellation demand no version of it: their second send is applied. An
/// adjustment with a key demands one and is decided again. No copy of the first send is applied after it.
#[tokio::test(start_paused = true)]
async fn a_request_that_was_lost_and_not_applied_is_applied_once_to_the_product_as_it_is_now() {
    for (deed, sends) in [(Deed::Order, 1), (Deed::Adjustment, 2), (Deed::Cancellation, 1)] {
        let engine = Engine::with_tables(TABLES);
        let event = deed.prepare(&engine).await;
        let before = engine.row(PRODUCTS, "productId", "a");
        let under_way = Arc::<Mutex<Vec<u8>>>::default();
        let noted = under_way.clone();
        let client = client_whose(&engine, move |engine, writes, operation, body| {
            if operation != "TransactWriteItems" || writes > 0 {
                return engine.answer(operation, body);
            }
            *noted.lock().expect("no panic") = body.to_vec();
            set_by_another(engine, PRODUCTS, "a", &[]);
            lost()
        });
        engine.take_log();
        let answer = Shop::on(&engine).reached_by(&client).send(&event).await;
        assert_eq!((answer.status / 100, engine.take_counts().1), (2, sends), "{deed:?}: {answer:?}");
        let after = engine.row(PRODUCTS, "productId", "a");
        assert_eq!(number(&after, "_version"), number(&before, "_version") + 2, "{deed:?}");
        engine.forget_tokens();
        let late = engine.answer("TransactWriteItems", &under_way.lock().expect("no panic"));
        assert_eq!((late.0, engine.row(PRODUCTS, "productId", "a")), (400, after), "{deed:?}");
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

/// Another client leaves so much stock of `a`, which runs low at 5.
fn leave(engine: &Engine, stock: i64, status: &str) {
    let left = [("stock", json!({"N": stock.to_string()})), ("status", json!({"S": status}))];
    set_by_another(engine, PRODUCTS, "a", &left);
}

/// All stored rows: the product and all orders.
fn rows(engine: &Engine) -> Vec<Value> {
    let mut rows = vec![engine.row(PRODUCTS, "productId", "a")];
    let mut orders = engine.raw("Scan", &json!({"TableName": ORDERS, "ConsistentRead": true}));
    rows.append(orders["Items"].as_array_mut().expect("items"));
    rows
}

/// A request with a first attempt that is refused because it would leave a wrong status. Gives the answer with the
/// effect on the stock.
async fn answered(shop: &Shop, event: &Event, moments: Moments, rival: Rival, copies: &mut usize) -> (Answer, i64) {
    let (client, story) = Story::begin(&shop.engine, moments, rival, rows);
    let answer = shop.reached_by(&client).send(event).await;
    *copies += usize::from(story.end(&shop.engine));
    let stock = |rows: &[Value]| number(&rows[0], "stock");
    let changed = story.effect().map_or(0, |(before, after)| stock(&after) - stock(&before));
    (answer, changed)
}

#[tokio::test(start_paused = true)]
async fn an_answer_shows_the_order_as_the_committed_attempt_stored_it_and_so_does_each_repeat() {
    for is_order in [true, false] {
        let mut copies = 0;
        for moments in Moments::all() {
            let shop = Shop::on(&Engine::with_tables(TABLES));
            shop.stock_up(&[("a", 10)]).await;
            let placement = order("k-1", &[("a", 3)]);
            let event = if is_order { placement } else { cancellation(&shop.send(&placement).await.order()) };
            let refuses: fn(&Engine) =
                if is_order { |engine| leave(engine, 7, "in_stock") } else { |engine| leave(engine, 1, "low_stock") };
            let rival = Rival::of(refuses, |engine| {
                let stock = number(&engine.row(PRODUCTS, "productId", "a"), "stock");
                leave(engine, stock + 13, "in_stock");
            });
            let (answer, changed) = answered(&shop, &event, moments, rival, &mut copies).await;
            if answer.status == 504 {
                continue;
            }
            assert_eq!(
                (answer.status, changed),
                if is_order { (201, -3) } else { (200, 3) },
                "{moments:?}: {answer:?}"
            );
            let repeat = shop.send(&event).await;
            assert_eq!(repeat.is_replay(), is_order, "{moments:?}: {repeat:?}");
            let look = shown_order(&answer.order());
            for other in [repeat, shop.send(&look).await] {
                assert_eq!((&other.body, other.etag()), (&answer.body, answer.etag()), "{moments:?}");
            }
            assert_eq!(shop.send(&look.header("if-none-match", answer.etag())).await.status, 304, "{moments:?}");
        }
        assert!(copies > 0, "no copy was ever applied");
    }
}
