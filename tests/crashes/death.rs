//! The death of a process, and the fate of its remaining requests.

use crate::harness::engine::{Engine, is_read};
use crate::harness::faults::Network;
use fencepost_test::{Answer, Request, Seam, error};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll};

/// Work that is dropped when it waits once more than allowed. Its output is then `None`.
pub struct Mortal<F> {
    work: Option<Pin<Box<F>>>,
    waits_left: usize,
}

impl<F> Mortal<F> {
    /// The work dies when it waits for the time after so many.
    pub fn after(waits: usize, work: F) -> Self {
        Mortal { work: Some(Box::pin(work)), waits_left: waits }
    }
}

impl<F: Future> Future for Mortal<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.work else { return Poll::Ready(None) };
        match work.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.waits_left == 0 => {
                self.work = None;
                Poll::Ready(None)
            }
            Poll::Pending => {
                self.waits_left -= 1;
                Poll::Pending
            }
        }
    }
}

/// The fate of the requests on their way at the death of their process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They are delivered before the event comes again.
    Delivered,
    /// They never arrive.
    NeverDelivered,
    /// They arrive after the event came again.
    Late,
}

/// Who sends requests, as [`Wire::works_on`](crate::harness::faults::Wire::works_on) is told.
pub const TEST: u64 = 0;
pub const KILLED: u64 = 1;

/// Breaks a rule in all requests.
pub type Breaks = fn(&mut Request);

/// Decides about the remaining requests of a process.
pub struct Estate {
    fate: Fate,
    breaks: Breaks,
    is_dead: AtomicBool,
    /// The requests for a late arrival.
    kept: Mutex<Vec<Request>>,
    changes: Mutex<Changes>,
}

/// The number of changes to each row, by table and key. A write without a difference is no change.
pub type Changes = BTreeMap<(String, String), usize>;

impl Estate {
    pub fn new(fate: Fate, breaks: Breaks) -> Self {
        Estate { fate, breaks, is_dead: AtomicBool::new(false), kept: Mutex::default(), changes: Mutex::default() }
    }

    /// The process is dead.
    pub fn opens(&self) {
        self.is_dead.store(true, SeqCst);
    }

    /// Delivers the kept requests.
    pub fn deliver_late(&self, engine: &Engine) {
        let kept = std::mem::take(&mut *self.kept.lock().expect("no panic while keeping"));
        for request in kept {
            self.execute(engine, &request);
        }
    }

    /// The changes of all processes but the test's own.
    pub fn changes(&self) -> Changes {
        self.changes.lock().expect("no panic while counting").clone()
    }

    fn execute(&self, engine: &Engine, request: &Request) -> Answer {
        let steps = if is_read(&request.operation) || request.op == TEST {
            Vec::new()
        } else {
            engine.steps_of(&request.operation, &request.body)
        };
        let rows = || steps.iter().map(|step| engine.row_at(&step.table, &step.key)).collect::<Vec<_>>();
        let before = rows();
        let answer = engine.execute(request);
        let mut changes = self.changes.lock().expect("no panic while counting");
        for (step, (before, after)) in steps.iter().zip(before.iter().zip(rows())) {
            if *before != after {
                *changes.entry((step.table.clone(), step.id.clone())).or_default() += 1;
            }
        }
        answer
    }
}

/// The same estate, as the network asks it.
pub struct Seen(pub std::sync::Arc<Estate>);

impl Seam for Seen {
    fn leaves(&self, _: &Network, request: &mut Request) {
        (self.0.breaks)(request);
    }

    fn arrives(&self, network: &Network, request: &Request) -> Answer {
        let estate = &self.0;
        let is_left_behind = request.op == KILLED && estate.is_dead.load(SeqCst);
        if !is_left_behind || estate.fate == Fate::Delivered {
            return estate.execute(&network.engine, request);
        }
        if estate.fate == Fate::Late {
            estate.kept.lock().expect("no panic while keeping").push(request.clone());
        }
        error(500, "InternalServerError") // the process is dead and does not hear it
    }
}
