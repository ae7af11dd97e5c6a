//! **A hold that expires.** A buyer reserves a seat, pays elsewhere and confirms. A seat without a payment in time is
//! free again. The usual way lets TTL remove the reservation, which may happen days late. It confirms on the condition
//! that the seat is held. After a lost answer, the repeat finds the seat sold and tells its own buyer that it is gone.
//! This recipe keeps the end of the hold in the seat and compares it with the clock in each decision. A repeat finds
//! its own hold or purchase. Run it with `cargo run -p fencepost --example expiring_hold`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use fencepost::{Clock, Record, Store, Table, Timestamp, UpdateError};
use fencepost_test::Dynamo;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const HOLD: Duration = Duration::from_mins(10);

#[derive(Serialize, Deserialize, Record)]
#[record(key = "seatId")]
struct Seat {
    state: State,
}

#[derive(Serialize, Deserialize)]
enum State {
    Free,
    Held { by: String, until: Timestamp },
    Sold { to: String },
}

/// Another buyer has the seat.
#[derive(Debug)]
struct Gone;

/// Holds the seat, or holds it longer if it is held by this buyer already.
async fn reserve(seats: &Table<Seat>, id: &str, buyer: &str) -> Result<(), UpdateError<Gone>> {
    let now = seats.store().clock().now();
    let decide = |seat: &Seat| match &seat.state {
        State::Sold { .. } => Err(Gone),
        State::Held { by, until } if by != buyer && *until > now.into() => Err(Gone),
        _ => Ok(Seat { state: State::Held { by: buyer.to_owned(), until: (now + HOLD).into() } }),
    };
    seats.update_with_retry(id, decide).await.map(drop)
}

/// Call it once the buyer has paid. After [`Gone`], give the money back. An ended hold is still good if no other buyer has the seat.
async fn confirm(seats: &Table<Seat>, id: &str, buyer: &str) -> Result<(), UpdateError<Gone>> {
    let decide = |seat: &Seat| match &seat.state {
        State::Held { by, .. } if by == buyer => Ok(Some(Seat { state: State::Sold { to: buyer.to_owned() } })),
        State::Sold { to } if to == buyer => Ok(None), // this is a repeat
        _ => Err(Gone),
    };
    seats.update_with_retry(id, decide).await.map(drop)
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let db = Dynamo::new();
    db.create_table("Seats", "seatId");
    let clock = db.clone();
    let seats = Store::new(&db.client()).with_clock(Clock::new(move || clock.now())).table("Seats");
    seats.create("1A", &Seat { state: State::Free }).await.expect("a free key");
    db.engine().take_counts();

    reserve(&seats, "1A", "ann").await.expect("it is free");
    assert_eq!(db.engine().take_counts(), (1, 1));
    assert!(matches!(reserve(&seats, "1A", "bob").await, Err(UpdateError::Refused(Gone))));
    tokio::time::sleep(HOLD).await; // Ann's payment takes too long
    db.lose_answer().of_writes().times(2);
    db.engine().take_counts();
    reserve(&seats, "1A", "bob").await.expect("Ann's hold has ended");
    confirm(&seats, "1A", "bob").await.expect("he holds it");
    assert_eq!(db.engine().take_counts(), (2, 4), "each write is sent a second time, and is applied once");
    confirm(&seats, "1A", "bob").await.expect("he has it");
    assert!(matches!(confirm(&seats, "1A", "ann").await, Err(UpdateError::Refused(Gone))));
    println!("{}", db.log());
}

#[test]
fn a_lost_answer_neither_frees_the_seat_nor_turns_its_buyer_away() {
    main();
}
