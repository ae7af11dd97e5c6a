//! The engine that a test asks: the embedded one in process, or the one that `DYNAMODB_ENDPOINT` names.
//!
//! The real SDK talks to it through a connector. Both kinds of engine stand behind the same door, which is sync: no
//! timer and no other task of the test runs while it answers, so paused time stays paused on both.

use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, retry::RetryConfig};
use aws_sdk_dynamodb::{Client, Config};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use dev::template::{KeyAttribute, Template};
use door::{Door, ENDPOINT, Endpoint};
use dynoxide::Database;
use fencepost::{Clock, Rng, Store};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::SystemTime;

mod door;
mod steps;
mod transactions;

pub use steps::{Step, action_of, is_read};
use steps::{resources_of, steps_of};

/// One engine with tables of its own, and the log of what it was asked.
#[derive(Clone)]
pub struct Engine {
    door: Door,
    /// The partition key of each table.
    keys: Arc<BTreeMap<String, String>>,
    tokens: Arc<Mutex<Tokens>>,
    log: Arc<Mutex<Vec<Asked>>>,
    uses: Arc<Mutex<BTreeSet<Use>>>,
}

/// What the engine knows of the tokens of transactions.
#[derive(Debug, Default)]
struct Tokens {
    /// How often they were forgotten.
    epoch: u64,
    /// Those of applied transactions, since then.
    applied: BTreeSet<String>,
}

/// One request as the engine saw it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// `GetItem`, `UpdateItem` …
    pub operation: String,
    pub body: Value,
    pub status: u16,
}

/// One operation on one table, by the name of the permission that it needs: a transaction's steps need those of single
/// operations.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    pub operation: String,
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

    /// Empty tables on the embedded engine whatever the environment says, for what needs its speed or its clock.
    pub fn embedded(tables: &[(&str, &str)]) -> Self {
        Self::behind(Door::Embedded(Database::memory().expect("SQLite in memory")), tables)
    }

    /// The same engine and log with uses of its own, for a function that is watched by itself.
    pub fn with_own_uses(&self) -> Self {
        Engine { uses: Arc::default(), ..self.clone() }
    }

    fn behind(door: Door, tables: &[(&str, &str)]) -> Self {
        let keys = tables.iter().map(|(table, key)| ((*table).to_owned(), (*key).to_owned())).collect();
        let engine =
            Engine { door, keys: Arc::new(keys), tokens: Arc::default(), log: Arc::default(), uses: Arc::default() };
        for (table, key) in tables {
            engine.raw("CreateTable", &description(table, key));
        }
        engine
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

    /// Does what no client of the test does: it must succeed, and neither the log nor the counts show it.
    pub fn raw(&self, operation: &str, request: &Value) -> Value {
        let (status, answer) = self.ask(operation, request.to_string().as_bytes());
        assert_eq!(status, 200, "{operation} {request}: {answer}");
        serde_json::from_str(&answer).expect("answers are JSON")
    }

    fn ask(&self, operation: &str, body: &[u8]) -> (u16, String) {
        if operation != "TransactWriteItems" {
            return self.door.ask(operation, body);
        }
        let mut body: Value = serde_json::from_slice(body).expect("requests are JSON");
        let token = body["ClientRequestToken"].as_str().map(ToOwned::to_owned);
        let mut tokens = self.tokens.lock().expect("no panic while noting");
        if let Some(token) = &token {
            body["ClientRequestToken"] = json!(self.door.token_for(token, tokens.epoch));
        }
        let (status, answer) = self.door.ask(operation, body.to_string().as_bytes());
        if status == 200 {
            tokens.applied.extend(token);
        }
        (status, answer)
    }

    /// Lets the engine forget the tokens of all transactions, as `DynamoDB` does after 10 minutes: one that comes again
    /// is executed again.
    pub fn forget_tokens(&self) {
        let mut tokens = self.tokens.lock().expect("no panic while noting");
        *tokens = Tokens { epoch: tokens.epoch + 1, applied: BTreeSet::new() };
    }

    /// Whether a transaction with this token was applied, so that another is answered without being executed.
    pub fn remembers(&self, token: &str) -> bool {
        self.tokens.lock().expect("no panic while noting").applied.contains(token)
    }

    /// What a request does to which rows: one step for most operations, one per member of a transaction or a batch.
    pub fn steps_of(&self, operation: &str, body: &Value) -> Vec<Step> {
        steps_of(operation, body, |table| self.key_of(table))
    }

    /// The attribute that is the partition key of a table.
    pub fn key_of(&self, table: &str) -> &str {
        self.keys.get(table).unwrap_or_else(|| panic!("the test has no table {table}"))
    }

    /// The tables, each with its partition key.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.keys.iter().map(|(table, key)| (table.as_str(), key.as_str()))
    }

    /// What was asked since the last time, oldest first.
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

    /// Which operations on which tables were ever asked for.
    pub fn uses(&self) -> BTreeSet<Use> {
        self.uses.lock().expect("no panic while noting").clone()
    }

    /// A row as it is stored, in DynamoDB's JSON; `Null` where there is none.
    pub fn row(&self, table: &str, key: &str, id: &str) -> Value {
        let request = json!({"TableName": table, "Key": {key: {"S": id}}, "ConsistentRead": true});
        self.raw("GetItem", &request)["Item"].take()
    }

    /// Removes the rows whose TTL attribute says that they have ended, by the machine's clock. Gives how many there were.
    pub fn sweep(&self) -> usize {
        self.door.sweep()
    }

    /// A client of the real SDK whose requests go straight to this engine.
    pub fn client(&self) -> Client {
        client_over(Direct(self.clone()))
    }
}

