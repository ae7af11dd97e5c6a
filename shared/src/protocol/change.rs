//! The one engine of changes: finds out the fate of a refused attempt, and burns it if nothing less gives proof.
//!
//! A write of one row is a change of one step; a transaction is a change of several. For both, `settle.rs` decides the
//! next action after a refusal, by the verdict of `refusal.rs`.
//!
//! The refusing rows give a `Verdict`, the verdict gives an `After`, which ends as `Settled`.

use super::attempts::Attempts;
use super::condition::{self, ConditionalWrite};
use super::deliver::{Delivery, read_rows};
use super::item::Attributes;
use super::judge::{Base, SentWrite, Verdict};
use super::memory::WriteId;
use super::refusal::{RefusedStep, judge_after_loss, judge_one, judge_refusal, judge_steps, steps_may_still_land};
use super::row::{self, Row};
use super::send::Address;
use super::settle::{After, Facts, after, can_be_burned};
use crate::error::{Failure, Source};
use crate::layout::Layout;
use crate::version::{ItemVersion, Version};
use std::collections::BTreeSet;
use std::time::Duration;

pub(crate) struct Site<'a> {
    pub address: &'a Address,
    pub layout: &'static Layout,
    /// The row as last seen, if it is still kept. For a single write, this is the refusing row; for a transaction, the
    /// row used in the decision.
    pub known: Option<&'a Row>,
    /// How long a tombstone is kept.
    pub retention: Duration,
}

pub(crate) enum Settled {
    /// It was applied. If it has one step, the step made this version.
    Landed(Version),
    /// An earlier attempt was applied, and made this version. This attempt was not, and never will be.
    Earlier(WriteId, ItemVersion),
    /// It was not applied. Holds the rows to read, because they may show an earlier attempt as applied.
    NotApplied(BTreeSet<usize>),
}

/// A row in the answer to a burn, later than in the refusal before the burn.
pub(crate) type ShownByBurn = (usize, Option<Attributes>);

/// The facts when nothing more can be done to prove anything.
const fn at_last(is_pending: bool) -> Facts {
    Facts { is_pending, is_lease_lost: false, can_burn: false }
}

