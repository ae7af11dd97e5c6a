//! The rows of the models behave like an engine under the requests of production.
//!
//! Random writers see random states of a row, present or past, and send random writes. Each request is built by the
//! crate and sent to the embedded engine. Outcomes and rows must be those of the models. `FENCEPOST_SEED=7` plays one
//! seed again.
#![expect(clippy::disallowed_methods, reason = "these tests send single requests of the crate, outside its loops")]
#![expect(clippy::print_stdout, reason = "a random test prints its seed")]

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};
use fastrand::Rng;
use fencepost::lease::Leases;
use fencepost::lww::LwwRecord;
use fencepost::testing::{AsKind, LeaseTimes, LeaseWrite, RowWrite, WriteId, Writer, lease_request, newest_request};
use fencepost::{Attributes, Edit, Failure, ItemVersion, Key, Record, Settings};
use fencepost_test::Engine;
use fencepost_test::seeds::{SEED, asked};
use models::leases::{LeaseModel, LeaseRow, Request as LeaseCall};
use models::newest::{Instance, Kind, Newest, Request as NewestCall, Stored, order_key};
use models::protocol::Limits;
use models::row::{At, Id, Refused, Row, Write, id, incarnation, version};
use models::world::Faults;
use serde::{Deserialize, Serialize};
use std::time::{Duration, UNIX_EPOCH};

const TABLE: &str = "Things";
const R: u64 = 3;
const W: u8 = 2;
const NONE: Limits =
    Limits { sends: 0, faults: Faults { losses: 0, copies: 0, throttles: 0 }, life: 0, hedges: false, begins: 1 };

#[derive(Clone, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "id", settings = Settings::own().remembered_writes(R).edit_window(W as u64))]
struct Thing {
    stock: i8,
}

#[derive(PartialEq, Serialize, Deserialize, Record)]
#[record(key = "id")]
struct Host {
    number: u8,
    name: String,
    value: u8,
}

impl LwwRecord for Host {
    const ORDERED_BY: &'static str = "number";
    const NAMED_BY: &'static str = "name";
}

/// Plays so many random rows, each with an engine of its own key. Prints the seed.
async fn play(rows: u64, key: &'static str, row: impl AsyncFn(&Client, &str, &mut Rng) -> [usize; 2]) {
    let seed = asked(SEED).unwrap_or_else(|| fastrand::u64(0..1_000_000));
    println!("{SEED}={seed} plays this again");
    let (engine, mut chance) = (Engine::embedded(&[(TABLE, key)]), Rng::with_seed(seed));
    let client = engine.client();
    let mut outcomes = [0, 0];
    for number in 0..rows {
        let [refused, applied] = row(&client, &number.to_string(), &mut chance).await;
        outcomes = [outcomes[0] + refused, outcomes[1] + applied];
    }
    let [refused, applied] = outcomes;
    assert!(refused > 50 && applied > 50, "too few of one kind: {refused} refused, {applied} applied");
}

/// Whether the engine applies this request.
async fn applies(client: &Client, request: TransactWriteItem) -> bool {
    match client.transact_write_items().transact_items(request).send().await {
        Ok(_) => true,
        Err(error) => {
            let error = error.into_service_error();
            assert!(error.is_transaction_canceled_exception(), "{error:?}");
            assert!(format!("{error:?}").contains("ConditionalCheckFailed"), "{error:?}");
            false
        }
    }
}

async fn stored(client: &Client, key: &str, value: &str) -> Option<Attributes> {
    let read = client.get_item().table_name(TABLE).key(key, AttributeValue::S(value.to_owned())).consistent_read(true);
    read.send().await.expect("the engine answers").item.map(fencepost::from_sdk)
}

async fn remove(client: &Client, key: &str, value: &str) {
    let remove = client.delete_item().table_name(TABLE).key(key, AttributeValue::S(value.to_owned()));
    remove.send().await.expect("the engine answers");
}

fn number<N: std::str::FromStr>(item: &Attributes, name: &str) -> Option<N> {
    item.get(name)?.as_n()?.parse().ok()
}

