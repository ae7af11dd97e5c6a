//! One item is left, and several want it.

use super::ledger::{Totals, Twice};
use super::naive::{self, Ended};
use super::scene::{Actor, Scene, Verdict, request};
use super::story::{
    ACKNOWLEDGED, Counter, HELD, Settings, Side, Story, TWICE, UNKNOWN, counter, live_rows, numbered, were,
};
use fencepost::{Store, Table};
use fencepost_test::{Engine, number};
use functions::order::Order;
use functions::product::Product;
use futures_util::future::join_all;
use serde_json::json;
use std::rc::Rc;

const PRODUCTS: &str = "Products";
const ORDERS: &str = "Orders";
const TABLES: &[(&str, &str)] = &[(PRODUCTS, "productId"), (ORDERS, "orderId"), ("IdempotencyRecords", "recordId")];
const LAST: &str = "last";
/// How often a buyer asks before giving up.
const PATIENCE: usize = 20;

pub const STORY: Story = Story {
    name: "last-item",
    title: "The last item",
    summary: "One item is left. Several buyers order it in the same moment. One order must take it, and the others must \
              learn that it is gone.",
    settings: Settings { writers: 4, ..Settings::PLAIN },
    facts: |settings| format!("{} buyers", settings.writers),
    seeds: &[2, 1, 3],
    lost_answers: &[30, 0],
    sides: SIDES,
    clients: |settings| numbered("buyer", settings),
    counters: COUNTERS,
    twice: Twice::InAll,
};

pub const FLASH_SALE: Story = Story {
    name: "flash-sale",
    title: "A flash sale",
    summary: "Three hundred items are for sale, and a thousand buyers want one, at twenty tills at once. Three hundred orders \
              must take them, and the others must learn that they are gone.",
    settings: Settings { writers: 20, changes: 50, ..Settings::PLAIN },
    facts: |settings| {
        format!("{} tills, {} buyers each, {} items", settings.writers, settings.changes, items(settings))
    },
    seeds: &[1],
    lost_answers: &[2],
    clients: |settings| numbered("till", settings),
    twice: Twice::PerCall,
    ..STORY
};

const SIDES: &[Side] = &[
    Side {
        id: "naive",
        title: "Two writes",
        how: "Take one from the stock if there is one, then write the order. The SDK sends again what got no answer.",
        tables: TABLES,
        held: orders,
        play: |scene, settings| Box::pin(async move { naive_shop(&scene, &settings).await }),
        verdict,
    },
    Side {
        id: "fencepost",
        title: "Fencepost",
        how: "place-order takes the stock and leaves a hold there, then creates the order, which decides. The buyer's \
              idempotency key names the order.",
        tables: TABLES,
        held: orders,
        play: |scene, settings| Box::pin(async move { shop(scene, &settings).await }),
        verdict,
    },
];

const COUNTERS: &[Counter] = &[
    counter("gone", "Gone for nothing", "Items that left the stock, and that no order has, or that two have."),
    ACKNOWLEDGED,
    UNKNOWN,
    HELD,
    TWICE,
    counter("refused", "Told: sold out", "Buyers who learned that the item is gone."),
    counter("stock", "In stock", "What the product says is left."),
];

/// Three items for ten buyers, and at least one.
fn items(settings: &Settings) -> i64 {
    let buyers = i64::from(settings.changes) * i64::try_from(settings.writers).expect("few");
    (buyers * 3 / 10).max(1)
}

fn orders(engine: &Engine) -> i64 {
    live_rows(engine, ORDERS)
}

fn stock(engine: &Engine) -> i64 {
    number(&engine.row(PRODUCTS, "productId", LAST), "stock")
}

fn count_stock(scene: &Scene) {
    scene.count("stock", stock(scene.engine()) - scene.totals().get("stock"));
}

