//! The state that the clients of one history share, with their requests and answers.

use super::plan::{Change, Plan, Who};
use crate::histories::scene;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use tokio::time::Instant;

/// The part of the scene for these histories alone.
pub struct Own {
    pub plan: Plan,
    /// The deletes in the queue, by their place in the plan.
    pub queue: Mutex<Vec<usize>>,
    /// The number of clients that may still add to the queue.
    pub asking: AtomicUsize,
}

pub type Scene = scene::Scene<Own, Sent>;

/// A request about an address.
#[derive(Clone, PartialEq, Debug)]
pub enum What {
    Change(Change),
    LookUp,
}

/// The answer to one request or message.
#[derive(Clone, PartialEq, Debug)]
pub enum Told {
    New,
    Same,
    /// The newer instance, if the answer names it.
    Superseded(Option<Who>),
    Deleted,
    AlreadyGone,
    Folded,
    Shown(Who),
    ShownNothing,
    NotApplied,
    Unknown,
}

impl Told {
    pub fn is_definite(&self) -> bool {
        !matches!(self, Told::NotApplied | Told::Unknown)
    }
}

/// One request or one message of a batch, with its answer.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The number of its invocation. All messages of a batch have the same number.
    pub number: u64,
    /// The client. `None` for a message of the queue: those of one batch are handled at once.
    pub client: Option<u64>,
    pub address: usize,
    pub what: What,
    pub began: Instant,
    pub ended: Instant,
    pub told: Told,
}

impl Sent {
    pub fn was_queued(&self) -> bool {
        self.client.is_none()
    }
}
