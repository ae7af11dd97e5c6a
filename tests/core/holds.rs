//! Orders with holds: what they send, when a transaction takes their place, and what becomes of what a dead process has taken.

use crate::harness::engine::{Engine, store};
use crate::harness::states::leave_hold;
use fencepost::{
    Call, Deadline, Edit, Error, Failure, FailureKind, Holds, Reads, Record, Settings, Store, Table, UpdateError,
    VersionError,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "id", holds = Holds::of("stock"))]
struct Product {
    stock: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "id", settings = Settings::deciding())]
struct Order {
    quantity: i64,
}

struct Shop {
    engine: Engine,
    store: Store,
    products: Table<Product>,
    orders: Table<Order>,
}

impl Shop {
    /// A shop with these stocks of the products `p-0`, `p-1` and so on.
    async fn with(stocks: &[i64]) -> Self {
        let engine = Engine::with_tables(&[("Products", "id"), ("Orders", "id")]);
        let shop = Self::of(&engine);
        for (product, stock) in stocks.iter().enumerate() {
            shop.products.create(format!("p-{product}"), &Product { stock: *stock }).await.expect("a free key");
        }
        engine.take_log();
        shop
    }

    /// Another process on the same tables.
    fn of(engine: &Engine) -> Self {
        let (begun, random) = (Instant::now(), Mutex::new(fastrand::Rng::with_seed(begun_with())));
        let clock = move || SystemTime::UNIX_EPOCH + Duration::from_hours(500_000) + begun.elapsed();
        let store = store(&engine.client(), clock, move || random.lock().expect("no panic").u64(..));
        let orders = store.table("Orders");
        let products = store.table::<Product>("Products").held_for(&orders).remembering_items();
        Shop { engine: engine.clone(), products, orders, store }
    }

    /// Orders so many of each of these products.
    async fn order(&self, id: &str, products: &[&str], quantity: i64) -> Result<(), Error<&'static str>> {
        let mut reads = Reads::new();
        let order = reads.later("order", &self.orders, id);
        let items: Vec<_> = products.iter().map(|id| reads.remembered(*id, &self.products, *id)).collect();
        let placed = self.store.transact_with_retry(reads, |attempt| {
            if attempt.get(order)?.is_some() {
                return Err(Error::Refused("it was placed"));
            }
            for item in &items {
                let stock = attempt.get(*item)?.map_or(0, |product| product.stock);
                if stock < quantity {
                    return Err(Error::Refused("it is sold out"));
                }
                attempt.edit_blind(*item, &take(quantity))?;
            }
            attempt.put_if_absent(order, &Order { quantity })?;
            Ok(())
        });
        placed.await
    }

    /// The requests since the last look: reads, takes and gives, creates of orders, transactions.
    fn sent(&self) -> [usize; 4] {
        let log = self.engine.take_log();
        let count = |wanted: &[&str]| log.iter().filter(|asked| wanted.contains(&&*asked.operation)).count();
        [
            count(&["GetItem", "BatchGetItem"]),
            count(&["UpdateItem"]),
            count(&["PutItem"]),
            count(&["TransactWriteItems"]),
        ]
    }

    fn stock(&self, product: &str) -> i64 {
        let row = self.engine.row("Products", "id", product);
        row["stock"]["N"].as_str().expect("a number").parse().expect("a small one")
    }

    fn holds(&self, product: &str) -> usize {
        self.engine.row("Products", "id", product)["_holds"]["M"].as_object().map_or(0, serde_json::Map::len)
    }

    /// A process takes from the product for an order, and dies before it creates the order.
    fn leave_hold(&self, product: &str, attempt: &str, quantity: i64) {
        leave_hold(&self.engine, "Products", product, (attempt, quantity), None);
        self.engine.take_log();
    }
}

