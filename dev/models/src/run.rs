//! Plays a model to its end. Returns its size and its violation.

#![expect(clippy::disallowed_methods, reason = "how long a model takes is measured, and decides nothing")]

use crate::protocol::Protocol;
use crate::world::{Checked, PathTo, tell};
use stateright::{Checker, Expectation, HasDiscoveries, Model};
use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

/// One model with bounds, or without a rule.
pub struct Scene {
    pub model: &'static str,
    /// The scene or the rule, in a few words joined by `-`.
    pub name: &'static str,
    play: Box<dyn Fn(usize) -> Played + Send + Sync>,
}

pub struct Removal {
    /// The smallest scene that violates the promise without the rule.
    pub scene: Scene,
    pub rule: &'static str,
    pub keeps: &'static str,
}

#[derive(Debug)]
pub struct Played {
    pub unique: usize,
    /// The longest of the shortest ways to a state.
    pub depth: usize,
    pub seconds: f64,
    /// The property that is violated, and how.
    pub violated: Option<(&'static str, String)>,
    /// Examples that were found.
    pub examples: BTreeSet<&'static str>,
    pub wanted: BTreeSet<&'static str>,
}

impl Scene {
    pub fn new<P: Protocol>(model: &'static str, name: &'static str, protocol: P) -> Self {
        Scene { model, name, play: Box::new(move |threads| play(&protocol, threads)) }
    }

    /// Visits all states on so many threads. Stops at the first violation, and looks for the shortest way to one.
    pub fn play(&self, threads: usize) -> Played {
        (self.play)(threads)
    }
}

fn play<P: Protocol>(protocol: &P, threads: usize) -> Played {
    let begun = Instant::now();
    let checker = check(protocol, threads, usize::MAX);
    let (mut examples, mut wanted) = (BTreeSet::new(), BTreeSet::new());
    let discoveries = checker.discoveries();
    for property in P::properties().iter().filter(|property| property.expectation == Expectation::Sometimes) {
        wanted.insert(property.name);
        examples.extend(discoveries.contains_key(property.name).then_some(property.name));
    }
    let is_violated = violation::<P>(&discoveries).is_some();
    Played {
        unique: checker.unique_state_count(),
        depth: checker.max_depth(),
        seconds: begun.elapsed().as_secs_f64(),
        violated: is_violated.then(|| shortest(protocol)),
        examples,
        wanted,
    }
}

fn check<P: Protocol>(protocol: &P, threads: usize, depth: usize) -> impl Checker<Checked<P>> + use<P> {
    let checker = Checked(protocol.clone()).checker().threads(threads).target_max_depth(depth);
    checker.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join()
}

/// The property that is violated.
fn violation<P: Protocol>(found: &HashMap<&'static str, PathTo<P>>) -> Option<&'static str> {
    let properties = P::properties();
    let mut always = properties.iter().filter(|property| property.expectation == Expectation::Always);
    always.find(|property| found.contains_key(property.name)).map(|property| property.name)
}

/// The shortest way to a violation. The checker tells the last one that it met. This looks one step deeper each time.
fn shortest<P: Protocol>(protocol: &P) -> (&'static str, String) {
    for depth in 2.. {
        let mut found = check(protocol, 1, depth).discoveries();
        if let Some(property) = violation::<P>(&found) {
            let way = found.remove(property).expect("it was found");
            return (property, tell(&Checked(protocol.clone()), way));
        }
    }
    unreachable!("a violation was found before")
}
