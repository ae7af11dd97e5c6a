//! The newest instance wins: registers and deletes of one key in any order, with ties, deletes without a name, and
//! tombstones that TTL removes.
//!
//! The unit of time is ten minutes, as in `one_item`.

use crate::protocol::{Answer, Limits, Next, Protocol, Told};
use crate::world::{Checked, World};
use fencepost::lww::{OrderKey, Registration};
use fencepost::testing::{is_soon, judge_registration};
use stateright::Property;
use std::time::{Duration, UNIX_EPOCH};

/// An instance: its number and its name. No name stands for all instances with the number.
pub type Instance = (u8, Option<char>);

/// The intent of one call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Registers an instance with a value.
    Register(Instance, u8),
    /// Deletes an instance and all older ones.
    Delete(Instance),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Newest {
    pub calls: Vec<Kind>,
    pub hours: u8,
    pub limits: Limits,
    /// The rule that is missing.
    pub without: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Stored {
    pub instance: Instance,
    /// The value. `None` on a tombstone.
    pub live: Option<u8>,
    /// On a tombstone: when TTL may remove it.
    pub purge_at: Option<u32>,
}

/// The row with the greatest arrival.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Shared {
    row: Option<Stored>,
    hours: u8,
    /// The greatest that arrived since there was no row: the instance, and whether it was deleted.
    greatest: Option<(Instance, bool)>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Call {
    kind: Kind,
    said: Option<Said>,
}

/// The details of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Said {
    New,
    Same,
    Differs,
    Superseded,
    Deleted,
    AlreadyGone,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Request {
    pub kind: Kind,
    /// When TTL may remove the tombstone of a delete.
    pub purge_at: u32,
}

/// Events beside the calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    Hour,
    Ttl,
}

const HOUR: u32 = 6;

pub const GREATEST: &str = "what is seen is the greatest of all that arrived";
pub const SUPERSEDED: &str = "told superseded: not registered afterwards";
pub const TRUE: &str = "told new or deleted: applied";

impl Protocol for Newest {
    type Shared = Shared;
    type Call = Call;
    type Write = Request;
    type Event = Event;
    type Said = ();
    type Shown = Option<Stored>;

    fn limits(&self) -> Limits {
        self.limits
    }

    fn start(&self) -> Vec<(Shared, Vec<Call>)> {
        let calls = self.calls.iter().map(|kind| Call { kind: *kind, said: None }).collect();
        vec![(Shared { row: None, hours: self.hours, greatest: None }, calls)]
    }

    fn go_on(&self, _: &mut Shared, call: &mut Call, now: u32) -> Option<Next<Self>> {
        Some(Next::Send(Request { kind: call.kind, purge_at: now + HOUR }))
    }

    fn meets(&self, shared: &mut Shared, request: &Request, _: u32) -> (Answer<Option<Stored>>, Option<()>) {
        let arrived = match request.kind {
            Kind::Register(instance, _) => (instance, false),
            Kind::Delete(instance) => (instance, true),
        };
        let is_greater = |greatest: &(Instance, bool)| {
            order_key(greatest.0).cmp(&order_key(arrived.0)).then(greatest.1.cmp(&arrived.1)).is_lt()
        };
        if shared.greatest.as_ref().is_none_or(is_greater) {
            shared.greatest = Some(arrived);
        }
        let old = shared.row;
        match self.apply(old.as_ref(), request) {
            None => (Answer::Refused(old), None),
            Some(next) => {
                shared.row = next;
                (Answer::Applied(old), Some(()))
            }
        }
    }

    fn answered(
        &self,
        _: &mut Shared,
        call: &mut Call,
        request: &Request,
        now: u32,
        answer: Answer<Option<Stored>>,
        is_pending: bool,
    ) -> Next<Self> {
        let (said, told) = match (request.kind, answer) {
            (Kind::Register(..), Answer::Applied(_)) => (Said::New, Told::Applied(())),
            (Kind::Delete(_), Answer::Applied(Some(Stored { live: Some(_), .. }))) => {
                (Said::Deleted, Told::Applied(()))
            }
            (Kind::Delete(_), Answer::Applied(_)) => (Said::AlreadyGone, Told::Applied(())),
            (Kind::Delete(_), Answer::Refused(_)) | (_, Answer::Refused(None)) => (Said::Superseded, Told::NotApplied),
            (Kind::Register(mine, value), Answer::Refused(Some(stored))) => {
                let purge_at = stored.purge_at.map(|units| u64::from(units) * 600);
                let is_soon = is_soon(purge_at, UNIX_EPOCH + Duration::from_mins(10) * now);
                if is_pending && is_soon && self.without != Some("newest-margin") {
                    return Next::Told(Told::Unknown);
                }
                match judge_registration(&order_key(mine), &order_key(stored.instance), stored.live, &value) {
                    Registration::New => (Said::New, Told::Applied(())),
                    Registration::Same => (Said::Same, Told::NotApplied),
                    Registration::Differs(_) => (Said::Differs, Told::NotApplied),
                    Registration::Superseded { .. } => (Said::Superseded, Told::NotApplied),
                }
            }
        };
        call.said = Some(said);
        Next::Told(told)
    }

