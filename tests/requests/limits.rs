//! Values at the limits of docs/http-api.md and docs/openapi.yaml: those inside are taken, those just outside are refused, as
//! both documents say.

use super::Api;
use super::bad_input::{
    ACQUIRE, CREATE_DEVICE, CREATE_PRODUCT, DELETE_MAPPING, ENSURE, LIST, PATCH_STATE, PLACE, event,
};
use crate::harness::events::Event;
use serde_json::json;

const REGISTER: &str = "PUT /mappings/{hostIp}";

#[tokio::test]
async fn input_at_its_limit_is_taken() {
    let api = Api::start();
    let longest = "x".repeat(128);
    let text = |route, body: &str| event(route).text(body);
    for (event, status) in [
        (
            event(CREATE_DEVICE).of("deviceId", "...").json(&json!({"state": {"n".repeat(255): {"_a": [{"_b": 1}]}}})),
            201,
        ),
        (
            text(
                PLACE,
                r#"{"userId":"u","lines":[{"productId":"a","quantity":1e6},{"productId":"A","quantity":2.0}]}"#,
            ),
            409,
        ),
        (text(ACQUIRE, r#"{"holder":"a","ttlSeconds":1}"#).of("leaseKey", "short"), 201),
        (text(ACQUIRE, &format!(r#"{{"holder":"{longest}","ttlSeconds":900}}"#)).of("leaseKey", &longest), 201),
        (text(ENSURE, &format!(r#"{{"parentUid":"{longest}","spec":{{}}}}"#)).of("parentId", &longest), 201),
    ] {
        let answer = api.of(event.route()).send(&event).await;
        assert_eq!(answer.status, status, "{event:?} {answer:?}");
    }
}

/// Sends an event. Its problem has this code and this field, or else it is none for its form.
async fn judged(event: &Event, problem: Option<(&str, &str)>) {
    let answer = Api::start().of(event.route()).send(event).await;
    let Some(expected) = problem else {
        return assert!(answer.status != 400 && answer.status < 500, "{event:?}: {answer:?}");
    };
    let told = answer.json();
    let told = (told["code"].as_str().unwrap_or_default(), told["field"].as_str().unwrap_or_default());
    assert_eq!((answer.status, told), (400, expected), "{event:?}");
}

/// RFC 3339 with any offset, no finer than a millisecond, from 1970 to five minutes ahead of the clock. `timestamps` of `fuzz`
/// compares any text with `chrono`; here are the limits, and the texts that others take.
#[tokio::test]
async fn a_moment_has_any_offset_and_is_no_finer_than_a_millisecond() {
    let taken = [
        "2026-03-07T10:00:00Z",
        "2026-03-07T10:00:00.1Z",
        "2026-03-07T10:00:00.123Z",
        "2026-03-07T10:00:00.123000Z",
        "2026-03-07t10:00:00z",
        "2026-03-07T12:00:00+02:00",
        "2026-03-07T09:30:00.5-00:30",
        "2026-03-07T10:00:00-00:00",
        "2026-03-08T09:59:00+23:59",
        "1970-01-01T00:00:00Z",
        "2026-03-07T10:05:00Z",
    ];
    let malformed = [
        "",
        "2026-03-07 10:00:00",
        "2026-03-07T10:00:00.1234Z",
        "2026-03-07T10:00:00+0200",
        "2026-03-07T10:00:00+24:00",
        "2026-03-07T24:00:00Z",
        "2026-03-07T10:00:61Z",
        " 2026-03-07T10:00:00Z",
        "2026-03-07T10:00:00Z ",
        "1969-12-31T23:59:59.999Z",
        "1970-01-01T00:00:00+00:01",
        "10000-01-01T00:00:00Z",
        "9999-12-30T22:00:00.001Z",
        "1772877600",
    ];
    let ahead = ["2026-03-07T10:05:00.001Z", "2026-03-07T12:05:01+02:00", "9999-12-30T22:00:00Z"];
    let cases = taken.iter().map(|text| (text, None));
    let cases = cases.chain(malformed.iter().map(|text| (text, Some("invalid_timestamp"))));
    for (text, code) in cases.chain(ahead.iter().map(|text| (text, Some("timestamp_in_future")))) {
        let body = json!({"cellId": "c", "instanceId": "i", "creationTimestamp": text});
        judged(&event(REGISTER).json(&body), code.map(|code| (code, "/creationTimestamp"))).await;
        let delete = event(DELETE_MAPPING).asking([("creationTimestamp", *text)]);
        // In a query, a space is the + of an offset, and nothing else.
        if !text.contains(' ') {
            judged(&delete, code.map(|code| (code, "query:creationTimestamp"))).await;
        }
    }
}

#[tokio::test]
async fn a_number_is_whole_by_its_value_and_within_its_limits() {
    let taken = ["0", "1.0", "1e0", "10e-1", "-0", "1000000000000000", "1e15"].map(|text| (text, None));
    let refused = ["1e-1", "1000000000000000.5"].map(|text| (text, Some(("invalid_value", "/stock"))));
    for (text, problem) in taken.into_iter().chain(refused) {
        judged(&event(CREATE_PRODUCT).text(&format!(r#"{{"stock":{text}}}"#)), problem).await;
    }
    let taken = ["1", "100", "099"].map(|text| (text, None));
    let refused = ["0", "101", "1.0", "+1", "", " 1", "1,2", "18446744073709551617"];
    for (text, problem) in taken.into_iter().chain(refused.map(|text| (text, Some(("invalid_value", "query:limit"))))) {
        judged(&event(LIST).asking([("userId", "u"), ("limit", text)]), problem).await;
    }
}

#[tokio::test]
async fn free_form_json_has_38_digits_names_of_255_bytes_and_10000_values() {
    let nines = "9".repeat(38);
    let wide = format!("{nines}e87");
    for (text, is_taken) in [(nines.as_str(), true), (&*wide, true), (&*format!("{nines}9"), false), ("1e126", false)] {
        let code = (!is_taken).then_some(("number_out_of_range", "/n"));
        judged(&event(PATCH_STATE).text(&format!(r#"{{"n":{text}}}"#)), code).await;
    }
    let two = "\u{e9}";
    for (name, code) in [
        ("n".repeat(255), None),
        (two.repeat(127), None),
        ("n".repeat(256), Some("invalid_name")),
        (two.repeat(128), Some("invalid_name")),
    ] {
        let body = json!({&name: 1}).to_string();
        let pointer = format!("/{name}");
        judged(&event(PATCH_STATE).text(&body), code.map(|code| (code, pointer.as_str()))).await;
    }
    for (values, code) in [(10_000, None), (10_001, Some(("too_many_values", "/a/9999")))] {
        let list = vec!["0"; values - 1].join(",");
        judged(&event(PATCH_STATE).text(&format!(r#"{{"a":[{list}]}}"#)), code).await;
    }
}

#[tokio::test]
async fn an_order_has_1_to_50_lines() {
    let line = |number| json!({"productId": format!("p-{number}"), "quantity": 1});
    for (count, is_taken) in [(0, false), (1, true), (50, true), (51, false)] {
        let lines: Vec<_> = (0..count).map(line).collect();
        let code = (!is_taken).then_some(("invalid_value", "/lines"));
        judged(&event(PLACE).json(&json!({"userId": "u", "lines": lines})), code).await;
    }
}

/// The limits of an adjustment may be any numbers. They may leave none that an edit can hold.
#[tokio::test]
async fn limits_of_an_adjustment_beyond_all_plain_numbers_refuse_it_as_at_a_version() {
    const ADJUST: &str = "POST /devices/{deviceId}/adjustments";
    for (limit, number) in
        [("min", "1000000000000000001"), ("min", "1e30"), ("max", "-1000000000000000001"), ("max", "-1e30")]
    {
        let api = Api::start();
        let adjusted = async |attribute: &str, key: bool| {
            let body = format!(r#"{{"attribute":"{attribute}","by":5,"{limit}":{number}}}"#);
            let event = event(ADJUST).text(&body);
            let event = if key { event.key("k-1") } else { event.without_header("idempotency-key") };
            let answer = api.of(ADJUST).send(&event).await;
            (answer.status, answer.json()["code"].as_str().unwrap_or_default().to_owned())
        };
        for key in [false, true] {
            assert_eq!(adjusted("n", key).await, (404, "device_not_found".to_owned()), "{limit} {number}");
        }
        let create = event(CREATE_DEVICE).text(r#"{"state":{"n":1}}"#);
        assert_eq!(api.of(CREATE_DEVICE).send(&create).await.status, 201);
        for key in [false, true] {
            assert_eq!(adjusted("n", key).await, (409, "limit_reached".to_owned()), "{limit} {number}");
            assert_eq!(adjusted("other", key).await, (409, "not_a_number".to_owned()), "{limit} {number}");
        }
    }
}
