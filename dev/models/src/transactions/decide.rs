//! The decisions of the calls, and the anchor that production chooses.

use super::{Call, Kind, Known, MOST, Refusals, Rule, Steps, Transactions, X, Y};
use crate::protocol::{Next, Told};
use crate::row::{Row, Write};
use fencepost::testing::{StepKind, anchors_of};

impl Call {
    /// Learns the rows that refused.
    pub(super) fn learn(&mut self, refusals: &Refusals) {
        for (known, shown) in self.known.iter_mut().zip(refusals) {
            if let Some(row) = shown {
                *known = row.clone().map_or(Known::Absent, Known::Row);
            }
        }
    }

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
    /// What is sent on what is known, or told.
    pub(super) fn decide(&self, call: &mut Call) -> Next<Self> {
        let Some(mut steps) = self.steps(call) else { return Next::Told(Told::NotApplied) };
        let kind = |(row, write): &(usize, Write)| match write {
            Write::AddAnywhere { .. } => {
                StepKind::Adds { row: *row, can_anchor: matches!(call.known[*row], Known::Row(_)) }
            }
            Write::Check { .. } => StepKind::Checks,
            _ => StepKind::Writes(*row),
        };
        let kinds: Vec<_> = steps.iter().map(kind).collect();
        let Some(anchors) = anchors_of(&kinds, &[]) else { return Next::Told(Told::NotApplied) };
        for index in anchors.into_iter().filter(|_| !self.lacks(Rule::Anchor)) {
            let (row, write) = &mut steps[index];
            let (Known::Row(seen), Write::AddAnywhere { by, low, high }) = (&call.known[*row], &*write) else {
                return Next::Told(Told::NotApplied);
            };
            let (at, id, prune) = (seen.at, call.id, seen.prunable(self.remembered, call.id));
            *write =
                Write::Add { at, window: self.window, id, prune, burn: Vec::new(), by: *by, low: *low, high: *high };
        }
        Next::Send(Steps(steps))
    }

    /// The decision of the call: its steps, or `None` if it refuses.
    fn steps(&self, call: &Call) -> Option<Vec<(usize, Write)>> {
        let add = |by: i8| Write::AddAnywhere { by, low: -by.min(0), high: MOST - by.max(0) };
        let update = |row: &Row, stock| Write::Update {
            at: row.at,
            id: call.id,
            prune: row.prunable(self.remembered, call.id),
            burn: Vec::new(),
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
                    Known::Row(row) if row.purge_at.is_some() => update(row, 1),
                    Known::Row(_) => return None,
                };
                x.is_none_or(|x| x.stock > 0).then(|| vec![(Y, create), (X, add(-1))])?
            }
            Kind::Cancel => {
                let order = call.live(Y).ok()?.filter(|order| order.stock > 0)?;
                vec![(Y, update(order, 0)), (X, add(1))]
            }
            Kind::Checked => {
                let (x, y) = (x?, call.live(Y).ok()??);
                (x.stock < MOST).then(|| vec![(X, update(x, x.stock + 1)), (Y, Write::Check { at: y.at })])?
            }
        })
    }

    pub(super) fn decide_again(&self, call: &mut Call) -> Next<Self> {
        if call.attempts == 0 {
            return Next::Told(Told::NotApplied);
        }
        call.attempts -= 1;
        self.decide(call)
    }
}
