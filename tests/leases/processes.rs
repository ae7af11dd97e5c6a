//! Processes over real sockets: a holder that the system stops for longer than its lease, and functions that idle.

use super::world::{CHILDREN, LEASES, acquire, call, ensure_under, renew, terms};
use crate::devices::world::Answer;
use crate::harness::engine::{Asked, Engine, is_read};
use crate::harness::runtime_api::FunctionProcess;
use crate::shop::shop::number;
use aws_lambda_events::apigw::ApiGatewayV2httpResponse;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use fencepost::{Decision, Key, Lease, Record, Store, Table};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

const ITEMS: &str = "Items";
const TABLES: &[(&str, &str)] = &[(LEASES, "leaseKey"), (CHILDREN, "childId"), (ITEMS, "itemId")];
/// Nothing takes so long, unless it hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// An engine that answers over HTTP and logs what it was asked. Writes of the item wait while the gate is shut.
#[derive(Clone)]
struct Server {
    engine: Engine,
    open: Arc<watch::Sender<bool>>,
    waiting: Arc<AtomicUsize>,
}

impl Server {
    /// With its address.
    async fn start() -> (Self, String) {
        let open = Arc::new(watch::Sender::new(true));
        let server = Server { engine: Engine::embedded(TABLES), open, waiting: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let routes = axum::Router::new().fallback(answer).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (server, format!("http://{address}"))
    }
}

async fn answer(State(server): State<Server>, headers: HeaderMap, body: Bytes) -> Response {
    let target = headers["x-amz-target"].to_str().expect("text");
    let operation = target.rsplit('.').next().expect("a name");
    if !is_read(operation) && String::from_utf8_lossy(&body).contains(ITEMS) && !*server.open.borrow() {
        server.waiting.fetch_add(1, SeqCst);
        server.open.subscribe().wait_for(|open| *open).await.expect("the server is there");
    }
    let (status, answer) = server.engine.answer(operation, &body);
    let response = Response::builder().status(status).header("content-type", "application/x-amz-json-1.0");
    response.body(Body::from(answer)).expect("a response")
}

/// What `holder.rs` writes.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Count {
    writes: u64,
    by: u64,
}

impl Record for Count {
    const PARTITION_KEY: &'static str = "itemId";
    const ATTRIBUTES: &'static [&'static str] = &["writes", "by"];
}

/// A holder in a process of its own.
struct Holder(Child);

impl Holder {
    fn start(kind: &str, how: &str, endpoint: &str) -> Self {
        let process = Command::new(env!("CARGO_BIN_EXE_holder"))
            .args([kind, how])
            .envs([
                ("AWS_ENDPOINT_URL_DYNAMODB", endpoint),
                ("AWS_REGION", "eu-west-1"),
                ("AWS_ACCESS_KEY_ID", "test"),
                ("AWS_SECRET_ACCESS_KEY", "test"),
            ])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        Holder(process.expect("the binary is built"))
    }

    fn signal(&self, signal: Signal) {
        let id = self.0.id().and_then(|id| i32::try_from(id).ok()).expect("it runs");
        kill(Pid::from_raw(id), signal).expect("it runs");
    }

    /// How it says that it ended.
    async fn ended(mut self) -> String {
        let mut said = String::new();
        let mut stdout = self.0.stdout.take().expect("piped");
        timeout(PATIENCE, stdout.read_to_string(&mut said)).await.expect("it ends").expect("text");
        said.trim().to_owned()
    }
}

fn item(engine: &Engine) -> Value {
    engine.row(ITEMS, "itemId", "item-1")
}

/// Somebody else acquires the lease and writes.
async fn take_over(engine: &Engine, items: &Table<Count>) -> Lease {
    let leases = Store::new(&engine.client()).leases(LEASES);
    let lease = leases.acquire_within("k", "next", terms(1_000), PATIENCE, &call(60)).await.expect("acquired");
    let token = lease.token();
    let one_more = |count: &Count| Decision::<_, ()>::Put(Count { writes: count.writes + 1, by: token.number() });
    items.fenced_by(token).update_with_retry(&Key::from("item-1"), &call(10), one_more).await.expect("written");
    lease
}

/// Waits until this is so.
async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("it is so in the end");
}

