//! Converts events of an HTTP API (payload 2.0) or a Function URL to requests of axum, with its answers back to events.

use crate::call::Call;
use crate::http::{Invocation, NotDecoded};
use aws_lambda_events::apigw::{ApiGatewayRequestAuthorizer, ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_lambda_events::encodings;
use axum::body::{Body, Bytes};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_LENGTH, COOKIE, HeaderValue, SET_COOKIE};
use http::method::Method;
use http::uri::PathAndQuery;
use lambda_runtime::{Error, LambdaEvent};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};

const ANONYMOUS: &str = "anonymous";

/// Parses the payload of an event.
///
/// The runtime could do it too. It would track the path to every member, which takes 60 KB of every function.
pub(super) fn read<T: DeserializeOwned>(event: LambdaEvent<Box<RawValue>>) -> Result<LambdaEvent<T>, Error> {
    Ok(LambdaEvent::new(serde_json::from_str(event.payload.get())?, event.context))
}

pub(super) fn read_request(event: LambdaEvent<Box<RawValue>>) -> Result<LambdaEvent<ApiGatewayV2httpRequest>, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Other {
        #[serde(rename = "httpMethod")]
        _method: IgnoredAny,
    }
    let is_other = |payload: &RawValue| serde_json::from_str::<Other>(payload.get()).is_ok();
    match serde_json::from_str(event.payload.get()) {
        Ok(request) => Ok(LambdaEvent::new(request, event.context)),
        Err(_) if is_other(&event.payload) => Err(
            "this event is of a REST API or a load balancer (payload 1.0): put the function behind an HTTP API (payload 2.0) \
             or a Function URL"
                .into(),
        ),
        Err(error) => Err(error.into()),
    }
}

/// The item of a request, for the log: its path parameters, otherwise its path.
pub(super) fn key_of(event: &ApiGatewayV2httpRequest) -> String {
    if event.path_parameters.is_empty() {
        return event.raw_path.clone().unwrap_or_default();
    }
    let ordered: BTreeMap<_, _> = event.path_parameters.iter().collect();
    ordered.into_values().map(String::as_str).collect::<Vec<_>>().join("/")
}

/// Converts an event. `member` is the member of a Lambda authorizer's context that names the caller. The request is `None`
/// if its path is too long for one.
pub(super) fn to_request(
    event: ApiGatewayV2httpRequest,
    member: Option<&str>,
    request_id: &str,
    call: Call,
) -> (Option<http::Request<Body>>, Invocation) {
    let caller = caller(event.request_context.authorizer, member).unwrap_or_default();
    let invocation = Invocation::with_call(caller, request_id.to_owned(), call);
    let matched = event.route_key.as_deref().and_then(|key| matched_path(key, &event.path_parameters));
    let (method, mut target) = matched.unwrap_or_else(|| (None, raw_path(&event.raw_path.unwrap_or_default())));
    let mut separator = '?';
    for (name, value) in joined(event.query_string_parameters.iter()) {
        target.push(separator);
        encode(&mut target, &name, false);
        target.push('=');
        encode(&mut target, &value, false);
        separator = '&';
    }
    let text = event.body.unwrap_or_default();
    let decoded = if event.is_base64_encoded { STANDARD.decode(&text).ok() } else { None };
    let is_broken = event.is_base64_encoded && decoded.is_none();
    let body = decoded.map_or_else(|| Body::from(text), Body::from);
    let mut request = http::Request::new(body);
    *request.method_mut() = method.unwrap_or(event.request_context.http.method);
    *request.headers_mut() = event.headers;
    if let Some(cookies) = event.cookies.and_then(|cookies| HeaderValue::try_from(cookies.join("; ")).ok()) {
        request.headers_mut().insert(COOKIE, cookies);
    }
    request.extensions_mut().insert(invocation.clone());
    if is_broken {
        request.extensions_mut().insert(NotDecoded);
    }
    let uri = PathAndQuery::try_from(target).ok();
    let request = uri.map(|uri| {
        *request.uri_mut() = uri.into();
        request
    });
    (request, invocation)
}

