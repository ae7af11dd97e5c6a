//! The conclusions of a caller from an answer, by the functions of production.

use super::{Call, Held, LeaseModel, LeaseRow, Request, Shared, Shown, seconds};
use crate::protocol::{Answer, Next, Told};
use crate::row::{Row, Write};
use fencepost::lease::{Leases, StoredLease};
use fencepost::testing::{
    After, AfterAcquire, AfterRenewal, Facts, after, burn_helps, is_lost, judge, judge_acquire, judge_renewal,
    judge_steps,
};

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
                match judge_renewal(&lease.stored(), *at, *expires_at, is_pending) {
                    AfterRenewal::Lost => {
                        *held = None;
                        Next::Told(Told::NotApplied)
                    }
                    AfterRenewal::Renewed => {
                        *held = Some(lease.held(counted(*expires_at)));
                        Next::Told(Told::Applied(()))
                    }
                    // It is made again, on top of the others.
                    AfterRenewal::Moved | AfterRenewal::MovedPerhapsBy => {
                        let purge_at = seconds(clock + Leases::RETENTION);
                        Next::Send(Request::Renew { token: *token, at: lease.renewals, expires_at: later, purge_at })
                    }
                }
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
        StoredLease::of(holder, self.token, self.renewals, self.expires_at, vec![self.acquire_id])
    }

    fn held(&self, until: u64) -> Held {
        Held { token: self.token, renewals: self.renewals, until }
    }
}
