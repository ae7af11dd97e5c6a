//! What the clients of one history share, what they asked and what they were told.

use super::plan::{Change, Plan, Who};
use crate::histories::scene;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use tokio::time::Instant;

/// The part of the scene that only these histories have.
pub struct Own {
    pub plan: Plan,
    /// The deletes that wait in the queue, by their place in the plan.
    pub queue: Mutex<Vec<usize>>,
    /// How many clients may still put something there.
    pub asking: AtomicUsize,
}

pub type Scene = scene::Scene<Own, Sent>;

/// What is asked of an address.
#[derive(Clone, PartialEq, Debug)]
pub enum What {
    Change(Change),
    LookUp,
}

/// What one request or one message was told.
#[derive(Clone, PartialEq, Debug)]
pub enum Told {
    New,
    Same,
    /// By whom, where it is said.
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

/// One request, or one message of a batch, and what it was told.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Of the invocation; all messages of a batch have the same.
    pub number: u64,
    /// Which client it was. `None` for a message of the queue: those of one batch are worked on at once.
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
