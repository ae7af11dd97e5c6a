//! Judges what the clients of a program were told: by the states that the rows really had, and, without these, by a judge
//! that knows no Fencepost.

use super::catalog::{KINDS, Row};
use super::edits::{Val, Why};
use super::plan::{Answer, Listing, Op};
use super::rows::{Ended, Facts, Rows, State, breaks_the_row};
use super::told::{Decision, Does, Note, Outcome, Shown};
use super::values::Item;
use crate::harness::faults::Applied;
use crate::harness::states::version;
use crate::harness::total::Total;
use crate::histories::history::{self, Claim, contradiction};
use crate::histories::scene::TTL;
use fencepost::ItemVersion;
use fencepost_test::{Fault, Outcome as Heard, Sent};
use judges::linearizable::Seen;
use judges::register::{self, SeenOf};
use std::time::Duration;
use tokio::time::Instant;

/// A write that changed items: the rows with their states before and after.
struct Effect<'a> {
    write: usize,
    applied: &'a Applied,
    changes: Vec<(Row, Option<&'a Item>, &'a State)>,
}

impl Effect<'_> {
    /// Whether this decision does it.
    fn is_of(&self, decision: &Decision) -> bool {
        self.changes.iter().all(|(row, before, now)| {
            let does = decision.does.iter().find(|(of, _)| of == row);
            does.is_some_and(|(_, does)| does.leaves(*before) == Ok(now.item.clone()))
        })
    }
}

impl Does {
    /// The item that it leaves of this one. `Err` if it cannot be applied to it.
    fn leaves(&self, before: Option<&Item>) -> Result<Option<Item>, ()> {
        match (self, before) {
            (Does::Write(item), _) => Ok(Some(item.clone())),
            (Does::Delete, Some(_)) => Ok(None),
            (Does::Edit(edit), Some(before)) => edit.applied(before).map(Some).map_err(drop),
            (Does::Check, before) => Ok(before.cloned()),
            (Does::Delete | Does::Edit(_), None) | (Does::Impossible, _) => Err(()),
        }
    }
}

const LEFT_OUT: &str = "a listing has left out what was there all the time";
pub const UNKNOWN: &str = "unknown without a lost answer";

impl Ended {
    /// The broken promises.
    pub fn violations(&self) -> Vec<String> {
        let rows = Rows::of(self);
        let effects = self.effects(&rows);
        let mut found = self.not_read_back.clone();
        for note in &self.notes {
            let mine: Vec<_> = effects.iter().filter(|effect| effect.applied.op == note.number).collect();
            found.extend(self.check(note, &mine, &rows).map(|why| format!("{why}: {note:?}")));
        }
        found.extend(self.rows.iter().filter_map(|row| breaks_the_row(*row, &rows.0[row])));
        found.extend(self.breaks_a_key(&effects));
        found.extend(self.breaks_a_lease());
        found.extend(self.breaks_the_newest());
        found.extend(self.breaches());
        found
    }

    /// The decision whose whole value the last write to this row left.
    pub fn left_whole(&self, row: Row) -> Option<u64> {
        let rows = Rows::of(self);
        // A late copy of a ticket leaves the item as it was.
        let states = &rows.0[&row];
        let item = &states.last()?.item;
        let last = states.iter().rev().take_while(|state| state.item == *item).last()?;
        let by = last.item.as_ref()?.get(&KINDS[row.kind].by())?["N"].as_str()?.parse().ok()?;
        let note = self.notes.iter().find(|note| note.number == last.op)?;
        let wrote = |one: &Decision| {
            one.id == by && one.does.iter().any(|(of, does)| *of == row && matches!(does, Does::Write(_)))
        };
        note.decisions.iter().any(wrote).then_some(by)
    }

