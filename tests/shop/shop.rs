//! Both functions on one engine, the events that they are sent, and what their answers say.

use crate::devices::world::{Answer, Event, context};
use crate::harness::engine::{Engine, body_of, client_over, operation_of, response, store};
use crate::harness::faults::{Network, Wire};
use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use fencepost::Store;
use fencepost::idempotency::derived_id;
use lambda_runtime::LambdaEvent;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

pub const PRODUCTS: &str = "Products";
pub const ORDERS: &str = "Orders";
pub const RECORDS: &str = "IdempotencyRecords";
/// The tables of both functions, each with its key.
pub const TABLES: &[(&str, &str)] = &[(PRODUCTS, "productId"), (ORDERS, "orderId"), (RECORDS, "recordId")];
/// 10:00 on 7 March 2026.
const OPENED: u64 = 1_772_877_600_000;
pub const MAX_STOCK: i64 = 1_000_000_000_000_000;

/// Both functions and what they work on.
pub struct Shop {
    pub engine: Engine,
    inventory: inventory::App,
    orders: place_order::App,
}

impl Shop {
    /// Both functions on an engine of their own with these products, which run low at 5.
    pub async fn with(stocks: &[(&str, i64)]) -> Self {
        let shop = Self::on(&Engine::with_tables(TABLES));
        shop.stock_up(stocks).await;
        shop
    }

    /// Newly started on this engine, which answers at once.
    pub fn on(engine: &Engine) -> Self {
        Self::reached_by(engine, &engine.client())
    }

    /// Newly started on this engine, by this client. No two looks at the clock give the same time.
    pub fn reached_by(engine: &Engine, client: &Client) -> Self {
        let clock = AtomicU64::new(OPENED + fastrand::u64(..1_000_000));
        let now = move || SystemTime::UNIX_EPOCH + Duration::from_millis(clock.fetch_add(1, SeqCst));
        Self::under(engine, &store(client, now, || fastrand::u64(..)))
    }

    /// Newly started on a network, whose randomness it shares; its clock is the test's, which began at `start`.
    pub fn over(network: &Arc<Network>, start: Instant) -> Self {
        let base = SystemTime::UNIX_EPOCH + Duration::from_millis(OPENED);
        let store = network.store(&Wire::new(network).client(), move || base + start.elapsed());
        Self::under(&network.engine, &store)
    }

    fn under(engine: &Engine, store: &Store) -> Self {
        let inventory = inventory::App::new(store.table(PRODUCTS), store.idempotency(RECORDS));
        let orders = place_order::App::new(store.table(ORDERS), store.table(PRODUCTS));
        Shop { engine: engine.clone(), inventory, orders }
    }

    pub async fn stock_up(&self, stocks: &[(&str, i64)]) {
        for (id, stock) in stocks {
            self.send(&product(id, &json!({"stock": stock, "lowStockAt": 5}))).await.shown(201);
        }
    }

    pub async fn send(&self, event: &Event) -> Answer {
        let payload: ApiGatewayV2httpRequest = serde_json::from_str(&event.0.to_string()).expect("an event");
        let sent = LambdaEvent::new(payload, context(Duration::from_secs(10)));
        let answer = if event.0["rawPath"].as_str().expect("a path").starts_with("/products") {
            Box::pin(fencepost::lambda::respond(&self.inventory, &inventory::handle, sent)).await
        } else {
            Box::pin(fencepost::lambda::respond(&self.orders, &place_order::handle, sent)).await
        };
        answer.into()
    }

    /// Sends an event until it is answered otherwise than by 503 or 504, as a client does that wants to know.
    pub async fn settle(&self, event: &Event) -> Answer {
        for _ in 0..100 {
            let answer = self.send(event).await;
            if ![503, 504].contains(&answer.status) {
                return answer;
            }
        }
        panic!("100 times without a definite answer: {event:?}")
    }

    /// Sends an event that is refused as bad input: the answer names the field, and `DynamoDB` was not even asked.
    pub async fn bad_input(&self, event: &Event, code: &str, field: &str) {
        self.engine.take_log();
        let answer = self.send(event).await;
        assert_eq!(answer.says(400, code)["field"], field, "{event:?}");
        answer.check_problem();
        assert_eq!(self.engine.take_counts(), (0, 0), "{event:?}");
    }

