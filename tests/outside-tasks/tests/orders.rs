//! Places an order that takes stock of several products, or says for each line what is wrong with it.

use fencepost::{Answer, Error, IdempotencyClaim, IdempotencyError, Reads, Record, Store, Table};
use fencepost_test::Engine;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, Record)]
#[record(key = "productId")]
struct Product {
    stock: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, Record)]
#[record(key = "orderId")]
struct Order {
    lines: Vec<(String, u32)>,
}

#[derive(Debug, PartialEq)]
enum Wrong {
    NoSuchProduct,
    OutOfStock { left: u64 },
}

type Refused = IdempotencyError<Vec<(String, Wrong)>>;

/// Each request has a key of its own, under which it may come again. The lines name different products.
async fn place(store: &Store, request: &str, order: &Order) -> Result<Answer<String>, Refused> {
    let (products, orders): (Table<Product>, Table<Order>) = (store.table("Products"), store.table("Orders"));
    let asked = serde_json::to_string(order).expect("JSON");
    let claim = IdempotencyClaim::new(&["place", request], &[&asked])?;
    let mut reads = Reads::new();
    let id = format!("order-{request}");
    let placed = reads.later("the order", &orders, &id);
    let lines: Vec<_> = order.lines.iter().map(|(id, taken)| (id, *taken, reads.item(id, &products, id))).collect();
    let requests = store.idempotency("Requests");
    let placing = requests.change(&claim, reads, |attempt| {
        let mut wrong = Vec::new();
        for (id, taken, item) in &lines {
            match attempt.get(*item)? {
                None => wrong.push(((*id).clone(), Wrong::NoSuchProduct)),
                Some(product) if product.stock < u64::from(*taken) => {
                    wrong.push(((*id).clone(), Wrong::OutOfStock { left: product.stock }));
                }
                Some(_) => attempt.edit(*item, &Product::FIELDS.stock.add(-i64::from(*taken), 0..))?,
            }
        }
        if !wrong.is_empty() {
            return Err(Error::Refused(wrong));
        }
        attempt.put_if_absent(placed, order)?;
        Ok(id.clone())
    });
    placing.await
}

#[tokio::test]
async fn an_order_takes_all_of_its_stock_once_or_nothing() {
    let keys = [("Products", "productId"), ("Orders", "orderId"), ("Requests", "recordId")];
    let engine = Engine::embedded(&keys);
    let store = Store::new(&engine.client());
    let products: Table<Product> = store.table("Products");
    for (id, stock) in [("tea", 5), ("cup", 1)] {
        products.create(id, &Product { stock }).await.expect("a free key");
    }
    let order = |lines: &[(&str, u32)]| Order { lines: lines.iter().map(|(id, n)| ((*id).to_owned(), *n)).collect() };
    engine.take_counts();
    let two = order(&[("tea", 2), ("cup", 1)]);
    assert_eq!(place(&store, "r-1", &two).await.expect("there is enough"), Answer::New("order-r-1".to_owned()));
    assert_eq!(engine.take_counts(), (1, 1), "one batch of reads and one transaction");
    assert_eq!(place(&store, "r-1", &two).await.expect("it was placed"), Answer::Replayed("order-r-1".to_owned()));
    assert_eq!(engine.take_counts(), (1, 0));
    let refused = place(&store, "r-2", &order(&[("tea", 2), ("cup", 1), ("pot", 1)])).await;
    let Err(IdempotencyError::Refused(wrong)) = refused else { panic!("{refused:?}") };
    assert_eq!(wrong, [("cup".to_owned(), Wrong::OutOfStock { left: 0 }), ("pot".to_owned(), Wrong::NoSuchProduct)]);
    assert_eq!(products.get("tea").await.expect("an answer").map(|tea| tea.stock), Some(3), "and takes nothing");
}
