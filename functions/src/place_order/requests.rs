//! Parses bodies to typed requests. All 400s about bodies come from here.

use crate::operation::{ID, Member, Schema};
use crate::order::Line;
use crate::place_order::placement::{LINES, MAX_LINES, MAX_QUANTITY, ORDER, Placement};
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
            r#"{"type":"string","pattern":"^[A-Za-z0-9_-]+$","description":"The `cursor` of the page before, of the same user. One of another user, or a damaged one, is `invalid_cursor`."}"#,
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
pub fn parse_cancellation(request: &Request) -> Result<(), Problem> {
    if request.body.text.is_empty() { Ok(()) } else { request.fields()?.finish() }
}
