//! `host-mapping` and `delete-mapping` on one engine, their events and batches, and their rows.

use crate::harness::answers::Answer;
use crate::harness::clients::{client_whose, error, lost};
pub use crate::harness::events::{batch_of, deletion, look_up, registration, task};
use crate::harness::functions::{MAPPINGS, Mappings};
use crate::harness::world::{self, ALLOWED};
use fencepost::{Call, Deadline};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

pub const KEY: &str = "hostIp";

/// The address in most tests.
pub const IP: &str = "192.0.2.10";
/// Moments at which instances are created, the oldest first.
pub const T1: &str = "2026-03-07T10:00:00.000Z";
pub const T2: &str = "2026-03-07T10:30:00.000Z";
pub const T3: &str = "2026-03-07T10:45:00.000Z";
/// The first two of them, in milliseconds since 1970.
pub const T1_MS: u64 = 1_772_877_600_000;
pub const T2_MS: u64 = 1_772_879_400_000;
/// When the functions start: 11:00 on 7 March 2026, in milliseconds since 1970.
pub const START_MS: u64 = 1_772_881_200_000;
pub const DAY_MS: u64 = 24 * 3_600_000;

/// Both functions, one engine, and a clock under the test's control.
pub type World = world::World<Mappings>;

impl World {
    pub fn pass(&self, milliseconds: u64) {
        self.clock.set_forward(milliseconds);
    }

    pub async fn register(&self, ip: &str, instance: &str, at: &str) -> Answer {
        self.send(&registration(ip, instance, at)).await
    }

    /// Registers a new instance.
    pub async fn stands(&self, ip: &str, instance: &str, at: &str) {
        self.register(ip, instance, at).await.shown(201);
    }

    pub async fn get(&self, ip: &str) -> Answer {
        self.send(&look_up(ip)).await
    }

    /// The instance behind an address as it is shown; `None` where none is.
    pub async fn instance(&self, ip: &str) -> Option<String> {
        let answer = self.get(ip).await;
        if answer.status == 404 {
            answer.says(404, "mapping_not_found");
            return None;
        }
        Some(answer.shown(200)["instanceId"].as_str().expect("an instance").to_owned())
    }

    /// Deletes by HTTP, which must not fail, and gives the outcome.
    pub async fn delete(&self, ip: &str, at: &str, instance: Option<&str>) -> String {
        self.send(&deletion(ip, at, instance)).await.outcome()
    }

    /// Sends a batch. Gives the ids of the messages that have to come again. Asserts that each is in the batch.
    pub async fn batch(&self, batch: &Value) -> Vec<String> {
        self.batch_within(ALLOWED, batch).await
    }

    /// The same where Lambda allows the invocation so much time.
    pub async fn batch_within(&self, time: Duration, batch: &Value) -> Vec<String> {
        let answer = self.invoke(time, batch).await.expect("an answer to the batch");
        assert_eq!(answer.as_object().map(Map::len), Some(1), "{answer}");
        let id = |failure: &Value| {
            assert_eq!(failure.as_object().map(Map::len), Some(1), "{answer}");
            failure["itemIdentifier"].as_str().expect("an id").to_owned()
        };
        let failed: Vec<_> = answer["batchItemFailures"].as_array().expect("a list").iter().map(id).collect();
        let records = batch["Records"].as_array().expect("records").iter();
        let sent: BTreeSet<_> = records.filter_map(|record| Some(record["messageId"].as_str()?.to_owned())).collect();
        let distinct: BTreeSet<_> = failed.iter().cloned().collect();
        assert!(distinct.is_subset(&sent), "{failed:?} of {sent:?}");
        assert_eq!(distinct.len(), failed.len(), "each is reported once: {failed:?}");
        failed
    }

    /// Hands messages to the function itself. Gives for each its outcome, or its problem by code and field.
    pub async fn outcomes(&self, bodies: &[&str]) -> Vec<Result<&'static str, (&'static str, String)>> {
        self.outcomes_within(ALLOWED, bodies).await
    }

    /// The same in a call of so much time. No wall clock has an influence.
    pub async fn outcomes_within(
        &self,
        time: Duration,
        bodies: &[&str],
    ) -> Vec<Result<&'static str, (&'static str, String)>> {
        let call = Call::new(Deadline::within(time));
        let outcomes = functions::delete_mapping::handle(&self.app.deletes, bodies, &call).await;
        let told = |problem: fencepost::http::Problem| (problem.code(), problem.field().unwrap_or_default().to_owned());
        outcomes.into_iter().map(|outcome| outcome.map(|done| done.outcome).map_err(told)).collect()
    }

    /// The same, where each write about an address that begins so fares like this.
    pub fn in_trouble(&self, trouble: Trouble, address: &'static str) -> Self {
        let begins_so = format!("\"{address}");
        self.reached_by(&client_whose(&self.engine, move |engine, _, operation, body| {
            if operation != "PutItem" || !String::from_utf8_lossy(body).contains(&begins_so) {
                return engine.answer(operation, body);
            }
            if trouble == Trouble::AnswerLost {
                engine.answer(operation, body);
            }
            if trouble == Trouble::Throttled { error(400, "ThrottlingException") } else { lost() }
        }))
    }

    /// A row as it is stored; `Null` where there is none.
    pub fn row(&self, ip: &str) -> Value {
        self.engine.row(MAPPINGS, KEY, ip)
    }

    /// Puts a row past the functions.
    pub fn plant(&self, item: &Value) {
        self.engine.raw("PutItem", &json!({"TableName": MAPPINGS, "Item": item}));
    }
}

impl Answer {
    /// The outcome of a deletion, which has no body.
    pub fn outcome(&self) -> String {
        assert_eq!((self.status, &self.body), (204, &None), "{self:?}");
        self.header("fencepost-outcome").unwrap_or_else(|| panic!("an outcome: {self:?}")).to_owned()
    }

    /// Asserts a refusal because of this moment, and of this instance if there is one.
    pub fn superseded_by(&self, at: &str, instance: Option<&str>) {
        let problem = self.says(409, "superseded");
        self.check_problem();
        assert_eq!((problem["creationTimestamp"].as_str(), problem["instanceId"].as_str()), (Some(at), instance));
        assert_eq!(problem.get("instanceId").is_some(), instance.is_some(), "no name is no member: {problem}");
    }
}

/// The fate of a write without the usual answer of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// It is not applied, and throttled.
    Throttled,
    /// It is not applied, and answered 500: who sent it cannot know.
    Lost,
    /// It is applied, and answered 500.
    AnswerLost,
}
