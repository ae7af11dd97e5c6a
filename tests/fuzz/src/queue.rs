//! `queue`: a batch of SQS, given whole or by one body per line, and handled by `delete-mapping`.
//!
//! A malformed message fails with a field. A task fails because the table could not be asked. Each failed message is
//! named once by its own id. A batch fails as a whole if a failed message has no id.

use crate::running::{context, now, over, with_functions};
use aws_lambda_events::sqs::SqsEvent;
use fencepost::Timestamp;
use fencepost::http::Problem;
use fencepost::lambda::respond_batch;
use functions::delete_mapping::task::parse_task;
use functions::function::Queue;
use lambda_runtime::LambdaEvent;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub fn play(input: &[u8]) {
    let Some(event) = event_of(input) else { return };
    let bodies: Vec<&str> = event.records.iter().map(|message| message.body.as_deref().unwrap_or_default()).collect();
    for body in &bodies {
        check_task(body);
    }
    with_functions(|functions| {
        let outcomes = functions.wait(functions.deletes.take(&bodies, &over()));
        assert_eq!(outcomes.len(), bodies.len());
        for (body, outcome) in bodies.iter().zip(outcomes) {
            check_problem(body, &outcome.expect_err("nothing can be deleted when the time is over"));
        }
        let batch = LambdaEvent::new(event.clone(), context());
        let answer = functions.wait(respond_batch(&functions.deletes, &Queue::take, batch));
        let ids: BTreeSet<&str> = event.records.iter().filter_map(|message| message.message_id.as_deref()).collect();
        let is_named =
            event.records.iter().all(|message| message.message_id.as_deref().is_some_and(|id| !id.is_empty()));
        match answer {
            Err(_) => assert!(!is_named, "the batch failed though each message has an id"),
            Ok(answer) => {
                assert!(is_named, "a message without an id failed, and the answer cannot say so");
                let failed = answer.batch_item_failures.iter().map(|failure| failure.item_identifier.as_str());
                assert_eq!(failed.clone().collect::<BTreeSet<_>>(), ids);
                assert_eq!(failed.count(), ids.len(), "an id is named twice");
            }
        }
    });
}

fn check_problem(body: &str, problem: &Problem) {
    let is_task = parse_task(body, Timestamp::from(now())).is_ok();
    assert_eq!(problem.is_fault(), is_task, "{body:?}: {problem:?}");
    assert!(is_task || problem.field().is_some(), "{body:?}: {problem:?}");
}

/// A task that is printed and parsed again is the same.
fn check_task(body: &str) {
    let Ok(task) = parse_task(body, Timestamp::from(now())) else { return };
    let created = Timestamp::from_epoch_millis(task.instance.order).expect("a moment");
    let mut printed = json!({"hostIp": task.ip.to_string(), "creationTimestamp": created});
    if let Some(name) = &task.instance.name {
        printed["instanceId"] = Value::from(name.as_str());
    }
    assert_eq!(parse_task(&printed.to_string(), Timestamp::from(now())).ok(), Some(task));
}

fn event_of(input: &[u8]) -> Option<SqsEvent> {
    if input.starts_with(b"{\"Records\"") || input.starts_with(b"{\n  \"Records\"") {
        return serde_json::from_slice(input).ok();
    }
    let text = std::str::from_utf8(input).ok()?;
    let records = text.lines().take(20).enumerate();
    let record = |(place, body): (usize, &str)| json!({"messageId": format!("m-{place}"), "body": body});
    serde_json::from_value(json!({"Records": records.map(record).collect::<Vec<_>>()})).ok()
}
