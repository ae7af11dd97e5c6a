//! [`Sender`]: sends one request once.
#![expect(
    clippy::disallowed_methods,
    reason = "the one place that sends requests; the times of changes are counted from here"
)]
#![expect(clippy::result_large_err, reason = "an error of the SDK is moved once, from one match to the next")]

use super::classify::classify;
use super::guard::{Guard, SENDING, Sending, is_too_late};
use super::outcome::{SendOutcome, Shown, no_answer, record_request};
use super::transaction::{Address, answered, batch_of, classify_transact_write_items};
use super::values::{Item, from_sdk, return_value, to_sdk};
use crate::clock::{Clock, Rng};
use crate::deadline::{Deadline, after};
use crate::driver::row_cache::RowCache;
use crate::observe::Observer;
use crate::rejection::{Reach, Rejection};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{FrameworkMetadata, Intercept, Region};
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableOutput;
use aws_sdk_dynamodb::operation::describe_time_to_live::DescribeTimeToLiveOutput;
use aws_sdk_dynamodb::operation::get_item::GetItemOutput;
use aws_sdk_dynamodb::operation::put_item::{PutItemError, PutItemOutput};
use aws_sdk_dynamodb::operation::query::QueryOutput;
use aws_sdk_dynamodb::operation::scan::ScanOutput;
use aws_sdk_dynamodb::operation::update_item::{UpdateItemError, UpdateItemOutput};
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure::AllOld;
use aws_sdk_dynamodb::types::{Select, TableDescription, TimeToLiveDescription, TransactWriteItem};
use fencepost_core::condition::{ConditionalWrite, Operation, Selected, SortBound, key_condition};
use fencepost_core::{AttributeValue, Attributes, ClientState, Leave, Now, RetryPolicy, WriteId};
use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;
use std::future::ready;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

#[derive(Clone)]
pub(crate) struct Sender {
    client: Client,
    /// What all changes of the client know together. Shared by all copies. Never held across an await.
    state: Arc<Mutex<ClientState>>,
    /// The rows last seen by the client in any table. Shared by all copies.
    pub(crate) row_cache: Arc<RowCache>,
    /// Whether the client can send anything. Shared by all copies.
    pub(super) reach: Arc<Reach>,
    /// The moment from which the times of changes are counted.
    began: Instant,
    pub(crate) policy: RetryPolicy,
    pub(crate) clock: Clock,
    pub(crate) rng: Rng,
    /// What is told of each operation that has ended.
    pub(crate) observer: Option<Arc<Observer>>,
}

/// How one send ended, and whether the service said anything.
pub(crate) type Ended = (SendOutcome, bool);

/// A place for the description that a send brings.
pub(crate) type Found<D> = Mutex<Option<D>>;

/// One send on its way.
pub(crate) type Boxed<'s> = Pin<Box<dyn Future<Output = Ended> + Send + 's>>;

type Read = for<'s> fn(&'s Sender, Vec<Address>, Leave) -> Boxed<'s>;
type Write = for<'s> fn(&'s Sender, &'s str, ConditionalWrite, Leave) -> Boxed<'s>;

/// The requests of a change. A program contains only those that its changes name: each takes some 25 KB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requests {
    pub read: Option<Read>,
    pub write: Option<Write>,
    /// Whether one request reads many rows.
    pub reads_batches: bool,
}

impl Requests {
    pub(crate) const NONE: Requests = Requests { read: None, write: None, reads_batches: false };
    /// Those of one row.
    pub(crate) const ROW: Requests =
        Requests { read: Some(Sender::read_row), write: Some(Sender::write), ..Self::NONE };
    /// Those of rows that are read together, also where it is only one: the functions are permitted one way of reading
    /// each table.
    pub(crate) const ROWS: Requests =
        Requests { read: Some(Sender::read_batch), write: Some(Sender::write), reads_batches: true };
    /// Those of a row that is only put.
    pub(crate) const PUTS: Requests = Requests { write: Some(Sender::put), ..Self::NONE };
    /// Those of a row that is only updated.
    pub(crate) const UPDATES: Requests = Requests { write: Some(Sender::update), ..Self::NONE };
}

