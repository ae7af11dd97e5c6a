//! Existing tables: rows and writers that know nothing of this crate.
//!
//! The first change of a row adopts it: the same write adds the attributes of this crate, raises the version, and
//! leaves the rest alone. [`Record::SETTINGS`](crate::Record::SETTINGS) says who else writes, how deletes go, and under
//! which names:
//!
//! ```
//! use fencepost::{Names, Record, Settings, Store, Table};
//! use fencepost_test::Engine;
//! use serde::{Deserialize, Serialize};
//! use serde_json::json;
//!
//! /// Other programs demand this version in each of their writes, and raise it.
//! const SETTINGS: Settings =
//!     Settings::without_ttl().shared_with_versioned_writers().swept().names(Names::DEFAULT.version("version"));
//!
//! #[derive(Clone, Serialize, Deserialize, Record)]
//! #[record(key = "productId", settings = SETTINGS)]
//! struct Product { stock: u64 }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::embedded(&[("Products", "productId")]);
//! let row = json!({"productId": {"S": "p-1"}, "stock": {"N": "5"}, "version": {"N": "3"}, "shelf": {"S": "A7"}});
//! engine.raw("PutItem", &json!({"TableName": "Products", "Item": row})); // by another program
//!
//! let products: Table<Product> = Store::new(&engine.client()).table("Products");
//! products.edit("p-1", &Product::FIELDS.stock.add(-1, 0..)).await?;
//! let row = engine.row("Products", "productId", "p-1");
//! assert_eq!((&row["stock"]["N"], &row["version"]["N"], &row["shelf"]["S"]), (&json!("4"), &json!("4"), &json!("A7")));
//! # Ok(())
//! # }
//! ```
//!
//! | who else writes | begin with |
//! |---|---|
//! | nobody any more | [`Settings::own`](crate::Settings::own) if TTL may remove the rows of deleted items, else [`Settings::without_ttl`](crate::Settings::without_ttl) |
//! | programs whose every write demands the version and raises it | [`WithoutTtl::shared_with_versioned_writers`](crate::WithoutTtl::shared_with_versioned_writers) |
//! | any other program | [`Settings::open_to_any`](crate::Settings::open_to_any), at twice the price of a write |
//!
//! If another program does more than the settings say, a change may be applied twice. `docs/adoption.md` in the
//! repository finds your library, says what holds beside it, and goes through the steps, there and back. It also says
//! what other programs see: unknown attributes, and the tombstones of deleted items.
//!
//! # Programs of this crate together
//!
//! Programs that write one table have the same stored format (3) and the same settings. Only
//! [`Settings::edit_window`](crate::Settings::edit_window) may differ, and a build may know fewer attributes than
//! another one. `Store::check` compares a table with its `Record` at the start of a program.
//!
//! # A restored table
//!
//! A table that was restored to an earlier moment needs new incarnations before anybody writes to it. Otherwise late
//! requests and old tags could match its rows. See `maintenance::Task::Restamp` and the section
//! "Restore" of `docs/operations.md`.
