//! Units by the rules of `DynamoDB`, and the capacity of items and tables, which refuses requests beyond it.
//!
//! [Units of reads and writes][units]
//!
//! [units]: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html

use crate::connection::{Answer, Request};
use crate::engine::{Engine, Step, action_of, is_read};
use crate::size::size_of_item;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::AddAssign;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

/// Read and write units, or so many of them in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Units {
    /// One for each started 4 KB of an item that is read, half of it if the read is eventually consistent.
    pub read: f64,
    /// One for each started KB of an item that is written, by its size before or after, the larger of them.
    pub write: f64,
}

impl AddAssign for Units {
    fn add_assign(&mut self, other: Self) {
        self.read += other.read;
        self.write += other.write;
    }
}

impl Sum for Units {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Units::default(), |mut sum, units| {
            sum += units;
            sum
        })
    }
}

/// The units that an item or a table takes in a second. Requests beyond them are throttled.
///
/// Give it to [`Dynamo::capacity`](crate::Dynamo::capacity). A request is let in while any unit is left, and then takes
/// all that it costs: a debt is paid before the next request. A throttled request costs nothing. At first all capacity
/// is unused.
///
/// | capacity | a second | kept | throttling reason, after `TableRead` or `TableWrite` |
/// |---|---|---|---|
/// | [`of_items`](Self::of_items) | 3,000 read and 1,000 write units | 1 s | `KeyRangeThroughputExceeded` |
/// | [`provisioned`](Self::provisioned) | as given | 300 s | `ProvisionedThroughputExceeded` |
/// | [`on_demand`](Self::on_demand) | as given | 1 s | `MaxOnDemandThroughputExceeded` |
/// | [`of_account`](Self::of_account) | 40,000 of each for a table | 1 s | `AccountLimitExceeded` |
#[derive(Clone, Debug)]
pub struct Capacity {
    limit: Limit,
    table: Option<String>,
    a_second: Units,
    burst: Duration,
}

/// The kinds of capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    KeyRange,
    Provisioned,
    MaxOnDemand,
    Account,
}

/// A step meets an exhausted capacity.
#[derive(Clone, Debug)]
pub struct Throttled {
    pub limit: Limit,
    /// Whether the capacity of its table is provisioned.
    pub is_provisioned: bool,
    is_write: bool,
    table: String,
}

impl Throttled {
    /// By the partition of an on-demand table.
    pub fn by_partition(request: &Request, step: &Step) -> Self {
        let (is_write, table) = (!is_read(&request.operation), step.table.clone());
        Throttled { limit: Limit::KeyRange, is_provisioned: false, is_write, table }
    }

    /// [ThrottlingReason](https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ThrottlingReason.html)
    pub fn reason(&self) -> Value {
        let limit = match self.limit {
            Limit::KeyRange => "KeyRangeThroughputExceeded",
            Limit::Provisioned => "ProvisionedThroughputExceeded",
            Limit::MaxOnDemand => "MaxOnDemandThroughputExceeded",
            Limit::Account => "AccountLimitExceeded",
        };
        let reason = format!("Table{}{limit}", if self.is_write { "Write" } else { "Read" });
        json!({"reason": reason, "resource": format!("arn:aws:dynamodb:eu-west-1:000000000000:table/{}", self.table)})
    }
}

impl Capacity {
    /// The capacity of a partition, for the items with one partition key: each item of a table without sort key. It has
    /// no burst, because [burst capacity cannot alleviate the throttling of a partition][burst].
    ///
    /// [burst]: https://repost.aws/knowledge-center/dynamodb-spiky-workloads-short-intervals
    #[must_use]
    pub fn of_items() -> Self {
        Self::new(Limit::KeyRange, None, 3_000.0, 1_000.0)
    }

