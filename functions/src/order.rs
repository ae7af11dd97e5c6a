//! An order, which `place-order` writes and about whose holds the functions of products ask.

use crate::function::Variable;
use fencepost::{Record, Settings, Timestamp};
use serde::{Deserialize, Serialize};

/// The table of orders.
pub const ORDERS_TABLE: Variable = Variable::table("ORDERS_TABLE", "the table of orders, with the index `byUser`");

/// One order. Its id is the key.
///
/// User and lines never change. A cancellation only adds to the rest. So the first answer can be made again. An order decides
/// about the stock that is held for it. So it is never deleted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Record)]
#[record(key = "orderId", settings = Settings::deciding())]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// The id of the user who ordered.
    pub user_id: String,
    /// The lines, in the order of the request.
    pub lines: Vec<Line>,
    /// The status.
    pub status: Status,
    /// The time at which the order was placed.
    pub created_at: Timestamp,
    /// The time at which the order was cancelled, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled_at: Option<Timestamp>,
    /// The version that placing the order made, unless it was the first. A replay shows it in the tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placed_version: Option<u64>,
}

/// A quantity of one product.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// The id of the product.
    pub product_id: String,
    /// The quantity: 1 or more.
    pub quantity: i64,
}

/// The status of an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// The order was placed, and its stock is taken.
    Pending,
    /// The order was cancelled, and its stock is back.
    Cancelled,
}
