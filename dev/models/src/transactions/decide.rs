//! The decisions of the calls, the outcome of a refused transaction, its open attempts and the burns.

use super::{Call, Kind, Known, MOST, Refusals, Said, Steps, Transactions, X, Y};
use crate::protocol::{Answer, Next, Protocol, Told};
use crate::row::{Id, Row, Write};
use fencepost::testing::{
    After, Facts, SentWrite, Verdict, after, anchors_of, can_be_burned, judge, judge_open, may_still_land, writes_to,
};

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
        let adds = steps.iter().filter(|(_, write)| matches!(write, Write::AddAnywhere { .. }));
        let adds: Vec<_> = adds.map(|(row, _)| (*row, matches!(call.known[*row], Known::Row(_)))).collect();
        let is_write = |write: &Write| !matches!(write, Write::AddAnywhere { .. } | Write::Check { .. });
        let mut writes: Vec<_> = steps.iter().filter(|(_, write)| is_write(write)).map(|(row, _)| *row).collect();
        let Some(anchors) = anchors_of(&writes, &adds, &Self::rows_of_open(call)) else {
            return Next::Told(Told::NotApplied);
        };
        let is_anchor = |row: &usize| anchors.contains(row) && !self.lacks("anchor");
        for (row, write) in steps.iter_mut().filter(|(row, _)| is_anchor(row)) {
            let (Known::Row(seen), Write::AddAnywhere { by, low, high }) = (&call.known[*row], &*write) else {
                return Next::Told(Told::NotApplied);
            };
            let (at, id, prune) = (seen.at, call.id, seen.prunable(self.remembered, call.id));
            let (burn, by, low, high) = (Self::burnable(call, *row, seen), *by, *low, *high);
            *write = Write::Add { at, window: self.window, id, prune, burn, by, low, high };
            writes.push(*row);
        }
        if !self.lacks("burns-beside")
            && let Some(burn) = self.burn_beside(call, &writes)
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

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Open {
    pub(super) id: Id,
    said: Said,
    /// Its writes that leave an id, each with its row and its narrowest known window.
    writes: Vec<(usize, Write)>,
    /// Whether a row may have applied and forgotten it.
    pub(super) is_forgotten: bool,
}

/// A burn that is sent.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Burning {
    /// That of the last attempt, of which a send is pending.
    Pending {
        row: usize,
        burned: Write,
        steps: Steps,
        /// The rows that refused it.
        refusals: Refusals,
    },
    /// That of an earlier attempt, which is refused, by this write of it.
    Open((usize, Write), Open),
}

impl Open {
    fn rows(&self) -> Vec<usize> {
        self.writes.iter().map(|(row, _)| *row).collect()
    }
}

impl Transactions {
    fn sent(&self, write: &Write) -> SentWrite {
        write.sent(self.remembered, self.rows_may_vanish()).expect("it leaves an id")
    }

    /// Leaves the steps open. The next ones have an id of their own.
    pub(super) fn leave_open(&self, call: &mut Call, steps: &Steps) {
        let known = |row: usize| if let Known::Row(row) = &call.known[row] { Some(row.seen()) } else { None };
        let writes = steps.0.iter().filter(|(_, write)| write.id().is_some()).map(|(row, write)| {
            let sent = self.sent(write).not_applied_before(known(*row).as_ref());
            (*row, write.clone().narrowed(&sent))
        });
        let open = Open { id: call.id, said: steps.said(), writes: writes.collect(), is_forgotten: false };
        call.open.push(open);
        call.id += 1;
    }

    /// The end of a call without an answer and with nothing pending.
    pub(super) fn gives_up(&self, call: &Call) -> Told<Said> {
        let is_open = self.has_open_attempts(call) && !self.lacks("open-attempt-is-unknown");
        if is_open { Told::Unknown } else { Told::NotApplied }
    }

    /// Judges the open attempts by a row that was shown.
    pub(super) fn judge_earlier(&self, call: &mut Call, row: usize, shown: Option<&Row>) {
        let (seen, landed) = (shown.map(Row::seen), &mut call.landed);
        call.open.retain_mut(|open| {
            for (_, write) in open.writes.iter_mut().filter(|(of, _)| *of == row) {
                let sent = self.sent(write);
                match judge_open(&sent, seen.as_ref(), false) {
                    Verdict::Landed(_) if self.lacks("knows-earlier-attempt") => {}
                    Verdict::Landed(_) => *landed = Some(open.said),
                    Verdict::NeverApplied => return false,
                    Verdict::Open => *write = write.clone().narrowed(&sent.not_applied_before(seen.as_ref())),
                    Verdict::Unproved | Verdict::Corrupt => {
                        open.is_forgotten = !self.lacks("forgotten-attempt-is-unknown");
                    }
                }
            }
            true
        });
    }

    /// Learns the rows that were shown.
    pub(super) fn learn(&self, call: &mut Call, shown: &Refusals) {
        for row in [X, Y] {
            if let Some(shown) = &shown[row] {
                self.judge_earlier(call, row, shown.as_ref());
                call.known[row] = shown.clone().map_or(Known::Absent, Known::Row);
            }
        }
    }

    /// A row of each open attempt of which no row was shown.
    pub(super) fn unseen(&self, call: &Call, shown: &Refusals) -> Vec<usize> {
        let mut unseen: Vec<_> = Self::rows_of_open(call)
            .iter()
            .filter(|rows| !self.lacks("reads-unseen") && rows.iter().all(|row| shown[*row].is_none()))
            .filter_map(|rows| rows.first().copied())
            .collect();
        unseen.sort_unstable();
        unseen.dedup();
        unseen
    }

