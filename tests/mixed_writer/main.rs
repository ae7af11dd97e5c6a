//! Changes the items of a table that programs in Python write too (`.ci/mixed-writers`, `.ci/adoption`):
//!
//! ```text
//! mixed_writer increments TABLE SEED ITEMS COUNT LOST   COUNT may be `until-told`: until the input ends
//! mixed_writer list TABLE
//! mixed_writer delete TABLE FROM TO
//! ```
//!
//! Each prints one line of JSON in the end. LOST is the number of lost answers in 100.
#![allow(clippy::print_stdout, reason = "the check reads what became of the changes")]

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{HttpClient, SharedHttpClient};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use fastrand::Rng;
use fencepost::field::Field;
use fencepost::lambda::{client_from_env, https_client};
use fencepost::{Failure, FailureKind, Key, Names, Record, Settings, Source, Store, Table, UpdateError};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, stdin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The programs are fast: an answer lost in silence is noticed after 150 ms.
const SETTINGS: Settings = Settings::without_ttl()
    .shared_with_versioned_writers()
    .swept()
    .names(Names::DEFAULT.version("version"))
    .remembered_writes(64);

/// An item of the model of `PynamoDB` in `.ci/mixed_writers/items.py`.
#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "shopId", sort = "itemId", settings = SETTINGS)]
struct Item {
    stock: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

const STOCK: Field<Item, i64> = Field::of("stock");

fn item_id(number: usize) -> String {
    format!("item-{number:05}")
}

fn key(id: &str) -> Key {
    Key::from(("shop-1", id))
}

/// The outcomes of the increments.
#[derive(Default, Serialize)]
struct Outcomes {
    /// How many were acknowledged, for each item.
    acknowledged: BTreeMap<String, u64>,
    /// How many may have been applied.
    unknown: BTreeMap<String, u64>,
    /// The number of calls that may be repeated, because nothing was applied.
    again: u64,
    /// The other answers. There should be none.
    failed: Vec<String>,
    /// How many answers were lost.
    lost: u64,
}

impl Outcomes {
    fn count(&mut self, id: String, outcome: Result<(), Failure>) {
        match outcome {
            Ok(()) => *self.acknowledged.entry(id).or_default() += 1,
            Err(failure) if failure.is_outcome_unknown() => *self.unknown.entry(id).or_default() += 1,
            Err(failure) if failure.is_retryable() => self.again += 1,
            Err(failure) => self.failed.push(format!("{id}: {failure}: {failure:?}")),
        }
    }

    fn done(&self) -> u64 {
        self.acknowledged.values().chain(self.unknown.values()).sum()
    }
}

/// The outcome of an increment. Nothing refuses one: an error that does is a failure with its text.
fn told<T>(ended: Result<T, UpdateError<impl fmt::Debug>>) -> Result<(), Failure> {
    match ended {
        Ok(_) => Ok(()),
        Err(UpdateError::Failed(failure)) => Err(failure),
        Err(error) => Err(Failure::of(FailureKind::InvalidRecord { reason: format!("{error:?}") })),
    }
}

/// When a program has done enough.
enum Until {
    Done(u64),
    Told(Arc<AtomicBool>),
}

impl Until {
    fn parse(count: &str) -> Result<Self, Source> {
        if count != "until-told" {
            return Ok(Until::Done(count.parse()?));
        }
        let told = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&told);
        std::thread::spawn(move || {
            let _ = stdin().read_to_end(&mut Vec::new());
            tell.store(true, Relaxed);
        });
        Ok(Until::Told(told))
    }

    async fn is_over(&self, done: u64) -> bool {
        match self {
            Until::Done(count) => done >= *count,
            Until::Told(told) => {
                tokio::time::sleep(Duration::from_millis(10)).await; // it has no haste
                told.load(Relaxed)
            }
        }
    }
}

