//! Minutes of throttling: the answers to callers and the number of requests.

use super::accounts::{Account, TABLE, add_one};
use crate::harness::emf::Metrics;
use crate::harness::engine::{failure_of, is_read, store};
use crate::harness::events::{Event, load};
use crate::harness::functions::{DEVICES, environment_of};
use crate::harness::world::context;
use fencepost::testing::{Reporter, answer_request};
use fencepost::{Call, Deadline, Error, Failure, FailureKind, Key, Reads, Store, Table, ThrottlingLimit};
use fencepost_test::{Capacity, Dynamo, Fault, Network, Rates, Request, Seam};
use functions::device_state;
use functions::function::Event as Start;
use lambda_runtime::{Config, LambdaEvent};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// The time of a call.
const ALLOWED: Duration = Duration::from_secs(5);

const WRITERS: u64 = 3;

const NAMESPACE: &str = "Tests";

/// Throttles a share of the reads and a share of the writes, in thousandths.
#[derive(Clone, Default)]
struct Storm {
    reads: Arc<AtomicU32>,
    writes: Arc<AtomicU32>,
}

impl Storm {
    fn throttles(&self, reads: u32, writes: u32) {
        self.reads.store(reads, SeqCst);
        self.writes.store(writes, SeqCst);
    }
}

impl Seam for Storm {
    fn fault(&self, network: &Network, request: &Request) -> Option<Fault> {
        let share = if is_read(&request.operation) { &self.reads } else { &self.writes };
        (network.below(1000) < u64::from(share.load(SeqCst))).then_some(Fault::Throttled)
    }
}

fn scene(seed: u64, rates: Rates) -> (Dynamo, Storm) {
    let storm = Storm::default();
    let db = Dynamo::with_seam(seed, rates, storm.clone());
    db.create_table(TABLE, "accountId");
    db.put(TABLE, &account("a-1"));
    (db, storm)
}

/// An account at version 1, as a create leaves it.
fn account(id: &str) -> Value {
    json!({
        "accountId": {"S": id}, "balance": {"N": "0"}, "_version": {"N": "1"}, "_incarnation": {"B": "AAAAAAAAAAE="},
        "_writes": {"M": {}},
    })
}

/// A store with a client of its own and chance from the seed.
fn store_on(db: &Dynamo) -> Store {
    let (now, chance) = (db.clone(), db.clone());
    store(&db.client(), move || now.now(), move || chance.random())
}

fn soon() -> Call {
    Call::new(Deadline::within(ALLOWED))
}

/// The outcomes of the calls of one phase.
#[derive(Default, Debug)]
struct Seen {
    calls: usize,
    applied: usize,
    unavailable: usize,
    unknown: usize,
}

/// Changes an account until this time has passed, by decisions and by adds. Each call ends by its deadline. Whether it was
/// told the truth, programs judge (`tests/histories/programs/`).
async fn writes(db: Dynamo, table: Table<Account>, time: Duration) -> Seen {
    let (begun, key, mut seen) = (Instant::now(), Key::from("a-1"), Seen::default());
    while begun.elapsed() < time {
        let (call, sent) = (soon(), Instant::now());
        let failed = if db.network().below(2) == 0 {
            failure_of(table.in_call(&call).update_with_retry(&key, add_one).await)
        } else {
            failure_of(table.in_call(&call).edit(&key, &Account::FIELDS.balance.add(1, ..)).await)
        };
        assert!(sent.elapsed() <= ALLOWED, "{:?}", sent.elapsed());
        seen.calls += 1;
        match failed {
            None => seen.applied += 1,
            Some(Failure { kind: FailureKind::OutcomeUnknown { .. }, .. }) => seen.unknown += 1,
            Some(Failure { kind: FailureKind::Unavailable { .. }, .. }) => seen.unavailable += 1,
            Some(failure) => assert!(matches!(failure.kind, FailureKind::Contention { .. }), "{failure}"),
        }
        sleep(Duration::from_millis(200 + db.network().below(800))).await;
    }
    seen
}

/// Lets all writers work for so long. Returns the outcomes of their calls and the number of their requests.
async fn phase(db: &Dynamo, tables: &[Table<Account>], time: Duration) -> (Seen, usize) {
    let before = db.log().len();
    let mut writers = JoinSet::new();
    for table in tables {
        writers.spawn(writes(db.clone(), table.clone(), time));
    }
    let total = writers.join_all().await.into_iter().fold(Seen::default(), |total, seen| Seen {
        calls: total.calls + seen.calls,
        applied: total.applied + seen.applied,
        unavailable: total.unavailable + seen.unavailable,
        unknown: total.unknown + seen.unknown,
    });
    (total, db.log().len() - before)
}

