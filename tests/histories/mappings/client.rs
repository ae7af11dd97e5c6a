//! Those who ask: backends by HTTP, onlookers, and what reads the queue, each with a wire of its own.

use super::plan::{Ask, Change, Who};
use super::scene::{EPOCH, Scene, Sent, Told, What};
use crate::harness::faults::{Freezing, Network, Wire, store_on};
use crate::harness::functions::MAPPINGS;
use fencepost::http::{Body, Problem, Request, Response};
use fencepost::lambda::Outcome;
use fencepost::{Call, Deadline};
use functions::host_mapping::{delete_mapping, get_mapping, register_mapping};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often a request is repeated at most. Every fault passes.
const REPEATS: u32 = 300;

pub struct Client {
    scene: Arc<Scene>,
    network: Arc<Network>,
    number: u64,
    wire: Wire,
    mappings: functions::host_mapping::App,
    deletes: functions::delete_mapping::App,
}

impl Client {
    pub fn new(scene: &Arc<Scene>, network: &Arc<Network>, number: usize) -> Self {
        let clock = scene.clocks.draw();
        let wire = clock.wire(network);
        let store = store_on(network, &wire.client(), move || clock.now(EPOCH));
        let mappings = functions::host_mapping::App::new(store.lww_table(MAPPINGS));
        let deletes = functions::delete_mapping::App::new(store.lww_table(MAPPINGS));
        let number = u64::try_from(number).expect("few");
        Client { scene: scene.clone(), network: network.clone(), number, wire, mappings, deletes }
    }

    /// Asks for these in turn, each until it is answered definitely or is in the queue, and looks around between them.
    pub async fn ask_for(self, asks: Vec<usize>) {
        for ask in asks {
            self.pause().await;
            if self.below(3) == 0 {
                self.look_up(self.below(self.scene.plan.addresses.len())).await;
            }
            let Ask { address, change, queued } = &self.scene.plan.asks[ask];
            if *queued {
                self.scene.queue.lock().expect("no panic").push(ask);
                continue;
            }
            let mut repeats = 0;
            while !self.send(*address, What::Change(change.clone())).await.is_definite() {
                repeats += 1;
                assert!(repeats < REPEATS, "never answered definitely: {change:?}");
                sleep(Duration::from_millis(self.network.below(3000))).await;
            }
        }
        self.scene.asking.fetch_sub(1, Ordering::Relaxed);
    }

    /// Reads the queue until it is empty and stays so. What failed comes again, and sometimes what did not.
    pub async fn empty_queue(self) {
        let mut read = 0;
        loop {
            sleep(Duration::from_millis(50 + self.network.below(20_000))).await;
            let batch = self.take_batch();
            if batch.is_empty() && self.scene.asking.load(Ordering::Relaxed) == 0 {
                return;
            }
            read += 1;
            assert!(read < REPEATS * 10, "the queue never gets empty");
            let failed = self.work_on(&batch).await;
            let again = batch.iter().zip(failed).filter(|(_, failed)| *failed || self.below(12) == 0);
            let again: Vec<_> = again.map(|(ask, _)| *ask).collect();
            self.scene.queue.lock().expect("no panic").extend(again);
        }
    }

    /// Looks at one address after the other.
    pub async fn look_around(self, times: u64) {
        for _ in 0..times {
            sleep(Duration::from_millis(self.network.below(60_000))).await;
            self.look_up(self.below(self.scene.plan.addresses.len())).await;
        }
    }

    pub async fn look_up(&self, address: usize) -> Told {
        self.send(address, What::LookUp).await
    }

    /// Mostly short; sometimes what was held meanwhile arrives.
    async fn pause(&self) {
        let millis = if self.below(8) == 0 { 200_000 } else { 80 };
        sleep(Duration::from_millis(self.network.below(millis))).await;
    }

    fn below(&self, bound: usize) -> usize {
        usize::try_from(self.network.below(u64::try_from(bound).expect("small"))).expect("small")
    }

    /// Some of the queue, in no order: at most 10.
    fn take_batch(&self) -> Vec<usize> {
        let mut queue = self.scene.queue.lock().expect("no panic");
        let most = queue.len().min(1 + self.below(10));
        let mut take = |_| {
            let place = self.below(queue.len());
            queue.swap_remove(place)
        };
        (0..most).map(&mut take).collect()
    }

    /// How an address is written this time.
    fn written(&self, address: usize) -> &str {
        let written = &self.scene.plan.addresses[address].written;
        &written[self.below(written.len())]
    }

    fn invocation(&self) -> (u64, Instant, Call) {
        let number = self.scene.numbers.fetch_add(1, Ordering::Relaxed);
        self.wire.works_on(number);
        let call = Call::new(Deadline::within(Duration::from_millis(200 + self.network.below(1800))));
        (number, Instant::now(), call)
    }

    /// One request, as Lambda makes an invocation of it.
    async fn send(&self, address: usize, what: What) -> Told {
        let request = &request(self.written(address), &what);
        let (number, began, call) = self.invocation();
        let handling = async {
            match &what {
                What::LookUp => get_mapping(&self.mappings, request, &call).await,
                What::Change(Change::Register(_)) => register_mapping(&self.mappings, request, &call).await,
                What::Change(Change::Delete(_)) => delete_mapping(&self.mappings, request, &call).await,
            }
        };
        let handled = Freezing::new(&self.network, handling).await;
        let kept = &self.scene.plan.addresses[address].kept;
        let told = told(kept, &what, &handled.unwrap_or_else(Problem::into_response));
        let ended = Instant::now();
        let client = Some(self.number);
        let sent = Sent { number, client, address, what, began, ended, told: told.clone() };
        self.scene.sent.lock().expect("no panic").push(sent);
        told
    }

    /// One batch; says of each of its messages whether it failed.
    async fn work_on(&self, batch: &[usize]) -> Vec<bool> {
        let asks: Vec<_> = batch.iter().map(|ask| &self.scene.plan.asks[*ask]).collect();
        let message = |ask: &&Ask| ask.change.who().message(self.written(ask.address)).to_string();
        let bodies: Vec<_> = asks.iter().map(message).collect();
        let bodies: Vec<_> = bodies.iter().map(String::as_str).collect();
        let (number, began, call) = self.invocation();
        let outcomes =
            Freezing::new(&self.network, functions::delete_mapping::handle(&self.deletes, &bodies, &call)).await;
        assert_eq!(outcomes.len(), batch.len(), "one outcome for each message");
        let ended = Instant::now();
        let failed = outcomes.iter().map(Result::is_err).collect();
        for (ask, outcome) in asks.into_iter().zip(&outcomes) {
            let told = told_of_message(&self.scene.plan.addresses[ask.address].kept, outcome);
            let what = What::Change(ask.change.clone());
            let sent = Sent { number, client: None, address: ask.address, what, began, ended, told };
            self.scene.sent.lock().expect("no panic").push(sent);
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

/// What an answer says, of which everything but the instance is known beforehand.
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
