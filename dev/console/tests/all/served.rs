//! What the console serves, and whom.

use super::world::World;
use futures_util::future::join_all;
use serde_json::Value;

#[tokio::test]
async fn the_page_and_its_files_load_from_nowhere_else() {
    let world = World::new().await;
    let page = world.get("/").await;
    assert_eq!(page.status, 200);
    assert!(page.head.contains("content-security-policy: default-src 'self'; frame-ancestors 'none'"), "{}", page.head);
    let page = page.text().await;
    assert!(!page.contains("{{token}}"));
    let mut files: Vec<_> = page.split('"').filter_map(|part| part.strip_prefix("/console/")).collect();
    files.retain(|file| file.contains('.'));
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        let answer = world.get(&format!("/console/{file}")).await;
        assert_eq!(answer.status, 200, "{file}");
        assert!(answer.head.contains("x-content-type-options: nosniff"), "{}", answer.head);
    }
    assert_eq!(world.get("/console/other.js").await.status, 404);
}

#[tokio::test]
async fn a_story_begins_only_with_the_token_of_the_page() {
    let world = World::new().await;
    for header in ["", "x-console-token: 00000000000000000000000000000000\r\n"] {
        let answer = world.send("POST", "/console/stories/two-leaders", header, "").await;
        assert_eq!((answer.status, answer.json().await["code"].as_str()), (403, Some("token_required")));
    }
    assert_eq!(world.get("/console/stories/two-leaders").await.status, 405, "a GET begins nothing");
    assert_eq!(world.plays().await, (0, 0));
}

#[tokio::test]
async fn another_site_is_kept_away() {
    let world = World::new().await;
    let token = format!("x-console-token: {}\r\n", world.token().await);
    let elsewhere = format!("{token}origin: http://evil.example\r\n");
    let answer = world.send("POST", "/console/stories/two-leaders", &elsewhere, "").await;
    assert_eq!((answer.status, answer.json().await["field"].as_str()), (403, Some("header:origin")));
    let renamed = world.send("GET", "/", "host: evil.example\r\n", "").await;
    assert_eq!((renamed.status, renamed.json().await["field"].as_str()), (403, Some("header:host")));
}

#[tokio::test]
async fn what_cannot_be_played_is_named() {
    let world = World::new().await;
    for (story, body, status, field) in [
        ("none", "", 404, "path:name"),
        ("five-users", r#"{"writers": 21}"#, 400, "/writers"),
        ("five-users", r#"{"seed": "x"}"#, 400, "/seed"),
        ("late-delete", r#"{"writers": 2}"#, 400, "/writers"),
        ("five-users", "[]", 400, ""),
    ] {
        let answer = world.play(story, body).await;
        assert!(answer.head.contains("application/problem+json"), "{}", answer.head);
        assert_eq!((answer.status, answer.json().await["field"].as_str()), (status, Some(field)), "{story} {body}");
    }
    let long = format!("{{\"seed\": 1{}}}", " ".repeat(20_000));
    assert_eq!(world.play("five-users", &long).await.status, 413);
}

/// All events of a play: their names, and the data of the last.
async fn events(world: &World, story: &str, body: &str) -> (Vec<String>, Value) {
    let mut answer = world.play(story, body).await;
    assert_eq!(answer.status, 200);
    let (mut names, mut last) = (Vec::new(), Value::Null);
    while let Some((name, data)) = answer.event().await {
        names.push(name);
        last = data;
    }
    (names, last)
}

#[tokio::test]
async fn a_play_begins_tells_moments_and_ends() {
    let world = World::new().await;
    let (names, end) = events(&world, "two-leaders", "").await;
    assert_eq!((names.first().map(String::as_str), names.last().map(String::as_str)), (Some("begin"), Some("end")));
    assert!(names[1..names.len() - 1].iter().all(|name| name == "moments") && names.len() > 2, "{names:?}");
    assert_eq!(end["sides"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn ten_plays_at_once_all_end() {
    let world = World::new().await;
    let plays = join_all((0..10).map(|_| events(&world, "last-item", ""))).await;
    let ends: Vec<_> = plays.into_iter().map(|(names, end)| (names.last().cloned(), end)).collect();
    assert!(ends.iter().all(|end| *end == ends[0] && end.0.as_deref() == Some("end")), "{ends:?}");
}

#[tokio::test]
async fn who_goes_away_stops_the_play() {
    let world = World::new().await;
    let long = r#"{"writers": 20, "changes": 20, "lostAnswers": 50}"#;
    let mut answer = world.play("five-users", long).await;
    assert_eq!(answer.event().await.map(|(name, _)| name).as_deref(), Some("begin"));
    assert_eq!(world.plays().await, (1, 0));
    drop(answer);
    while world.plays().await.0 > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.plays().await, (0, 1), "it has not played to its end");
}
