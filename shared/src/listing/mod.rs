//! Listings: reads the items of one partition in the order of the sort key, or all items. Nothing here changes a row.
//!
//! `query.rs` names the items, in the table or in an `index.rs`. `pages.rs` reads them page by page, and `cursor.rs` says
//! where the next page begins.

pub(crate) mod cursor;
pub(crate) mod index;
pub(crate) mod pages;
mod query;

pub use cursor::{Cursor, InvalidCursor};
pub use index::{Index, Projection};
pub use pages::{Items, Listed, Page, Pages};
pub use query::{Partition, Query, Sort};
