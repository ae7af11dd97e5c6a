//! One process that sometimes leads. It reaches the lease and the protected items over wires of their own.

use super::record::{Belief, Done, Told, What};
use super::record::{REPORTS, Scene, name};
use crate::harness::faults::{Broken, Freezing, Network, Wire, store_on};
use crate::harness::functions::LEASES;
use crate::histories::scene::EPOCH;
use fencepost::lease::{Acquired, Lease, LeaseHeld, LeaseTerms, Leases, Unfinished};
use fencepost::{
    Call, Deadline, Edit, Error, Exists, FencingToken, IdempotencyClaim, Key, Reads, Record, Table, UpdateError,
    VersionError,
};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

/// A change leaves the number of its operation. An add counts one more.
#[derive(Clone, Debug, Serialize, Deserialize, Record)]
#[record(key = "reportId")]
struct Report {
    operations: Vec<u64>,
    added: i64,
}

impl Report {
    fn new(number: u64) -> Self {
        Report { operations: vec![number], added: 0 }
    }

    fn appended(&self, number: u64) -> Self {
        let mut next = self.clone();
        next.operations.push(number);
        next
    }
}

pub struct Leader {
    scene: Arc<Scene>,
    network: Arc<Network>,
    pub index: usize,
    lease_wire: Wire,
    leases: Leases,
    wire: Wire,
    reports: Table<Report>,
    /// The tokens of its former leases.
    old: Vec<FencingToken>,
}

struct Held {
    lease: Lease,
    length: Duration,
}

impl Leader {
    pub fn new(scene: &Arc<Scene>, network: &Arc<Network>, index: usize) -> Self {
        let (start, ahead) = (scene.start, scene.offsets[index]);
        let now = move || SystemTime::UNIX_EPOCH + EPOCH + ahead + start.elapsed();
        let (lease_wire, wire) = (Wire::new(network), Wire::new(network));
        let skew = if scene.broken == Broken::NoSkew { Duration::ZERO } else { Leases::CLOCK_SKEW };
        let leases = store_on(network, &lease_wire.client(), now).leases(LEASES).with_clock_skew(skew);
        let store = store_on(network, &wire.client(), now);
        let reports = store.table(REPORTS);
        let (scene, network) = (scene.clone(), network.clone());
        Leader { scene, network, index, lease_wire, leases, wire, reports, old: Vec::new() }
    }

    pub async fn work(mut self, turns: u64) -> Self {
        for _ in 0..turns {
            self.pause(3_000).await;
            let network = self.network.clone();
            Freezing::new(&network, self.lead()).await;
            if self.scene.days && self.below(3) == 0 {
                // No process goes on for days under a lost token.
                self.old.clear();
                sleep(Leases::RETENTION + Duration::from_secs(self.below(86_400))).await;
            }
        }
        self
    }

    fn below(&self, bound: u64) -> u64 {
        self.network.below(bound)
    }

    async fn pause(&self, millis: u64) {
        sleep(Duration::from_millis(self.below(millis))).await;
    }

    /// Begins an operation whose requests go over this wire.
    fn begin(&self, wire: &Wire, token: Option<u64>) -> (u64, Instant) {
        let number = self.scene.numbers.fetch_add(1, Ordering::Relaxed);
        wire.works_on(number);
        if let Some(token) = token {
            self.scene.tokens.lock().expect("no panic").insert(number, token);
        }
        (number, Instant::now())
    }

    fn end(&self, (number, began): (u64, Instant), what: What, token: Option<u64>, told: &Told) {
        let (leader, ended) = (self.index, Instant::now());
        let done = Done { number, leader, what, token, began, ended, told: told.clone() };
        self.scene.note(done);
    }

    fn call(&self) -> Call {
        Call::new(Deadline::within(Duration::from_millis(200 + self.below(2_500))))
    }

    fn terms(length: Duration) -> LeaseTerms {
        LeaseTerms::new(length).expect("long enough")
    }

    async fn lead(&mut self) {
        let length = Duration::from_millis(1_000 + self.below(9_000));
        let led = if self.below(4) == 0 { self.by_the_book(length).await } else { self.by_hand(length).await };
        self.old.extend(led);
        // Part of this process has not heard of the loss yet.
        for token in self.old.clone() {
            if self.below(3) == 0 {
                self.write(&token).await;
            }
        }
    }

