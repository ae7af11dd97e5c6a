//! Leases: acquire, renew, release, removal by TTL and writes under a token, by processes with different clocks.
//!
//! The unit of time is a second. A process that is stopped is one that does nothing while seconds pass.

mod table;

pub use table::{LeaseRow, Request};

use crate::protocol::{APPLIED, Answer, Limits, NOT_APPLIED, Next, ONCE, Protocol, Told};
use crate::row::{At, Id, Row, Write};
use crate::world::{Checked, World};
use fencepost::lease::{LeaseTerms, Leases};
use fencepost::testing::{Facts, LeaseTimes, SentWrite, after, judge_after_loss};
use stateright::Property;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The intent of one call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    Acquire,
    Renew,
    Release,
    /// Changes the item in a transaction that requires the lease.
    Required,
    /// Adds to the item under the token of the lease.
    Fenced,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LeaseModel {
    /// The calls, each with its process.
    pub calls: Vec<(usize, Kind)>,
    /// How long a lease is, in seconds.
    pub length: u32,
    /// How far clocks may differ, in seconds.
    pub skew: u32,
    /// How far each clock is ahead at most, in seconds. More than the skew is more than is assumed.
    pub apart: u32,
    pub seconds: u8,
    pub weeks: u8,
    pub limits: Limits,
    /// The rule that is missing.
    pub without: Option<&'static str>,
}

/// The belief of a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Held {
    token: u64,
    renewals: u64,
    /// Until when, by its own clock, in milliseconds.
    until: u64,
}

/// The rows, the processes and the history.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Shared {
    lease: Option<LeaseRow>,
    item: Row,
    /// How far the clock of each process is ahead.
    ahead: [u32; 2],
    held: [Option<Held>; 2],
    seconds: u8,
    weeks: u8,
    shows_all: bool,
    /// The highest token that was ever acquired.
    acquired: u64,
    /// The highest token under which the item was written.
    written: u64,
    wrongs: BTreeSet<Wrong>,
}

/// Violations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Wrong {
    TokenFell,
    ItemSawFall,
    ReplacedWrote,
    AcquiredAgain,
}

impl Kind {
    fn is_write(self) -> bool {
        matches!(self, Kind::Required | Kind::Fenced)
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Call {
    process: usize,
    kind: Kind,
    id: Id,
    /// A required write after the loss of its lease: its row is read next.
    asks: Option<Write>,
}

/// The lease and the item in an answer, as far as they refused or were written.
pub type Shown = (Option<LeaseRow>, Option<Row>);

/// Events beside the calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    Second,
    Week,
    Ttl,
}

/// R and W of the item.
const REMEMBERED: u64 = 4;
const WINDOW: u8 = 4;

pub const HOLDERS: &str = "no two processes believe in one lease";
pub const TOKENS: &str = "tokens rise";
/// A required write is applied only under the token of the last acquire.
pub const REQUIRED: &str = "a required write is never applied after the next acquire";
/// No late copy of an acquire takes the lease again after its release.
pub const AGAIN: &str = "what was acquired and released is not acquired again by a late copy";
pub const FENCED: &str = "the tokens that the item sees never fall";

impl Protocol for LeaseModel {
    type Shared = Shared;
    type Call = Call;
    type Write = Request;
    type Event = Event;
    type Said = ();
    type Shown = Shown;

    fn limits(&self) -> Limits {
        self.limits
    }

    fn start(&self) -> Vec<(Shared, Vec<Call>)> {
        let item = Row {
            at: At { version: 1, incarnation: 99 },
            memory: vec![(99, 0)],
            stock: 0,
            purge_at: None,
            fence: None,
        };
        let shared = |ahead: [u32; 2], shows_all: bool| Shared {
            lease: None,
            item: item.clone(),
            ahead,
            held: [None; 2],
            seconds: self.seconds,
            weeks: self.weeks,
            shows_all,
            acquired: 0,
            written: 0,
            wrongs: BTreeSet::new(),
        };
        let call =
            |(id, (process, kind)): (Id, &(usize, Kind))| Call { process: *process, kind: *kind, id, asks: None };
        let calls: Vec<_> = (1..).zip(&self.calls).map(call).collect();
        let apart = [[0, 0], [0, self.apart], [self.apart, 0]];
        let is_new = |index: &usize| *index == 0 || self.apart > 0;
        let starts = (0..apart.len()).filter(is_new).flat_map(|index| [true, false].map(|all| (apart[index], all)));
        let requires = self.calls.iter().any(|(_, kind)| *kind == Kind::Required);
        starts.filter(|(_, all)| *all || requires).map(|(ahead, all)| (shared(ahead, all), calls.clone())).collect()
    }

    fn may_go_on(&self, world: &World<Self>, caller: usize) -> bool {
        let call = &world.callers[caller].call;
        call.kind == Kind::Acquire || call.asks.is_some() || world.shared.held[call.process].is_some()
    }