/// One page of a partition, or of a whole table or index.
#[derive(Clone, Default, Debug)]
pub(crate) struct PageRequest {
    pub table: String,
    pub index: Option<String>,
    /// The partition of a query. Without one, it is a scan.
    pub partition: Vec<(&'static str, AttributeValue)>,
    pub sort: Vec<(&'static str, SortBound)>,
    /// The part of a scan, from 0, and the number of parts.
    pub segment: Option<(i32, i32)>,
    /// Whether the read is strongly consistent. A global secondary index refuses such reads.
    pub is_consistent: bool,
    pub is_descending: bool,
    pub limit: Option<i32>,
    pub after: Option<Attributes>,
    pub selected: Selected,
    /// Whether the rows are only counted. They are then shown without attributes.
    pub counts: bool,
}

impl Sender {
    /// Creates a sender, and switches off the retries of the client. A retry there would hide a lost answer.
    pub(crate) fn new(client: &Client) -> Self {
        let began = Instant::now();
        Sender {
            client: guarded(client),
            state: Arc::default(),
            row_cache: Arc::new(RowCache::new(began)),
            reach: Arc::default(),
            began,
            policy: RetryPolicy::default(),
            clock: Clock::system(),
            rng: Rng::system(),
            observer: None,
        }
    }

    pub(crate) fn has_client_of(&self, other: &Sender) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time since the moment from which the times of changes are counted.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The time by both clocks, and the time left.
    pub(crate) fn now(&self, deadline: Deadline) -> Now {
        let now = Instant::now();
        let left = deadline.remaining_at(now);
        Now { at: now.saturating_duration_since(self.began), wall: self.clock.now(), left }
    }

    /// The moment at this time of a change.
    pub(crate) fn moment(&self, at: Duration) -> Instant {
        after(self.began, at)
    }

    /// Reads the one row of these, strongly consistent.
    pub(crate) fn read_row(&self, rows: Vec<Address>, leave: Leave) -> Boxed<'_> {
        Box::pin(async move {
            let Some(Address { table, key }) = rows.into_iter().next() else { return no_such_request() };
            let request = self.client.get_item().table_name(&table).set_key(Some(to_sdk(key))).consistent_read(true);
            let shown = |output: GetItemOutput| Some(Shown::Row(output.item.map(from_sdk)));
            let sent = async move { heard(request.send().await, shown, |error| classify(error, Err)) };
            self.ended(("GetItem", Some(&table)), leave, Box::pin(sent)).await
        })
    }

    /// Sends one conditional write, once. An applied write returns the attributes requested in it. A refused write
    /// returns the row that refused it, if there was one.
    pub(crate) fn write<'s>(&'s self, table: &'s str, write: ConditionalWrite, leave: Leave) -> Boxed<'s> {
        match write.action {
            Operation::Put { .. } => self.put(table, write, leave),
            Operation::Update { .. } => self.update(table, write, leave),
            Operation::Delete { .. } => self.delete(table, write, leave),
            // A check is a step of a transaction.
            Operation::Check { .. } => Box::pin(ready(no_such_request())),
        }
    }

    /// [`Sender::write`], if it is a put.
    pub(crate) fn put<'s>(&'s self, table: &'s str, write: ConditionalWrite, leave: Leave) -> Boxed<'s> {
        Box::pin(async move {
            let ConditionalWrite { action: Operation::Put { item }, condition, names, values, returning } = write
            else {
                return no_such_request();
            };
            let request = self.client.put_item().table_name(table).set_item(Some(to_sdk(item)));
            let request = request.condition_expression(condition).set_expression_attribute_names(Some(names));
            let request = request.set_expression_attribute_values(given(values));
            let request = request.set_return_values(returning.map(return_value));
            let request = request.return_values_on_condition_check_failure(AllOld);
            let refused = |error| match error {
                PutItemError::ConditionalCheckFailedException(refusal) => Ok(refusal.item),
                error => Err(error),
            };
            let shown = |output: PutItemOutput| Some(Shown::Row(output.attributes.map(from_sdk)));
            let sent = async move { heard(request.send().await, shown, |error| classify(error, refused)) };
            self.ended(("PutItem", Some(table)), leave, Box::pin(sent)).await
        })
    }

    /// [`Sender::write`], if it is an update.
    pub(crate) fn update<'s>(&'s self, table: &'s str, write: ConditionalWrite, leave: Leave) -> Boxed<'s> {
        Box::pin(async move {
            let ConditionalWrite { action, condition, names, values, returning } = write;
            let Operation::Update { key, expression } = action else { return no_such_request() };
            let request = self.client.update_item().table_name(table).set_key(Some(to_sdk(key)));
            let request = request.update_expression(expression).condition_expression(condition);
            let request = request.set_expression_attribute_names(Some(names));
            let request = request.set_expression_attribute_values(given(values));
            let request = request.set_return_values(returning.map(return_value));
            let request = request.return_values_on_condition_check_failure(AllOld);
            let refused = |error| match error {
                UpdateItemError::ConditionalCheckFailedException(refusal) => Ok(refusal.item),
                error => Err(error),
            };
            let shown = |output: UpdateItemOutput| Some(Shown::Row(output.attributes.map(from_sdk)));
            let sent = async move { heard(request.send().await, shown, |error| classify(error, refused)) };
            self.ended(("UpdateItem", Some(table)), leave, Box::pin(sent)).await
        })
    }

    fn delete<'s>(&'s self, table: &'s str, write: ConditionalWrite, leave: Leave) -> Boxed<'s> {
        Box::pin(async move {
            let ConditionalWrite { action: Operation::Delete { key }, condition, names, values, .. } = write else {
                return no_such_request();
            };
            let request = self.client.delete_item().table_name(table).set_key(Some(to_sdk(key)));
            let request = request.condition_expression(condition).set_expression_attribute_names(Some(names));
            let request = request.set_expression_attribute_values(given(values));
            let request = request.return_values_on_condition_check_failure(AllOld);
            let refused = |error| match error {
                DeleteItemError::ConditionalCheckFailedException(refusal) => Ok(refusal.item),
                error => Err(error),
            };
            let shown = |_| Some(Shown::Row(None));
            let sent = async move { heard(request.send().await, shown, |error| classify(error, refused)) };
            self.ended(("DeleteItem", Some(table)), leave, Box::pin(sent)).await
        })
    }

    pub(crate) fn new_id(&self) -> WriteId {
        WriteId::from_random(self.rng.next_u64())
    }

    /// Sends one transaction, once. A refusal has one reason per step, in the order of the steps.
    pub(crate) async fn transact(&self, steps: Vec<TransactWriteItem>, token: String, leave: Leave) -> Ended {
        let request = self.client.transact_write_items().set_transact_items(Some(steps)).client_request_token(token);
        let shown = |_| Some(Shown::Nothing);
        let sent = async move { heard(request.send().await, shown, classify_transact_write_items) };
        self.ended(("TransactWriteItems", None), leave, Box::pin(sent)).await
    }

    /// Reads rows of several tables in one request, each strongly consistent. Returns them by position.
    pub(crate) fn read_batch(&self, rows: Vec<Address>, leave: Leave) -> Boxed<'_> {
        Box::pin(async move {
            let request = match batch_of(&rows) {
                Ok(items) => self.client.batch_get_item().set_request_items(Some(items)),
                Err(error) => return (SendOutcome::Rejected(error.into()), false),
            };
            // The caller asks again for the missing rows.
            let shown = move |output| answered(&rows, output).map(Shown::Rows);
            let sent = async move { heard(request.send().await, shown, |error| classify(error, Err)) };
            self.ended(("BatchGetItem", None), leave, Box::pin(sent)).await
        })
    }

