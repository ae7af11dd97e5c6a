//! A console on a port of its own, with tables in the embedded engine.

use axum::middleware::from_fn;
use console::{About, Console, Requests, Tables, WatchedTable, guard};
use fencepost_test::Engine;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

pub const TABLE: &str = "Devices";

pub struct World {
    pub engine: Engine,
    pub requests: Arc<Requests>,
    address: SocketAddr,
}

/// An answer whose body may still be on its way.
pub struct Answer {
    pub status: u16,
    pub head: String,
    body: BufReader<TcpStream>,
}

impl World {
    pub async fn new() -> Self {
        let engine = Engine::embedded(&[(TABLE, "deviceId")]);
        let key = vec!["deviceId".to_owned()];
        let watched = WatchedTable { name: TABLE.to_owned(), key, writers: vec!["device-state".to_owned()] };
        let tables = Tables::new(engine.client(), vec![watched], Duration::from_millis(5));
        tokio::spawn(tables.clone().look());
        let about = About {
            functions_url: "http://127.0.0.1:9000".to_owned(),
            dynamodb: "DynamoDB in memory".to_owned(),
            endpoint: "http://127.0.0.1:8000".to_owned(),
        };
        let requests = Arc::new(Requests::default());
        let console = Console::new(about, tables, requests.clone()).expect("random numbers");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let routes = console.router().layer(from_fn(guard));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        World { engine, requests, address }
    }

    /// Sends a request with these headers, each with its end of line.
    pub async fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
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

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "").await
    }

    /// The token that the page carries.
    pub async fn token(&self) -> String {
        let page = self.get("/").await.text().await;
        let (_, rest) = page.split_once("name=\"console-token\" content=\"").expect("the page has a token");
        rest.split_once('"').expect("its end").0.to_owned()
    }

    /// Begins to play a story.
    pub async fn play(&self, story: &str, body: &str) -> Answer {
        let token = self.token().await;
        self.send("POST", &format!("/console/stories/{story}"), &format!("x-console-token: {token}\r\n"), body).await
    }

    /// How many stories play, and how many were stopped so far.
    pub async fn plays(&self) -> (u64, u64) {
        let about = self.get("/console/about").await.json().await;
        (about["playing"].as_u64().expect("a number"), about["stopped"].as_u64().expect("a number"))
    }
}

impl Answer {
    pub async fn text(mut self) -> String {
        let mut text = Vec::new();
        self.body.read_to_end(&mut text).await.expect("a body");
        String::from_utf8(text).expect("UTF-8")
    }

    pub async fn json(self) -> Value {
        let text = self.text().await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The next event of a stream, by its name and its data. `None` at its end.
    pub async fn event(&mut self) -> Option<(String, Value)> {
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
