//! The recordings, and every story, played with its own settings and with others.

use console::stories::{Play, STORIES, Settings, Story, play};
use console::{file, recordings};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// `FENCEPOST_RECORD_RACES=1` writes them, as `cargo run -p console` does.
#[test]
fn the_page_shows_what_a_fresh_play_shows() {
    let fresh = recordings();
    if std::env::var_os("FENCEPOST_RECORD_RACES").is_some() {
        std::fs::write(file(), &fresh).expect("the file can be written");
    }
    let recorded = std::fs::read_to_string(file()).expect("docs/races/plays.js");
    let first = recorded.lines().zip(fresh.lines()).position(|(recorded, fresh)| recorded != fresh);
    assert_eq!(first, None, "docs/races/plays.js differs after this many lines: `cargo run -p console` records again");
    assert_eq!(recorded.len(), fresh.len(), "docs/races/plays.js is cut: `cargo run -p console` records again");
    assert!(fresh.len() < 1_500_000, "the page is too large to be fetched by the way: {} bytes", fresh.len());
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
    for name in ["five-users", "lost-answers"] {
        let ends = played(name);
        assert!(counter(&ends["naive"], "appliedTwice") > 0 && ends["naive"]["good"] == false, "{name} {ends:?}");
        assert_eq!(counter(&ends["fencepost"], "held"), counter(&ends["fencepost"], "acknowledged"));
    }
    let ends = played("last-item");
    let of = |side: &str| ["held", "stock", "refused", "acknowledged"].map(|name| counter(&ends[side], name));
    assert_eq!((of("fencepost"), of("naive")), ([1, 0, 3, 1], [0, 0, 4, 0]), "sold once; gone, and nobody has it");
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
    for name in ["five-users", "last-item", "two-leaders"] {
        let settings = Settings { lost_answers: 0, delay: 0, ..own(name) };
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

#[test]
fn the_counters_count_what_the_moments_tell() {
    for name in ["lost-answers", "last-item", "late-delete", "two-leaders"] {
        let told = told(name, Settings { seed: 3, lost_answers: 30, ..own(name) });
        for (side, end) in ends(name, &told).values().enumerate() {
            // The sides of these stories are told in the order of their ids, the other way round.
            let side = 1 - side;
            let count = |kind: &str, member: &str, value: Value| {
                let of_side = told.moments.iter().filter(|moment| moment["side"] == side && moment["kind"] == kind);
                i64::try_from(of_side.filter(|moment| moment[member] == value).count()).expect("few")
            };
            let told = [
                ("requests", count("sent", "side", json!(side))),
                ("resends", count("sent", "resend", json!(true))),
                ("conflicts", count("arrived", "outcome", json!("conflict"))),
                ("lostAnswers", count("heard", "outcome", json!("lost"))),
            ];
            for (name_of_counter, told) in told {
                assert_eq!(counter(end, name_of_counter), told, "{name} {side} {name_of_counter}");
            }
        }
    }
}

/// Each call's effects are counted again, from the arrivals told as done.
#[test]
fn a_call_counts_as_applied_twice_once() {
    let told = told("five-users", Settings { changes: 20, lost_answers: 50, ..own("five-users") });
    let (mut call_of, mut call_of_request, mut effects) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for moment in told.moments.iter().filter(|moment| moment["side"] == 0) {
        let (client, request) = (moment["client"].to_string(), moment["request"].to_string());
        match moment["kind"].as_str().expect("a kind") {
            "asked" => drop(call_of.insert(client, moment["call"].to_string())),
            "sent" if moment["is"] == "write" => drop(call_of_request.insert(request, call_of[&client].clone())),
            "arrived" if moment["outcome"] == "done" => {
                if let Some(call) = call_of_request.get(&request) {
                    *effects.entry(call.clone()).or_insert(0) += 1;
                }
            }
            _ => {}
        }
    }
    let twice = effects.values().filter(|effects| **effects > 1).count();
    let surplus: i64 = effects.values().map(|effects| effects - 1).sum();
    let end = &ends("five-users", &told)["naive"];
    assert_eq!(counter(end, "appliedTwice"), i64::try_from(twice).expect("few"), "{end}");
    assert_eq!(counter(end, "held"), i64::try_from(effects.len()).expect("few") + surplus);
    assert!(twice > 0 && surplus > counter(end, "appliedTwice"), "one change was applied three times: {effects:?}");
}

#[test]
fn moments_come_in_order_and_each_answer_belongs_to_a_request() {
    let told = told("lost-answers", own("lost-answers"));
    let times: Vec<_> = told.moments.iter().map(|moment| moment["at"].as_u64().expect("a time")).collect();
    assert!(times.is_sorted() && times.len() > 100, "{times:?}");
    let mut sent = BTreeMap::new();
    for moment in &told.moments {
        let key = (moment["side"].as_u64(), moment["request"].as_u64());
        match moment["kind"].as_str().expect("a kind") {
            "sent" => assert_eq!(sent.insert(key, moment["client"].clone()), None, "{moment}"),
            "arrived" | "heard" => assert_eq!(sent.get(&key), Some(&moment["client"]), "{moment}"),
            _ => {}
        }
    }
    let found_out = "the row remembers this write: it was applied and made version ";
    let mut judged = told.moments.iter().filter(|moment| moment["kind"] == "judged" && moment["client"].is_u64());
    assert!(judged.any(|moment| moment["text"].as_str().is_some_and(|text| text.starts_with(found_out))));
    let own = "refused by its own first send, which was applied";
    let refused_by_own =
        told.moments.iter().filter(|moment| moment["kind"] == "heard" && moment["text"] == own).count();
    assert!(refused_by_own > 0);
}
