//! The clients, each with a wire of its own: backends by HTTP, onlookers and readers of the queue.

use super::plan::{Ask, Change, Who};
use super::plan::{Own, Scene, Sent, Told, What};
use crate::harness::faults::{Freezing, Network};
use crate::harness::functions::MAPPINGS;
use crate::histories::scene::{Begun, Client};
use fencepost::http::{Body, Problem, Request, Response};
use fencepost::lambda::Outcome;
use functions::host_mapping::{delete_mapping, get_mapping, register_mapping};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The most repeats of a request. Every fault passes.
const REPEATS: u32 = 300;

pub struct Asker {
    client: Client<Own, Sent>,
    mappings: functions::host_mapping::App,
    deletes: functions::delete_mapping::App,
}

impl Asker {
    pub fn new(scene: &Arc<Scene>, network: &Arc<Network>, number: usize) -> Self {
        let client = Client::new(scene, network, u64::try_from(number).expect("few"));
        let store = client.open();
        let mappings = functions::host_mapping::App::new(store.lww_table(MAPPINGS));
        let deletes = functions::delete_mapping::App::new(store.lww_table(MAPPINGS));
        Asker { client, mappings, deletes }
    }

    /// Makes these requests in turn, and looks around between them. Each must get a definite answer or a place in the
    /// queue.
    pub async fn ask_for(self, asks: Vec<usize>) {
        for ask in asks {
            self.pause().await;
            if self.client.below(3) == 0 {
                self.look_up(self.client.pick(self.client.scene.plan.addresses.len())).await;
            }
            let Ask { address, change, queued } = &self.client.scene.plan.asks[ask];
            if *queued {
                self.client.scene.queue.lock().expect("no panic").push(ask);
                continue;
            }
            let mut repeats = 0;
            while !self.send(*address, What::Change(change.clone())).await.is_definite() {
                repeats += 1;
                assert!(repeats < REPEATS, "never answered definitely: {change:?}");
                self.client.pause(3000).await;
            }
        }
        self.client.scene.asking.fetch_sub(1, Ordering::Relaxed);
    }

    /// Reads the queue until it stays empty. Failed messages come again, and sometimes others do.
    pub async fn empty_queue(self) {
        let mut read = 0;
        loop {
            sleep(Duration::from_millis(50 + self.client.network.below(20_000))).await;
            let batch = self.take_batch();
            if batch.is_empty() && self.client.scene.asking.load(Ordering::Relaxed) == 0 {
                return;
            }
            read += 1;
            assert!(read < REPEATS * 10, "the queue never gets empty");
            let failed = self.work_on(&batch).await;
            let again = batch.iter().zip(failed).filter(|(_, failed)| *failed || self.client.below(12) == 0);
            let again: Vec<_> = again.map(|(ask, _)| *ask).collect();
            self.client.scene.queue.lock().expect("no panic").extend(again);
        }
    }

    /// Looks at one address after the other.
    pub async fn look_around(self, times: u64) {
        for _ in 0..times {
            self.client.pause(60_000).await;
            self.look_up(self.client.pick(self.client.scene.plan.addresses.len())).await;
        }
    }

    pub async fn look_up(&self, address: usize) -> Told {
        self.send(address, What::LookUp).await
    }

    /// Mostly short. A long pause lets held copies arrive.
    async fn pause(&self) {
        self.client.pause(if self.client.below(8) == 0 { 200_000 } else { 80 }).await;
    }

    /// Takes at most 10 messages from the queue, in any order.
    fn take_batch(&self) -> Vec<usize> {
        let mut queue = self.client.scene.queue.lock().expect("no panic");
        let most = queue.len().min(1 + self.client.pick(10));
        let mut take = |_| {
            let place = self.client.pick(queue.len());
            queue.swap_remove(place)
        };
        (0..most).map(&mut take).collect()
    }

    /// One spelling of the address.
    fn written(&self, address: usize) -> &str {
        let written = &self.client.scene.plan.addresses[address].written;
        &written[self.client.pick(written.len())]
    }

    /// One request, in an invocation as Lambda makes it.
    async fn send(&self, address: usize, what: What) -> Told {
        let request = &request(self.written(address), &what);
        let Begun { number, began, call } = self.client.begin(1800);
        let handling = async {
            match &what {
                What::LookUp => get_mapping(&self.mappings, request, &call).await,
                What::Change(Change::Register(_)) => register_mapping(&self.mappings, request, &call).await,
                What::Change(Change::Delete(_)) => delete_mapping(&self.mappings, request, &call).await,
            }
        };
        let handled = Freezing::new(&self.client.network, handling).await;
        let kept = &self.client.scene.plan.addresses[address].kept;
        let told = told(kept, &what, &handled.unwrap_or_else(Problem::into_response));
        let ended = Instant::now();
        let client = Some(self.client.number);
        self.client.scene.note(Sent { number, client, address, what, began, ended, told: told.clone() });
        told
    }

