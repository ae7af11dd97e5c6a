//! Free-form JSON, kept exactly: parsing, limits, merge patch, and the way to and from attributes.
//!
//! `serde_json` is built with `arbitrary_precision`, so a [`Value`] keeps a number's text. [`parse`]
//! and [`from_attribute`] bring every number to its one text ([`Decimal`]); from there on values are
//! equal exactly when they print the same bytes, whether a client has just sent them or a table
//! has returned them.

mod attribute;
mod invalid;
mod number;
mod object;
mod parse;

pub use attribute::{from_attribute, to_attribute};
pub use invalid::{Invalid, pointer_to};
pub use number::{Decimal, Exact, NumberError, value_of};
pub use object::{MAX_DEPTH, Object, merge_patch, refuse_reserved};
pub use parse::parse;
