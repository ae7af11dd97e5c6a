//! Processes over real sockets: a holder that is stopped for longer than its lease, and idle functions.

use super::world::{acquire, ensure_under, renew, terms};
use crate::harness::engine::{Asked, Engine, is_read, number, store};
use crate::harness::functions::{CHILDREN, LEASES};
use crate::harness::runtime_api::FunctionProcess;
use crate::harness::server::{Server, patiently};
use fencepost::lease::Lease;
use fencepost::{Record, Table};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

const ITEMS: &str = "Items";
const TABLES: &[(&str, &str)] = &[(LEASES, "leaseKey"), (CHILDREN, "childId"), (ITEMS, "itemId")];
/// Longer than the lease of the holder, which lasts an hour.
const LATER: Duration = Duration::from_hours(2);

/// The item of `holder.rs`.
#[derive(Clone, Debug, Serialize, Deserialize, Record)]
#[record(key = "itemId")]
struct Count {
    writes: u64,
    by: u64,
}

/// A holder in a process of its own. Its time of day is the machine's until the test sets it forward.
struct Holder {
    process: Child,
    clock: PathBuf,
}

impl Holder {
    fn start(kind: &str, how: &str, endpoint: &str) -> Self {
        let name = format!("holder-{kind}-{how}-{}", std::process::id());
        let clock = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&clock, "0").expect("a folder for the tests");
        let process = Command::new(env!("CARGO_BIN_EXE_holder"))
            .args([kind, how])
            .arg(&clock)
            .envs([
                ("AWS_ENDPOINT_URL_DYNAMODB", endpoint),
                ("AWS_REGION", "eu-west-1"),
                ("AWS_ACCESS_KEY_ID", "test"),
                ("AWS_SECRET_ACCESS_KEY", "test"),
            ])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        Holder { process: process.expect("the binary is built"), clock }
    }

    fn id(&self) -> Pid {
        Pid::from_raw(self.process.id().and_then(|id| i32::try_from(id).ok()).expect("it runs"))
    }

    /// Stops it. Nothing of it runs any more when this returns.
    fn stop(&self) {
        kill(self.id(), Signal::SIGSTOP).expect("it runs");
        let status = waitpid(self.id(), Some(WaitPidFlag::WUNTRACED));
        assert_eq!(status, Ok(WaitStatus::Stopped(self.id(), Signal::SIGSTOP)));
    }

    fn set_clock_forward(&self, time: Duration) {
        std::fs::write(&self.clock, time.as_secs().to_string()).expect("its clock");
    }

    /// Lets the holder run to its end. Gives its outcome.
    async fn go_on(mut self) -> String {
        let mut stdout = self.process.stdout.take().expect("piped");
        kill(self.id(), Signal::SIGCONT).expect("it is stopped");
        let mut said = String::new();
        patiently("its end", stdout.read_to_string(&mut said)).await.expect("text");
        std::fs::remove_file(&self.clock).expect("its clock");
        said.trim().to_owned()
    }
}

fn item(engine: &Engine) -> Value {
    engine.row(ITEMS, "itemId", "item-1")
}

/// Later, when the lease of the holder has ended, another client acquires it and writes.
async fn take_over(engine: &Engine) -> Lease {
    let store = store(&engine.client(), || SystemTime::now() + LATER, || fastrand::u64(..));
    let lease = store.leases(LEASES).acquire("k", "next", terms(60_000)).await.expect("acquired");
    let token = lease.token();
    let items: Table<Count> = store.table(ITEMS);
    let one_more = |count: &Count| Ok::<_, Infallible>(Some(Count { writes: count.writes + 1, by: token.number() }));
    items.fenced_by(token).update_with_retry("item-1", one_more).await.expect("written");
    lease
}

