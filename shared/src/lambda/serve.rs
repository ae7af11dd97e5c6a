//! A function on Lambda: [`serve`] sets everything up, [`respond`] answers one event.
//!
//! The only place that knows what an event looks like. An expected outcome is never an `Err` to the
//! Lambda runtime: clients get problems, and the runtime's error metric counts crashes only.
#![expect(clippy::disallowed_methods, reason = "measures how long a request took, which no logic depends on")]

mod queue;

pub use queue::{Done, Outcome, respond_batch, serve_queue};

use crate::ambient::Ambient;
use crate::call::Call;
use crate::lambda;
use crate::error::Source;
use crate::http::{Problem, Response};
use crate::http::{Body, Request};
use crate::retry::Deadline;
use aws_lambda_events::apigw::{ApiGatewayRequestAuthorizer, ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_lambda_events::encodings;
use aws_lambda_events::http::{HeaderMap, HeaderName, HeaderValue};
use aws_lambda_events::query_map::QueryMap;
use aws_sdk_dynamodb::Client;
use lambda_runtime::{Context, LambdaEvent, service_fn};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::{Layer, fmt, layer::SubscriberExt, util::SubscriberInitExt};

pub use lambda_runtime::Error;

/// What is kept of Lambda's time for the answer itself: 250 ms.
///
/// A call that ends at its deadline still has to be answered, logged and posted to the runtime, on a
/// small function with a fraction of a processor, and Lambda's clock and ours may differ by some
/// milliseconds. Killed in that moment, the client would learn nothing.
pub const MARGIN: Duration = Duration::from_millis(250);

/// What an invocation may take where nobody says: 10 s, the timeout in `template.yaml`.
const UNKNOWN_DEADLINE: Duration = Duration::from_secs(10);

/// Serves HTTP API events until Lambda ends the process.
///
/// `init` makes the function's state of a client. Nothing is sent to `DynamoDB` during init.
///
/// # Errors
/// `init` failed, or Lambda's runtime API cannot be reached: the process ends, and Lambda says so.
pub async fn serve<A>(
    init: impl FnOnce(&Client) -> Result<A, Source>,
    handle: impl AsyncFn(&A, &Request, &Call) -> Result<Response, Problem>,
) -> Result<(), Error> {
    log_json();
    let app = init(&client::from_env())?;
    // Boxed: the SDK's futures nest so deeply that with the runtime's around them the compiler gives up.
    let answer = |event| Box::pin(async { Ok::<_, Infallible>(respond(&app, &handle, event).await) });
    lambda_runtime::run(service_fn(answer)).await
}

/// JSON lines with timestamps: without them Lambda files every line as INFO, whatever its level.
/// The level is `AWS_LAMBDA_LOG_LEVEL` (set by the function's logging configuration), else `RUST_LOG`, else info.
fn log_json() {
    let level = std::env::var("AWS_LAMBDA_LOG_LEVEL").or_else(|_| std::env::var("RUST_LOG"));
    let lines = fmt::layer().json().flatten_event(true).with_span_list(false).with_target(false);
    // An error means that somebody has set another subscriber before: then theirs is used.
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter(level.ok().as_deref()))).try_init();
}

/// A level, or a list such as `warn,fencepost=debug`. `EnvFilter` could do more, for 380 KB.
fn filter(level: Option<&str>) -> Targets {
    let named = level.filter(|level| !level.is_empty()).and_then(|level| level.parse().ok());
    named.unwrap_or_else(|| Targets::new().with_default(tracing::Level::INFO))
}

/// Answers one event and logs one line about it. [`serve`] calls this, and so do the tests.
pub async fn respond<A>(
    app: &A,
    handle: &impl AsyncFn(&A, &Request, &Call) -> Result<Response, Problem>,
    event: LambdaEvent<ApiGatewayV2httpRequest>,
) -> ApiGatewayV2httpResponse {
    let start = Instant::now();
    let function = event.context.env_config.function_name.clone();
    let call = call(&event.context);
    let request = Request::from(event.payload);
    let result = handle(app, &request, &call).await;
    let fault = result.as_ref().err().filter(|problem| problem.is_fault()).map(chain);
    let response = result.unwrap_or_else(Problem::into_response);
    log_request(&function, &request, &call, &response, fault.as_deref(), start.elapsed());
    to_event(&response)
}

