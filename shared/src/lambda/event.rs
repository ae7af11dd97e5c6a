//! Converts HTTP API events (payload 2.0) to requests, and responses to events.

use crate::http::{Body, Request, Response};
use aws_lambda_events::apigw::{ApiGatewayRequestAuthorizer, ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_lambda_events::encodings;
use aws_lambda_events::http::{HeaderMap, HeaderName, HeaderValue};
use aws_lambda_events::query_map::QueryMap;
use lambda_runtime::{Error, LambdaEvent};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The caller of a request without an authorised caller.
const ANONYMOUS: &str = "anonymous";

/// Parses the payload of an event.
///
/// The runtime could do it too. It would track the path to every member for its error message, which takes 60 KB of
/// every function.
pub(super) fn read<T: DeserializeOwned>(event: LambdaEvent<Box<RawValue>>) -> Result<LambdaEvent<T>, Error> {
    Ok(LambdaEvent::new(serde_json::from_str(event.payload.get())?, event.context))
}

impl From<ApiGatewayV2httpRequest> for Request {
    fn from(event: ApiGatewayV2httpRequest) -> Self {
        Request {
            method: event.request_context.http.method.to_string(),
            route_key: event.route_key,
            matched_route: OnceLock::new(),
            path: event.raw_path.unwrap_or_default(),
            path_parameters: event.path_parameters.into_iter().collect(),
            query: query_of(&event.query_string_parameters),
            headers: headers_of(&event.headers),
            caller: caller(event.request_context.authorizer),
            body: Body { text: event.body.unwrap_or_default(), is_base64: event.is_base64_encoded },
        }
    }
}

/// The caller that API Gateway authorised. Idempotency keys and derived ids are unique per caller.
///
/// | authorizer | caller |
/// |---|---|
/// | IAM | the ARN |
/// | IAM with a Cognito identity pool, whose users share one ARN | the ARN and the identity's id |
/// | JWT | the issuer and the subject |
/// | none | `anonymous`: all callers count as one |
///
/// A space separates the two parts. Neither an ARN nor an issuer has one, so two callers never have the same text.
fn caller(authorizer: Option<ApiGatewayRequestAuthorizer>) -> String {
    let Some(authorizer) = authorizer else { return ANONYMOUS.to_owned() };
    let text = |text: Option<String>| text.filter(|text| !text.is_empty());
    if let Some(iam) = authorizer.iam
        && let Some(arn) = text(iam.user_arn)
    {
        let identity = text(iam.cognito_identity.and_then(|identity| identity.identity_id));
        return identity.map_or_else(|| arn.clone(), |identity| format!("{arn} {identity}"));
    }
    let mut claims = authorizer.jwt.map(|jwt| jwt.claims).unwrap_or_default();
    match (claims.remove("iss"), text(claims.remove("sub"))) {
        (issuer, Some(subject)) => format!("{} {subject}", issuer.unwrap_or_default()),
        (_, None) => ANONYMOUS.to_owned(),
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

pub(super) fn to_event(response: &Response) -> ApiGatewayV2httpResponse {
    let mut event = ApiGatewayV2httpResponse::default();
    event.status_code = i64::from(response.status());
    for (name, value) in response.headers() {
        // Names and values consist only of ids, tags and numbers of this crate, so all of them convert.
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
    use lambda_runtime::Context;

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

    fn caller_of(authorizer: &str) -> String {
        let event = format!(
            r#"{{"requestContext":{{"authorizer":{authorizer},"http":{{"method":"GET"}}}},"headers":{{}},"isBase64Encoded":false}}"#
        );
        let event: ApiGatewayV2httpRequest = serde_json::from_str(&event).expect("an event");
        Request::from(event).caller
    }

    #[test]
    fn a_caller_is_who_iam_says_else_who_the_token_says_else_anonymous() {
        let arn = "arn:aws:sts::123456789012:assumed-role/backend/one";
        for (authorizer, expected) in [
            (format!(r#"{{"iam":{{"userArn":"{arn}","cognitoIdentity":null}}}}"#), arn),
            (format!(r#"{{"iam":{{"userArn":"{arn}"}},"jwt":{{"claims":{{"iss":"x","sub":"user-1"}}}}}}"#), arn),
            (
                r#"{"jwt":{"claims":{"iss":"https://one","sub":"user-1"},"scopes":null}}"#.to_owned(),
                "https://one user-1",
            ),
            (r#"{"iam":{"userArn":null}}"#.to_owned(), "anonymous"),
            (r#"{"jwt":{"claims":{"iss":"https://one"}}}"#.to_owned(), "anonymous"),
            ("{}".to_owned(), "anonymous"),
            ("null".to_owned(), "anonymous"),
        ] {
            assert_eq!(caller_of(&authorizer), expected, "{authorizer}");
        }
        assert_eq!(caller(None), "anonymous");
    }

    #[test]
    fn users_of_one_identity_pool_and_subjects_of_two_issuers_are_different_callers() {
        let of_identity = |identity: &str| {
            caller_of(&format!(
                r#"{{"iam":{{"userArn":"arn:aws:sts::1:assumed-role/users/CognitoIdentityCredentials","cognitoIdentity":{{"amr":["authenticated"],"identityId":"{identity}","identityPoolId":"eu-west-1:pool"}}}}}}"#
            ))
        };
        assert_ne!(of_identity("eu-west-1:ann"), of_identity("eu-west-1:bob"));
        let of_issuer = |issuer: &str| caller_of(&format!(r#"{{"jwt":{{"claims":{{"iss":"{issuer}","sub":"1"}}}}}}"#));
        assert_ne!(of_issuer("https://one"), of_issuer("https://two"));
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
