//! Server-sent events: what a play tells, what changes in the tables, and the requests.

use crate::Console;
use crate::rows::Row;
use crate::stories::Told;
use crate::tables::{Count, Seen};
use crate::watched::WatchedTable;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use fencepost::Timestamp;
use futures_util::stream::{Stream, unfold};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::Receiver;

/// The most moments in one event.
const BATCH: usize = 256;

fn respond(events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

#[expect(clippy::unnecessary_wraps, reason = "the stream of a response has results")]
fn event(name: &str, data: &Value) -> Result<Event, Infallible> {
    Ok(Event::default().event(name).data(data.to_string()))
}

/// What a play tells, as fast as it comes. When the response is dropped, the play is stopped.
pub fn of_play(told: Receiver<Told>) -> Response {
    let state = (told, Vec::new().into_iter().peekable(), false);
    respond(unfold(
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
    ))
}

/// The requests that are kept, and then each new one.
pub fn of_requests(console: &Console) -> Response {
    let (kept, new) = console.requests.watch();
    let first = json!(kept.iter().map(AsRef::as_ref).collect::<Vec<_>>());
    respond(unfold((Some(first), new), async |(first, mut new)| {
        if let Some(first) = first {
            return Some((event("requests", &first), (None, new)));
        }
        loop {
            match new.recv().await {
                Ok(request) => return Some((event("requests", &json!([request.as_ref()])), (None, new))),
                Err(RecvError::Lagged(_)) => {} // what came too fast is left out
                Err(RecvError::Closed) => return None,
            }
        }
    }))
}

/// The rows of the tables, and then what changes.
pub fn of_tables(console: Arc<Console>) -> Response {
    let seen = console.tables.watch();
    let state = (console, seen, None::<Arc<Seen>>);
    respond(unfold(state, async |(console, mut seen, told)| {
        if told.is_some() || seen.borrow().tables.is_empty() {
            seen.changed().await.ok()?;
        }
        let now = seen.borrow_and_update().clone();
        let message = changes(&console, told.as_deref(), &now);
        Some((event("rows", &message), (console, seen, Some(now))))
    }))
}

/// What is different from what was told before.
fn changes(console: &Console, told: Option<&Seen>, seen: &Seen) -> Value {
    let tables = console.tables.tables();
    let now = Timestamp::from(console.tables.clock().now());
    let is_new =
        |row: &&Arc<Row>| told.is_none_or(|told| told.rows.get(&row.id).is_none_or(|old| !Arc::ptr_eq(old, row)));
    let changed = seen.rows.values().filter(is_new).map(|row| row.to_json(tables, &console.requests, now));
    let gone = told.into_iter().flat_map(|told| told.rows.keys()).filter(|id| !seen.rows.contains_key(*id));
    let table = |(count, table): (&Count, &WatchedTable)| match count {
        Count::Read(rows, more) => json!({ "name": table.name, "rows": rows, "shown": rows, "more": more }),
        Count::Failed(why) => json!({ "name": table.name, "rows": 0, "shown": 0, "more": false, "error": why }),
    };
    json!({
        "all": told.is_none(),
        "tables": seen.tables.iter().zip(tables).map(table).collect::<Vec<_>>(),
        "changed": changed.collect::<Vec<_>>(),
        "gone": gone.collect::<Vec<_>>(),
        "now": now.epoch_millis(),
    })
}