/// The call that an invocation may make: it ends at Lambda's deadline, less [`MARGIN`].
#[must_use]
pub fn call(context: &Context) -> Call {
    Call::new(Deadline::within(allowance(context.deadline(), Ambient::system().now())))
}

/// The time that a call may take: until Lambda's deadline, less the margin.
///
/// A development server may send no moment but a constant (`cargo lambda watch` says 600,000, ten
/// minutes into 1970). A deadline of that day is none, and [`UNKNOWN_DEADLINE`] stands in for it.
fn allowance(deadline: SystemTime, now: SystemTime) -> Duration {
    let is_moment = deadline > SystemTime::UNIX_EPOCH + Duration::from_hours(24);
    let left = if is_moment { deadline.duration_since(now).unwrap_or_default() } else { UNKNOWN_DEADLINE };
    left.saturating_sub(MARGIN)
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// An error and everything under it, for the log.
fn chain(problem: &Problem) -> String {
    let mut text = String::new();
    let mut next = problem.source();
    while let Some(error) = next {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&error.to_string());
        next = error.source();
    }
    text
}

/// One line per request. 503 and 504 are warnings, for they are the table's trouble; 500 is an error.
fn log_request(
    function: &str,
    request: &Request,
    call: &Call,
    response: &Response,
    fault: Option<&str>,
    took: Duration,
) {
    let tally = call.tally();
    let key = request.key();
    let version = response.version().map(crate::version::Version::get);
    let duration_ms = millis(took);
    macro_rules! line {
        ($level:ident $(, $extra:ident)?) => {
            tracing::$level!(
                function,
                key,
                attempts = tally.attempts,
                conflicts = tally.conflicts,
                lost_answers = tally.lost_answers,
                outcome = response.outcome(),
                version,
                duration_ms,
                $($extra,)?
                "request"
            )
        };
    }
    match fault {
        None => line!(info),
        Some(error) if response.outcome() == "internal" => line!(error, error),
        Some(error) => line!(warn, error),
    }
}

impl From<ApiGatewayV2httpRequest> for Request {
    fn from(event: ApiGatewayV2httpRequest) -> Self {
        Request {
            method: event.request_context.http.method.to_string(),
            route_key: event.route_key,
            path: event.raw_path.unwrap_or_default(),
            path_parameters: event.path_parameters.into_iter().collect(),
            query: query_of(&event.query_string_parameters),
            headers: headers_of(&event.headers),
            caller: caller(event.request_context.authorizer),
            body: Body { text: event.body.unwrap_or_default(), is_base64: event.is_base64_encoded },
        }
    }
}

/// Who asks: the ARN that IAM authorised, else the subject of a JWT, else nobody in particular.
fn caller(authorizer: Option<ApiGatewayRequestAuthorizer>) -> String {
    authorizer
        .and_then(|authorizer| {
            let arn = authorizer.iam.and_then(|iam| iam.user_arn).filter(|arn| !arn.is_empty());
            let subject = || authorizer.jwt.and_then(|mut jwt| jwt.claims.remove("sub"));
            arn.or_else(subject)
        })
        .unwrap_or_else(|| "anonymous".to_owned())
}

/// Pairs as a map, several values of one name joined: nothing that was sent is dropped.
fn joined<'a>(pairs: impl Iterator<Item = (&'a str, Cow<'a, str>)>, separator: &str) -> BTreeMap<String, String> {
    let mut joined = BTreeMap::<String, String>::new();
    for (name, value) in pairs {
        let all = joined.entry(name.to_owned()).and_modify(|all| all.push_str(separator)).or_default();
        all.push_str(&value);
    }
    joined
}

/// Headers as text; several of one name are one list (RFC 9110, section 5.3).
fn headers_of(headers: &HeaderMap) -> BTreeMap<String, String> {
    let pairs = headers.iter().map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes())));
    joined(pairs, ", ")
}

/// The query; the event's type takes values apart at their commas, and names that came twice.
fn query_of(query: &QueryMap) -> BTreeMap<String, String> {
    joined(query.iter().map(|(name, value)| (name, Cow::Borrowed(value))), ",")
}

