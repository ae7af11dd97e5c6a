//! Parses bodies to typed requests. All 400s about bodies come from here.

use crate::operation::Schema;
use crate::product::{MAX_STOCK, Product, STOCK, new_product};
use fencepost::Timestamp;
use fencepost::http::{Problem, Request};

/// The schema of a new product.
pub const NEW_PRODUCT: Schema = Schema::Object(&[("stock", STOCK), ("lowStockAt?", STOCK)]);

/// Parses the new product in `{stock, lowStockAt?=0}`. It is created at `now`.
pub fn parse_product(request: &Request, now: Timestamp) -> Result<Product, Problem> {
    let mut fields = request.fields()?;
    let stock = fields.required_whole("stock", 0..=MAX_STOCK)?;
    let low_stock_at = fields.optional_whole("lowStockAt", 0..=MAX_STOCK)?.unwrap_or(0);
    fields.finish()?;
    Ok(new_product(stock, low_stock_at, now))
}

/// The schema of an adjustment.
pub const ADJUSTMENT: Schema = Schema::Object(&[("by", Schema::Whole(-MAX_STOCK, MAX_STOCK))]);

/// Parses the adjustment in `{by}`. A negative number takes from the stock.
pub fn parse_adjustment(request: &Request) -> Result<i64, Problem> {
    let mut fields = request.fields()?;
    let by = fields.required_whole("by", -MAX_STOCK..=MAX_STOCK)?;
    fields.finish()?;
    Ok(by)
}
