//! The recordings, and every story, played with its own settings and with others.

use console::files;
use console::stories::{Play, STORIES, Settings, Story, play};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// `FENCEPOST_RECORD_RACES=1` writes them, as `cargo run -p console` does.
#[test]
fn the_page_shows_what_a_fresh_play_shows() {
    for (path, fresh) in files() {
        if std::env::var_os("FENCEPOST_RECORD_RACES").is_some() {
            std::fs::write(&path, &fresh).expect("the file can be written");
        }
        let (recorded, name) = (std::fs::read_to_string(&path).unwrap_or_default(), path.display());
        let first = recorded.lines().zip(fresh.lines()).position(|(recorded, fresh)| recorded != fresh);
        assert_eq!(first, None, "{name} differs after this many lines: `cargo run -p console` makes it again");
        assert_eq!(recorded.len(), fresh.len(), "{name} is cut: `cargo run -p console` makes it again");
        assert!(fresh.len() < 1_500_000, "{name} is too large to be fetched by the way: {} bytes", fresh.len());
    }
}

fn find(name: &str) -> &'static Story {
    STORIES.iter().find(|story| story.name == name).expect("a story of this name")
}

/// The settings of the first play that is recorded.
fn own(name: &str) -> Settings {
    find(name).recorded().next().expect("a recorded play")
}

fn told(name: &str, settings: Settings) -> Play {
    play(find(name), settings)
}

/// How each side of a play ended, by its id.
fn ends(name: &str, play: &Play) -> BTreeMap<String, Value> {
    let about = find(name).to_json();
    let sides = about["sides"].as_array().expect("sides");
    let ids = sides.iter().map(|side| side["id"].as_str().expect("an id").to_owned());
    ids.zip(play.ends.iter().cloned()).collect()
}

fn counter(end: &Value, name: &str) -> i64 {
    end["counters"][name].as_i64().unwrap_or(0)
}

fn assert_fencepost_is_good(name: &str, play: &Play) -> BTreeMap<String, Value> {
    let ends = ends(name, play);
    for (side, end) in ends.iter().filter(|(side, _)| *side != "naive") {
        assert_eq!((&end["good"], counter(end, "appliedTwice")), (&json!(true), 0), "{name} {side}: {end}");
    }
    ends
}

#[test]
fn with_its_own_settings_each_story_shows_what_it_is_about() {
    let played = |name: &str| assert_fencepost_is_good(name, &told(name, own(name)));
    for name in ["one-answer", "five-users"] {
        let ends = played(name);
        assert!(counter(&ends["naive"], "appliedTwice") > 0 && ends["naive"]["good"] == false, "{name} {ends:?}");
        assert_eq!(counter(&ends["fencepost"], "held"), counter(&ends["fencepost"], "acknowledged"));
    }
    let ends = played("last-item");
    let of = |side: &str| ["held", "stock", "refused", "acknowledged"].map(|name| counter(&ends[side], name));
    assert_eq!((of("fencepost"), of("naive")), ([1, 0, 3, 1], [0, 0, 4, 0]), "sold once; gone, and nobody has it");
    let ends = played("flash-sale");
    let of = |side: &str| ["held", "stock", "gone"].map(|name| counter(&ends[side], name));
    assert_eq!((of("fencepost"), counter(&ends["fencepost"], "unknown")), ([300, 0, 0], 0), "each item was sold once");
    assert!(of("naive")[2] > 0 && ends["naive"]["good"] == false, "{ends:?}");
    let ends = played("late-delete");
    let of = |side: &str| ["held", "superseded", "removed"].map(|name| counter(&ends[side], name));
    assert_eq!((of("fencepost"), of("naive")), ([1, 1, 0], [0, 0, 1]));
    let ends = played("two-leaders");
    let of = |side: &str| counter(&ends[side], "held");
    assert_eq!((of("fencepost"), of("naive"), counter(&ends["fencepost"], "fenced") > 0), (1, 2, true), "{ends:?}");
    let ends = played("one-hundred");
    assert_eq!((counter(&ends["adds"], "held"), counter(&ends["fencepost"], "held")), (100, 100));
    assert!(counter(&ends["adds"], "requests") < counter(&ends["fencepost"], "requests"));
}

/// The usual way goes wrong only where something is in its way.
#[test]
fn the_usual_way_is_right_where_nothing_goes_wrong() {
    for name in ["one-answer", "five-users", "last-item", "two-leaders"] {
        let settings = Settings { lost_answers: 0, loses_first: false, delay: 0, ..own(name) };
        let ends = assert_fencepost_is_good(name, &told(name, settings));
        assert_eq!(ends["naive"]["good"], true, "{name}: {}", ends["naive"]);
    }
}

#[test]
fn fencepost_ends_well_with_other_settings() {
    for story in STORIES {
        for (seed, delay, late_by) in [(2, 0, 2000), (3, 60_000, 500)] {
            let writers = story.settings(seed).writers.min(30);
            let settings = Settings { lost_answers: 50, late_by, writers, delay, ..story.settings(seed) };
            assert_fencepost_is_good(story.name, &play(story, settings));
        }
    }
}