    /// The provisioned capacity of a table, with the [unused capacity of 300 seconds][burst].
    ///
    /// [burst]: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html
    #[must_use]
    pub fn provisioned(table: &str, reads: f64, writes: f64) -> Self {
        Self::new(Limit::Provisioned, Some(table), reads, writes).with_burst(300 * SECOND)
    }

    /// The maximum that is set for an [on-demand table][maximum].
    ///
    /// [maximum]: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode-max-throughput.html
    #[must_use]
    pub fn on_demand(table: &str, reads: f64, writes: f64) -> Self {
        Self::new(Limit::MaxOnDemand, Some(table), reads, writes)
    }

    /// The quota of an account for each of its on-demand tables.
    #[must_use]
    pub fn of_account() -> Self {
        Self::new(Limit::Account, None, 40_000.0, 40_000.0)
    }

    /// Other units in a second.
    #[must_use]
    pub fn with_units(self, reads: f64, writes: f64) -> Self {
        Capacity { a_second: Units { read: reads, write: writes }, ..self }
    }

    /// Keeps the unused capacity of so long. At least that of a second is kept.
    #[must_use]
    pub fn with_burst(self, burst: Duration) -> Self {
        Capacity { burst: burst.max(SECOND), ..self }
    }

    fn new(limit: Limit, table: Option<&str>, read: f64, write: f64) -> Self {
        Capacity { limit, table: table.map(ToOwned::to_owned), a_second: Units { read, write }, burst: SECOND }
    }

    fn is_of(&self, step: &Step) -> bool {
        self.table.as_ref().is_none_or(|table| *table == step.table)
            && (self.limit != Limit::KeyRange || !step.id.is_empty())
    }
}

/// The capacities of one test, and their use.
#[derive(Debug, Default)]
pub struct Capacities(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    counts: bool,
    capacities: Vec<Capacity>,
    /// By the number of the capacity, the table, the partition key, and whether it is for writes.
    left: BTreeMap<(usize, String, String, bool), Left>,
}

/// The units that were left at a moment.
#[derive(Debug)]
struct Left(f64, Instant);

impl State {
    /// The units that are left for a step.
    fn left(&mut self, number: usize, step: &Step, is_write: bool) -> &mut f64 {
        let Capacity { limit, a_second, burst, .. } = &self.capacities[number];
        let (now, a_second) = (Instant::now(), if is_write { a_second.write } else { a_second.read });
        let most = a_second * burst.as_secs_f64();
        let id = if *limit == Limit::KeyRange { step.id.clone() } else { String::new() };
        let key = (number, step.table.clone(), id, is_write);
        let Left(left, at) = self.left.entry(key).or_insert(Left(most, now));
        *left = (*left + a_second * (now - *at).as_secs_f64()).min(most);
        *at = now;
        left
    }

    fn throttled(&mut self, step: &Step, is_write: bool) -> Option<Throttled> {
        let mut numbers = 0..self.capacities.len();
        let is_exhausted =
            |number: &usize| self.capacities[*number].is_of(step) && *self.left(*number, step, is_write) <= 0.0;
        let exhausted = numbers.find(is_exhausted)?;
        let is_provisioned = |capacity: &Capacity| capacity.limit == Limit::Provisioned && capacity.is_of(step);
        let is_provisioned = self.capacities.iter().any(is_provisioned);
        let limit = self.capacities[exhausted].limit;
        Some(Throttled { limit, is_provisioned, is_write, table: step.table.clone() })
    }

    fn take(&mut self, step: &Step, units: Units) {
        for number in 0..self.capacities.len() {
            if self.capacities[number].is_of(step) {
                *self.left(number, step, false) -= units.read;
                *self.left(number, step, true) -= units.write;
            }
        }
    }
}

impl Capacities {
    pub fn add(&self, capacity: Capacity) {
        let mut state = self.0.lock().expect("no panic while setting");
        state.counts = true;
        state.capacities.push(capacity);
    }

    pub fn count(&self) {
        self.0.lock().expect("no panic while setting").counts = true;
    }

