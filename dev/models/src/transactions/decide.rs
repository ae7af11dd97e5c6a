//! The decisions of the calls, the anchor of production and the outcome of a refused transaction.

use super::{Call, Kind, Known, MOST, Refusals, Said, Steps, Transactions, X, Y};
use crate::protocol::{Next, Told};
use crate::row::{Row, Write};
use fencepost::testing::{After, Facts, StepKind, Verdict, after, anchors_of};

impl Call {
    /// The live row. `Err` if it is known that there is none.
    fn live(&self, row: usize) -> Result<Option<&Row>, ()> {
        match &self.known[row] {
            Known::Nothing => Ok(None),
            Known::Row(row) if row.purge_at.is_none() => Ok(Some(row)),
            Known::Absent | Known::Row(_) => Err(()),
        }
    }
}

impl Transactions {
    /// Decides on the known rows.
    pub(super) fn decide(&self, call: &mut Call) -> Next<Self> {
        if let Some(landed) = call.landed {
            return Next::Told(Told::Applied(landed));
        }
        if call.open.iter().any(|open| open.is_forgotten) {
            return Next::Told(Told::Unknown);
        }
        let Some(mut steps) = self.steps(call) else { return Next::Told(Told::NotApplied) };
        let kind = |(row, write): &(usize, Write)| match write {
            Write::AddAnywhere { .. } => {
                StepKind::Adds { row: *row, can_anchor: matches!(call.known[*row], Known::Row(_)) }
            }
            Write::Check { .. } => StepKind::Checks,
            _ => StepKind::Writes(*row),
        };
        let mut kinds: Vec<_> = steps.iter().map(kind).collect();
        let Some(anchors) = anchors_of(&kinds, &Self::rows_of_open(call)) else { return Next::Told(Told::NotApplied) };
        for index in anchors.into_iter().filter(|_| !self.lacks("anchor")) {
            let (row, write) = &mut steps[index];
            let (Known::Row(seen), Write::AddAnywhere { by, low, high }) = (&call.known[*row], &*write) else {
                return Next::Told(Told::NotApplied);
            };
            let (at, id, prune) = (seen.at, call.id, seen.prunable(self.remembered, call.id));
            let (burn, by, low, high) = (Self::burnable(call, *row, seen), *by, *low, *high);
            *write = Write::Add { at, window: self.window, id, prune, burn, by, low, high };
            kinds[index] = StepKind::Writes(*row);
        }
        if !self.lacks("burns-beside")
            && let Some(burn) = self.burn_beside(call, &kinds)
        {
            return burn;
        }
        Next::Send(Steps(steps))
    }

    /// The decision of the call: its steps, or `None` if it refuses.
    fn steps(&self, call: &Call) -> Option<Vec<(usize, Write)>> {
        let add = |by: i8| Write::AddAnywhere { by, low: -by.min(0), high: MOST - by.max(0) };
        let update = |index: usize, row: &Row, stock| Write::Update {
            at: row.at,
            id: call.id,
            prune: row.prunable(self.remembered, call.id),
            burn: Self::burnable(call, index, row),
            stock,
        };
        let x = call.live(X).ok()?;
        Some(match call.kind {
            Kind::Adds { .. } => {
                let take = x.map_or(2, |x| x.stock.min(2));
                call.live(Y).ok()?;
                (take > 0).then(|| vec![(X, add(-take)), (Y, add(1))])?
            }
            Kind::Order => {
                let create = match &call.known[Y] {
                    Known::Nothing | Known::Absent => Write::Create { id: call.id, stock: 1 },
                    Known::Row(row) if row.purge_at.is_some() => update(Y, row, 1),
                    Known::Row(_) => return None,
                };
                x.is_none_or(|x| x.stock > 0).then(|| vec![(Y, create), (X, add(-1))])?
            }
            Kind::Cancel => {
                let order = call.live(Y).ok()?.filter(|order| order.stock > 0)?;
                vec![(Y, update(Y, order, 0)), (X, add(1))]
            }
            Kind::Restock { .. } if x.is_some_and(|x| x.stock < 2) => vec![(X, add(2))],
            Kind::Restock { reads_y: true } => {
                call.live(Y).ok()?;
                vec![(Y, add(1)), (X, add(-2))]
            }
            Kind::Restock { reads_y: false } => {
                let create = match &call.known[Y] {
                    Known::Nothing | Known::Absent => Write::Create { id: call.id, stock: 1 },
                    Known::Row(row) if row.purge_at.is_some() => update(Y, row, 1),
                    Known::Row(_) => return None,
                };
                vec![(Y, create), (X, add(-2))]
            }
            Kind::Checked => {
                let (x, y) = (x?, call.live(Y).ok()??);
                (x.stock < MOST).then(|| vec![(X, update(X, x, x.stock + 1)), (Y, Write::Check { at: y.at })])?
            }
        })
    }

    /// The end of a transaction with a pending send, of which no more can be found out.
    pub(super) fn settled(&self, call: &mut Call, steps: &Steps, verdict: Verdict, refusals: &Refusals) -> Next<Self> {
        self.follow(call, steps, after(verdict, Facts { is_pending: true, ..Facts::default() }), refusals, false)
    }

    pub(super) fn follow(
        &self,
        call: &mut Call,
        steps: &Steps,
        follows: After,
        refusals: &Refusals,
        is_open: bool,
    ) -> Next<Self> {
        match follows {
            After::Landed(_) => Next::Told(Told::Applied(steps.said())),
            After::Corrupt => Next::Told(Told::NotApplied),
            After::Burn if self.lacks("burn-transaction") => {
                self.learn(call, refusals);
                self.decide_again(call)
            }
            After::NotApplied => {
                call.unread = self.unseen(call, refusals);
                self.learn(call, refusals);
                if is_open && !self.lacks("own-id-of-attempt") {
                    self.leave_open(call, steps);
                }
                if call.unread.is_empty() { self.decide_again(call) } else { Next::Pause }
            }
            After::AskRows | After::Burn | After::Unknown => Next::Told(Told::Unknown),
        }
    }

    pub(super) fn decide_again(&self, call: &mut Call) -> Next<Self> {
        if call.attempts == 0 {
            return Next::Told(self.gives_up(call));
        }
        call.attempts -= 1;
        self.decide(call)
    }
}

impl Steps {
    pub(super) fn is_burn(&self) -> bool {
        self.0.iter().any(|(_, write)| matches!(write, Write::Burn { .. } | Write::BurnCreate { .. }))
    }

    /// The answer to these steps.
    pub(super) fn said(&self) -> Said {
        let said = |wanted: usize| {
            let (_, write) = self.0.iter().find(|(row, _)| *row == wanted)?;
            match write {
                Write::Create { stock, .. } => Some((*stock, Some(1))),
                Write::Update { at, stock, .. } => Some((*stock, Some(at.version + 1))),
                Write::Add { by, .. } | Write::AddAnywhere { by, .. } => Some((*by, None)),
                _ => None,
            }
        };
        [said(X), said(Y)]
    }
}
