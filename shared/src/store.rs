//! [`Store`]: one client with the settings of its requests.

use crate::call::Call;
use crate::clock::{Clock, Rng};
use crate::deadline::Deadline;
use crate::driver::send::Sender;
use crate::observe::Observed;
use crate::timestamp::Timestamp;
use aws_sdk_dynamodb::Client;
use fencepost_core::RetryPolicy;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// One `DynamoDB` client with the settings for its requests. Make one store per client, and make all tables from it.
///
/// Each operation ends within a [time limit](Store::TIME_LIMIT), or at the deadline of a [`Call`], for a program that has
/// only so much time in all, such as an invocation of a function. [`Store::in_call`] gives the call to the store, once.
///
/// A store owns the client (with the retries of the SDK switched off), the [`RetryPolicy`], the [`Clock`], the [`Rng`],
/// and the time of the last answer to the client. All tables, leases and transactions of a store share that time: the
/// first request of each knows whether the client is connected. Copies are cheap and share it too.
#[derive(Clone)]
pub struct Store {
    sender: Arc<Sender>,
    time_limit: Duration,
    call: Option<Call>,
}

impl Store {
    /// The longest that an operation takes by default: 10 s. To change it, use [`Store::with_time_limit`].
    ///
    /// A send is awaited for 2 s, 4 s and 8 s after lost answers ([`RetryPolicy::send_limit`]). In 10 s, a service that is
    /// slow, and not gone, is heard, and each of a hundred writers of one item has its turn, for which it waits 0.6 s on
    /// average. It is also well within the 30 s of an HTTP API.
    pub const TIME_LIMIT: Duration = Duration::from_secs(10);

    /// Creates a store over this client, with the default policy, clock and randomness.
    ///
    /// The SDK's retries are switched off for the requests of this store. A retry would hide a lost answer.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        Store { sender: Arc::new(Sender::new(client)), time_limit: Self::TIME_LIMIT, call: None }
    }

    /// Returns a copy of the store with this retry policy.
    #[must_use]
    pub fn with_policy(&self, policy: RetryPolicy) -> Self {
        self.with(|sender| sender.policy = policy)
    }

    /// Returns a copy of the store with this limit for each operation, all its sends and pauses together.
    #[must_use]
    pub fn with_time_limit(&self, time_limit: Duration) -> Self {
        Store { time_limit, ..self.clone() }
    }

    /// Returns a copy of the store bound to this call: all operations end at its deadline instead of the time limit,
    /// and count in its tally. So do the operations of the tables, leases and transactions that are made from it.
    ///
    /// ```
    /// use fencepost::{Call, Deadline, Failure, Record, Store, Table};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize, Record)]
    /// # #[record(key = "accountId")]
    /// # struct Account { balance: u64 }
    /// use std::time::Duration;
    ///
    /// /// Both reads together take at most `left`.
    /// async fn sum(store: &Store, left: Duration) -> Result<u64, Failure> {
    ///     let call = Call::new(Deadline::within(left));
    ///     let accounts: Table<Account> = store.in_call(&call).table("Accounts");
    ///     let both = [accounts.get("a-1").await?, accounts.get("a-2").await?];
    ///     Ok(both.into_iter().flatten().map(|account| account.value.balance).sum())
    /// }
    /// ```
    #[must_use]
    pub fn in_call(&self, call: &Call) -> Self {
        Store { call: Some(call.clone()), ..self.clone() }
    }

    /// Returns a copy of the store that tells this observer of each operation that has ended, its tables, leases and
    /// transactions included. It is told of no call that is refused before anything is decided, such as one with an empty
    /// key. It is called in the task of the operation, so it should not wait; if it panics, that is logged and changes
    /// nothing. A second observer replaces the first.
    ///
    /// ```
    /// use fencepost::Store;
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    ///
    /// /// The store, and its requests so far.
    /// fn counting(store: &Store) -> (Store, Arc<AtomicU32>) {
    ///     let requests = Arc::new(AtomicU32::new(0));
    ///     let total = requests.clone();
    ///     let store = store.with_observer(move |operation| {
    ///         total.fetch_add(operation.requests, Relaxed);
    ///     });
    ///     (store, requests)
    /// }
    /// ```
    #[must_use]
    pub fn with_observer(&self, observer: impl Fn(&Observed<'_>) + Send + Sync + 'static) -> Self {
        self.with(|sender| sender.observer = Some(Arc::new(observer)))
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

    pub(crate) fn call(&self) -> Call {
        self.call_after(Duration::ZERO)
    }

    /// The call of an operation that waits this long by itself.
    pub(crate) fn call_after(&self, wait: Duration) -> Call {
        let new = || Call::new(Deadline::within(self.time_limit.saturating_add(wait)));
        self.call.clone().unwrap_or_else(new)
    }

    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }

    fn with(&self, change: impl FnOnce(&mut Sender)) -> Self {
        let mut sender = (*self.sender).clone();
        change(&mut sender);
        Store { sender: Arc::new(sender), ..self.clone() }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("policy", &self.sender.policy)
            .field("time_limit", &self.time_limit)
            .finish_non_exhaustive()
    }
}
