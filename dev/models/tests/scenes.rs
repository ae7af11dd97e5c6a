//! Each small state space is visited as a whole, and holds. Each rule that is removed breaks the promise that it keeps.

use models::scenes::{check, removals};

#[test]
fn every_small_scene_holds_and_every_rule_that_is_removed_breaks_the_promise_that_it_keeps() {
    let wrong = check(false, 2, None, |_| {}).wrong;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_story_is_told_in_numbered_sentences() {
    let removals = removals();
    let ends = removals.iter().find(|removal| removal.named.name == "window-ends").expect("a rule of one item");
    let (_, story) = ends.named.scene.play(1).violated.expect("it breaks a promise");
    assert!(story.starts_with("1. A's Add(-1) begins: "), "{story}");
    assert!(story.contains("The answer is lost."), "{story}");
    assert!(story.contains("It is applied a second time!"), "{story}");
}
