#![doc = include_str!("../README.md")]
#![allow(clippy::missing_panics_doc, reason = "a test kit panics where the test is wrong, and says how")]
#![allow(clippy::disallowed_methods, reason = "this is the clock of tests, and the README shows the bare SDK")]

mod answering;
mod answers;
mod capacity;
mod connection;
mod dynamo;
mod engine;
mod fault;
mod garbling;
mod holds;
mod log;
mod network;
pub mod seeds;
mod size;
mod wire;

pub use answering::{Reply, client_answered_by};
pub use answers::error;
pub use capacity::{Capacity, Units};
pub use connection::{Answer, Request, body_of, client_over, http_client, operation_of, response};
pub use dynamo::{Dynamo, Plan, Planned, for_each_seed};
pub use engine::{Asked, Engine, Step, Use, action_of, is_read, number};
pub use fault::{Fault, Rates};
pub use garbling::Garbling;
pub use log::{Changes, Contradiction, Log, Outcome, Sent};
pub use network::{Applied, Freezing, Network, Seam, Touched};
pub use size::size_of_item;
pub use wire::Wire;