/// Stops a holder for longer than its lease. One of its writes is on its way, and arrives after the next holder's
/// write. Gives the holder's outcome, and all later requests.
async fn stopped(kind: &str, how: &str) -> (String, Vec<Asked>) {
    let server = Server::start(TABLES).await;
    let engine = &server.engine;
    let items = store(&engine.client(), SystemTime::now, || fastrand::u64(..)).table(ITEMS);
    items.create("item-1", &Count { writes: 0, by: 0 }).await.expect("created");
    let holder = Holder::start(kind, how, &server.endpoint());
    server.until("a third write", |_| number(&item(engine), "writes") >= 3).await;
    server.shut(ITEMS);
    server.until("a write at the gate", |traffic| traffic.waited == 1).await;
    holder.stop();
    holder.set_clock_forward(LATER);
    let next = take_over(engine).await;
    let before = item(engine);
    engine.take_log();
    let answered = server.answered();
    server.open();
    server.until("an answer to that write", |traffic| traffic.answered > answered).await;
    let ended = holder.go_on().await;
    assert_eq!(item(engine), before, "{kind} {how}: what it protects is as the next holder left it");
    assert_eq!(number(&before, "by").unsigned_abs(), next.token().number());
    (ended, engine.take_log())
}

/// The statuses of the writes to this table.
fn writes_on(asked: &[Asked], table: &str) -> Vec<u16> {
    let name = format!("\"{table}\"");
    let on_it = asked.iter().filter(|asked| !is_read(&asked.operation) && asked.body.to_string().contains(&name));
    on_it.map(|asked| asked.status).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_was_stopped_for_longer_than_its_lease_finds_it_lost_and_does_not_go_on() {
    let (item, transaction) = tokio::join!(stopped("item", "watched"), stopped("transaction", "watched"));
    for (ended, asked) in [item, transaction] {
        assert_eq!(ended, "lost");
        let (late, since) = asked.split_first().expect("the write that was under way");
        assert_eq!(writes_on(std::slice::from_ref(late), ITEMS), [400], "{late:?}");
        assert!(writes_on(since, ITEMS).is_empty(), "it has sent none since: {since:?}");
        assert_eq!(writes_on(since, LEASES), [400], "what somebody else holds is not given back");
    }
}

/// Time alone is no protection: even a holder that ignores it is kept out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_never_looks_at_its_time_is_kept_out_by_the_fence() {
    let (item, transaction) = tokio::join!(stopped("item", "blind"), stopped("transaction", "blind"));
    for (ended, asked) in [item, transaction] {
        assert_eq!(ended, "fenced");
        let writes = writes_on(&asked, ITEMS);
        assert!(!writes.is_empty() && writes.iter().all(|status| *status == 400), "{asked:?}");
    }
}

/// It idles past the middle of the lease and past its end, so any automatic renewal would have been sent. Idling for
/// longer on a slow machine changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_function_sends_nothing_between_two_invocations() {
    let server = Server::start(TABLES).await;
    let (engine, endpoint) = (&server.engine, server.endpoint());
    let environment = [
        ("AWS_ENDPOINT_URL_DYNAMODB", endpoint.as_str()),
        ("LEASES_TABLE", LEASES),
        ("CHILDREN_TABLE", CHILDREN),
        ("LEASE_CLOCK_SKEW_SECONDS", "0"),
    ];
    let lease = FunctionProcess::start("lease", &environment).await;
    let children = FunctionProcess::start("ensure-child", &environment).await;
    let token = super::world::token(&lease.answer(&acquire("k", "a", 1)).await.shown(201));
    lease.answer(&acquire("another", "a", 1)).await.shown(201);
    let wanted = ensure_under("p", "u-1", &json!({}), ("k", token));
    children.answer(&wanted).await.shown(201);
    assert_eq!(engine.take_counts(), (1, 3));
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(engine.take_counts(), (0, 0));
    lease.answer(&renew("k", token, 1)).await.shown(200);
    children.answer(&wanted).await.shown(200);
    assert_eq!(engine.take_counts(), (2, 1));
    // The setting assumes that clocks do not differ at all.
    lease.answer(&acquire("another", "b", 1)).await.shown(201);
}
