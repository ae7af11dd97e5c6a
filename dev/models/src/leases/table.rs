//! The row of a lease, the effect of a request on it, and the conclusions of a caller from an answer, by the functions of
//! production.

use super::{Call, Held, LeaseModel, Shared, Shown, Wrong, seconds};
use crate::protocol::{Answer, Next, Told};
use crate::row::{self, Id, Row, Write};
use fencepost::lease::{Leases, StoredLease};
use fencepost::testing::{
    After, AfterAcquire, Facts, after, burn_helps, is_lost, judge, judge_acquire, judge_renewal, judge_steps,
};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LeaseRow {
    pub holder: Option<usize>,
    pub token: u64,
    pub renewals: u64,
    /// The end, in milliseconds.
    pub expires_at: u64,
    pub acquire_id: Id,
    /// When TTL may remove the row, in seconds.
    pub purge_at: u32,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Request {
    Acquire {
        process: usize,
        id: Id,
        expires_at: u64,
        cutoff: u64,
        floor: u64,
        purge_at: u32,
    },
    Renew {
        token: u64,
        at: u64,
        expires_at: u64,
        purge_at: u32,
    },
    Release {
        token: u64,
        purge_at: u32,
    },
    /// Writes the item if the lease is held under this token.
    Required {
        token: u64,
        write: Write,
    },
    /// Writes the item if it has seen no higher token.
    Fenced {
        token: u64,
        write: Write,
    },
}

impl LeaseModel {
    /// The next row of the lease, if the condition of the request holds on this one.
    pub fn next_lease(&self, row: Option<&LeaseRow>, request: &Request) -> Option<Option<LeaseRow>> {
        match request {
            Request::Acquire { process, id, expires_at, cutoff, floor, purge_at } => {
                let is_free = row.is_none_or(|row| {
                    let is_new = row.acquire_id != *id || self.lacks("acquire-once");
                    (row.holder.is_none() && is_new) || row.expires_at < *cutoff
                });
                is_free.then(|| {
                    Some(LeaseRow {
                        holder: Some(*process),
                        token: row.map_or(*floor, |row| row.token) + 1,
                        renewals: 0,
                        expires_at: *expires_at,
                        acquire_id: *id,
                        purge_at: *purge_at,
                    })
                })
            }
            Request::Renew { token, at, expires_at, purge_at } => {
                let row = row.filter(|row| row.token == *token)?;
                let is_held = row.holder.is_some() || self.lacks("renewal-held");
                let is_at = row.renewals == *at || self.lacks("renewal-counts");
                let (expires_at, purge_at) = (*expires_at, *purge_at);
                (is_held && is_at)
                    .then(|| Some(LeaseRow { renewals: row.renewals + 1, expires_at, purge_at, ..row.clone() }))
            }
            Request::Release { token, purge_at } => {
                let row = row.filter(|row| row.token == *token)?;
                let keeps = !self.lacks("release-keeps-row");
                Some(keeps.then(|| LeaseRow { holder: None, purge_at: *purge_at, ..row.clone() }))
            }
            Request::Required { .. } | Request::Fenced { .. } => None,
        }
    }

    /// Whether the lease is held under this token, as a required write demands.
    pub fn is_held(&self, row: Option<&LeaseRow>, token: u64) -> bool {
        row.is_some_and(|row| row.token == token && row.holder.is_some())
    }

    pub(super) fn meets_required(&self, shared: &mut Shared, token: u64, write: &Write) -> (Answer<Shown>, Option<()>) {
        let is_required = self.lacks("require") || self.is_held(shared.lease.as_ref(), token);
        match write.apply(Some(&shared.item), None, None) {
            Ok(Some(next)) if is_required => {
                shared.wrongs.extend((token < shared.acquired).then_some(Wrong::ReplacedWrote));
                shared.item = next;
                (Answer::Applied((None, Some(shared.item.clone()))), Some(()))
            }
            applied => {
                let lease = shared.lease.clone().filter(|_| !is_required);
                // The lease is the first step.
                let shows_item = applied.is_err() && (shared.shows_all || is_required);
                (Answer::Refused((lease, shows_item.then(|| shared.item.clone()))), None)
            }
        }
    }

    pub(super) fn meets_fenced(&self, shared: &mut Shared, token: u64, write: &Write) -> (Answer<Shown>, Option<()>) {
        let is_burn = matches!(write, Write::Burn { .. });
        let fence = (!is_burn).then_some(token);
        match write.apply(Some(&shared.item), fence, self.without) {
            Ok(Some(next)) => {
                let is_fall = !is_burn && token < shared.written;
                shared.wrongs.extend(is_fall.then_some(Wrong::ItemSawFall));
                shared.written = shared.written.max(token);
                shared.item = next;
                (Answer::Applied((None, Some(shared.item.clone()))), (!is_burn).then_some(()))
            }
            Ok(None) | Err(row::Refused) => (Answer::Refused((None, Some(shared.item.clone()))), None),
        }
    }
}

impl LeaseModel {
    pub(super) fn answered_required(
        &self,
        call: &mut Call,
        token: u64,
        write: &Write,
        answer: Answer<Shown>,
        is_pending: bool,
    ) -> Next<Self> {
        let Answer::Refused((lease, item)) = answer else { return Next::Told(Told::Applied(())) };
        let sent = Self::sent(write, None);
        let shown = item.map(|item| judge(&sent, Some(&item.seen())));
        let is_lease_lost = lease.is_some_and(|lease| is_lost(token, lease.token, lease.holder.is_some()));
        let facts = Facts { is_pending, is_lease_lost, can_burn: burn_helps(&sent, shown) };
        match after(judge_steps(shown.map(|verdict| (verdict, false)).into_iter()), facts) {
            After::AskRows if self.lacks("ask-rows") => Next::Told(Told::NotApplied),
            After::AskRows => {
                call.asks = Some(write.clone());
                Next::Pause
            }
            After::Burn => {
                let write = write.burn(None, Vec::new()).expect("it can be burned");
                Next::Send(Request::Fenced { token: 0, write })
            }
            follows => Self::settled(follows),
        }
    }

    pub(super) fn answered_lease(
        &self,
        shared: &mut Shared,
        call: &Call,
        request: &Request,
        now: u32,
        answer: Answer<Shown>,
        is_pending: bool,
    ) -> Next<Self> {
        let held = &mut shared.held[call.process];
        let clock = Self::clock(now + shared.ahead[call.process]);
        let later = self.times(clock).expires_at;
        let counted = |sent: u64| if self.lacks("counts-from-send") { later } else { sent };
        let (applied, refused) = match answer {
            Answer::Applied((lease, _)) => (Some(lease), None),
            Answer::Refused((lease, _)) => (None, lease),
        };
        match (request, applied, refused) {
            (
                Request::Acquire { expires_at: sent, .. } | Request::Renew { expires_at: sent, .. },
                Some(Some(lease)),
                _,
            ) => {
                *held = Some(lease.held(counted(*sent)));
                Next::Told(Told::Applied(()))
            }
            (Request::Acquire { id, expires_at, .. }, _, Some(lease)) => {
                let until = match judge_acquire(&lease.stored(), &[*id], *expires_at, is_pending) {
                    AfterAcquire::Mine => counted(*expires_at),
                    AfterAcquire::Replayed => lease.expires_at.saturating_sub(u64::from(self.skew) * 1000),
                    AfterAcquire::Held => return Next::Told(Told::NotApplied),
                    AfterAcquire::Released => return Next::Told(Told::Unknown),
                };
                *held = Some(lease.held(until));
                Next::Told(Told::Applied(()))
            }
            (Request::Renew { token, at, expires_at, .. }, _, Some(lease)) if lease.token == *token => {
                let stored = lease.stored();
                if stored.holder.is_none() {
                    *held = None;
                    return Next::Told(Told::NotApplied);
                }
                let facts = Facts { is_pending, ..Facts::default() };
                if let After::Landed(_) = after(judge_renewal(&stored, *at, *expires_at), facts) {
                    *held = Some(lease.held(counted(*expires_at)));
                    return Next::Told(Told::Applied(()));
                }
                // It is made again, on top of the others.
                let purge_at = seconds(clock + Leases::RETENTION);
                Next::Send(Request::Renew { token: *token, at: lease.renewals, expires_at: later, purge_at })
            }
            (Request::Renew { .. }, ..) => {
                *held = None;
                Next::Told(Told::NotApplied)
            }
            (Request::Release { .. }, Some(_), _) => Next::Told(Told::Applied(())),
            _ => Next::Told(Told::NotApplied),
        }
    }

    pub(super) fn answered_fenced(token: u64, write: &Write, answer: Answer<Shown>, is_pending: bool) -> Next<Self> {
        let is_burn = matches!(write, Write::Burn { .. });
        let (is_applied, item) = match answer {
            Answer::Applied((_, item)) => (true, item),
            Answer::Refused((_, item)) => (false, item),
        };
        let sent = Self::sent(write, (!is_burn).then_some(token));
        if is_applied {
            return Next::Told(if is_burn { Told::NotApplied } else { Told::Applied(()) });
        }
        let verdict = judge(&sent, item.as_ref().map(Row::seen).as_ref());
        let can_burn = !is_burn && burn_helps(&sent, Some(verdict));
        match after(verdict, Facts { is_pending: is_pending || is_burn, can_burn, ..Facts::default() }) {
            After::Burn => {
                let write = write.burn(item.map(|item| item.at), Vec::new()).expect("it can be burned");
                Next::Send(Request::Fenced { token, write })
            }
            follows => Self::settled(follows),
        }
    }

    pub(super) fn settled(follows: After) -> Next<Self> {
        Next::Told(match follows {
            After::Landed(_) => Told::Applied(()),
            After::NotApplied | After::Corrupt => Told::NotApplied,
            After::AskRows | After::Burn | After::Unknown => Told::Unknown,
        })
    }
}

impl LeaseRow {
    /// The row as production reads it.
    fn stored(&self) -> StoredLease {
        let holder = self.holder.map(|process| process.to_string());
        StoredLease {
            holder,
            token: self.token,
            renewals: self.renewals,
            expires_at: self.expires_at,
            acquire_id: vec![self.acquire_id],
        }
    }

    fn held(&self, until: u64) -> Held {
        Held { token: self.token, renewals: self.renewals, until }
    }
}
