//! One request to `DynamoDB` and what its answer proves.
#![expect(clippy::disallowed_methods, reason = "the one door through which writes leave; it notes when an answer came")]

mod transaction;

pub(crate) use transaction::{Address, Reason, step};

use crate::condition::{Action, ConditionalWrite};
use crate::error::Source;
use crate::table::Attributes;
use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::get_item::GetItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure::AllOld;
use hyper_util::client::legacy;
use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// What the answer to one send of a write proves about **that send**.
#[derive(Debug)]
pub(crate) enum Proof<A, F> {
    /// It was applied; what the answer shows of it.
    Applied(A),
    /// Its condition did not hold; what refused it.
    Refused(F),
    /// It was not applied; sent again, it may be.
    NotApplied(Source),
    /// It was not applied because its signature was too old, or is wrong: sign it again, once.
    Expired(Source),
    /// It was not applied, and sending it again is useless.
    Rejected(Source),
    /// Nothing: it may have been applied, or may be later.
    Unknown(Source),
    /// Nothing: `DynamoDB` has seen its token with another request, as it says. It has not, for tokens are random.
    Mismatch(Source),
}

/// What the answer to a read gives.
#[derive(Debug)]
pub(crate) enum Found<A> {
    /// What was asked for.
    There(A),
    /// No answer, or "not now": read again.
    Again(Source),
    /// The signature was too old, or is wrong: sign it again, once.
    Expired(Source),
    /// Reading again is useless.
    Rejected(Source),
}

/// The way to `DynamoDB`. It sends each request once: the client's own retries are off.
#[derive(Debug)]
pub(crate) struct Sender {
    client: Client,
    last_answer: Mutex<Option<Instant>>,
}

/// After so long without an answer a connection may be gone: pools and servers drop idle ones after 60 to 90 s.
const CONNECTION_LIFE: Duration = Duration::from_mins(1);

impl Sender {
    pub(crate) fn new(client: &Client) -> Self {
        Sender { client: without_retries(client), last_answer: Mutex::default() }
    }

    /// Whether the client had an answer lately, so that timeouts need not allow for connecting.
    pub(crate) fn connected(&self) -> bool {
        let last = *self.last_answer.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_some_and(|last| last.elapsed() < CONNECTION_LIFE)
    }

    /// Reads one item, strongly consistent.
    pub(crate) async fn read(&self, table: &str, key: Attributes, timeout: Duration) -> Found<Option<Attributes>> {
        let request = self.client.get_item().table_name(table).set_key(Some(key)).consistent_read(true);
        match self.within(timeout, request.send()).await {
            None => Found::Again(no_answer(timeout)),
            Some(Ok(output)) => Found::There(output.item),
            Some(Err(error)) => classify_get_item(error),
        }
    }

    /// Sends one conditional write, once. Applied, it shows what it was told to return of the row; refused, the row that
    /// refused it, if there was one.
    pub(crate) async fn write(
        &self,
        table: &str,
        write: ConditionalWrite,
        timeout: Duration,
    ) -> Proof<Option<Attributes>, Option<Attributes>> {
        let ConditionalWrite { action, condition, names, values, returning } = write;
        let values = Some(values).filter(|values| !values.is_empty());
        match action {
            Action::Put { item } => {
                let request = self.client.put_item().table_name(table).set_item(Some(item));
                let request = request.condition_expression(condition).set_expression_attribute_names(Some(names));
                let request = request.set_expression_attribute_values(values).set_return_values(returning);
                let request = request.return_values_on_condition_check_failure(AllOld);
                let answer = self.within(timeout, request.send()).await;
                proof_of(answer, timeout, |output| output.attributes, classify_put_item)
            }
            Action::Update { key, expression } => {
                let request = self.client.update_item().table_name(table).set_key(Some(key));
                let request = request.update_expression(expression).condition_expression(condition);
                let request = request.set_expression_attribute_names(Some(names));
                let request = request.set_expression_attribute_values(values).set_return_values(returning);
                let request = request.return_values_on_condition_check_failure(AllOld);
                let answer = self.within(timeout, request.send()).await;
                proof_of(answer, timeout, |output| output.attributes, classify_update_item)
            }
            Action::Check { .. } => Proof::Rejected("a check is a step of a transaction, never a write".into()),
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
            *self.last_answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        Some(answer)
    }
}

/// The same client without retries of its own. One that has none is not made anew: that would read the TLS roots again.
fn without_retries(client: &Client) -> Client {
    if client.config().retry_config().is_some_and(|retries| retries.max_attempts() == 1) {
        return client.clone();
    }
    Client::from_conf(client.config().to_builder().retry_config(RetryConfig::disabled()).build())
}

/// What the answer to a write proves, be it success, an error or none within `timeout`.
fn proof_of<O, E, A, F>(
    answer: Option<Result<O, SdkError<E, HttpResponse>>>,
    timeout: Duration,
    shown: impl FnOnce(O) -> A,
    classify: impl FnOnce(SdkError<E, HttpResponse>) -> Proof<A, F>,
) -> Proof<A, F> {
    match answer {
        None => Proof::Unknown(no_answer(timeout)),
        Some(Ok(output)) => Proof::Applied(shown(output)),
        Some(Err(error)) => classify(error),
    }
}

fn no_answer(timeout: Duration) -> Source {
    format!("no answer within {} ms", timeout.as_millis()).into()
}

/// Turns the outcome of an `UpdateItem` that did not succeed into what it proves.
fn classify_update_item<A>(error: SdkError<UpdateItemError, HttpResponse>) -> Proof<A, Option<Attributes>> {
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
fn classify_put_item<A>(error: SdkError<PutItemError, HttpResponse>) -> Proof<A, Option<Attributes>> {
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
fn classify_get_item<A>(error: SdkError<GetItemError, HttpResponse>) -> Found<A> {
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
                error => unmodelled_read(status, error),
            }
        }
        SdkError::ConstructionFailure(_) => Found::Rejected(error.into()),
        other => Found::Again(other.into()),
    }
}

