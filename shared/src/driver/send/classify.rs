//! Judges the error of a request by its proof about the request: by variant, code and status, never by message.

use super::outcome::{Reason, SendOutcome};
use super::values::{Item, from_sdk};
use crate::error::Source;
use crate::rejection::Rejection;
use crate::throttling::{Throttled, retry_after};
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use hyper_util::client::legacy;
use std::error::Error;
use std::time::Duration;

/// Classifies the error of an operation. `refused` takes the row out of an error that is a refusal.
pub(super) fn classify<E: ProvideErrorMetadata + Error + Send + Sync + 'static>(
    error: SdkError<E, HttpResponse>,
    refused: impl FnOnce(E) -> Result<Option<Item>, E>,
) -> SendOutcome {
    let SdkError::ServiceError(context) = error else { return unanswered(error) };
    let (status, retry_after) = (context.raw().status().as_u16(), retry_after(context.raw()));
    match refused(context.into_err()) {
        Ok(row) => SendOutcome::Refused(vec![Reason::Refused(row.map(from_sdk))]),
        Err(error) => by_code(status, retry_after, error),
    }
}

/// Whether `DynamoDB` found this query malformed: a start key unfit for the index, for example.
pub(crate) fn is_malformed_query(source: &Source) -> bool {
    code_of(source, 0) == Some("ValidationException")
}

/// Whether a rejection depends on the stored data, so that a second copy of the write may be applied to a later state: the
/// item would be too large, or its collection is full. `is_exact`: the step demands one version, whose size is fixed. A
/// write of one row is step 0.
pub(crate) fn depends_on_the_data(source: &Source, is_exact: impl Fn(usize) -> bool) -> bool {
    let depends = |step: usize| match code_of(source, step) {
        Some("ItemCollectionSizeLimitExceededException" | "ItemCollectionSizeLimitExceeded") => true,
        Some("ValidationException" | "ValidationError") => !is_exact(step),
        _ => false,
    };
    (0..Rejection::codes_of(source).len()).any(depends)
}

/// Whether this step was a reason of the rejection.
pub(crate) fn is_reason(source: &Source, step: usize) -> bool {
    code_of(source, step).is_some()
}

fn code_of(source: &Source, step: usize) -> Option<&str> {
    Rejection::codes_of(source).get(step)?.as_deref()
}

/// Classifies an error of the service by its code and HTTP status, never by its text.
pub(super) fn by_code<E: ProvideErrorMetadata + Error + Send + Sync + 'static>(
    status: u16,
    retry_after: Option<Duration>,
    error: E,
) -> SendOutcome {
    match (error.code(), status) {
        (
            Some(
                "InvalidSignatureException"
                | "RequestExpired"
                | "RequestTimeTooSkewed"
                | "ExpiredTokenException"
                | "UnrecognizedClientException",
            ),
            _,
        ) => SendOutcome::Expired(Rejection::new(error).into()),
        (Some("TransactionConflictException" | "ReplicatedWriteConflictException"), _) => {
            SendOutcome::NotApplied(error.into())
        }
        (
            Some(
                "ProvisionedThroughputExceededException"
                | "ThrottlingException"
                | "Throttling"
                | "RequestLimitExceeded"
                | "LimitExceededException",
            ),
            _,
        ) => SendOutcome::NotApplied(Throttled::new(error, retry_after).into()),
        (Some("InternalServerError" | "RequestTimeout" | "RequestTimeoutException"), _) => {
            SendOutcome::Unknown(error.into())
        }
        (
            Some("InvalidEndpointException" | "ItemCollectionSizeLimitExceededException" | "ResourceNotFoundException"),
            _,
        )
        | (Some(_), 400..=499) => SendOutcome::Rejected(Rejection::new(error).into()),
        // DynamoDB always gives a code. An answer without one is not from DynamoDB. A 5xx may follow the work.
        _ => SendOutcome::Unknown(error.into()),
    }
}

pub(super) fn unanswered<E: Error + Send + Sync + 'static>(error: SdkError<E, HttpResponse>) -> SendOutcome {
    match error {
        SdkError::ConstructionFailure(_) => SendOutcome::Rejected(error.into()),
        _ if never_connected(&error) => SendOutcome::NotApplied(error.into()),
        _ if is_broken(&error) => SendOutcome::Broken(error.into()),
        _ => SendOutcome::Unknown(error.into()),
    }
}

/// Whether an established connection broke before the answer came. Neither a timeout nor a failed connect counts. The
/// connector names two errors beside those of I/O: the other side has closed the connection.
fn is_broken<E: Error + 'static>(error: &SdkError<E, HttpResponse>) -> bool {
    match error {
        SdkError::DispatchFailure(failure) => {
            (failure.is_io() || failure.as_other().is_some()) && !never_connected(error)
        }
        _ => false,
    }
}