    /// What the clients were told, in numbers.
    pub fn outcomes(&self) -> Total {
        let mut total = Total::default();
        for note in &self.notes {
            total.count(
                match note.told.outcome {
                    Outcome::Applied => "toldApplied",
                    Outcome::Refused => "toldRefusedOrSeen",
                    Outcome::Replayed(_) => "toldReplayed",
                    Outcome::Failed(_) => "toldFailed",
                    Outcome::Unknown(_) => "unknown",
                    Outcome::Dropped => "dropped",
                },
                1,
            );
        }
        let lost = |sent: &&Sent| !sent.is_read() && sent.executed() > 0 && !sent.is_acknowledged();
        total.count("lostAnswers", self.log.iter().filter(lost).count());
        total
    }

    /// The objections of the judge that knows no Fencepost. Versions say nothing where rows are removed.
    pub fn judged(&self) -> Vec<String> {
        let rows = Rows::of(self);
        let effects = self.effects(&rows);
        self.rows.iter().filter_map(|row| register::judge(None, self.seen(*row, &rows, &effects)).err()).collect()
    }

    fn effects<'a>(&'a self, rows: &'a Rows) -> Vec<Effect<'a>> {
        let mut effects = Vec::new();
        for (write, applied) in self.applied.iter().enumerate() {
            let changes = self.rows.iter().filter_map(|row| {
                let now = rows.0[row].iter().find(|state| state.write == write)?;
                let before = rows.before(*row, write).and_then(|state| state.item.as_ref());
                (now.item.as_ref() != before).then_some((*row, before, now))
            });
            let changes = changes.collect::<Vec<_>>();
            if !changes.is_empty() {
                effects.push(Effect { write, applied, changes });
            }
        }
        effects
    }

