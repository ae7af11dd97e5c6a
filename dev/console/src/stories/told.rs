//! What a play tells, moment by moment.

use serde_json::{Map, Value, json};
use std::thread::park_timeout;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;

/// A part of what a play tells.
#[derive(Clone, PartialEq, Debug)]
pub enum Told {
    /// Who plays, and under which settings. The first part.
    Begin(Value),
    /// Something has happened.
    Moment(Value),
    /// How it ended. The last part.
    End(Value),
}

/// The pause before a listener that is behind is told more.
const PAUSE: Duration = Duration::from_millis(5);

/// Tells a part. If the listener is behind, the whole play stands still until it is not: its time is virtual, so nothing
/// in it notices. If nobody listens any more, it tells nobody.
pub fn tell(to: &Sender<Told>, mut part: Told) {
    while let Err(TrySendError::Full(back)) = to.try_send(part) {
        part = back;
        park_timeout(PAUSE);
    }
}

/// Tells the moments of one side of a play.
#[derive(Clone)]
pub struct Teller {
    to: Sender<Told>,
    begun: Instant,
    side: usize,
}

impl Teller {
    /// A teller whose clock begins at `begun`.
    pub fn new(to: &Sender<Told>, begun: Instant, side: usize) -> Self {
        Teller { to: to.clone(), begun, side }
    }

    /// How many milliseconds of virtual time have passed.
    pub fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64() * 1000.0
    }

    /// Tells what has happened to a client, or to all if it is none.
    pub fn moment(&self, client: Option<usize>, kind: &str, members: Value) {
        let mut moment = Map::new();
        moment.insert("at".to_owned(), json!(self.now()));
        moment.insert("side".to_owned(), json!(self.side));
        moment.insert("client".to_owned(), json!(client));
        moment.insert("kind".to_owned(), json!(kind));
        if let Value::Object(members) = members {
            moment.extend(members);
        }
        tell(&self.to, Told::Moment(Value::Object(moment)));
    }
}