/// A stored row as the model has it. Panics where the row has anything else.
fn row_of(item: &Attributes) -> Row {
    let known = ["id", "stock", "_version", "_incarnation", "_writes", "_purgeAt", "_fence"];
    assert!(item.keys().all(|name| known.contains(&name.as_str())), "{item:?}");
    let last = |bytes: &[u8]| {
        assert!(bytes.len() == 8 && bytes[..7] == [0; 7], "{bytes:?}");
        bytes[7]
    };
    let trace = |(name, value): (&String, &fencepost::AttributeValue)| {
        let id = last(WriteId::from_name(name).expect("an id").as_bytes());
        (id, value.as_n().expect("a number").parse().expect("a small number"))
    };
    let mut memory: Vec<(Id, i8)> = item["_writes"].as_m().expect("a map").iter().map(trace).collect();
    memory.sort_unstable();
    Row {
        at: At {
            version: number(item, "_version").expect("a version"),
            incarnation: last(item["_incarnation"].as_b().expect("bytes").as_ref()),
        },
        memory,
        stock: number(item, "stock").unwrap_or_default(),
        purge_at: number(item, "_purgeAt"),
        fence: number(item, "_fence"),
    }
}

/// One write, as production builds it and as the model has it.
struct Sent<'a> {
    real: RowWrite<'a, Thing>,
    modelled: Write,
    fence: Option<u64>,
}

/// A random write by a writer that saw this row and burns these ids.
fn any_write<'a>(
    chance: &mut Rng,
    seen: Option<&Row>,
    (by, burn): (Id, &[Id]),
    thing: &'a Thing,
    add: &'a Edit,
    purge_at: u32,
) -> Sent<'a> {
    let fence = chance.bool().then(|| chance.u64(1..4)).filter(|_| chance.bool());
    let (low, high) = (-thing.stock, 9 - thing.stock);
    let Some(row) = seen else {
        let (real, modelled, fence) = match chance.u8(0..4) {
            0 => (RowWrite::BurnCreate, Write::BurnCreate { id: by, purge_at }, None),
            1 => (RowWrite::AddAnywhere(add), Write::AddAnywhere { by: thing.stock, low, high }, fence),
            _ => (RowWrite::Create(thing), Write::Create { id: by, stock: thing.stock }, fence),
        };
        return Sent { real, modelled, fence };
    };
    let (at, prune) = (row.at, row.prunable(R, by));
    let named = ItemVersion { version: version(at.version), incarnation: incarnation(at.incarnation) };
    let (real, modelled) = match chance.u8(0..10) {
        0..=2 => {
            (RowWrite::Update(thing), Write::Update { at, id: by, prune, burn: burn.to_vec(), stock: thing.stock })
        }
        3 => (RowWrite::Delete, Write::Bury { at, id: by, prune, purge_at }),
        4 => (RowWrite::DeleteAt(named), Write::Bury { at, id: by, prune: Vec::new(), purge_at }),
        5 | 6 => (
            RowWrite::Add(add),
            Write::Add { at, window: W, id: by, prune, burn: burn.to_vec(), by: thing.stock, low, high },
        ),
        7 => (RowWrite::AddAnywhere(add), Write::AddAnywhere { by: thing.stock, low, high }),
        8 => {
            let modelled = Write::Burn { at, window: W, id: by, burn: burn.to_vec() };
            return Sent { real: RowWrite::Burn, modelled, fence: None };
        }
        _ => return Sent { real: RowWrite::Check, modelled: Write::Check { at }, fence: None },
    };
    Sent { real, modelled, fence }
}

/// Whether a row of this incarnation was there before.
fn was_before(row: Option<&Row>, pasts: &[(Option<Row>, Option<Attributes>)]) -> bool {
    row.is_some_and(|row| pasts.iter().flat_map(|(past, _)| past).any(|past| past.at.incarnation == row.at.incarnation))
}

