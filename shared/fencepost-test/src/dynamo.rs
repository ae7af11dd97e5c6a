//! The embedded `DynamoDB` of one test, with its clock, its faults, planned in one line each, and its log.

use crate::capacity::Capacity;
use crate::connection::{config, http_client};
use crate::engine::{Engine, number};
use crate::fault::{Fault, Rates, Rival, Rule, Wanted, When};
use crate::log::Log;
use crate::network::{Freezing, Network, Seam};
use crate::seeds::{SEED, asked, asked_seeds};
use crate::wire::Wire;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::{Client, config::Builder};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

/// When the clock of each test begins: 10:00 on 7 March 2026, since 1970.
const TEN_O_CLOCK: Duration = Duration::from_hours(492_466);

/// An empty `DynamoDB` in the process of the test with the network to it. Copies share everything.
///
/// Use it under paused time, as `#[tokio::test(start_paused = true)]` or [`for_each_seed`](crate::for_each_seed) gives
/// it. Then a wait of minutes takes no time and one seed always tells the same story. A request takes 1 ms to 10 ms in
/// each direction.
#[derive(Clone)]
pub struct Dynamo {
    network: Arc<Network>,
    story: Arc<Story>,
}

/// Which seed the test has, and when its clock began.
struct Story {
    seed: u64,
    begun: Instant,
    /// Whether the environment can give the test this seed again.
    is_chosen: bool,
}

/// A test that fails says how to play it again.
impl Drop for Story {
    #[expect(clippy::print_stderr, reason = "a test that fails prints its seed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seed = self.seed;
            if self.is_chosen {
                eprintln!("{SEED}={seed} plays this test again");
            } else {
                eprintln!("the seed of this test is {seed}");
            }
        }
    }
}

impl fmt::Debug for Dynamo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dynamo").field("seed", &self.seed()).finish_non_exhaustive()
    }
}

impl Default for Dynamo {
    fn default() -> Self {
        Self::new()
    }
}

impl Dynamo {
    /// An empty one with the seed of `FENCEPOST_SEED`, otherwise a new one. If the test fails, it prints the seed.
    #[must_use]
    pub fn new() -> Self {
        Self::chosen(asked(SEED).unwrap_or_else(|| fastrand::Rng::new().u64(0..1_000_000)))
    }

    /// An empty one with a seed that `FENCEPOST_SEED` can give again.
    pub(crate) fn chosen(seed: u64) -> Self {
        Self::told(seed, true, Rates::default(), ())
    }

