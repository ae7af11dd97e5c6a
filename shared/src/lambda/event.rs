//! Converts HTTP API events (payload 2.0) to requests, and responses to events.

use crate::http::{Body, Request, Response};
use aws_lambda_events::apigw::{ApiGatewayRequestAuthorizer, ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_lambda_events::encodings;
use aws_lambda_events::http::{HeaderMap, HeaderName, HeaderValue};
use aws_lambda_events::query_map::QueryMap;
use lambda_runtime::{Error, LambdaEvent};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The caller of a request that no authorizer has seen.
const ANONYMOUS: &str = "anonymous";

/// Parses the payload of an event.
///
/// The runtime could do it too. It would track the path to every member for its error message, which takes 60 KB of
/// every function.
pub(super) fn read<T: DeserializeOwned>(event: LambdaEvent<Box<RawValue>>) -> Result<LambdaEvent<T>, Error> {
    Ok(LambdaEvent::new(serde_json::from_str(event.payload.get())?, event.context))
}

/// For functions without a Lambda authorizer, whose context names no caller here.
impl From<ApiGatewayV2httpRequest> for Request {
    fn from(event: ApiGatewayV2httpRequest) -> Self {
        to_request(event, None)
    }
}

/// Converts an event. `member` is the member of a Lambda authorizer's context that names the caller.
pub(super) fn to_request(event: ApiGatewayV2httpRequest, member: Option<&str>) -> Request {
    Request {
        method: event.request_context.http.method.to_string(),
        route_key: event.route_key,
        matched_route: OnceLock::new(),
        path: event.raw_path.unwrap_or_default(),
        path_parameters: event.path_parameters.into_iter().collect(),
        query: query_of(&event.query_string_parameters),
        headers: headers_of(&event.headers),
        caller: caller(event.request_context.authorizer, member).unwrap_or_default(),
        body: Body { text: event.body.unwrap_or_default(), is_base64: event.is_base64_encoded },
    }
}

/// The caller that API Gateway authorised. Idempotency keys and derived ids are unique per caller.
///
/// | authorizer | caller |
/// |---|---|
/// | IAM | the ARN |
/// | IAM with a Cognito identity pool, whose users share one ARN | the ARN and the identity's id |
/// | JWT | the issuer and the subject |
/// | Lambda, with a `member` that is a number or a text | a space, and the member as JSON |
/// | one that names nobody in this way | `None`: its callers cannot be told apart |
/// | none | `anonymous`: all callers count as one |
///
/// A space separates the two parts. Neither an ARN nor an issuer has one, and neither is empty, so two callers never have
/// the same text.
fn caller(authorizer: Option<ApiGatewayRequestAuthorizer>, member: Option<&str>) -> Option<String> {
    let Some(mut authorizer) = authorizer else { return Some(ANONYMOUS.to_owned()) };
    let text = |text: Option<String>| text.filter(|text| !text.is_empty());
    if let Some(iam) = authorizer.iam {
        let arn = text(iam.user_arn)?;
        let identity = text(iam.cognito_identity.and_then(|identity| identity.identity_id));
        return Some(identity.map_or_else(|| arn.clone(), |identity| format!("{arn} {identity}")));
    }
    if let Some(mut jwt) = authorizer.jwt {
        let [issuer, subject] = ["iss", "sub"].map(|claim| text(jwt.claims.remove(claim)));
        return Some(format!("{} {}", issuer?, subject?));
    }
    match authorizer.fields.remove(member?)? {
        Value::String(text) if text.is_empty() => None,
        named @ (Value::String(_) | Value::Number(_)) => Some(format!(" {named}")),
        _ => None,
    }
}

/// Converts pairs to a map. Joins several values of one name, so that no value is dropped.
fn joined<'a>(pairs: impl Iterator<Item = (&'a str, Cow<'a, str>)>, separator: &str) -> BTreeMap<String, String> {
    let mut joined = BTreeMap::<String, String>::new();
    for (name, value) in pairs {
        let all = joined.entry(name.to_owned()).and_modify(|all| all.push_str(separator)).or_default();
        all.push_str(&value);
    }
    joined
}

/// Converts headers to text. Several headers with one name are one list (RFC 9110, section 5.3).
fn headers_of(headers: &HeaderMap) -> BTreeMap<String, String> {
    let pairs = headers.iter().map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes())));
    joined(pairs, ", ")
}

/// Converts the query. The type of the event splits values at commas and separates repeated names, so this joins them
/// again.
fn query_of(query: &QueryMap) -> BTreeMap<String, String> {
    joined(query.iter().map(|(name, value)| (name, Cow::Borrowed(value))), ",")
}

