//! A second copy of a refused attempt lands while the next attempt of its request is on its way. Each answer shows the
//! order as stored, under the tag of this state.

use super::world::{Shop, TABLES, cancellation, order, shown_order};
use crate::harness::answers::Answer;
use crate::harness::engine::{Engine, number};
use crate::harness::events::Event;
use crate::harness::functions::{ORDERS, PRODUCTS};
use crate::harness::late::{Moments, Rival, Story};
use serde_json::{Value, json};

/// Another client leaves so much stock of `a`, which runs low at 5.
fn leave(engine: &Engine, stock: i64, status: &str) {
    let request = json!({"TableName": PRODUCTS, "Key": {"productId": {"S": "a"}},
    "UpdateExpression": "SET stock = :stock, #status = :status, #v = #v + :one",
    "ExpressionAttributeNames": {"#status": "status", "#v": "_version"},
    "ExpressionAttributeValues": {
        ":stock": {"N": stock.to_string()}, ":status": {"S": status}, ":one": {"N": "1"}
    }});
    engine.raw("UpdateItem", &request);
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