fn to_event(response: &Response) -> ApiGatewayV2httpResponse {
    let mut event = ApiGatewayV2httpResponse::default();
    event.status_code = i64::from(response.status());
    for (name, value) in response.headers() {
        // Every name and value is made of ids, tags and numbers of ours, so none is ever left out.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name.as_ref()), HeaderValue::from_str(value)) {
            event.headers.insert(name, value);
        }
    }
    event.body = response.body().map(|body| encodings::Body::Text(body.to_owned()));
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Failure;

    #[test]
    fn the_allowance_ends_a_margin_before_lambdas_deadline_and_is_never_negative() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(492_000);
        assert_eq!(allowance(now + Duration::from_secs(10), now), Duration::from_millis(9750));
        assert_eq!(allowance(now + Duration::from_millis(100), now), Duration::ZERO);
        assert_eq!(allowance(now - Duration::from_secs(1), now), Duration::ZERO);
    }

    #[test]
    fn lines_are_filtered_by_level_and_by_info_where_nothing_is_said() {
        for (said, info, debug) in [
            (None, true, false),
            (Some(""), true, false),
            (Some("no, such=level"), true, false),
            (Some("INFO"), true, false),
            (Some("DEBUG"), true, true),
            (Some("WARN"), false, false),
            (Some("error,fencepost=info"), true, false),
        ] {
            let filter = filter(said);
            assert_eq!(filter.would_enable("fencepost::runtime", &tracing::Level::INFO), info, "{said:?}");
            assert_eq!(filter.would_enable("fencepost::runtime", &tracing::Level::DEBUG), debug, "{said:?}");
        }
    }

    #[test]
    fn a_constant_in_place_of_a_deadline_is_not_taken_for_one() {
        let constant = SystemTime::UNIX_EPOCH + Duration::from_mins(10);
        assert_eq!(allowance(constant, constant + Duration::from_hours(500_000)), Duration::from_millis(9750));
    }

    #[test]
    fn the_log_has_the_whole_chain_of_a_fault() {
        let problem = Problem::from(Failure::Rejected { source: "no such table".into() });
        assert_eq!(chain(&problem), "nothing was applied: the table rejected the request: no such table");
    }

    #[test]
    fn a_caller_is_who_iam_says_else_who_the_token_says_else_anonymous() {
        let arn = "arn:aws:sts::123456789012:assumed-role/backend/one";
        for (authorizer, expected) in [
            (format!(r#"{{"iam":{{"userArn":"{arn}"}}}}"#), arn),
            (format!(r#"{{"iam":{{"userArn":"{arn}"}},"jwt":{{"claims":{{"sub":"user-1"}}}}}}"#), arn),
            (r#"{"jwt":{"claims":{"iss":"x","sub":"user-1"},"scopes":null}}"#.to_owned(), "user-1"),
            (r#"{"iam":{"userArn":null}}"#.to_owned(), "anonymous"),
            (r#"{"jwt":{"claims":{"iss":"x"}}}"#.to_owned(), "anonymous"),
            ("{}".to_owned(), "anonymous"),
            ("null".to_owned(), "anonymous"),
        ] {
            let event = format!(
                r#"{{"requestContext":{{"authorizer":{authorizer},"http":{{"method":"GET"}}}},"headers":{{}},"isBase64Encoded":false}}"#
            );
            let event: ApiGatewayV2httpRequest = serde_json::from_str(&event).expect("an event");
            assert_eq!(Request::from(event).caller, expected, "{authorizer}");
        }
        assert_eq!(caller(None), "anonymous");
    }

    #[test]
    fn headers_of_one_name_are_joined() {
        let mut headers = HeaderMap::new();
        for tag in ["\"a\"", "\"b\""] {
            headers.append("if-match", HeaderValue::from_static(tag));
        }
        assert_eq!(headers_of(&headers).get("if-match").map(String::as_str), Some("\"a\", \"b\""));
    }

    #[test]
    fn a_parameter_of_a_query_keeps_its_commas_and_all_of_its_values() {
        let query: QueryMap = serde_json::from_str(r#"{"token":"6,7","id":"a"}"#).expect("a query");
        let expected = [("id", "a"), ("token", "6,7")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(query_of(&query), expected.into());
    }
}
