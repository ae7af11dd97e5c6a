//! The engine of a test: embedded in its process, or a server.
//!
//! The real SDK talks to it through a connector. Both kinds of engine stand behind the same door, which is sync: no
//! timer and no other task of the test runs while it answers, so paused time stays paused on both.

use crate::connection::{Answer, Request, body_of, client_over, operation_of, response};
use crate::size::size_of_item;
use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use door::Door;
use endpoint::{ENDPOINT, Endpoint};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

mod door;
mod endpoint;
mod steps;

pub use steps::{Step, action_of, is_read};
use steps::{resources_of, steps_of};

/// One engine with tables and a log of its own. Copies share both.
#[derive(Clone)]
pub struct Engine {
    door: Door,
    /// The attributes of each table's key, the partition key first.
    keys: Arc<Mutex<BTreeMap<String, Vec<String>>>>,
    tokens: Arc<Mutex<Tokens>>,
    log: Arc<Mutex<Vec<Asked>>>,
    uses: Arc<Mutex<BTreeSet<Use>>>,
}

/// How long a token is remembered after the first transaction with it has finished.
///
/// [TransactWriteItems](https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html)
const TOKEN_LIFE: Duration = Duration::from_mins(10);

/// The tokens of transactions.
#[derive(Debug, Default)]
struct Tokens {
    /// How often some were forgotten.
    epoch: u64,
    /// Those of applied transactions: the epoch that each was applied in, and when.
    applied: BTreeMap<String, (u64, Instant)>,
}

impl Tokens {
    fn remembers(&self, token: &str) -> bool {
        self.applied.get(token).is_some_and(|(_, finished)| finished.elapsed() < TOKEN_LIFE)
    }

    /// The epoch of a token that is remembered, or else the current one.
    fn epoch_of(&mut self, token: &str) -> u64 {
        if !self.remembers(token) && self.applied.remove(token).is_some() {
            self.epoch += 1;
        }
        self.applied.get(token).map_or(self.epoch, |(epoch, _)| *epoch)
    }
}

/// One request as the engine saw it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// `GetItem`, `UpdateItem` …
    pub operation: String,
    /// The request.
    pub body: Value,
    /// The HTTP status of its answer.
    pub status: u16,
}

/// One operation on one table, by the name of the permission that it needs: a transaction's steps need those of single
/// operations.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// `GetItem`, `ConditionCheckItem` …
    pub operation: String,
    /// The table. For an index, `table/index/name`.
    pub table: String,
}

/// A connector must be Debug; the engine has nothing to show.
impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

impl Engine {
    /// Empty tables, `(name, partition key)`, on the engine that `DYNAMODB_ENDPOINT` names, else on the embedded one.
    pub fn with_tables(tables: &[(&str, &str)]) -> Self {
        match std::env::var(ENDPOINT) {
            Ok(endpoint) => Self::behind(Door::Endpoint(Endpoint::new(&endpoint)), tables),
            Err(_) => Self::embedded(tables),
        }
    }

    /// Empty tables on the embedded engine in every environment, for tests that need its speed or its clock.
    pub fn embedded(tables: &[(&str, &str)]) -> Self {
        Self::behind(Door::embedded(), tables)
    }

    /// The embedded engine under a clock of the test, which decides the expiry of rows.
    pub fn embedded_at(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self::behind(Door::embedded_at(now), &[])
    }

    /// The same engine and log with uses of its own, for a program that is watched by itself.
    #[must_use]
    pub fn with_own_uses(&self) -> Self {
        Engine { uses: Arc::default(), ..self.clone() }
    }

    fn behind(door: Door, tables: &[(&str, &str)]) -> Self {
        let engine =
            Engine { door, keys: Arc::default(), tokens: Arc::default(), log: Arc::default(), uses: Arc::default() };
        for (table, key) in tables {
            engine.create_table(table, key);
        }
        engine
    }

