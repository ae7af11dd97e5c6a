//! [`Sender`]: sends one request once, and records when the client was last answered.
#![expect(clippy::disallowed_methods, reason = "the one place that sends requests; it records when an answer arrived")]

use super::classify::{classify, classify_read};
use super::guard::{Guard, SENDING, Sending};
use super::outcome::{ReadOutcome, SendOutcome, no_answer, record_request};
use super::transaction::{Address, Reason, answered, batch_of, classify_transact_write_items, of_one_step, step};
use crate::clock::{Clock, Rng};
use crate::protocol::condition::{Action, ConditionalWrite, Sort, key_condition};
use crate::protocol::item::Attributes;
use crate::protocol::memory::WriteId;
use crate::protocol::seen_rows::SeenRows;
use crate::retry::RetryPolicy;
use crate::throttling::Budget;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{FrameworkMetadata, Intercept};
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure::AllOld;
use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    client: Client,
    /// The state of the client's connections, as seen in the answers from any table. Shared by all copies.
    connections: Arc<Mutex<Connections>>,
    /// The rows last seen by the client in any table. Shared by all copies.
    pub(crate) seen_rows: Arc<SeenRows>,
    /// Shared by all copies.
    pub(crate) budget: Arc<Budget>,
    pub(crate) policy: RetryPolicy,
    pub(crate) clock: Clock,
    pub(crate) rng: Rng,
}

#[derive(Clone, Copy)]
pub(crate) struct Send {
    pub timeout: Duration,
    /// The time by which it must be signed. All copies of it are gone soon after.
    pub signed_by: SystemTime,
    /// The number of earlier sends with a token mistaken by `DynamoDB` for the token of another request.
    pub mismatches: u32,
}

/// The rows from one request to a table or an index, with the key after which it left off (`None` at the end).
pub(crate) type ReadRows = (Vec<Attributes>, Option<Attributes>);

