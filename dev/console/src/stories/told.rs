//! The events of a play, moment by moment.

use serde_json::{Map, Value, json};
use std::thread::park_timeout;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;

/// A part of the events of a play.
#[derive(Clone, PartialEq, Debug)]
pub enum Told {
    /// Who plays, and under which settings. The first part.
    Begin(Value),
    /// Something has happened.
    Moment(Value),
    /// How it ended. The last part.
    End(Value),
}

/// The pause for a listener that is behind.
const PAUSE: Duration = Duration::from_millis(5);

/// Tells a part. While the listener is behind, the whole play stands still. Its time is virtual. So the play does not
/// notice. Without a listener, the part is dropped.
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
    /// A teller with a clock from `begun` on.
    pub fn new(to: &Sender<Told>, begun: Instant, side: usize) -> Self {
        Teller { to: to.clone(), begun, side }
    }

    /// How many milliseconds of virtual time have passed.
    pub fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64() * 1000.0
    }

    /// Tells an event of a client, or of all clients if `client` is none.
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
