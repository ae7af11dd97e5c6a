//! The console of `cargo dev`: a page that plays races for real, and shows the tables and the requests.
//!
//! [`Console::router`] serves it. [`stories`] plays. [`Tables`] looks at the tables, and [`Requests`] takes the lines that
//! the functions write. [`guard()`] keeps other sites away. The page itself is in the folder `page`, without a framework,
//! and compiled in.
//!
//! Nothing changes without a click: the page's own routes change no table at all, and a story, which costs processor
//! time, begins only with a POST that carries the token of the page.

mod guard;
mod page;
mod problem;
mod requests;
mod rows;
pub mod stories;
mod streams;
mod tables;
mod watched;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use problem::problem;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use stories::{Ending, STORIES};
use tokio::sync::Semaphore;

pub use guard::{TOKEN, guard};
pub use requests::Requests;
pub use tables::Tables;
pub use watched::WatchedTable;

/// How many stories play at once. Each has a thread of its own.
const STAGES: usize = 4;
/// The most bytes of a request.
const LONGEST_BODY: usize = 4096;
/// How many stories wait for a stage. More are refused.
const QUEUE: usize = 60;

/// What the page says about the program that serves it.
#[derive(Clone, Debug)]
pub struct About {
    /// The address of the functions.
    pub functions_url: String,
    /// What the functions' `DynamoDB` is, such as "DynamoDB in memory".
    pub dynamodb: String,
    /// Its address.
    pub endpoint: String,
}

/// The console of one program.
#[derive(Debug)]
pub struct Console {
    about: About,
    tables: Arc<Tables>,
    requests: Arc<Requests>,
    token: String,
    stages: Arc<Semaphore>,
    queue: Arc<Semaphore>,
    stopped: Arc<AtomicUsize>,
}

impl Console {
    /// A console for these tables and requests.
    ///
    /// # Errors
    /// The operating system has no random numbers for the token of the page.
    pub fn new(about: About, tables: Arc<Tables>, requests: Arc<Requests>) -> io::Result<Arc<Self>> {
        let token = guard::new_token().map_err(io::Error::other)?;
        let (stages, queue) = (Arc::new(Semaphore::new(STAGES)), Arc::new(Semaphore::new(QUEUE)));
        Ok(Arc::new(Console { about, tables, requests, token, stages, queue, stopped: Arc::default() }))
    }

    /// The routes of the console: `/` and `/console/…`. Put [`guard()`] before them, and run [`Tables::look`] beside them.
    pub fn router(self: &Arc<Self>) -> Router {
        Router::new()
            .route("/", get(async |State(console): State<Arc<Console>>| page::index(&console.token)))
            .route("/console/{file}", get(async |Path(file): Path<String>| page::file(&file)))
            .route("/console/about", get(about))
            .route("/console/stories", get(list))
            .route("/console/stories/{name}", post(play))
            .route("/console/tables", get(async |State(console): State<Arc<Console>>| streams::of_tables(console)))
            .route("/console/requests", get(async |State(console): State<Arc<Console>>| streams::of_requests(&console)))
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
        Ok(told) => streams::of_play(told),
        Err(_) => busy(),
    }
}
