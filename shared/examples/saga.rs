//! **A saga over two tables.** A trip needs a room and a seat, in tables that no transaction spans, such as those of
//! two Regions. The usual way gives the room back in an error handler if there is no seat. A crash before that keeps
//! the room for ever. A lost answer takes or gives back twice. This recipe records the answer of each step with its
//! effect, a "no" as well. So the saga can run again from the top until it returns, even twice at once: each step
//! answers as it did first. Run it with `cargo run -p fencepost --example saga`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use fencepost::{Answer, IdempotencyClaim, IdempotencyError, Reads, Record, Store, Table};
use fencepost_test::Dynamo;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::timeout;

#[derive(Serialize, Deserialize, Record)]
#[record(key = "id")]
struct Places {
    free: u64,
}

/// Takes a place or gives it back, once for each step of a saga. Returns whether there was one. A repeat returns the same.
async fn step(store: &Store, table: &str, id: &str, saga: &str, gives_back: bool) -> Result<bool, IdempotencyError> {
    let places: Table<Places> = store.table(table);
    let mut reads = Reads::new();
    let item = reads.item("places", &places, id);
    let name = if gives_back { "give back" } else { "take" };
    let claim = IdempotencyClaim::new(&["saga", saga, table, name], &[id])?.lasting(IdempotencyClaim::MAX_RETENTION)?;
    let steps = store.idempotency("Steps");
    let answer = steps.change(&claim, reads, |attempt| {
        let free = attempt.get(item)?.map_or(0, |places| places.free);
        let Some(free) = (if gives_back { free.checked_add(1) } else { free.checked_sub(1) }) else { return Ok(false) };
        attempt.update_at(item, &Places { free })?;
        Ok(true)
    });
    match answer.await? {
        Answer::New(answer) | Answer::Replayed(answer) => Ok(answer),
    }
}

/// Whether the trip is booked. After an error, call it again with the same id.
async fn book(rooms: &Store, seats: &Store, saga: &str) -> Result<bool, IdempotencyError> {
    if !step(rooms, "Rooms", "sea view", saga, false).await? {
        return Ok(false);
    }
    let has_seat = step(seats, "Seats", "flight 7", saga, false).await?;
    if !has_seat {
        step(rooms, "Rooms", "sea view", saga, true).await?;
    }
    Ok(has_seat)
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let (here, there) = (Dynamo::new(), Dynamo::new());
    for (db, table, id, free) in [(&here, "Rooms", "sea view", "100"), (&there, "Seats", "flight 7", "60")] {
        db.create_table(table, "id");
        db.create_table("Steps", "recordId");
        db.put(table, &serde_json::json!({"id": {"S": id}, "free": {"N": free}}));
    }
    let (rooms, seats) = (Store::new(&here.client()), Store::new(&there.client()));
    for counts in [(1, 1), (1, 0)] {
        assert!(book(&rooms, &seats, "trip").await.expect("an answer"));
        let sent = [here.engine().take_counts(), there.engine().take_counts()];
        assert_eq!(sent, [counts; 2], "a read and a write for each step, and a read for its repeat");
    }
    let mut booked = 1;
    for number in 0..80 {
        let (saga, after) = (format!("trip-{number}"), Duration::from_millis(number));
        here.lose_answer().of("TransactWriteItems").once();
        timeout(after, book(&rooms, &seats, &saga)).await.ok(); // The process ends at this moment.
        booked += u64::from(book(&rooms, &seats, &saga).await.expect("an answer"));
    }
    assert_eq!((booked, there.number("Seats", "flight 7", "free")), (60, 0));
    assert_eq!(here.number("Rooms", "sea view", "free"), 40, "21 rooms were given back, once each");
    println!("{} requests here and {} there", here.log().len(), there.log().len());
}

#[test]
fn a_saga_that_ends_at_any_moment_takes_and_gives_back_once() {
    main();
}
