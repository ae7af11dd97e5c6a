//! Plays leases, and tables where the newest instance wins.

use super::plan::{LeaseOp, NewestOp};
use super::player::{LEADERS, Noted, Player};
use super::records::Leader;
use super::told::{About, Hold, Stand, Told};
use fencepost::lease::{Acquired, Lease, LeaseHeld, LeaseLost, LeaseTerms, NotHeldAt};
use fencepost::lww::{Deletion, OrderKey, Registration};
use fencepost::{Call, Error, IdempotencyClaim, IdempotencyError};
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
        let superseded = |by: &OrderKey| About::SupersededBy(Stand::of(by.order, by.name.as_deref()));
        let done = match op {
            NewestOp::Register(term, node) => {
                noted.own.plays("LwwTable::register");
                let leader = Leader { term: *term, node: (*node).to_owned(), address: format!("{term}") };
                leaders.register(shard, &leader).await.map(|told| match told {
                    Registration::New => About::Applied,
                    Registration::Same => About::Stands,
                    Registration::Differs(_) => panic!("two values of one instance"),
                    Registration::Superseded { by } => superseded(&by),
                })
            }
            NewestOp::Delete(term, node) => {
                noted.own.plays("LwwTable::delete");
                let instance = OrderKey { order: *term, name: node.map(str::to_owned) };
                leaders.delete(shard, &instance).await.map(|told| match told {
                    Deletion::Deleted | Deletion::AlreadyGone => About::Applied,
                    Deletion::Superseded { by } => superseded(&by),
                })
            }
            NewestOp::Get => {
                noted.own.plays("LwwTable::get");
                let stand = |leader: Leader| Stand::of(leader.term, Some(&leader.node));
                leaders.get(shard).await.map(|seen| About::Shows(seen.map(stand)))
            }
        };
        done.map_or_else(Told::from, Told::about)
    }

    /// Stops to believe in the lease. Part of some processes has not heard of the release, and goes on under its token.
    fn is_released(&self, lease: &Lease) {
        self.stops_believing(lease.token().number());
        *self.lease.lock().expect("no panic") = (self.client.number % 2 == 1).then(|| lease.clone());
    }

    pub async fn lease(&self, op: LeaseOp, call: &Call, noted: &Noted<'_>) -> Told {
        let plays = |name| noted.own.plays(name);
        plays("Store::leases");
        plays("Leases::in_call");
        plays("Leases::with_clock_skew");
        plays("Leases::with_key_name");
        let leases = self.leases(call);
        let (key, holder, ahead) = (&*self.client.scene.name, format!("client {}", self.client.number), self.ahead());
        plays("LeaseTerms::renewed_after");
        plays("LeaseTerms::new");
        let mut terms =
            LeaseTerms::renewed_after(Duration::from_secs(10), Duration::from_secs(4)).expect("long enough");
        if self.client.number == 1 {
            terms = LeaseTerms::new(Duration::from_mins(5)).expect("short enough");
        }
        let own = self.lease.lock().expect("no panic").take();
        let told = match (op, own) {
            (LeaseOp::Look, own) => {
                plays("Leases::get");
                plays("Leases::stored");
                *self.lease.lock().expect("no panic") = own;
                let seen = (leases.stored(key).await, leases.get(key).await);
                return seen.0.and(seen.1).map_or_else(Told::from, |_| Told::about(About::Nothing));
            }
            (LeaseOp::Renew, Some(mut lease)) => {
                plays("Leases::renew");
                leases.renew(&mut lease, terms).await.map(|()| lease).map_err(|error| told(error, lost))
            }
            (LeaseOp::RenewAt, Some(lease)) => {
                plays("Leases::renew_at");
                // With the number of renewals, or without it.
                let at = (self.client.number == 2).then_some(lease.renewals());
                leases
                    .renew_at(lease.token(), at, terms)
                    .await
                    .map_err(|error| told(error, |refused| not_held(&refused)))
            }
            (LeaseOp::ReleaseAt, Some(lease)) => {
                plays("Leases::release_at");
                self.is_released(&lease);
                let released = leases.release_at(lease.token(), Some(lease.renewals())).await;
                return released.map_or_else(
                    |error| told(error, |refused| not_held(&refused)),
                    |()| Told::about(About::LeaseReleased),
                );
            }
            (LeaseOp::Release, Some(lease)) => {
                plays("Leases::release");
                self.is_released(&lease);
                let released = leases.release(lease).await;
                return released.map_or_else(|error| told(error, lost), |()| Told::about(About::LeaseReleased));
            }
            (LeaseOp::AcquireWithin, _) => {
                plays("Leases::acquire_within");
                let acquired = leases.acquire_within(key, &holder, terms, Duration::from_secs(2)).await;
                acquired.map_err(|error| told(error, held))
            }
            (LeaseOp::AcquireOnce, _) => {
                plays("Leases::acquire_once");
                let claim = IdempotencyClaim::new(&["lease", key], &[&holder]).expect("a scope");
                match leases.acquire_once(key, &holder, terms, &claim).await {
                    Ok(Acquired::New(lease) | Acquired::Replayed(lease)) => Ok(lease),
                    Err(IdempotencyError::Failed(failure)) => Err(failure.into()),
                    Err(IdempotencyError::Refused(refused)) => Err(Told::about(held(refused))),
                    // Another holder has used the claim.
                    Err(IdempotencyError::KeyReused) => Err(Told::about(About::Nothing)),
                }
            }
            _ => {
                plays("Leases::acquire");
                leases.acquire(key, &holder, terms).await.map_err(|error| told(error, held))
            }
        };
        match told {
            Ok(lease) => {
                self.believes(lease.token().number(), lease.remaining(), ahead.min(self.ahead()));
                let about = About::Lease(hold(&lease));
                *self.lease.lock().expect("no panic") = Some(lease);
                Told::about(about)
            }
            Err(told) => told,
        }
    }
}

fn hold(lease: &Lease) -> Hold {
    let expires_at = lease.expires_at().epoch_millis().expect("after 1970");
    let holder = Some(lease.holder().to_owned());
    Hold { holder, token: lease.token().number(), renewals: lease.renewals(), expires_at }
}

fn told<R>(error: Error<R>, refused: impl Fn(R) -> About) -> Told {
    match error {
        Error::Refused(why) => Told::about(refused(why)),
        Error::Failed(failure) => failure.into(),
    }
}

fn held(LeaseHeld { holder, until }: LeaseHeld) -> About {
    About::Held(holder, until.epoch_millis().expect("after 1970"))
}

fn lost(_: LeaseLost) -> About {
    About::LeaseLost
}

fn not_held(refused: &NotHeldAt) -> About {
    if matches!(refused, NotHeldAt::Lost(_)) { About::LeaseLost } else { About::LeaseConflict }
}