fn never_connected(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect)
        || error.source().is_some_and(never_connected)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::outcome::name;
    use super::super::{Address, Sender};
    use super::*;
    use aws_sdk_dynamodb::Client;
    use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
    use aws_sdk_dynamodb::error::ErrorMetadata;
    use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
    use aws_smithy_runtime_api::client::result::ConnectorError;
    use fencepost_core::{Leave, SendId, Why};
    use std::time::SystemTime;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    /// A send with a minute for its answer.
    pub(in crate::driver::send) fn leave(leave_by: Option<SystemTime>) -> Leave {
        let timeout = Duration::from_mins(1);
        Leave { id: SendId(1), timeout, leave_by, mismatches: 0, why: Why::First }
    }

    pub(in crate::driver::send) fn sender_to(endpoint: &str) -> Sender {
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-west-1"))
            .credentials_provider(Credentials::new("test", "test", None, None, "tests"))
            .endpoint_url(endpoint);
        Sender::new(&Client::from_conf(config.build()))
    }

    #[test]
    fn an_error_is_read_by_its_code_and_status() {
        for (status, code, expected) in [
            (400, Some("TransactionConflictException"), "not_applied"),
            (400, Some("ReplicatedWriteConflictException"), "not_applied"),
            (400, Some("ProvisionedThroughputExceededException"), "not_applied"),
            (400, Some("RequestLimitExceeded"), "not_applied"),
            (400, Some("LimitExceededException"), "not_applied"),
            (500, Some("InternalServerError"), "answer_lost"),
            (400, Some("InternalServerError"), "answer_lost"),
            (421, Some("InvalidEndpointException"), "rejected"),
            (400, Some("ItemCollectionSizeLimitExceededException"), "rejected"),
            (500, Some("ResourceNotFoundException"), "rejected"),
            (400, Some("RequestExpired"), "signature_refused"),
            (400, Some("RequestTimeTooSkewed"), "signature_refused"),
            (400, Some("RequestTimeout"), "answer_lost"),
            (400, Some("InvalidSignatureException"), "signature_refused"),
            (400, Some("ExpiredTokenException"), "signature_refused"),
            (403, Some("UnrecognizedClientException"), "signature_refused"),
            (400, Some("ThrottlingException"), "not_applied"),
            (503, Some("Throttling"), "not_applied"),
            (400, Some("ValidationException"), "rejected"),
            (400, Some("AccessDeniedException"), "rejected"),
            (400, Some("RequestTimeoutException"), "answer_lost"),
            (503, Some("ServiceUnavailable"), "answer_lost"),
            (500, None, "answer_lost"),
            // A proxy in front of DynamoDB gives no code. It may have passed the request on.
            (400, None, "answer_lost"),
            (413, None, "answer_lost"),
            (429, None, "answer_lost"),
        ] {
            let error = code.map_or_else(ErrorMetadata::builder, |code| ErrorMetadata::builder().code(code));
            let outcome = by_code(status, None, UpdateItemError::generic(error.build())).split().0;
            assert_eq!(name(outcome, false), expected, "{status} {code:?}");
        }
    }

    #[test]
    fn a_request_that_could_not_be_made_is_rejected_and_not_unknown() {
        let unmade = SdkError::<UpdateItemError, HttpResponse>::construction_failure("a field is missing");
        assert!(matches!(classify(unmade, Err), SendOutcome::Rejected(_)));
    }

    #[test]
    fn a_send_that_is_not_answered_in_time_is_unknown_and_one_whose_connection_broke_is_broken() {
        let classify = |error: SdkError<UpdateItemError, HttpResponse>| classify(error, Err);
        assert!(matches!(classify(SdkError::timeout_error("late")), SendOutcome::Unknown(_)));
        let late = SdkError::dispatch_failure(ConnectorError::timeout("late".into()));
        assert!(matches!(classify(late), SendOutcome::Unknown(_)));
        let broke = SdkError::dispatch_failure(ConnectorError::io("reset".into()));
        assert!(matches!(classify(broke), SendOutcome::Broken(_)));
    }

    /// A real connection shows how the SDK reports it. The other side resets or closes it.
    #[tokio::test]
    async fn a_connection_that_is_closed_without_an_answer_is_broken_and_one_that_is_refused_is_not() {
        for listens in [true, false] {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let sender = sender_to(&format!("http://{}", listener.local_addr().expect("bound")));
            let read = sender.read_row(vec![Address { table: "Table".to_owned(), key: [].into() }], leave(None));
            let close = async {
                let Some(listener) = Some(listener).filter(|_| listens) else { return };
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let mut request = vec![0; 8192];
                let length = stream.read(&mut request).await.expect("a request");
                assert!(String::from_utf8_lossy(&request[..length]).contains("lib/fencepost/"), "it names this crate");
            };
            let ((outcome, is_answered), ()) = tokio::join!(read, close);
            assert!(!is_answered);
            match outcome {
                SendOutcome::Broken(_) => assert!(listens),
                SendOutcome::NotApplied(_) => assert!(!listens),
                other => panic!("{other:?}"),
            }
        }
    }
}
