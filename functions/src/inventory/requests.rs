//! Parses bodies to typed requests. All 400s about bodies come from here.

use crate::operation::Schema;
use crate::product::{MAX_STOCK, Product, STOCK, new_product};
use fencepost::Timestamp;
use fencepost::http::{Problem, Request};

/// The schema of a new product.
pub const NEW_PRODUCT: Schema = Schema::Object(&[("stock", STOCK), ("lowStockAt?", STOCK)]);

/// Parses the new product in `{stock, lowStockAt?=0}`. It is created at `now`.
///
/// # Errors
/// A problem that names the field.
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
///
/// # Errors
/// A problem that names the field.
pub fn parse_adjustment(request: &Request) -> Result<i64, Problem> {
    let mut fields = request.fields()?;
    let by = fields.required_whole("by", -MAX_STOCK..=MAX_STOCK)?;
    fields.finish()?;
    Ok(by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::product::Status;
    use fencepost::http::Body;
    use std::time::SystemTime;

    fn request(body: &str) -> Request {
        Request { body: Body { text: body.to_owned(), is_base64: false }, ..Request::default() }
    }

    fn product(body: &str) -> Result<Product, Problem> {
        parse_product(&request(body), Timestamp::from(SystemTime::UNIX_EPOCH))
    }

    #[test]
    fn a_new_product_has_its_status_and_runs_low_at_0_unless_it_says_so() {
        let one = product(r#"{"stock":5.0}"#).expect("a product");
        assert_eq!((one.stock, one.low_stock_at, one.status), (5, 0, Status::InStock));
        let other = product(r#"{"stock":5,"lowStockAt":1e1}"#).expect("a product");
        assert_eq!((other.stock, other.low_stock_at, other.status), (5, 10, Status::LowStock));
    }

    #[test]
    fn every_wrong_product_is_refused_with_a_code() {
        for (body, code) in [
            ("{}", "missing_field"),
            (r#"{"stock":"5"}"#, "invalid_type"),
            (r#"{"stock":null}"#, "invalid_type"),
            (r#"{"stock":0.5}"#, "invalid_value"),
            (r#"{"stock":-1}"#, "invalid_value"),
            (r#"{"stock":1000000000000001}"#, "invalid_value"),
            (r#"{"stock":1e400}"#, "number_out_of_range"),
            (r#"{"stock":1,"lowStockAt":-1}"#, "invalid_value"),
            (r#"{"stock":1,"lowStockAt":null}"#, "invalid_type"),
            (r#"{"stock":1,"status":"in_stock"}"#, "unknown_field"),
            (r#"{"stock":1,"_stock":1}"#, "reserved_name"),
        ] {
            assert_eq!(product(body).expect_err("refused").code(), code, "{body}");
        }
    }

    #[test]
    fn every_wrong_adjustment_is_refused_with_a_code() {
        assert_eq!(parse_adjustment(&request(r#"{"by":-1e15}"#)).ok(), Some(-MAX_STOCK));
        for (body, code) in [
            ("{}", "missing_field"),
            (r#"{"by":"1"}"#, "invalid_type"),
            (r#"{"by":1.5}"#, "invalid_value"),
            (r#"{"by":-1000000000000001}"#, "invalid_value"),
            (r#"{"by":1,"min":0}"#, "unknown_field"),
        ] {
            assert_eq!(parse_adjustment(&request(body)).expect_err("refused").code(), code, "{body}");
        }
    }
}
