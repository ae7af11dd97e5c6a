//! [`Watch`]: one operation as it is seen from outside, by its span and by the observer of its store.

use super::send::Sender;
use crate::call::{Call, Tally};
use crate::error::Place;
use crate::observe::{Ending, Observed};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tracing::field::Empty;
use tracing::{Span, debug_span, error};

const TARGET: &str = "fencepost::operation";

/// An operation under way. It ends when it is told how, or as dropped.
pub(super) struct Watch<'a> {
    /// `None` if nobody watches, and after the end.
    place: Option<Place>,
    sender: &'a Sender,
    call: &'a Call,
    /// The span of the operation, at the level `DEBUG`.
    pub span: Span,
    began: Duration,
    pub requests: u32,
    pub tally: Tally,
}

impl<'a> Watch<'a> {
    pub fn begin(sender: &'a Sender, call: &'a Call, place: impl FnOnce() -> Place) -> Self {
        let span = debug_span!(
            target: TARGET, "operation", operation = Empty, table = Empty, key = Empty, requests = Empty, attempts = Empty, outcome = Empty
        );
        let place = (sender.observer.is_some() || !span.is_disabled()).then(place);
        if let Some(place) = &place {
            span.record("operation", place.operation);
            if let Some(table) = place.table() {
                span.record("table", table);
            }
            if let [item] = &*place.items {
                span.record("key", item.key_in_words());
            }
        }
        Watch { place, sender, call, span, began: sender.elapsed(), requests: 0, tally: Tally::default() }
    }

    /// Ends it, once. Its cost counts in its call.
    pub fn end(&mut self, ending: Ending<'_>) {
        let (requests, tally) = (self.requests, std::mem::take(&mut self.tally));
        self.call.counts().add(tally);
        let Some(place) = self.place.take() else { return };
        self.span.record("requests", requests);
        self.span.record("attempts", tally.attempts);
        self.span.record("outcome", tracing::field::display(ending));
        if let Some(observer) = &self.sender.observer {
            let took = self.sender.elapsed().saturating_sub(self.began);
            let seen = Observed { place: &place, ending, requests, tally, took };
            // The operation has ended, and its caller has to be told so.
            if catch_unwind(AssertUnwindSafe(|| observer(&seen))).is_err() {
                error!(operation = place.operation, "the observer of the store panics");
            }
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.end(Ending::Dropped);
    }
}
