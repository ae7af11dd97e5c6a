//! The clients' view of one address, for a judge that knows only which instance is newer.

use super::checks::Mappings;
use super::plan::{Buried, Change, Stand, Who};
use super::plan::{Sent, Told, What};
use crate::harness::faults::Applied;
use crate::harness::functions::MAPPINGS;
use crate::histories::scene::TTL;
use judges::linearizable::{self, Object, Seen, assert_no_order};
use tokio::time::Instant;

/// The first client number for messages of the queue.
const QUEUE: u64 = 1 << 32;

/// The state of an address. It moves only to newer instances, and for one instance only from the mapping to the
/// tombstone.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Address(Option<Stand>);

impl Address {
    fn shown(&self) -> Option<&Who> {
        self.0.as_ref().filter(|stand| stand.live).map(|stand| &stand.who)
    }

    /// Whether this instance can be registered: the address has none, or an older one.
    fn is_free_for(&self, who: &Who) -> bool {
        self.0.as_ref().is_none_or(|stand| stand.who < *who)
    }

    /// Whether a delete of this instance has an effect: the address has none that is newer.
    fn is_covered_by(&self, who: &Who) -> bool {
        self.0.as_ref().is_none_or(|stand| stand.who <= *who)
    }

    fn stand(&mut self, who: &Who, live: bool) -> bool {
        self.0 = Some(Stand { who: who.clone(), live });
        true
    }
}

#[derive(Clone, PartialEq, Debug)]
enum Op {
    Asked(What),
    /// TTL removes a tombstone.
    Purge,
}

impl Object for Address {
    type Op = Op;
    type Told = Told;

    fn may_do(&mut self, op: &Op) {
        match op {
            Op::Asked(What::Change(Change::Register(who))) if self.is_free_for(who) => self.stand(who, true),
            Op::Asked(What::Change(Change::Delete(who))) if self.is_covered_by(who) => self.stand(who, false),
            _ => false,
        };
    }

    fn does(&mut self, op: &Op, told: &Told) -> bool {
        let Op::Asked(what) = op else { return self.shown().is_none() && self.0.take().is_some() };
        match (what, told) {
            (What::LookUp, Told::Shown(who)) => self.shown() == Some(who),
            (What::LookUp, Told::ShownNothing) => self.shown().is_none(),
            (What::Change(Change::Register(who)), Told::New) => self.is_free_for(who) && self.stand(who, true),
            // The instance is there, by any send of any request.
            (What::Change(Change::Register(who)), Told::Same) => {
                self.shown() == Some(who) || (self.is_free_for(who) && self.stand(who, true))
            }
            (What::Change(Change::Delete(who)), Told::Deleted) => {
                self.shown().is_some() && self.is_covered_by(who) && self.stand(who, false)
            }
            (What::Change(Change::Delete(who)), Told::AlreadyGone) => self.is_covered_by(who) && self.stand(who, false),
            (What::Change(change), Told::Superseded(by)) => {
                let stands = |stand: &Stand| by.as_ref().is_none_or(|by| *by == stand.who);
                let is_superseded = match change {
                    Change::Register(who) => !self.is_free_for(who) && self.shown() != Some(who),
                    Change::Delete(who) => !self.is_covered_by(who),
                };
                is_superseded && self.0.as_ref().is_some_and(stands)
            }
            _ => false,
        }
    }
}

/// The judge's objections to this history.
pub fn violations(ended: &Mappings) -> Vec<String> {
    let addresses = ended.scene.plan.addresses.iter().zip(&ended.scene.plan.buried).enumerate();
    let judged = addresses.filter_map(|(address, (of, buried))| {
        let mut seen = seen(address, &ended.sent);
        seen.extend(purges(&of.kept, &ended.applied));
        linearizable::judge(Address(buried.as_ref().map(Buried::stand)), seen).err()
    });
    judged.collect()
}

fn seen(address: usize, sent: &[Sent]) -> Vec<Seen<Op, Told>> {
    let mut seen = Vec::new();
    for (place, sent) in (QUEUE..).zip(sent).filter(|(_, sent)| sent.address == address) {
        let [began, ended] = [sent.began, sent.ended].map(Instant::into_std);
        // The messages of a batch are handled at once: each counts as a client of its own.
        let client = sent.client.unwrap_or(place);
        let as_told = |told| Seen { client, began, ended, op: Op::Asked(sent.what.clone()), told };
        let is_change = sent.what != What::LookUp;
        // Superseded is the answer to the last send. An earlier send may have had an effect before. After TTL has
        // removed the tombstone, a second copy may have one too.
        if is_change && matches!(sent.told, Told::Unknown | Told::Superseded(_)) {
            seen.push(as_told(None));
        }
        if !matches!(sent.told, Told::Unknown | Told::NotApplied | Told::Folded) {
            seen.push(as_told(Some(sent.told.clone())));
        }
    }
    seen
}

/// The removals by TTL, by a client of their own.
fn purges(address: &str, applied: &[Applied]) -> impl Iterator<Item = Seen<Op, Told>> {
    let is_purge = |applied: &&Applied| applied.op == TTL && applied.left_in(MAPPINGS, address).is_some();
    applied.iter().filter(is_purge).map(|applied| {
        let time = applied.time.into_std();
        Seen { client: QUEUE - 1, began: time, ended: time, op: Op::Purge, told: Some(Told::AlreadyGone) }
    })
}

#[test]
fn nothing_is_refused_for_a_newer_one_that_nobody_has_asked_for() {
    let who = || Who::one(100, "i-a");
    let asks = |began, change, told| (1, began, began + 10, Op::Asked(What::Change(change)), Some(told));
    let registers = |told| asks(0, Change::Register(who()), told);
    assert_no_order(Address::default(), vec![registers(Told::Superseded(None))]);
    let deletes = asks(20, Change::Delete(who()), Told::Superseded(None));
    assert_no_order(Address::default(), vec![registers(Told::New), deletes]);
}