    /// The call has read such a row. It decides after the last one.
    pub(super) fn has_read(&self, call: &mut Call, row: usize, found: Option<Row>) -> Next<Self> {
        let mut shown = [None, None];
        shown[row] = Some(found);
        self.learn(call, &shown);
        if call.unread.is_empty() { self.decide_again(call) } else { Next::Pause }
    }

    /// Whether a second copy of these refused steps may still be applied, if no send of them is pending.
    pub(super) fn may_still_land(&self, steps: &[(usize, Write)], refusals: &Refusals) -> bool {
        let may = |write: &Write, row: Option<&Row>| {
            let sent = match write {
                // A check is judged like a write at that version with an unknown id.
                Write::Check { at } => self.sent(&Write::Burn { at: *at, window: 1, id: 0, burn: Vec::new() }),
                Write::AddAnywhere { .. } => return true,
                _ => self.sent(write),
            };
            may_still_land(&sent, row.map(Row::seen).as_ref(), false)
        };
        steps.iter().any(|(_, write)| write.id().is_some())
            && steps.iter().all(|(row, write)| refusals[*row].as_ref().is_none_or(|shown| may(write, shown.as_ref())))
    }

    /// The ids that a write to this row burns.
    pub(super) fn burnable(call: &Call, row: usize, seen: &Row) -> Vec<Id> {
        let writes = call.open.iter().flat_map(|open| &open.writes);
        let here = writes.filter(|(of, write)| *of == row && write.row() == Some(seen.at.incarnation));
        here.filter_map(|(_, write)| write.id()).collect()
    }

    /// The rows that would remember each of the open attempts.
    pub(super) fn rows_of_open(call: &Call) -> Vec<Vec<usize>> {
        call.open.iter().map(Open::rows).collect()
    }

    /// Burns an open attempt that a write to these rows would not exclude.
    pub(super) fn burn_beside(&self, call: &mut Call, writes: &[usize]) -> Option<Next<Self>> {
        let beside = call.open.iter().position(|open| !writes_to(writes, &open.rows()))?;
        let writes = &call.open[beside].writes;
        let Some((row, burned, burn)) = writes.iter().find_map(|(row, write)| self.burn_of(call, *row, write)) else {
            return (!self.lacks("unburned-is-unknown")).then_some(Next::Told(Told::Unknown));
        };
        call.burning = Some(Burning::Open((row, burned), call.open.remove(beside)));
        Some(Next::Send(Steps(vec![(row, burn)])))
    }

    /// The parts of a write that decide whether it can be burned, if it leaves an id.
    pub(super) fn sent_to_burn(&self, write: &Write) -> Option<SentWrite> {
        let can_vanish = self.rows_may_vanish() && !self.lacks("no-tombstone-where-rows-vanish");
        write.sent(self.remembered, can_vanish)
    }

    /// The burn of a write that leaves an id, from the state of its row that is known.
    pub(super) fn burn_of(&self, call: &Call, row: usize, write: &Write) -> Option<(usize, Write, Write)> {
        let burn = match (write, &call.known[row]) {
            _ if !can_be_burned(&self.sent_to_burn(write)?) => return None,
            (Write::Create { .. }, _) => Write::BurnCreate { id: call.id + 1, purge_at: u32::MAX },
            (Write::Update { at, id, .. } | Write::Add { at, id, .. }, Known::Row(seen))
                if seen.at.incarnation == at.incarnation && seen.at.version >= at.version =>
            {
                let window = if matches!(write, Write::Add { window: 2.., .. }) { self.window } else { 1 };
                // The attempt itself may be one of the open ones.
                let burn = Self::burnable(call, row, seen).into_iter().filter(|other| other != id).collect();
                Write::Burn { at: seen.at, window, id: *id, burn }
            }
            _ => return None,
        };
        Some((row, write.clone(), burn))
    }

    pub(super) fn burned(&self, call: &mut Call, burning: Burning, answer: &Answer<Refusals>) -> Next<Self> {
        let (Answer::Applied(shown) | Answer::Refused(shown)) = answer;
        // The row refuses the burned id. The next write is a new one. The burn of a create has an id of its own.
        call.id += 2;
        self.learn(call, shown);
        let verdict = |row: usize, burned: &Write| match answer {
            Answer::Applied(_) => Verdict::NeverApplied,
            Answer::Refused(shown) => {
                let row = shown[row].as_ref().and_then(Option::as_ref);
                judge(&self.sent(burned), row.map(Row::seen).as_ref())
            }
        };
        match burning {
            Burning::Pending { row, burned, steps, mut refusals } => {
                if let Some(landed) = call.landed {
                    return Next::Told(Told::Applied(landed));
                }
                // The burn has shown the row as it is now.
                refusals[row].clone_from(&shown[row]);
                self.settled(call, &steps, verdict(row, &burned), &refusals)
            }
            Burning::Open((row, burned), open) => match verdict(row, &burned) {
                Verdict::Landed(_) => Next::Told(Told::Applied(open.said)),
                Verdict::NeverApplied => {
                    call.has_burned_beside = true;
                    self.decide(call)
                }
                _ => {
                    call.open.push(open);
                    Next::Told(Told::Unknown)
                }
            },
        }
    }
}
