//! Driving routes to see what they use, and which of them were seen to do their work.

use crate::harness::engine::Use;
use crate::harness::events::Event;
use crate::harness::functions::Functions;
use crate::harness::world::World;
use functions::function::Function;
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

    /// Asserts that each route of these functions was answered with success.
    pub fn assert_succeeded(&self, functions: &[&str]) {
        let of_these = functions::ALL.iter().filter(|function| functions.contains(&function.name));
        let routes: BTreeSet<_> = of_these.flat_map(Function::routes).map(|route| route.at.to_owned()).collect();
        assert_eq!(self.succeeded, routes, "every route was seen to do its work");
    }

    /// What a function has used.
    pub fn uses_of(&self, name: &str) -> BTreeSet<Use> {
        self.world.uses_of(name)
    }
}
