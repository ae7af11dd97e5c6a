//! A server as the engine of a test, such as `DynamoDB` Local.

use serde_json::{Map, Value};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

/// Names an engine of its own for the tests that ask it, such as `http://127.0.0.1:8000`.
pub const ENDPOINT: &str = "DYNAMODB_ENDPOINT";

/// A server that many tests share. Each engine has a prefix for its tables; they are left behind when it is done.
#[derive(Clone)]
pub struct Endpoint {
    address: String,
    prefix: String,
}

impl Endpoint {
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    pub fn new(url: &str) -> Self {
        static RUN: LazyLock<u128> =
            LazyLock::new(|| SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_nanos());
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let address = url.strip_prefix("http://").expect("an endpoint on plain http").trim_end_matches('/').to_owned();
        Endpoint { address, prefix: format!("{:x}-{}-", *RUN, NEXT.fetch_add(1, Relaxed)) }
    }

    pub fn ask(&self, operation: &str, body: &[u8]) -> (u16, String) {
        let body = prefixed(serde_json::from_slice(body).expect("requests are JSON"), &self.prefix);
        let asked = self.post(operation, &body.to_string());
        let (status, answer) = asked.unwrap_or_else(|error| panic!("{ENDPOINT}={}: {error}", self.address));
        match serde_json::from_str(&answer) {
            Ok(answer) if status == 200 => (status, unprefixed(answer, &self.prefix).to_string()),
            _ => (status, answer),
        }
    }

    /// One request in HTTP/1.0: its answer ends with the connection. The engine wants a signature but does not check
    /// it.
    fn post(&self, operation: &str, body: &str) -> io::Result<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(
            stream,
            "POST / HTTP/1.0\r\n\
             Host: {}\r\n\
             Content-Type: application/x-amz-json-1.0\r\n\
             X-Amz-Target: DynamoDB_20120810.{operation}\r\n\
             X-Amz-Date: 20260307T100000Z\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=test/20260307/eu-west-1/dynamodb/aws4_request, \
             SignedHeaders=host;x-amz-date;x-amz-target, Signature=0\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        let status = status.ok_or_else(|| io::Error::other(format!("no answer in HTTP: {answer}")))?;
        Ok((status, body.to_owned()))
    }
}

/// A request with the prefix on every table that it names.
fn prefixed(mut body: Value, prefix: &str) -> Value {
    let add = |name: &str| format!("{prefix}{name}");
    rename_table(&mut body, &add);
    for step in body.get_mut("TransactItems").and_then(Value::as_array_mut).into_iter().flatten() {
        for action in step.as_object_mut().into_iter().flat_map(Map::values_mut) {
            rename_table(action, &add);
        }
    }
    rename_members(&mut body, "RequestItems", &add);
    body
}

/// An answer without the prefix on the tables that it names.
fn unprefixed(mut answer: Value, prefix: &str) -> Value {
    let remove = |name: &str| name.strip_prefix(prefix).unwrap_or(name).to_owned();
    // TransactGetItems has a list there, which names none.
    for member in ["Responses", "UnprocessedKeys", "UnprocessedItems", "ItemCollectionMetrics"] {
        rename_members(&mut answer, member, &remove);
    }
    match answer.get_mut("ConsumedCapacity") {
        Some(Value::Array(consumed)) => consumed.iter_mut().for_each(|one| rename_table(one, &remove)),
        Some(consumed) => rename_table(consumed, &remove),
        None => {}
    }
    answer
}

fn rename_table(named: &mut Value, rename: &impl Fn(&str) -> String) {
    if let Some(Value::String(name)) = named.get_mut("TableName") {
        *name = rename(name);
    }
}

fn rename_members(holder: &mut Value, member: &str, rename: &impl Fn(&str) -> String) {
    if let Some(Value::Object(members)) = holder.get_mut(member) {
        *members = std::mem::take(members).into_iter().map(|(name, value)| (rename(&name), value)).collect();
    }
}