async fn random_row(client: &Client, name: &str, chance: &mut Rng) -> [usize; 2] {
    let key = Key::from(name);
    let mut row: Option<Row> = None;
    let mut pasts: Vec<(Option<Row>, Option<Attributes>)> = vec![(None, None)];
    let mut outcomes = [0, 0];
    for step in 1..=24 {
        // Half of the writers see the row as it is.
        let past = if chance.bool() { pasts.len() - 1 } else { chance.usize(0..pasts.len()) };
        let (seen, item) = &pasts[past];
        let by = if chance.u8(0..3) == 0 { chance.u8(1..=step) } else { step };
        if seen.as_ref().is_some_and(|row| row.prunable(R, by).contains(&by)) {
            continue; // A change whose id the row remembers sends nothing more.
        }
        // An attempt burns others of its own change. An id that it also removes would be named twice, and rejected.
        let removes = |id: Id| seen.iter().any(|row| row.prunable(R, by).contains(&id));
        let mut burn: Vec<Id> = (0..chance.u8(0..3)).map(|_| chance.u8(1..=step)).collect();
        burn.retain(|id| *id != by && !removes(*id));
        burn.sort_unstable();
        burn.dedup();
        let earlier: Vec<_> = burn.iter().map(|earlier| id(*earlier)).collect();
        let thing = Thing { stock: chance.i8(-3..9) };
        let add = Edit::add("stock", i64::from(thing.stock), 0..=9);
        let purge_at = chance.u32(1..1000);
        let Sent { real, modelled, fence } = any_write(chance, seen.as_ref(), (by, &burn), &thing, &add, purge_at);
        let writer = Writer {
            table: TABLE,
            key: &key,
            seen: item.as_ref(),
            id: id(by),
            burn: if matches!(real, RowWrite::Update(_) | RowWrite::Add(_) | RowWrite::Burn) { &earlier } else { &[] },
            purge_at: UNIX_EPOCH + Duration::from_secs(u64::from(purge_at)),
            fence,
        };
        let request = match writer.request(&real) {
            Ok(request) => request.expect("each of these has a request"),
            Err(Failure::Fenced) => continue, // The row that was seen forbids it already.
            Err(failure) => panic!("{failure}"),
        };
        let told = format!("row {name}, step {step}: {modelled:?} under {fence:?} on {row:?}");
        let expected = modelled.apply(row.as_ref(), fence, None);
        if row.is_none() && expected.as_ref().is_ok_and(|made| was_before(made.as_ref(), &pasts)) {
            continue; // Ids are unique, so no two rows have one incarnation.
        }
        assert_eq!(applies(client, request).await, expected.is_ok(), "{told}");
        outcomes[usize::from(expected.is_ok())] += 1;
        row = expected.unwrap_or_else(|Refused| row.clone());
        let item = stored(client, "id", name).await;
        assert_eq!(item.as_ref().map(row_of), row, "{told}");
        if row.as_ref().is_some_and(|row| row.purge_at.is_some()) && chance.u8(0..3) == 0 {
            remove(client, "id", name).await;
            row = None;
            pasts.push((None, None));
        } else {
            pasts.push((row.clone(), item));
        }
    }
    outcomes
}

#[tokio::test]
async fn a_row_of_the_model_takes_and_refuses_what_the_engine_does_and_is_left_the_same() {
    play(60, "id", random_row).await;
}

fn lease_of(item: &Attributes) -> LeaseRow {
    let whole = |name: &str| number(item, name).expect("a number");
    LeaseRow {
        holder: item.get("holder").map(|holder| holder.as_s().expect("a text").parse().expect("a process")),
        token: whole("token"),
        renewals: whole("renewals"),
        expires_at: whole("expiresAt"),
        acquire_id: item["acquireId"].as_b().expect("bytes")[0],
        purge_at: number(item, "purgeAt").expect("a number"),
    }
}

