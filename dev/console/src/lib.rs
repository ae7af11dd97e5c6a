//! The console of `cargo dev`: a page that plays races for real.
//!
//! [`Console::router`] serves it. [`stories`] plays. [`guard()`] keeps other sites away. The page itself is in the folder
//! `page`, without a framework, and compiled in.
//!
//! The page's own routes touch no table of the functions. A story, which costs processor time, begins only with a POST that
//! carries the token of the page.

mod guard;
mod page;
pub mod stories;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream::unfold;
use guard::problem;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::io;
use std::iter::Peekable;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::vec::IntoIter;
use stories::{Ending, STORIES, Told};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::Receiver;

pub use guard::{TOKEN, guard};

/// How many stories play at once. Each has a thread of its own.
const STAGES: usize = 4;
/// The most bytes of a request.
const LONGEST_BODY: usize = 4096;
/// How many stories wait for a stage. More are refused.
const QUEUE: usize = 60;
/// The most moments in one event.
const BATCH: usize = 256;

/// The facts about the serving program, for display on the page.
#[derive(Clone, Debug)]
pub struct About {
    /// The address of the functions.
    pub functions_url: String,
    /// The kind of the functions' `DynamoDB`, such as "DynamoDB in memory".
    pub dynamodb: String,
    /// Its address.
    pub endpoint: String,
}

/// The console of one program.
#[derive(Debug)]
pub struct Console {
    about: About,
    token: String,
    stages: Arc<Semaphore>,
    queue: Arc<Semaphore>,
    stopped: Arc<AtomicUsize>,
}

impl Console {
    /// A console with a token of its own.
    ///
    /// # Errors
    /// The operating system has no random numbers for the token of the page.
    pub fn new(about: About) -> io::Result<Arc<Self>> {
        let token = guard::new_token().map_err(io::Error::other)?;
        let (stages, queue) = (Arc::new(Semaphore::new(STAGES)), Arc::new(Semaphore::new(QUEUE)));
        Ok(Arc::new(Console { about, token, stages, queue, stopped: Arc::default() }))
    }

    /// The routes of the console: `/` and `/console/…`. Put [`guard()`] before them.
    pub fn router(self: &Arc<Self>) -> Router {
        Router::new()
            .route("/", get(async |State(console): State<Arc<Console>>| page::index(&console.token)))
            .route("/console/{file}", get(async |Path(file): Path<String>| page::file(&file)))
            .route("/console/about", get(about))
            .route("/console/stories", get(list))
            .route("/console/stories/{name}", post(play))
            .layer(DefaultBodyLimit::max(LONGEST_BODY))
            .with_state(self.clone())
    }

    /// How many stories play now.
    fn playing(&self) -> usize {
        STAGES - self.stages.available_permits()
    }
}

fn answer(body: &Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

async fn about(State(console): State<Arc<Console>>) -> Response {
    let About { functions_url, dynamodb, endpoint } = &console.about;
    answer(&json!({
        "functionsUrl": functions_url,
        "dynamodb": dynamodb,
        "endpoint": endpoint,
        "playing": console.playing(),
        "stopped": console.stopped.load(SeqCst),
    }))
}

async fn list() -> Response {
    answer(&json!(STORIES.iter().map(|story| story.to_json()).collect::<Vec<_>>()))
}

/// Plays a story, and tells it as it plays.
async fn play(
    State(console): State<Arc<Console>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if !guard::has_token(&headers, &console.token) {
        let field = format!("header:{TOKEN}");
        return problem(StatusCode::FORBIDDEN, "token_required", &field, "play stories from the page itself");
    }
    let Some(story) = stories::find(&name) else {
        let names: Vec<_> = STORIES.iter().map(|story| story.name).collect();
        let detail = format!("there are {}", names.join(", "));
        return problem(StatusCode::NOT_FOUND, "no_such_story", "path:name", &detail);
    };
    let settings = match story.parse(&body) {
        Ok(settings) => settings,
        Err(invalid) => return problem(StatusCode::BAD_REQUEST, "invalid_value", &invalid.field, &invalid.detail),
    };
    let busy = || problem(StatusCode::SERVICE_UNAVAILABLE, "busy", "", "too many stories wait: try again soon");
    let Ok(place) = console.queue.clone().try_acquire_owned() else { return busy() };
    let Ok(stage) = console.stages.clone().acquire_owned().await else { return busy() };
    drop(place);
    let stopped = console.stopped.clone();
    let ended = move |how| {
        if how == Ending::Stopped {
            stopped.fetch_add(1, SeqCst);
        }
        drop(stage);
    };
    match stories::play(story, settings, ended) {
        Ok(told) => tell(told),
        Err(_) => busy(),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the stream of a response has results")]
fn event(name: &str, data: &Value) -> Result<Event, Infallible> {
    Ok(Event::default().event(name).data(data.to_string()))
}

/// The events of a play, as fast as they come. When the response is dropped, the play is stopped.
fn tell(told: Receiver<Told>) -> Response {
    let state = (told, Vec::new().into_iter().peekable(), false);
    let events = unfold(
        state,
        async |(mut told, mut parts, has_ended): (Receiver<Told>, Peekable<IntoIter<Told>>, bool)| {
            if parts.peek().is_none() {
                let mut more = Vec::new();
                told.recv_many(&mut more, BATCH).await;
                parts = more.into_iter().peekable();
            }
            let mut moments = Vec::new();
            while let Some(Told::Moment(moment)) = parts.next_if(|part| matches!(part, Told::Moment(_))) {
                moments.push(moment);
            }
            if !moments.is_empty() {
                return Some((event("moments", &json!(moments)), (told, parts, has_ended)));
            }
            let (next, has_ended) = match parts.next() {
                Some(Told::Begin(begin)) => (event("begin", &begin), false),
                Some(Told::End(end)) => (event("end", &end), true),
                Some(Told::Moment(moment)) => (event("moments", &json!([moment])), false),
                None if has_ended => return None,
                None => {
                    let detail = "The story broke off: it took too long, or the terminal of `cargo dev` says why. Its seed \
                              plays it again.";
                    (event("failed", &json!({ "detail": detail })), true)
                }
            };
            Some((next, (told, parts, has_ended)))
        },
    );
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}
