//! **A leader with a fence.** One process at a time moves a cursor. The usual lock ends at its time, although a write
//! of its holder may still be on the way. This late write moves the cursor of the next leader back. So does a process
//! that stood still and does not know that its lock has ended. This recipe writes under the token of its lease. An item
//! remembers the highest token and refuses lower ones. The program `leader.rs` is a whole service of this kind. Run it
//! with `cargo run -p fencepost --example fenced_leader`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use fencepost::lease::LeaseTerms;
use fencepost::{Record, Source, Store, Table};
use fencepost_test::Dynamo;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::{sleep, timeout};

#[derive(Serialize, Deserialize, Record)]
#[record(key = "jobId")]
struct Job {
    cursor: u64,
}

/// Leads while `name` holds the lease, and moves the cursor to this place.
async fn lead(store: &Store, name: &str, cursor: u64) -> Result<(), Source> {
    let jobs: Table<Job> = store.table("Jobs");
    let leases = store.leases("Leases");
    let led = leases.while_held("import", name, LeaseTerms::default(), async |token| {
        jobs.fenced_by(&token).edit("import", &Job::FIELDS.cursor.set(cursor)).await
    });
    led.await??;
    Ok(())
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let db = Dynamo::new();
    db.create_table("Leases", "leaseKey");
    db.create_table("Jobs", "jobId");
    let store = Store::new(&db.client());
    store.table("Jobs").create("import", &Job { cursor: 0 }).await.expect("a free key");

    // Ann's write is late in the network. Her process ends.
    let late = db.delay(Duration::from_mins(1)).of("UpdateItem").on("Jobs").once();
    timeout(Duration::from_millis(100), lead(&store, "ann", 10)).await.expect_err("it waits for its answer");
    sleep(LeaseTerms::LENGTH).await;
    assert_eq!(late.struck(), 1);
    // Bob leads now. The answer to his write is lost.
    db.engine().take_counts();
    db.lose_answer().of("UpdateItem").on("Jobs").once();
    lead(&Store::new(&db.client()), "bob", 20).await.expect("the lease is free");
    assert_eq!(db.engine().take_counts(), (1, 4), "acquire, a read, the write and its repeat, release");
    // Ann's write arrives.
    db.settle().await;
    assert_eq!(db.number("Jobs", "import", "cursor"), 20);
    println!("{}", db.log());
}

#[test]
fn a_late_write_of_the_old_leader_is_refused() {
    main();
}
