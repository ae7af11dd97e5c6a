//! [`Request`]: route, parameters, headers and body of one request, without a transport.
//!
//! All errors of a request are found here, and become a [`Problem`](super::Problem) that names the field.

mod fields;
mod from_http;
mod id;
mod idempotency_key;
mod limits;
mod message;
mod preconditions;
mod query;
mod values;

pub use fields::Fields;
pub use id::Id;
pub use limits::MAX_BODY;
pub use message::{Body, Request};
pub use query::QueryString;
pub use values::Ip;
