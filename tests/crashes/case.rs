//! One case of the matrix: a route, a way to ask, and the state of its item.

use crate::harness::answers::Answer;
use crate::harness::events::Event;
use crate::harness::functions::Functions;
use crate::harness::world::World;
use std::fmt;

/// The item before the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    Absent,
    Present,
    /// The item is there. The dying process has read it before.
    Seen,
    Tombstone,
    /// The item is there, and others who died hold nearly all of its stock.
    Held,
    /// Exactly the requested state.
    Same,
    Older,
    Newer,
    Expired,
    Released,
}

/// How the route is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Plain,
    /// With an `Idempotency-Key`.
    Keyed,
    /// With the tag of the item in `If-Match`.
    IfMatch,
    /// With `If-Match: *`.
    IfAny,
    /// With `If-None-Match: *`.
    IfNone,
    /// With `"onLimit": "clamp"`.
    Clamped,
    /// Under a lease.
    Leased,
    /// Under a lost lease.
    Fenced,
}

/// The promise about a repeated event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// All invocations together have one effect.
    Once,
    /// Each invocation is a change of its own, and has at most one effect.
    Each,
    /// There is nothing to change.
    Nothing,
}

#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// As in `ROUTES`, or the queue.
    pub route: &'static str,
    pub given: Given,
    pub how: How,
    pub promise: Promise,
    /// The answer to the first invocation, then the answer to all others.
    pub answers: [&'static str; 2],
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:38} {:9} {:8}", self.route, format!("{:?}", self.given), format!("{:?}", self.how))
    }
}

pub const fn case(route: &'static str, given: Given, how: How, promise: Promise, answers: [&'static str; 2]) -> Case {
    Case { route, given, how, promise, answers }
}

/// The answer to an invocation, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// `201`, `201 replayed`, `409 device_exists`, `204 deleted`.
    pub text: String,
    pub is_success: bool,
    pub body: Option<String>,
}

/// Functions that the matrix kills.
pub trait Killed: Functions {
    const CASES: &'static [Case];

    /// By how many milliseconds the clock goes on with each invocation. If it does, the tables of these functions are
    /// compared without times.
    const TICK: u64 = 0;

    /// Prepares the item, and gives the event.
    fn prepare(world: &World<Self>, case: &Case) -> impl Future<Output = Event>;

    /// An earlier event of the process, for a known item.
    fn seeing() -> Option<Event> {
        None
    }

    /// The name of a route's function, as in template.yaml.
    fn name_of(route: &str) -> &'static str;

    /// Does what may be left to others, so that the tables can be compared.
    fn settle(_: &World<Self>) -> impl Future<Output = ()> {
        async {}
    }

    /// Invokes the function.
    fn invoke(world: &World<Self>, event: &Event) -> impl Future<Output = Said> {
        async { answered(&world.send(event).await) }
    }
}

/// An answer in short.
pub fn answered(answer: &Answer) -> Said {
    let outcome = answer.header("fencepost-outcome").map(ToOwned::to_owned);
    let code = if answer.status >= 400 { answer.code() } else { outcome.unwrap_or_default() };
    let replayed = if answer.is_replay() { "replayed" } else { "" };
    let text = format!("{} {code} {replayed}", answer.status);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Said { text, is_success: answer.status < 300, body: answer.body.clone() }
}