/// What an error means that the service's model does not name.
#[derive(PartialEq, Debug)]
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
            Some(
                "InvalidSignatureException"
                | "RequestExpired"
                | "RequestTimeTooSkewed"
                | "ExpiredTokenException"
                | "UnrecognizedClientException",
            ),
            _,
        ) => Meaning::Expired,
        (Some("ThrottlingException" | "Throttling" | "RequestLimitExceeded" | "LimitExceededException"), _) => {
            Meaning::NotNow
        }
        (Some("RequestTimeout" | "RequestTimeoutException"), _) => Meaning::Nothing,
        (Some(_), 400..=499) => Meaning::Final,
        // Without a code it is not DynamoDB that spoke; with a 5xx it may have done the work.
        _ => Meaning::Nothing,
    }
}

fn unmodelled_write<E: ProvideErrorMetadata + Error + Send + Sync + 'static, A, F>(
    status: u16,
    error: E,
) -> Proof<A, F> {
    match meaning(status, error.code()) {
        Meaning::Expired => Proof::Expired(error.into()),
        Meaning::NotNow => Proof::NotApplied(error.into()),
        Meaning::Final => Proof::Rejected(error.into()),
        Meaning::Nothing => Proof::Unknown(error.into()),
    }
}

fn unmodelled_read<E: ProvideErrorMetadata + Error + Send + Sync + 'static, A>(status: u16, error: E) -> Found<A> {
    match meaning(status, error.code()) {
        Meaning::NotNow | Meaning::Nothing => Found::Again(error.into()),
        Meaning::Expired => Found::Expired(error.into()),
        Meaning::Final => Found::Rejected(error.into()),
    }
}

/// Judges an error below the service: it never left, nothing arrived, or what arrived was no answer.
fn unanswered<E: Error + Send + Sync + 'static, A, F>(error: SdkError<E, HttpResponse>) -> Proof<A, F> {
    match error {
        SdkError::ConstructionFailure(_) => Proof::Rejected(error.into()),
        _ if never_left(&error) => Proof::NotApplied(error.into()),
        _ => Proof::Unknown(error.into()),
    }
}

/// Whether the request cannot have left: there were no credentials to sign it with, or no connection to send it on.
fn never_left(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let unconnected = error.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect);
        if unconnected || error.is::<CredentialsError>() {
            return true;
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_the_model_does_not_name_is_read_by_its_code_and_status() {
        for (status, code, expected) in [
            (400, Some("InvalidSignatureException"), Meaning::Expired),
            (400, Some("ExpiredTokenException"), Meaning::Expired),
            (403, Some("UnrecognizedClientException"), Meaning::Expired),
            (400, Some("ThrottlingException"), Meaning::NotNow),
            (503, Some("Throttling"), Meaning::NotNow),
            (400, Some("ValidationException"), Meaning::Final),
            (400, Some("AccessDeniedException"), Meaning::Final),
            (400, Some("RequestTimeoutException"), Meaning::Nothing),
            (503, Some("ServiceUnavailable"), Meaning::Nothing),
            (500, None, Meaning::Nothing),
            // A proxy between us and DynamoDB speaks without a code: it may have passed the request on.
            (400, None, Meaning::Nothing),
            (413, None, Meaning::Nothing),
            (429, None, Meaning::Nothing),
        ] {
            assert_eq!(meaning(status, code), expected, "{status} {code:?}");
        }
    }

    #[test]
    fn a_request_without_credentials_never_left_and_one_whose_answer_broke_off_may_have() {
        assert!(never_left(&CredentialsError::not_loaded_no_source()));
        let broken_off = std::io::Error::new(std::io::ErrorKind::ConnectionReset, "reset");
        assert!(!never_left(&broken_off));
    }
}
