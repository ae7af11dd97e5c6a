//! What the leaders were told of the lease and of what requires it, for a judge that knows only what a lease with fencing
//! tokens is. It knows no time: a lease may end at any moment.

use super::checks::Ended;
use super::record::{Done, Told, What};
use super::scene::name;
use super::timeline::{Change, Timeline};
use judges::linearizable::{self, Object, Seen};
use tokio::time::Instant;

/// The lease, as far as its clients were told of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Lease {
    /// The highest token that anybody was told of.
    highest: u64,
    holding: Option<Holding>,
}

/// Who holds it. `None` for what nobody was told.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Holding {
    holder: String,
    token: Option<u64>,
    renewals: Option<u64>,
    expires_at: Option<u64>,
}

#[derive(Clone, PartialEq, Debug)]
enum Op {
    Acquire {
        holder: String,
    },
    /// Acquires, and renews as often as nobody is told.
    Work {
        holder: String,
        token: u64,
    },
    Renew {
        token: u64,
    },
    Release {
        token: u64,
    },
    /// A write of an item in one transaction with the demand that the lease is held under the token.
    Require {
        token: u64,
    },
}

impl Lease {
    fn is_held_under(&self, token: u64) -> bool {
        let is_mine = |holding: &Holding| holding.token.map_or(token > self.highest, |held| held == token);
        self.holding.as_ref().is_some_and(is_mine)
    }

    /// A new holder with a higher token than all before.
    fn is_acquired(&mut self, next: Holding) -> bool {
        let rises = next.token.is_none_or(|token| token > self.highest);
        if rises {
            self.highest = next.token.unwrap_or(self.highest);
            self.holding = Some(next);
        }
        rises
    }

    /// What it was told to hold is what it holds already: its acquire was sent before.
    fn is_found(&self, next: &Holding) -> bool {
        let same = |held: Option<u64>, told: Option<u64>| held.is_none() || told.is_none() || held == told;
        self.holding.as_ref().is_some_and(|holding| {
            holding.holder == next.holder
                && same(holding.token, next.token)
                && same(holding.renewals, next.renewals)
                && same(holding.expires_at, next.expires_at)
        })
    }

    fn is_renewed(&mut self, token: u64, renewals: Option<u64>, expires_at: Option<u64>) -> bool {
        let is_held = self.is_held_under(token);
        let Some(holding) = self.holding.as_mut().filter(|_| is_held) else { return false };
        let rises = |held: u64| renewals.is_none_or(|renewals| renewals == held || renewals == held + 1);
        let fits = holding.renewals.is_none_or(rises);
        (holding.token, holding.renewals, holding.expires_at) = (Some(token), renewals, expires_at);
        self.highest = self.highest.max(token);
        fits
    }

    fn is_released(&mut self, token: u64) -> bool {
        if self.is_held_under(token) {
            self.highest = self.highest.max(token);
            self.holding = None;
        }
        true
    }
}

impl Object for Lease {
    type Op = Op;
    type Told = Told;

    fn may_do(&mut self, op: &Op) {
        match op {
            Op::Acquire { holder } => {
                self.is_acquired(Holding { holder: holder.clone(), token: None, renewals: None, expires_at: None })
            }
            Op::Renew { token } => self.is_renewed(*token, None, None),
            Op::Release { token } => self.is_released(*token),
            Op::Work { .. } | Op::Require { .. } => true,
        };
    }

