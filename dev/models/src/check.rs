//! Visits all states of a scene. Returns its size and its violation.
#![expect(clippy::disallowed_methods, reason = "how long a model takes is measured, and decides nothing")]

use crate::play::Act;
use crate::promises::{EXAMPLES, PROMISES};
use crate::state::{Scene, World};
use crate::story::tell;
use stateright::{Checker, HasDiscoveries, Model, Path, Property};
use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

impl Model for Scene {
    type State = World;
    type Action = Act;

    fn init_states(&self) -> Vec<World> {
        self.start()
    }

    fn actions(&self, world: &World, acts: &mut Vec<Act>) {
        self.acts(world, acts);
    }

    fn next_state(&self, before: &World, act: Act) -> Option<World> {
        let mut world = before.clone();
        self.act(&mut world, &act);
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let promises = PROMISES.into_iter().map(|(name, condition)| Property::always(name, condition));
        let examples = EXAMPLES.into_iter().map(|(name, _, condition)| Property::sometimes(name, condition));
        promises.chain(examples).collect()
    }
}

#[derive(Debug)]
pub struct Played {
    pub states: usize,
    /// The longest of the shortest ways to a state.
    pub depth: usize,
    pub seconds: f64,
    /// The promise that is violated, and how.
    pub violated: Option<(&'static str, String)>,
    pub examples: BTreeSet<&'static str>,
}

type Found = HashMap<&'static str, Path<World, Act>>;

impl Scene {
    /// Visits all states on so many threads. Stops at the first violation, and looks for the shortest way to one.
    #[must_use]
    pub fn play(&self, threads: usize) -> Played {
        let begun = Instant::now();
        let checker = self.search(threads, usize::MAX);
        let found: Found = checker.discoveries();
        let examples = EXAMPLES.iter().map(|(name, ..)| *name).filter(|name| found.contains_key(name)).collect();
        let is_violated = PROMISES.iter().any(|(name, _)| found.contains_key(name));
        Played {
            states: checker.unique_state_count(),
            depth: checker.max_depth(),
            seconds: begun.elapsed().as_secs_f64(),
            violated: is_violated.then(|| self.shortest()),
            examples,
        }
    }

    fn search(&self, threads: usize, depth: usize) -> impl Checker<Scene> + use<> {
        let checker = self.clone().checker().threads(threads).target_max_depth(depth);
        checker.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join()
    }

    /// The shortest way to a violation. The checker tells the last one that it met. This looks one step deeper each time.
    fn shortest(&self) -> (&'static str, String) {
        for depth in 2.. {
            let mut found: Found = self.search(1, depth).discoveries();
            if let Some((name, way)) = PROMISES.iter().find_map(|(name, _)| Some((*name, found.remove(name)?))) {
                return (name, tell(&way.into_vec()));
            }
        }
        unreachable!("a violation was found before")
    }
}
