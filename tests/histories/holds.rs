//! Histories of orders with holds: buyers that repeat their orders, restocks, takings and cancellations, under every fault,
//! with processes that die in the middle. At every moment, what is in stock, held and ordered has the same sum.

use super::history::{APPLIED_TWICE, DENIED, History, NEVER_APPLIED, says_not_applied};
use super::scene::{self, Begun, STORM, rates, work_together};
use crate::harness::engine::{Engine, store};
use crate::harness::faults::{Applied, Broken, Freezing, Rates, network_that_breaks};
use crate::harness::total::Total;
use crate::histories::audit::breaches;
use fencepost::maintenance::Audit;
use fencepost::{
    Call, Deadline, Edit, Error, Failure, FailureKind, Holds, NotEditedReason, Reads, Record, Settings, Table,
    UpdateError,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, timeout};

const PRODUCTS: &str = "HeldProducts";
const ORDERS: &str = "HeldOrders";
const NAMES: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(
    key = "id",
    settings = Settings::own().remembered_writes(24).edit_window(8),
    holds = Holds::of("stock").with(|_, edit| Product::with_status(edit))
)]
struct Product {
    stock: i64,
    status: Status,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Status {
    Out,
    In,
}

impl Product {
    fn with_status(edit: Edit<Product>) -> Edit<Product> {
        let product = Self::FIELDS;
        edit.bands(&product.status, &product.stock, [(0..=0, Status::Out), (1..=i64::MAX, Status::In)])
    }

    fn take(quantity: i64) -> Edit<Product> {
        Self::with_status(Self::FIELDS.stock.add(-quantity, 0..))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "id", settings = Settings::deciding())]
struct Order {
    /// The operation that placed it.
    by: u64,
    lines: BTreeMap<String, i64>,
    is_cancelled: bool,
}

type Scene = scene::Scene<Broken, Done>;

#[derive(Clone, Debug)]
struct Done {
    number: u64,
    began: Instant,
    ended: Instant,
    act: Act,
    /// `None` if its process died.
    told: Option<Told>,
}

#[derive(Clone, Debug, PartialEq)]
enum Act {
    /// Orders under this id: so many of each product.
    Order(String, BTreeMap<String, i64>),
    Adjust(String, i64),
    Cancel(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Applied,
    /// An order is there, placed by this operation.
    Replayed(u64),
    /// The stock is too small.
    Short,
    NotApplied,
    Held,
    Unknown,
}

struct Client {
    client: scene::Client<Broken, Done>,
}

impl Client {
    async fn work(self, turns: u64) {
        let (mut products, mut orders) = self.tables();
        for _ in 0..turns {
            self.client.pause(60).await;
            if self.client.below(4) == 0 {
                (products, orders) = self.tables();
            }
            let act = self.act();
            let Begun { number, began, call } = self.client.begin(4000);
            let works = Freezing::new(&self.client.network, self.perform(number, &act, (&products, &orders), &call));
            // A process that dies drops its future.
            let dies = if self.client.below(6) == 0 { self.client.below(200) } else { u64::MAX / 2 };
            let told = timeout(Duration::from_millis(dies), works).await.ok();
            self.client.scene.note(Done { number, began, ended: Instant::now(), act, told });
        }
    }

    /// The tables of a new process.
    fn tables(&self) -> (Table<Product>, Table<Order>) {
        let store = self.client.open();
        let orders = store.table(ORDERS);
        let products = store.table::<Product>(PRODUCTS).held_for(&orders);
        (if self.client.below(2) == 0 { products.remembering_items() } else { products }, orders)
    }

    fn id(&self, name: &str) -> String {
        id(&self.client.scene.name, name)
    }

