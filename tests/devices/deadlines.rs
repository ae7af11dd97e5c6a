//! When time runs out: the answer comes before Lambda would end the invocation, and says what is known.

use super::world::{KEY, World};
use crate::harness::answers::Answer;
use crate::harness::clients::{Silent, client_whose, client_without_answers};
use crate::harness::events::Event;
use crate::harness::functions::DEVICES;
use crate::harness::world::context;
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

/// What Lambda allows.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The answer to an event, and how long after the event it came.
async fn timed(world: &World, event: &Event) -> (Answer, Duration) {
    let began = Instant::now();
    let answer = world.send_with(event, context(TIMEOUT)).await;
    (answer, began.elapsed())
}

/// The same device, where a rival commits before every write.
fn rivalled(world: &World) -> World {
    let client = client_whose(&world.engine, |engine, _, operation, body| {
        if operation == "UpdateItem" {
            let rival = json!({
                "TableName": DEVICES,
                "Key": {KEY: {"S": "lamp-1"}},
                "UpdateExpression": "SET #v = #v + :one",
                "ExpressionAttributeNames": {"#v": "_version"},
                "ExpressionAttributeValues": {":one": {"N": "1"}},
            });
            engine.raw("UpdateItem", &rival);
        }
        engine.answer(operation, body)
    });
    world.reached_by(&client)
}

#[tokio::test(start_paused = true)]
async fn the_function_answers_503_or_504_before_lambda_would_kill_it() {
    let (world, created) = World::with_lamp().await;
    let never = |silent| world.reached_by(&client_without_answers(&world.engine, silent));
    let delete = Event::delete().header("if-match", created.etag());
    for (world, event, expected) in [
        (never(Silent::Always), Event::get(), (503, "unavailable", true)),
        (never(Silent::Always), Event::patch_state(), (503, "unavailable", true)),
        (never(Silent::Always), delete, (504, "outcome_unknown", false)),
        (never(Silent::Always), Event::create(), (504, "outcome_unknown", false)),
        (never(Silent::ForWrites), Event::adjust(), (504, "outcome_unknown", false)),
        (rivalled(&world), Event::patch_state(), (503, "contention", true)),
    ] {
        let (answer, took) = timed(&world, &event).await;
        let problem = answer.json();
        let code = problem["code"].as_str().unwrap_or_default();
        assert_eq!((answer.status, code, answer.header("retry-after").is_some()), expected, "{event:?}");
        assert!(took < TIMEOUT, "{event:?} took {took:?}");
    }
}