    /// Works under a lease that is renewed meanwhile.
    async fn by_the_book(&self, length: Duration) -> Option<FencingToken> {
        let begun = self.begin(&self.lease_wire, None);
        let call = Call::new(Deadline::within(length * 8));
        let under = OnceLock::new();
        let work = async |token: FencingToken| {
            under.get_or_init(|| token.clone());
            for _ in 0..=self.below(6) {
                let now = Instant::now();
                self.believe(&token, now, now + Duration::from_nanos(1));
                self.write(&token).await;
                sleep(Duration::from_millis(self.below(2_000))).await;
            }
        };
        let (key, name) = (&self.scene.name, name(self.index));
        let leases = self.leases.in_call(&call);
        let worked = leases.while_held(key, &name, Self::terms(length), work);
        let told = match Box::pin(worked).await {
            Ok(()) => Told::Done,
            Err(Error::Refused(Unfinished::Held(LeaseHeld { holder, until }))) => {
                Told::Held { holder, until: until.epoch_millis().expect("after 1970") }
            }
            Err(Error::Refused(Unfinished::Lost)) => Told::Fenced,
            Err(Error::Refused(Unfinished::Unknown { .. })) => Told::Unknown,
            Err(Error::Failed(failure)) => failure.into(),
            Err(error) => panic!("no such thing happens here: {error}"),
        };
        let token = under.into_inner();
        self.end(begun, What::Work, token.as_ref().map(FencingToken::number), &told);
        token
    }

    /// Acquires, writes and renews at random, then releases or not.
    async fn by_hand(&self, length: Duration) -> Option<FencingToken> {
        let mut held = Held { lease: self.acquire(length).await?, length };
        let token = held.lease.token().clone();
        for _ in 0..2 + self.below(6) {
            match self.below(9) {
                0..=4 => drop(self.write(&token).await),
                5 | 6 => match self.renew(&mut held).await {
                    Told::Fenced | Told::NotFound => self.stops_believing(&token, Instant::now()),
                    _ => self.believe_in(&held.lease),
                },
                _ => self.pause(u64::try_from(length.as_millis()).expect("small")).await,
            }
            self.pause(400).await;
        }
        let copy = Held { lease: held.lease.clone(), length };
        match self.below(6) {
            // The process died.
            0 => self.stops_believing(&token, Instant::now()),
            1 => {
                self.stops_believing(&token, Instant::now());
                let begun = self.begin(&self.lease_wire, Some(token.number()));
                let at = Some(held.lease.renewals());
                let told = self.leases.in_call(&self.call()).release_at(&token, at).await;
                let told = told.map_or_else(Told::from, |()| Told::Done);
                self.end(begun, What::Release { at }, Some(token.number()), &told);
            }
            _ => {
                self.stops_believing(&token, Instant::now());
                let begun = self.begin(&self.lease_wire, Some(token.number()));
                let told = self.leases.in_call(&self.call()).release(held.lease).await;
                let told = told.map_or_else(Told::from, |()| Told::Done);
                self.end(begun, What::Release { at: None }, Some(token.number()), &told);
            }
        }
        if self.below(3) == 0 {
            // The renewing part does not know of the release. Nothing relies on its answer.
            self.renew(&mut { copy }).await;
        }
        Some(token)
    }

