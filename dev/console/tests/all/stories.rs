//! Every story, played with its own settings and with others.

use console::stories::{STORIES, Story, Told, find, play};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// All events of a play.
fn told(name: &str, body: &Value) -> Vec<Told> {
    let story: &'static Story = find(name).expect("a story of this name");
    let settings = story.parse(body.to_string().as_bytes()).expect("settings that it has");
    let mut telling = play(story, settings, |_| ()).expect("a thread");
    let mut told = Vec::new();
    while let Some(part) = telling.blocking_recv() {
        told.push(part);
    }
    told
}

/// How each side of a play ended, by its id.
fn ends(told: &[Told]) -> BTreeMap<String, Value> {
    let (Some(Told::Begin(begin)), Some(Told::End(end))) = (told.first(), told.last()) else {
        panic!("the play has not ended: {:?}", told.last())
    };
    let ids = begin["sides"].as_array().expect("sides").iter().map(|side| side["id"].as_str().expect("an id"));
    let ends = end["sides"].as_array().expect("an end of each side");
    ids.map(str::to_owned).zip(ends.iter().cloned()).collect()
}

fn counter(end: &Value, name: &str) -> i64 {
    end["counters"][name].as_i64().unwrap_or(0)
}

fn moments(told: &[Told]) -> impl Iterator<Item = &Value> {
    told.iter().filter_map(|part| if let Told::Moment(moment) = part { Some(moment) } else { None })
}

fn assert_fencepost_is_good(name: &str, body: &Value) -> BTreeMap<String, Value> {
    let ends = ends(&told(name, body));
    for (side, end) in ends.iter().filter(|(side, _)| *side != "naive") {
        assert_eq!((&end["good"], counter(end, "appliedTwice")), (&json!(true), 0), "{name} {body} {side}: {end}");
    }
    ends
}

#[test]
fn with_its_own_settings_each_story_shows_what_it_is_about() {
    let played = |name: &str| assert_fencepost_is_good(name, &json!({}));
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
    for (name, body) in [
        ("five-users", json!({ "lostAnswers": 0 })),
        ("last-item", json!({ "lostAnswers": 0 })),
        ("two-leaders", json!({ "delay": 0 })),
    ] {
        let ends = assert_fencepost_is_good(name, &body);
        assert_eq!(ends["naive"]["good"], true, "{name} {body}: {}", ends["naive"]);
    }
}

#[test]
fn fencepost_ends_well_with_other_settings() {
    for seed in 2..=3 {
        for (name, body) in [
            ("five-users", json!({ "seed": seed, "writers": 20, "changes": 2, "lostAnswers": 50, "lateBy": 2000 })),
            ("lost-answers", json!({ "seed": seed, "lateBy": 500 })),
            ("last-item", json!({ "seed": seed, "writers": 20, "lostAnswers": 50, "lateBy": 1000 })),
            ("late-delete", json!({ "seed": seed, "delay": 0, "lostAnswers": 50 })),
            ("late-delete", json!({ "seed": seed, "delay": 60_000, "lostAnswers": 50 })),
            ("two-leaders", json!({ "seed": seed, "delay": 0, "lostAnswers": 50 })),
            ("two-leaders", json!({ "seed": seed, "delay": 60_000, "lostAnswers": 50 })),
            ("one-hundred", json!({ "seed": seed, "writers": 30, "lostAnswers": 30, "lateBy": 300 })),
        ] {
            assert_fencepost_is_good(name, &body);
        }
    }
}

#[test]
fn one_seed_always_gives_the_same_play_and_another_seed_another() {
    for story in STORIES {
        let name = story.name;
        let body = |seed: u64| match name {
            "one-hundred" => json!({ "seed": seed, "writers": 10 }),
            _ => json!({ "seed": seed }),
        };
        let first = told(name, &body(7));
        let other = std::thread::spawn({
            let body = body(8);
            move || told(name, &body)
        });
        let again = told(name, &body(7));
        for (first, again) in first.iter().zip(&again) {
            assert_eq!(first, again, "{name}");
        }
        assert_eq!(first.len(), again.len(), "{name}");
        assert_ne!(first, other.join().expect("no panic"), "{name}");
    }
}

#[test]
fn the_counters_count_what_the_moments_tell() {
    for name in ["lost-answers", "last-item", "late-delete", "two-leaders"] {
        let told = told(name, &json!({ "seed": 3, "lostAnswers": 30 }));
        for (side, end) in ends(&told).values().enumerate() {
            // The sides of these stories are told in the order of their ids, the other way round.
            let side = 1 - side;
            let count = |kind: &str, member: &str, value: Value| {
                let of_side = moments(&told).filter(|moment| moment["side"] == side && moment["kind"] == kind);
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
    let told = told("five-users", &json!({ "changes": 20, "lostAnswers": 50 }));
    let (mut call_of, mut call_of_request, mut effects) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for moment in moments(&told).filter(|moment| moment["side"] == 0) {
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
    let end = &ends(&told)["naive"];
    assert_eq!(counter(end, "appliedTwice"), i64::try_from(twice).expect("few"), "{end}");
    assert_eq!(counter(end, "held"), i64::try_from(effects.len()).expect("few") + surplus);
    assert!(twice > 0 && surplus > counter(end, "appliedTwice"), "one change was applied three times: {effects:?}");
}

#[test]
fn moments_come_in_order_and_each_answer_belongs_to_a_request() {
    let told = told("lost-answers", &json!({}));
    let times: Vec<_> = moments(&told).map(|moment| moment["at"].as_f64().expect("a time")).collect();
    assert!(times.is_sorted() && times.len() > 100, "{times:?}");
    let mut sent = BTreeMap::new();
    for moment in moments(&told) {
        let key = (moment["side"].as_u64(), moment["request"].as_u64());
        match moment["kind"].as_str().expect("a kind") {
            "sent" => assert_eq!(sent.insert(key, moment["client"].clone()), None, "{moment}"),
            "arrived" | "heard" => assert_eq!(sent.get(&key), Some(&moment["client"]), "{moment}"),
            _ => {}
        }
    }
    let found_out = "the row remembers this write: it was applied and made version ";
    let mut judged = moments(&told).filter(|moment| moment["kind"] == "judged" && moment["client"].is_u64());
    assert!(judged.any(|moment| moment["text"].as_str().is_some_and(|text| text.starts_with(found_out))));
    let own = "refused by its own first send, which was applied";
    let refused_by_own = moments(&told).filter(|moment| moment["kind"] == "heard" && moment["text"] == own).count();
    assert!(refused_by_own > 0);
}
