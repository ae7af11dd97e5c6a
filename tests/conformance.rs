//! The table of the models behaves like an engine under the requests of production.
//!
//! Random writers see random states of a row, present or past, and send random writes. Each request is built by the
//! crate and sent to the embedded engine. Outcomes and rows must be those of the table in `dev/models/src/table.rs`.
//! `FENCEPOST_SEED=7` plays one seed again.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};
use fastrand::Rng;
use fencepost::lww::{self, LwwRecord, Registration};
use fencepost::testing::{self, AsKind, LeaseTimes, LeaseWrite, RowWrite, Writer, lease_request, newest_request};
use fencepost::{Attributes, Edit, Failure, FailureKind, Key, Record, Settings};
use fencepost_core::{Base, Incarnation, ItemVersion, Line, Trace, WriteId};
use fencepost_test::Engine;
use fencepost_test::seeds::{SEED, asked};
use models::front::{self, LEASE_RETENTION, bits};
use models::state::Said;
use models::table::{Does, Instance, LeaseRow, OrderKey, Row, Stored, Write, version};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

const TABLE: &str = "Things";
const R: u64 = 3;
const W: u64 = 2;

#[derive(Clone, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "id", settings = Settings::own().remembered_writes(R).edit_window(W))]
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

/// Prints its seed.
fn chance() -> Rng {
    let seed = asked(SEED).unwrap_or_else(|| fastrand::u64(0..1_000_000));
    println!("{SEED}={seed} plays this again");
    Rng::with_seed(seed)
}

/// Plays so many random rows, each with an engine of its own key.
async fn play(rows: u64, key: &'static str, row: impl AsyncFn(&Client, &str, &mut Rng) -> [usize; 2]) {
    let (engine, mut chance) = (Engine::embedded(&[(TABLE, key)]), chance());
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

/// A write as the table of the models has it.
fn bare(does: Does) -> Write {
    Write { row: 0, on: None, id: None, does, fence: None, forgets: Vec::new(), burns: Vec::new(), demands: None }
}

/// A stored row as the table has it. Panics where the row has anything else.
fn row_of(item: &Attributes) -> Stored {
    let known = ["id", "stock", "_version", "_incarnation", "_writes", "_purgeAt", "_fence"];
    assert!(item.keys().all(|name| known.contains(&name.as_str())), "{item:?}");
    let trace = |(name, value): (&String, &fencepost::AttributeValue)| {
        let number: i64 = value.as_n().expect("a number").parse().expect("a small number");
        let at = version(number.unsigned_abs());
        let trace = if number < 0 { Trace::Burned(at) } else { Trace::Applied(at) };
        (WriteId::from_name(name).expect("an id"), trace)
    };
    let incarnation = (&**item["_incarnation"].as_b().expect("bytes")).try_into().expect("8 bytes");
    Stored::Item(Row {
        at: ItemVersion {
            version: version(number(item, "_version").expect("a version")),
            incarnation: Incarnation::from_bytes(incarnation),
        },
        memory: Some(item["_writes"].as_m().expect("a map").iter().map(trace).collect()),
        stock: number(item, "stock").unwrap_or_default(),
        purge_at: number(item, "_purgeAt"),
        fence: number(item, "_fence"),
        line: Line::default(),
        holds: BTreeMap::new(),
        placed_by: None,
    })
}

/// A random write by a writer that saw this row and burns these ids: as production builds it, and as the table has it.
fn any_write<'a>(
    chance: &mut Rng,
    seen: Option<&Row>,
    (by, burns): (WriteId, &[WriteId]),
    thing: &'a Thing,
    add: &'a Edit<Thing>,
    purge_at: u64,
) -> (RowWrite<'a, Thing>, Write) {
    let fence = chance.bool().then(|| chance.u64(1..4)).filter(|_| chance.bool());
    let adds = Does::Add { by: thing.stock, low: -thing.stock, high: 9 - thing.stock };
    let stamped = |on, does| Write { on: Some(on), id: Some(by), fence, ..bare(does) };
    let anywhere = Write { fence, ..bare(adds.clone()) };
    let Some(row) = seen else {
        let create = stamped(Base::NoRow(version(1)), Does::Set(thing.stock));
        return match chance.u8(0..4) {
            0 => (RowWrite::BurnCreate, Write { does: Does::Bury { purge_at }, fence: None, ..create }),
            1 => (RowWrite::AddAnywhere(add), anywhere),
            _ => (RowWrite::Create(thing), create),
        };
    };
    let ItemVersion { version, incarnation } = row.at;
    let at = |window| Base::Row { version, window, incarnation };
    let prunable = |burns| row.memory().expect("a memory").prunable(version, R, by, burns);
    let pruned = |write: Write| Write { forgets: prunable(write.burns.len()), ..write };
    let burning = |write: Write| Write { burns: burns.to_vec(), ..write };
    match chance.u8(0..10) {
        0..=2 => (RowWrite::Update(thing), pruned(burning(stamped(at(1), Does::Set(thing.stock))))),
        3 => (RowWrite::Delete, pruned(stamped(at(1), Does::Bury { purge_at }))),
        4 => (RowWrite::DeleteAt(row.at), stamped(at(1), Does::Bury { purge_at })),
        5 | 6 => (RowWrite::Add(add), pruned(burning(stamped(at(W), adds)))),
        7 => (RowWrite::AddAnywhere(add), anywhere),
        8 => (RowWrite::Burn, burning(Write { fence: None, ..stamped(at(W), Does::Burn) })),
        _ => (RowWrite::Check, Write { on: Some(at(1)), ..bare(Does::Check) }),
    }
}