/// All tills sell at once, by `order`, to one buyer after the other.
async fn buyers<'a, F: Future<Output = Ended> + 'a>(
    scene: &'a Scene,
    settings: &Settings,
    order: impl Fn(Actor<'a>) -> F,
) {
    count_stock(scene);
    settings.trouble(scene);
    let order = &order;
    join_all((0..settings.writers).map(|till| async move {
        for _ in 0..settings.changes {
            match order(scene.client(till)).await {
                Ended::Acknowledged => scene.count("acknowledged", 1),
                Ended::Refused => scene.count("refused", 1),
                Ended::Unknown => scene.count("unknown", 1),
            }
            count_stock(scene);
            scene.ledger().tell_counters();
        }
    }))
    .await;
    scene.db().settle().await;
    count_stock(scene);
    let totals = scene.totals();
    scene.count("gone", (items(settings) - totals.get("stock") - totals.get("held")).abs());
}

async fn shop(scene: Rc<Scene>, settings: &Settings) {
    let product = request("PUT /products/{productId}", LAST, &json!({ "stock": items(settings) }));
    Box::pin(scene.prepare(inventory, functions::inventory::create_product, &product)).await;
    buyers(&scene, settings, |actor| Box::pin(order(actor))).await;
}

/// The products, of which orders hold parts.
fn products(store: &Store) -> Table<Product> {
    store.table(PRODUCTS).held_for(&store.table::<Order>(ORDERS))
}

fn inventory(store: &Store) -> functions::inventory::App {
    functions::inventory::App::new(products(store), store.idempotency("IdempotencyRecords"))
}

fn place_order(store: &Store) -> functions::place_order::App {
    functions::place_order::App::new(store.table(ORDERS), products(store))
}

/// One buyer asks again, with the same key, until the answer is definite.
async fn order(actor: Actor<'_>) -> Ended {
    let app = place_order(&actor.store());
    let body = json!({ "userId": "buyer", "lines": [{ "productId": LAST, "quantity": 1 }] });
    let mut order = request("POST /orders", "", &body);
    order.headers.insert("idempotency-key".to_owned(), format!("{:016x}", actor.scene().db().random()));
    for _ in 0..PATIENCE {
        let answer = Box::pin(actor.ask(&app, functions::place_order::place_order, &order)).await;
        match answer.outcome {
            _ if answer.is_success() => return Ended::Acknowledged,
            "insufficient_stock" => return Ended::Refused,
            _ => actor.note("asks again, with the same idempotency key"),
        }
    }
    Ended::Unknown
}

async fn naive_shop(scene: &Scene, settings: &Settings) {
    scene.db().put(PRODUCTS, &json!({ "productId": {"S": LAST}, "stock": {"N": items(settings).to_string()} }));
    let told = |ended| match ended {
        Ended::Acknowledged => ("ok", "ordered"),
        Ended::Refused => ("refused", "sold out"),
        Ended::Unknown => ("unknown", "no answer"),
    };
    let order = |actor| {
        Box::pin(async move { naive::call(&actor, "order one", told, Box::pin(naive::order(&actor, LAST))).await })
    };
    buyers(scene, settings, order).await;
}

fn verdict(totals: &Totals) -> Verdict {
    let [acknowledged, unknown, held, stock, gone] =
        ["acknowledged", "unknown", "held", "stock", "gone"].map(|name| totals.get(name));
    let is_good = gone == 0 && stock == 0 && (acknowledged..=acknowledged + unknown).contains(&held);
    let told = were(acknowledged, "order");
    let text = match (is_good, held, stock) {
        (true, ..) => {
            format!("Each item was sold once: {told} acknowledged, {held} in the table, and the stock is {stock}.")
        }
        (_, 0, 0) => "The item is gone, and nobody has it: the stock was taken and no order was written.".to_owned(),
        _ => format!("{told} acknowledged, {held} in the table, and the stock is {stock}: {gone} in the wrong place."),
    };
    Verdict { text, is_good }
}
