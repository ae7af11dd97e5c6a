//! Functions on one engine under one clock, with the way of an event to them.

use super::answers::Answer;
use super::clock::Clock;
use super::contract::assert_described;
use super::engine::{Asked, Engine, Use, is_read, with_indexed_tables};
use super::events::Event;
use super::functions::{Functions, Mappings, assert_allowed};
use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use aws_lambda_events::sqs::SqsEvent;
use aws_sdk_dynamodb::Client;
use fencepost::lambda::respond_batch;
use fencepost::{Source, Store};
use lambda_runtime::{Context, LambdaEvent};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

/// The time of an invocation: more than any needs, even on a slow machine. A test of deadlines sets its own.
pub const ALLOWED: Duration = Duration::from_mins(1);

/// Some functions, their engine and their clock.
pub struct World<F> {
    pub engine: Engine,
    pub clock: Clock,
    pub app: F,
    /// The engine as each function sees it, to observe its use.
    seen_by: Vec<(&'static str, Engine)>,
}

impl<F: Functions> World<F> {
    /// Nothing is stored.
    pub fn new() -> Self {
        Self::on(&with_indexed_tables(F::tables()))
    }

    /// Newly started on this engine, under a clock of its own.
    pub fn on(engine: &Engine) -> Self {
        let clock = F::clock();
        let seen_by: Vec<_> = F::names().iter().map(|name| (*name, engine.with_own_uses())).collect();
        let store_of = |name| {
            let (_, engine) = seen_by.iter().find(|(own, _)| *own == name).expect("a name of these functions");
            clock.store(&engine.client())
        };
        World { engine: engine.clone(), app: F::on(store_of), clock, seen_by }
    }

    /// Newly started with the same engine and clock, reached by this client.
    pub fn reached_by(&self, client: &Client) -> Self {
        Self::under(&self.engine, self.clock.clone(), &self.clock.store(client))
    }

    /// Newly started on another engine with the same clock, as after its tables were replaced.
    pub fn moved_to(&self, engine: &Engine) -> Self {
        Self::under(engine, self.clock.clone(), &self.clock.store(&engine.client()))
    }

    /// Newly started on this store. The clock tells the test the time of the store.
    pub fn under(engine: &Engine, clock: Clock, store: &Store) -> Self {
        World { engine: engine.clone(), app: F::on(|_| store.clone()), clock, seen_by: Vec::new() }
    }

    pub async fn send(&self, event: &Event) -> Answer {
        self.send_with(event, context(ALLOWED)).await
    }

    /// Sends an event with this context of Lambda.
    pub async fn send_with(&self, event: &Event, context: Context) -> Answer {
        let payload: ApiGatewayV2httpRequest = serde_json::from_str(&event.0.to_string()).expect("an event");
        let answer = self.app.answer(LambdaEvent::new(payload, context)).await;
        self.assert_permissions();
        let answer = answer.into();
        assert_described(event, &answer);
        answer
    }

    /// Fails if a function took an action that the template does not allow it.
    pub fn assert_permissions(&self) {
        for (name, engine) in &self.seen_by {
            assert_allowed(&[name], &engine.uses());
        }
        assert_allowed(F::names(), &self.engine.uses());
    }

    /// The uses so far by a function of a world from `new` or `on`.
    pub fn uses_of(&self, name: &str) -> BTreeSet<Use> {
        let (_, engine) = self.seen_by.iter().find(|(own, _)| *own == name).expect("a function of this world");
        engine.uses()
    }

    /// Sends an event that is refused with this status and code. Asserts that nothing was written.
    pub async fn refused(&self, event: &Event, status: i64, code: &str) -> Answer {
        self.refusal(event, status, code).await.0
    }

    /// Sends an event that is refused as bad input. The answer names the field, and `DynamoDB` was not even asked.
    pub async fn bad_input(&self, event: &Event, code: &str, field: &str) {
        self.unasked(event, 400, code, field).await;
    }

    /// The same with another status than 400.
    pub async fn unasked(&self, event: &Event, status: i64, code: &str, field: &str) {
        let (answer, asked) = self.refusal(event, status, code).await;
        assert_eq!(answer.json()["field"], field, "{event:?}\n{answer:?}");
        assert!(asked.is_empty(), "{event:?} asked: {asked:?}");
    }

    async fn refusal(&self, event: &Event, status: i64, code: &str) -> (Answer, Vec<Asked>) {
        self.engine.take_log();
        let answer = self.send(event).await;
        assert_eq!((answer.status, answer.json()["code"].as_str()), (status, Some(code)), "{event:?}\n{answer:?}");
        let asked = self.engine.take_log();
        let wrote = asked.iter().any(|asked| !is_read(&asked.operation) && asked.status == 200);
        assert!(!wrote, "{event:?} was refused, and written: {asked:?}");
        answer.check_problem();
        (answer, asked)
    }
}

impl World<Mappings> {
    /// The answer to Lambda for a batch of `delete-mapping`, in this much time.
    pub async fn invoke(&self, time: Duration, batch: &Value) -> Result<Value, Source> {
        let payload: SqsEvent = serde_json::from_str(&batch.to_string()).expect("a batch");
        let event = LambdaEvent::new(payload, context(time));
        let answer = Box::pin(respond_batch(&self.app.deletes, &functions::delete_mapping::handle, event)).await?;
        self.assert_permissions();
        Ok(serde_json::to_value(answer).expect("JSON"))
    }
}

/// The context of an invocation with this much time from now on.
pub fn context(time: Duration) -> Context {
    let deadline = (SystemTime::now() + time).duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let mut context = Context::default();
    context.deadline = u64::try_from(deadline.as_millis()).expect("small");
    context
}