async fn random_lease(client: &Client, name: &str, chance: &mut Rng) -> [usize; 2] {
    let model = LeaseModel {
        calls: Vec::new(),
        length: 2,
        skew: 1,
        apart: 0,
        seconds: 0,
        weeks: 0,
        limits: NONE,
        without: None,
    };
    let mut row: Option<LeaseRow> = None;
    let mut outcomes = [0, 0];
    for step in 0..20 {
        let now = UNIX_EPOCH + Duration::from_secs(chance.u64(1000..2000));
        let purge_at = (now + Leases::RETENTION).duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let purge_at = u32::try_from(purge_at).expect("before 2106");
        let (process, acquire) = (chance.usize(0..2), chance.u8(0..4));
        let (expires_at, cutoff, floor) = (chance.u64(1..9), chance.u64(1..9), chance.u64(1..9));
        let token = row.as_ref().map_or(5, |row| row.token).saturating_sub(chance.u64(0..2));
        let at = row.as_ref().map_or(0, |row| row.renewals) + chance.u64(0..2);
        let holder = process.to_string();
        let times = LeaseTimes { expires_at, cutoff, floor };
        let (real, modelled) = match chance.u8(0..5) {
            0 | 1 => (
                LeaseWrite::Acquire { holder: &holder, id: &[acquire], times },
                LeaseCall::Acquire { process, id: acquire, expires_at, cutoff, floor, purge_at },
            ),
            2 => (LeaseWrite::Renew { token, at, expires_at }, LeaseCall::Renew { token, at, expires_at, purge_at }),
            3 => (LeaseWrite::Release { token }, LeaseCall::Release { token, purge_at }),
            _ => {
                let is_held = model.is_held(row.as_ref(), token);
                let request = lease_request(TABLE, name, &LeaseWrite::Require { token }, now);
                assert_eq!(applies(client, request).await, is_held, "lease {name}, step {step}: {token} on {row:?}");
                continue;
            }
        };
        let told = format!("lease {name}, step {step}: {modelled:?} on {row:?}");
        let expected = model.next_lease(row.as_ref(), &modelled);
        assert_eq!(applies(client, lease_request(TABLE, name, &real, now)).await, expected.is_some(), "{told}");
        outcomes[usize::from(expected.is_some())] += 1;
        row = expected.unwrap_or_else(|| row.clone());
        assert_eq!(stored(client, "leaseKey", name).await.as_ref().map(lease_of), row, "{told}");
    }
    outcomes
}

#[tokio::test]
async fn a_lease_of_the_model_takes_and_refuses_what_the_engine_does_and_is_left_the_same() {
    play(60, "leaseKey", random_lease).await;
}

fn instance_of(item: &Attributes) -> Stored {
    let name = item.get("name").map(|name| name.as_s().expect("a text").parse().expect("one letter"));
    Stored {
        instance: (number(item, "number").expect("a number"), name),
        live: number(item, "value"),
        purge_at: number(item, "_purgeAt"),
    }
}

async fn random_instances(client: &Client, name: &str, chance: &mut Rng) -> [usize; 2] {
    let key = Key::from(name);
    let model = Newest { calls: Vec::new(), hours: 0, limits: NONE, without: None };
    let mut row: Option<Stored> = None;
    let mut outcomes = [0, 0];
    for step in 0..16 {
        let (order, value, purge_at) = (chance.u8(0..4), chance.u8(0..9), chance.u32(1..99));
        let letter = chance.char('a'..='c');
        let (kind, host): (Kind, Option<Host>) = if chance.bool() {
            let host = Host { number: order, name: letter.to_string(), value };
            (Kind::Register((order, Some(letter)), value), Some(host))
        } else {
            (Kind::Delete((order, (chance.u8(0..3) > 0).then_some(letter))), None)
        };
        let (Kind::Register(instance, _) | Kind::Delete(instance)) = kind;
        let instance: Instance = instance;
        let request = newest_request(TABLE, &key, host.as_ref(), &order_key(instance), u64::from(purge_at));
        let told = format!("key {name}, step {step}: {kind:?} on {row:?}");
        let expected = model.apply(row.as_ref(), &NewestCall { kind, purge_at });
        assert_eq!(applies(client, request.expect("a whole request")).await, expected.is_some(), "{told}");
        outcomes[usize::from(expected.is_some())] += 1;
        row = expected.unwrap_or(row);
        assert_eq!(stored(client, "id", name).await.as_ref().map(instance_of), row, "{told}");
    }
    outcomes
}

#[tokio::test]
async fn an_instance_of_the_model_replaces_what_it_does_on_the_engine() {
    play(60, "id", random_instances).await;
}