    async fn acquire(&self, length: Duration) -> Option<Lease> {
        let (key, name, terms) = (&self.scene.name, name(self.index), Self::terms(length));
        let how = self.below(4);
        let mut claim = None;
        for _ in 0..3 {
            let begun = self.begin(&self.lease_wire, None);
            let claim = *claim.get_or_insert(begun.0);
            let call = self.call();
            let (what, acquired) = match how {
                0 => {
                    let acquired = self.leases.in_call(&call).acquire(key, &name, terms).await;
                    (What::Acquire { claim }, acquired.map_err(Told::from))
                }
                1 => {
                    let id = IdempotencyClaim::new(&[key, &claim.to_string()], &[]);
                    let acquired = self.leases.in_call(&call).acquire_once(key, &name, terms, &id).await;
                    let lease = |acquired| match acquired {
                        Acquired::New(lease) | Acquired::Replayed(lease) => lease,
                    };
                    (What::Acquire { claim }, acquired.map(lease).map_err(Told::from))
                }
                _ => {
                    let call = Call::new(Deadline::within(length * 3));
                    let acquired = self.leases.in_call(&call).acquire_within(key, &name, terms, length * 2).await;
                    (What::AcquireWithin, acquired.map_err(Told::from))
                }
            };
            match acquired {
                Ok(lease) => {
                    self.end(begun, what, Some(lease.token().number()), &Told::lease(&lease));
                    self.believe_in(&lease);
                    return Some(lease);
                }
                Err(told) => {
                    self.end(begun, what, None, &told);
                    if told != Told::Unknown || how != 1 {
                        return None;
                    }
                }
            }
        }
        None
    }

    async fn renew(&self, held: &mut Held) -> Told {
        let token = held.lease.token().clone();
        let number = token.number();
        let begun = self.begin(&self.lease_wire, Some(number));
        let call = self.call();
        let mut what = What::Renew { at: None };
        let told = match self.below(10) {
            way @ 0..=1 => {
                // As a request asks, with If-Match or without.
                let at = (way == 0).then(|| held.lease.renewals());
                what = if at.is_some() { What::Renew { at } } else { What::Extend };
                match self.leases.in_call(&call).renew_at(&token, at, Self::terms(held.length)).await {
                    Ok(lease) => {
                        held.lease = lease;
                        Told::lease(&held.lease)
                    }
                    Err(error) => error.into(),
                }
            }
            way => {
                let length = match way {
                    2 | 3 => Duration::from_millis(1_000 + self.below(2_000)),
                    4 => held.length + Duration::from_millis(self.below(5_000)),
                    _ => held.length,
                };
                // A renewal for less time shortens the belief from then on.
                self.stops_believing(&token, begun.1 + length);
                match self.leases.in_call(&call).renew(&mut held.lease, Self::terms(length)).await {
                    Ok(()) => {
                        held.length = length;
                        Told::lease(&held.lease)
                    }
                    Err(error) => error.into(),
                }
            }
        };
        self.end(begun, what, Some(number), &told);
        told
    }

    /// Believes in the lease for as long as it says, and no longer.
    fn believe_in(&self, lease: &Lease) {
        let now = Instant::now();
        self.stops_believing(lease.token(), now);
        self.believe(lease.token(), now, now + lease.remaining());
    }

    fn believe(&self, token: &FencingToken, from: Instant, until: Instant) {
        let belief = Belief { leader: self.index, token: token.number(), from, until };
        self.scene.beliefs.lock().expect("no panic").push(belief);
    }

    fn stops_believing(&self, token: &FencingToken, at: Instant) {
        for belief in self.scene.beliefs.lock().expect("no panic").iter_mut() {
            if (belief.leader, belief.token) == (self.index, token.number()) {
                belief.until = belief.until.min(at);
            }
        }
    }

    /// Makes a protected write under this token, even if the lease is lost.
    async fn write(&self, token: &FencingToken) -> Told {
        let what = match self.below(10) {
            0..=2 => What::Append,
            3 => What::Add,
            4 => What::Delete,
            5..=8 => What::Require,
            _ => What::RequireDelete,
        };
        self.writes(what, token).await
    }

    async fn writes(&self, what: What, token: &FencingToken) -> Told {
        let begun = self.begin(&self.wire, Some(token.number()));
        let (number, call) = (begun.0, self.call());
        let told = match what {
            What::Append => self.append(number, token, &call).await,
            What::Add => self.add(token, &call).await,
            What::Delete => self.delete(token, &call).await,
            _ => self.require(number, what == What::RequireDelete, token, &call).await,
        };
        self.end(begun, what, Some(token.number()), &told);
        told
    }

