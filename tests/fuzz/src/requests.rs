//! `requests`: an event of the HTTP API, given as such or as an HTTP message, in each of the functions.
//!
//! Each answer is a problem of the client with a field, or says that no time was left to ask the table: then the
//! request was parsed. A body in another notation of the same JSON is the same request.

use crate::running::{Answer, now, with_functions};
use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use fencepost::http::{Body, Request};
use fencepost::{Timestamp, json};
use serde_json::{Map, Value, json};

pub fn play(input: &[u8]) {
    let Some(event) = event_of(input) else { return };
    let answers = with_functions(|functions| functions.answers(&event));
    for (function, answer) in &answers {
        check(function, answer);
    }
    // From one request to the next, a function keeps only its memory of the table.
    assert_eq!(answers, with_functions(|functions| functions.answers(&event)), "the same event, another answer");
    check_typed(&request_of(&event));
    if let Some(printed) = in_one_notation(&event) {
        assert_eq!(
            answers,
            with_functions(|functions| functions.answers(&printed)),
            "the same body in the notation of this crate, another answer"
        );
    }
}

fn check(function: &str, answer: &Answer) {
    let Answer { status, body, headers } = answer;
    let code = body["code"].as_str().unwrap_or_default();
    let is_problem = headers.iter().any(|(name, value)| name == "content-type" && value == "application/problem+json");
    assert!(is_problem && !code.is_empty() && body["status"] == *status, "{function}: no problem: {answer:?}");
    assert!(body["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{function}: {answer:?}");
    match (*status, code) {
        (503, "unavailable") | (404, "no_such_route") | (405, "method_not_allowed") | (428, "condition_required") => {}
        (400 | 413 | 415, _) => assert!(body["field"].is_string(), "{function}: no field: {answer:?}"),
        _ => panic!("{function}: {answer:?}"),
    }
}

/// The event, from its JSON or from an HTTP message. `None` if the gateway would send no such event.
pub fn event_of(input: &[u8]) -> Option<ApiGatewayV2httpRequest> {
    if input.starts_with(b"{") {
        return serde_json::from_slice(input).ok();
    }
    let text = std::str::from_utf8(input).ok()?;
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = Map::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        headers.insert(name.to_ascii_lowercase(), value.trim().into());
    }
    let template = headers.remove("gateway-route").and_then(|route| route.as_str().map(str::to_owned));
    let is_base64 = headers.remove("gateway-base64").is_some();
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let query: Map<_, _> = pairs.map(|(name, value)| (name.to_owned(), value.into())).collect();
    let event = json!({
        "version": "2.0",
        "routeKey": template.as_deref().map_or("$default".to_owned(), |template| format!("{method} {template}")),
        "rawPath": path,
        "pathParameters": template.map(|template| parameters(&template, path)),
        "queryStringParameters": query,
        "headers": headers,
        "requestContext": {"http": {"method": method, "path": path}},
        "body": body,
        "isBase64Encoded": is_base64,
    });
    serde_json::from_value(event).ok()
}

/// The request as the functions read it from an event.
fn request_of(event: &ApiGatewayV2httpRequest) -> Request {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Request {
        headers: event.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
        body: Body { text: event.body.clone().unwrap_or_default(), is_base64: event.is_base64_encoded },
        ..Request::default()
    }
}

fn parameters(template: &str, path: &str) -> Map<String, Value> {
    let name = |part: &str| Some(part.strip_prefix('{')?.strip_suffix('}')?.to_owned());
    let pairs = template.split('/').zip(path.split('/'));
    pairs.filter_map(|(part, segment)| Some((name(part)?, segment.into()))).collect()
}

/// The same event with its body in the notation of this crate. `None` if the body is no JSON.
fn in_one_notation(event: &ApiGatewayV2httpRequest) -> Option<ApiGatewayV2httpRequest> {
    let text = event.body.as_ref().filter(|_| !event.is_base64_encoded)?;
    let value = json::parse(text.as_bytes()).ok()?;
    let mut printed = event.clone();
    printed.body = Some(value.to_string());
    Some(printed)
}

/// Parses the body as each typed request of the functions, prints it and parses it again.
fn check_typed(request: &Request) {
    let moment = Timestamp::from(now());
    let in_text = |text: String| Request { body: Body { text, is_base64: false }, ..request.clone() };
    let with = |body: Value| in_text(body.to_string());
    if let Ok(device) = functions::device_state::requests::parse_device(request, moment) {
        let payload = serde_json::to_string(&functions::device_state::requests::payload_of_device(&device));
        let printed = in_text(payload.expect("JSON"));
        assert_eq!(functions::device_state::requests::parse_device(&printed, moment).ok(), Some(device));
    }
    if let Ok(adjustment) = functions::device_state::requests::parse_adjustment(request) {
        let mut body = functions::device_state::requests::payload_of_adjustment(&adjustment);
        body.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
        assert_eq!(functions::device_state::requests::parse_adjustment(&with(body)).ok(), Some(adjustment));
    }
    if let Ok(product) = functions::inventory::requests::parse_product(request, moment) {
        let printed = with(json!({"stock": product.stock, "lowStockAt": product.low_stock_at}));
        assert_eq!(functions::inventory::requests::parse_product(&printed, moment).ok(), Some(product));
    }
    if let Ok(placement) = functions::place_order::requests::parse_placement(request) {
        let line = |line: &functions::order::Line| json!({"productId": line.product_id, "quantity": line.quantity});
        let lines: Vec<_> = placement.lines.iter().map(line).collect();
        let printed = with(json!({"userId": placement.user_id, "lines": lines}));
        assert_eq!(functions::place_order::requests::parse_placement(&printed).ok(), Some(placement));
    }
    if let Ok(wanted) = functions::lease::requests::parse_acquire(request) {
        let printed = with(json!({"holder": wanted.holder.as_str(), "ttlSeconds": wanted.ttl_seconds}));
        assert_eq!(functions::lease::requests::parse_acquire(&printed).ok(), Some(wanted));
    }
    if let Ok(wanted) = functions::ensure_child::requests::parse_wanted(request) {
        let mut body = json!({"parentUid": wanted.parent_uid.as_str(), "spec": wanted.spec});
        if let Some(lease) = &wanted.lease {
            body["lease"] = json!({"key": lease.key.as_str(), "token": lease.token});
        }
        assert_eq!(functions::ensure_child::requests::parse_wanted(&with(body)).ok(), Some(wanted));
    }
    if let Ok(mapping) = functions::host_mapping::requests::parse_mapping(request, moment) {
        let created = Timestamp::from_epoch_millis(mapping.creation_timestamp).expect("a moment");
        let body = json!({"cellId": mapping.cell_id, "instanceId": mapping.instance_id, "creationTimestamp": created});
        assert_eq!(functions::host_mapping::requests::parse_mapping(&with(body), moment).ok(), Some(mapping));
    }
}
