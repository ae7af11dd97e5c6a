//! The answers of the console, and its visitors.

use axum::middleware::from_fn;
use console::{Console, guard};
use futures_util::future::join_all;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A console on a port of its own.
struct World {
    address: SocketAddr,
    console: Arc<Console>,
}

/// An answer with a body perhaps still on its way.
struct Answer {
    status: u16,
    head: String,
    body: BufReader<TcpStream>,
}

impl World {
    async fn new() -> Self {
        let console = Console::new().expect("random numbers");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let routes = console.router().layer(from_fn(guard));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        World { address, console }
    }

    /// Sends a request with these headers, each with its end of line.
    async fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.expect("it listens");
        let host = if headers.contains("host: ") { String::new() } else { format!("host: {}\r\n", self.address) };
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{host}{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.expect("it is sent");
        let (mut body, mut head) = (BufReader::new(stream), String::new());
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(body.read_line(&mut head).await.expect("an answer"), 0, "{head}");
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Answer { status, head: head.to_ascii_lowercase(), body }
    }

    async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "").await
    }

    /// The token on the page.
    async fn token(&self) -> String {
        let page = self.get("/").await.text().await;
        let (_, rest) = page.split_once("name=\"console-token\" content=\"").expect("the page has a token");
        rest.split_once('"').expect("its end").0.to_owned()
    }

    /// Begins to play a story.
    async fn play(&self, story: &str, body: &str) -> Answer {
        let token = self.token().await;
        self.send("POST", &format!("/console/stories/{story}"), &format!("x-console-token: {token}\r\n"), body).await
    }
}

impl Answer {
    async fn text(mut self) -> String {
        let mut text = Vec::new();
        self.body.read_to_end(&mut text).await.expect("a body");
        String::from_utf8(text).expect("UTF-8")
    }

    async fn json(self) -> Value {
        let text = self.text().await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The next event of a stream, by its name and its data. `None` at its end.
    async fn event(&mut self) -> Option<(String, Value)> {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            if self.body.read_line(&mut line).await.expect("a stream") == 0 {
                return None;
            }
            // The body is chunked: other lines are lengths of chunks, and comments that keep it alive.
            if let Some(named) = line.strip_prefix("event: ") {
                named.trim_end().clone_into(&mut name);
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((name, serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}"))));
            }
        }
    }
}

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
    assert_eq!(world.console.plays(), (0, 0));
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

/// All events of a play: their names, with the data of the last.
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
    assert_eq!(world.console.plays(), (1, 0));
    drop(answer);
    while world.console.plays().0 > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.console.plays(), (0, 1), "it has not played to its end");
}
