//! `lines`: any texts in the output of the functions for `CloudWatch` and X-Ray.
//!
//! Each line is one JSON object with `timestamp` and `level`. Each metric in its directives is a number in it. Each
//! dimension is a text. No text from a client starts another line, or takes the place of one of these members.

use crate::input::Input;
use crate::running::{context, now, with_functions};
use aws_lambda_events::sqs::SqsEvent;
use fencepost::Timestamp;
use fencepost::http::Problem;
use fencepost::lambda::{Done, Outcome, respond_batch};
use fencepost::testing::{Reported, logged, report_line, subsegment};
use lambda_runtime::LambdaEvent;
use serde_json::{Value, json};
use std::time::Duration;

const OUTCOMES: &[&str] = &["ok", "created", "replayed", "superseded", "fenced", "outcome_unknown", "refused"];
const LEVELS: &[&str] = &["", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "off", "no, such=level"];

pub fn play(input: &[u8]) {
    let mut drawn = Input::new(input);
    if drawn.flag() {
        report(&mut drawn);
    } else {
        tasks(&mut drawn);
    }
    trace(&mut drawn);
}

fn report(input: &mut Input) {
    let [namespace, function, route, key, level] = [(); 5].map(|()| input.text());
    let said = input.pick(LEVELS);
    let outcomes: Vec<_> = (0..input.below(4)).map(|_| (input.pick(OUTCOMES), problem(input))).collect();
    let expected = outcomes.len();
    let millis = input.number();
    let reported = Reported {
        namespace: input.flag().then_some(namespace.as_str()),
        level: input.flag().then_some(if said.is_empty() { level.as_str() } else { said }),
        function: &function,
        route: &route,
        details: vec![("key", key.as_str()), ("request_id", &route), ("outcome", &function)],
        outcomes,
        took: Duration::from_millis(millis),
        now: Timestamp::from(now()),
    };
    let has_metrics = reported.namespace.is_some_and(|namespace| !namespace.is_empty());
    let Some(line) = report_line(reported) else { return assert!(!has_metrics, "metrics are filtered out") };
    let value = one_object(&line);
    assert_eq!((&value["function"], &value["key"]), (&json!(function), &json!(key)));
    assert_eq!((&value["requests"], &value["duration_ms"]), (&json!(expected), &json!(millis)));
    assert_eq!(value.get("_aws").is_some(), has_metrics);
    if has_metrics {
        check_directives(&value, &namespace);
    }
}

fn check_directives(line: &Value, namespace: &str) {
    let directives = line["_aws"]["CloudWatchMetrics"].as_array().expect("directives");
    assert!(line["_aws"]["Timestamp"].is_u64() && !directives.is_empty());
    for directive in directives {
        assert_eq!(directive["Namespace"], namespace);
        let metrics = directive["Metrics"].as_array().expect("metrics");
        assert!((1..=100).contains(&metrics.len()));
        for metric in metrics {
            assert!(line[metric["Name"].as_str().expect("a name")].is_number(), "{metric}");
        }
        for set in directive["Dimensions"].as_array().expect("sets of dimensions") {
            for dimension in set.as_array().expect("dimensions") {
                assert!(line[dimension.as_str().expect("a name")].is_string(), "{dimension}");
            }
        }
    }
}

/// The lines about the messages of a batch, with any ids and outcomes.
fn tasks(input: &mut Input) {
    let count = usize::from(input.below(5));
    let records: Vec<_> = (0..count).map(|_| json!({"messageId": input.text(), "body": input.text()})).collect();
    let mut outcomes: Vec<Outcome> = (0..count).map(|_| outcome(input)).collect();
    // A function that gives too few outcomes.
    outcomes.truncate(usize::from(input.below(5)).max(count.saturating_sub(1)));
    let event: SqsEvent = serde_json::from_value(json!({"Records": records})).expect("a batch");
    let batch = LambdaEvent::new(event, context());
    let outcomes = std::cell::RefCell::new(outcomes);
    let log = logged(|| {
        let handle = async |(): &(), _: &[&str], _: &fencepost::Call| outcomes.take();
        // The target `queue` checks whether the batch has to come again.
        let _ = with_functions(|functions| functions.wait(respond_batch(&(), &handle, batch)));
    });
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines.len(), count, "{log}");
    for (line, record) in lines.iter().zip(&records) {
        let value = one_object(line);
        assert_eq!(value["messageId"], record["messageId"], "{line}");
        assert!(value["outcome"].is_string() && value["message"] == "task", "{line}");
    }
}

fn outcome(input: &mut Input) -> Outcome {
    match problem(input) {
        Some(problem) => Err(problem),
        None => Ok(Done { key: input.text(), outcome: input.pick(OUTCOMES) }),
    }
}

fn problem(input: &mut Input) -> Option<Problem> {
    match input.below(4) {
        0 => Some(Problem::invalid(input.text(), "invalid_value", input.text())),
        1 => Some(Problem::internal(input.text())),
        2 => Some(Problem::refused("refused", input.text()).with(&input.text(), input.text())),
        _ => None,
    }
}

fn one_object(line: &str) -> Value {
    assert!(!line.contains(['\n', '\r']), "{line:?}");
    let value: Value = serde_json::from_str(line).expect("a line is JSON");
    let timestamp = value["timestamp"].as_str().expect("a timestamp");
    assert!(timestamp.ends_with('Z'), "{timestamp}");
    assert!(["INFO", "WARN", "ERROR", "FATAL"].contains(&value["level"].as_str().expect("a level")), "{line}");
    let parsed = fencepost::json::parse(line.as_bytes()).expect("one object, in which no name occurs twice");
    assert_eq!(parsed.as_object().map(serde_json::Map::len), value.as_object().map(serde_json::Map::len));
    value
}

/// The subsegment for X-Ray: one line, and only under a header with a sampled trace.
fn trace(input: &mut Input) {
    let (header, table, outcome) = (input.text(), input.text(), input.text());
    let sampled = format!("Root=1-{header};Parent={table};Sampled=1");
    for header in [&header, &sampled] {
        let Some(sent) = subsegment(header, &[("table", &table), ("outcome", &outcome), ("operation", "UpdateItem")])
        else {
            continue;
        };
        assert!(header.contains("Sampled=1"));
        assert!(!sent.to_string().contains('\n'));
        assert!(["id", "trace_id", "parent_id", "name"].iter().all(|name| sent[name].is_string()), "{sent}");
        assert_eq!((&sent["aws"]["table_name"], &sent["annotations"]["outcome"]), (&json!(table), &json!(outcome)));
    }
}