    fn go_on(&self, shared: &mut Shared, call: &mut Call, now: u32) -> Option<Next<Self>> {
        if let Some(write) = call.asks.take() {
            let verdict = judge_after_loss([(Self::sent(&write, None), Some(shared.item.seen()))].into_iter());
            return Some(Self::settled(after(verdict, Facts { is_pending: true, ..Facts::default() })));
        }
        let process = call.process;
        let clock = Self::clock(now + shared.ahead[process]);
        let LeaseTimes { expires_at, cutoff, floor } = self.times(clock);
        let purge_at = seconds(clock + Leases::RETENTION);
        let held = shared.held[process];
        Some(Next::Send(match call.kind {
            Kind::Acquire => {
                let cutoff = if self.lacks("skew") { floor } else { cutoff };
                let floor = if self.lacks("tokens-from-time") { 0 } else { floor };
                Request::Acquire { process, id: call.id, expires_at, cutoff, floor, purge_at }
            }
            Kind::Renew => {
                let Held { token, renewals: at, .. } = held?;
                Request::Renew { token, at, expires_at, purge_at }
            }
            Kind::Release => {
                shared.held[process] = None;
                Request::Release { token: held?.token, purge_at }
            }
            Kind::Required => {
                let (id, at) = (call.id, shared.item.at);
                let prune = shared.item.prunable(REMEMBERED, id);
                let write = Write::Update { at, id, prune, burn: Vec::new(), stock: shared.item.stock + 1 };
                Request::Required { token: held?.token, write }
            }
            Kind::Fenced => Request::Fenced { token: held?.token, write: add(call.id, &shared.item) },
        }))
    }

    fn meets(&self, shared: &mut Shared, request: &Request, _: u32) -> (Answer<Shown>, Option<()>) {
        match request {
            Request::Required { token, write } => self.meets_required(shared, *token, write),
            Request::Fenced { token, write } => self.meets_fenced(shared, *token, write),
            _ => match self.next_lease(shared.lease.as_ref(), request) {
                None => (Answer::Refused((shared.lease.clone(), None)), None),
                Some(next) => {
                    if let (Request::Acquire { .. }, Some(next)) = (request, &next) {
                        let is_again = |row: &LeaseRow| row.holder.is_none() && row.acquire_id == next.acquire_id;
                        let is_again = shared.lease.as_ref().is_some_and(is_again);
                        shared.wrongs.extend(is_again.then_some(Wrong::AcquiredAgain));
                        shared.wrongs.extend((next.token <= shared.acquired).then_some(Wrong::TokenFell));
                        shared.acquired = shared.acquired.max(next.token);
                    }
                    shared.lease.clone_from(&next);
                    (Answer::Applied((next, None)), Some(()))
                }
            },
        }
    }

    fn answered(
        &self,
        shared: &mut Shared,
        call: &mut Call,
        request: &Request,
        now: u32,
        answer: Answer<Shown>,
        is_pending: bool,
    ) -> Next<Self> {
        match request {
            Request::Acquire { .. } | Request::Renew { .. } | Request::Release { .. } => {
                self.answered_lease(shared, call, request, now, answer, is_pending)
            }
            Request::Required { token, write } => self.answered_required(call, *token, write, answer, is_pending),
            Request::Fenced { token, write } => Self::answered_fenced(*token, write, answer, is_pending),
        }
    }

    fn out_of_time(&self, _: &Call, request: &Request, is_pending: bool) -> Told<()> {
        let is_burn = matches!(request, Request::Fenced { write: Write::Burn { .. }, .. });
        if is_pending || is_burn { Told::Unknown } else { Told::NotApplied }
    }

    fn events(&self, world: &World<Self>, events: &mut Vec<Event>) {
        let Shared { lease, seconds, weeks, .. } = &world.shared;
        events.extend((*seconds > 0).then_some(Event::Second));
        events.extend((*weeks > 0).then_some(Event::Week));
        events.extend(lease.as_ref().is_some_and(|lease| lease.purge_at <= world.now).then_some(Event::Ttl));
    }

    fn happen(&self, shared: &mut Shared, now: &mut u32, event: &Event) {
        match event {
            Event::Second => {
                shared.seconds -= 1;
                *now += 1;
            }
            Event::Week => {
                shared.weeks -= 1;
                *now += seconds(UNIX_EPOCH + Leases::RETENTION) + 600;
            }
            Event::Ttl => shared.lease = None,
        }
    }

