//! Sends one request to `DynamoDB` and classifies the answer by its proof.

mod classify;
mod guard;
mod outcome;
mod sender;
mod transaction;
mod values;

pub(crate) use classify::{depends_on_the_data, is_malformed_query, is_reason};
#[cfg(feature = "lambda-without-tls")]
pub(crate) use guard::Guard;
pub use outcome::Reason;
#[cfg(feature = "lambda-without-tls")]
pub(crate) use outcome::SEND_TARGET;
pub(crate) use outcome::{ReadRows, SendOutcome, Shown, name, send_span};
#[cfg(feature = "lambda-without-tls")]
pub(crate) use sender::framework;
pub(crate) use sender::{Boxed, Ended, Found, PageRequest, Requests, Sender};
pub(crate) use transaction::{Address, step};
pub use values::{from_sdk, to_sdk};