/// A table with this partition key, and with the indexes that template.yaml gives the table of this name.
fn description(table: &str, key: &str) -> Value {
    static TEMPLATE: LazyLock<Template> =
        LazyLock::new(|| Template::load(dev::workspace()).unwrap_or_else(|failure| panic!("{failure}")));
    let part = |attribute: &KeyAttribute| json!({"AttributeName": attribute.name, "KeyType": attribute.role});
    let mut attributes = BTreeMap::from([(key, "S")]);
    let mut indexes = Vec::new();
    for index in TEMPLATE.tables.iter().filter(|own| own.name == table).flat_map(|own| &own.indexes) {
        attributes.extend(index.key.iter().map(|attribute| (attribute.name.as_str(), attribute.kind.as_str())));
        let mut projection = json!({"ProjectionType": index.projection});
        if !index.includes.is_empty() {
            projection["NonKeyAttributes"] = json!(index.includes);
        }
        let schema: Vec<_> = index.key.iter().map(part).collect();
        indexes.push(json!({"IndexName": index.name, "KeySchema": schema, "Projection": projection}));
    }
    let attribute = |(name, kind): (&str, &str)| json!({"AttributeName": name, "AttributeType": kind});
    let mut description = json!({
        "TableName": table,
        "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
        "AttributeDefinitions": attributes.into_iter().map(attribute).collect::<Vec<_>>(),
        "BillingMode": "PAY_PER_REQUEST",
    });
    if !indexes.is_empty() {
        description["GlobalSecondaryIndexes"] = json!(indexes);
    }
    description
}

/// A number of a stored row.
pub fn number(row: &Value, name: &str) -> i64 {
    row[name]["N"].as_str().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{name} of {row}"))
}

/// A client of the real SDK over any connector; its own retries are off, as in production.
pub fn client_over(connector: impl HttpConnector + 'static) -> Client {
    let connector = SharedHttpConnector::new(connector);
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "tests"))
        .endpoint_url("http://engine.invalid")
        .retry_config(RetryConfig::disabled())
        .http_client(http_client_fn(move |_, _| connector.clone()))
        .build();
    Client::from_conf(config)
}

/// The operation that a request names, without the service's prefix.
pub fn operation_of(request: &HttpRequest) -> String {
    let target = request.headers().get("x-amz-target").expect("the SDK names its target");
    target.rsplit('.').next().expect("a name").to_owned()
}

/// The bytes of a request.
pub fn body_of(request: &HttpRequest) -> Vec<u8> {
    request.body().bytes().expect("requests are buffered").to_vec()
}

/// An answer in the service's clothes, as a connector gives it.
#[expect(clippy::unnecessary_wraps, reason = "a connector's answer is a Result")]
pub fn response(status: u16, body: impl Into<String>) -> Result<HttpResponse, ConnectorError> {
    let status = status.try_into().expect("a status");
    let mut response = HttpResponse::new(status, SdkBody::from(body.into()));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    Ok(response)
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

/// A store over this client, under this clock and with these random numbers.
pub fn store(
    client: &Client,
    now: impl Fn() -> SystemTime + Send + Sync + 'static,
    random: impl Fn() -> u64 + Send + Sync + 'static,
) -> Store {
    Store::new(client).with_clock(Clock::new(now)).with_rng(Rng::new(random))
}
