//! Each small state space is visited as a whole, and holds. Each rule that is removed breaks the promise that it keeps.

use models::scenes::{MODELS, Named, check, removals, scenes};
use std::collections::BTreeSet;

#[test]
fn every_small_scene_holds_and_every_rule_that_is_removed_breaks_the_promise_that_it_keeps() {
    let wrong = check(false, 2, None, |_| {}).wrong;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rules_and_scenes_have_names_of_their_own() {
    let mut names = BTreeSet::new();
    for Named { name, model, .. } in removals().iter().map(|removal| &removal.named) {
        assert!(names.insert(*name), "{name} names two rules");
        assert!(MODELS.contains(model), "{model} is no model");
    }
    for is_deep in [false, true] {
        let scenes = scenes(is_deep);
        let names: BTreeSet<_> = scenes.iter().map(|named| (named.model, named.name)).collect();
        assert_eq!(names.len(), scenes.len(), "two scenes of one name");
        assert_eq!(names.iter().map(|(model, _)| model).collect::<BTreeSet<_>>().len(), MODELS.len());
    }
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
