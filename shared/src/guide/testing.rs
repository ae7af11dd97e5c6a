//! Testing: your program against lost answers, throttling and conflicts, without a table and without waiting.
//!
//! The crate [`fencepost-test`](https://docs.rs/fencepost-test) puts an embedded `DynamoDB` and a network that fails as
//! planned behind a client of the real SDK. It needs no feature of this crate:
//!
//! ```
//! use fencepost::{Call, Clock, Deadline, Record, Rng, Store, Table, UpdateError};
//! use fencepost_test::{Dynamo, for_each_seed};
//! # use serde::{Deserialize, Serialize};
//! # use std::time::Duration;
//!
//! # #[derive(Clone, Serialize, Deserialize, Record)]
//! # #[record(key = "pageId")]
//! # struct Page { visits: u64 }
//! /// Time and chance come from the test, so that its seed plays the same story again.
//! fn store(db: &Dynamo) -> Store {
//!     let (clock, chance) = (db.clone(), db.clone());
//!     Store::new(&db.client()).with_clock(Clock::new(move || clock.now())).with_rng(Rng::new(move || chance.random()))
//! }
//!
//! // The body of a `#[test]`: 20 seeds, each under paused time.
//! for_each_seed(20, async |db| {
//!     db.create_table("Pages", "pageId");
//!     let call = Call::new(Deadline::within(Duration::from_secs(10)));
//!     let pages: Table<Page> = store(&db).in_call(&call).table("Pages");
//!     pages.create("home", &Page { visits: 0 }).await.expect("a free key");
//!
//!     let lost = db.lose_answer().of("UpdateItem").about("home").once();
//!     let conflict = db.conflict_next().of("UpdateItem").sparing(2).once();
//!     for _ in 0..3 {
//!         let visit = |page: &Page| Ok(Some(Page { visits: page.visits + 1 }));
//!         let counted: Result<_, UpdateError> = pages.update_with_retry("home", visit).await;
//!         counted.expect("time is left");
//!     }
//!
//!     assert_eq!(db.number("Pages", "home", "visits"), 3);
//!     assert_eq!((lost.struck(), conflict.struck()), (1, 1));
//!     assert_eq!(call.tally().lost_answers, 1);
//!     println!("{}", db.log().about("home")); // each request with its fate
//! });
//! ```
//!
//! - **Assert that the fault struck.** Otherwise the test may pass without it.
//! - **A fault that lasts makes the call fail.** With `db.lose_answer().of_writes().always()`, a change ends as
//!   [`FailureKind::OutcomeUnknown`](crate::FailureKind::OutcomeUnknown), and with `db.throttle().always()` as
//!   [`FailureKind::Unavailable`](crate::FailureKind::Unavailable), at the time limit of the store.
//! - **Time is paused** by `for_each_seed` or `#[tokio::test(start_paused = true)]`. The test does not wait for a time
//!   limit, nor for the 15 minutes after an unknown outcome, but the clock of tokio shows that they have passed, and so
//!   does that of a store made `with_clock` as above.
//! - **`create_table`** makes a table with one text as its key and without TTL, so [`Store::check`](crate::Store::check) finds
//!   the TTL missing. Other keys, indexes and TTL need the requests themselves, such as
//!   `db.engine().raw("UpdateTimeToLive", &json!({ .. }))`.
//! - **`Changes`** compares what your program was told with what the table holds, over many calls and random faults.
//! - **A failing test prints its seed**, and `FENCEPOST_SEED` plays it again.
//!
//! Where no network is needed, `Engine::embedded` is the table alone. The page of the kit lists its faults and limits.
//! The feature `testing` of this crate is something else: it opens the protocol to this repository's own tests.
