//! The service as a process of its own, with an engine and the credentials of a container behind sockets.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use axum::routing::get;
use axum::{Router, response::IntoResponse};
use dynoxide::{Database, DynoxideError};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{from_slice, from_str, json};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::time::timeout;

const ACCESS_KEY: &str = "AKIDOFTHECONTAINER";
const TOKEN: &str = "the token of the container";
/// Set in the process that is the service.
const IS_SERVICE: &str = "FENCEPOST_EXAMPLE_IS_SERVICE";
/// No result depends on it: it ends a run that hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// The surroundings of the service.
#[derive(Clone)]
struct World {
    engine: Database,
    /// The `Authorization` header of each request to the engine.
    signed: Arc<Mutex<Vec<String>>>,
    /// The number of requests for credentials.
    asked: Arc<Mutex<u32>>,
    /// Each write takes one of these, and waits until there is one.
    may_write: Arc<Semaphore>,
    /// Each write that has come adds one to these.
    came: Arc<Semaphore>,
}

impl World {
    fn new() -> Self {
        let engine = Database::memory().expect("an engine in memory");
        for (table, key) in [("Devices", "deviceId"), ("IdempotencyRecords", "recordId")] {
            let table = json!({
                "TableName": table,
                "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            });
            engine.create_table(from_str(&table.to_string()).expect("a table")).expect("created");
        }
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        World { engine, signed: Arc::default(), asked: Arc::default(), may_write: semaphore(1000), came: semaphore(0) }
    }
}

/// Answers as `DynamoDB` does.
async fn answer(State(world): State<World>, headers: HeaderMap, body: Bytes) -> impl IntoResponse {
    let text = |name: &str| headers[name].to_str().expect("text").to_owned();
    world.signed.lock().expect("no panic").push(text(AUTHORIZATION.as_str()));
    let target = text("x-amz-target");
    let operation = target.rsplit('.').next().expect("a name");
    if !operation.contains("Get") {
        world.came.add_permits(1);
        world.may_write.acquire().await.expect("open").forget();
    }
    let db = world.engine;
    let answered = match operation {
        "GetItem" => asked(&body, |request| db.get_item(request)),
        "BatchGetItem" => asked(&body, |request| db.batch_get_item(request)),
        "PutItem" => asked(&body, |request| db.put_item(request)),
        "UpdateItem" => asked(&body, |request| db.update_item(request)),
        "TransactWriteItems" => asked(&body, |request| db.transact_write_items(request)),
        other => panic!("the service does not need {other}"),
    };
    let (status, body) = answered.map_or_else(|error| (error.status_code(), error.to_json()), |body| (200, body));
    (StatusCode::from_u16(status).expect("a status"), [("content-type", "application/x-amz-json-1.0")], body)
}

fn asked<Q: serde::de::DeserializeOwned, A: serde::Serialize>(
    body: &[u8],
    operation: impl FnOnce(Q) -> Result<A, DynoxideError>,
) -> Result<String, DynoxideError> {
    let answer = operation(from_slice(body).expect("a request of the SDK"))?;
    Ok(serde_json::to_string(&answer).expect("JSON"))
}

/// Hands out credentials, as the endpoint of a container does, to whom has the token.
///
/// Source: <https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html>
async fn credentials(State(world): State<World>, headers: HeaderMap) -> Result<String, StatusCode> {
    if headers.get(AUTHORIZATION).is_none_or(|token| token != TOKEN) {
        return Err(StatusCode::FORBIDDEN);
    }
    *world.asked.lock().expect("no panic") += 1;
    let credentials = json!({
        "AccessKeyId": ACCESS_KEY,
        "SecretAccessKey": "a secret",
        "Token": "a session",
        "Expiration": "2099-01-01T00:00:00Z",
    });
    Ok(credentials.to_string())
}

async fn listen(routes: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    tokio::spawn(async { axum::serve(listener, routes).await.expect("serves") });
    address
}

/// Starts the test of this name again, as the service, with an environment like that of a container. Gives where it
/// listens.
async fn start(test: &str, world: &World) -> (Child, String) {
    let engine = listen(Router::new().fallback(answer).with_state(world.clone())).await;
    let container = listen(Router::new().route("/creds", get(credentials)).with_state(world.clone())).await;
    let mut service = Command::new(std::env::current_exe().expect("this program"))
        .args([&format!("tests::{test}"), "--exact", "--nocapture"])
        .env_clear()
        .envs([
            (IS_SERVICE, "yes"),
            ("LISTEN", "127.0.0.1:0"),
            ("AWS_REGION", "eu-west-1"),
            ("AWS_ENDPOINT_URL_DYNAMODB", &format!("http://{engine}")),
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &format!("http://{container}/creds")),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", TOKEN),
            ("AWS_CONFIG_FILE", "/dev/null"),
            ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("this program starts");
    let mut said = BufReader::new(service.stderr.take().expect("piped")).lines();
    let address = loop {
        let line = said.next_line().await.expect("text").expect("it says where it listens");
        if let Some(address) = line.strip_prefix("listening on ") {
            break address.to_owned();
        }
    };
    (service, address)
}

async fn ask(address: &str, method: &str, path: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request =
        format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

/// Is the service, if this process was started as it; plays the scene otherwise.
fn play(scene: impl Future<Output = ()>) {
    if std::env::var_os(IS_SERVICE).is_some() {
        super::main().expect("the service ends well");
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { timeout(PATIENCE, scene).await.expect("it hangs") });
}

fn header<'a>(answer: &'a str, name: &str) -> &'a str {
    let line = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("{name} in {answer}"))
}

#[test]
fn requests_are_signed_with_the_credentials_of_the_container_and_answered() {
    play(async {
        let world = World::new();
        let test = "requests_are_signed_with_the_credentials_of_the_container_and_answered";
        let (_service, address) = start(test, &world).await;
        assert!(ask(&address, "GET", "/health", "").await.starts_with("HTTP/1.1 200"));
        assert_eq!((*world.asked.lock().expect("no panic"), world.signed.lock().expect("no panic").len()), (0, 0));

        let opened = ask(&address, "PUT", "/visits/lobby", "").await;
        assert!(opened.starts_with("HTTP/1.1 201"), "{opened}");
        assert_eq!(header(&opened, "location"), "/visits/lobby");
        for _ in 0..2 {
            let visited = ask(&address, "POST", "/visits/lobby", "idempotency-key: visit-1\r\n").await;
            assert!(visited.starts_with("HTTP/1.1 200") && visited.contains(r#""count":1"#), "{visited}");
        }
        let stale = format!("if-match: {}\r\n", header(&opened, "etag"));
        for (method, path, headers, status, code) in [
            ("PUT", "/visits/lobby", "", "409", "room_exists"),
            ("POST", "/visits/nowhere", "", "404", "room_not_found"),
            ("POST", "/visits/a%20b", "", "400", "invalid_id"),
            ("POST", "/visits/lobby", stale.as_str(), "412", "version_conflict"),
            ("DELETE", "/visits/lobby", "", "428", "condition_required"),
            ("PATCH", "/visits/lobby", "", "405", "method_not_allowed"),
            ("GET", "/", "", "404", "no_such_route"),
        ] {
            let refused = ask(&address, method, path, headers).await;
            assert!(refused.starts_with(&format!("HTTP/1.1 {status}")), "{method} {path}: {refused}");
            assert_eq!(header(&refused, "content-type"), "application/problem+json");
            assert!(refused.contains(&format!(r#""code":"{code}""#)), "{refused}");
        }

        assert_eq!(*world.asked.lock().expect("no panic"), 1, "credentials are kept until they expire");
        let signed = world.signed.lock().expect("no panic");
        let by_container = |authorization: &String| authorization.contains(&format!("Credential={ACCESS_KEY}/"));
        assert!(!signed.is_empty() && signed.iter().all(by_container), "{signed:?}");
    });
}

#[test]
fn a_service_that_is_asked_to_stop_answers_what_it_has_begun() {
    play(async {
        let world = World::new();
        let (mut service, address) = start("a_service_that_is_asked_to_stop_answers_what_it_has_begun", &world).await;
        assert!(ask(&address, "PUT", "/visits/lobby", "").await.starts_with("HTTP/1.1 201"));

        world.may_write.forget_permits(1000);
        world.came.forget_permits(1);
        let visit = tokio::spawn({
            let address = address.clone();
            async move { ask(&address, "POST", "/visits/lobby", "").await }
        });
        world.came.acquire().await.expect("open").forget();
        let id = i32::try_from(service.id().expect("it runs")).expect("small");
        kill(Pid::from_raw(id), Signal::SIGTERM).expect("it runs");
        while TcpStream::connect(&address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        world.may_write.add_permits(1000);
        let visited = visit.await.expect("no panic");
        assert!(visited.starts_with("HTTP/1.1 200") && visited.contains(r#""count":1"#), "{visited}");
        assert!(service.wait().await.expect("a child").success());
    });
}
