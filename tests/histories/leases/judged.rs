//! The leaders' answers about the lease and the writes that require it, for a judge that knows only leases with fencing
//! tokens. It knows no time: a lease may end at any moment.
//!
//! One thing comes from outside the answers: how often a call acquired or renewed the lease without an answer about it
//! (`untold`).

use super::checks::Leaders;
use super::record::name;
use super::record::{Done, Told, What};
use super::timeline::{Change, Timeline};
use judges::linearizable::{self, Object, Seen};
use tokio::time::Instant;

/// The lease as its clients know it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Lease {
    /// The highest token in any answer.
    highest: u64,
    holding: Option<Holding>,
}

/// The holder. `None` stands for values that no answer has shown.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Holding {
    by: Acquirer,
    token: Option<u64>,
    renewals: Option<u64>,
    expires_at: Option<u64>,
    /// Whether its work renews the lease, without an answer about it.
    renews_itself: bool,
}

/// A holder and its acquire. All requests for one acquire have the same number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Acquirer {
    holder: String,
    acquire: u64,
}

/// A holder and the token that it knows.
#[derive(Clone, PartialEq, Debug)]
struct Under {
    holder: String,
    token: u64,
}

/// `at`: the number of renewals that it demands.
#[derive(Clone, PartialEq, Debug)]
enum Op {
    Acquire {
        by: Acquirer,
    },
    /// Acquires, and renews any number of times without an answer.
    Work {
        by: Acquirer,
        token: u64,
    },
    Renew {
        under: Under,
        at: Option<u64>,
    },
    Release {
        under: Under,
        at: Option<u64>,
    },
    /// A write of an item in one transaction, which demands that the lease is held under the token.
    Require {
        under: Under,
    },
}

impl Holding {
    fn new(by: &Acquirer) -> Self {
        Holding { by: by.clone(), token: None, renewals: None, expires_at: None, renews_itself: false }
    }

    fn was_renewed(&self, at: Option<u64>) -> bool {
        at.is_none() || self.renewals.is_none() || self.renewals == at
    }
}

impl Lease {
    /// The lease, if it is held in this way. Its token is known from then on.
    fn held(&mut self, under: &Under) -> Option<&mut Holding> {
        let (Under { holder, token }, highest) = (under, self.highest);
        let is_its = |held: Option<u64>| held.map_or(*token > highest, |held| held == *token);
        let holding = self.holding.as_mut().filter(|holding| holding.by.holder == *holder && is_its(holding.token))?;
        holding.token = Some(*token);
        self.highest = highest.max(*token);
        Some(holding)
    }

    /// Whether this may be a new holder, with a higher token than all before.
    fn is_acquired(&mut self, next: Holding) -> bool {
        let rises = next.token.is_none_or(|token| token > self.highest);
        if rises {
            self.highest = next.token.unwrap_or(self.highest);
            self.holding = Some(next);
        }
        rises
    }

    /// Whether the answer shows the present holding. The acquire was sent before.
    fn is_found(&mut self, next: &Holding) -> bool {
        let Some(token) = next.token else { return false };
        let same = |held: Option<u64>, told: Option<u64>| held.is_none() || held == told;
        let under = Under { holder: next.by.holder.clone(), token };
        let is_found = self.holding.as_ref().is_some_and(|holding| {
            holding.by == next.by && same(holding.renewals, next.renewals) && same(holding.expires_at, next.expires_at)
        });
        is_found && self.held(&under).map(|holding| *holding = next.clone()).is_some()
    }

    /// One more renewal, as far as the number is known.
    fn is_renewed(&mut self, under: &Under, at: Option<u64>, told: Option<(u64, u64)>) -> bool {
        let Some(holding) = self.held(under).filter(|holding| holding.was_renewed(at)) else { return false };
        let next = at.or(holding.renewals).map(|renewals| renewals + 1);
        let (renewals, expires_at) = told.unzip();
        let fits = next.is_none() || renewals.is_none() || renewals == next;
        (holding.renewals, holding.expires_at) = (renewals.or(next), expires_at);
        fits
    }

    /// Frees the lease. It may be free already, if no higher token is known: a lease may be released twice.
    fn is_released(&mut self, under: &Under, at: Option<u64>) -> bool {
        if let Some(holding) = self.held(under) {
            let fits = holding.was_renewed(at);
            if fits {
                self.holding = None;
            }
            return fits;
        }
        self.holding.is_none() && self.highest <= under.token
    }