    /// Whether units are counted.
    pub fn counts(&self) -> bool {
        self.0.lock().expect("no panic while reading").counts
    }

    /// The exhausted capacity that each step meets, if any does.
    pub fn throttled(&self, request: &Request, steps: &[Step]) -> Vec<Option<Throttled>> {
        let mut state = self.0.lock().expect("no panic while reading");
        let is_write = !is_read(&request.operation);
        let throttled = |step: &Step| is_counted(step).then(|| state.throttled(step, is_write)).flatten();
        steps.iter().map(throttled).collect()
    }

    /// The sizes of the rows of a request.
    pub fn sizes(&self, engine: &Engine, steps: &[Step]) -> Vec<usize> {
        if self.counts() { steps.iter().map(|step| engine.size_of_row(step)).collect() } else { Vec::new() }
    }

    /// Takes the units of an answered request, and gives them by table.
    pub fn take(&self, engine: &Engine, steps: &[Step], answered: &Answered<'_>) -> BTreeMap<String, Units> {
        let mut taken: BTreeMap<String, Units> = BTreeMap::new();
        if self.counts() && answered.costs() {
            for (number, step) in steps.iter().enumerate().filter(|(_, step)| is_counted(step)) {
                let units = answered.units(number, step, engine.size_of_row(step));
                self.0.lock().expect("no panic while counting").take(step, units);
                *taken.entry(step.table.clone()).or_default() += units;
            }
        }
        taken
    }
}

/// Whether a step reads or writes items.
fn is_counted(step: &Step) -> bool {
    step.key.is_object() || ["Query", "Scan"].contains(&step.action)
}

/// A request with its answer.
pub struct Answered<'a> {
    pub request: &'a Request,
    pub answer: &'a Answer,
    /// The size of the row of each step before it.
    pub before: Vec<usize>,
    /// Whether it is the copy of a transaction that was applied or is in progress.
    pub is_replay: bool,
    /// The units that the engine names for a `Query` or a `Scan`.
    pub named: f64,
}

impl Answered<'_> {
    /// Whether its answer is one that costs units: a refused write does, an invalid request does not.
    fn costs(&self) -> bool {
        let refusals =
            ["ConditionalCheckFailed", "TransactionCanceled", "TransactionConflict", "TransactionInProgress"];
        let code = self.answer.code().and_then(|code| code.strip_suffix("Exception"));
        self.answer.is_success() || code.is_some_and(|code| refusals.contains(&code))
    }

    /// The units of a step, whose row has this size after it.
    fn units(&self, number: usize, step: &Step, after: usize) -> Units {
        let body = &self.request.body;
        let is_transaction = body.get("TransactItems").is_some();
        let put = if is_transaction { action_of(&body["TransactItems"][number]).1 } else { body };
        let bytes = self.before[number].max(after).max(size_of_item(&put["Item"]));
        let is_consistent =
            [body, &body["RequestItems"][&step.table]].iter().any(|read| read["ConsistentRead"] == true);
        let (for_read, for_write) = match (is_transaction, is_consistent) {
            (true, _) => (2.0, 2.0),
            (false, true) => (1.0, 1.0),
            (false, false) => (0.5, 1.0),
        };
        match step.action {
            "Query" | "Scan" => Units { read: self.named, write: 0.0 },
            "GetItem" | "BatchGetItem" => Units { read: for_read * blocks(bytes, 4), write: 0.0 },
            _ if self.is_replay => Units { read: for_read * blocks(bytes, 4), write: 0.0 },
            _ => Units { read: 0.0, write: for_write * blocks(bytes, 1) },
        }
    }
}

/// The started blocks of so many KB. An item that is not there is one, too.
fn blocks(bytes: usize, kb: usize) -> f64 {
    f64::from(u32::try_from(bytes.div_ceil(kb * 1024).max(1)).expect("an item is small"))
}
