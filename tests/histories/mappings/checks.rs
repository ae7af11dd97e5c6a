//! Checks a history by the requests, the answers and the applied writes.

use super::plan::{Buried, Change, Stand};
use super::plan::{Scene, Sent, Told, What};
use crate::harness::engine::Engine;
use crate::harness::faults::Applied;
use crate::harness::functions::MAPPINGS;
use crate::histories::history::{DENIED, NEVER_APPLIED};
use crate::histories::scene::{EPOCH, TTL};
use fencepost::lww::LwwTable;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub const OLDER_REPLACED: &str = "an older instance has replaced a newer one";
pub const REVIVED: &str = "a register has brought back what was deleted";
pub const APPLIED_LATER: &str = "told that it was superseded, and applied later";
const ANOTHER_END: &str = "the end does not follow from what was asked";

/// A finished history: all copies have arrived.
pub struct Mappings {
    pub scene: Arc<Scene>,
    pub sent: Vec<Sent>,
    pub applied: Vec<Applied>,
    /// The answer to the last look at each address.
    pub last: Vec<Told>,
}

/// One write to an address.
struct Step<'a> {
    /// The invocation that sent it.
    op: u64,
    time: Instant,
    before: Option<Stand>,
    /// `None` where TTL has removed the tombstone.
    after: Option<Stand>,
    row: &'a Value,
    is_copy_of_refused: bool,
}

impl Mappings {
    /// Whether the request or a copy of it was applied, at any time.
    pub fn has_landed(&self, sent: &Sent) -> bool {
        let kept = &self.scene.plan.addresses[sent.address].kept;
        self.applied.iter().any(|applied| applied.op == sent.number && applied.left_in(MAPPINGS, kept).is_some())
    }

    /// The state of the address at the start of the history.
    fn first(&self, address: usize) -> Option<Stand> {
        self.scene.plan.buried[address].as_ref().map(Buried::stand)
    }

    fn steps(&self, address: usize) -> Vec<Step<'_>> {
        let kept = &self.scene.plan.addresses[address].kept;
        let first = self.first(address);
        let mut steps = Vec::<Step<'_>>::new();
        for applied in &self.applied {
            if let Some(row) = applied.left_in(MAPPINGS, kept) {
                let before = steps.last().map_or(first.clone(), |step| step.after.clone());
                let after = row.is_object().then(|| Stand::of_row(row));
                let Applied { op, time, is_copy_of_refused, .. } = *applied;
                steps.push(Step { op, time, before, after, row, is_copy_of_refused });
            }
        }
        steps
    }
}

/// The broken promises, one sentence each.
pub fn violations(engine: &Engine, ended: &Mappings) -> Vec<String> {
    let mut found = Vec::new();
    for (address, of) in ended.scene.plan.addresses.iter().enumerate() {
        let steps = ended.steps(address);
        // No request has an effect until TTL has removed a tombstone that is newer than all of them.
        let has_newest = ended.scene.plan.buried[address].as_ref().is_some_and(|buried| buried.is_newest);
        for step in &steps {
            found.extend(moved_on(step).map(|why| format!("{why}: {:?}, then {}", step.before, step.row)));
        }
        let sent: Vec<_> = ended.sent.iter().filter(|sent| sent.address == address).collect();
        found.extend(sent.iter().filter_map(|one| Some(format!("{}: {one:?}", untrue(one, &sent, &steps)?))));
        let seen = match &ended.last[address] {
            Told::Shown(who) => Some(who.clone()),
            Told::ShownNothing => None,
            other => panic!("nothing goes wrong any more: {other:?}"),
        };
        let row = engine.row(MAPPINGS, "hostIp", &of.kept);
        let stored = Some(row).filter(|row| !row.is_null()).map(|row| Stand::of_row(&row));
        let stored = stored.filter(|stand| stand.live).map(|stand| stand.who);
        let expected = if has_newest { stored.clone() } else { ended.scene.plan.ends_with(address) };
        if seen != expected || stored != expected {
            found.push(format!("{ANOTHER_END}: {seen:?} is seen and {stored:?} stored, not {expected:?}"));
        }
    }
    found
}

/// An address moves only to newer instances. For one instance, it moves only from the mapping to the tombstone.
fn moved_on(step: &Step<'_>) -> Option<&'static str> {
    let Step { before, after, row, .. } = step;
    let Some(after) = after else {
        return (step.op != TTL).then_some("a row was removed");
    };
    let kept_until = row["_purgeAt"]["N"].as_str().and_then(|seconds| seconds.parse::<u64>().ok());
    let whole = row.get("cellId").is_some() == after.live;
    let month = LwwTable::<functions::mapping::Mapping>::TOMBSTONE_RETENTION;
    if !whole
        || kept_until.is_some_and(|seconds| seconds < (EPOCH + month).saturating_sub(Duration::from_mins(5)).as_secs())
    {
        return Some("neither a mapping that stays nor a tombstone that stays for a month");
    }
    let before = before.as_ref()?;
    match (before.live, after.live) {
        _ if before.who < after.who => None,
        (_, false) if before.who == after.who => None,
        (false, true) => Some(REVIVED),
        (true, true) if before.who == after.who => Some("a mapping was written where it stood"),
        (true, true) => Some(OLDER_REPLACED),
        (true, false) => Some("a delete has removed a newer instance"),
        (false, false) => Some("a tombstone has forgotten a newer one"),
    }
}

/// The mistake in the effect that an answer reports, if any. The judge checks the other answers.
fn untrue(sent: &Sent, all: &[&Sent], steps: &[Step<'_>]) -> Option<&'static str> {
    let What::Change(change) = &sent.what else { return None };
    let mut mine = steps.iter().filter(|step| step.op == sent.number);
    let in_batch = |other: &&&Sent| other.number == sent.number && !std::ptr::eq(**other, sent);
    let left = |step: &Step<'_>, live| step.after == Some(Stand { who: change.who().clone(), live });
    let during = |step: &Step<'_>| (sent.began..=sent.ended).contains(&step.time);
    let (is_true, why) = match &sent.told {
        // Another message of the batch may have had an effect.
        Told::NotApplied if all.iter().any(|other| in_batch(&other)) => return None,
        Told::NotApplied => (mine.next().is_none(), DENIED),
        Told::New => (mine.any(|step| left(step, true) && during(step)), NEVER_APPLIED),
        Told::Deleted | Told::AlreadyGone => {
            let was_live = |step: &Step<'_>| step.before.as_ref().is_some_and(|before| before.live);
            let found = |step: &Step<'_>| was_live(step) == (sent.told == Told::Deleted);
            let so = mine.any(|step| left(step, false) && found(step) && during(step));
            (so, "the outcome of a delete is not what it found")
        }
        // A second copy of a refused register may be applied after the tombstone has gone.
        Told::Superseded(_) if matches!(change, Change::Register(_)) => {
            (!mine.any(|step| step.time > sent.ended && !step.is_copy_of_refused), APPLIED_LATER)
        }
        Told::Folded => {
            let is_done = |told: &Told| told.is_definite() && *told != Told::Folded;
            let covers = |other: &What| matches!(other, What::Change(other) if other.who() >= change.who());
            let so = all.iter().filter(in_batch).any(|other| is_done(&other.told) && covers(&other.what));
            (so, "folded into what was not done")
        }
        Told::Shown(_) | Told::ShownNothing => (false, "a change was answered as a look-up"),
        Told::Same | Told::Superseded(_) | Told::Unknown => return None,
    };
    (!is_true).then_some(why)
}