fn begun_with() -> u64 {
    static MADE: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

fn take(quantity: i64) -> Edit<Product> {
    Product::FIELDS.stock.add(-quantity, 0..)
}

/// A name of an attempt that no client draws here.
const DEAD: &str = "AAAAAAAAAAA";

/// All of it is one write on each item, so anything else in the decision needs a transaction.
#[tokio::test(start_paused = true)]
async fn a_decision_that_does_more_than_create_and_take_is_a_transaction() {
    let shop = Shop::with(&[9, 9, 9]).await;
    let plain = shop.store.table::<Product>("Products");
    for case in 0..6 {
        let table = if case == 0 { &plain } else { &shop.products };
        let mut reads = Reads::new();
        let order = reads.item("order", &shop.orders, format!("o-{case}"));
        let [one, two] = ["p-0", "p-1"].map(|id| reads.item(id, table, id));
        let other = reads.item("another order", &shop.orders, format!("a-{case}"));
        let placed = shop.store.transact_with_retry(reads, |attempt| {
            attempt.edit(one, &take(if case == 1 { -1 } else { 1 }))?;
            attempt.put_if_absent(order, &Order { quantity: 1 })?;
            match case {
                2 => attempt.check(two)?,
                3 => drop(attempt.put_if_absent(other, &Order { quantity: 1 })?),
                4 => drop(attempt.update_at(two, &Product { stock: 7 })?),
                5 => attempt.edit(two, &Product::FIELDS.stock.set(8))?,
                _ => {}
            }
            Ok::<_, Error>(())
        });
        placed.await.expect("enough");
        assert_eq!((shop.sent()[3], shop.holds("p-0")), (1, 0), "{case}");
    }
    // The row of a build without holds has no map of them. The transaction makes it.
    let old = json!({"TableName": "Products", "Key": {"id": {"S": "p-2"}}, "UpdateExpression": "REMOVE #h",
        "ExpressionAttributeNames": {"#h": "_holds"}});
    shop.engine.raw("UpdateItem", &old);
    shop.engine.take_log();
    shop.order("o-7", &["p-2"], 1).await.expect("enough");
    shop.order("o-8", &["p-2"], 1).await.expect("enough");
    assert_eq!(shop.sent()[2..], [1, 1], "a transaction, and then a create");
    assert_eq!((shop.stock("p-2"), shop.holds("p-2")), (7, 1));
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_process_has_taken_comes_back_to_whoever_is_short_of_it_after_a_second() {
    for by_edit in [false, true] {
        let shop = Shop::with(&[3]).await;
        shop.leave_hold("p-0", DEAD, 2);
        let begun = Instant::now();
        if by_edit {
            shop.products.edit("p-0", &take(2)).await.expect("it comes back");
        } else {
            shop.order("o-1", &["p-0"], 2).await.expect("it comes back");
        }
        let waited = begun.elapsed();
        assert!(waited >= Duration::from_secs(1) && waited < Duration::from_secs(2), "{waited:?}");
        assert_eq!((shop.stock("p-0"), shop.holds("p-0")), (1, usize::from(!by_edit)));
        let burned = shop.engine.row("Orders", "id", &format!("o-of-{DEAD}"));
        assert!(burned.get("_buried").is_some() && burned.get("_purgeAt").is_none(), "{burned}");
    }
}

/// The order of a hold may appear at any time, so nobody is told that the rest is all there is.
#[tokio::test(start_paused = true)]
async fn a_refusal_beside_an_undecided_hold_waits_and_says_at_the_end_that_it_is_held() {
    let shop = Shop::with(&[3]).await;
    shop.leave_hold("p-0", DEAD, 2);
    let soon = || Call::new(Deadline::within(Duration::from_millis(700)));
    let held = shop.products.in_call(&soon()).edit("p-0", &take(2)).await;
    assert!(
        matches!(&held, Err(UpdateError::Failed(failure @ Failure { kind: FailureKind::Held { .. }, .. })) if failure.is_retryable()),
        "{held:?}"
    );
    let decided = shop.products.in_call(&soon()).update_with_retry("p-0", |_| Err::<Product, _>("refused")).await;
    assert!(matches!(decided, Err(UpdateError::Failed(Failure { kind: FailureKind::Held { .. }, .. }))), "{decided:?}");
    let without_table = shop.store.table::<Product>("Products").edit("p-0", &take(2)).await;
    assert!(matches!(without_table, Err(UpdateError::Failed(Failure { kind: FailureKind::Held { .. }, .. }))));
    shop.products.edit("p-0", &take(1)).await.expect("that much is there");
    let placed = json!({"TableName": "Orders", "Item": {"id": {"S": format!("o-of-{DEAD}")}, "quantity": {"N": "2"},
        "_version": {"N": "1"}, "_incarnation": {"B": "AAAAAAAAAAA="}, "_writes": {"M": {DEAD: {"N": "0"}}},
        "_placedBy": {"B": "AAAAAAAAAAA="}}});
    shop.engine.raw("PutItem", &placed);
    let refused = shop.products.edit("p-0", &take(2)).await;
    assert!(matches!(refused, Err(UpdateError::Refused(_))), "its order is there: {refused:?}");
    assert_eq!((shop.stock("p-0"), shop.holds("p-0")), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn an_item_is_settled_on_demand_and_deleted_only_without_holds() {
    let shop = Shop::with(&[9, 9]).await;
    shop.order("o-1", &["p-0"], 2).await.expect("enough");
    shop.leave_hold("p-0", DEAD, 3);
    let call = Call::new(Deadline::within(Duration::from_secs(30)));
    let (products, begun) = (shop.products.in_call(&call), Instant::now());
    products.settle("p-0").await.expect("time enough");
    assert!((10..15).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    assert_eq!((shop.stock("p-0"), shop.holds("p-0")), (7, 0));
    let asked = shop.engine.take_log().len();
    assert!(asked <= 40, "whoever is in no hurry looks rarely: {asked}");
    products.settle("p-0").await.expect("nothing to do");
    assert_eq!(shop.sent(), [1, 0, 0, 0]);

    // All items of the table: one that is settled already, one whose order is placed, and one whose order never came.
    shop.order("o-2", &["p-0"], 1).await.expect("enough");
    shop.leave_hold("p-1", DEAD, 4);
    let shown = products.get_with_held("p-1").await.expect("no fault").expect("an item");
    assert_eq!((shown.0.stock, shown.1), (5, 4));
    let mut reads = Reads::new();
    let item = reads.item("product", &products, "p-1");
    let seen = shop.store.transact_with_retry(reads, |attempt| Ok::<_, Error<()>>(attempt.held(item)?)).await;
    assert_eq!(seen.expect("no fault"), 4, "a decision sees it, too");
    shop.engine.take_log();
    let swept = products.settle_all().await.expect("time enough");
    assert_eq!((swept.settled, swept.left), (2, 0));
    let asked = shop.engine.take_log();
    let of = |wanted: &str| asked.iter().filter(|asked| asked.operation == wanted).count();
    assert_eq!((of("Scan"), of("UpdateItem")), (1, 2), "the items come from the scan, and each is written once");
    assert_eq!((shop.stock("p-0"), shop.holds("p-0"), shop.stock("p-1"), shop.holds("p-1")), (6, 0, 9, 0));
    let tally = call.tally();
    assert_eq!((tally.holds_removed, tally.holds_given_back, tally.holds_burned), (2, 2, 1), "one order for both");

    shop.leave_hold("p-1", "BBBBBBBBBBA", 3);
    let at = shop.products.get("p-1").await.expect("no fault").expect("an item").at;
    let soon = Call::new(Deadline::within(Duration::from_millis(700)));
    let held = shop.products.in_call(&soon).delete_at_version("p-1", at).await;
    assert!(matches!(held, Err(VersionError::Failed(Failure { kind: FailureKind::Held { .. }, .. }))), "{held:?}");
    shop.products.delete("p-1").await.expect("the hold is burned by then");
    shop.products.create("p-1", &Product { stock: 5 }).await.expect("a tombstone");
    assert_eq!((shop.stock("p-1"), shop.holds("p-1")), (5, 0), "none survives into the next life");
}

#[tokio::test(start_paused = true)]
async fn a_product_with_a_hundred_holds_takes_another_one_when_some_are_settled() {
    for are_placed in [true, false] {
        let shop = Shop::with(&[500]).await;
        for number in 0..100 {
            if are_placed {
                Shop::of(&shop.engine).order(&format!("o-{number}"), &["p-0"], 1).await.expect("enough");
            } else {
                shop.leave_hold("p-0", &format!("A{number:08}AA"), 1);
            }
        }
        let before = shop.holds("p-0");
        shop.order("last", &["p-0"], 1).await.expect("enough");
        let after = shop.holds("p-0");
        if are_placed {
            assert_eq!(shop.stock("p-0"), 399);
            assert!(before < 30, "{before}: takers clear what is placed once it fills another KB");
        } else {
            assert_eq!((before, after, shop.stock("p-0")), (100, 1, 499), "all of them were burned and given back");
        }
    }
}

/// Nobody takes from it any more, so nobody removes these holds along the way, and each newcomer reads the orders of all.
#[tokio::test(start_paused = true)]
async fn whoever_is_refused_by_a_sold_out_item_removes_eight_placed_holds() {
    let engine = Shop::with(&[9]).await.engine;
    for number in 0..9 {
        Shop::of(&engine).order(&format!("o-{number}"), &["p-0"], 1).await.expect("enough");
    }
    for left in [1, 1] {
        let newcomer = Shop::of(&engine);
        assert!(matches!(newcomer.order("late", &["p-0"], 1).await, Err(Error::Refused(_))));
        assert_eq!((newcomer.stock("p-0"), newcomer.holds("p-0")), (0, left));
    }
}

/// Each item is settled by the rows of its own table, although both tables may have rows with the same key.
#[tokio::test(start_paused = true)]
async fn items_that_two_tables_hold_are_settled_each_by_its_own() {
    let engine = Engine::with_tables(&[("Products", "id"), ("Orders", "id"), ("Seats", "id"), ("Bookings", "id")]);
    let shop = Shop::of(&engine);
    let bookings = shop.store.table::<Order>("Bookings");
    let seats = shop.store.table::<Product>("Seats").held_for(&bookings);
    for table in [&shop.products, &seats] {
        table.create("p-0", &Product { stock: 3 }).await.expect("a free key");
    }
    shop.leave_hold("p-0", DEAD, 1);
    let mut reads = Reads::new();
    let (booking, seat) =
        (reads.later("booking", &bookings, format!("o-of-{DEAD}")), reads.item("seat", &seats, "p-0"));
    let booked = shop.store.transact_with_retry(reads, |attempt| {
        attempt.edit(seat, &take(2))?;
        attempt.put_if_absent(booking, &Order { quantity: 2 })?;
        Ok::<_, Error>(())
    });
    booked.await.expect("enough");
    let mut reads = Reads::new();
    let both = [reads.item("product", &shop.products, "p-0"), reads.item("seat", &seats, "p-0")];
    let taken = shop.store.transact_with_retry(reads, |attempt| {
        for item in both {
            if attempt.get(item)?.is_none_or(|of| of.stock < 3) {
                return Err(Error::Refused(()));
            }
        }
        attempt.edit(both[0], &take(3))?;
        Ok(())
    });
    let taken = taken.await;
    assert!(matches!(taken, Err(Error::Refused(()))), "the product has three again, and the seats have one: {taken:?}");
    assert_eq!((shop.stock("p-0"), shop.holds("p-0")), (3, 0));
    assert_eq!(engine.row("Seats", "id", "p-0")["stock"], json!({"N": "1"}), "its booking is there");
}
