//! [`Store`]: one client, and the settings that decide how its requests are sent.

use crate::clock::{Clock, Rng};
use crate::protocol::send::Sender;
use crate::retry::RetryPolicy;
use crate::timestamp::Timestamp;
use aws_sdk_dynamodb::Client;
use std::fmt;
use std::sync::Arc;

/// One `DynamoDB` client with the settings for its requests. Make one store per client, and make all tables from it.
///
/// A store owns the client (with the retries of the SDK switched off), the [`RetryPolicy`], the [`Clock`], the [`Rng`],
/// and the time of the last answer to the client. All tables, leases and transactions of a store share that time, so
/// the first request of each knows whether the client is connected. Copies are cheap and share it too.
///
/// ```
/// use fencepost::{Record, Store, Table};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Record)]
/// #[record(key = "accountId")]
/// struct Account {
///     balance: u64,
/// }
///
/// fn accounts(client: &aws_sdk_dynamodb::Client) -> Table<Account> {
///     Store::new(client).table("accounts")
/// }
/// ```
#[derive(Clone)]
pub struct Store {
    sender: Arc<Sender>,
}

impl Store {
    /// Creates a store over this client, with the default policy, the clock of the machine and the randomness of the
    /// operating system.
    ///
    /// The SDK's retries are switched off for the requests of this store. A retry that this crate does not see would
    /// hide a lost answer from it.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        Store { sender: Arc::new(Sender::new(client)) }
    }

    /// Returns a copy of the store with this retry policy.
    #[must_use]
    pub fn with_policy(&self, policy: RetryPolicy) -> Self {
        self.with(|sender| sender.policy = policy)
    }

    /// Returns a copy of the store with this clock.
    #[must_use]
    pub fn with_clock(&self, clock: Clock) -> Self {
        self.with(|sender| sender.clock = clock)
    }

    /// Returns a copy of the store with this source of random bits.
    #[must_use]
    pub fn with_rng(&self, rng: Rng) -> Self {
        self.with(|sender| sender.rng = rng)
    }

    /// The clock of this store.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.sender.clock
    }

    /// The time of day by the clock of this store, to the millisecond.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from(self.sender.clock.now())
    }

    /// The retry policy of this store.
    #[must_use]
    pub fn policy(&self) -> &RetryPolicy {
        &self.sender.policy
    }

    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }

    fn with(&self, change: impl FnOnce(&mut Sender)) -> Self {
        let mut sender = (*self.sender).clone();
        change(&mut sender);
        Store { sender: Arc::new(sender) }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("policy", &self.sender.policy).finish_non_exhaustive()
    }
}