    /// An empty one with this seed. All chance of the network and the jitter of the SDK's retries come from it, as long
    /// as the test stays on one thread.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        Self::with_seam(seed, Rates::default(), ())
    }

    /// The same, with faults that are drawn for each request and a seam of your own before the engine.
    #[must_use]
    pub fn with_seam(seed: u64, rates: Rates, seam: impl Seam + 'static) -> Self {
        Self::told(seed, false, rates, seam)
    }

    fn told(seed: u64, is_chosen: bool, rates: Rates, seam: impl Seam + 'static) -> Self {
        fastrand::seed(seed); // the generator of the SDK's retries
        let begun = Instant::now();
        let engine = Engine::embedded_at(move || time_since(begun));
        let network = Network::through(&engine, rates, fastrand::Rng::with_seed(seed), seam);
        network.transactions_take(Duration::from_millis(20));
        Dynamo { network, story: Arc::new(Story { seed, begun, is_chosen }) }
    }

    /// Creates an empty table with one text for its key. A program may also create its tables itself, through its
    /// client.
    pub fn create_table(&self, table: &str, partition_key: &str) {
        self.engine().create_table(table, partition_key);
    }

    /// Stores an item behind the back of every client, in `DynamoDB`'s JSON: `{"id": {"S": "a"}, "n": {"N": "0"}}`.
    pub fn put(&self, table: &str, item: &Value) {
        self.engine().raw("PutItem", &json!({"TableName": table, "Item": item}));
    }

    /// An item as it is stored, in `DynamoDB`'s JSON; `Null` where there is none. For a key that is one text.
    pub fn row(&self, table: &str, id: &str) -> Value {
        self.engine().row(table, &self.engine().key_of(table), id)
    }

    /// A whole number of a stored item.
    pub fn number(&self, table: &str, id: &str, attribute: &str) -> i64 {
        number(&self.row(table, id), attribute)
    }

    /// A client of the real SDK, with the retries that it has by default: each request is sent up to three times.
    pub fn client(&self) -> Client {
        self.client_from(config())
    }

    /// A client of the real SDK that sends nothing again by itself.
    pub fn client_without_retries(&self) -> Client {
        self.client_from(config().retry_config(RetryConfig::disabled()))
    }

    /// A client with settings of your own. Only its HTTP client is replaced.
    pub fn client_from(&self, config: Builder) -> Client {
        Client::from_conf(config.http_client(self.http_client()).build())
    }

    /// The HTTP client that leads to this engine, for a program that makes its clients itself.
    pub fn http_client(&self) -> SharedHttpClient {
        http_client(self.wire())
    }

    /// A connection of its own. See [`Wire::works_on`].
    pub fn wire(&self) -> Wire {
        Wire::new(&self.network)
    }

    /// The answer is lost: the request is executed, and then the connection is reset.
    ///
    /// A client cannot tell this from [`reset_connection`](Self::reset_connection).
    pub fn lose_answer(&self) -> Plan {
        self.fault(Fault::AnswerLost)
    }

    /// The request is lost: the connection is reset before the request arrives.
    pub fn reset_connection(&self) -> Plan {
        self.fault(Fault::Dropped)
    }

    /// The request is held for so long before it arrives. A client that gives up meanwhile does not stop it. After five
    /// minutes its signature has ended: it is refused.
    pub fn delay(&self, time: Duration) -> Plan {
        self.fault(Fault::Delayed(time))
    }

    /// A second copy of the request arrives, so long after the answer to the first, if its signature has not ended by then.
    pub fn duplicate(&self, after: Duration) -> Plan {
        self.fault(Fault::CopiedAfter(after))
    }

    /// The request is refused with `ThrottlingException`.
    pub fn throttle(&self) -> Plan {
        self.fault(Fault::Throttled)
    }

    /// A conditional write loses a race: it is answered as if another writer had been first, though the item is
    /// unchanged. [`Plan::after`] lets another writer really be first.
    pub fn conflict_next(&self) -> Plan {
        self.fault(Fault::Conflict).of_conditional_writes()
    }

    /// The client that sends the request stands still for so long, as soon as it is sent. For work that runs in
    /// [`freezing`](Self::freezing).
    pub fn freeze(&self, time: Duration) -> Plan {
        self.fault(Fault::Frozen(time))
    }

    /// Any other fault.
    pub fn fault(&self, fault: Fault) -> Plan {
        Plan::new(&self.network, fault)
    }

    /// From now on, a transaction takes this time and 0.34 ms for each of its actions, from its arrival to its answer;
    /// no time of its own if this is zero. Without a call, it is 20 ms.
    ///
    /// An applied transaction occupies its items meanwhile. Other requests for them are refused: a write with
    /// `TransactionConflictException`, a transaction as cancelled with the reason `TransactionConflict`, its own copy
    /// as in progress. A refused transaction takes as long and occupies nothing.
    ///
    /// 20 ms is less than was measured at `DynamoDB`: the [published medians][measured] of transactions over 5 and 25 items,
    /// 25.3 and 32.1 ms, fit 23.6 ms and 0.34 ms for each action.
    ///
    /// [measured]: https://github.com/alexdebrie/dynamodb-performance-testing
    pub fn transactions_take(&self, time: Duration) {
        self.network.transactions_take(time);
    }

    /// From now on, items or tables have this capacity beside those given before: `db.capacity(Capacity::of_items())`.
    ///
    /// A request beyond it is throttled with a list of reasons, each with the ARN of the table. On a table with
    /// [`Capacity::provisioned`], this is `ProvisionedThroughputExceededException`, on others `ThrottlingException`, or
    /// `RequestLimitExceeded` beyond the quota of the account. A transaction is cancelled, and the step that met the
    /// limit has the reason `ProvisionedThroughputExceeded` or `ThrottlingError`. A batch comes back without the
    /// members that met it.
    ///
    /// Units are counted as `DynamoDB` does: by the started KB of writes, by the larger of the item before and after,
    /// and by the started 4 KB of reads, half of them if eventually consistent; twice in transactions; for refused
    /// writes too. A repeated transaction costs reads. A refusal because of a transaction in flight costs the same as a
    /// refused condition; `DynamoDB` does not say whether it does. Left out are the units of indexes, of `PartiQL`, and
    /// the items of a `Query` or a `Scan`, which count only for its table.
    pub fn capacity(&self, capacity: Capacity) {
        self.network.capacity(capacity);
    }

    /// From now on, the log has the [units](crate::Log::units) of each request. Nothing is throttled for it.
    pub fn count_units(&self) {
        self.network.count_units();
    }

    /// Work of a client that can be made to stand still.
    pub fn freezing<F: Future>(&self, work: F) -> Freezing<F> {
        Freezing::new(&self.network, work)
    }

    /// Waits until no request and no copy of one is on its way.
    pub async fn settle(&self) {
        while !self.network.is_quiet() {
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Every request that left a client, with its outcome.
    pub fn log(&self) -> Log {
        self.network.log()
    }

    /// The seed of this test.
    pub fn seed(&self) -> u64 {
        self.story.seed
    }

    /// A random number from the seed, for the parts of a program that take their chance as an argument.
    pub fn random(&self) -> u64 {
        self.network.rng.lock().expect("no panic while drawing").u64(..)
    }

    /// The time of day in this test. It runs with tokio's time. The engine expires rows by it.
    pub fn now(&self) -> SystemTime {
        time_since(self.story.begun)
    }

    /// The engine behind the network, for changes behind the backs of the clients.
    pub fn engine(&self) -> &Engine {
        &self.network.engine
    }

    /// The network that all clients share.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }
}

fn time_since(begun: Instant) -> SystemTime {
    SystemTime::UNIX_EPOCH + TEN_O_CLOCK + begun.elapsed()
}

/// Plays a test once for each of these seeds, each time under paused time of its own. `FENCEPOST_SEED` plays one of them
/// again, and `FENCEPOST_HISTORIES` says how many are played (`10000`) or which (`10000..20000`).
///
/// A test that fails prints its seed.
///
/// ```
/// fencepost_test::for_each_seed(3, async |db| {
///     db.create_table("Counters", "id");
///     db.lose_answer().of("PutItem").with_probability(0.5);
///     // ... the program under test, with `db.client()`
/// });
/// ```
///
/// # Panics
/// Where the test does.
pub fn for_each_seed(sample: u64, test: impl AsyncFn(Dynamo)) {
    for seed in asked_seeds().unwrap_or(0..sample) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async { test(Dynamo::chosen(seed)).await });
    }
}