    /// One batch. Returns for each message whether it failed.
    async fn work_on(&self, batch: &[usize]) -> Vec<bool> {
        let asks: Vec<_> = batch.iter().map(|ask| &self.client.scene.plan.asks[*ask]).collect();
        let message = |ask: &&Ask| ask.change.who().message(self.written(ask.address)).to_string();
        let bodies: Vec<_> = asks.iter().map(message).collect();
        let bodies: Vec<_> = bodies.iter().map(String::as_str).collect();
        let Begun { number, began, call } = self.client.begin(1800);
        let outcomes =
            Freezing::new(&self.client.network, functions::delete_mapping::handle(&self.deletes, &bodies, &call)).await;
        assert_eq!(outcomes.len(), batch.len(), "one outcome for each message");
        let ended = Instant::now();
        let failed = outcomes.iter().map(Result::is_err).collect();
        for (ask, outcome) in asks.into_iter().zip(&outcomes) {
            let told = told_of_message(&self.client.scene.plan.addresses[ask.address].kept, outcome);
            let what = What::Change(ask.change.clone());
            self.client.scene.note(Sent { number, client: None, address: ask.address, what, began, ended, told });
        }
        failed
    }
}

fn request(address: &str, what: &What) -> Request {
    let (query, text) = match what {
        What::LookUp => (None, String::new()),
        What::Change(Change::Register(who)) => (None, who.body().to_string()),
        What::Change(Change::Delete(who)) => (Some(who), String::new()),
    };
    let timestamp = query.map(|who| ("creationTimestamp".to_owned(), who.timestamp()));
    let instance = query.and_then(|who| Some(("instanceId".to_owned(), who.instance()?.to_owned())));
    Request {
        path_parameters: [("hostIp".to_owned(), address.to_owned())].into(),
        query: timestamp.into_iter().chain(instance).collect(),
        body: Body { text, is_base64: false },
        caller: "backend".to_owned(),
        ..Request::default()
    }
}

/// The content of an answer. All of it but the instance is known in advance.
fn told(address: &str, what: &What, response: &Response) -> Told {
    let body = || serde_json::from_str::<Value>(response.body().unwrap_or_default()).expect("JSON");
    let outcome = response.headers().iter().find(|(name, _)| *name == "fencepost-outcome");
    match (what, response.status(), outcome.map(|(_, value)| value.as_str())) {
        (_, 500 | 503, _) => Told::NotApplied,
        (_, 504, _) => Told::Unknown,
        (What::LookUp, 404, _) => Told::ShownNothing,
        (What::LookUp, 200, _) => {
            let who = Who::of_body(&body());
            assert_eq!(body(), who.shown(address), "a mapping is shown as it was registered");
            Told::Shown(who)
        }
        (What::Change(Change::Register(who)), status @ (200 | 201), _) => {
            assert_eq!(body(), who.shown(address), "a register shows what it has registered");
            if status == 201 { Told::New } else { Told::Same }
        }
        (What::Change(Change::Register(_)), 409, _) => {
            assert_eq!(body()["code"], "superseded", "each instance has one cell");
            Told::Superseded(Some(Who::of_body(&body())))
        }
        (What::Change(Change::Delete(_)), 204, Some(outcome)) => by_word(outcome),
        _ => panic!("{what:?} was answered {response:?}"),
    }
}

fn told_of_message(address: &str, outcome: &Outcome) -> Told {
    match outcome {
        Ok(done) => {
            assert_eq!(done.key, address);
            by_word(done.outcome)
        }
        Err(problem) if problem.code() == "outcome_unknown" => Told::Unknown,
        Err(problem) => {
            assert!(problem.is_fault(), "a message that is well made fails by the table's fault alone: {problem:?}");
            Told::NotApplied
        }
    }
}

fn by_word(outcome: &str) -> Told {
    match outcome {
        "deleted" => Told::Deleted,
        "already_gone" => Told::AlreadyGone,
        "superseded" => Told::Superseded(None),
        "folded" => Told::Folded,
        other => panic!("no outcome of a delete is called {other}"),
    }
}