    pub async fn place(&self, key: &str, lines: &[(&str, i64)]) -> Answer {
        self.send(&order(key, lines)).await
    }

    /// Stock and status as they are shown.
    pub async fn stock(&self, id: &str) -> (i64, String) {
        let product = self.send(&of_product(load("inventory-get"), id)).await.shown(200);
        (product["stock"].as_i64().expect("a number"), product["status"].as_str().expect("a status").to_owned())
    }
}

/// An event of `events/`.
pub fn load(name: &str) -> Event {
    let path = dev::workspace().join(format!("events/{name}.json"));
    Event(serde_json::from_str(&std::fs::read_to_string(path).expect("an event of that name")).expect("JSON"))
}

fn of(mut event: Event, parameter: &str, id: &str) -> Event {
    let before = event.0["pathParameters"][parameter].as_str().expect("a parameter");
    let path = event.0["rawPath"].as_str().expect("a path").replace(before, id);
    event.0["rawPath"] = json!(path);
    event.0["requestContext"]["http"]["path"] = json!(path);
    event.0["pathParameters"][parameter] = json!(id);
    event
}

/// The same for another product.
pub fn of_product(event: Event, id: &str) -> Event {
    of(event, "productId", id)
}

/// Creates a product.
pub fn product(id: &str, body: &Value) -> Event {
    of_product(load("inventory-create"), id).text(&body.to_string())
}

/// Adjusts a product, without a key.
pub fn adjustment(id: &str, by: i64) -> Event {
    of_product(load("inventory-adjust"), id).text(&json!({"by": by}).to_string())
}

/// Places an order of `user-1` under this key.
pub fn order(key: &str, lines: &[(&str, i64)]) -> Event {
    let line = |(id, quantity): &(&str, i64)| json!({"productId": id, "quantity": quantity});
    let lines: Vec<_> = lines.iter().map(line).collect();
    load("place-order-place").key(key).text(&json!({"userId": "user-1", "lines": lines}).to_string())
}

/// The id of the order under this key.
pub fn order_id(key: &str) -> String {
    let event = load("place-order-place").0;
    let caller = event["requestContext"]["authorizer"]["iam"]["userArn"].as_str().expect("who sends it");
    derived_id(&["order", caller, "user-1", key])
}

pub fn cancellation(id: &str) -> Event {
    of(load("place-order-cancel"), "orderId", id)
}

pub fn shown_order(id: &str) -> Event {
    of(load("place-order-get"), "orderId", id)
}

impl Answer {
    /// What is shown with this status.
    pub fn shown(&self, status: i64) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }

    /// What is said beside this status and this code.
    pub fn says(&self, status: i64, code: &str) -> Value {
        let problem = self.json();
        assert_eq!((self.status, problem["code"].as_str()), (status, Some(code)), "{self:?}");
        problem
    }

    /// The id of the order that it shows.
    pub fn order(&self) -> String {
        self.json()["orderId"].as_str().expect("an order").to_owned()
    }

    pub fn is_replay(&self) -> bool {
        self.header("idempotency-replayed") == Some("true")
    }
}

/// A number of a stored row.
pub fn number(row: &Value, name: &str) -> i64 {
    row[name]["N"].as_str().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{name} of {row}"))
}

/// A client whose requests are answered by the test, which learns how many writes came before, the operation and its
/// body.
pub fn client_whose(
    engine: &Engine,
    answer: impl Fn(&Engine, usize, &str, &[u8]) -> (u16, String) + Send + Sync + 'static,
) -> Client {
    client_over(Answering { engine: engine.clone(), writes: AtomicUsize::new(0), answer })
}

struct Answering<F> {
    engine: Engine,
    writes: AtomicUsize,
    answer: F,
}

impl<F> std::fmt::Debug for Answering<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answering")
    }
}

impl<F: Fn(&Engine, usize, &str, &[u8]) -> (u16, String) + Send + Sync> HttpConnector for Answering<F> {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let operation = operation_of(&request);
        let write = usize::from(operation == "TransactWriteItems");
        let writes = self.writes.fetch_add(write, SeqCst);
        let (status, body) = (self.answer)(&self.engine, writes, &operation, &body_of(&request));
        HttpConnectorFuture::ready(response(status, body))
    }
}
