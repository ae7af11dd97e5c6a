//! Least privilege: template.yaml allows a function the operations that it uses, no less and no more.
//!
//! "No less" is checked after every request of every test. "No more" is checked here: each event of the crash matrix is sent
//! twice, and once more when its idempotency record has expired.

use crate::crashes::case::{Case, Killed};
use crate::crashes::cases_of;
use crate::harness::engine::{TEMPLATE, Use};
use crate::harness::events::{Event, event_of, sample};
use crate::harness::functions::{Alone, Devices, Leasing, Mappings, Shop, allowed, alone, missing, unused};
use crate::harness::world::World;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// The operations that each function was seen to use.
type Uses = BTreeMap<&'static str, BTreeSet<Use>>;

/// Longer than an idempotency record is believed, in milliseconds.
const EXPIRED: u64 = 26 * 3_600_000;

/// Plays each case, followed by this event, on tables of its own; and each GET on empty tables.
async fn drive<F: Killed>(uses: &mut Uses, cases: &[Case], event_after: Option<Event>) {
    let mut note = |world: &World<F>| {
        for name in F::names() {
            uses.entry(name).or_default().extend(world.uses_of(name));
        }
    };
    for case in cases {
        let world = World::<F>::new();
        let event = F::prepare(&world, case).await;
        // A DELETE may demand a condition.
        let at_any_version = Some(&event)
            .filter(|event| event.0["headers"].is_object())
            .map(|event| event.clone().header("if-match", "*"));
        for event in F::seeing().iter().chain([&event, &event]).chain(&at_any_version).chain(&event_after) {
            F::invoke(&world, event).await;
        }
        world.clock.set_forward(EXPIRED);
        for event in [&event].into_iter().chain(&event_after) {
            F::invoke(&world, event).await;
        }
        note(&world);
    }
    let world = World::<F>::new();
    for function in functions::ALL.iter().filter(|function| F::names().contains(&function.name)) {
        for route in function.routes().iter().filter(|route| route.at.starts_with("GET ")) {
            world.send(&sample(route.at, "192.0.2.1")).await;
        }
    }
    note(&world);
}

#[tokio::test(start_paused = true)]
async fn every_function_is_allowed_its_operations_and_no_others() {
    let mut uses = Uses::new();
    drive::<Devices>(&mut uses, Devices::CASES, None).await;
    let unchanged = event_of("POST /products/{productId}/adjustments", "b").json(&json!({"by": 0})).key("k-0");
    drive::<Shop>(&mut uses, Shop::CASES, Some(unchanged)).await;
    drive::<Mappings>(&mut uses, Mappings::CASES, None).await;
    drive::<Leasing>(&mut uses, Leasing::CASES, None).await;
    for function in alone() {
        Alone::is(function);
        let cases: Vec<_> = function.routes().iter().flat_map(cases_of).collect();
        drive::<Alone>(&mut uses, &cases, None).await;
    }
    let mut complaints = Vec::new();
    for dev::template::Function { name, .. } in &TEMPLATE.functions {
        let Some(used) = uses.get(name.as_str()) else {
            complaints.push(format!("tests/crashes: no case of {name}, so it is not known what it uses"));
            continue;
        };
        complaints.extend(missing(name, &allowed(name), used));
        complaints.extend(unused(name, &allowed(name), used));
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
}