    fn act(&self) -> Act {
        let order = self.client.below(6);
        let product = |place: usize| self.id(NAMES[place % NAMES.len()]);
        match self.client.below(12) {
            0..=7 => {
                // Orders of one id have the same lines.
                let first = usize::try_from(order).expect("small");
                let lines = (0..=order % 3).zip(1..).map(|(line, quantity)| {
                    (product(first + usize::try_from(line).expect("small")), 1 + (order + quantity) % 3)
                });
                let lines = lines.map(|(product, quantity)| (product, i64::try_from(quantity).expect("small")));
                Act::Order(self.id(&format!("o{order}")), lines.collect())
            }
            8 | 9 => {
                let by = [-2, -1, 1, 2][self.client.pick(4)];
                Act::Adjust(product(self.client.pick(3)), by)
            }
            _ => Act::Cancel(self.id(&format!("o{order}"))),
        }
    }

    async fn perform(&self, number: u64, act: &Act, tables: (&Table<Product>, &Table<Order>), call: &Call) -> Told {
        let (products, orders) = tables;
        match act {
            Act::Order(id, lines) => self.order(number, id, lines, products, orders, call).await,
            Act::Adjust(id, by) => match products.in_call(call).edit(id.as_str(), &Product::take(-by)).await {
                Ok(_) => Told::Applied,
                Err(UpdateError::Refused(refused)) if refused.reason == NotEditedReason::OutOfRange => Told::Short,
                Err(UpdateError::Failed(failure)) => told_by(&failure),
                Err(other) => panic!("no such thing happens here: {other}"),
            },
            Act::Cancel(id) => self.cancel(id, products, orders, call).await,
        }
    }

    async fn order(
        &self,
        number: u64,
        id: &str,
        lines: &BTreeMap<String, i64>,
        products: &Table<Product>,
        orders: &Table<Order>,
        call: &Call,
    ) -> Told {
        let mut reads = Reads::new();
        let order =
            if self.client.below(2) == 0 { reads.later("order", orders, id) } else { reads.item("order", orders, id) };
        let items: Vec<_> = lines
            .iter()
            .map(|(product, quantity)| (reads.remembered(product, products, product.as_str()), *quantity))
            .collect();
        // Some leave the stock to the edit.
        let looks = self.client.below(2) == 0;
        let store = products.store().in_call(call);
        let placed = store.transact_with_retry(reads, |attempt| {
            if let Some(stored) = attempt.get(order)? {
                return Ok(Told::Replayed(stored.by));
            }
            for &(item, quantity) in &items {
                attempt.held(item)?;
                if looks && attempt.get(item)?.expect("nobody deletes a product").stock < quantity {
                    return Err(Error::Refused(()));
                }
                match attempt.edit_blind(item, &Product::take(quantity)) {
                    Err(Failure { kind: FailureKind::EditRefused { .. }, .. }) => return Err(Error::Refused(())),
                    added => added?,
                }
            }
            attempt.put_if_absent(order, &Order { by: number, lines: lines.clone(), is_cancelled: false })?;
            Ok(Told::Applied)
        });
        match placed.await {
            Ok(told) => told,
            Err(Error::Refused(())) => match orders.in_call(call).get(id).await {
                // As `place-order` does: the order was perhaps not read.
                Ok(Some(stored)) => Told::Replayed(stored.by),
                Ok(None) => Told::Short,
                Err(failure) => told_by(&failure),
            },
            Err(Error::Failed(failure)) => told_by(&failure),
        }
    }

