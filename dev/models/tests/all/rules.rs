//! Each small state space is visited as a whole, and holds. Each rule that is removed breaks the promise that it keeps.

use models::run::Removal;
use models::scenes::{MODELS, removals, scenes};
use std::collections::BTreeSet;

#[test]
fn every_small_scene_holds_in_each_of_its_states_and_shows_what_it_is_for() {
    let (mut seen, mut wanted) = (BTreeSet::new(), BTreeSet::new());
    for scene in scenes(false) {
        let played = scene.play(2);
        let name = format!("{} {}", scene.model, scene.name);
        if let Some((property, story)) = played.violated {
            panic!("{name} violates \"{property}\":\n{story}");
        }
        assert!(played.unique > 100 && played.depth > 8, "{name} has {} states only", played.unique);
        seen.extend(played.examples.into_iter().map(|example| (scene.model, example)));
        wanted.extend(played.wanted.into_iter().map(|example| (scene.model, example)));
    }
    assert_eq!(seen, wanted, "an example that no state of the model shows");
}

#[test]
fn every_rule_that_is_removed_breaks_the_promise_that_it_keeps() {
    for Removal { scene, rule, keeps } in removals() {
        let name = format!("{} without \"{rule}\" ({})", scene.model, scene.name);
        let played = scene.play(1);
        let (property, story) = played.violated.unwrap_or_else(|| panic!("{name} violates nothing"));
        assert_eq!(property, keeps, "{name}:\n{story}");
        assert!((2..=14).contains(&story.lines().count()), "{name} is no short story:\n{story}");
    }
}

#[test]
fn rules_and_scenes_have_names_of_their_own() {
    let mut names = BTreeSet::new();
    for Removal { scene, .. } in removals() {
        assert!(names.insert(scene.name), "{} names two rules", scene.name);
        assert!(MODELS.contains(&scene.model), "{} is no model", scene.model);
    }
    for is_deep in [false, true] {
        let scenes = scenes(is_deep);
        let names: BTreeSet<_> = scenes.iter().map(|scene| (scene.model, scene.name)).collect();
        assert_eq!(names.len(), scenes.len(), "two scenes of one name");
        assert_eq!(names.iter().map(|(model, _)| model).collect::<BTreeSet<_>>().len(), MODELS.len());
    }
}

#[test]
fn a_story_is_told_in_numbered_sentences() {
    let removals = removals();
    let ends = removals.iter().find(|removal| removal.scene.name == "window-ends").expect("a rule of one item");
    let (_, story) = ends.scene.play(1).violated.expect("it breaks a promise");
    assert!(story.starts_with("1. A's add looks: "), "{story}");
    assert!(story.contains("The answer is lost."), "{story}");
    assert!(story.trim_end().ends_with("It is applied a second time!"), "{story}");
}
