//! Patches, statuses and configurations as edits: they come to the same as the decisions, and many at once do not
//! conflict.

use super::world::{TABLES, World};
use crate::harness::engine::Engine;
use crate::harness::events::Event;
use crate::harness::faults::{Broken, Network, Rates, network_that_breaks};
use fastrand::Rng;
use fencepost::json::merge_patch;
use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

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

/// Callers of one device, each 5 ms away.
struct Crowd {
    network: Arc<Network>,
    begun: Instant,
}

impl Crowd {
    /// With a device of a hundred members `m0` to `m99`.
    async fn new() -> Self {
        Self::under(Rates::default(), 1).await
    }

    async fn under(rates: Rates, seed: u64) -> Self {
        let engine = Engine::embedded(TABLES);
        let state: Map<_, _> = (0..100).map(|number| (format!("m{number}"), json!(-1))).collect();
        let create = Event::create().json(&json!({"state": state, "status": "online"}));
        World::on(&engine).send(&create).await.shows(201, 1);
        let network = network_that_breaks(&engine, rates, Broken::Nothing, Rng::with_seed(seed));
        network.hops(Duration::from_millis(5));
        engine.take_log();
        Crowd { network, begun: Instant::now() }
    }

    /// Sends these events at once to one process. Returns the statuses, the requests per event and the time of the last
    /// answer.
    async fn at_once(&self, events: impl Iterator<Item = Event>) -> (Vec<i64>, f64, Duration) {
        let (begun, process) = (Instant::now(), World::over(&self.network, self.begun));
        let statuses = join_all(events.map(async |event| process.send(&event).await.status)).await;
        let requests = u32::try_from(self.network.engine.take_log().len()).expect("few");
        let each = f64::from(requests) / f64::from(u32::try_from(statuses.len()).expect("few"));
        println!("{each:.2} requests each, last after {:?} (virtual)", begun.elapsed());
        (statuses, each, begun.elapsed())
    }
}

fn set_member(member: usize, value: usize) -> Event {
    Event::patch_state().json(&json!({format!("m{member}"): value}))
}

/// As many as adds: a read and a write each, and one more write for each window of 32 that passed.
#[tokio::test(start_paused = true)]
async fn a_hundred_callers_change_one_device_at_once_in_less_than_three_requests_each() {
    let status = |caller: usize| if caller.is_multiple_of(2) { "offline" } else { "online" };
    let events: [&dyn Fn(usize) -> Event; 4] = [
        &|caller| set_member(caller, caller),
        &|caller| set_member(0, caller),
        &|caller| Event::set_status().json(&json!({"status": status(caller)})),
        &|caller| Event::set_config().json(&json!({"of": caller})),
    ];
    for (number, event) in events.into_iter().enumerate() {
        let crowd = Crowd::new().await;
        let (mut statuses, each, longest) = crowd.at_once((0..100).map(event)).await;
        statuses.sort_unstable();
        // A config may change once in five minutes.
        let expected: Vec<i64> = if number == 3 { [&[200][..], &[409; 99]].concat() } else { vec![200; 100] };
        assert_eq!(statuses, expected, "{number}");
        assert!(each <= 2.8 && longest <= Duration::from_millis(150), "{number}: {each} {longest:?}");
        let device = World::on(&crowd.network.engine).send(&Event::get()).await.shown(200);
        assert!(number > 1 || device["version"] == 101, "{device}");
        assert!(number > 0 || (0..100).all(|caller| device["state"][format!("m{caller}")] == caller), "{device}");
    }
}

/// Each lost race is followed by a throttled look. Nothing is lost, so nothing may be told as unknown.
#[tokio::test(start_paused = true)]
async fn forty_new_members_at_once_on_a_table_that_throttles_are_each_there_or_told_as_not_applied() {
    for seed in 0..10 {
        let crowd = Crowd::under(Rates { throttled: 500, ..Rates::default() }, seed).await;
        let new = |caller: usize| Event::patch_state().json(&json!({format!("new{caller}"): caller}));
        let (statuses, ..) = crowd.at_once((0..40).map(new)).await;
        let device = World::on(&crowd.network.engine).send(&Event::get()).await.shown(200);
        for (caller, status) in statuses.into_iter().enumerate() {
            let is_there = device["state"][format!("new{caller}")] == caller;
            assert!(
                matches!((status, is_there), (200, true) | (503, false)),
                "seed {seed}: {caller} {status} {is_there}"
            );
        }
    }
}