    async fn cancel(&self, id: &str, products: &Table<Product>, orders: &Table<Order>, call: &Call) -> Told {
        let lines = match orders.in_call(call).get(id).await {
            Ok(Some(seen)) => seen.value.lines,
            Ok(None) => return Told::Short,
            Err(failure) => return told_by(&failure),
        };
        let mut reads = Reads::new();
        let order = reads.item("order", orders, id);
        let items: Vec<_> = lines
            .iter()
            .map(|(product, quantity)| (reads.remembered(product, products, product.as_str()), *quantity))
            .collect();
        let store = products.store().in_call(call);
        let cancelled = store.transact_with_retry(reads, |attempt| {
            let stored = attempt.get(order)?.expect("nobody deletes an order");
            if stored.is_cancelled {
                return Ok(Told::Replayed(stored.by));
            }
            for &(item, quantity) in &items {
                attempt.edit_blind(item, &Product::take(-quantity))?;
            }
            attempt.update_at(order, &Order { is_cancelled: true, ..stored.value })?;
            Ok::<_, Error>(Told::Applied)
        });
        match cancelled.await {
            Ok(told) => told,
            Err(Error::Failed(failure)) => told_by(&failure),
        }
    }
}

fn id(scene: &str, name: &str) -> String {
    format!("{name}-{scene}")
}

fn told_by(failure: &Failure) -> Told {
    match failure.kind {
        FailureKind::Held { .. } => Told::Held,
        _ if says_not_applied(failure) => Told::NotApplied,
        _ => Told::Unknown,
    }
}

/// The rows as they are at one moment.
#[derive(Clone, Default)]
struct State {
    products: BTreeMap<String, Value>,
    orders: BTreeMap<String, Value>,
}

impl State {
    fn set(&mut self, Applied { rows, .. }: &Applied) {
        for touched in rows {
            let rows = if touched.step.table == PRODUCTS { &mut self.products } else { &mut self.orders };
            rows.insert(touched.step.id.clone(), touched.row.clone());
        }
    }

    fn stock(&self, product: &str) -> i64 {
        number(&self.products[product]["stock"])
    }

    /// What orders hold of this product that are not placed.
    fn held(&self, product: &str) -> i64 {
        let holds = self.products[product]["_holds"]["M"].as_object();
        holds.into_iter().flatten().filter(|hold| !self.is_placed(hold)).map(|(_, hold)| number(&hold["L"][0])).sum()
    }

    /// Whether the attempt of a hold has placed its order.
    fn is_placed(&self, (attempt, hold): &(&String, &Value)) -> bool {
        let order = hold["L"][1]["S"].as_str().and_then(|id| self.orders.get(id));
        order.is_some_and(|order| {
            let by = order["_placedBy"]["B"].as_str().unwrap_or_default();
            is_live(order) && by.trim_end_matches('=').replace('+', "-").replace('/', "_") == **attempt
        })
    }

    /// What is held of this product and comes back, because these orders of the last state are not those of its holds. An order
    /// that is placed counts from its take on: its call is under way.
    fn comes_back(&self, product: &str, last: &State) -> i64 {
        State { orders: last.orders.clone(), ..self.clone() }.held(product)
    }

    /// What is ordered of this product.
    fn ordered(&self, product: &str) -> i64 {
        let orders =
            self.orders.values().filter(|order| is_live(order) && order["is_cancelled"]["BOOL"] == json!(false));
        orders.filter_map(|order| order["lines"]["M"].get(product)).map(number).sum()
    }

    fn sum(&self, product: &str) -> i64 {
        self.stock(product) + self.held(product) + self.ordered(product)
    }
}

fn is_live(row: &Value) -> bool {
    row.get("by").is_some()
}

fn number(value: &Value) -> i64 {
    value["N"].as_str().expect("a number").parse().expect("a small one")
}

struct Orders {
    scene: String,
    first: State,
    done: Vec<Done>,
    applied: Vec<Applied>,
    start: Instant,
}

impl Orders {
    /// All effects in their order, each with the state after it.
    fn states(&self) -> Vec<(&Applied, State)> {
        let mut state = self.first.clone();
        let after = |applied| {
            state.set(applied);
            (applied, state.clone())
        };
        self.applied.iter().map(after).collect()
    }