    async fn append(&self, number: u64, token: &FencingToken, call: &Call) -> Told {
        let fenced = self.reports.fenced_by(token);
        let key = Key::from(self.scene.fenced().as_str());
        let append = |report: &Report| Ok::<_, Infallible>(Some(report.appended(number)));
        match fenced.in_call(call).update_with_retry(&key, append).await {
            Ok(_) => return Told::Done,
            Err(UpdateError::NotFound) => {}
            Err(UpdateError::Failed(failure)) => return failure.into(),
        }
        match fenced.in_call(call).create(&key, &Report::new(number)).await {
            Ok(_) => Told::Done,
            Err(Error::Refused(Exists(_))) => Told::Conflict,
            Err(Error::Failed(failure)) => failure.into(),
        }
    }

    /// Adds within a window.
    async fn add(&self, token: &FencingToken, call: &Call) -> Told {
        let fenced = self.reports.fenced_by(token);
        let key = Key::from(self.scene.fenced().as_str());
        match fenced.in_call(call).edit(&key, &Edit::add("added", 1, 0..=1_000_000)).await {
            Ok(_) => Told::Done,
            Err(UpdateError::NotFound) => Told::NotFound,
            Err(UpdateError::Failed(failure)) => failure.into(),
            Err(refused) => unreachable!("a small whole number: {refused}"),
        }
    }

    /// Deletes at a version that another leader may have shown: only the fence can refuse it.
    async fn delete(&self, token: &FencingToken, call: &Call) -> Told {
        let key = Key::from(self.scene.fenced().as_str());
        let there = match self.reports.in_call(call).get(&key).await {
            Ok(Some(there)) => there.at,
            Ok(None) => return Told::NotFound,
            Err(failure) => return failure.into(),
        };
        match self.reports.fenced_by(token).in_call(call).delete_at_version(&key, there).await {
            Ok(_) => Told::Done,
            Err(VersionError::NotFound) => Told::NotFound,
            Err(VersionError::Conflict(_)) => Told::Conflict,
            Err(VersionError::Failed(failure)) => failure.into(),
        }
    }

    async fn require(&self, number: u64, deletes: bool, token: &FencingToken, call: &Call) -> Told {
        let mut reads = Reads::new();
        let report = reads.item("report", &self.reports, self.scene.required().as_str());
        let lease = reads.lease("lease", token);
        let store = self.reports.store().in_call(call);
        let written = store.transact_with_retry(reads, |attempt| {
            match attempt.get(report)? {
                Some(_) if deletes => drop(attempt.delete_at(report)?),
                Some(there) => drop(attempt.update_at(report, &there.value.appended(number))?),
                None if deletes => return Err(Error::Refused(())),
                None => drop(attempt.put_if_absent(report, &Report::new(number))?),
            }
            attempt.require(lease)?;
            Ok(())
        });
        match written.await {
            Ok(()) => Told::Done,
            Err(Error::Refused(())) => Told::NotFound,
            Err(Error::Failed(failure)) => failure.into(),
        }
    }

    /// Acquires the lease, which must be free in the calm, and writes under it. Returns the mistakes.
    pub async fn takes_over(&self) -> Vec<String> {
        let begun = self.begin(&self.lease_wire, None);
        let call = Call::new(Deadline::within(Duration::from_secs(5)));
        let terms = Self::terms(Duration::from_mins(2));
        let lease = match self.leases.in_call(&call).acquire(&self.scene.name, &name(self.index), terms).await {
            Ok(lease) => lease,
            Err(error) => return vec![format!("long after, it is not free: {error:?}")],
        };
        let what = What::Acquire { claim: begun.0 };
        self.end(begun, what, Some(lease.token().number()), &Told::lease(&lease));
        let mut wrong = Vec::new();
        for what in [What::Append, What::Add, What::Require] {
            let told = self.writes(what, lease.token()).await;
            if told != Told::Done {
                wrong.push(format!("the last holder cannot {what:?}: {told:?}"));
            }
        }
        wrong
    }

    /// Writes under each token of its former leases. Every write must be refused for good. Returns the mistakes.
    pub async fn wakes_up(&self, calm: &Arc<Network>) -> Vec<String> {
        let again = Leader::new(&self.scene, calm, self.index);
        let mut wrong = Vec::new();
        for token in &self.old {
            for what in [What::Append, What::Add, What::Delete, What::Require, What::RequireDelete] {
                let told = again.writes(what, token).await;
                if told != Told::Fenced {
                    wrong.push(format!("after waking up, {what:?} is told {told:?}"));
                }
            }
        }
        wrong
    }
}