    /// Reads one page: at most 1 MB, and at most as many rows as the request says.
    pub(crate) async fn page(&self, page: &PageRequest, leave: Leave) -> Ended {
        let Selected { filter, projection, mut names, mut values } = page.selected.clone();
        let select = page.counts.then_some(Select::Count);
        let after = page.after.clone().map(to_sdk);
        let named = |names: HashMap<_, _>| Some(names).filter(|names| !names.is_empty());
        if page.partition.is_empty() {
            let request = self.client.scan().table_name(&page.table).set_index_name(page.index.clone());
            let request = request.set_segment(page.segment.map(|(part, _)| part));
            let request = request.set_total_segments(page.segment.map(|(_, parts)| parts));
            let request = request.set_filter_expression(filter).set_projection_expression(projection);
            let request = request.set_expression_attribute_names(named(names)).set_select(select);
            let request = request.set_expression_attribute_values(given(values)).set_exclusive_start_key(after);
            let request = request.consistent_read(page.is_consistent).set_limit(page.limit);
            let shown =
                |output: ScanOutput| page_of(counted(page, output.count).or(output.items), output.last_evaluated_key);
            let sent = async move { heard(request.send().await, shown, |error| classify(error, Err)) };
            return self.ended(("Scan", Some(&page.table)), leave, Box::pin(sent)).await;
        }
        let (condition, of_key, in_key) = key_condition(&page.partition, &page.sort);
        names.extend(of_key);
        values.extend(in_key);
        let request = self.client.query().table_name(&page.table).set_index_name(page.index.clone());
        let request = request.key_condition_expression(condition).scan_index_forward(!page.is_descending);
        let request = request.set_filter_expression(filter).set_projection_expression(projection);
        let request = request.set_expression_attribute_names(named(names)).set_select(select);
        let request = request.set_expression_attribute_values(given(values)).set_exclusive_start_key(after);
        let request = request.consistent_read(page.is_consistent).set_limit(page.limit);
        let shown =
            |output: QueryOutput| page_of(counted(page, output.count).or(output.items), output.last_evaluated_key);
        let sent = async move { heard(request.send().await, shown, |error| classify(error, Err)) };
        self.ended(("Query", Some(&page.table)), leave, Box::pin(sent)).await
    }

