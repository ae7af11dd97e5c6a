//! One request to `DynamoDB` and what its answer proves.
#![expect(
    clippy::disallowed_methods,
    reason = "the one door through which writes leave; every other file sends through it"
)]

use crate::condition::{Action, ConditionalWrite};
use crate::error::Source;
use crate::table::Attributes;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::get_item::GetItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure::AllOld;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// What the answer to one send of a write proves about **that send**.
#[derive(Debug)]
pub(crate) enum Proof {
    /// It was applied.
    Applied,
    /// Its condition did not hold; the row that refused, if there was one.
    Refused(Option<Attributes>),
    /// It was not applied; sent again, it may be.
    NotApplied(Source),
    /// It was not applied because its signature was too old, or is wrong: sign it again, once.
    Expired(Source),
    /// It was not applied, and sending it again is useless.
    Rejected(Source),
    /// Nothing: it may have been applied, or may be later.
    Unknown(Source),
}

/// What the answer to a read gives.
#[derive(Debug)]
pub(crate) enum Found {
    /// The item, or none.
    Item(Option<Attributes>),
    /// No answer, or "not now": read again.
    Again(Source),
    /// Reading again is useless.
    Rejected(Source),
}

/// The way to one table. It sends each request once: the client's own retries are off.
#[derive(Debug)]
pub(crate) struct Sender {
    client: Client,
    table: String,
    connected: AtomicBool,
}

impl Sender {
    pub(crate) fn new(client: Client, table: String) -> Self {
        Sender { client, table, connected: AtomicBool::new(false) }
    }

    /// Whether the client has had an answer, so that timeouts need not allow for connecting.
    pub(crate) fn connected(&self) -> bool {
        self.connected.load(Relaxed)
    }

    /// Reads one item, strongly consistent.
    pub(crate) async fn read(&self, key: Attributes, timeout: Duration) -> Found {
        let request = self.client.get_item().table_name(&self.table).set_key(Some(key)).consistent_read(true);
        match self.within(timeout, request.send()).await {
            None => Found::Again(no_answer(timeout)),
            Some(Ok(output)) => Found::Item(output.item),
            Some(Err(error)) => classify_get_item(error),
        }
    }

    /// Sends one conditional write, once.
    pub(crate) async fn write(&self, write: ConditionalWrite, timeout: Duration) -> Proof {
        let ConditionalWrite { action, condition, names, values } = write;
        let values = Some(values).filter(|values| !values.is_empty());
        match action {
            Action::Put { item } => {
                let request = self.client.put_item().table_name(&self.table).set_item(Some(item));
                let request = request.condition_expression(condition).set_expression_attribute_names(Some(names));
                let request = request.set_expression_attribute_values(values);
                let request = request.return_values_on_condition_check_failure(AllOld);
                match self.within(timeout, request.send()).await {
                    None => Proof::Unknown(no_answer(timeout)),
                    Some(Ok(_)) => Proof::Applied,
                    Some(Err(error)) => classify_put_item(error),
                }
            }
            Action::Update { key, expression } => {
                let request = self.client.update_item().table_name(&self.table).set_key(Some(key));
                let request = request.update_expression(expression).condition_expression(condition);
                let request = request.set_expression_attribute_names(Some(names));
                let request = request.set_expression_attribute_values(values);
                let request = request.return_values_on_condition_check_failure(AllOld);
                match self.within(timeout, request.send()).await {
                    None => Proof::Unknown(no_answer(timeout)),
                    Some(Ok(_)) => Proof::Applied,
                    Some(Err(error)) => classify_update_item(error),
                }
            }
        }
    }

    /// Awaits an answer for at most `timeout`; `None` when none came.
    async fn within<O, E>(
        &self,
        timeout: Duration,
        answer: impl Future<Output = Result<O, SdkError<E, HttpResponse>>>,
    ) -> Option<Result<O, SdkError<E, HttpResponse>>> {
        let answer = tokio::time::timeout(timeout, answer).await.ok()?;
        if matches!(answer, Ok(_) | Err(SdkError::ServiceError(_))) {
            self.connected.store(true, Relaxed);
        }
        Some(answer)
    }
}

fn no_answer(timeout: Duration) -> Source {
    format!("no answer within {} ms", timeout.as_millis()).into()
}