impl Delivery<'_> {
    /// Finds out the fate of the current attempt, which was refused for these reasons. `pending` is set if another send
    /// of it may have been applied, or may still be. If a burn was needed, also returns the row shown by the burn.
    ///
    /// # Errors
    /// [`Failure::OutcomeUnknown`] if nothing proves it, or if an earlier attempt may have been applied and forgotten. [`Failure::CorruptItem`]: the version of a row went down.
    pub(crate) async fn settle<'s>(
        &mut self,
        attempts: &mut Attempts,
        steps: &[RefusedStep<'_>],
        pending: Option<Source>,
        site: &(dyn Fn(usize) -> Site<'s> + Sync),
    ) -> Result<(Settled, Option<ShownByBurn>), Failure> {
        let now = self.sender.clock.now();
        // An earlier attempt excludes this one, so its pending sends are not applied either.
        for step in steps.iter().filter(|step| step.is_shown()) {
            attempts.judge(step.row, step.seen.as_ref(), now);
        }
        if let Some((id, at)) = attempts.landed {
            return Ok((Settled::Earlier(id, at), None));
        }
        let verdict = judge_refusal(steps, now).traced();
        let is_lease_lost = steps.iter().any(RefusedStep::is_lease_lost);
        let to_burn: Vec<_> = steps.iter().filter(|step| step.burn_helps()).collect();
        let is_pending = pending.is_some();
        let mut shown_by_burn = None;
        let follows = match after(verdict, Facts { is_pending, is_lease_lost, can_burn: !to_burn.is_empty() }) {
            After::AskRows => {
                // If the rows cannot be asked, nothing is proved.
                let by_rows = self.judge_after_loss(steps, site).await.unwrap_or(Verdict::Unproved);
                after(by_rows, at_last(is_pending))
            }
            After::Burn => {
                let writes: Vec<_> = to_burn.iter().filter_map(|step| Some((step.row, step.write()?))).collect();
                let burned = self.burn(attempts, &writes, site).await.ok().flatten();
                let by_burn = burned.as_ref().map_or(Verdict::Unproved, |(verdict, _)| *verdict);
                shown_by_burn = burned.map(|(_, shown)| shown);
                if let Some((id, at)) = attempts.landed {
                    return Ok((Settled::Earlier(id, at), shown_by_burn));
                }
                after(by_burn, at_last(is_pending))
            }
            follows => follows,
        };
        match (follows, pending) {
            (After::Landed(version), _) => return Ok((Settled::Landed(version), shown_by_burn)),
            (After::NotApplied, _) => attempts.check_remembered()?,
            (_, Some(source)) => return Err(Failure::OutcomeUnknown { source }),
            // Without a pending send, the only other case is `Corrupt`.
            (_, None) => {
                attempts.check_remembered()?;
                return Err(Failure::CorruptItem { reason: "its version went down".to_owned() });
            }
        }
        let is_shown = |row: usize| steps.iter().any(|step| step.row == row && step.is_shown());
        let unseen = attempts.unseen(is_shown);
        // A burned attempt goes on under another id already.
        if shown_by_burn.is_none() && steps_may_still_land(steps, now) {
            attempts.leave_open(steps, self.sender.new_id())?;
        }
        Ok((Settled::NotApplied(unseen), shown_by_burn))
    }

    /// Keeps any further copy of an attempt from being applied: burns one of these writes of it, together with the open
    /// attempts that the same row would remember. Goes on under another id. Returns the verdict of the row, and `None`
    /// if none of them can be burned.
    pub(crate) async fn burn<'s>(
        &mut self,
        attempts: &mut Attempts,
        writes: &[(usize, SentWrite)],
        site: &(dyn Fn(usize) -> Site<'s> + Sync),
    ) -> Result<Option<(Verdict, ShownByBurn)>, Failure> {
        let to_burn = writes.iter().find_map(|(row, sent)| {
            let incarnation = if let Base::Row { incarnation, .. } = sent.on { Some(incarnation) } else { None };
            let others = attempts.ids_to_burn(*row, incarnation);
            Some((*row, sent, self.burn_of(sent, &others, &site(*row))?))
        });
        let Some((row, sent, burn)) = to_burn else { return Ok(None) };
        let Site { address, layout, .. } = site(row);
        let (is_burned, item) = match self.write(&address.table, &burn).await? {
            Ok(new) => (true, burn.new_row(new)),
            Err(refusal) => (false, refusal.by),
        };
        let (seen, now) = (item.as_ref().and_then(|item| row::seen(layout, item)), self.sender.clock.now());
        let by_row = || judge_steps([judge_one(sent, seen.as_ref(), now)].into_iter()).traced();
        let verdict = if is_burned { Verdict::NeverApplied } else { by_row() };
        attempts.judge(row, seen.as_ref(), now);
        // The row refuses a burned id, so the next write is a new one.
        attempts.id = self.sender.new_id();
        Ok(Some((verdict, (row, item))))
    }

    fn burn_of(&self, sent: &SentWrite, others: &[WriteId], site: &Site<'_>) -> Option<ConditionalWrite> {
        let Site { address, layout, known, retention } = site;
        match sent.on {
            _ if !can_be_burned(sent) => None,
            Base::NoRow(_) => {
                let purge_at = self.sender.clock.now() + *retention;
                let item = row::tombstone(layout, &address.key, self.sender.new_id(), purge_at);
                Some(condition::put_if_absent(layout, item))
            }
            Base::Row { .. } => condition::burn(address.key.clone(), layout, sent, others, *known),
        }
    }

    /// Judges an attempt by the rows in its writes, after its lease was lost. No copy of it can be applied any more, so
    /// these rows show whether an earlier copy was.
    async fn judge_after_loss<'s>(
        &self,
        steps: &[RefusedStep<'_>],
        site: &(dyn Fn(usize) -> Site<'s> + Sync),
    ) -> Result<Verdict, Failure> {
        let writes: Vec<_> = steps.iter().filter_map(|step| Some((step, step.judged_write()?))).collect();
        let addresses: Vec<_> = writes.iter().map(|(step, _)| site(step.row).address.clone()).collect();
        let items = read_rows(self.sender, self.call, &addresses).await?;
        let seen = items.iter().zip(&writes).map(|(item, (step, _))| row::seen(step.layout, item.as_ref()?));
        Ok(judge_after_loss(writes.iter().map(|(_, sent)| *sent).zip(seen)))
    }
}
