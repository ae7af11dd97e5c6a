//! Every claim about a history, from what was asked and answered and from what the engine applied.

use super::plan::{Buried, Change, Stand, Who};
use super::scene::{EPOCH, Scene, Sent, TTL, Told, What};
use crate::harness::engine::Engine;
use crate::harness::faults::Applied;
use crate::harness::functions::MAPPINGS;
use fencepost::lww::LwwTable;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub const OLDER_REPLACED: &str = "an older instance has replaced a newer one";
pub const REVIVED: &str = "a register has brought back what was deleted";
pub const NEWER_REFUSED: &str = "a register was refused where nothing newer stood";
pub const LEFT_STANDING: &str = "a delete was told of a newer instance where none stood";
pub const APPLIED_LATER: &str = "told that it was superseded, and applied later";
pub const SEEN_AGAIN: &str = "deleted, and seen again";
const ANOTHER_END: &str = "the end does not follow from what was asked";

/// A history that is over: all copies have arrived.
pub struct Ended {
    pub scene: Arc<Scene>,
    pub sent: Vec<Sent>,
    pub applied: Vec<Applied>,
    /// What a last look at each address has shown.
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

impl Ended {
    /// Whether it was applied, or a copy of it, at any time.
    pub fn has_landed(&self, sent: &Sent) -> bool {
        let kept = &self.scene.plan.addresses[sent.address].kept;
        self.applied.iter().any(|applied| applied.op == sent.number && applied.left_in(MAPPINGS, kept).is_some())
    }

    /// What stood there when the history began.
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

/// What stood there at some moment from `began` to `ended`; `None` for nothing.
fn stood<'a>(
    first: Option<&'a Stand>,
    steps: &'a [Step<'_>],
    (began, ended): (Instant, Instant),
) -> Vec<Option<&'a Stand>> {
    let begins = steps.partition_point(|step| step.time < began);
    let at_first = begins.checked_sub(1).map_or(first, |last| steps[last].after.as_ref());
    let meanwhile = steps[begins..].iter().take_while(|step| step.time <= ended).map(|step| step.after.as_ref());
    std::iter::once(at_first).chain(meanwhile).collect()
}

