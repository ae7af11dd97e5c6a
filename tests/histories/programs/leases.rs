//! Plays leases, and tables where the newest instance wins.

use super::plan::{LeaseOp, NewestOp};
use super::player::{LEADERS, LEASES, Noted, Player};
use super::records::Leader;
use super::told::{Outcome, Told};
use fencepost::lease::{Acquired, LeaseTerms};
use fencepost::lww::{OrderKey, Registration};
use fencepost::{Call, Error, Failure, IdempotencyClaim, IdempotencyError};
use std::time::Duration;

impl Player {
    pub async fn newest(&self, op: &NewestOp, call: &Call, noted: &Noted<'_>) -> Told {
        noted.own.plays("Store::lww_table");
        noted.own.plays("LwwTable::in_call");
        let (mut leaders, shard) = (self.store.lww_table::<Leader>(LEADERS), self.client.scene.name.as_str());
        if self.client.number == 1 {
            noted.own.plays("LwwTable::with_tombstone_retention");
            leaders = leaders.with_tombstone_retention(Duration::from_hours(2));
        }
        let leaders = leaders.in_call(call);
        let done = match op {
            NewestOp::Register(term, node) => {
                noted.own.plays("LwwTable::register");
                let leader = Leader { term: *term, node: (*node).to_owned(), address: format!("{term}") };
                leaders.register(shard, &leader).await.map(|told| match told {
                    Registration::Differs(_) => Outcome::Failed("two values of one instance".to_owned()),
                    _ => Outcome::Refused,
                })
            }
            NewestOp::Delete(term, node) => {
                noted.own.plays("LwwTable::delete");
                let instance = OrderKey { order: *term, name: node.map(str::to_owned) };
                leaders.delete(shard, &instance).await.map(|_| Outcome::Refused)
            }
            NewestOp::Get => {
                noted.own.plays("LwwTable::get");
                leaders.get(shard).await.map(|_| Outcome::Refused)
            }
        };
        done.map_or_else(Told::from, Told::of)
    }

    pub async fn lease(&self, op: LeaseOp, call: &Call, noted: &Noted<'_>) -> Told {
        let plays = |name| noted.own.plays(name);
        plays("Store::leases");
        plays("Leases::in_call");
        plays("Leases::with_clock_skew");
        // Clocks of clients are off by up to five minutes.
        let leases = self.store.leases(LEASES).with_clock_skew(Duration::from_mins(10)).in_call(call);
        let (key, holder) = (&*self.client.scene.name, format!("client {}", self.client.number));
        plays("LeaseTerms::renewed_after");
        plays("LeaseTerms::new");
        let mut terms =
            LeaseTerms::renewed_after(Duration::from_secs(10), Duration::from_secs(4)).expect("long enough");
        if self.client.number == 1 {
            terms = LeaseTerms::new(Duration::from_mins(5)).expect("short enough");
        }
        let own = self.lease.lock().expect("no panic").take();
        let acquired = match (op, own) {
            (LeaseOp::Look, own) => {
                plays("Leases::get");
                plays("Leases::stored");
                *self.lease.lock().expect("no panic") = own;
                let seen = (leases.stored(key).await, leases.get(key).await);
                return seen.0.and(seen.1).map_or_else(Told::from, |_| Told::of(Outcome::Refused));
            }
            (LeaseOp::Renew, Some(mut lease)) => {
                plays("Leases::renew");
                held(leases.renew(&mut lease, terms).await).map(|renewed| renewed.map(|()| lease))
            }
            (LeaseOp::RenewAt, Some(lease)) => {
                plays("Leases::renew_at");
                held(leases.renew_at(lease.token(), Some(lease.renewals()), terms).await)
            }
            (LeaseOp::ReleaseAt, Some(lease)) => {
                plays("Leases::release_at");
                held(leases.release_at(lease.token(), Some(lease.renewals())).await).map(|_| None)
            }
            (LeaseOp::Release, Some(lease)) => {
                plays("Leases::release");
                held(leases.release(lease).await).map(|_| None)
            }
            (LeaseOp::AcquireWithin, _) => {
                plays("Leases::acquire_within");
                held(leases.acquire_within(key, &holder, terms, Duration::from_secs(2)).await)
            }
            (LeaseOp::AcquireOnce, _) => {
                plays("Leases::acquire_once");
                let claim = IdempotencyClaim::new(&["lease", key], &[&holder]);
                match leases.acquire_once(key, &holder, terms, &claim).await {
                    Ok(Acquired::New(lease) | Acquired::Replayed(lease)) => Ok(Some(lease)),
                    Err(IdempotencyError::Failed(failure)) => Err(failure),
                    Err(_) => Ok(None),
                }
            }
            _ => {
                plays("Leases::acquire");
                held(leases.acquire(key, &holder, terms).await)
            }
        };
        match acquired {
            Ok(lease) => {
                *self.lease.lock().expect("no panic") = lease;
                Told::of(Outcome::Refused)
            }
            Err(failure) => failure.into(),
        }
    }
}

/// `None` if the lease is not held.
fn held<T, R>(told: Result<T, Error<R>>) -> Result<Option<T>, Failure> {
    match told {
        Ok(held) => Ok(Some(held)),
        Err(Error::Refused(_)) => Ok(None),
        Err(Error::Failed(failure)) => Err(failure),
    }
}
