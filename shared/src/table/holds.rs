//! [`Holds`]: what a `Record` says of a number of which orders hold parts.

use super::edit::Edit;
use std::fmt;

/// A number of which rows of another table hold parts, such as the stock of a product of which orders take some.
///
/// A decision of [`Store::transact_with_retry`](crate::Store::transact_with_retry) that creates one item and takes from others
/// goes without a transaction where the created item [decides](crate::Settings::deciding) and the others hold, and where their
/// table says so by [`Table::held_for`](crate::Table::held_for): it takes from each of them by an edit that leaves a *hold*, and then creates the item.
/// The create decides: before it nothing is ordered, and after it all is. So one product takes hundreds of orders a second,
/// where a transaction allows some dozens.
///
/// What is held has left the number, but may come back. A reader may see the number fall before the item is there. The sum of
/// the number, the holds and the items is exact at every moment. If a decision changes nothing after it has looked at such
/// an item, the crate finds out what becomes of its holds, and decides again if a part has come back.
///
/// ```
/// use fencepost::{Edit, Holds, Record, Settings};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Record)]
/// #[record(key = "productId", holds = Holds::of("stock").with(Product::with_status))]
/// struct Product {
///     stock: i64,
///     status: String,
/// }
///
/// impl Product {
///     /// What follows from a stock. The crate uses it to give back.
///     fn with_status(&self, edit: Edit<Product>) -> Edit<Product> {
///         let product = Self::FIELDS;
///         let bands = [(0..=0, "sold_out".to_owned()), (1..=i64::MAX, "in_stock".to_owned())];
///         edit.bands(&product.status, &product.stock, bands)
///     }
/// }
///
/// #[derive(Serialize, Deserialize, Record)]
/// #[record(key = "orderId", settings = Settings::deciding())]
/// struct Order {
///     quantity: i64,
/// }
/// ```
///
/// What is given back has no upper bound. So an upper bound of the number may be passed by as much as was held.
pub struct Holds<T> {
    pub(super) number: &'static str,
    pub(super) follows: Option<FollowsOf<T>>,
}

/// Adds to an edit of the number what follows from it, for this value.
type FollowsOf<T> = fn(&T, Edit<T>) -> Edit<T>;

impl<T> Holds<T> {
    /// Parts of the number in this attribute are held.
    #[must_use]
    pub const fn of(number: &'static str) -> Self {
        Holds { number, follows: None }
    }

    /// Says what follows from the number, such as [bands](Edit::bands). Whatever is given back takes the edit that this
    /// function makes of the add to the number. It must make an edit that the item takes whatever the number is: bands for every
    /// number from 0 up, and no other conditions than on what the function has seen. What an item refuses to take back stays held.
    #[must_use]
    pub const fn with(self, follows: fn(&T, Edit<T>) -> Edit<T>) -> Self {
        Holds { follows: Some(follows), ..self }
    }
}

impl<T> Clone for Holds<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Holds<T> {}

impl<T> fmt::Debug for Holds<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holds").field("number", &self.number).finish_non_exhaustive()
    }
}