/// The method and the path of the route that the gateway has matched, with the parameters in it. `None` if it names no
/// route, or not all parameters of it. A route for any method names no method.
fn matched_path(route_key: &str, parameters: &HashMap<String, String>) -> Option<(Option<Method>, String)> {
    let (method, template) = route_key.split_once(' ')?;
    let mut path = String::new();
    for segment in template.strip_prefix('/')?.split('/') {
        path.push('/');
        match segment.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            None => path.push_str(segment),
            // `{name+}` takes the rest of the path.
            Some(name) => match name.strip_suffix('+') {
                Some(name) => encode(&mut path, parameters.get(name)?, true),
                None => encode(&mut path, parameters.get(name)?, false),
            },
        }
    }
    Some((Method::from_bytes(method.as_bytes()).ok().filter(|_| method != "ANY"), path))
}

/// The raw path in a form of which decoding makes the raw path again, so that a `%` in it stays one.
fn raw_path(path: &str) -> String {
    // A path without a slash at its beginning is none of a route.
    let mut encoded = if path.starts_with('/') { String::new() } else { "//".to_owned() };
    encode(&mut encoded, path, true);
    encoded
}

/// Adds the text in percent-encoding. It keeps slashes if they separate segments.
fn encode(to: &mut String, text: &str, keeps_slashes: bool) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => to.push(char::from(byte)),
            b'/' if keeps_slashes => to.push('/'),
            _ => {
                let digit = |nibble: u8| char::from(b"0123456789ABCDEF"[usize::from(nibble)]);
                to.extend(['%', digit(byte >> 4), digit(byte & 15)]);
            }
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

/// Joins several values of one name. The type of the event splits values at commas and separates repeated names.
fn joined<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, String> {
    let mut joined = BTreeMap::<String, String>::new();
    for (name, value) in pairs {
        joined.entry(name.to_owned()).and_modify(|all| all.push(',')).or_default().push_str(value);
    }
    joined
}