/// Turns the outcome of an `UpdateItem` that did not succeed into what it proves.
fn classify_update_item(error: SdkError<UpdateItemError, HttpResponse>) -> Proof {
    use UpdateItemError as E;
    match error {
        SdkError::ServiceError(context) => {
            let status = context.raw().status().as_u16();
            match context.into_err() {
                E::ConditionalCheckFailedException(refusal) => Proof::Refused(refusal.item),
                error @ (E::TransactionConflictException(_)
                | E::ReplicatedWriteConflictException(_)
                | E::ProvisionedThroughputExceededException(_)
                | E::RequestLimitExceeded(_)
                | E::ThrottlingException(_)) => Proof::NotApplied(error.into()),
                error @ (E::InvalidEndpointException(_)
                | E::ItemCollectionSizeLimitExceededException(_)
                | E::ResourceNotFoundException(_)) => Proof::Rejected(error.into()),
                error @ E::InternalServerError(_) => Proof::Unknown(error.into()),
                // Not in the service's model: the enum is non-exhaustive, so only the code can tell.
                error => unmodelled_write(status, error),
            }
        }
        other => unanswered(other),
    }
}

/// Turns the outcome of a `PutItem` that did not succeed into what it proves.
fn classify_put_item(error: SdkError<PutItemError, HttpResponse>) -> Proof {
    use PutItemError as E;
    match error {
        SdkError::ServiceError(context) => {
            let status = context.raw().status().as_u16();
            match context.into_err() {
                E::ConditionalCheckFailedException(refusal) => Proof::Refused(refusal.item),
                error @ (E::TransactionConflictException(_)
                | E::ReplicatedWriteConflictException(_)
                | E::ProvisionedThroughputExceededException(_)
                | E::RequestLimitExceeded(_)
                | E::ThrottlingException(_)) => Proof::NotApplied(error.into()),
                error @ (E::InvalidEndpointException(_)
                | E::ItemCollectionSizeLimitExceededException(_)
                | E::ResourceNotFoundException(_)) => Proof::Rejected(error.into()),
                error @ E::InternalServerError(_) => Proof::Unknown(error.into()),
                error => unmodelled_write(status, error),
            }
        }
        other => unanswered(other),
    }
}

/// Turns the outcome of a `GetItem` that did not succeed into what to do about it.
fn classify_get_item(error: SdkError<GetItemError, HttpResponse>) -> Found {
    use GetItemError as E;
    match error {
        SdkError::ServiceError(context) => {
            let status = context.raw().status().as_u16();
            match context.into_err() {
                error @ (E::ProvisionedThroughputExceededException(_)
                | E::RequestLimitExceeded(_)
                | E::ThrottlingException(_)
                | E::InternalServerError(_)) => Found::Again(error.into()),
                error @ (E::InvalidEndpointException(_) | E::ResourceNotFoundException(_)) => {
                    Found::Rejected(error.into())
                }
                error => match meaning(status, error.code()) {
                    Meaning::NotNow | Meaning::Expired | Meaning::Nothing => Found::Again(error.into()),
                    Meaning::Final => Found::Rejected(error.into()),
                },
            }
        }
        SdkError::ConstructionFailure(_) => Found::Rejected(error.into()),
        other => Found::Again(other.into()),
    }
}

/// What an error means that the service's model does not name.
enum Meaning {
    /// The signature was refused.
    Expired,
    /// The request was refused for now.
    NotNow,
    /// The request was refused for good.
    Final,
    /// Nothing is said about the request.
    Nothing,
}

/// Reads an unmodelled error by its code and HTTP status, never by its text.
fn meaning(status: u16, code: Option<&str>) -> Meaning {
    match (code, status) {
        (
            Some("InvalidSignatureException" | "RequestExpired" | "RequestTimeTooSkewed" | "ExpiredTokenException"),
            _,
        ) => Meaning::Expired,
        (Some("ThrottlingException" | "Throttling" | "RequestLimitExceeded" | "LimitExceededException"), _) => {
            Meaning::NotNow
        }
        (Some(_), 400..=499) => Meaning::Final,
        // Without a code it is not DynamoDB that spoke; with a 5xx it may have done the work.
        _ => Meaning::Nothing,
    }
}

fn unmodelled_write<E: ProvideErrorMetadata + Error + Send + Sync + 'static>(status: u16, error: E) -> Proof {
    match meaning(status, error.code()) {
        Meaning::Expired => Proof::Expired(error.into()),
        Meaning::NotNow => Proof::NotApplied(error.into()),
        Meaning::Final => Proof::Rejected(error.into()),
        Meaning::Nothing => Proof::Unknown(error.into()),
    }
}

/// Judges an error below the service: nothing arrived, or what arrived was no answer.
fn unanswered<E: Error + Send + Sync + 'static>(error: SdkError<E, HttpResponse>) -> Proof {
    match error {
        SdkError::ConstructionFailure(_) => Proof::Rejected(error.into()),
        _ => Proof::Unknown(error.into()),
    }
}
