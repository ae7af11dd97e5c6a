//! `lease` and `ensure-child` on one engine, under a clock that runs with the test's, and their events.

use crate::harness::events::Event;
pub use crate::harness::events::{acquire, ensure, ensure_under, release, renew, shown_child, shown_lease};
use crate::harness::functions::{LEASES, Leasing};
use crate::harness::world;
use fencepost::lease::LeaseTerms;
use fencepost::{Call, Deadline};
use serde_json::{Value, json};
use std::time::Duration;

/// By how much clocks may be apart.
pub const SKEW: u64 = 1_000;

/// Both functions, their engine and their clock. It needs paused time.
pub type World = world::World<Leasing>;

impl World {
    pub async fn pass(&self, millis: u64) {
        tokio::time::advance(Duration::from_millis(millis)).await;
    }

    /// Acquires a free lease. Gives its token.
    pub async fn acquired(&self, key: &str, holder: &str, seconds: u64) -> u64 {
        token(&self.send(&acquire(key, holder, seconds)).await.shown(201))
    }

    /// The row of a lease as it is stored.
    pub fn row(&self, key: &str) -> Value {
        self.engine.row(LEASES, "leaseKey", key)
    }

    /// Removes the row of a lease, as TTL does.
    pub fn purge(&self, key: &str) {
        self.engine.raw("DeleteItem", &json!({"TableName": LEASES, "Key": {"leaseKey": {"S": key}}}));
    }

    /// Sends an event that is refused with this status and code, at the cost of so many reads and writes. The rows of
    /// leases and children stay unchanged.
    pub async fn refused_for(&self, event: &Event, status: i64, code: &str, counts: (usize, usize)) -> Value {
        let key = event.0["pathParameters"]["leaseKey"].as_str().unwrap_or("nobody's");
        let before = self.row(key);
        self.engine.take_log();
        let answer = self.send(event).await;
        let problem = answer.says(status, code);
        answer.check_problem();
        assert_eq!((self.engine.take_counts(), self.row(key)), (counts, before), "{event:?}");
        problem
    }
}

/// A call that ends in so many seconds.
pub fn call(seconds: u64) -> Call {
    Call::new(Deadline::within(Duration::from_secs(seconds)))
}

/// A lease of so many milliseconds, renewed when half of them are over.
pub fn terms(millis: u64) -> LeaseTerms {
    LeaseTerms::new(Duration::from_millis(millis)).expect("long enough")
}

/// The token of a lease as it is shown.
pub fn token(lease: &Value) -> u64 {
    lease["token"].as_u64().unwrap_or_else(|| panic!("a token that is a number: {lease}"))
}