    fn properties() -> Vec<Property<Checked<Self>>> {
        vec![
            Property::always(HOLDERS, |model, world: &World<Self>| {
                model.0.apart > model.0.skew || Self::believers(world) <= 1
            }),
            Property::always(TOKENS, |_, world: &World<Self>| !world.shared.wrongs.contains(&Wrong::TokenFell)),
            Property::always(REQUIRED, |_, world: &World<Self>| !world.shared.wrongs.contains(&Wrong::ReplacedWrote)),
            Property::always(FENCED, |_, world: &World<Self>| !world.shared.wrongs.contains(&Wrong::ItemSawFall)),
            Property::always(AGAIN, |_, world: &World<Self>| !world.shared.wrongs.contains(&Wrong::AcquiredAgain)),
            // A renewal after a faster one is made again. A release does the same each time. A late copy of an acquire
            // may be applied after another holder's acquire and release: that lease has no holder then.
            Property::always(ONCE, |_, world: &World<Self>| {
                world.callers.iter().all(|caller| caller.applied <= 1 || !caller.call.kind.is_write())
            }),
            // Two renewals with one end cannot be told apart, and need not be: the lease has that end.
            Property::always(APPLIED, |_, world: &World<Self>| {
                let mut callers = world.callers.iter().filter(|caller| caller.call.kind != Kind::Renew);
                callers.all(|caller| !caller.is_told_applied() || caller.applied > 0)
            }),
            // An acquire may be applied after its caller gave up: that lease has no holder then.
            Property::always(NOT_APPLIED, |_, world: &World<Self>| {
                world.callers.iter().all(|caller| {
                    !caller.call.kind.is_write()
                        || caller.told != Some(Told::NotApplied)
                        || caller.applied == 0
                        || caller.is_excused
                })
            }),
            Property::sometimes("two processes believe, because their clocks differ too much", |_, world| {
                Self::believers(world) > 1
            }),
            Property::sometimes("a replaced holder's write is refused", |_, world: &World<Self>| {
                let is_refused = |told| told == Some(Told::NotApplied);
                world.callers.iter().any(|caller| caller.call.kind.is_write() && is_refused(caller.told))
            }),
        ]
    }

    /// A second copy of an add that was refused with nothing pending.
    fn is_left_open(&self, _: &Call, request: &Request) -> bool {
        matches!(request, Request::Fenced { write: Write::Add { .. }, .. })
    }

    fn call(&self, call: &Call) -> String {
        let kind = match call.kind {
            Kind::Acquire => "acquire",
            Kind::Renew => "renewal",
            Kind::Release => "release",
            Kind::Required => "required write",
            Kind::Fenced => "fenced write",
        };
        format!("{kind} (process {})", call.process + 1)
    }

    fn write(&self, request: &Request) -> String {
        match request {
            Request::Acquire { process, expires_at, .. } => {
                format!("acquire by process {} until {}", process + 1, expires_at / 1000)
            }
            Request::Renew { token, at, expires_at, .. } => {
                format!("renewal of token {token} on {at} renewals until {}", expires_at / 1000)
            }
            Request::Release { token, .. } => format!("release of token {token}"),
            Request::Required { token, write } => format!("{} that requires token {token}", write.words()),
            Request::Fenced { token, write } => format!("{} under token {token}", write.words()),
        }
    }

    fn event(&self, event: &Event) -> String {
        match event {
            Event::Second => "A second passes",
            Event::Week => "A week passes",
            Event::Ttl => "TTL removes the row of the lease",
        }
        .to_owned()
    }

    fn rows(&self, shared: &Shared) -> String {
        let lease = shared.lease.as_ref().map_or_else(
            || "no row".to_owned(),
            |LeaseRow { holder, token, renewals, expires_at, .. }| {
                let holder = holder.map_or_else(|| "nobody".to_owned(), |holder| format!("process {}", holder + 1));
                format!("{holder}, token {token}, {renewals} renewals, ends {}", expires_at / 1000)
            },
        );
        format!("lease: {lease}; item: version {}, token {:?}", shared.item.at.version, shared.item.fence)
    }
}

impl LeaseModel {
    fn lacks(&self, rule: &str) -> bool {
        self.without == Some(rule)
    }

    fn clock(seconds: u32) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(u64::from(seconds))
    }

    fn times(&self, clock: SystemTime) -> LeaseTimes {
        let terms = LeaseTerms::new(Duration::from_secs(u64::from(self.length))).expect("long enough");
        LeaseTimes::at(clock, terms.length(), Duration::from_secs(u64::from(self.skew)))
    }

    /// How many processes believe that they hold the lease, each by its own clock.
    fn believers(world: &World<Self>) -> usize {
        let Shared { held, ahead, .. } = &world.shared;
        let believes = |process: &usize| {
            held[*process].is_some_and(|held| u64::from(world.now + ahead[*process]) * 1000 < held.until)
        };
        (0..held.len()).filter(believes).count()
    }

    /// The judge's view of a write to the item.
    fn sent(write: &Write, fence: Option<u64>) -> SentWrite {
        SentWrite { fence, ..write.sent(REMEMBERED, false).expect("each write here leaves an id") }
    }
}

fn add(id: Id, item: &Row) -> Write {
    let prune = item.prunable(REMEMBERED, id);
    Write::Add { at: item.at, window: WINDOW, id, prune, burn: Vec::new(), by: 1, low: 0, high: 99 }
}

fn seconds(time: SystemTime) -> u32 {
    let since = time.duration_since(UNIX_EPOCH).expect("after 1970");
    u32::try_from(since.as_secs()).expect("before 2106")
}
