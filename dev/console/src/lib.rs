//! The console of `cargo dev`: a page that plays races for real.
//!
//! [`Console::router`] serves it. [`stories`] plays. [`guard()`] keeps other sites away. The page itself is in the folder
//! `page`, without a framework, and compiled in.
//!
//! The page's own routes touch no table of the functions. A story, which costs processor time, begins only with a POST that
//! carries the token of the page.

mod guard;
pub mod stories;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
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

/// The page may load from its own address only. No other page may frame it.
const POLICY: &str = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const INDEX: &str = include_str!("../page/index.html");

/// Stands in `index.html` where the token belongs.
const TOKEN_PLACE: &str = "{{token}}";

macro_rules! files {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("../page/", $name)))),*] };
}

/// Every other file of the page.
const FILES: &[(&str, &str)] =
    files!("console.css", "dom.js", "main.js", "mark.svg", "run.js", "side.js", "timeline.js",);

/// The console of one program.
#[derive(Debug)]
pub struct Console {
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
    pub fn new() -> io::Result<Arc<Self>> {
        let token = guard::new_token().map_err(io::Error::other)?;
        let (stages, queue) = (Arc::new(Semaphore::new(STAGES)), Arc::new(Semaphore::new(QUEUE)));
        Ok(Arc::new(Console { token, stages, queue, stopped: Arc::default() }))
    }

    /// The routes of the console: `/` and `/console/…`. Put [`guard()`] before them.
    pub fn router(self: &Arc<Self>) -> Router {
        Router::new()
            .route("/", get(async |State(console): State<Arc<Console>>| index(&console.token)))
            .route("/console/{file}", get(async |Path(name): Path<String>| file(&name)))
            .route("/console/stories", get(list))
            .route("/console/stories/{name}", post(play))
            .layer(DefaultBodyLimit::max(LONGEST_BODY))
            .with_state(self.clone())
    }

    /// How many stories play now, and how many were stopped so far.
    #[must_use]
    pub fn plays(&self) -> (usize, usize) {
        (STAGES - self.stages.available_permits(), self.stopped.load(SeqCst))
    }
}

async fn list() -> Response {
    let stories: Value = STORIES.iter().map(|story| story.to_json()).collect();
    ([(CONTENT_TYPE, "application/json")], stories.to_string()).into_response()
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

/// The page with its token.
fn index(token: &str) -> Response {
    respond("text/html; charset=utf-8", INDEX.replacen(TOKEN_PLACE, token, 1))
}

/// A file that the page loads.
fn file(name: &str) -> Response {
    let Some((_, text)) = FILES.iter().find(|(own, _)| *own == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let kind = match name.rsplit_once('.') {
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    };
    respond(kind, (*text).to_owned())
}

fn respond(kind: &'static str, text: String) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"), // the next build has other files
    ];
    (headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
        let files = std::fs::read_dir(folder).expect("the folder").map(|file| file.expect("a file").file_name());
        let files = files.map(|name| name.into_string().expect("a name in UTF-8")).filter(|name| name != "index.html");
        for name in files {
            assert_eq!(file(&name).status(), StatusCode::OK, "{name}: add it to FILES");
        }
        assert_eq!(INDEX.matches(TOKEN_PLACE).count(), 1);
    }
}