    /// Whether another may hold it until then, as an answer says.
    fn is_held_by_another(&mut self, by: &Acquirer, (holder, until): (&str, u64)) -> bool {
        let others = |holding: &&mut Holding| {
            holding.by != *by && holding.by.holder == holder && holding.expires_at.is_none_or(|at| at == until)
        };
        let Some(holding) = self.holding.as_mut().filter(others) else { return false };
        if !holding.renews_itself {
            holding.expires_at = Some(until);
        }
        true
    }

    /// A token that is refused once stays refused.
    fn is_lost(&self, under: &Under) -> bool {
        let unsure = self.holding.as_ref().is_some_and(|holding| holding.token.is_none());
        unsure || self.clone().held(under).is_none()
    }
}

impl Object for Lease {
    type Op = Op;
    type Told = Told;

    fn may_do(&mut self, op: &Op) {
        let before = self.clone();
        let is_done = match op {
            Op::Acquire { by } => self.is_acquired(Holding::new(by)),
            Op::Renew { under, at } => self.is_renewed(under, *at, None),
            Op::Release { under, at } => self.is_released(under, *at),
            Op::Work { .. } | Op::Require { .. } => true,
        };
        if !is_done {
            *self = before;
        }
    }

    fn does(&mut self, op: &Op, told: &Told) -> bool {
        match (op, told) {
            (Op::Acquire { by }, Told::Lease { token, renewals, expires_at }) => {
                let (token, renewals, expires_at) = (Some(*token), Some(*renewals), Some(*expires_at));
                let next = Holding { token, renewals, expires_at, ..Holding::new(by) };
                self.is_found(&next) || self.is_acquired(next)
            }
            (Op::Work { by, token }, Told::Done) => {
                self.is_acquired(Holding { token: Some(*token), renews_itself: true, ..Holding::new(by) })
            }
            (Op::Acquire { by }, Told::Held { holder, until }) => self.is_held_by_another(by, (holder, *until)),
            (Op::Renew { under, at }, Told::Lease { token, renewals, expires_at }) => {
                *token == under.token && self.is_renewed(under, *at, Some((*renewals, *expires_at)))
            }
            (Op::Release { under, at }, Told::Done) => self.is_released(under, *at),
            (Op::Require { under }, Told::Done) => self.held(under).is_some(),
            (Op::Renew { under, .. } | Op::Release { under, .. } | Op::Require { under }, Told::Fenced) => {
                self.is_lost(under)
            }
            _ => false,
        }
    }
}

/// The judge's objection to this history.
pub fn violation(ended: &Leaders) -> Option<String> {
    let done = ended.scene.done.lock().expect("no panic");
    let timeline = Timeline::of(&ended.scene, &ended.applied);
    let untold = done.iter().flat_map(|done| untold(&timeline, done));
    linearizable::judge(Lease::default(), done.iter().flat_map(seen).chain(untold).collect()).err()
}

/// The effects of a call on the lease that `seen` does not report. Others may have seen them. An acquire that waits or
/// is sent again may acquire a second time after the lease has ended. After a lost answer, an acquire may report
/// another holder. A renewal may then report that the lease is lost.
fn untold(timeline: &Timeline<'_>, done: &Done) -> Vec<Seen<Op, Told>> {
    let (change, op) = match done.what {
        What::Acquire { .. } | What::AcquireWithin | What::Work => {
            (Change::Acquired, Op::Acquire { by: acquirer(done) })
        }
        What::Renew { .. } | What::Extend => (Change::Renewed, renewal(done)),
        _ => return Vec::new(),
    };
    let did = timeline.lease.iter().filter(|state| state.op == done.number && state.change == change).count();
    let says_so = |seen: &Seen<Op, Told>| {
        !matches!(seen.op, Op::Release { .. }) && !matches!(seen.told, Some(Told::Held { .. } | Told::Fenced))
    };
    let said = seen(done).iter().filter(|seen| says_so(seen)).count();
    vec![as_told(done, op, None); did.saturating_sub(said)]
}

