//! An axum handler that changes an item exactly once, and answers with an RFC 9457 problem if it cannot.
//!
//! It needs a `DynamoDB` that has a table `Devices`, such as that of `cargo dev --dynamodb-only`:
//!
//! ```sh
//! export AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8000 AWS_REGION=us-east-1
//! export AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local
//! cargo run -p fencepost --example axum --features http
//! curl -i -X PUT  http://127.0.0.1:3000/visits/lobby
//! curl -i -X POST http://127.0.0.1:3000/visits/lobby
//! curl -i -X POST http://127.0.0.1:3000/visits/nowhere    # 404 application/problem+json
//! ```

use aws_config::BehaviorVersion;
use axum::Router;
use axum::extract::{Path, State};
use axum::routing::put;
use fencepost::http::{Id, Items, Problem, Resource, Response};
use fencepost::{Call, CreateError, Deadline, Decision, ItemVersion, Key, Record, Source, Store, Table, UpdateError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// How often a room was visited.
#[derive(Clone, Serialize, Deserialize)]
struct Visits {
    count: u64,
}

impl Record for Visits {
    const PARTITION_KEY: &'static str = "deviceId";
    const ATTRIBUTES: &'static [&'static str] = &["count"];
}

impl Resource for Visits {
    const NOT_FOUND: (&'static str, &'static str) = ("room_not_found", "there is no room with this name");
    const EXISTS: (&'static str, &'static str) = ("room_exists", "there is a room with this name");

    fn location(&self, id: &str) -> String {
        format!("/visits/{id}")
    }

    fn to_json(&self, id: &str, at: ItemVersion) -> Value {
        json!({ "room": id, "count": self.count, "version": at.version.get() })
    }
}

/// What axum sends. Responses and problems both convert to it.
type Answer = http::Response<String>;

async fn open(State(visits): State<Table<Visits>>, Path(room): Path<String>) -> Answer {
    answer(async {
        let room = Id::parse(&room, "path:room")?;
        match visits.create(&Key::from(room.as_str()), &Visits { count: 0 }, &call()).await {
            Ok(created) => Ok(Items::created(room.as_str(), &created)),
            Err(CreateError::Exists(_)) => {
                let (code, detail) = Visits::EXISTS;
                Err(Problem::refused(code, detail))
            }
            Err(CreateError::Failed(failure)) => Err(failure.into()),
        }
    })
    .await
}

async fn visit(State(visits): State<Table<Visits>>, Path(room): Path<String>) -> Answer {
    answer(async {
        let room = Id::parse(&room, "path:room")?;
        // Pure: after a conflict it runs again on the other caller's result.
        let decide = |visits: &Visits| Decision::<_, Problem>::Put(Visits { count: visits.count + 1 });
        match visits.update_with_retry(&Key::from(room.as_str()), &call(), decide).await {
            Ok(visited) => Ok(Items::ok(room.as_str(), &visited)),
            Err(UpdateError::NotFound) => Err(Visits::not_found()),
            Err(UpdateError::Refused(problem)) => Err(problem),
            Err(UpdateError::Failed(failure)) => Err(failure.into()),
        }
    })
    .await
}

async fn answer(response: impl Future<Output = Result<Response, Problem>>) -> Answer {
    response.await.map_or_else(Answer::from, Answer::from)
}

fn call() -> Call {
    Call::new(Deadline::within(Duration::from_secs(5)))
}

fn router(visits: Table<Visits>) -> Router {
    Router::new().route("/visits/{room}", put(open).post(visit)).with_state(visits)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    let client = aws_sdk_dynamodb::Client::new(&aws_config::load_defaults(BehaviorVersion::latest()).await);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    Ok(axum::serve(listener, router(Store::new(&client).table("Devices"))).await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_dynamodb::config::{Credentials, Region};
    use dynoxide::Database;
    use serde_json::from_str;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    /// The router on an engine of its own: where it listens.
    async fn served() -> String {
        let engine = Database::memory().expect("an engine in memory");
        let table = json!({
            "TableName": "Devices",
            "KeySchema": [{"AttributeName": "deviceId", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "deviceId", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        });
        engine.create_table(from_str(&table.to_string()).expect("a table")).expect("created");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let endpoint = format!("http://{}", listener.local_addr().expect("bound"));
        tokio::spawn(dynoxide::server::serve_on(listener, engine));
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("local", "local", None, None, "example"))
            .endpoint_url(endpoint);
        let visits = Store::new(&aws_sdk_dynamodb::Client::from_conf(config.build())).table("Devices");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        tokio::spawn(async { axum::serve(listener, router(visits)).await.expect("serves") });
        address
    }

    async fn ask(address: &str, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let request =
            format!("{method} {path} HTTP/1.1\r\nhost: example\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        answer
    }

    #[tokio::test]
    async fn a_handler_answers_with_items_and_with_problems() {
        let address = served().await;
        assert!(ask(&address, "PUT", "/visits/lobby").await.starts_with("HTTP/1.1 201"));
        let visited = ask(&address, "POST", "/visits/lobby").await;
        assert!(visited.starts_with("HTTP/1.1 200") && visited.contains(r#""count":1"#), "{visited}");
        for (method, path, status, code) in [
            ("PUT", "/visits/lobby", "409", "room_exists"),
            ("POST", "/visits/nowhere", "404", "room_not_found"),
            ("POST", "/visits/a%20b", "400", "invalid_id"),
        ] {
            let refused = ask(&address, method, path).await;
            assert!(refused.starts_with(&format!("HTTP/1.1 {status}")), "{refused}");
            assert!(refused.contains("content-type: application/problem+json"), "{refused}");
            assert!(refused.contains(&format!(r#""code":"{code}""#)), "{refused}");
        }
    }
}
