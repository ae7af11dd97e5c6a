//! `tags`: lines as the headers, the query and the path of a request, and as ids.
//!
//! An accepted tag is the one tag of its state. A key, an id and an address are never cut or cleaned. An encoded query
//! comes back unchanged.

use crate::running::now;
use fencepost::http::{Id, IfMatch, IfNoneMatch, Ip, Request, Validator};
use fencepost::lease::LeaseVersion;
use fencepost::{ItemVersion, Timestamp, Version, derived_id};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};

pub fn play(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let lines: Vec<&str> = text.split('\n').collect();
    for line in &lines {
        check_if_match::<ItemVersion>(line);
        check_if_match::<LeaseVersion>(line);
        check_if_none_match(line);
        check_key(line);
        check_id(line);
        check_address(line);
        check_raw_query(line);
    }
    check_query(&lines);
    check_claims(&lines);
}

fn check_if_match<V: Validator + Debug>(header: &str) {
    let at = match IfMatch::<V>::parse(Some(header)) {
        Ok(IfMatch::Tag(at)) => at,
        Ok(IfMatch::Any) => return assert_eq!(header.trim(), "*"),
        Ok(IfMatch::None) => panic!("{header:?} is taken for no header"),
        Err(problem) => return assert_eq!(problem.field(), Some("header:if-match")),
    };
    assert_eq!(at.etag(), header.trim(), "two tags for one state");
    assert!(at.etag().bytes().all(|byte| byte.is_ascii_graphic()));
    assert!(Version::new(at.number()).is_some());
    assert!(IfMatch::Tag(at).check(at).is_ok() && IfMatch::<V>::Any.check(at).is_ok());
    let listed = IfNoneMatch::parse(Some(header)).expect("a tag is a list of one");
    assert!(listed.matches(at));
}

fn check_if_none_match(header: &str) {
    let tags = match IfNoneMatch::parse(Some(header)) {
        Ok(IfNoneMatch::Tags(tags)) => tags,
        Ok(IfNoneMatch::Any) => return assert_eq!(header.trim(), "*"),
        Ok(IfNoneMatch::None) => panic!("{header:?} is taken for no header"),
        Err(problem) => return assert_eq!(problem.field(), Some("header:if-none-match")),
    };
    assert!(!tags.is_empty());
    assert!(tags.iter().all(|tag| tag.len() >= 2 && tag.matches('"').count() == 2 && tag.starts_with('"')));
    for separator in [",", " ,  "] {
        let printed = tags.join(separator);
        let again = IfNoneMatch::parse(Some(&printed)).expect("a list of tags");
        assert_eq!(again, IfNoneMatch::Tags(tags.clone()), "{printed}");
    }
    let weak = format!("W/{}", tags.join(", W/"));
    assert_eq!(IfNoneMatch::parse(Some(&weak)).ok(), Some(IfNoneMatch::Tags(tags)));
}

fn check_key(text: &str) {
    let mut request = Request::default();
    request.headers.insert("idempotency-key".to_owned(), text.to_owned());
    match request.idempotency_key() {
        Ok(key) => {
            assert_eq!(key, Some(text), "a key is never cut or cleaned");
            assert!((1..=255).contains(&text.len()) && text.bytes().all(|byte| (0x21..=0x7e).contains(&byte)));
        }
        Err(problem) => assert_eq!(problem.field(), Some("header:idempotency-key")),
    }
    assert!(request.refuse_idempotency_key().is_err());
}

fn check_id(text: &str) {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    let expected = (1..=128).contains(&text.len()) && text.bytes().all(is_safe) && !matches!(text, "." | "..");
    let id = Id::parse(text, "path:thingId");
    assert_eq!(id.is_ok(), expected, "{text:?}");
    assert!(id.is_err() || id.is_ok_and(|id| id.as_str() == text));
    let path_parameters = [("thingId".to_owned(), text.to_owned())].into();
    let request = Request { path_parameters, ..Request::default() };
    assert_eq!(request.id("thingId").is_ok(), expected, "{text:?} in a path");
}

fn check_address(text: &str) {
    let Ok(ip) = Ip::parse(text, "/ip") else { return };
    assert_eq!(Ip::parse(&ip.to_string(), "/ip").ok(), Some(ip));
    let std: std::net::IpAddr = text.parse().expect("an address");
    assert_eq!(ip.to_string(), std.to_canonical().to_string());
}

/// Checks a raw query: it never panics. Each value is read exactly or refused.
fn check_raw_query(text: &str) {
    let Ok(uri) = format!("/?{text}").parse::<http::Uri>() else { return };
    let request = with_uri(uri);
    let Ok(query) = request.query_of(&["n", "at", "id"]) else { return };
    if let Ok(Some(whole)) = query.optional_whole("n", 0..=i64::MAX) {
        assert_eq!(request.query["n"].trim_start_matches('0').parse().unwrap_or(0), whole);
    }
    if let Ok(Some(id)) = query.optional_id("id") {
        assert_eq!(request.query["id"], id.as_str());
    }
    let moment = Timestamp::from(now());
    if let Ok(Some(at)) = query.optional_past("at", moment) {
        assert!(at.epoch_millis().is_some() && at.since(moment).as_secs() <= 300);
    }
}

/// Pairs of lines as names and values, encoded in the way of browsers.
fn check_query(lines: &[&str]) {
    let mut pairs = BTreeMap::new();
    for pair in lines.chunks_exact(2).take(8) {
        pairs.entry(pair[0].to_owned()).or_insert_with(|| pair[1].to_owned());
    }
    let encoded: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    let Ok(uri) = format!("/?{}", encoded.join("&")).parse::<http::Uri>() else { return };
    assert_eq!(with_uri(uri).query, pairs);
}

fn with_uri(uri: http::Uri) -> Request {
    let (parts, ()) = http::Request::put(uri).body(()).expect("a request").into_parts();
    Request::from_http(&parts, b"", "ann")
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut all, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => all.push(char::from(byte)),
            b' ' => all.push('+'),
            _ => write!(all, "%{byte:02X}").expect("a text takes all"),
        }
        all
    })
}

/// Claims are equal if and only if keys and payloads are.
fn check_claims(lines: &[&str]) {
    let (first, rest) = lines.split_at(lines.len() / 2);
    assert_eq!(derived_id(first) == derived_id(rest), first == rest);
    let claim = |caller: &str, key: &str, payload: &str| {
        let mut request = Request { caller: caller.to_owned(), ..Request::default() };
        "PUT /things/{thingId}".clone_into(&mut request.route);
        request.path_parameters.insert("thingId".to_owned(), "a".to_owned());
        request.headers.insert("Idempotency-Key".to_owned(), key.to_owned());
        request.idempotency_claim(&json!({"said": payload})).ok().flatten()
    };
    let at = |place: usize| lines.get(place).copied().unwrap_or_default();
    let (one, other) = (claim(at(0), at(1), at(2)), claim(at(3), at(4), at(5)));
    if let (Some(one), Some(other)) = (one, other) {
        assert_eq!(one == other, (at(0), at(1), at(2)) == (at(3), at(4), at(5)));
    }
}
