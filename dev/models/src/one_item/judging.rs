//! What a row tells of the last attempt and of the earlier ones.

use super::{Call, OneItem, Rule, Said, said};
use crate::protocol::{Protocol, Told};
use crate::row::{Row, Write, small};
use fencepost::testing::{SeenRow, SentWrite, Verdict, is_soon, judge, judge_open};
use std::time::UNIX_EPOCH;

impl OneItem {
    /// The judge of production.
    pub(super) fn judge(&self, sent: &SentWrite, row: Option<&Row>) -> Verdict {
        if self.lacks(Rule::Judge) { Verdict::NeverApplied } else { judge(sent, self.seen(row).as_ref()) }
    }

    /// What the judge sees of a row.
    pub(super) fn seen(&self, row: Option<&Row>) -> Option<SeenRow> {
        let mut row = row.cloned();
        if self.lacks(Rule::BurnedIsNotApplied) {
            row.iter_mut().flat_map(|row| &mut row.memory).for_each(|(_, trace)| *trace = trace.abs());
        }
        row.map(|row| row.seen())
    }

    pub(super) fn sent(&self, write: &Write) -> SentWrite {
        write.sent(self.remembered, false).expect("each write here leaves an id")
    }

    /// Whether TTL may remove this row while a copy of the create that it refused can arrive.
    pub(super) fn is_soon(&self, write: &Write, row: Option<&Row>, now: u32) -> bool {
        let purge_at = row.and_then(|row| row.purge_at).map(|units| u64::from(units) * 600);
        let is_create = matches!(write, Write::Create { .. });
        is_create && !self.lacks(Rule::Margin) && is_soon(purge_at, UNIX_EPOCH + Self::time(now))
    }

    /// Leaves a refused attempt open that may still be applied. The next one has an id of its own.
    pub(super) fn leave_open(&self, call: &mut Call, write: &Write, sent: &SentWrite, row: Option<&Row>) {
        if !self.lacks(Rule::OwnId) {
            call.open.push(write.clone().narrowed(&sent.not_applied_before(self.seen(row).as_ref())));
            call.id += 1;
        }
    }

    /// What a call is told that ends without an answer, with nothing pending.
    pub(super) fn gives_up(&self, call: &Call) -> Told<Said> {
        let is_open = self.has_open_attempts(call) && !self.lacks(Rule::OpenIsUnknown);
        if is_open { Told::Unknown } else { Told::NotApplied }
    }

    /// What the row tells of the open attempts: the one that was applied, and whether it may have forgotten one.
    pub(super) fn judge_earlier(&self, call: &mut Call, row: Option<&Row>, now: u32) -> (Option<Said>, bool) {
        let (mut landed, mut is_forgotten) = (None, false);
        call.open.retain_mut(|open| {
            let (sent, seen) = (self.sent(open), self.seen(row));
            match judge_open(&sent, seen.as_ref(), self.is_soon(open, row, now)) {
                Verdict::Landed(made) if !self.lacks(Rule::KnowsEarlier) => {
                    landed = Some(said(open, small(made.get())));
                }
                Verdict::Landed(_) => {}
                Verdict::NeverApplied => return false,
                Verdict::Open => *open = open.clone().narrowed(&sent.not_applied_before(seen.as_ref())),
                Verdict::Unproved | Verdict::Corrupt => is_forgotten |= !self.lacks(Rule::ForgottenIsUnknown),
            }
            true
        });
        (landed, is_forgotten)
    }
}
