//! [`Protocol`]: the rows and calls of a model. The [`World`] plays it.

use crate::world::{Caller, Checked, Faults, World};
use stateright::Property;
use std::fmt::Debug;
use std::hash::Hash;

/// A part of a state.
pub trait Part: Clone + Eq + Hash + Debug + Send + Sync + 'static {}
impl<T: Clone + Eq + Hash + Debug + Send + Sync + 'static> Part for T {}

/// One protocol: its rows, calls and events.
pub trait Protocol: Part + Sized {
    /// The rows with the history to compare them with.
    type Shared: Part;
    type Call: Part;
    type Write: Part + Ord;
    /// Events beside the calls.
    type Event: Part;
    /// The answer for an applied change, enough to distinguish the attempts of a call.
    type Said: Part;
    type Shown;

    fn limits(&self) -> Limits;
    /// The states from which the model starts.
    fn start(&self) -> Vec<(Self::Shared, Vec<Self::Call>)>;
    /// Whether this call, which waits for nothing, can go on.
    fn may_go_on(&self, _world: &World<Self>, _caller: usize) -> bool {
        true
    }
    /// The call goes on. `None` if it cannot.
    fn go_on(&self, shared: &mut Self::Shared, call: &mut Self::Call, now: u32) -> Option<Next<Self>>;
    /// A request meets the table. Returns the answer with the change, if it was applied.
    fn meets(
        &self,
        shared: &mut Self::Shared,
        write: &Self::Write,
        now: u32,
    ) -> (Answer<Self::Shown>, Option<Self::Said>);
    fn answered(
        &self,
        shared: &mut Self::Shared,
        call: &mut Self::Call,
        write: &Self::Write,
        now: u32,
        answer: Answer<Self::Shown>,
        is_pending: bool,
    ) -> Next<Self>;
    /// The end of a call that runs out of time while it sends this write.
    fn out_of_time(&self, _call: &Self::Call, _write: &Self::Write, is_pending: bool) -> Told<Self::Said> {
        if is_pending { Told::Unknown } else { Told::NotApplied }
    }
    /// The possible events beside the calls.
    fn events(&self, world: &World<Self>, events: &mut Vec<Self::Event>);
    fn happen(&self, shared: &mut Self::Shared, now: &mut u32, event: &Self::Event);
    /// Promises and necessary examples.
    fn properties() -> Vec<Property<Checked<Self>>>;
    /// Whether a second copy of this request, which was refused with nothing pending, may be applied after its call has
    /// ended like this: the cases that are known and left open.
    fn is_left_open(&self, _call: &Self::Call, _write: &Self::Write) -> bool {
        false
    }
    /// Whether an earlier attempt of the call may be applied beside the last one.
    fn has_open_attempts(&self, _call: &Self::Call) -> bool {
        false
    }
    /// The request that a resend carries: the same.
    fn again(&self, _call: &mut Self::Call, write: Self::Write) -> Self::Write {
        write
    }
    /// Whether a throttled resend clears the pending send: it must not.
    fn throttling_clears_pending(&self) -> bool {
        false
    }

    fn call(&self, call: &Self::Call) -> String;
    fn write(&self, write: &Self::Write) -> String;
    fn event(&self, event: &Self::Event) -> String;
    fn rows(&self, shared: &Self::Shared) -> String;
    /// The details of an applied change, after "applied".
    fn said(&self, _said: &Self::Said) -> String {
        String::new()
    }
    /// The effect of a write on the rows, after "it".
    fn change(&self, _before: &Self::Shared, after: &Self::Shared) -> String {
        format!("is applied ({})", self.rows(after))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Limits {
    pub sends: u8,
    pub faults: Faults,
    /// For how long after the beginning of a call its requests live.
    pub life: u32,
    /// Whether a send may be followed by an identical one before it is answered.
    pub hedges: bool,
    pub begins: u32,
}

/// The next step of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next<P: Protocol> {
    Send(P::Write),
    Pause,
    Told(Told<P::Said>),
}

/// An answer of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer<S> {
    /// The write was applied. Shows the new rows.
    Applied(S),
    /// The condition did not hold. Shows the rows.
    Refused(S),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Told<S> {
    /// The change was applied, as this attempt.
    Applied(S),
    /// It was not, and never will be.
    NotApplied,
    /// Nobody knows.
    Unknown,
}

pub const ONCE: &str = "no change is applied twice";
pub const APPLIED: &str = "told applied: applied exactly once";
pub const COMMITTED: &str = "what is told is what was committed";
pub const NOT_APPLIED: &str = "told not applied: never applied";
pub const UNKNOWN: &str = "unknown only while an answer is missing or an attempt is open";

/// The promises of every model of changes.
pub fn promises<P: Protocol>() -> Vec<Property<Checked<P>>> {
    vec![
        Property::always(ONCE, |_, world: &World<P>| world.callers.iter().all(|caller| caller.applied <= 1)),
        Property::always(APPLIED, |_, world: &World<P>| {
            world.callers.iter().all(|caller| !caller.is_told_applied() || caller.applied == 1)
        }),
        Property::always(COMMITTED, |_, world: &World<P>| {
            world.callers.iter().all(|caller| match &caller.told {
                Some(Told::Applied(said)) => caller.committed.as_ref() == Some(said),
                _ => true,
            })
        }),
        Property::always(NOT_APPLIED, |_, world: &World<P>| {
            let is_wrong = |caller: &Caller<P>| caller.told == Some(Told::NotApplied) && caller.applied > 0;
            world.callers.iter().all(|caller| !is_wrong(caller) || caller.is_excused)
        }),
        Property::always(UNKNOWN, |model, world: &World<P>| {
            let is_fair = |caller: &Caller<P>| caller.was_pending || model.0.has_open_attempts(&caller.call);
            world.callers.iter().all(|caller| caller.told != Some(Told::Unknown) || is_fair(caller))
        }),
        Property::sometimes("an unknown", |_, world: &World<P>| {
            world.callers.iter().any(|caller| caller.told == Some(Told::Unknown))
        }),
        Property::sometimes("applied although an answer was missing", |_, world: &World<P>| {
            world.callers.iter().any(|caller| caller.is_told_applied() && caller.was_pending)
        }),
    ]
}
