//! A function on Lambda: [`serve`] for an HTTP API, [`serve_queue`] for a queue, [`serve_schedule`] for a schedule.
//!
//! This is the only folder that knows the form of an event. An expected outcome is never an `Err` to the Lambda
//! runtime. Clients get problems. The error metric of the runtime counts only crashes, and scheduled work that failed, because
//! Lambda runs that again.

mod allowance;
mod client;
pub mod env;
mod event;
mod https;
mod logs;
mod metrics;
mod queue;
mod schedule;
mod serve;
mod start;
#[cfg(feature = "testing")]
pub(crate) mod testing;
#[cfg(feature = "lambda")]
mod tls;
mod xray;

pub use allowance::{MARGIN, call};
pub use client::client_from_env;
pub use https::https_client;
pub use queue::{Done, Outcome, respond_batch, serve_queue};
pub use schedule::serve_schedule;
pub use serve::{respond, serve};
