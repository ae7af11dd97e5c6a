//! Driving routes to see what they use, and which of them were seen to do their work.

use crate::harness::engine::Use;
use crate::harness::events::Event;
use crate::harness::functions::Functions;
use crate::harness::world::World;
use serde_json::Value;
use std::collections::BTreeSet;

pub struct Drive<F> {
    pub world: World<F>,
    succeeded: BTreeSet<String>,
}

impl<F: Functions> Drive<F> {
    pub fn new() -> Self {
        Drive { world: World::new(), succeeded: BTreeSet::new() }
    }

    /// Sends an event and expects this status; gives what is shown.
    pub async fn send(&mut self, status: i64, event: &Event) -> Value {
        let answer = self.world.send(event).await;
        assert_eq!(answer.status, status, "{event:?}: {answer:?}");
        self.note(status, event);
        answer.body.as_deref().map(|body| serde_json::from_str(body).expect("JSON")).unwrap_or_default()
    }

    /// Notes that the route of this event was answered with this status.
    pub fn note(&mut self, status: i64, event: &Event) {
        if status < 300 {
            self.succeeded.insert(event.route().to_owned());
        }
    }

    /// Asserts that each of these routes was answered with success.
    pub fn assert_succeeded<'a>(&self, routes: impl IntoIterator<Item = &'a str>) {
        let routes: BTreeSet<String> = routes.into_iter().map(str::to_owned).collect();
        assert_eq!(self.succeeded, routes, "every route was seen to do its work");
    }

    /// What a function has used.
    pub fn uses_of(&self, name: &str) -> BTreeSet<Use> {
        self.world.uses_of(name)
    }
}

/// The names of routes.
pub fn routes<'a, R>(routes: &'a [(&'static str, R)]) -> impl Iterator<Item = &'static str> + use<'a, R> {
    routes.iter().map(|(route, _)| *route)
}
