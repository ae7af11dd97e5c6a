//! A function on Lambda: [`serve`] for an HTTP API, [`serve_queue`] for a queue.
//!
//! This folder alone knows what an event looks like. An expected outcome is never an `Err` to the Lambda runtime: clients
//! get problems, and the runtime's error metric counts crashes only.

mod allowance;
mod client;
pub mod env;
mod event;
mod logs;
mod queue;
mod serve;

pub use allowance::{MARGIN, call};
pub use client::client_from_env;
pub use lambda_runtime::Error;
pub use queue::{Done, Outcome, respond_batch, serve_queue};
pub use serve::{respond, serve};