    /// Creates an empty table with one text for its key.
    pub fn create_table(&self, table: &str, partition_key: &str) {
        let request = json!({
            "TableName": table,
            "KeySchema": [{"AttributeName": partition_key, "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": partition_key, "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        });
        self.raw("CreateTable", &request);
    }

    /// Answers one request the way that the service's HTTP door would: status and body.
    pub fn answer(&self, operation: &str, body: &[u8]) -> (u16, String) {
        let (status, answer) = self.ask(operation, body);
        let body: Value = serde_json::from_slice(body).expect("requests are JSON");
        let uses = resources_of(operation, &body).into_iter();
        let uses = uses.map(|(action, table)| Use { operation: action.to_owned(), table });
        self.uses.lock().expect("no panic while noting").extend(uses);
        let asked = Asked { operation: operation.to_owned(), body, status };
        self.log.lock().expect("no panic while logging").push(asked);
        (status, answer)
    }

    /// The same with the request and its answer read.
    pub fn execute(&self, request: &Request) -> Answer {
        let (status, body) = self.answer(&request.operation, request.body.to_string().as_bytes());
        Answer { status, body: serde_json::from_str(&body).expect("answers are JSON") }
    }

    /// Sends a request that belongs to no client: it must succeed. Neither the log nor the counts show it.
    pub fn raw(&self, operation: &str, request: &Value) -> Value {
        let (status, answer) = self.ask(operation, request.to_string().as_bytes());
        assert_eq!(status, 200, "{operation} {request}: {answer}");
        serde_json::from_str(&answer).expect("answers are JSON")
    }

    fn ask(&self, operation: &str, body: &[u8]) -> (u16, String) {
        match operation {
            "TransactWriteItems" => self.transact(body),
            "CreateTable" => {
                let (status, answer) = self.door.ask(operation, body);
                if status == 200 {
                    self.learn(&serde_json::from_slice(body).expect("requests are JSON"));
                }
                (status, answer)
            }
            _ => self.door.ask(operation, body),
        }
    }

    fn transact(&self, body: &[u8]) -> (u16, String) {
        let mut body: Value = serde_json::from_slice(body).expect("requests are JSON");
        let token = body["ClientRequestToken"].as_str().map(ToOwned::to_owned);
        let mut tokens = self.tokens.lock().expect("no panic while noting");
        if let Some(token) = &token {
            body["ClientRequestToken"] = json!(self.door.token_for(token, tokens.epoch_of(token)));
        }
        let (status, answer) = self.door.ask("TransactWriteItems", body.to_string().as_bytes());
        if let (200, Some(token)) = (status, token) {
            let epoch = tokens.epoch;
            tokens.applied.entry(token).or_insert_with(|| (epoch, Instant::now()));
        }
        (status, answer)
    }

    /// Learns the key of a table from the request that created it.
    fn learn(&self, created: &Value) {
        let schema = created["KeySchema"].as_array().into_iter().flatten(); // the partition key comes first
        let names = schema.filter_map(|member| member["AttributeName"].as_str()).map(ToOwned::to_owned);
        let table = created["TableName"].as_str().unwrap_or_default().to_owned();
        self.keys.lock().expect("no panic while learning").insert(table, names.collect());
    }

    /// Lets the engine forget the tokens of all transactions at once. It forgets each by itself, as `DynamoDB` does, when
    /// 10 minutes of tokio's time have passed. A transaction that comes again then is executed again.
    pub fn forget_tokens(&self) {
        let mut tokens = self.tokens.lock().expect("no panic while noting");
        *tokens = Tokens { epoch: tokens.epoch + 1, applied: BTreeMap::new() };
    }

    /// Whether a transaction with this token was applied. Another one is then answered without being executed.
    pub fn remembers(&self, token: &str) -> bool {
        self.tokens.lock().expect("no panic while noting").remembers(token)
    }

    /// The rows and actions of a request: one step for most operations, one per member of a transaction or a batch.
    pub fn steps_of(&self, operation: &str, body: &Value) -> Vec<Step> {
        let keys = self.keys.lock().expect("no panic while reading");
        steps_of(operation, body, |table| keys.get(table).cloned().unwrap_or_default())
    }

    /// The attribute that is the partition key of a table.
    pub fn key_of(&self, table: &str) -> String {
        let keys = self.keys.lock().expect("no panic while reading");
        let key = keys.get(table).and_then(|names| names.first());
        key.unwrap_or_else(|| panic!("the test has no table {table}")).clone()
    }

    /// The tables, each with its partition key.
    pub fn tables(&self) -> Vec<(String, String)> {
        let keys = self.keys.lock().expect("no panic while reading");
        keys.iter().filter_map(|(table, names)| Some((table.clone(), names.first()?.clone()))).collect()
    }

    /// The requests since the last time, oldest first.
    pub fn take_log(&self) -> Vec<Asked> {
        std::mem::take(&mut self.log.lock().expect("no panic while logging"))
    }

    /// Reads and writes since the last time.
    pub fn take_counts(&self) -> (usize, usize) {
        let log = self.take_log();
        let reads = log.iter().filter(|asked| is_read(&asked.operation)).count();
        (reads, log.len() - reads)
    }

    /// Rows `(table, partition key, id)` at one moment, in `DynamoDB`'s JSON; `Null` where there is none. 100 at most.
    pub fn snapshot(&self, rows: &[(&str, &str, &str)]) -> Vec<Value> {
        let get =
            |(table, key, id): &(&str, &str, &str)| json!({"Get": {"TableName": table, "Key": {*key: {"S": id}}}});
        let request = json!({"TransactItems": rows.iter().map(get).collect::<Vec<_>>()});
        let mut answer = self.raw("TransactGetItems", &request);
        let items = answer["Responses"].as_array_mut().expect("one response for each item");
        items.iter_mut().map(|response| response["Item"].take()).collect()
    }

    /// Which operations on which tables were ever asked for: the permissions that a program needs.
    pub fn uses(&self) -> BTreeSet<Use> {
        self.uses.lock().expect("no panic while noting").clone()
    }

    /// A row as it is stored, in `DynamoDB`'s JSON; `Null` where there is none. For a key that is one text.
    pub fn row(&self, table: &str, key: &str, id: &str) -> Value {
        self.row_at(table, &json!({key: {"S": id}}))
    }

    /// The same for any key, given in `DynamoDB`'s JSON.
    pub fn row_at(&self, table: &str, key: &Value) -> Value {
        let request = json!({"TableName": table, "Key": key, "ConsistentRead": true});
        self.raw("GetItem", &request)["Item"].take()
    }

    /// The size of the row of a step in bytes; 0 if there is none.
    pub(crate) fn size_of_row(&self, step: &Step) -> usize {
        let request = json!({"TableName": step.table, "Key": step.key, "ConsistentRead": true});
        let (_, answer) = self.ask("GetItem", request.to_string().as_bytes());
        size_of_item(&serde_json::from_str::<Value>(&answer).expect("answers are JSON")["Item"])
    }

    /// Removes the rows that have ended by their TTL attribute and the engine's clock. Gives how many there were.
    pub fn sweep(&self) -> usize {
        self.door.sweep()
    }

    /// A client of the real SDK straight to this engine: no faults, no delay, no retries.
    pub fn client(&self) -> Client {
        client_over(Direct(self.clone()))
    }
}

/// Answers at once and never fails.
#[derive(Debug)]
struct Direct(Engine);

impl HttpConnector for Direct {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (status, body) = self.0.answer(&operation_of(&request), &body_of(&request));
        HttpConnectorFuture::ready(response(status, body))
    }
}

/// A number of a stored row.
pub fn number(row: &Value, name: &str) -> i64 {
    row[name]["N"].as_str().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{name} of {row}"))
}