async fn random_row(client: &Client, name: &str, chance: &mut Rng) -> [usize; 2] {
    let key = Key::from(name);
    let mut row: Option<Stored> = None;
    let mut pasts: Vec<(Option<Stored>, Option<Attributes>)> = vec![(None, None)];
    let mut outcomes = [0, 0];
    for step in 1..=24 {
        // Half of the writers see the row as it is.
        let past = if chance.bool() { pasts.len() - 1 } else { chance.usize(0..pasts.len()) };
        let (seen, item) = &pasts[past];
        let seen = seen.as_ref().and_then(Stored::item);
        let by = bits(if chance.u8(0..3) == 0 { chance.u64(1..=step) } else { step });
        let old =
            seen.map(|row| row.memory().expect("a memory").prunable(row.at.version, R, by, 2)).unwrap_or_default();
        if old.contains(&by) {
            continue; // A change whose id the row remembers sends nothing more.
        }
        // An attempt burns others of its own change. An id that it also removes would be named twice, and rejected.
        let mut burn: Vec<_> = (0..chance.u8(0..3)).map(|_| bits(chance.u64(1..=step))).collect();
        burn.retain(|id| *id != by && !old.contains(id));
        burn.sort_unstable();
        burn.dedup();
        let thing = Thing { stock: chance.i8(-3..9) };
        let add = Thing::FIELDS.stock.add(i64::from(thing.stock), 0..=9);
        let purge_at = chance.u64(1..1000);
        let (real, write) = any_write(chance, seen, (by, &burn), &thing, &add, purge_at);
        let writer = Writer {
            table: TABLE,
            key: &key,
            seen: item.as_ref(),
            id: by,
            burn: &write.burns,
            purge_at: UNIX_EPOCH + Duration::from_secs(purge_at),
            fence: write.fence,
        };
        let request = match writer.request(&real) {
            Ok(request) => request.expect("each of these has a request"),
            Err(Failure { kind: FailureKind::Fenced, .. }) => continue, // The row that was seen forbids it already.
            Err(failure) => panic!("{failure}"),
        };
        let told = format!("row {name}, step {step}: {write:?} on {row:?}");
        let made = write.meets(row.as_ref(), None);
        let is_of = |stored: &Option<Stored>, incarnation| {
            stored.as_ref().and_then(Stored::item).is_some_and(|row| row.at.incarnation == incarnation)
        };
        if row.is_none()
            && let Some(Some(Stored::Item(made))) = &made
            && pasts.iter().any(|(past, _)| is_of(past, made.at.incarnation))
        {
            continue; // Ids are unique, so no two rows have one incarnation.
        }
        assert_eq!(applies(client, request).await, made.is_some(), "{told}");
        outcomes[usize::from(made.is_some())] += 1;
        row = made.unwrap_or(row);
        let item = stored(client, "id", name).await;
        assert_eq!(item.as_ref().map(row_of), row, "{told}");
        if row.as_ref().is_some_and(|row| row.purge_at().is_some()) && chance.u8(0..3) == 0 {
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
async fn a_row_of_the_table_takes_and_refuses_what_the_engine_does_and_is_left_the_same() {
    play(60, "id", random_row).await;
}

fn lease_of(item: &Attributes) -> Stored {
    let whole = |name: &str| number(item, name).expect("a number");
    Stored::Lease(LeaseRow {
        holder: item.get("holder").map(|holder| holder.as_s().expect("a text").parse().expect("a process")),
        token: whole("token"),
        renewals: whole("renewals"),
        expires_at: whole("expiresAt"),
        acquire_id: item["acquireId"].as_b().expect("bytes")[0].into(),
        purge_at: whole("purgeAt"),
    })
}

async fn random_lease(client: &Client, name: &str, chance: &mut Rng) -> [usize; 2] {
    let mut row: Option<Stored> = None;
    let mut outcomes = [0, 0];
    for step in 0..20 {
        let now = UNIX_EPOCH + Duration::from_secs(chance.u64(1000..2000));
        let purge_at = (now + LEASE_RETENTION).duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let (process, acquire) = (chance.usize(0..2), chance.u8(0..4));
        let (expires_at, cutoff, floor) = (chance.u64(1..9), chance.u64(1..9), chance.u64(1..9));
        let lease = row.as_ref().and_then(Stored::lease);
        let token = lease.map_or(5, |row| row.token).saturating_sub(chance.u64(0..2));
        let at = lease.map_or(0, |row| row.renewals) + chance.u64(0..2);
        let holder = process.to_string();
        let (times, id) = (LeaseTimes { expires_at, cutoff, floor }, u64::from(acquire));
        let (real, does) = match chance.u8(0..5) {
            0 | 1 => (
                LeaseWrite::Acquire { holder: &holder, id: &[acquire], times },
                Does::Acquire { process, id, expires_at, cutoff, floor, purge_at },
            ),
            2 => (LeaseWrite::Renew { token, at, expires_at }, Does::Renew { token, at, expires_at, purge_at }),
            3 => (LeaseWrite::Release { token }, Does::Release { token, purge_at }),
            _ => (LeaseWrite::Require { token }, Does::Require { token }),
        };
        let told = format!("lease {name}, step {step}: {does:?} on {row:?}");
        let made = bare(does).meets(row.as_ref(), None);
        assert_eq!(applies(client, lease_request(TABLE, name, &real, now)).await, made.is_some(), "{told}");
        outcomes[usize::from(made.is_some())] += 1;
        row = made.unwrap_or(row);
        assert_eq!(stored(client, "leaseKey", name).await.as_ref().map(lease_of), row, "{told}");
    }
    outcomes
}

#[tokio::test]
async fn a_lease_of_the_table_takes_and_refuses_what_the_engine_does_and_is_left_the_same() {
    play(60, "leaseKey", random_lease).await;
}

fn instance_of(item: &Attributes) -> Stored {
    let name = item.get("name").map(|name| name.as_s().expect("a text").parse().expect("one letter"));
    Stored::Instance(Instance {
        order_key: (number(item, "number").expect("a number"), name),
        live: number(item, "value"),
        purge_at: number(item, "_purgeAt"),
    })
}

fn order_key((order, name): OrderKey) -> lww::OrderKey {
    lww::OrderKey { order: u64::from(order), name: name.map(String::from) }
}

async fn random_instances(client: &Client, name: &str, chance: &mut Rng) -> [usize; 2] {
    let key = Key::from(name);
    let mut row: Option<Stored> = None;
    let mut outcomes = [0, 0];
    for step in 0..16 {
        let (order, value, purge_at) = (chance.u8(0..4), chance.u8(0..9), chance.u64(1..99));
        let letter = chance.char('a'..='c');
        let (mine, host) = if chance.bool() {
            ((order, Some(letter)), Some(Host { number: order, name: letter.to_string(), value }))
        } else {
            ((order, (chance.u8(0..3) > 0).then_some(letter)), None)
        };
        let does = if host.is_some() { Does::Register(mine, value) } else { Does::Unregister(mine, purge_at) };
        let request = newest_request(TABLE, &key, host.as_ref(), &order_key(mine), purge_at);
        let told = format!("key {name}, step {step}: {does:?} on {row:?}");
        let made = bare(does).meets(row.as_ref(), None);
        assert_eq!(applies(client, request.expect("a whole request")).await, made.is_some(), "{told}");
        outcomes[usize::from(made.is_some())] += 1;
        row = made.unwrap_or(row);
        assert_eq!(stored(client, "id", name).await.as_ref().map(instance_of), row, "{told}");
    }
    outcomes
}

#[tokio::test]
async fn an_instance_of_the_table_replaces_what_it_does_on_the_engine() {
    play(60, "id", random_instances).await;
}

/// The front of instances is that of the crate, written a second time without its types.
#[test]
fn the_front_judges_a_refused_register_as_the_crate_does() {
    let mut chance = chance();
    for _ in 0..1000 {
        let key = |chance: &mut Rng| (chance.u8(0..2), chance.bool().then_some('a'));
        let (mine, other, live, value) =
            (key(&mut chance), key(&mut chance), chance.bool().then_some(1), chance.u8(1..3));
        let judged = testing::judge_registration(&order_key(mine), &order_key(other), live, &value);
        let said = match judged {
            Registration::New => Said::New,
            Registration::Same => Said::Same,
            Registration::Differs(_) => Said::Differs,
            Registration::Superseded { .. } => Said::Superseded,
        };
        assert_eq!(front::judge_registration(mine, other, live, value), said, "{mine:?} {other:?}");
    }
}