/// Stops a holder for longer than its lease, while a write of its is under way that arrives after somebody else's. Gives
/// how the holder ended, how many of its writes were under way, and what has arrived since.
async fn stopped(kind: &str, how: &str) -> (String, usize, Vec<Asked>) {
    let (Server { engine, open, waiting }, endpoint) = Server::start().await;
    let items = Store::new(&engine.client()).table(ITEMS);
    items.create(&Key::from("item-1"), &Count { writes: 0, by: 0 }, &call(10)).await.expect("created");
    let holder = Holder::start(kind, how, &endpoint);
    until(|| number(&item(&engine), "writes") >= 3).await;
    open.send_replace(false);
    until(|| waiting.load(SeqCst) > 0).await;
    holder.signal(Signal::SIGSTOP);
    let next = take_over(&engine, &items).await;
    let before = item(&engine);
    engine.take_log();
    open.send_replace(true);
    holder.signal(Signal::SIGCONT);
    let ended = holder.ended().await;
    assert_eq!(item(&engine), before, "{kind} {how}: what it protects is as the next holder left it");
    assert_eq!(number(&before, "by").unsigned_abs(), next.token().number());
    let asked = engine.take_log();
    assert!(
        asked.iter().filter(|asked| is_on(asked, ITEMS)).all(|asked| asked.status == 400),
        "{kind} {how}: {asked:?}"
    );
    (ended, waiting.load(SeqCst), asked)
}

fn is_on(asked: &Asked, table: &str) -> bool {
    !is_read(&asked.operation) && asked.body.to_string().contains(&format!("\"{table}\""))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_was_stopped_for_longer_than_its_lease_finds_it_lost_and_does_not_go_on() {
    let (item, transaction) = tokio::join!(stopped("item", "watched"), stopped("transaction", "watched"));
    for (ended, under_way, asked) in [item, transaction] {
        assert_eq!(ended, "lost");
        let writes = asked.iter().filter(|asked| is_on(asked, ITEMS)).count();
        assert_eq!(writes, under_way, "it has sent none since: {asked:?}");
        let of_lease = |asked: &&Asked| is_on(asked, LEASES) && !is_on(asked, ITEMS);
        let releases: Vec<_> = asked.iter().filter(of_lease).map(|asked| asked.status).collect();
        assert_eq!(releases, [400], "what somebody else holds is not given back");
    }
}

/// Time alone would not do: whoever does not look at it is kept out all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_never_looks_at_its_time_is_kept_out_by_the_fence() {
    let (item, transaction) = tokio::join!(stopped("item", "blind"), stopped("transaction", "blind"));
    for (ended, under_way, asked) in [item, transaction] {
        assert_eq!(ended, "fenced");
        assert!(under_way > 0 && asked.len() >= under_way, "{asked:?}");
    }
}

async fn invoked(function: &FunctionProcess, event: Value) -> Answer {
    let answer = function.invoke(event).await;
    serde_json::from_value::<ApiGatewayV2httpResponse>(answer).expect("a response").into()
}

/// It idles past the middle of the lease and past its end: longer than anything that renews by itself would.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_function_sends_nothing_between_two_invocations() {
    let (Server { engine, .. }, endpoint) = Server::start().await;
    let environment = [
        ("AWS_ENDPOINT_URL_DYNAMODB", endpoint.as_str()),
        ("LEASES_TABLE", LEASES),
        ("CHILDREN_TABLE", CHILDREN),
        ("LEASE_CLOCK_SKEW_SECONDS", "0"),
    ];
    let lease = FunctionProcess::start("lease", &environment).await;
    let children = FunctionProcess::start("ensure-child", &environment).await;
    let token = super::world::token(&invoked(&lease, acquire("k", "a", 1).0).await.shown(201));
    invoked(&lease, acquire("another", "a", 1).0).await.shown(201);
    let wanted = ensure_under("p", "u-1", &json!({}), ("k", token)).0;
    invoked(&children, wanted.clone()).await.shown(201);
    assert_eq!(engine.take_counts(), (1, 3));
    sleep(Duration::from_millis(1_500)).await;
    assert_eq!(engine.take_counts(), (0, 0));
    invoked(&lease, renew("k", token, 1).0).await.shown(200);
    invoked(&children, wanted).await.shown(200);
    assert_eq!(engine.take_counts(), (2, 1));
    // The setting says that clocks are not apart at all.
    invoked(&lease, acquire("another", "b", 1).0).await.shown(201);
}