/// Converts an answer. A gateway counts the bytes of the body itself.
pub(super) fn to_event(parts: &http::response::Parts, body: Bytes) -> ApiGatewayV2httpResponse {
    let mut event = ApiGatewayV2httpResponse::default();
    event.status_code = i64::from(parts.status.as_u16());
    for name in parts.headers.keys().filter(|name| *name != CONTENT_LENGTH) {
        let mut values = parts.headers.get_all(name).iter();
        if name == SET_COOKIE {
            event.cookies = values.filter_map(|cookie| Some(cookie.to_str().ok()?.to_owned())).collect();
        } else if let Some(first) = values.next() {
            // An event has one value for each name.
            let all = values.fold(first.as_bytes().to_vec(), |all, more| [&all, &b", "[..], more.as_bytes()].concat());
            event.headers.extend(HeaderValue::try_from(all).ok().map(|all| (name.clone(), all)));
        }
    }
    if !body.is_empty() {
        let text = String::from_utf8(body.into());
        event.is_base64_encoded = text.is_err();
        let text = text.unwrap_or_else(|error| STANDARD.encode(error.as_bytes()));
        event.body = Some(encodings::Body::Text(text));
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadline::Deadline;
    use lambda_runtime::Context;
    use std::collections::BTreeSet;
    use std::time::Duration;

    fn caller_of(authorizer: &str, member: Option<&str>) -> String {
        let event = format!(
            r#"{{"requestContext":{{"authorizer":{authorizer},"http":{{"method":"GET"}}}},"headers":{{}},"isBase64Encoded":false}}"#
        );
        let event: ApiGatewayV2httpRequest = serde_json::from_str(&event).expect("an event");
        let call = Call::new(Deadline::within(Duration::ZERO));
        to_request(event, member, "", call).1.caller().to_owned()
    }

    fn iam(arn: &str, identity: &str) -> String {
        format!(
            r#"{{"iam":{{"accessKey":"ASIA","accountId":"123456789012","callerId":"AROA:one","cognitoIdentity":{identity},"principalOrgId":null,"userArn":{arn},"userId":"AROA:one"}}}}"#
        )
    }

    fn jwt(claims: &str) -> String {
        format!(r#"{{"jwt":{{"claims":{claims},"scopes":null}}}}"#)
    }

    fn lambda(context: &str) -> String {
        format!(r#"{{"lambda":{context}}}"#)
    }

    #[test]
    fn a_caller_is_whom_the_authorizer_names_and_anonymous_only_without_one() {
        let arn = "arn:aws:sts::123456789012:assumed-role/backend/one";
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
        let tenant = |tenant: &str| lambda(&format!(r#"{{"tenant":{tenant}}}"#));
        let issuer = |issuer: &str| jwt(&format!(r#"{{"iss":"{issuer}","sub":"1"}}"#));
        let of_identity = |id: &str| {
            iam(&format!("{arn:?}"), &format!(r#"{{"amr":[],"identityId":"{id}","identityPoolId":"pool"}}"#))
        };
        let authorizers = [
            "null".to_owned(),
            iam(&format!("{arn:?}"), "null"),
            of_identity("eu-west-1:ann"),
            of_identity("eu-west-1:bob"),
            issuer("https://one"),
            issuer("https://two"),
            tenant("1"),
            tenant(r#""1""#),
            tenant(r#""anonymous""#),
            tenant(&format!("{arn:?}")),
            tenant(&format!(r#""{arn} eu-west-1:ann""#)),
            tenant(r#""https://one 1""#),
            tenant(r#"" \"1\"""#),
        ];
        let callers: BTreeSet<_> = authorizers.iter().map(|one| caller_of(one, Some("tenant"))).collect();
        assert_eq!(callers.len(), authorizers.len(), "{callers:?}");
    }

    #[test]
    fn an_event_of_a_rest_api_or_a_load_balancer_is_refused_with_a_sentence() {
        for payload in [
            r#"{"version":"1.0","resource":"/a","path":"/a","httpMethod":"GET","headers":{},"requestContext":{"stage":"prod"},"isBase64Encoded":false}"#,
            r#"{"requestContext":{"elb":{"targetGroupArn":"arn"}},"httpMethod":"GET","path":"/a","headers":{},"body":"","isBase64Encoded":false}"#,
        ] {
            let raw: Box<RawValue> = serde_json::from_str(payload).expect("JSON");
            let refused = read_request(LambdaEvent::new(raw, Context::default())).expect_err("refused").to_string();
            assert!(refused.contains("put the function behind an HTTP API (payload 2.0)"), "{refused}");
        }
    }

    #[test]
    fn a_matched_route_gives_the_path_and_otherwise_the_raw_path_does() {
        let parameters = |pairs: &[(&str, &str)]| -> HashMap<_, _> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        for (key, pairs, expected) in [
            ("PUT /a/{id}/b", &[("id", "x/y z%")][..], Some((Some(Method::PUT), "/a/x%2Fy%20z%25/b"))),
            ("ANY /a/{rest+}", &[("rest", "x/\u{e4}")], Some((None, "/a/x/%C3%A4"))),
            ("GET /", &[], Some((Some(Method::GET), "/"))),
            ("GET /a/{id}", &[], None),
            ("$default", &[("id", "x")], None),
        ] {
            let expected = expected.map(|(method, path)| (method, path.to_owned()));
            assert_eq!(matched_path(key, &parameters(pairs)), expected, "{key}");
        }
        for (path, encoded) in [("/a%2Fb/c d/", "/a%252Fb/c%20d/"), ("", "//"), ("a", "//a"), ("/?#", "/%3F%23")] {
            assert_eq!(raw_path(path), encoded, "{path}");
        }
    }

    #[test]
    fn a_path_that_no_request_can_have_is_no_request() {
        for (length, fits) in [(60_000, true), (70_000, false)] {
            let mut event = ApiGatewayV2httpRequest::default();
            event.raw_path = Some(format!("/{}", "x".repeat(length)));
            let (request, _) = to_request(event, None, "", Call::new(Deadline::within(Duration::ZERO)));
            assert_eq!(request.is_some(), fits, "{length}");
        }
    }

    #[test]
    fn an_answer_that_is_no_text_is_base64_and_cookies_stand_apart() {
        let answer = http::Response::builder()
            .header("set-cookie", "a=1")
            .header("vary", "accept")
            .header("vary", "origin")
            .header("content-length", "2");
        let (parts, ()) = answer.body(()).expect("an answer").into_parts();
        let event = to_event(&parts, Bytes::from_static(b"\xff\xfe"));
        assert_eq!((event.cookies, event.is_base64_encoded), (vec!["a=1".to_owned()], true));
        assert_eq!(event.body, Some(encodings::Body::Text("//4=".to_owned())));
        assert_eq!((event.headers.len(), event.headers["vary"].to_str().ok()), (1, Some("accept, origin")));
        let event = to_event(&parts, Bytes::new());
        assert_eq!((event.body, event.is_base64_encoded), (None, false));
    }
}
