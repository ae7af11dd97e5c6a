//! Edits: changes that need no old value, so that many callers change one item at once.
//!
//! An [`Edit`](crate::Edit) adds to numbers, sets or removes values and appends to lists, under conditions. It demands
//! no exact version, and takes one request for an item that this client has edited before. It is made from the
//! [fields](crate::field::Field) that the derive gives a record as `FIELDS`:
//!
//! ```
//! use fencepost::{NotEditedReason, Record, Store, Table, UpdateError};
//! use serde::{Deserialize, Serialize};
//! use std::collections::BTreeMap;
//!
//! #[derive(Clone, Default, Serialize, Deserialize, Record)]
//! #[record(key = "productId")]
//! struct Product {
//!     stock: u64,
//!     status: String,
//!     log: Vec<String>,
//!     prices: BTreeMap<String, u32>,
//!     first_sold: Option<u64>,
//!     last_sold: Option<u64>,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let engine = fencepost_test::Engine::embedded(&[("Products", "productId")]);
//! # let products: Table<Product> = Store::new(&engine.client()).table("Products");
//! # products.create("p-1", &Product { stock: 5, ..Product::default() }).await?;
//! let product = Product::FIELDS;
//! let now = 1_800_000_000;
//! let bands = [(0..=0, "sold out".to_owned()), (1..=1_000, "in stock".to_owned())];
//! let sell = product.stock.add(-3, 0..) // refused if fewer than 3 are left
//!     .bands(&product.status, &product.stock, bands) // the status follows from the new stock
//!     .and(product.log.append(["sold".to_owned()]))
//!     .and(product.first_sold.set_if_none(now))
//!     .and(product.last_sold.raise_to(now)) // a later time stays
//!     .and(product.prices.member("EUR")?.set(7)) // the other prices stay
//!     .only_if(!(product.status.is("recalled".to_owned()).or(product.status.is("moved".to_owned()))));
//!
//! let sold = products.edit("p-1", &sell).await?.item?.expect("nobody deletes it");
//! assert_eq!((sold.stock, sold.status.as_str()), (2, "in stock"));
//!
//! let Err(UpdateError::Refused(refusal)) = products.edit("p-1", &sell).await else { panic!("2 are left") };
//! assert_eq!(refusal.reason, NotEditedReason::OutOfRange);
//! assert_eq!(refusal.item.stock, 2);
//! println!("{refusal}"); // names the clause and what the item has
//! # Ok(())
//! # }
//! ```
//!
//! - **Conditions** join by `and`, `or` and `!`: see [`Condition`](crate::Condition). `only_if_changed` refuses an edit
//!   that would change nothing, and `stamp` sets a value beside the others that does not count as a change.
//! - **A choice is guessed** from the item that this client saw last: the band, and whether `raise_to` or `set_if_none`
//!   has something to write. A send with a wrong guess is refused, which costs one more request.
//! - **Maps** are changed member by member. Objects of free-form JSON, with the feature `json`, are such maps, and
//!   their numbers are reached by `Field::number`.
//! - **A refusal** is [`NotEdited`](crate::NotEdited): a reason for the program, the clause that refused with what the
//!   item has there, in words, and the item. Nothing was written. The clause is `None` if only `DynamoDB` knows which
//!   of several conditions failed.
//! - **What a type does not allow does not compile**: a value of another type, an amount added to a text, an order of
//!   values that are not stored in one, the removal of a field that has to be there, an edit in the table of another
//!   record. What only the value shows is refused before anything is sent: a value that serde would not [read
//!   back](crate::field::Field), or bounds that no number keeps. A record that is implemented by hand declares
//!   its fields by [`Field::of`](crate::field::Field::of) and [`Field::with`](crate::field::Field::with), and you state
//!   their types.
//! - **What is missing** is not filled in: an add needs a number and an append needs a list that is there, and otherwise the
//!   item refuses the edit. So a counter with serde's `default` and `skip_serializing_if` that is created as 0 refuses an add,
//!   because no number is stored: leave `skip_serializing_if` out, and `default` may stay. An amount is an `i64`; a `u64` goes through `i64::try_from`.
//!
//! An edit cannot express a new value that is computed from the old ones, such as a product of two numbers, or the list
//! without its first member. It cannot compare two attributes either. Then decide on the whole item by
//! [`Table::update_with_retry`](crate::Table::update_with_retry). To edit several items together, use
//! [transactions](super::transactions). For items that many clients change at once, read
//! [`Settings::edit_window`](crate::Settings::edit_window).
