//! The fault seam: a connector between the real SDK and the embedded engine that loses, delays and doubles.
//!
//! Every fate is drawn from a seeded generator, and time is tokio's paused clock, so a seed replays exactly.
//! Deliveries run in tasks of their own: what a client gives up on may still arrive.

mod answers;
mod breaking;
mod checks;
mod forgetting;
mod freezing;
mod network;
mod wire;

pub use forgetting::without_rule as leave_out;
pub use freezing::Freezing;
pub use network::{Applied, Broken, Network, ONE_PAYLOAD, Rates, Touched};
pub use wire::Wire;
