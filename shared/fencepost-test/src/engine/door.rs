//! The embedded engine of a test, or a server with a prefix for its tables.

use super::endpoint::Endpoint;
use dynoxide::Database;
use dynoxide::storage_backend::Clock;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Answers requests of the service's JSON protocol.
#[derive(Clone)]
pub enum Door {
    Embedded(Database),
    Endpoint(Endpoint),
}

impl Door {
    /// The embedded engine, by the machine's clock.
    pub fn embedded() -> Self {
        Door::Embedded(Database::memory().expect("SQLite in memory"))
    }

    /// The embedded engine under a clock of the test.
    pub fn embedded_at(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Door::Embedded(Database::memory_with_clock(Arc::new(Told(now))).expect("SQLite in memory"))
    }

    /// The token to give it for that of a transaction, after tokens were forgotten so many times: a new one each time,
    /// unique among tests where a server is shared.
    pub fn token_for(&self, token: &str, epoch: u64) -> String {
        match self {
            Door::Embedded(_) if epoch == 0 => token.to_owned(),
            Door::Embedded(_) => token_in("", epoch, token),
            Door::Endpoint(endpoint) => token_in(endpoint.prefix(), epoch, token),
        }
    }

    /// Removes rows that have expired by the engine's clock, as TTL does some time later. Gives how many rows.
    pub fn sweep(&self) -> usize {
        match self {
            Door::Embedded(db) => db.sweep_ttl().expect("a sweep"),
            Door::Endpoint(_) => panic!("only the embedded engine is swept when a test says so"),
        }
    }

    pub fn ask(&self, operation: &str, body: &[u8]) -> (u16, String) {
        match self {
            Door::Embedded(db) => ask(db, operation, body),
            Door::Endpoint(endpoint) => endpoint.ask(operation, body),
        }
    }
}

fn ask(db: &Database, operation: &str, body: &[u8]) -> (u16, String) {
    match operation {
        "GetItem" => run(body, |request| db.get_item(request)),
        "PutItem" => run(body, |request| db.put_item(request)),
        "UpdateItem" => run(body, |request| db.update_item(request)),
        "DeleteItem" => run(body, |request| db.delete_item(request)),
        "Query" => run(body, |request| db.query(request)),
        "Scan" => run(body, |request| db.scan(request)),
        "BatchGetItem" => run(body, |request| db.batch_get_item(request)),
        "BatchWriteItem" => run(body, |request| db.batch_write_item(request)),
        "TransactGetItems" => run(body, |request| db.transact_get_items(request)),
        "TransactWriteItems" => run(body, |request| db.transact_write_items(request)),
        "ExecuteStatement" => run(body, |request| db.execute_statement(request)),
        "ExecuteTransaction" => run(body, |request| db.execute_transaction(request)),
        "BatchExecuteStatement" => run(body, |request| db.batch_execute_statement(request)),
        "CreateTable" => run(body, |request| db.create_table(request)),
        "DescribeTable" => run(body, |request| db.describe_table(request)),
        "ListTables" => run(body, |request| db.list_tables(request)),
        "UpdateTable" => run(body, |request| db.update_table(request)),
        "DeleteTable" => run(body, |request| db.delete_table(request)),
        "UpdateTimeToLive" => run(body, |request| db.update_time_to_live(request)),
        "DescribeTimeToLive" => run(body, |request| db.describe_time_to_live(request)),
        other => {
            let message = format!("the embedded engine of the test does not speak {other}");
            let unknown = "com.amazon.coral.service#UnknownOperationException";
            (400, json!({"__type": unknown, "message": message}).to_string())
        }
    }
}

fn run<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    operation: impl FnOnce(Q) -> Result<A, dynoxide::DynoxideError>,
) -> (u16, String) {
    let request = match serde_json::from_slice(body) {
        Ok(request) => request,
        Err(error) => {
            let problem =
                json!({"__type": "com.amazon.coral.validate#ValidationException", "message": error.to_string()});
            return (400, problem.to_string());
        }
    };
    match operation(request) {
        Ok(answer) => (200, serde_json::to_string(&answer).expect("an answer")),
        Err(error) => (error.status_code(), error.to_json()),
    }
}

/// The clock of a test, as the engine reads it.
struct Told<F>(F);

impl<F: Fn() -> SystemTime + Send + Sync> Told<F> {
    fn since_1970(&self) -> Duration {
        self.0().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970")
    }
}

impl<F: Fn() -> SystemTime + Send + Sync> Clock for Told<F> {
    fn now_unix_secs(&self) -> u64 {
        self.since_1970().as_secs()
    }

    fn now_unix_secs_f64(&self) -> f64 {
        self.since_1970().as_secs_f64()
    }
}

/// Another token for the same transaction: no two in one `scope` are the same, and none is longer than the 36
/// characters that it may have.
fn token_in(scope: &str, epoch: u64, token: &str) -> String {
    let half = |which: u8| {
        let mut hasher = DefaultHasher::new();
        (which, scope, epoch, token).hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(0), half(1))
}