    fn sums(&self, states: &[(&Applied, State)]) -> Vec<String> {
        let (mut found, mut before) = (Vec::new(), &self.first);
        let mut adjusted = BTreeSet::new();
        for (applied, state) in states {
            let act = self.done.iter().find(|done| done.number == applied.op).map(|done| &done.act);
            for product in self.first.products.keys() {
                let (changed, by) = (state.sum(product) - before.sum(product), state.stock(product));
                if by < 0 {
                    found.push(format!("{OVERSOLD}: {product} has {by}"));
                }
                let status = &state.products[product]["status"]["S"];
                if *status != json!(if by == 0 { "Out" } else { "In" }) {
                    found.push(format!("{product} has {by} and is {status}"));
                }
                match act {
                    _ if changed == 0 => {}
                    Some(Act::Adjust(id, by)) if id == product && *by == changed => {
                        if !adjusted.insert(applied.op) {
                            found.push(format!("{APPLIED_TWICE}: the adjustment {}", applied.op));
                        }
                    }
                    act => found.push(format!(
                        "{SUM}: {product} by {changed} in operation {} {act:?}, {:?}",
                        applied.op, applied.rows
                    )),
                }
            }
            before = state;
        }
        for done in &self.done {
            let (was, told) = (adjusted.contains(&done.number), done.told);
            match &done.act {
                Act::Adjust(..) if told == Some(Told::Applied) && !was => found.push(NEVER_APPLIED.to_owned()),
                Act::Adjust(..) if was && matches!(told, Some(Told::Short | Told::NotApplied | Told::Held)) => {
                    let copied = self.applied.iter().any(|of| of.op == done.number && of.is_copy_of_refused);
                    if !copied {
                        found.push(format!("{DENIED}: the adjustment {}", done.number));
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// The answers about orders.
    fn answers(&self, states: &[(&Applied, State)]) -> Vec<String> {
        let mut found = Vec::new();
        let mut placed: BTreeMap<String, u64> = BTreeMap::new();
        for (_, state) in states {
            for (id, order) in state.orders.iter().filter(|(_, order)| is_live(order)) {
                let by = u64::try_from(number(&order["by"])).expect("an operation");
                if placed.insert(id.clone(), by).is_some_and(|before| before != by) {
                    found.push(format!("{APPLIED_TWICE}: the order {id}"));
                }
            }
        }
        for Done { number, began, ended, act, told } in &self.done {
            let Act::Order(id, lines) = act else { continue };
            let by = placed.get(id);
            match told {
                Some(Told::Applied) if by != Some(number) => found.push(format!("{NEVER_APPLIED}: the order {id}")),
                Some(Told::Replayed(other)) if by != Some(other) => {
                    found.push(format!("{NEVER_APPLIED}: the order {id} by {other}"));
                }
                Some(Told::Short | Told::NotApplied | Told::Held) if by == Some(number) => {
                    found.push(format!("{DENIED}: the order {id} by {number}, told {told:?}"));
                }
                Some(Told::Short) => {
                    // The last state before the call, and those during it.
                    let during: Vec<_> =
                        states.iter().filter(|(of, _)| of.time >= *began && of.time <= *ended).collect();
                    let before =
                        states.iter().rev().find(|(of, _)| of.time < *began).map_or(&self.first, |(_, state)| state);
                    let all = || [before].into_iter().chain(during.iter().map(|(_, state)| state));
                    let last = states.last().map_or(&self.first, |(_, state)| state);
                    let is_short = |state: &State| {
                        lines.iter().any(|(id, quantity)| state.stock(id) + state.comes_back(id, last) < *quantity)
                    };
                    if !all().any(is_short) {
                        found.push(format!("{UNTRUE}: the order {id} by {number}"));
                    }
                    if before.orders.get(id).is_some_and(is_live) {
                        found.push(format!("{UNTRUE}: the order {id} was placed"));
                    }
                }
                _ => {}
            }
        }
        found
    }
}

const OVERSOLD: &str = "more was sold than there was";
const SUM: &str = "the sum of stock, holds and orders changed";
const UNTRUE: &str = "told short, but it never was";

impl History for Orders {
    const TABLES: &'static [(&'static str, &'static str)] = &[(PRODUCTS, "id"), (ORDERS, "id")];
    const SAMPLE: u64 = 120;

    async fn play(engine: &Engine, seed: u64, broken: Broken) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let most = Rates { held: 60, second_copy: 80, transaction_conflict: 100, frozen: 20, ..STORM };
        let rates = rates(&mut rng, 1..=8, most);
        let (clients, turns, stock) = (rng.u64(2..=6), rng.u64(2..=6), rng.i64(1..=8));
        let network = network_that_breaks(engine, rates, broken, rng);
        let scene: Arc<Scene> = Scene::new(seed, format!("{seed}-{broken:?}"), network, broken);
        let random = std::sync::atomic::AtomicU64::new(seed << 8);
        let plain = store(
            &engine.client(),
            || SystemTime::UNIX_EPOCH + scene::EPOCH,
            move || random.fetch_add(0x9e37_79b9_7f4a_7c15, std::sync::atomic::Ordering::Relaxed),
        );
        let mut first = State::default();
        for name in NAMES {
            let id = id(&scene.name, name);
            let product = Product { stock, status: Status::In };
            plain.table(PRODUCTS).create(id.as_str(), &product).await.expect("a free key and no fault");
            first.products.insert(id.clone(), engine.row(PRODUCTS, "id", &id));
        }
        let client = |number| Client { client: scene::Client::new(&scene, &scene.network, number) };
        work_together((0..clients).map(|number| client(number).work(turns))).await;
        let applied = scene.network.applied().clone();
        let orders = plain.table::<Order>(ORDERS);
        let products = plain.table::<Product>(PRODUCTS).held_for(&orders);
        let sweeps = seed.is_multiple_of(2);
        for product in first.products.keys() {
            let products = products.in_call(&Call::new(Deadline::within(Duration::from_mins(1))));
            if sweeps {
                assert_eq!(products.settle_all().await.expect("no fault").left, 0);
            } else {
                products.settle(product.as_str()).await.expect("no fault");
            }
            let shown = products.get_with_held(product.as_str()).await.expect("no fault").expect("a product");
            assert_eq!(shown.1, 0, "{product} is settled");
            assert_eq!(engine.row(PRODUCTS, "id", product)["_holds"]["M"], json!({}), "{product} is settled");
        }
        Orders { scene: scene.name.clone(), start: scene.start, first, done: scene.take_done(), applied }
    }

    fn violations(&self, _: &Engine) -> Vec<String> {
        let states = self.states();
        let mut found = self.sums(&states);
        found.extend(self.answers(&states));
        let products = Audit::of(Product::SETTINGS).with_held("stock").within("stock", Some(0.into()), None);
        found.extend(breaches((PRODUCTS, true), &products, self.start, &self.applied));
        found.extend(breaches((ORDERS, false), &Audit::of(Order::SETTINGS), self.start, &self.applied));
        if !found.is_empty() {
            found.push(format!("in {}", self.scene));
        }
        found
    }

    fn total(&self) -> Total {
        let count = |wanted: &dyn Fn(&Done) -> bool| self.done.iter().filter(|done| wanted(done)).count();
        let orders = |told: Option<Told>| count(&|done| matches!(done.act, Act::Order(..)) && done.told == told);
        let states = self.states();
        let held = |(_, state): &&(&Applied, State)| self.first.products.keys().any(|product| state.held(product) > 0);
        let is_burn = |applied: &&Applied| {
            applied.rows.iter().any(|row| row.step.table == ORDERS && row.row.get("_buried").is_some())
        };
        Total::of(&[
            ("placed", orders(Some(Told::Applied))),
            ("replayed", count(&|done| matches!((&done.act, done.told), (Act::Order(..), Some(Told::Replayed(_)))))),
            ("short", orders(Some(Told::Short))),
            ("heldByOthers", orders(Some(Told::Held))),
            ("notApplied", orders(Some(Told::NotApplied))),
            ("unknown", orders(Some(Told::Unknown))),
            ("died", count(&|done| done.told.is_none())),
            ("cancelled", count(&|done| matches!((&done.act, done.told), (Act::Cancel(_), Some(Told::Applied))))),
            ("momentsWithHolds", states.iter().filter(held).count()),
            ("burns", self.applied.iter().filter(is_burn).count()),
        ])
    }

    fn assert_enough_happened(total: &Total) {
        let enough = [
            "placed",
            "replayed",
            "short",
            "heldByOthers",
            "notApplied",
            "died",
            "cancelled",
            "momentsWithHolds",
            "burns",
        ];
        assert!(total.least(&enough) > 0, "little happened: {total}");
    }
}

#[test]
fn stock_holds_and_orders_have_one_sum_at_every_moment_under_every_fault() {
    Orders::holds();
}
