//! Parses bodies to typed requests. All 400s about bodies come from here.

use crate::operation::{ID, Member, Schema};
use crate::place_order::order::{LINES, Line, MAX_LINES, MAX_QUANTITY, ORDER, Placement};
use fencepost::http::{Fields, Id, Problem, Request};
use std::collections::HashSet;

/// The most orders of one page of a listing.
pub const MAX_LISTED: u16 = 100;
/// The orders of one page, unless the request says otherwise.
pub const LISTED: u16 = 20;

/// The schema of some ids.
pub const IDS: Schema = Schema::Named("Ids", &Schema::List(1, None, &ID));

/// The schema of a request for an order.
pub const PLACEMENT: Schema = Schema::Object(&[("userId", ID), ("lines", LINES)]);
/// The schema of a cancellation.
pub const CANCELLATION: Schema = Schema::Object(&[]);

/// The parameters of a listing.
pub const LISTING: &[Member] = &[
    ("userId", ID),
    (
        "limit?",
        Schema::With(
            r#"{"default":20,"description":"The most orders of a page."}"#,
            &Schema::Whole(1, MAX_LISTED as i64),
        ),
    ),
    (
        "cursor?",
        Schema::Json(
            r#"{"type":"string","description":"The `cursor` of the page before, of the same user. One of another user, or a damaged one, is `invalid_cursor`."}"#,
        ),
    ),
];
/// The schema of a page.
pub const PAGE: Schema = Schema::Object(&[
    ("orders", Schema::List(0, Some(MAX_LISTED as usize), &ORDER)),
    ("cursor?", Schema::Json(r#"{"type":"string","pattern":"^[A-Za-z0-9_-]+$"}"#)),
]);

/// A request for one page of the orders of a user.
#[derive(Debug)]
pub struct Listing {
    /// The id of the user.
    pub user_id: Id,
    /// The most orders of the page.
    pub limit: u16,
    /// The cursor of the page before, as the client sent it.
    pub cursor: Option<String>,
}

/// Parses the placement in `{userId, lines: [{productId, quantity}]}`.
///
/// # Errors
/// A problem that names the field.
pub fn parse_placement(request: &Request) -> Result<Placement, Problem> {
    let mut fields = request.fields()?;
    let user_id = fields.required_id("userId")?.to_string();
    let lines = fields.required_list("lines", 1..=MAX_LINES)?;
    fields.finish()?;
    let mut seen = HashSet::new();
    let lines = lines.into_iter().map(|fields| parse_line(fields, &mut seen)).collect::<Result<_, _>>()?;
    Ok(Placement { user_id, lines })
}

/// Parses the line in `{productId, quantity}`. Its product must not be in `seen` yet.
fn parse_line(mut fields: Fields, seen: &mut HashSet<String>) -> Result<Line, Problem> {
    let product_id = fields.required_id("productId")?.to_string();
    let quantity = fields.required_whole("quantity", 1..=MAX_QUANTITY)?;
    if !seen.insert(product_id.clone()) {
        let detail = "an earlier line has this product: give each product one line";
        return Err(fields.wrong("productId", "invalid_value", detail));
    }
    fields.finish()?;
    Ok(Line { product_id, quantity })
}

/// Parses the query `userId`, `limit?=20` and `cursor?` of a listing.
///
/// # Errors
/// A problem that names the parameter.
pub fn parse_listing(request: &Request) -> Result<Listing, Problem> {
    let query = request.query_of(&["userId", "limit", "cursor"])?;
    let limit = query.optional_whole("limit", 1..=i64::from(MAX_LISTED))?;
    Ok(Listing {
        user_id: query.required_id("userId")?,
        limit: limit.and_then(|limit| u16::try_from(limit).ok()).unwrap_or(LISTED),
        cursor: query.optional_text("cursor").map(str::to_owned),
    })
}

/// Checks that a cancellation has an empty body, or an empty object.
///
/// # Errors
/// A problem that names the field.
pub fn parse_cancellation(request: &Request) -> Result<(), Problem> {
    if request.body.text.is_empty() { Ok(()) } else { request.fields()?.finish() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost::http::Body;
    use serde_json::{Value, json};

    fn request(body: &str) -> Request {
        Request { body: Body { text: body.to_owned(), is_base64: false }, ..Request::default() }
    }

    fn refused(body: &Value) -> (String, &'static str) {
        let problem = parse_placement(&request(&body.to_string())).expect_err("refused");
        let code = problem.code();
        let body = problem.into_response().body().unwrap_or_default().to_owned();
        let body: Value = serde_json::from_str(&body).expect("JSON");
        (body["field"].as_str().expect("a field").to_owned(), code)
    }

    fn line(id: &str) -> Value {
        json!({ "productId": id, "quantity": 1 })
    }

    #[test]
    fn an_order_has_up_to_50_lines_of_up_to_a_million() {
        let lines: Vec<_> = (0..50).map(|n| line(&format!("p-{n}"))).collect();
        let placement = parse_placement(&request(&json!({ "userId": "u", "lines": lines }).to_string()));
        assert_eq!(placement.expect("a placement").lines.len(), 50);
        let body = r#"{"userId":"u","lines":[{"productId":"p","quantity":1e6},{"productId":"P","quantity":2.0}]}"#;
        let placement = parse_placement(&request(body)).expect("a placement");
        let quantities: Vec<_> = placement.lines.iter().map(|line| line.quantity).collect();
        assert_eq!((placement.user_id.as_str(), quantities), ("u", vec![1_000_000, 2]));
    }

    #[test]
    fn every_wrong_order_is_refused_with_the_place_and_a_code() {
        let too_many: Vec<_> = (0..51).map(|n| line(&format!("p-{n}"))).collect();
        let with = |line: Value| json!({ "userId": "u", "lines": [{ "productId": "a", "quantity": 1 }, line] });
        for (body, field, code) in [
            (json!({ "lines": [line("a")] }), "/userId", "missing_field"),
            (json!({ "userId": "a b", "lines": [line("a")] }), "/userId", "invalid_id"),
            (json!({ "userId": 1, "lines": [line("a")] }), "/userId", "invalid_type"),
            (json!({ "userId": "u" }), "/lines", "missing_field"),
            (json!({ "userId": "u", "lines": line("a") }), "/lines", "invalid_type"),
            (json!({ "userId": "u", "lines": [] }), "/lines", "invalid_value"),
            (json!({ "userId": "u", "lines": too_many }), "/lines", "invalid_value"),
            (json!({ "userId": "u", "lines": [line("a")], "status": "PENDING" }), "/status", "unknown_field"),
            (with(json!("b")), "/lines/1", "invalid_type"),
            (with(json!({ "quantity": 1 })), "/lines/1/productId", "missing_field"),
            (with(json!({ "productId": "b/c", "quantity": 1 })), "/lines/1/productId", "invalid_id"),
            (with(line("a")), "/lines/1/productId", "invalid_value"),
            (with(json!({ "productId": "b" })), "/lines/1/quantity", "missing_field"),
            (with(json!({ "productId": "b", "quantity": "1" })), "/lines/1/quantity", "invalid_type"),
            (with(json!({ "productId": "b", "quantity": 0 })), "/lines/1/quantity", "invalid_value"),
            (with(json!({ "productId": "b", "quantity": 1.5 })), "/lines/1/quantity", "invalid_value"),
            (with(json!({ "productId": "b", "quantity": 1_000_001 })), "/lines/1/quantity", "invalid_value"),
            (with(json!({ "productId": "b", "quantity": 1, "x": 1 })), "/lines/1/x", "unknown_field"),
        ] {
            assert_eq!(refused(&body), (field.to_owned(), code), "{body}");
        }
    }

    fn asking(query: &[(&str, &str)]) -> Request {
        let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Request { query, ..Request::default() }
    }

    #[test]
    fn a_listing_has_a_user_a_limit_and_perhaps_a_cursor() {
        let listing = parse_listing(&asking(&[("userId", "u")])).expect("a listing");
        assert_eq!((listing.user_id.as_str(), listing.limit, listing.cursor), ("u", LISTED, None));
        let listing = parse_listing(&asking(&[("userId", "u"), ("limit", "100"), ("cursor", "")])).expect("a listing");
        assert_eq!((listing.limit, listing.cursor.as_deref()), (MAX_LISTED, Some("")));
        for (query, field, code) in [
            (&[][..], "query:userId", "missing_parameter"),
            (&[("userId", "a b")], "query:userId", "invalid_id"),
            (&[("userId", "u"), ("limit", "0")], "query:limit", "invalid_value"),
            (&[("userId", "u"), ("limit", "101")], "query:limit", "invalid_value"),
            (&[("userId", "u"), ("status", "PENDING")], "query:status", "unknown_parameter"),
        ] {
            let problem = parse_listing(&asking(query)).expect_err("refused");
            assert_eq!((problem.field(), problem.code()), (Some(field), code), "{query:?}");
        }
    }

    #[test]
    fn a_cancellation_says_nothing() {
        for body in ["", "{}", " { } "] {
            assert!(parse_cancellation(&request(body)).is_ok(), "{body:?}");
        }
        for (body, code) in [(r#"{"why":"x"}"#, "unknown_field"), ("[]", "invalid_type"), ("x", "invalid_json")] {
            assert_eq!(parse_cancellation(&request(body)).expect_err("refused").code(), code, "{body:?}");
        }
    }
}