/// A fault that strikes as soon as it is said how often: with [`once`](Self::once), [`times`](Self::times),
/// [`always`](Self::always) or [`with_probability`](Self::with_probability).
///
/// Without [`of`](Self::of), [`on`](Self::on) and [`about`](Self::about) it is meant for every request of every client.
/// Each send counts: a request that the SDK repeats by itself may be struck more than once.
#[must_use = "a fault strikes only after `once`, `times`, `always` or `with_probability`"]
pub struct Plan {
    network: Arc<Network>,
    fault: Fault,
    wanted: Wanted,
    silent: bool,
    rival: Option<Rival>,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("fault", &self.fault).field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

impl Plan {
    pub(crate) fn new(network: &Arc<Network>, fault: Fault) -> Self {
        Plan { network: network.clone(), fault, wanted: Wanted::default(), silent: false, rival: None }
    }

    /// Only for this operation, such as `UpdateItem`.
    pub fn of(mut self, operation: &str) -> Self {
        self.wanted.operation = Some(operation.to_owned());
        self
    }

    /// Only for requests that touch this table.
    pub fn on(mut self, table: &str) -> Self {
        self.wanted.table = Some(table.to_owned());
        self
    }

    /// Only for requests that touch a row with this partition key.
    pub fn about(mut self, id: &str) -> Self {
        self.wanted.id = Some(id.to_owned());
        self
    }

    /// Only for requests that may change something.
    pub fn of_writes(mut self) -> Self {
        self.wanted.writes_only = true;
        self
    }

    pub(crate) fn of_conditional_writes(mut self) -> Self {
        self.wanted.conditional_only = true;
        self.of_writes()
    }

    /// Spares so many of these requests first.
    pub fn sparing(mut self, requests: usize) -> Self {
        self.wanted.spared = requests;
        self
    }

    /// Lets the connection stay open if no answer comes, instead of being reset. Only a timeout of the client ends the
    /// wait; the SDK has none by default.
    pub fn silently(mut self) -> Self {
        self.silent = true;
        self
    }

    /// Lets another writer be first: this runs right before the request arrives. After a
    /// [`conflict_next`](crate::Dynamo::conflict_next), the engine then judges the condition.
    pub fn after(mut self, rival: impl Fn(&Engine) + Send + Sync + 'static) -> Self {
        self.rival = Some(Arc::new(rival));
        self
    }

    /// Strikes the next of these requests.
    pub fn once(self) -> Planned {
        self.times(1)
    }

    /// Strikes the next so many of these requests.
    pub fn times(self, requests: usize) -> Planned {
        self.when(When::Times(requests))
    }

    /// Strikes all of these requests from now on.
    pub fn always(self) -> Planned {
        self.when(When::Always)
    }

    /// Strikes this share of these requests: 0.05 for 5 %. The seed decides which.
    pub fn with_probability(self, share: f64) -> Planned {
        self.when(When::Share(share))
    }

    fn when(self, when: When) -> Planned {
        let rule = Rule::new(self.fault, self.wanted, self.silent, self.rival, when);
        Planned(self.network.plan(rule))
    }
}

/// A planned fault, to be asked whether it struck. A test shows nothing if its fault never strikes.
#[derive(Clone)]
pub struct Planned(Arc<Rule>);

impl Planned {
    /// How many requests it struck so far.
    pub fn struck(&self) -> usize {
        self.0.struck()
    }
}

impl fmt::Debug for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planned").field("fault", &self.0.fault).field("struck", &self.struck()).finish_non_exhaustive()
    }
}
