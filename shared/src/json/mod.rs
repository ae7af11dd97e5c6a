//! Exact free-form JSON: parsing, limits, merge patches, and conversion to and from attributes.
//!
//! `serde_json` is built with `arbitrary_precision`, so a [`Value`](serde_json::Value) keeps the text of a number.
//! [`parse()`] and [`from_attribute`] bring every number to its one text ([`Decimal`]). After that, two values are
//! equal if and only if they print the same bytes, whether they come from a client or from a table.

mod attribute;
mod number;
mod object;
mod parse;

pub use attribute::{from_attribute, to_attribute};
pub use number::{Decimal, Exact, value_of};
pub use object::{MAX_DEPTH, Object, merge_patch, refuse_reserved};
pub use parse::{Invalid, MAX_VALUES, parse, pointer_to};
