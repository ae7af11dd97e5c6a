//! A writer with the ORM Toasty, with the defaults of its driver:
//!
//! ```text
//! toasty-writer KIND TABLE SEED ITEMS COUNT
//! ```
//!
//! The items are those of the model of PynamoDB in `.ci/mixed_writers/items.py`. KIND is `toasty-update`: it loads an item,
//! changes it, and after a failed condition "reloads the record and retries", as the guide of Toasty advises; or `toasty-add`:
//! an update by a query, which loads nothing and has no condition. In the end one line of JSON says how many increments of
//! which item were acknowledged, and how many ended with another error, so that they may have been applied.

use serde_json::json;
use std::collections::BTreeMap;
use std::env::args;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;
use toasty::{Db, Error};

/// A table of the name "" with the prefix TABLE: so its name is not known before the program starts.
#[derive(Debug, toasty::Model)]
#[table = ""]
#[key(partition = shop_id, local = item_id)]
struct Item {
    #[column("shopId")]
    shop_id: String,
    #[column("itemId")]
    item_id: String,
    stock: i64,
    note: Option<String>,
    #[version]
    version: u64,
}

/// Loads an item and changes it on its version.
async fn update(db: &mut Db, id: &str) -> Result<(), Error> {
    let mut item = Item::get_by_shop_id_and_item_id(db, "shop-1", id).await?;
    let stock = item.stock + 1;
    item.update().stock(stock).exec(db).await
}

/// The version goes up, but it is no condition.
async fn add(db: &mut Db, id: &str) -> Result<(), Error> {
    let item = Item::filter_by_shop_id_and_item_id("shop-1", id);
    item.update().stock(toasty::stmt::increment()).exec(db).await
}

/// Increments once. The pause grows with each lost race, so that one writer wins.
async fn change(db: &mut Db, kind: &str, id: &str) -> Result<(), Error> {
    for lost in 0.. {
        let changed = if kind == "toasty-add" { add(db, id).await } else { update(db, id).await };
        match changed {
            Err(error) if error.is_condition_failed() => {}
            done => return done,
        }
        let longest = (0.004 * 2_f64.powi(lost)).min(0.2);
        tokio::time::sleep(Duration::from_secs_f64(fastrand::f64() * longest)).await;
    }
    unreachable!("a race is won some day")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = args().skip(1).collect();
    let [kind, table, seed, items, count] = &arguments[..] else {
        return Err("toasty-writer KIND TABLE SEED ITEMS COUNT".into());
    };
    let mut hasher = DefaultHasher::new();
    (seed, kind).hash(&mut hasher);
    fastrand::seed(hasher.finish());
    let items: usize = items.parse()?;
    let mut db = Db::builder().models(toasty::models!(Item)).table_name_prefix(table).connect("dynamodb://here").await?;
    let (mut acknowledged, mut unknown) = (BTreeMap::<_, u64>::new(), BTreeMap::<_, u64>::new());
    for _ in 0..count.parse()? {
        let id = format!("item-{:05}", fastrand::usize(0..items));
        match change(&mut db, kind, &id).await {
            Ok(()) => *acknowledged.entry(id).or_default() += 1,
            Err(error) => {
                eprintln!("{id}: {error}");
                *unknown.entry(id).or_default() += 1;
            }
        }
    }
    println!("{}", json!({"acknowledged": acknowledged, "unknown": unknown}));
    Ok(())
}
