//! The example `leader` of the crate in several processes: its leader is stopped, killed, frozen and blocked. The next one leads, and
//! nothing is written under the old token after that.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use fencepost_test::Engine;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// Only ends a run that hangs.
const PATIENCE: Duration = Duration::from_secs(90);

/// Answers as `DynamoDB` does over HTTP.
async fn answer(State(engine): State<Engine>, headers: HeaderMap, body: Bytes) -> (StatusCode, String) {
    let target = headers["x-amz-target"].to_str().expect("text").to_owned();
    let operation = target.rsplit('.').next().expect("an operation").to_owned();
    let (status, text) = engine.answer(&operation, &body);
    (StatusCode::from_u16(status).expect("a status"), text)
}

struct Leader {
    process: Child,
    says: Lines<BufReader<ChildStdout>>,
}

impl Leader {
    fn start(address: &str, name: &str, blocked_by: &str) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_leader"))
            .envs([("AWS_ENDPOINT_URL_DYNAMODB", address), ("NAME", name), ("BLOCKED_BY", blocked_by)])
            .envs(["LEASES_TABLE", "CHILDREN_TABLE"].map(|name| (name, name)))
            .envs(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"].map(|name| (name, "local")))
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("a process");
        let says = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        Leader { process, says }
    }

    /// Waits until it says a line with this start. Returns the rest.
    async fn says(&mut self, start: &str) -> String {
        let wait = async {
            loop {
                let line = self.says.next_line().await.expect("text").expect("it runs");
                if let Some(rest) = line.strip_prefix(start) {
                    return rest.to_owned();
                }
            }
        };
        timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("nobody says {start:?}"))
    }

    async fn leads(&mut self) -> u64 {
        self.says("leads ").await.parse().expect("a token")
    }

    async fn signal(&self, name: &str) {
        let id = self.process.id().expect("it runs").to_string();
        assert!(Command::new("kill").args([name, &id]).status().await.expect("kill").success());
    }
}

#[tokio::test]
async fn the_next_one_leads_and_nothing_is_written_under_the_old_token() {
    let engine = Engine::embedded(&[("LEASES_TABLE", "leaseKey"), ("CHILDREN_TABLE", "childId")]);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    let server = Router::new().fallback(answer).with_state(engine.clone());
    tokio::spawn(async move { axum::serve(listener, server).await });
    let block = std::env::temp_dir().join(format!("fencepost-{}", std::process::id()));
    for way in ["-TERM", "-KILL", "-STOP", "block"] {
        let mut first = Leader::start(&address, "ann", &block.to_string_lossy());
        let old = first.leads().await;
        let mut second = Leader::start(&address, "bob", "");
        let began = Instant::now();
        if way == "block" {
            std::fs::write(&block, "").expect("a file");
        } else {
            first.signal(way).await;
        }
        let new = second.leads().await;
        println!("{way}: the next one leads after {:?}", began.elapsed());
        assert!(new > old, "{new} after {old}");
        // It has written, so the old token is refused from now on.
        let has = |token: u64| {
            let row = engine.row("CHILDREN_TABLE", "childId", "example-leader");
            let tokens = row["tokens"]["L"].as_array().cloned().unwrap_or_default();
            let tokens: Vec<u64> =
                tokens.iter().map(|one| one["N"].as_str().expect("a number").parse().expect("a token")).collect();
            assert!(tokens.is_sorted(), "written under an old token: {tokens:?}");
            tokens.contains(&token)
        };
        let written = async {
            while !has(new) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(PATIENCE, written).await.expect("the next one writes");
        match way {
            "-TERM" => assert!(first.process.wait().await.expect("an end").success()),
            "-KILL" => assert!(!first.process.wait().await.expect("an end").success()),
            _ => {
                if way == "-STOP" {
                    first.signal("-CONT").await;
                }
                first.says("follows").await;
                std::fs::remove_file(&block).unwrap_or_default();
            }
        }
        assert!(has(new));
        first.process.kill().await.unwrap_or_default();
        second.signal("-TERM").await;
        second.process.wait().await.expect("an end");
        assert!(has(new));
    }
}