/// Half of the increments are updates, half are adds.
async fn increments(table: &str, chance: &mut Rng, items: usize, until: &Until, lost: u8) -> Outcomes {
    let losses = Losses { of_100: lost, chance: Mutex::new(chance.fork()), lost: AtomicU64::default() };
    let losses = Arc::new(losses);
    let config = client_from_env().config().to_builder().http_client(losing(https_client(), &losses)).build();
    let rows = Store::new(&Client::from_conf(config)).table::<Item>(table);
    let mut outcomes = Outcomes::default();
    while !until.is_over(outcomes.done()).await && outcomes.failed.is_empty() {
        let id = item_id(chance.usize(0..items));
        let outcome = if chance.bool() {
            let one_more = |item: &Item| Item { stock: item.stock + 1, note: item.note.clone() };
            told(rows.update_with_retry(&key(&id), one_more).await)
        } else {
            told(rows.edit(&key(&id), &STOCK.add(1, ..)).await)
        };
        outcomes.count(id, outcome);
    }
    outcomes.lost = losses.lost.load(Relaxed);
    outcomes
}

/// Lists the items by a query of their partition.
async fn list(items: &Table<Item>) -> Result<serde_json::Value, Source> {
    let (mut count, mut stock) = (0, 0);
    let mut pages = items.query("shop-1").pages();
    while let Some(page) = pages.next_page().await? {
        count += page.items.len();
        stock += page.items.iter().map(|item| item.value.stock).sum::<i64>();
    }
    Ok(json!({"items": count, "stock": stock}))
}

async fn delete(items: &Table<Item>, numbers: std::ops::Range<usize>) -> Result<serde_json::Value, Source> {
    for number in numbers.clone() {
        items.delete(&key(&item_id(number))).await?;
    }
    Ok(json!({"deleted": numbers.len()}))
}

/// Loses so many of 100 answers. The requests are carried out.
struct Losses {
    of_100: u8,
    chance: Mutex<Rng>,
    lost: AtomicU64,
}

/// The way in which an answer is lost.
#[derive(Clone, Copy)]
enum Loss {
    Broken,
    Error500,
    Silence,
}

impl fmt::Debug for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of 100", self.of_100)
    }
}

impl Losses {
    fn draw(&self) -> Option<Loss> {
        let mut chance = self.chance.lock().expect("no panic while drawing");
        if chance.u8(0..100) >= self.of_100 {
            return None;
        }
        self.lost.fetch_add(1, Relaxed);
        chance.choice([Loss::Broken, Loss::Error500, Loss::Silence])
    }
}

/// The same client, on which answers get lost.
fn losing(client: SharedHttpClient, losses: &Arc<Losses>) -> SharedHttpClient {
    let losses = Arc::clone(losses);
    http_client_fn(move |settings, components| {
        let connector = client.http_connector(settings, components);
        SharedHttpConnector::new(Losing { connector, losses: Arc::clone(&losses) })
    })
}

#[derive(Debug)]
struct Losing {
    connector: SharedHttpConnector,
    losses: Arc<Losses>,
}

impl HttpConnector for Losing {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (answer, loss) = (self.connector.call(request), self.losses.draw());
        HttpConnectorFuture::new(async move {
            let answer = answer.await?;
            match loss {
                None => Ok(answer),
                Some(Loss::Broken) => Err(ConnectorError::io("the connection broke".into())),
                Some(Loss::Error500) => Ok(HttpResponse::new(
                    500.try_into().expect("a status"),
                    SdkBody::from(r#"{"__type":"InternalServerError"}"#),
                )),
                Some(Loss::Silence) => std::future::pending().await,
            }
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let items = |table: &str| Store::new(&client_from_env()).table::<Item>(table);
    let said = match arguments[..] {
        ["increments", table, seed, items, count, lost] => {
            let mut hasher = DefaultHasher::new();
            seed.hash(&mut hasher);
            let (mut chance, until) = (Rng::with_seed(hasher.finish()), Until::parse(count)?);
            json!(increments(table, &mut chance, items.parse()?, &until, lost.parse()?).await)
        }
        ["list", table] => list(&items(table)).await?,
        ["delete", table, from, to] => delete(&items(table), from.parse()?..to.parse()?).await?,
        _ => return Err("mixed_writer increments|list|delete TABLE …".into()),
    };
    println!("{said}");
    Ok(())
}