    /// The mistake in what a client was told, if any.
    fn check(&self, note: &Note, effects: &[&Effect<'_>], rows: &Rows) -> Option<String> {
        let Note { told, began, ended, decisions, .. } = note;
        let during = (*began, *ended);
        let (mine, decided) = (own_effects(note, effects, rows), note.decided());
        let applied: Vec<_> = mine.iter().map(|effect| effect.applied).collect();
        let changes_nothing = || {
            let may_leave_it = |(row, does): &(Row, Does)| match does {
                Does::Edit(edit) => !edit.surely_changes(&KINDS[row.kind].by()),
                does => matches!(does, Does::Check),
            };
            decided.is_none_or(|one| one.does.iter().all(may_leave_it))
        };
        let keeps = || matches!(&note.op, Op::EditOrUpdate(_, _, change) if change.answer == Answer::Keep);
        let is_gone = deleted_afterwards(note, &mine, rows);
        let claim = match &told.outcome {
            Outcome::Refused if is_gone && applied.iter().any(|one| one.time <= *ended) => Claim::Applied,
            Outcome::Applied if applied.is_empty() && changes_nothing() => Claim::Nothing,
            // The item was kept. A copy of the refused edit may have been applied all the same.
            Outcome::Applied if keeps() && applied.iter().all(|one| one.is_copy_of_refused) => Claim::Nothing,
            Outcome::Applied => Claim::Applied,
            Outcome::Refused | Outcome::Failed(_) => Claim::NotApplied,
            Outcome::Replayed(_) | Outcome::Unknown(_) | Outcome::Dropped => Claim::Nothing,
        };
        // A second copy of what was refused is the one exception of a refusal. A failure has none, unless a send met a
        // write in progress: assumption 2 of DESIGN excludes the copy that the network delivers all the same.
        let met_another = |sent: &&Sent| {
            let is_conflict =
                matches!(&sent.heard, Some((_, Heard::Error(_, code))) if code.ends_with("ConflictException"));
            sent.request.op == note.number && is_conflict
        };
        let may_land = match &told.outcome {
            Outcome::Failed(failure) => {
                failure.starts_with("EditRefused") || self.log.iter().any(|sent| met_another(&sent))
            }
            outcome => *outcome == Outcome::Refused,
        };
        if let Some(why) = contradiction(claim, during, &applied, may_land) {
            return Some(why.to_owned());
        }
        for effect in &mine {
            let explains = |one: &&Decision| decided.is_none_or(|told| told.id == one.id) && effect.is_of(one);
            let explaining: Vec<_> = decisions.iter().filter(explains).collect();
            if explaining.is_empty() {
                let did: Vec<_> = effect.changes.iter().map(|(row, before, now)| (row, before, &now.item)).collect();
                return Some(format!("no decision explains what was done, {did:?}"));
            }
            let is_older = self.program.clients[usize::try_from(note.client).expect("few")].is_older;
            let why = |decision: &&Decision| {
                rests_on_another_state(decision, note, effect, rows)
                    .or_else(|| changes_what_it_does_not_know(decision, is_older, effect, rows))
            };
            if let Some(why) = explaining.iter().map(why).collect::<Option<Vec<_>>>() {
                return why.into_iter().next();
            }
        }
        let is_made = |state: &State, at| state.op == note.number && state.at == Some(at);
        if let Some(made) = told.made.iter().find(|(row, at)| !rows.0[row].iter().any(|one| is_made(one, *at))) {
            return Some(format!("told a version that it did not make, {made:?}"));
        }
        let last = decisions.last().filter(|_| told.outcome == Outcome::Refused && told.shown.is_empty());
        let old = last.and_then(|last| last.looks.iter().find(|look| look.is_certain && !rows.shows(look, during)));
        if let Some(look) = old {
            return Some(format!("refused or kept by an old state of {:?}", look.row));
        }
        // An edit may show later changes too, but never more than there were when it ended.
        let untrue = told.shown.iter().find(|shown| !rows.shows(shown, during));
        if let Some(shown) = untrue {
            return Some(format!("told a state that never was during its call, {:?}", shown.row));
        }
        let is_part_of = |part: &Shown, state: &State| {
            let has = |(name, value)| state.item.as_ref().and_then(|item| item.get(name)) == Some(value);
            part.at == state.at && part.item.iter().flatten().all(has)
        };
        let untrue =
            |part: &&Shown| !rows.was(part.row, during, |state| state.is_some_and(|state| is_part_of(part, state)));
        if let Some(part) = told.parts.iter().find(untrue) {
            return Some(format!("told a part of a state that never was during its call, {:?}", part.row));
        }
        let filter = if let Op::List(_, Listing { filter, .. }) = &note.op { filter.as_ref() } else { None };
        let is_left_out = |item: &Item| filter.is_some_and(|filter| !filter.is_met(item));
        if let Some(shown) = told.shown.iter().find(|shown| shown.item.as_ref().is_some_and(is_left_out)) {
            return Some(format!("a listing shows what its filter leaves out, {:?}", shown.row));
        }
        let left_out = told.left_out.iter().find(|row| {
            !rows.was(**row, during, |state| state.and_then(|state| state.item.as_ref()).is_none_or(is_left_out))
        });
        if let Some(row) = left_out {
            return Some(format!("{LEFT_OUT}, {row:?}"));
        }
        if told.not_at.is_some() && told.shown.iter().any(|shown| shown.at == told.not_at) {
            return Some("refused as a conflict at the very version that it demanded".to_owned());
        }
        if let (Some(why), Some(edit), [Shown { item: Some(item), .. }]) =
            (told.why, note.refused_edit(), &told.shown[..])
        {
            match edit.applied(item) {
                Ok(_) => return Some("an edit was refused whose conditions hold".to_owned()),
                Err(whys) if why != Why::Untold && !whys.contains(&why) => {
                    return Some(format!("refused as {why:?}, and not for {whys:?}"));
                }
                Err(_) => {}
            }
        }
        self.is_needless(note, rows)
    }

    /// Whether the outcome is one that nothing has caused.
    fn is_needless(&self, note: &Note, rows: &Rows) -> Option<String> {
        let sent: Vec<_> = self.log.iter().filter(|sent| sent.request.op == note.number).collect();
        let has = |text: &str| note.op.rows().iter().any(|row| KINDS[row.kind].table() == text);
        match &note.told.outcome {
            Outcome::Unknown(why) => {
                // Nothing excludes a copy of a refused create where rows may vanish, so no other change may follow it, and not even a
                // mistake of the next decision is sure to leave nothing. In an open table, a row that is gone has taken its
                // memory of a refused attempt with it.
                let vanishes = |row: Row| Facts::of(row.kind).may_vanish(row.kind);
                let has_no_burn = ["an earlier attempt may still be applied", "InvalidTransaction"]
                    .iter()
                    .any(|reason| why.contains(reason))
                    && note.decisions.iter().any(|one| {
                        let saw_none = |row: &Row| one.looks.iter().any(|look| look.row == *row && look.item.is_none());
                        let creates = |(row, does): &(Row, Does)| matches!(does, Does::Write(_)) && saw_none(row);
                        one.does.iter().any(|does| creates(does) && vanishes(does.0))
                    });
                let during = (note.began, note.ended);
                let was_gone =
                    |row: &Row| rows.was(*row, during, |state| state.is_none_or(|state| state.item.is_none()));
                let is_forgotten = why.contains("no longer remembers it") && note.op.rows().iter().any(was_gone);
                let is_late =
                    note.ended - note.began + Duration::from_millis(200) >= Duration::from_millis(note.within);
                // A value that cannot be stored may come after an open attempt.
                let is_odd = note.is_odd && why.contains("InvalidRecord");
                let is_excused = is_late
                    || has_no_burn
                    || is_forgotten
                    || is_odd
                    || self.program.rates.frozen > 0
                    || sent.iter().any(|sent| excuses(sent));
                (!is_excused).then(|| format!("{UNKNOWN}, {why}"))
            }
            Outcome::Failed(failure) => {
                let kind = failure.split([' ', '{']).next().unwrap_or_default();
                let was_denied = sent.iter().any(|sent| sent.fault == Some(Fault::Denied));
                let may_be = match kind {
                    "Contention" | "Unavailable" => true,
                    "Fenced" => self.is_fenced(note, rows),
                    "Rejected" => was_denied || has("PlayLarge"),
                    "TooLarge" => has("PlayLarge"),
                    "InvalidRecord" => note.is_odd || note.op.edits().iter().any(|edit| edit.changes_twice()),
                    "InvalidTransaction" => matches!(note.op, Op::Transact(_) | Op::Once(_)),
                    "EditRefused" => matches!(note.op, Op::Transact(_) | Op::Once(_)),
                    _ => false,
                };
                (!may_be).then(|| format!("failed for no reason, {failure}"))
            }
            _ => None,
        }
    }

    /// A claim has one effect.
    fn breaks_a_key(&self, effects: &[Effect<'_>]) -> Option<String> {
        let has_key = |note: &&Note| matches!(note.op, Op::Once(_));
        let ops: Vec<_> = self.notes.iter().filter(has_key).map(|note| note.number).collect();
        let count = effects.iter().filter(|effect| ops.contains(&effect.applied.op)).count();
        (count > 1).then(|| format!("{}: {count} effects of one idempotency key", history::APPLIED_TWICE))
    }

    /// The clients' view of one row.
    fn seen(&self, row: Row, rows: &Rows, effects: &[Effect<'_>]) -> Vec<SeenOf<Val>> {
        let facts = Facts::of(row.kind);
        // Where rows vanish, a late copy of a create makes the same version again.
        let judged = |at: ItemVersion| (!facts.vanish(row.kind)).then(|| version(at));
        let mut seen = Vec::new();
        for note in &self.notes {
            let [began, ended] = [note.began, note.ended].map(Instant::into_std);
            let mut push = |op, told| seen.push(Seen { client: note.client, began, ended, op, told });
            let mine: Vec<_> = effects.iter().filter(|effect| effect.applied.op == note.number).collect();
            if let Some(decision) = note.decided() {
                for (_, does) in decision.does.iter().filter(|(of, _)| *of == row) {
                    let look = decision.looks.iter().find(|look| look.row == row).and_then(|look| look.item.clone());
                    let made = note.told.made.iter().find(|(of, _)| *of == row).and_then(|(_, at)| judged(*at));
                    match op_of(does, look) {
                        Some(register::Op::Read) | None => {}
                        Some(op) => push(op, Some(register::Told::Done(made))),
                    }
                }
                // Where rows vanish, copies may have other effects than the one that was told.
                let own = mine.iter().position(|effect| effect.is_of(decision));
                let others = mine.iter().enumerate().filter(|(at, _)| facts.vanish(row.kind) && Some(*at) != own);
                let changes = others.flat_map(|(_, effect)| &effect.changes).filter(|(of, ..)| *of == row);
                seen.extend(changes.map(|(_, _, now)| put(now)));
            } else {
                for (_, before, now) in mine.iter().flat_map(|effect| &effect.changes).filter(|(of, ..)| *of == row) {
                    let op = match (before, &now.item) {
                        (Some(from), Some(to)) => {
                            register::Op::CompareAndSet { from: Val((*from).clone()), to: Val(to.clone()) }
                        }
                        (None, Some(to)) => register::Op::Create(Val(to.clone())),
                        _ => register::Op::Delete,
                    };
                    push(op, None);
                }
                // A batch may name a row twice.
                if let Some(shown) = note.told.shown.iter().find(|shown| shown.row == row) {
                    let shown = shown
                        .item
                        .clone()
                        .map(|item| register::Shown { value: Val(item), at: shown.at.and_then(judged) });
                    match (note.refused_edit(), shown) {
                        (Some(edit), Some(shown)) => {
                            push(register::Op::Add(edit.clone()), Some(register::Told::OutOfBounds(shown)));
                        }
                        (_, shown) => push(register::Op::Read, Some(register::Told::Saw(shown))),
                    }
                }
            }
        }
        for purge in rows.0[&row].iter().filter(|state| state.op == TTL) {
            let gone = put(purge);
            let after = gone.ended + Duration::from_nanos(1);
            seen.extend([gone, Seen { began: after, ended: after, op: register::Op::Purge, ..put(purge) }]);
        }
        seen
    }
}

/// A write as a fact. Nanoseconds order the writes of one moment, and leave one for a purge.
fn put(now: &State) -> SeenOf<Val> {
    let began = now.time.into_std() + Duration::from_nanos(2 * now.write as u64);
    let op = register::Op::Put(now.item.clone().map(Val));
    Seen { client: (1 << 33) + now.write as u64, began, ended: began, op, told: Some(register::Told::Done(None)) }
}

fn op_of(does: &Does, look: Option<Item>) -> Option<register::Op<Val>> {
    Some(match (does, look) {
        (Does::Write(to), Some(from)) => register::Op::CompareAndSet { from: Val(from), to: Val(to.clone()) },
        (Does::Write(to), None) => register::Op::Create(Val(to.clone())),
        (Does::Delete, _) => register::Op::Delete,
        (Does::Edit(edit), _) => register::Op::Add(edit.clone()),
        (Does::Check | Does::Impossible, _) => return None,
    })
}

/// Whether an applied decision rests on another state than that to which it was applied, or on one of before its call.
fn rests_on_another_state(decision: &Decision, note: &Note, effect: &Effect<'_>, rows: &Rows) -> Option<String> {
    decision.looks.iter().filter(|look| look.is_certain).find_map(|look| {
        let rests = decision.does.iter().any(|(row, does)| *row == look.row && !matches!(does, Does::Edit(_)));
        let before = rows.before(look.row, effect.write).and_then(|state| state.item.as_ref());
        if rests && before != look.item.as_ref() {
            return Some(format!("applied to another state than the decision saw, {:?}", look.row));
        }
        let is_old = !note.op.is_blind(look.row) && !rows.shows(look, (note.began, effect.applied.time));
        is_old.then(|| format!("decided on an old state of {:?}", look.row))
    })
}

/// Whether an older build, or an edit, changed an attribute that it does not know, or today's build left it as it was.
fn changes_what_it_does_not_know(
    decision: &Decision,
    is_older: bool,
    effect: &Effect<'_>,
    rows: &Rows,
) -> Option<String> {
    effect.changes.iter().find_map(|(row, before, now)| {
        let (name, item) = (KINDS[row.kind].hidden()?, now.item.as_ref()?);
        let is_whole = decision.does.iter().any(|(of, does)| of == row && matches!(does, Does::Write(_)));
        let kept = rows.before(*row, effect.write).filter(|_| before.is_some()).map(|state| &state.raw[name]);
        let expected =
            if is_whole && !is_older { item.get(&KINDS[row.kind].by()) } else { kept.filter(|kept| !kept.is_null()) };
        (now.raw.get(name) != expected).then(|| format!("{row:?} has another {name} than {expected:?}"))
    })
}

/// The effects of an operation, without those that rows allow which vanish: a copy of a refused create may make a row
/// beside the call's other work. A copy of an applied create may make the removed row again, and later changes may be
/// repeated on it, because it has no memory of them.
fn own_effects<'a, 'b>(note: &Note, effects: &[&'b Effect<'a>], rows: &Rows) -> Vec<&'b Effect<'a>> {
    // That of the row which the write left, or removed.
    let incarnation = |row: Row, effect: &Effect<'_>, now: &State| {
        let before = || rows.before(row, effect.write).and_then(|state| state.at);
        now.at.or_else(before).map(|at| at.incarnation)
    };
    let vanishes = |row: &Row| Facts::of(row.kind).vanish(row.kind);
    let is_beside = |effect: &Effect<'_>, decision: &Decision| {
        let was_gone = |row| rows.before(row, effect.write).is_none_or(|state| state.raw.is_null());
        effect.applied.is_copy_of_refused
            && !effect.is_of(decision)
            && effect.changes.iter().all(|(row, ..)| vanishes(row) && was_gone(*row))
            && decision.does.iter().all(|(row, does)| vanishes(row) || matches!(does, Does::Check))
    };
    let is_again = |effect: &Effect<'_>, first: &Effect<'_>| {
        effect.changes.iter().all(|(row, before, now)| {
            let same = |(of, from, then): &(Row, Option<&Item>, &State)| {
                let [mine, other] = [incarnation(*row, effect, now), incarnation(*of, first, then)];
                let is_same_row = mine.is_some() && mine == other;
                of == row && (is_same_row || (from, &then.item) == (before, &now.item))
            };
            let between = |state: &State| (first.write..effect.write).contains(&state.write);
            let was_gone = rows.0[row].iter().any(|state| between(state) && state.raw.is_null());
            vanishes(row) && was_gone && first.changes.iter().any(same)
        })
    };
    let mut mine = effects.to_vec();
    mine.retain(|effect| note.decided().is_none_or(|decision| !is_beside(effect, decision)));
    if let Some(first) = mine.first().copied() {
        mine.retain(|one| one.write == first.write || !is_again(one, first));
    }
    mine
}

/// Whether no item is there, because another client deleted it after the edit that was applied.
fn deleted_afterwards(note: &Note, effects: &[&Effect<'_>], rows: &Rows) -> bool {
    let is_deleted = |shown: &Shown| {
        let by_another = |state: &&State| state.op != note.number && state.item.is_none() && state.time <= note.ended;
        let last = rows.0[&shown.row].iter().rfind(by_another);
        shown.item.is_none() && last.is_some_and(|last| effects.iter().any(|effect| effect.write < last.write))
    };
    matches!(note.op, Op::EditOrUpdate(..)) && note.told.shown.iter().any(is_deleted)
}

/// Whether a request may have left its client without knowledge.
fn excuses(sent: &Sent) -> bool {
    let loses = |fault: Fault| {
        !matches!(
            fault,
            Fault::SecondCopy
                | Fault::CopiedAfter(_)
                | Fault::TransactionConflict
                | Fault::TokensForgotten
                | Fault::MixedReasons
                | Fault::Unprocessed
                | Fault::Conflict
        )
    };
    let is_error = matches!(&sent.heard, Some((_, Heard::Error(500.., _))) | None);
    is_error || sent.fault.is_some_and(loses)
}
