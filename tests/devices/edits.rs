//! Patches as edits: they come to the same as the decisions.

use super::world::World;
use crate::harness::events::Event;
use fastrand::Rng;
use fencepost::json::merge_patch;
use serde_json::{Map, Value, json};

/// A value for a state or a patch. Few names and values make it likely that they meet.
fn drawn(rng: &mut Rng, depth: u32, in_patch: bool) -> Value {
    match rng.u32(..12) {
        0 | 1 if in_patch => Value::Null,
        0..=4 => json!(rng.u32(..2)),
        5 => json!("text"),
        6 => json!(true),
        7 => json!([rng.u32(..2)]),
        8 if in_patch && rng.bool() => json!(1e30), // a wide number
        _ if depth == 0 => json!({}),
        _ => drawn_object(rng, depth - 1, in_patch),
    }
}

fn drawn_object(rng: &mut Rng, depth: u32, in_patch: bool) -> Value {
    let names = ["a", "b", "size", "a.b"];
    let members = (0..rng.usize(..4)).map(|_| (names[rng.usize(..4)].to_owned(), drawn(rng, depth, in_patch)));
    Value::Object(members.collect::<Map<_, _>>())
}

/// A patch with plain values in the places of others.
fn drawn_inside(rng: &mut Rng, state: &Value) -> Value {
    let mut patch = Map::new();
    for (name, value) in state.as_object().into_iter().flatten().filter(|_| rng.u32(..3) > 0).collect::<Vec<_>>() {
        let is_entered = value.is_object() && rng.bool();
        patch.insert(name.clone(), if is_entered { drawn_inside(rng, value) } else { json!(rng.u32(..3)) });
    }
    Value::Object(patch)
}

#[tokio::test]
async fn a_patch_leaves_the_merged_state_with_at_most_the_requests_of_a_change_by_version() {
    let (mut changed, mut in_one) = (0, 0);
    for seed in 0..150 {
        let mut rng = Rng::with_seed(seed);
        let state = drawn_object(&mut rng, 2, false);
        let mut world = World::with_state(&state.to_string()).await;
        let (mut state, mut version) = (state, 1);
        for turn in 0..6 {
            if rng.bool() {
                world = world.moved_to(&world.engine.clone()); // another process, which knows nothing
            }
            let patch = if rng.bool() { drawn_object(&mut rng, 2, true) } else { drawn_inside(&mut rng, &state) };
            let merged = merge_patch(&state, &patch);
            world.pass(1000 * (turn + 1));
            world.engine.take_log();
            let answer = world.send(&Event::patch_state().text(&patch.to_string())).await;
            let (reads, writes) = world.engine.take_counts();
            let what = format!("seed {seed}, turn {turn}: {patch} to {state}: {reads} reads, {writes} writes");
            let is_change = merged != state;
            version += u64::from(is_change);
            let shown = answer.shows(200, version);
            assert_eq!(shown["state"], merged, "{what}");
            assert_eq!(world.send(&Event::get()).await.shows(200, version), shown, "{what}");
            assert!(reads + writes <= 1 + usize::from(is_change), "{what}");
            changed += usize::from(is_change);
            in_one += usize::from(is_change && reads + writes == 1);
            state = merged;
        }
    }
    println!("{changed} changes, {in_one} of them in one request");
    assert!(changed > 300 && in_one > 60, "{changed} {in_one}");
}