pub(super) fn to_event(response: Response) -> ApiGatewayV2httpResponse {
    let mut event = ApiGatewayV2httpResponse::default();
    event.status_code = i64::from(response.status());
    for (name, value) in response.headers() {
        // Names and values consist only of ids, tags and numbers of this crate, so all of them convert.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name.as_ref()), HeaderValue::from_str(value)) {
            event.headers.insert(name, value);
        }
    }
    event.body = response.into_body().map(encodings::Body::Text);
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use lambda_runtime::Context;
    use std::collections::BTreeSet;

    #[test]
    fn a_payload_of_another_form_is_an_error_and_not_a_request() {
        let payload = |text: &str| {
            let raw: Box<RawValue> = serde_json::from_str(text).expect("JSON");
            read::<ApiGatewayV2httpRequest>(LambdaEvent::new(raw, Context::default())).map(|event| event.payload)
        };
        let event = r#"{"requestContext":{"http":{"method":"PUT"}},"headers":{},"isBase64Encoded":false}"#;
        assert_eq!(payload(event).expect("an event").request_context.http.method, "PUT");
        assert!(payload(r#"{"Records":[]}"#).is_err());
    }

    fn caller_of(authorizer: &str, member: Option<&str>) -> String {
        let event = format!(
            r#"{{"requestContext":{{"authorizer":{authorizer},"http":{{"method":"GET"}}}},"headers":{{}},"isBase64Encoded":false}}"#
        );
        let event: ApiGatewayV2httpRequest = serde_json::from_str(&event).expect("an event");
        to_request(event, member).caller
    }

    #[test]
    fn a_caller_is_whom_the_authorizer_names_and_anonymous_only_without_one() {
        let arn = "arn:aws:sts::123456789012:assumed-role/backend/one";
        let iam = |arn: &str, identity: &str| {
            format!(
                r#"{{"iam":{{"accessKey":"ASIA","accountId":"123456789012","callerId":"AROA:one","cognitoIdentity":{identity},"principalOrgId":null,"userArn":{arn},"userId":"AROA:one"}}}}"#
            )
        };
        let jwt = |claims: &str| format!(r#"{{"jwt":{{"claims":{claims},"scopes":null}}}}"#);
        let lambda = |context: &str| format!(r#"{{"lambda":{context}}}"#);
        let identity = r#"{"amr":["authenticated"],"identityId":"eu-west-1:ann","identityPoolId":"eu-west-1:pool"}"#;
        for (authorizer, member, expected) in [
            ("null".to_owned(), None, "anonymous"),
            ("null".to_owned(), Some("tenant"), "anonymous"),
            (iam(&format!("{arn:?}"), "null"), None, arn),
            (iam(&format!("{arn:?}"), identity), None, &format!("{arn} eu-west-1:ann")),
            (jwt(r#"{"iss":"https://one","sub":"user-1","tenant":"acme"}"#), Some("tenant"), "https://one user-1"),
            (lambda(r#"{"tenant":"acme"}"#), Some("tenant"), r#" "acme""#),
            (lambda(r#"{"tenant":123456789012345678901234567890}"#), Some("tenant"), " 123456789012345678901234567890"),
            // Those who name nobody.
            ("{}".to_owned(), Some("tenant"), ""),
            (iam("null", "null"), None, ""),
            (iam("\"\"", identity), None, ""),
            (jwt(r#"{"iss":"https://one"}"#), None, ""),
            (jwt(r#"{"iss":"https://one","sub":""}"#), None, ""),
            (jwt(r#"{"sub":"user-1"}"#), None, ""),
            (lambda("null"), Some("tenant"), ""),
            (lambda("{}"), Some("tenant"), ""),
            (lambda(r#"{"tenant":"acme"}"#), None, ""),
            (lambda(r#"{"tenant":"acme"}"#), Some("user"), ""),
            (lambda(r#"{"tenant":""}"#), Some("tenant"), ""),
            (lambda(r#"{"tenant":null}"#), Some("tenant"), ""),
            (lambda(r#"{"tenant":true}"#), Some("tenant"), ""),
            (lambda(r#"{"tenant":["acme"]}"#), Some("tenant"), ""),
        ] {
            assert_eq!(caller_of(&authorizer, member), expected, "{authorizer}");
        }
        assert_eq!(caller(None, None).as_deref(), Some("anonymous"), "an event without the member");
    }

    #[test]
    fn two_callers_never_have_one_name_whatever_a_lambda_authorizer_says() {
        let arn = "arn:aws:sts::1:assumed-role/users/CognitoIdentityCredentials";
        let lambda = |tenant: &str| format!(r#"{{"lambda":{{"tenant":{tenant}}}}}"#);
        let jwt = |issuer: &str| format!(r#"{{"jwt":{{"claims":{{"iss":"{issuer}","sub":"1"}}}}}}"#);
        let of_identity = |identity: &str| {
            format!(
                r#"{{"iam":{{"userArn":"{arn}","cognitoIdentity":{{"amr":[],"identityId":"{identity}","identityPoolId":"pool"}}}}}}"#
            )
        };
        let authorizers = [
            "null".to_owned(),
            format!(r#"{{"iam":{{"userArn":"{arn}"}}}}"#),
            of_identity("eu-west-1:ann"),
            of_identity("eu-west-1:bob"),
            jwt("https://one"),
            jwt("https://two"),
            lambda("1"),
            lambda(r#""1""#),
            lambda(r#""anonymous""#),
            lambda(&format!("{arn:?}")),
            lambda(&format!(r#""{arn} eu-west-1:ann""#)),
            lambda(r#""https://one 1""#),
            lambda(r#"" \"1\"""#),
        ];
        let callers: BTreeSet<_> = authorizers.iter().map(|one| caller_of(one, Some("tenant"))).collect();
        assert_eq!(callers.len(), authorizers.len(), "{callers:?}");
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