#[derive(Clone, Debug)]
pub(crate) struct PageRequest {
    pub table: String,
    pub index: Option<String>,
    pub partition: (&'static str, AttributeValue),
    pub sort: Option<(&'static str, Sort)>,
    /// Whether the read is strongly consistent. A global secondary index refuses such reads.
    pub is_consistent: bool,
    pub is_descending: bool,
    pub limit: Option<i32>,
    pub after: Option<Attributes>,
}

/// The time for an answer, and that by which the request must be signed.
struct Limit {
    timeout: Duration,
    signed_by: Option<(Clock, SystemTime)>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Connections {
    last_answer: Option<Instant>,
    /// Whether a send ended without an answer since the last one came: its connection may be gone, or was never made.
    is_broken: bool,
    /// The longest time between a send and its answer where the send probably had to open a connection.
    slowest_opening: Duration,
}

/// The time without an answer after which a connection may be gone. Pools and servers drop idle ones then.
const CONNECTION_LIFE: Duration = Duration::from_mins(1);

impl Sender {
    /// Creates a sender, and switches off the retries of the client. A retry there would hide a lost answer.
    pub(crate) fn new(client: &Client) -> Self {
        Sender {
            client: guarded(client),
            connections: Arc::default(),
            seen_rows: Arc::default(),
            budget: Arc::default(),
            policy: RetryPolicy::default(),
            clock: Clock::system(),
            rng: Rng::system(),
        }
    }

    pub(crate) fn has_client_of(&self, other: &Sender) -> bool {
        Arc::ptr_eq(&self.connections, &other.connections)
    }

    /// The time without an answer after which an identical send follows. `None` if the client had no answer in the last
    /// minute: it is then probably connecting, where a second handshake beside the first would make both slower. After
    /// a broken connection, the next send gets the time to open another one first.
    pub(crate) fn hedge_after(&self) -> Option<Duration> {
        let connections = self.connections();
        let opening = if connections.is_broken { connections.slowest_opening } else { Duration::ZERO };
        connections.is_warm().then(|| self.policy.hedge_after.saturating_add(opening))
    }

    pub(crate) fn send_limit(&self, lost: u32) -> Duration {
        let connections = self.connections();
        self.policy.limit_after(connections.last_answer.map(|_| connections.slowest_opening), lost)
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn read(
        &self,
        table: &str,
        key: Attributes,
        timeout: Duration,
    ) -> ReadOutcome<Option<Attributes>> {
        record_request("GetItem", Some(table));
        let request = self.client.get_item().table_name(table).set_key(Some(key)).consistent_read(true);
        let sent = Box::pin(request.send());
        self.outcome(Limit::of_read(timeout), sent, |output| Some(output.item), classify_read).await
    }

    /// Sends one conditional write, once. An applied write returns the attributes requested in it. A refused write
    /// returns the row that refused it, if there was one.
    #[expect(clippy::result_large_err, reason = "an error of the SDK is moved once, from one match to the next")]
    pub(crate) async fn write(
        &self,
        table: &str,
        write: ConditionalWrite,
        send: Send,
    ) -> SendOutcome<Option<Attributes>, Option<Attributes>> {
        let limit = self.limit(send);
        let ConditionalWrite { action, condition, names, values, returning } = write;
        let values = Some(values).filter(|values| !values.is_empty());
        match action {
            Action::Put { item } => {
                record_request("PutItem", Some(table));
                let request = self.client.put_item().table_name(table).set_item(Some(item));
                let request = request.condition_expression(condition).set_expression_attribute_names(Some(names));
                let request = request.set_expression_attribute_values(values).set_return_values(returning);
                let request = request.return_values_on_condition_check_failure(AllOld);
                let refused = |error| match error {
                    PutItemError::ConditionalCheckFailedException(refusal) => Ok(refusal.item),
                    error => Err(error),
                };
                let sent = Box::pin(request.send());
                self.outcome(limit, sent, |output| Some(output.attributes), |error| classify(error, refused)).await
            }
            Action::Update { key, expression } => {
                record_request("UpdateItem", Some(table));
                let request = self.client.update_item().table_name(table).set_key(Some(key));
                let request = request.update_expression(expression).condition_expression(condition);
                let request = request.set_expression_attribute_names(Some(names));
                let request = request.set_expression_attribute_values(values).set_return_values(returning);
                let request = request.return_values_on_condition_check_failure(AllOld);
                let refused = |error| match error {
                    UpdateItemError::ConditionalCheckFailedException(refusal) => Ok(refusal.item),
                    error => Err(error),
                };
                let sent = Box::pin(request.send());
                self.outcome(limit, sent, |output| Some(output.attributes), |error| classify(error, refused)).await
            }
            Action::Delete { key } => {
                record_request("DeleteItem", Some(table));
                let request = self.client.delete_item().table_name(table).set_key(Some(key));
                let request = request.condition_expression(condition).set_expression_attribute_names(Some(names));
                let request = request.set_expression_attribute_values(values);
                let request = request.return_values_on_condition_check_failure(AllOld);
                let refused = |error| match error {
                    DeleteItemError::ConditionalCheckFailedException(refusal) => Ok(refusal.item),
                    error => Err(error),
                };
                let sent = Box::pin(request.send());
                self.outcome(limit, sent, |_| Some(None), |error| classify(error, refused)).await
            }
            Action::Check { .. } => SendOutcome::Rejected("a check is a step of a transaction, never a write".into()),
        }
    }

    /// Sends one conditional write as a transaction of one step, once. `DynamoDB` applies no copy with the same token
    /// for 10 minutes. An applied write returns nothing. A refused write returns the row that refused it, if there was one.
    pub(crate) async fn write_as_transaction(
        &self,
        table: &str,
        write: ConditionalWrite,
        token: String,
        send: Send,
    ) -> SendOutcome<Option<Attributes>, Option<Attributes>> {
        match step(table, write) {
            Ok(step) => of_one_step(self.transact(vec![step], token, send).await),
            Err(source) => SendOutcome::Rejected(source),
        }
    }

    pub(crate) fn new_id(&self) -> WriteId {
        WriteId::from_random(self.rng.next_u64())
    }

    /// A new token for the sends of one transaction, less the number of mismatches that follows it.
    pub(crate) fn new_token(&self) -> String {
        format!("{:016x}{:016x}", self.rng.next_u64(), self.rng.next_u64())
    }

    /// Sends one transaction, once. A refusal has one reason per step, in the order of the steps.
    pub(crate) async fn transact(
        &self,
        steps: Vec<TransactWriteItem>,
        token: String,
        send: Send,
    ) -> SendOutcome<(), Vec<Reason>> {
        let limit = self.limit(send);
        record_request("TransactWriteItems", None);
        let request = self.client.transact_write_items().set_transact_items(Some(steps)).client_request_token(token);
        let sent = Box::pin(request.send());
        self.outcome(limit, sent, |_| Some(()), classify_transact_write_items).await
    }

    fn limit(&self, send: Send) -> Limit {
        Limit { timeout: send.timeout, signed_by: Some((self.clock.clone(), send.signed_by)) }
    }

    /// Reads rows of several tables in one request, each strongly consistent. Returns them by position.
    pub(crate) async fn read_batch(
        &self,
        rows: &[Address],
        timeout: Duration,
    ) -> ReadOutcome<BTreeMap<usize, Option<Attributes>>> {
        record_request("BatchGetItem", None);
        let request = match batch_of(rows) {
            Ok(items) => self.client.batch_get_item().set_request_items(Some(items)),
            Err(error) => return SendOutcome::Rejected(error.into()),
        };
        let sent = Box::pin(request.send());
        // The caller asks again for the missing rows.
        self.outcome(Limit::of_read(timeout), sent, |output| answered(rows, output), classify_read).await
    }

    /// Reads one page of a table, strongly consistent: the rows after the key `after`, at most 1 MB and `limit` of them.
    pub(crate) async fn scan(
        &self,
        table: &str,
        after: Option<Attributes>,
        limit: Option<i32>,
        timeout: Duration,
    ) -> ReadOutcome<ReadRows> {
        record_request("Scan", Some(table));
        let request = self.client.scan().table_name(table).set_exclusive_start_key(after).set_limit(limit);
        let request = request.consistent_read(true);
        let (sent, limit) = (Box::pin(request.send()), Limit::of_read(timeout));
        self.outcome(limit, sent, |output| page_of(output.items, output.last_evaluated_key), classify_read).await
    }

    /// Reads one page of a partition: at most 1 MB, and at most as many rows as the request says.
    pub(crate) async fn query(&self, page: &PageRequest, timeout: Duration) -> ReadOutcome<ReadRows> {
        record_request("Query", Some(&page.table));
        let (condition, names, values) = key_condition(&page.partition, page.sort.as_ref());
        let request = self.client.query().table_name(&page.table).set_index_name(page.index.clone());
        let request = request.key_condition_expression(condition).set_expression_attribute_names(Some(names));
        let request = request.set_expression_attribute_values(Some(values)).scan_index_forward(!page.is_descending);
        let request = request.consistent_read(page.is_consistent).set_limit(page.limit);
        let request = request.set_exclusive_start_key(page.after.clone());
        let (sent, limit) = (Box::pin(request.send()), Limit::of_read(timeout));
        self.outcome(limit, sent, |output| page_of(output.items, output.last_evaluated_key), classify_read).await
    }

    /// Waits for an answer within the limit. Returns the proof in it. An incomplete success shows nothing.
    ///
    /// The answer is boxed, because the SDK's futures take kilobytes. Every future of this crate would contain one.
    async fn outcome<O, E: Error + 'static, A, F>(
        &self,
        Limit { timeout, signed_by }: Limit,
        answer: Pin<Box<impl Future<Output = Result<O, SdkError<E, HttpResponse>>>>>,
        shown: impl FnOnce(O) -> Option<A>,
        classify: impl FnOnce(SdkError<E, HttpResponse>) -> SendOutcome<A, F>,
    ) -> SendOutcome<A, F> {
        let (sent, before) = (Instant::now(), *self.connections());
        let mut sending = pin!(SENDING.scope(Sending::new(signed_by), answer));
        let answer = tokio::time::timeout(timeout, sending.as_mut()).await;
        let Ok(answer) = answer else {
            // Dropping the send closes its connection. If it waited for credentials, it counts as lost all the same, so
            // that the next one waits longer for them.
            self.connections().is_broken = true;
            return SendOutcome::Unknown(no_answer(timeout));
        };
        let never_left = sending.take_value().is_some_and(|sending| sending.never_left());
        let mut connections = self.connections();
        match &answer {
            Ok(_) | Err(SdkError::ServiceError(_)) => {
                if !before.is_warm() || before.is_broken {
                    connections.slowest_opening = connections.slowest_opening.max(sent.elapsed());
                }
                connections.last_answer = Some(Instant::now());
                connections.is_broken = false;
            }
            Err(_) => connections.is_broken = true,
        }
        drop(connections);
        match answer.map(shown) {
            Ok(Some(shown)) => SendOutcome::Applied(shown),
            Ok(None) => SendOutcome::Unknown("the answer does not speak of the rows that were asked for".into()),
            Err(error) => match classify(error) {
                SendOutcome::Unknown(source) | SendOutcome::Broken(source) if never_left => {
                    SendOutcome::NotApplied(source)
                }
                outcome => outcome,
            },
        }
    }
}

impl Limit {
    fn of_read(timeout: Duration) -> Self {
        Limit { timeout, signed_by: None }
    }
}

impl Connections {
    fn is_warm(&self) -> bool {
        self.last_answer.is_some_and(|last| last.elapsed() < CONNECTION_LIFE)
    }
}

/// Returns a client without retries and with the guard, which names this crate as its framework. Building one reads the
/// TLS roots again.
pub(super) fn guarded(client: &Client) -> Client {
    let config = client.config();
    let is_guarded = config.interceptors().any(|interceptor| interceptor.name() == Guard.name());
    if is_guarded && config.retry_config().is_some_and(|retries| retries.max_attempts() == 1) {
        return client.clone();
    }
    let mut config = config.to_builder().retry_config(RetryConfig::disabled()).interceptor(Guard);
    if let Some(framework) = framework() {
        config.push_framework_metadata(framework);
    }
    Client::from_conf(config.build())
}

/// The entry of this crate in the user agent. Its name and version are valid, so there is one.
pub(crate) fn framework() -> Option<FrameworkMetadata> {
    FrameworkMetadata::new("fencepost", Some(Cow::Borrowed(env!("CARGO_PKG_VERSION")))).ok()
}

fn page_of(rows: Option<Vec<Attributes>>, last: Option<Attributes>) -> Option<ReadRows> {
    rows.map(|rows| (rows, last.filter(|key| !key.is_empty())))
}