    /// Describes a table. Keeps the description in `found`, and shows an empty page.
    pub(crate) async fn describe(&self, table: &str, found: &Found<TableDescription>, leave: Leave) -> Ended {
        let request = self.client.describe_table().table_name(table);
        let shown = |output: DescribeTableOutput| keep(found, output.table?);
        let sent = async move { heard(request.send().await, shown, |error| classify(error, Err)) };
        self.ended(("DescribeTable", Some(table)), leave, Box::pin(sent)).await
    }

    /// The same for the TTL of the table.
    pub(crate) async fn describe_ttl(&self, table: &str, found: &Found<TimeToLiveDescription>, leave: Leave) -> Ended {
        let request = self.client.describe_time_to_live().table_name(table);
        let shown = |output: DescribeTimeToLiveOutput| keep(found, output.time_to_live_description?);
        let sent = async move { heard(request.send().await, shown, |error| classify(error, Err)) };
        self.ended(("DescribeTimeToLive", Some(table)), leave, Box::pin(sent)).await
    }

    /// The region of the client, if it has one.
    pub(crate) fn region(&self) -> Option<&str> {
        self.client.config().region().map(Region::as_ref)
    }

    /// Waits for an answer within the time limit. Returns the proof in it.
    ///
    /// The send is boxed, because the SDK's futures take kilobytes. Every future of this crate would contain one.
    async fn ended(
        &self,
        (operation, table): (&'static str, Option<&str>),
        Leave { timeout, leave_by, .. }: Leave,
        sent: Boxed<'_>,
    ) -> Ended {
        record_request(operation, table);
        if table == Some("") {
            return (SendOutcome::Rejected("the name of the table is empty; give it one".into()), false);
        }
        let fruitless = self.reach.fruitless();
        let sending = Sending::new(leave_by.map(|latest| (self.clock.clone(), latest)));
        let mut sending = pin!(SENDING.scope(sending, sent));
        let ended = tokio::time::timeout(timeout, sending.as_mut()).await;
        // Dropping the send closes its connection. If it waited for credentials, it counts as lost all the same, so that
        // the next one waits longer for them.
        let Ok((outcome, is_answered)) = ended else { return (SendOutcome::Unknown(no_answer(timeout)), false) };
        let never_left = sending.take_value().is_some_and(|sending| sending.never_left());
        if is_answered {
            self.reach.answered();
        }
        let outcome = match outcome {
            SendOutcome::Unknown(source) | SendOutcome::Broken(source) if never_left && is_too_late(&*source) => {
                SendOutcome::NotApplied(source)
            }
            SendOutcome::Unknown(source) | SendOutcome::Broken(source) if never_left => {
                let lacks = self.reach.lacks(self.client.config(), fruitless, source);
                lacks.map_or_else(SendOutcome::NotApplied, |lacks| SendOutcome::Rejected(lacks.into()))
            }
            SendOutcome::Rejected(source) => SendOutcome::Rejected(Rejection::of_request(operation, table, source)),
            SendOutcome::Expired(source) => SendOutcome::Expired(Rejection::of_request(operation, table, source)),
            outcome => outcome,
        };
        (outcome, is_answered)
    }
}

fn no_such_request() -> Ended {
    (SendOutcome::Rejected("this change has no such request".into()), false)
}

/// The values of an expression, if it has any.
fn given(values: Attributes) -> Option<Item> {
    Some(values).filter(|values| !values.is_empty()).map(to_sdk)
}

/// The proof in an answer. An incomplete success shows nothing.
fn heard<O, E: Error + 'static>(
    answer: Result<O, SdkError<E, HttpResponse>>,
    shown: impl FnOnce(O) -> Option<Shown>,
    classify: impl FnOnce(SdkError<E, HttpResponse>) -> SendOutcome,
) -> Ended {
    let is_answered = matches!(&answer, Ok(_) | Err(SdkError::ServiceError(_)));
    let outcome = match answer.map(shown) {
        Ok(Some(shown)) => SendOutcome::Applied(shown),
        Ok(None) => SendOutcome::Unknown("the answer does not speak of the rows that were asked for".into()),
        Err(error) => classify(error),
    };
    (outcome, is_answered)
}