/// What does not hold; each in a sentence.
pub fn violations(engine: &Engine, ended: &Ended) -> Vec<String> {
    let mut found = Vec::new();
    for (address, of) in ended.scene.plan.addresses.iter().enumerate() {
        let steps = ended.steps(address);
        // Until TTL has removed that, nothing of what is asked for is done.
        let has_newest = ended.scene.plan.buried[address].as_ref().is_some_and(|buried| buried.is_newest);
        for step in &steps {
            found.extend(moved_on(step).map(|why| format!("{why}: {:?}, then {}", step.before, step.row)));
        }
        let sent: Vec<_> = ended.sent.iter().filter(|sent| sent.address == address).collect();
        for one in &sent {
            let first = ended.first(address);
            found.extend(untrue(one, &sent, (first.as_ref(), &steps)).map(|why| format!("{why}: {one:?}")));
            if !has_newest {
                found.extend(unseen(one, &sent).map(|why| format!("{why}: {one:?}")));
            }
        }
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

/// What stands behind an address moves to newer instances only, and of one instance from the mapping to the tombstone.
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

/// What was told must have been so.
fn untrue(sent: &Sent, all: &[&Sent], (first, steps): (Option<&Stand>, &[Step<'_>])) -> Option<&'static str> {
    let stood = stood(first, steps, (sent.began, sent.ended));
    let mine: Vec<_> = steps.iter().filter(|step| step.op == sent.number).collect();
    let shows = |who: &Who| stood.iter().flatten().any(|stand| stand.live && stand.who == *who);
    let in_batch = |other: &&&Sent| other.number == sent.number && !std::ptr::eq(**other, sent);
    let (who, is_register) = match &sent.what {
        What::Change(Change::Register(who)) => (who, true),
        What::Change(Change::Delete(who)) => (who, false),
        What::LookUp => {
            let nothing = stood.iter().any(|stand| stand.is_none_or(|stand| !stand.live));
            let so = match &sent.told {
                Told::Shown(who) => shows(who),
                Told::ShownNothing => nothing,
                _ => true,
            };
            return (!so).then_some("a look-up showed what was not there");
        }
    };
    // Where the tombstone has gone by then, a network that delivers a second copy of what was refused applies it.
    let applied_later = |step: &&Step<'_>| step.time > sent.ended && !step.is_copy_of_refused;
    let newer = |stand: &Stand| stand.who > *who || (is_register && stand.who == *who && !stand.live);
    match &sent.told {
        Told::Unknown => None,
        Told::NotApplied if all.iter().any(|other| in_batch(&other)) => None,
        Told::NotApplied => (!mine.is_empty()).then_some("told that nothing was applied, but it was"),
        Told::New => {
            let wrote = mine.iter().any(|step| step.after == Some(Stand { who: who.clone(), live: true }));
            (!wrote).then_some("told that it is new, but it wrote nothing")
        }
        Told::Same => (!shows(who)).then_some("told that it stood there, but it did not"),
        Told::Superseded(_) if is_register && mine.iter().any(applied_later) => Some(APPLIED_LATER),
        Told::Superseded(by) => {
            let named = |stand: &Stand| by.as_ref().is_none_or(|by| *by == stand.who);
            let so = stood.iter().flatten().any(|stand| newer(stand) && named(stand));
            (!so).then_some(if is_register { NEWER_REFUSED } else { LEFT_STANDING })
        }
        Told::Deleted | Told::AlreadyGone => {
            let was_live = |step: &Step<'_>| step.before.as_ref().is_some_and(|before| before.live);
            let deleted = sent.told == Told::Deleted;
            let left = Some(Stand { who: who.clone(), live: false });
            let did = mine.iter().any(|step| step.after == left && was_live(step) == deleted);
            (!did).then_some("the outcome of a delete is not what it found")
        }
        Told::Folded => {
            let done = |told: &Told| told.is_definite() && *told != Told::Folded;
            let so = all.iter().filter(in_batch).any(|other| done(&other.told) && who_of(other) >= Some(who));
            (!so).then_some("folded into what was not done")
        }
        Told::Shown(_) | Told::ShownNothing => Some("a change was answered as a look-up"),
    }
}

fn who_of(sent: &Sent) -> Option<&Who> {
    match &sent.what {
        What::Change(change) => Some(change.who()),
        What::LookUp => None,
    }
}

/// What a look-up shows against what clients were told before it, without a look at the rows.
fn unseen(look: &Sent, all: &[&Sent]) -> Option<&'static str> {
    let shown = match &look.told {
        Told::Shown(who) => Some(who),
        Told::ShownNothing => None,
        _ => return None,
    };
    let done_before = |sent: &&Sent| sent.ended < look.began && sent.told.is_definite();
    let asked_before = |sent: &&Sent| sent.began <= look.ended;
    for sent in all.iter().copied().filter(done_before) {
        match (&sent.what, &sent.told) {
            (What::Change(Change::Delete(who)), _) if shown.is_some_and(|shown| shown <= who) => {
                return Some(SEEN_AGAIN);
            }
            (What::Change(Change::Register(who)), Told::New | Told::Same) if shown < Some(who) => {
                let deletes = |sent: &Sent| matches!(&sent.what, What::Change(Change::Delete(newer)) if newer >= who);
                let deleted = shown.is_none() && all.iter().copied().filter(asked_before).any(deletes);
                if !deleted {
                    return Some("registered, and neither seen nor superseded by what was asked");
                }
            }
            (What::LookUp, Told::Shown(earlier)) if shown.is_some_and(|shown| shown < earlier) => {
                return Some("a look-up shows an older instance than one before it");
            }
            _ => {}
        }
    }
    let registers = |sent: &Sent| matches!(&sent.what, What::Change(Change::Register(who)) if Some(who) == shown);
    let asked = shown.is_none() || all.iter().copied().filter(asked_before).any(registers);
    (!asked).then_some("a look-up shows what nobody has registered")
}