    fn events(&self, world: &World<Self>, events: &mut Vec<Event>) {
        events.extend((world.shared.hours > 0).then_some(Event::Hour));
        let is_old = world.shared.row.and_then(|row| row.purge_at).is_some_and(|purge_at| purge_at <= world.now);
        events.extend(is_old.then_some(Event::Ttl));
    }

    fn happen(&self, shared: &mut Shared, now: &mut u32, event: &Event) {
        match event {
            Event::Hour => {
                shared.hours -= 1;
                *now += HOUR;
            }
            // The memory ends with the tombstone.
            Event::Ttl => (shared.row, shared.greatest) = (None, None),
        }
    }

    fn properties() -> Vec<Property<Checked<Self>>> {
        vec![
            Property::always(GREATEST, |_, world: &World<Self>| {
                let seen = world.shared.row.filter(|row| row.live.is_some()).map(|row| row.instance);
                seen == world.shared.greatest.filter(|(_, is_deleted)| !is_deleted).map(|(instance, _)| instance)
            }),
            Property::always(SUPERSEDED, |_, world: &World<Self>| {
                world.callers.iter().all(|caller| {
                    let is_register = matches!(caller.call.kind, Kind::Register(..));
                    let is_told = is_register && caller.call.said == Some(Said::Superseded);
                    !is_told || caller.applied == caller.applied_then || caller.is_excused
                })
            }),
            Property::always(TRUE, |_, world: &World<Self>| {
                let was_applied = |said, applied| !matches!(said, Some(Said::New | Said::Deleted)) || applied > 0;
                world.callers.iter().all(|caller| was_applied(caller.call.said, caller.applied))
            }),
            Property::sometimes("same", |_, world: &World<Self>| world.says(Said::Same)),
            Property::sometimes("differs", |_, world: &World<Self>| world.says(Said::Differs)),
            Property::sometimes("already gone", |_, world: &World<Self>| world.says(Said::AlreadyGone)),
        ]
    }

    /// A second copy of a refused register meets a key that TTL has freed.
    fn is_left_open(&self, _: &Call, request: &Request) -> bool {
        matches!(request.kind, Kind::Register(..))
    }

    fn call(&self, call: &Call) -> String {
        match call.kind {
            Kind::Register(..) => "register",
            Kind::Delete(_) => "delete",
        }
        .to_owned()
    }

    fn write(&self, request: &Request) -> String {
        match request.kind {
            Kind::Register(instance, value) => format!("register of {} with the value {value}", words(instance)),
            Kind::Delete(instance) => format!("delete of {}", words(instance)),
        }
    }

    fn event(&self, event: &Event) -> String {
        match event {
            Event::Hour => "An hour passes",
            Event::Ttl => "TTL removes the tombstone",
        }
        .to_owned()
    }

    fn rows(&self, shared: &Shared) -> String {
        match shared.row {
            None => "no row".to_owned(),
            Some(Stored { instance, live: Some(value), .. }) => format!("{} with the value {value}", words(instance)),
            Some(Stored { instance, .. }) => format!("the tombstone of {}", words(instance)),
        }
    }
}

impl World<Newest> {
    fn says(&self, said: Said) -> bool {
        self.callers.iter().any(|caller| caller.call.said == Some(said))
    }
}

impl Newest {
    /// The next row, if the condition of the request holds on this one.
    pub fn apply(&self, row: Option<&Stored>, request: &Request) -> Option<Option<Stored>> {
        let lacks = |rule| self.without == Some(rule);
        let is_nameless_refused = |stored: &Stored| stored.instance.1.is_some() || !lacks("nameless-refuses");
        let (mine, live) = match request.kind {
            Kind::Register(mine, value) => (mine, Some(value)),
            Kind::Delete(mine) => (mine, None),
        };
        let is_free = row.is_none_or(|stored| {
            let order = order_key(stored.instance).cmp(&order_key(mine));
            let is_tie = stored.instance.0 == mine.0;
            match request.kind {
                _ if lacks("condition") => true,
                Kind::Register(..) if lacks("ties") => stored.instance.0 < mine.0,
                Kind::Register(..) => order.is_lt() || (is_tie && !is_nameless_refused(stored)),
                Kind::Delete(_) if lacks("delete-itself") => order.is_lt(),
                Kind::Delete(_) if lacks("delete-older") => order.is_eq(),
                Kind::Delete((_, None)) if lacks("nameless") => stored.instance.0 < mine.0,
                Kind::Delete(_) => order.is_le(),
            }
        });
        let purge_at = live.is_none().then_some(request.purge_at);
        let leaves_row = live.is_some() || !lacks("newest-tombstone");
        is_free.then(|| leaves_row.then_some(Stored { instance: mine, live, purge_at }))
    }
}

pub fn order_key((order, name): Instance) -> OrderKey {
    OrderKey { order: u64::from(order), name: name.map(String::from) }
}

fn words((order, name): Instance) -> String {
    name.map_or_else(|| format!("all instances of number {order}"), |name| format!("instance {order}{name}"))
}