    fn does(&mut self, op: &Op, told: &Told) -> bool {
        match (op, told) {
            (Op::Acquire { holder }, Told::Lease { token, renewals, expires_at }) => {
                let (token, renewals, expires_at) = (Some(*token), Some(*renewals), Some(*expires_at));
                let next = Holding { holder: holder.clone(), token, renewals, expires_at };
                self.is_found(&next) || self.is_acquired(next)
            }
            (Op::Work { holder, token }, Told::Done) => {
                let holder = holder.clone();
                self.is_acquired(Holding { holder, token: Some(*token), renewals: None, expires_at: None })
            }
            (Op::Acquire { .. }, Told::Held { holder, until }) => self.holding.as_ref().is_some_and(|holding| {
                holding.holder == *holder && holding.expires_at.is_none_or(|expires_at| expires_at == *until)
            }),
            (Op::Renew { token }, Told::Lease { token: told, renewals, expires_at }) => {
                token == told && self.is_renewed(*token, Some(*renewals), Some(*expires_at))
            }
            (Op::Release { token }, Told::Done) => self.is_released(*token),
            (Op::Require { token }, Told::Done) => self.is_held_under(*token),
            // A token that is refused once is refused for ever.
            (Op::Renew { token } | Op::Release { token } | Op::Require { token }, Told::Fenced) => {
                let unsure = self.holding.as_ref().is_some_and(|holding| holding.token.is_none());
                unsure || !self.is_held_under(*token)
            }
            _ => false,
        }
    }
}

/// What the judge says against this history.
pub fn violation(ended: &Ended) -> Option<String> {
    let done = ended.scene.done.lock().expect("no panic");
    let timeline = Timeline::of(&ended.scene, &ended.applied);
    let untold = done.iter().flat_map(|done| untold(&timeline, done));
    linearizable::judge(Lease::default(), done.iter().flat_map(seen).chain(untold).collect()).err()
}

/// What a call acquired, but for what `seen` says of it. Others may have seen it. A lease that has run out when its answer comes
/// is acquired again, or no work begins. An acquire whose answer was lost may be told that another holds the lease by now.
fn untold(timeline: &Timeline<'_>, done: &Done) -> Vec<Seen<Op, Told>> {
    let Done { number, leader, began, ended, .. } = *done;
    let acquired = timeline.lease.iter().filter(|state| state.op == number && state.change == Change::Acquired).count();
    let has_acquired = |seen: &Seen<Op, Told>| {
        matches!(seen.op, Op::Acquire { .. } | Op::Work { .. }) && !matches!(seen.told, Some(Told::Held { .. }))
    };
    let said = seen(done).iter().filter(|seen| has_acquired(seen)).count();
    let [began, ended] = [began, ended].map(Instant::into_std);
    let again = Seen { client: number, began, ended, op: Op::Acquire { holder: name(leader) }, told: None };
    vec![again; acquired.saturating_sub(said)]
}

/// What a leader saw in one of its operations.
fn seen(done: &Done) -> Vec<Seen<Op, Told>> {
    let Done { number, leader, what, token, began, ended, .. } = *done;
    let client = u64::try_from(leader).expect("few");
    let [began, ended] = [began, ended].map(Instant::into_std);
    let as_told = |op, told| Seen { client, began, ended, op, told };
    let holder = name(leader);
    match (what, token, &done.told) {
        (_, _, Told::NotApplied | Told::NotFound | Told::Conflict) => Vec::new(),
        (What::Acquire { .. } | What::AcquireWithin, _, told) => vec![as_told(Op::Acquire { holder }, known(told))],
        // In one call: an acquire, some renewals, and perhaps a release, while the work did other things.
        (What::Work, Some(token), _) => {
            let worked = as_told(Op::Work { holder, token }, Some(Told::Done));
            vec![Seen { client: WORK + number, ..worked }, as_told(Op::Release { token }, None)]
        }
        (What::Work, None, told @ (Told::Unknown | Told::Held { .. })) => {
            vec![as_told(Op::Acquire { holder }, known(told))]
        }
        (What::Renew | What::Extend, Some(token), told) => vec![as_told(Op::Renew { token }, known(told))],
        (What::Release, Some(token), told) => vec![as_told(Op::Release { token }, known(told))],
        (What::Require | What::RequireDelete, Some(token), told) => vec![as_told(Op::Require { token }, known(told))],
        _ => Vec::new(),
    }
}

/// The first number of a client that stands for the work of another.
const WORK: u64 = 1 << 32;

fn known(told: &Told) -> Option<Told> {
    if *told == Told::Unknown { None } else { Some(told.clone()) }
}