#[tokio::test(start_paused = true)]
async fn minutes_of_throttling_cost_a_bounded_number_of_requests() {
    let (db, storm) = scene(7, Rates::default());
    let tables: Vec<Table<Account>> = (0..WRITERS).map(|_| store_on(&db).table(TABLE)).collect();

    for reads in [1000, 0] {
        storm.throttles(reads, 1000);
        let (seen, sent) = phase(&db, &tables, Duration::from_mins(3)).await;
        assert_eq!((seen.calls, seen.applied, seen.unknown), (seen.unavailable, 0, 0), "{seen:?}");
        // Each call sends what it begins with, and a client has 500 tokens, of which a resend takes five. The reads of the
        // second phase are answered, each with a token.
        assert!(sent <= seen.calls * 5 / 2 + tables.len() * 100, "{sent} requests of {} calls", seen.calls);
        assert!(sent >= seen.calls, "{sent} requests of {} calls: they go on trying", seen.calls);
    }

    // A fifth is paid for by the answers, although no tokens are left at first.
    storm.throttles(200, 200);
    phase(&db, &tables, Duration::from_secs(20)).await;
    let (seen, sent) = phase(&db, &tables, Duration::from_mins(1)).await;
    assert!(seen.applied * 20 > seen.calls * 19 && seen.unknown == 0, "{seen:?}");
    assert!(sent <= seen.calls * 3, "{sent} requests of {} calls", seen.calls);

    storm.throttles(0, 0);
    let (seen, _) = phase(&db, &tables, Duration::from_secs(10)).await;
    assert_eq!(seen.applied, seen.calls, "it is over: {seen:?}");
}

/// The log line of `device-state` about this event.
async fn line_of_device_state(store: &Store, event: &Event) -> Value {
    let Start::Http { start, .. } = &device_state::FUNCTION.event else { panic!("it has routes") };
    let router = start(store, &environment_of(device_state::FUNCTION.name)).expect("the environment of template.yaml");
    let (written, lines) = channel();
    let reporter = Reporter::to(NAMESPACE, move |line| written.send(line).expect("it is read"));
    let mut context = context(ALLOWED);
    context.env_config = Arc::new(Config { function_name: "device-state".to_owned(), ..Config::default() });
    let event = LambdaEvent::new(to_raw_value(&event.0).expect("JSON"), context);
    answer_request(&router, event, None, &reporter).await.expect("an event of the API");
    serde_json::from_str(&lines.recv().expect("a line")).expect("JSON")
}

#[tokio::test(start_paused = true)]
async fn the_limit_that_throttles_is_named_to_the_caller_in_the_log_and_in_the_metric() {
    type Exhausted = fn(&str) -> Capacity;
    let limits: [(Exhausted, _, _); 4] = [
        (|_| Capacity::of_items(), ThrottlingLimit::KeyRange, "key_range"),
        (|_| Capacity::of_account(), ThrottlingLimit::Account, "account"),
        (|table| Capacity::on_demand(table, 0.0, 0.0), ThrottlingLimit::TableMaximum, "table_maximum"),
        (|table| Capacity::provisioned(table, 0.0, 0.0), ThrottlingLimit::Provisioned, "provisioned"),
    ];
    for (exhausted, limit, name) in limits {
        let (db, _) = scene(9, Rates::default());
        db.create_table(DEVICES, "deviceId");
        for table in [TABLE, DEVICES] {
            db.capacity(exhausted(table).with_units(40_000.0, 0.0));
        }
        let store = store_on(&db);
        let table: Table<Account> = store.table(TABLE);

        let call = soon();
        let failed = table.in_call(&call).create("a-3", &Account { balance: 0 }).await.expect_err("throttled");
        let Error::Failed(failure) = failed else { panic!("{name}: {failed}") };
        assert_eq!(failure.throttling_limit(), Some(limit), "{name}: {failure:?}");
        assert_eq!((call.tally().throttling_limit, call.tally().throttled > 1), (Some(limit), true), "{name}");

        let (call, mut reads) = (soon(), Reads::new());
        let both = ["a-4", "a-5"].map(|id| reads.item(id, &table, id));
        let store = store.in_call(&call);
        let failed = store.transact_with_retry(reads, |attempt| {
            both.iter().try_for_each(|account| attempt.put_if_absent(*account, &Account { balance: 0 }).map(drop))?;
            Ok::<_, Error>(())
        });
        let Error::Failed(failure) = failed.await.expect_err("throttled");
        assert_eq!(failure.throttling_limit(), Some(ThrottlingLimit::Unnamed), "{name}: it was cancelled: {failure:?}");
        assert_eq!(call.tally().throttling_limit, Some(ThrottlingLimit::Unnamed), "{name}");

        let line = line_of_device_state(&store_on(&db), &load("device-state-create")).await;
        assert_eq!((&line["status"], &line["throttling_limit"]), (&json!(503), &json!(name)));
        let error = line["error"].as_str().expect("a 503 has an error");
        assert!(error.contains(&format!("{limit} (arn:")) && error.contains(":table/Devices)"), "{name}: {error}");
        let sent = Metrics::read(std::slice::from_ref(&line), NAMESPACE);
        assert_eq!(sent.sum("throttled", &[("throttling_limit", name)]), sent.sum("throttled", &[]), "{name}");
        assert!(sent.sum("throttled", &[]) > 1, "{name}: {line}");

        db.capacity(exhausted(TABLE).with_units(0.0, 40_000.0));
        let call = soon();
        let failure = table.in_call(&call).get("a-1").await.expect_err("throttled");
        let said = (failure.throttling_limit(), call.tally().throttling_limit, call.tally().throttled > 1);
        assert_eq!(said, (Some(limit), Some(limit), true), "{name}, a read: {failure:?}");
    }
}
