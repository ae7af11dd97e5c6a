//! The scene of one side: its engine, its faults and the clients on it.

use super::ledger::{Held, Ledger, Totals, Twice};
use super::told::{Teller, client_span};
use aws_sdk_dynamodb::Client;
use fencepost::http::{Body, Problem, Request, Response};
use fencepost::{Call, Clock, Deadline, Rng, Store};
use fencepost_test::{Dynamo, Engine, Rates, Wire};
use serde_json::{Value, json};
use std::time::Duration;
use tracing::Instrument;

/// How long a function may take for one request.
const ALLOWED: Duration = Duration::from_secs(10);

/// The engine of one side, with its counts.
pub struct Scene {
    db: Dynamo,
    ledger: Ledger,
}

/// How a side ends.
pub struct Verdict {
    /// In a sentence or two.
    pub text: String,
    /// Whether it ended as it should.
    pub is_good: bool,
}

impl Scene {
    /// Empty tables, `(name, partition key)`, in which all chance comes from this seed.
    pub fn new(teller: Teller, seed: u64, tables: &[(&str, &str)], held: Held, twice: Twice) -> Self {
        let ledger = Ledger::new(teller, held, twice);
        let db = Dynamo::with_seam(seed, Rates::default(), ledger.clone());
        for (table, key) in tables {
            db.create_table(table, key);
        }
        Scene { db, ledger }
    }

    pub fn db(&self) -> &Dynamo {
        &self.db
    }

    pub fn engine(&self) -> &Engine {
        self.db.engine()
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub fn count(&self, name: &'static str, by: i64) {
        self.ledger.count(name, by);
    }

    /// The counters as they are now.
    pub fn totals(&self) -> Totals {
        self.ledger.totals(self.engine())
    }

    /// Lets a function make the rows needed before the story begins. It goes straight to the engine.
    ///
    /// # Panics
    /// If the function refuses.
    pub async fn prepare<A>(
        &self,
        app: impl Fn(&Store) -> A,
        handle: impl AsyncFn(&A, &Request, &Call) -> Result<Response, Problem>,
        request: &Request,
    ) {
        let app = app(&self.store_over(&self.engine().client()));
        let call = Call::new(Deadline::within(ALLOWED));
        handle(&app, request, &call).await.expect("nothing is in the way before the story begins");
    }

    fn store_over(&self, client: &Client) -> Store {
        let (clock, chance) = (self.db.clone(), self.db.clone());
        Store::new(client).with_clock(Clock::new(move || clock.now())).with_rng(Rng::new(move || chance.random()))
    }

    /// The client with this number, on a connection of its own.
    pub fn client(&self, number: usize) -> Actor<'_> {
        let wire = self.db.wire();
        wire.works_on(number as u64);
        Actor { scene: self, number, wire }
    }
}

/// One client of a side: a caller of a function, or a naive program.
pub struct Actor<'a> {
    scene: &'a Scene,
    number: usize,
    wire: Wire,
}

/// The answer to a client.
pub struct Answer {
    pub status: u16,
    /// In one word, as in a function's log line about a request.
    pub outcome: &'static str,
    /// The body, or null.
    pub body: Value,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        self.status < 300
    }

    /// Whether it says that nothing was applied and a repeat is safe.
    pub fn is_unavailable(&self) -> bool {
        self.status == 503
    }

    pub fn is_unknown(&self) -> bool {
        self.status == 504
    }

    /// How the page shows it.
    fn word(&self) -> &'static str {
        match self.status {
            ..300 => "ok",
            504 => "unknown",
            404 | 409 | 412 => "refused",
            _ => "failed",
        }
    }
}

impl Actor<'_> {
    /// The store of the function that answers this client: each has an instance of its own, as on Lambda.
    pub fn store(&self) -> Store {
        self.scene.store_over(&self.wire.client())
    }

    /// The bare SDK with its own retries, as a naive program uses it.
    pub fn sdk(&self) -> Client {
        self.wire.retrying_client()
    }

    pub fn scene(&self) -> &Scene {
        self.scene
    }

    pub fn note(&self, text: &str) {
        self.scene.ledger.teller().moment(Some(self.number), "note", json!({ "text": text }));
    }

    /// Asks a function: its own handler answers.
    pub async fn ask<A>(
        &self,
        app: &A,
        handle: impl AsyncFn(&A, &Request, &Call) -> Result<Response, Problem>,
        request: &Request,
    ) -> Answer {
        let number = self.begin(&format!("{} {}", request.method, request.path));
        let call = Call::new(Deadline::within(ALLOWED));
        let answered = handle(app, request, &call).instrument(client_span(self.number)).await;
        let response = answered.unwrap_or_else(Problem::into_response);
        let body = response.body().and_then(|body| serde_json::from_str(body).ok()).unwrap_or(Value::Null);
        let answer = Answer { status: response.status(), outcome: response.outcome(), body };
        self.end(number, answer.word(), &format!("{} {}", answer.status, answer.outcome));
        answer
    }

    /// Hands a message to a function behind a queue. Gives the outcome in one word.
    pub async fn deliver<A>(
        &self,
        app: &A,
        handle: impl AsyncFn(&A, &[&str], &Call) -> Vec<fencepost::lambda::Outcome>,
        message: &str,
    ) -> Result<&'static str, Problem> {
        let number = self.begin("a message of the queue");
        let call = Call::new(Deadline::within(ALLOWED));
        let mut outcomes = handle(app, &[message], &call).instrument(client_span(self.number)).await;
        let outcome = outcomes.pop().unwrap_or_else(|| Err(Problem::internal("no outcome"))).map(|done| done.outcome);
        match &outcome {
            Ok(word) => self.end(number, "ok", word),
            Err(problem) => self.end(number, "failed", problem.code()),
        }
        outcome
    }

    /// A call begins. Gives its number.
    pub fn begin(&self, text: &str) -> u64 {
        let ledger = &self.scene.ledger;
        let number = ledger.begin_call(self.number);
        ledger.teller().moment(Some(self.number), "asked", json!({ "call": number, "text": text }));
        number
    }

    /// A call ends.
    pub fn end(&self, number: u64, outcome: &str, text: &str) {
        let told = json!({ "call": number, "outcome": outcome, "text": text });
        self.scene.ledger.teller().moment(Some(self.number), "answered", told);
    }
}

/// A request to the route, such as `PUT /devices/{deviceId}`, about this id.
pub fn request(route: &str, id: &str, body: &Value) -> Request {
    let (method, template) = route.split_once(' ').unwrap_or((route, "/"));
    let mut request = Request {
        method: method.to_owned(),
        route: route.to_owned(),
        path: template.to_owned(),
        caller: "console".to_owned(),
        ..Request::default()
    };
    if let Some((before, rest)) = template.split_once('{')
        && let Some((parameter, after)) = rest.split_once('}')
    {
        request.path = format!("{before}{id}{after}");
        request.path_parameters.insert(parameter.to_owned(), id.to_owned());
    }
    if !body.is_null() {
        request.body = Body { text: body.to_string(), is_base64: false };
    }
    request
}
