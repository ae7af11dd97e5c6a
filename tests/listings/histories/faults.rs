//! Reads that are throttled, answered too late or not at all: a listing continues at its place.

use super::explored;
use crate::harness::clients::{Reply, client_whose, error, lost};
use crate::harness::engine::Engine;
use crate::harness::seeds::play;
use crate::harness::total::Total;
use crate::listings::messages::{ByAuthor, Message, TABLE, engine, fill, key, place, table};
use aws_sdk_dynamodb::Client;
use fencepost::{Call, Deadline, Error, Failure, Query, Store, Table};
use fencepost_test::Garbling;
use std::sync::Mutex;
use std::time::Duration;

/// A client with trouble in two of five requests.
fn troubled_client(engine: &Engine, seed: u64) -> Client {
    let rng = Mutex::new(fastrand::Rng::with_seed(seed));
    client_whose(engine, move |engine, _, operation, body| {
        let mut rng = rng.lock().expect("no panic");
        match rng.u32(..100) {
            0..10 => error(400, "ProvisionedThroughputExceededException").into(),
            10..15 => error(400, "ThrottlingException").into(),
            15..20 => lost().into(),
            20..25 => {
                engine.answer(operation, body);
                Reply::Never
            }
            25..30 => Reply::Never,
            30..35 => Reply::Garbled(Garbling::ALL[rng.usize(..Garbling::ALL.len())], rng.u64(..)),
            35..40 => Reply::After(Duration::from_millis(rng.u64(1..3000))),
            _ => engine.answer(operation, body).into(),
        }
    })
}

/// Lists a query by short calls. After a call without an answer, its page is requested again, by the same run or with
/// the cursor of the page before.
async fn listed(
    query: impl Fn(&Call) -> Query<Message>,
    rng: &mut fastrand::Rng,
    seen: &mut Total,
) -> Result<Vec<(String, i64)>, String> {
    let (mut items, mut cursor) = (Vec::new(), None::<String>);
    for _ in 0..1000 {
        let call = Call::new(Deadline::within(Duration::from_millis(rng.u64(200..4000))));
        let mut pages = query(&call).after(cursor.as_deref()).pages();
        loop {
            match pages.next_page().await {
                Ok(Some(page)) => {
                    seen.count("pages", 1);
                    items.extend(page.items.iter().map(place));
                    cursor = page.next.map(String::from);
                    if cursor.is_none() {
                        return Ok(items);
                    }
                }
                Ok(None) => return Err("no page after one with a cursor".to_owned()),
                Err(Error::Failed(Failure::Unavailable { .. })) if rng.bool() => {
                    seen.count("askedAgain", 1);
                    if call.deadline().remaining().is_zero() {
                        break;
                    }
                }
                Err(Error::Failed(Failure::Unavailable { .. })) => {
                    seen.count("askedAgain", 1);
                    break;
                }
                Err(failed) => return Err(format!("{failed:?}")),
            }
        }
    }
    Err("1000 calls were not enough".to_owned())
}

/// One room with some tombstones in it, listed over a troubled client in both directions and by its author.
fn run(engine: &Engine, seed: u64) -> Result<Total, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (mut seen, room) = (Total::default(), format!("room-{seed}"));
        let plain = table(engine);
        let count = rng.i64(1..40);
        let mut expected: Vec<i64> = (1..=count).collect();
        // Another author in each room: each partition of the index is then in one room.
        for number in 1..=count {
            let message = Message { author: room.clone(), rank: number, text: String::new() };
            plain.create(&key(&room, number), &message).await.map_err(|e| e.to_string())?;
        }
        for number in 1..=count {
            if rng.u8(..4) == 0 {
                let deleted = plain.delete(&key(&room, number)).await;
                deleted.map_err(|error| error.to_string())?;
                expected.retain(|other| *other != number);
            }
        }
        let troubled: Table<Message> = Store::new(&troubled_client(engine, seed)).table(TABLE);
        let limit = rng.u16(1..8);
        let ascending =
            listed(|call| troubled.in_call(call).query(room.as_str()).limit(limit), &mut rng, &mut seen).await?;
        let descending =
            listed(|call| troubled.in_call(call).query(room.as_str()).limit(limit).descending(), &mut rng, &mut seen)
                .await?;
        let of_author = listed(
            |call| troubled.in_call(call).query_index(ByAuthor, room.as_str()).limit(limit),
            &mut rng,
            &mut seen,
        )
        .await?;
        let expected: Vec<_> = expected.into_iter().map(|number| (room.clone(), number)).collect();
        let backwards: Vec<_> = descending.into_iter().rev().collect();
        for (listed, name) in [(ascending, "ascending"), (backwards, "descending"), (of_author, "by author")] {
            if listed != expected {
                return Err(format!("{name}, limit {limit}: listed {listed:?}, stored {expected:?}"));
            }
        }
        Ok(seen)
    })
}

#[test]
fn throttled_and_lost_reads_lose_no_item_and_double_none() {
    if let Some(seen) = play(24, |seeds| explored(seeds, run)) {
        println!("{seen}");
        assert!(seen["askedAgain"] > 0, "no page was ever asked for again: {seen}");
    }
}

/// The future of a page is dropped before its answer, as `select!` does. The page is not lost.
#[tokio::test(start_paused = true)]
async fn a_page_that_was_given_up_is_read_by_the_next_call() {
    let engine = engine();
    fill(&table(&engine), "a", 1..=4).await;
    let slow = client_whose(&engine, |_, _, _, _| Reply::After(Duration::from_millis(50)));
    let table: Table<Message> = Store::new(&slow).table(TABLE);
    let mut pages = table.query("a").limit(2).pages();
    let mut listed = Vec::new();
    loop {
        assert!(tokio::time::timeout(Duration::from_millis(10), pages.next_page()).await.is_err());
        let Some(page) = pages.next_page().await.expect("an answer") else { break };
        listed.extend(page.items.iter().map(|item| place(item).1));
        if page.next.is_none() {
            break;
        }
    }
    assert_eq!(listed, [1, 2, 3, 4]);
}
