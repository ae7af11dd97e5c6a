//! The form of a request, for all functions: bad input, nameless callers, and unusual events of API Gateway.

mod bad_input;
mod limits;
mod odd_events;

use crate::harness::functions::Alone;
use crate::harness::world::World;
use functions::function::Function;

/// Each function with routes by itself, with empty tables.
struct Api(Vec<(&'static Function, World<Alone>)>);

impl Api {
    fn start() -> Self {
        let started = |function| {
            Alone::is(function);
            (function, World::new())
        };
        Api(functions::ALL.iter().filter(|function| !function.routes().is_empty()).map(started).collect())
    }

    /// The function that has this route.
    fn of(&self, route: &str) -> &World<Alone> {
        let has_it = |function: &Function| function.routes().iter().any(|known| known.at == route);
        let (function, world) = self.0.iter().find(|(function, _)| has_it(function)).expect("a function has it");
        Alone::is(function);
        world
    }
}
