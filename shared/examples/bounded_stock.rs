//! **A bounded stock.** Many callers take pieces of one stock, which must not fall below zero. The usual `UpdateItem`
//! has the condition that enough is left. The SDK sends it again after a lost answer, which takes the pieces twice. If
//! the first send took the last ones, the repeat is refused and its buyer is told that the stock is sold out. This
//! recipe takes by an edit, whose id the item remembers. The refusal of a repeat shows this id, which proves that the
//! first send was applied. Run it with `cargo run -p fencepost --example bounded_stock`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use fencepost::{Failure, Record, Store, Table, UpdateError};
use fencepost_test::Dynamo;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(key = "productId")]
struct Product {
    stock: u64,
}

#[derive(Debug, PartialEq)]
enum Answer {
    Taken,
    TooFew { left: u64 },
    NoSuchProduct,
}

/// Takes all of these pieces or none.
async fn take(products: &Table<Product>, id: &str, pieces: u32) -> Result<Answer, Failure> {
    match products.edit(id, &Product::FIELDS.stock.add(-i64::from(pieces), 0..)).await {
        Ok(_) => Ok(Answer::Taken),
        Err(UpdateError::Refused(refusal)) => Ok(Answer::TooFew { left: refusal.item.stock }),
        Err(UpdateError::NotFound) => Ok(Answer::NoSuchProduct),
        Err(UpdateError::Failed(failure)) => Err(failure),
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let db = Dynamo::new();
    db.create_table("Products", "productId");
    let products: Table<Product> = Store::new(&db.client()).table("Products");
    db.put("Products", &serde_json::json!({"productId": {"S": "mug"}, "stock": {"N": "5"}}));
    db.engine().take_counts();

    // The first take of this client reads the item. Each later one is one write.
    assert_eq!(take(&products, "mug", 1).await.expect("an outcome"), Answer::Taken);
    assert_eq!(db.engine().take_counts(), (1, 1));
    assert_eq!(take(&products, "mug", 2).await.expect("an outcome"), Answer::Taken);
    assert_eq!(db.engine().take_counts(), (0, 1));

    // The answer to the take of the last two pieces is lost. The repeat is one more write.
    let lost = db.lose_answer().of("UpdateItem").once();
    assert_eq!(take(&products, "mug", 2).await.expect("an outcome"), Answer::Taken);
    assert_eq!((db.engine().take_counts(), lost.struck()), ((0, 2), 1));
    assert_eq!(db.number("Products", "mug", "stock"), 0);

    assert_eq!(take(&products, "mug", 1).await.expect("an outcome"), Answer::TooFew { left: 0 });
    assert_eq!(take(&products, "cup", 1).await.expect("an outcome"), Answer::NoSuchProduct);
    println!("{}", db.log());
}

#[test]
fn a_lost_answer_takes_the_last_pieces_once() {
    main();
}
