//! Sends one request to `DynamoDB` and classifies the answer by its proof.

mod classify;
mod guard;
mod outcome;
mod sender;
mod span;
mod transaction;
mod whole;

pub(crate) use classify::is_malformed_query;
pub(crate) use outcome::{ReadOutcome, SendOutcome};
pub(crate) use sender::{PageRequest, ReadRows, Send, Sender};
#[cfg(feature = "lambda-without-tls")]
pub(crate) use span::SEND_TARGET;
pub(crate) use span::send_span;
pub use transaction::Reason;
pub(crate) use transaction::{Address, step};
