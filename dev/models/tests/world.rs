//! Plays the machine in random worlds, where each act of callers, table, network and time may come next.
//! `FENCEPOST_SEED=7` plays one seed again.

use models::promises::EXAMPLES;
use models::random;

#[test]
fn whatever_comes_in_whatever_order_each_promise_holds_and_each_call_ends() {
    let met = random::play(0..20_000);
    let wanted = EXAMPLES.iter().filter(|(_, models, _)| models.contains(&"one-item"));
    let missing: Vec<_> = wanted.map(|(name, ..)| *name).filter(|name| !met.contains(name)).collect();
    assert!(missing.is_empty() || std::env::var("FENCEPOST_SEED").is_ok(), "never met: {missing:?}");
}

/// So rare among the random ways that these do not miss it when it is broken.
#[test]
fn in_no_order_of_a_few_events_another_row_proves_anything_about_a_create_whose_value_may_have_ended() {
    let scenes = models::scenes::scenes(false);
    let ending = scenes.iter().find(|named| named.name == "values-end").expect("a scene of one item");
    let violated = ending.scene.play(1).violated;
    assert!(violated.is_none(), "{violated:?}");
}
