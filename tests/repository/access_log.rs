//! The access log of the API: each line is a JSON object, whatever a caller sends.

use super::files::{Complaints, read};
use dev::template::FILE;
use dev::yaml;
use serde_json::Value;

/// The variables that stand for an id, a time, an address, a name or a number. None of their values has a quote or a
/// backslash. A path and a message may have both, and AWS documents no escaping of them. `error.messageString` is
/// documented as quoted, but not its value if there is no error.
///
/// Source: <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-logging-variables.html>
const PLAIN: &[&str] = &[
    "awsEndpointRequestId",
    "error.responseType",
    "identity.sourceIp",
    "identity.userArn",
    "integrationLatency",
    "integrationStatus",
    "requestId",
    "requestTime",
    "responseLatency",
    "responseLength",
    "routeKey",
    "status",
];

/// What is wrong with a format. Each variable stands for the text that an absent value has in the log.
fn complaints(format: &str) -> Vec<String> {
    let mut parts = format.split("$context.");
    let mut line = parts.next().unwrap_or_default().to_owned();
    let mut complaints = Vec::new();
    for part in parts {
        let end = part.find(|one: char| !one.is_ascii_alphanumeric() && one != '.').unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        if !PLAIN.contains(&name) {
            complaints.push(format!("AWS documents no escaping of $context.{name}"));
        }
        line.push('-');
        line.push_str(rest);
    }
    if !serde_json::from_str(&line).is_ok_and(|line: Value| line.is_object()) || line.contains('\n') {
        complaints.push(format!("no JSON object in one line: {line}"));
    }
    complaints
}

#[test]
fn each_line_of_the_access_log_is_json_whatever_a_caller_sends() {
    let format = |root: &yaml::Place<'_>| {
        let format = root.require(&["Resources", "Api", "Properties", "AccessLogSettings", "Format"])?;
        format.text()
    };
    let format = yaml::read(FILE, &read(FILE), format).unwrap_or_else(|failure| panic!("{failure}"));
    let mut found = Complaints::default();
    for complaint in complaints(&format) {
        found.unless(false, || format!("{FILE}: the access log: {complaint}"));
    }
    found.report();
}
