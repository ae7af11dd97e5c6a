//! Two sends of one change that overtake each other there and back, with another writer between them.

use super::accounts::{Account, TABLE, balance, change, engine};
use crate::harness::engine::{Engine, body_of, client_over, is_read, operation_of, response};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use fencepost::{Edit, ItemVersion, Store, Table};
use serde_json::json;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::time::sleep;

/// The milliseconds of a write on its way there and of its answer back.
type Way = (u64, u64);

/// The usual milliseconds in each direction.
const HOP: u64 = 5;

/// A connector that delays its first writes there and back. A request arrives even after its client has given up.
#[derive(Clone, Debug)]
struct Slow {
    engine: Engine,
    ways: Vec<Way>,
    writes: Arc<AtomicUsize>,
}

impl HttpConnector for Slow {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (operation, body, engine) = (operation_of(&request), body_of(&request), self.engine.clone());
        let usual = (HOP, HOP);
        let (there, back) = if is_read(&operation) {
            usual
        } else {
            self.ways.get(self.writes.fetch_add(1, SeqCst)).copied().unwrap_or(usual)
        };
        let answered = tokio::spawn(async move {
            sleep(Duration::from_millis(there)).await;
            let answer = engine.answer(&operation, &body);
            sleep(Duration::from_millis(back)).await;
            answer
        });
        HttpConnectorFuture::new(async move {
            let (status, body) = answered.await.expect("no panic");
            response(status, body)
        })
    }
}

/// A change of an account of 50. Each adds 100.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Deed {
    Update,
    UpdateAtVersion,
    Add,
    /// The other writer puts it out of bounds for a while.
    AddWithin,
}

const OURS: i64 = 100;

impl Deed {
    const ALL: [Deed; 4] = [Deed::Update, Deed::UpdateAtVersion, Deed::Add, Deed::AddWithin];

    /// Returns the error told to the caller, if any.
    async fn play(self, table: &Table<Account>, at: ItemVersion) -> Result<(), String> {
        let key = "a-1";
        let put = |account: &Account| Ok::<_, Infallible>(Some(Account { balance: account.balance + OURS }));
        match self {
            Deed::Update => table.update_with_retry(key, put).await.map(drop).map_err(|e| e.to_string()),
            Deed::UpdateAtVersion => table.update_at_version(key, at, put).await.map(drop).map_err(|e| e.to_string()),
            Deed::Add => add(table, &Edit::add("balance", OURS, ..)).await,
            Deed::AddWithin => add(table, &Edit::add("balance", OURS, 0..=160)).await,
        }
    }
}

async fn add(table: &Table<Account>, add: &Edit) -> Result<(), String> {
    table.edit("a-1", add).await.map(drop).map_err(|error| error.to_string())
}

/// Another writer adds 20 at this moment, and takes it back 100 ms later.
async fn other_writer(engine: Engine, at: u64) {
    for (after, by) in [(at, "20"), (100, "-20")] {
        sleep(Duration::from_millis(after)).await;
        let (key, values) = (json!({"accountId": {"S": "a-1"}}), json!({":by": {"N": by}, ":one": {"N": "1"}}));
        change(&engine, TABLE, &key, "SET balance = balance + :by, #v = #v + :one", &values);
    }
}

/// The answer to the caller, and the added amount after all arrivals.
async fn play(deed: Deed, ways: [Way; 2], other: Option<u64>) -> (Result<(), String>, i64) {
    let engine = engine();
    let slow = Slow { engine: engine.clone(), ways: ways.to_vec(), writes: Arc::default() };
    let direct: Table<Account> = Store::new(&engine.client()).table(TABLE);
    let at = direct.create("a-1", &Account { balance: 50 }).await.expect("a free key").at;
    let table: Table<Account> = Store::new(&client_over(slow)).table(TABLE);
    table.get("a-1").await.expect("an answer"); // so the client is connected, and hedges
    if let Some(moment) = other {
        tokio::spawn(other_writer(engine.clone(), moment));
    }
    let told = deed.play(&table, at).await;
    sleep(Duration::from_mins(10)).await;
    (told, balance(&engine, "a-1") - 50)
}

#[tokio::test(start_paused = true)]
async fn whichever_send_arrives_or_is_answered_first_no_change_is_doubled_and_no_verdict_is_false() {
    let mut seen = BTreeMap::<(Deed, &str), u32>::new();
    for deed in Deed::ALL {
        for way in 0..16 {
            let pick = |bit: u32, few: u64, many: u64| if way >> bit & 1 == 0 { few } else { many };
            // The second send leaves 150 ms after the first.
            let ways = [(pick(0, HOP, 300), pick(1, HOP, 400)), (pick(2, HOP, 200), pick(3, HOP, 300))];
            for other in [None, Some(2), Some(100), Some(250), Some(330)] {
                let (told, held) = play(deed, ways, other).await;
                let (is_true, what) = match &told {
                    Ok(()) => (held == OURS, "applied"),
                    Err(error) if error.starts_with("outcome unknown") => (held == 0 || held == OURS, "unknown"),
                    Err(_) => (held == 0, "not applied"),
                };
                assert!(is_true, "{deed:?} {ways:?} other at {other:?}: told {told:?}, {held} were added");
                *seen.entry((deed, what)).or_default() += 1;
            }
        }
    }
    for deed in Deed::ALL {
        assert!(seen.contains_key(&(deed, "applied")), "{seen:?}");
    }
    assert!(seen.contains_key(&(Deed::UpdateAtVersion, "not applied")), "{seen:?}");
    assert!(seen.contains_key(&(Deed::AddWithin, "not applied")), "{seen:?}");
    println!("{seen:?}");
}
