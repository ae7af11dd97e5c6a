//! The cases of functions without a file of their own: every changing route, with the event of `events/`, on an item
//! that is absent, present or a tombstone, with a key if it honours one. Undisturbed invocations show the promise of
//! the case.

use super::case::{Case, Given, How, Killed, Promise};
use super::devices::asked;
use super::trial::Fate;
use super::{Undisturbed, on_paused_time, play};
use crate::harness::events::{Event, sample};
use crate::harness::functions::{Alone, Functions, alone};
use crate::harness::states::bury_all;
use crate::harness::world::World;
use functions::operation::{IdempotencyKey, Operation};

const ID: &str = "one";

impl Killed for Alone {
    const CASES: &'static [Case] = &[];

    async fn prepare(world: &World<Self>, case: &Case) -> Event {
        if case.given != Given::Absent {
            let routes = functions::ALL.iter().find(|known| Self::names() == [known.name]).expect("one").routes();
            let create = routes.iter().find(|route| route.at.starts_with("PUT ") || route.at.starts_with("POST "));
            let created = world.send(&sample(create.expect("a route that creates").at, ID)).await;
            assert!(created.status < 300, "{created:?}");
        }
        if case.given == Given::Tombstone {
            bury_all(&world.engine, Self::tables(), ID);
        }
        asked(sample(case.route, ID), case.how, "")
    }

    fn name_of(_: &str) -> &'static str {
        Self::names()[0]
    }
}

/// The cases of a route.
pub fn cases_of(route: &Operation) -> Vec<Case> {
    let hows = if route.key == IdempotencyKey::Honoured { &[How::Plain, How::Keyed][..] } else { &[How::Plain] };
    let given = [Given::Absent, Given::Present, Given::Tombstone];
    let case = |given, how| Case { route: route.at, given, how, promise: Promise::Nothing, answers: ["", ""] };
    given.into_iter().flat_map(|given| hows.iter().map(move |how| case(given, *how))).collect()
}

#[test]
fn a_function_by_itself_survives_a_death_at_each_await_point() {
    for function in alone() {
        Alone::is(function);
        let (mut changes, mut wrong) = (0, Vec::new());
        for route in function.routes().into_iter().filter(|route| route.key != IdempotencyKey::Ignored) {
            for mut case in cases_of(&route) {
                let tally = on_paused_time(async {
                    let undisturbed = Undisturbed::of::<Alone>(&case).await;
                    case.promise = undisturbed.promise(&case);
                    play::<Alone>(&case, &undisturbed, &[Fate::Delivered, Fate::Late], |_| {}).await
                });
                changes += usize::from(case.promise != Promise::Nothing && tally.applied > 0);
                wrong.extend(tally.why);
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
        assert!(changes > 0, "events/: no event of {} changes anything", function.name);
    }
}