/// Returns a client without retries and with the guard, which names this crate as its framework. Building one reads the
/// TLS roots again.
pub(super) fn guarded(client: &Client) -> Client {
    let config = client.config();
    let is_guarded = config.interceptors().any(|interceptor| interceptor.name() == Guard.name());
    if is_guarded && config.retry_config().is_some_and(|retries| retries.max_attempts() == 1) {
        return client.clone();
    }
    let mut config = config.to_builder().retry_config(RetryConfig::disabled());
    Guard::stand_in(&mut config);
    if let Some(framework) = framework() {
        config.push_framework_metadata(framework);
    }
    Client::from_conf(config.build())
}

/// The entry of this crate in the user agent. Its name and version are valid, so there is one.
pub(crate) fn framework() -> Option<FrameworkMetadata> {
    FrameworkMetadata::new("fencepost", Some(Cow::Borrowed(env!("CARGO_PKG_VERSION")))).ok()
}

fn keep<D>(found: &Found<D>, description: D) -> Option<Shown> {
    *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(description);
    page_of(Some(Vec::new()), None)
}

/// As many rows without attributes as were counted, if they were only to be counted.
fn counted(page: &PageRequest, count: i32) -> Option<Vec<Item>> {
    page.counts.then(|| (0..count).map(|_| Item::new()).collect())
}

fn page_of(rows: Option<Vec<Item>>, last: Option<Item>) -> Option<Shown> {
    let rows = rows?.into_iter().map(from_sdk).collect();
    Some(Shown::Page((rows, last.filter(|key| !key.is_empty()).map(from_sdk))))
}
