//! [`Request`]: route, parameters, headers and body of one request, without a transport.
//!
//! All errors of a request are found here, and become a [`Problem`](super::Problem) that names the field.

mod fields;
mod idempotency_key;
mod message;
mod query;
mod values;

pub use fields::Fields;
pub use message::{Body, Request};
pub use query::QueryString;
pub use values::{Id, Ip, MAX_BODY};