/// A leader's view of one of its operations.
fn seen(done: &Done) -> Vec<Seen<Op, Told>> {
    let known = if done.told == Told::Unknown { None } else { Some(done.told.clone()) };
    match (done.what, done.token, &done.told) {
        // One call has an acquire, some renewals and perhaps a release, while the work does other things.
        (What::Work, Some(token), _) => {
            let by = acquirer(done);
            let worked = as_told(done, Op::Work { by, token }, Some(Told::Done));
            let release = Op::Release { under: under(done), at: None };
            vec![Seen { client: WORK + done.number, ..worked }, as_told(done, release, None)]
        }
        (What::Work, None, Told::Unknown | Told::Held { .. }) => {
            vec![as_told(done, Op::Acquire { by: acquirer(done) }, known)]
        }
        // Nothing was done, or nothing with a need for the lease.
        (What::Work | What::Append | What::Add | What::Delete, ..)
        | (.., Told::NotApplied | Told::NotFound | Told::Conflict) => Vec::new(),
        (What::Acquire { .. } | What::AcquireWithin, ..) => {
            vec![as_told(done, Op::Acquire { by: acquirer(done) }, known)]
        }
        (What::Renew { .. } | What::Extend, ..) => vec![as_told(done, renewal(done), known)],
        (What::Release { at }, ..) => vec![as_told(done, Op::Release { under: under(done), at }, known)],
        (What::Require | What::RequireDelete, ..) => vec![as_told(done, Op::Require { under: under(done) }, known)],
    }
}

/// The first client number for the work of other clients.
const WORK: u64 = 1 << 32;

fn as_told(done: &Done, op: Op, told: Option<Told>) -> Seen<Op, Told> {
    let client = u64::try_from(done.leader).expect("few");
    let [began, ended] = [done.began, done.ended].map(Instant::into_std);
    Seen { client, began, ended, op, told }
}

fn acquirer(done: &Done) -> Acquirer {
    Acquirer { holder: name(done.leader), acquire: done.acquire() }
}

fn under(done: &Done) -> Under {
    Under { holder: name(done.leader), token: done.token.expect("it is under a token") }
}

fn renewal(done: &Done) -> Op {
    let at = if let What::Renew { at } = done.what { at } else { None };
    Op::Renew { under: under(done), at }
}

/// Made-up stories of one lease that the judge must accept or reject.
mod tests {
    use super::{Acquirer, Lease, Op, Told, Under};
    use judges::linearizable::{self, assert_no_order, assert_order};

    type Line = linearizable::Line<Op, Told>;

    /// Two leaders. Each acquires only once, unless a number says otherwise.
    const ONE: u64 = 1;
    const TWO: u64 = 2;

    fn by(leader: u64, acquire: u64) -> Acquirer {
        Acquirer { holder: format!("leader-{leader}"), acquire }
    }

    fn under(leader: u64, token: u64) -> Under {
        Under { holder: format!("leader-{leader}"), token }
    }

    fn lease(token: u64, renewals: u64, expires_at: u64) -> Told {
        Told::Lease { token, renewals, expires_at }
    }

    fn held(leader: u64, until: u64) -> Told {
        Told::Held { holder: format!("leader-{leader}"), until }
    }

    fn acquires(leader: u64, (began, ended): (u64, u64), told: Option<Told>) -> Line {
        (leader, began, ended, Op::Acquire { by: by(leader, leader) }, told)
    }

    fn requires(leader: u64, (began, ended): (u64, u64), token: u64) -> Line {
        (leader, began, ended, Op::Require { under: under(leader, token) }, Some(Told::Done))
    }

    #[test]
    fn nobody_is_told_that_another_holds_it_who_acquired_it_itself() {
        let without_an_answer = acquires(TWO, (0, 10), None);
        let again = |acquire| (TWO, 20, 30, Op::Acquire { by: by(TWO, acquire) }, Some(held(TWO, 100)));
        assert_no_order(Lease::default(), vec![without_an_answer.clone(), again(TWO)]);
        assert_order(Lease::default(), vec![without_an_answer, again(3)]);
    }

    #[test]
    fn tokens_do_not_fall_and_are_nobody_elses_after_an_acquire_without_an_answer() {
        for token in [20, 50] {
            assert_no_order(
                Lease::default(),
                vec![
                    acquires(ONE, (0, 10), None),
                    (ONE, 20, 30, Op::Acquire { by: by(ONE, 3) }, Some(lease(50, 0, 100))),
                    requires(ONE, (40, 50), 50),
                    acquires(TWO, (200, 210), Some(lease(token, 0, 300))),
                ],
            );
        }
    }

    #[test]
    fn without_a_renewal_it_ends_when_it_was_told_to_end() {
        let looks = |began, until| acquires(TWO, (began, began + 10), Some(held(ONE, until)));
        let unknown = || acquires(ONE, (0, 10), None);
        assert_order(Lease::default(), vec![unknown(), looks(20, 100), looks(40, 100)]);
        assert_no_order(Lease::default(), vec![unknown(), looks(20, 100), looks(40, 200)]);
    }
}
