//! The decisions of the calls and their conclusions from a row.

use super::{Call, HOUR, Kind, MOST, OneItem, Said, said};
use crate::protocol::{Next, Protocol, Told};
use crate::row::{self, At, Id, Row, Write, small};
use fencepost::testing::{SeenRow, SentWrite, Unmet, Verdict, is_in_window, is_soon, judge, judge_open, unmet};
use fencepost::{Attributes, Edit, ItemVersion};
use std::ops::RangeInclusive;
use std::time::{Duration, UNIX_EPOCH};

const REFILL: i8 = 5;

impl OneItem {
    pub(super) fn prunable(&self, row: &Row, by: Id) -> Vec<Id> {
        row.prunable(self.remembered - u64::from(self.lacks("prune-late")), by)
    }

    pub(super) fn time(units: u32) -> Duration {
        Duration::from_mins(10) * units
    }

    /// Decides on this state of the key.
    pub(super) fn decide(&self, call: &Call, row: Option<&Row>, now: u32) -> Next<Self> {
        let (id, purge_at) = (call.id, now + HOUR);
        let live = row.filter(|row| row.purge_at.is_none());
        let update = |row: &Row, stock| {
            let (prune, burn) = (self.prunable(row, id), burnable(call, row));
            Write::Update { at: row.at, id, prune, burn, stock }
        };
        let write = match (call.kind, row, live) {
            (Kind::Create, None, _) => Write::Create { id, stock: 1 },
            (Kind::Create, Some(row), None) => update(row, 1),
            (Kind::Create, _, Some(_)) | (_, _, None) => return Next::Told(Told::NotApplied),
            (Kind::Add(by), _, Some(row)) => return self.add(call, row, row.at, by),
            (Kind::AddInBand, _, Some(row)) => return self.add(call, row, row.at, -1),
            (Kind::AddAhead(ahead), _, Some(row)) => {
                return self.add(call, row, At { version: row.at.version + ahead, ..row.at }, 1);
            }
            (Kind::Update, _, Some(row)) if row.stock >= MOST => return Next::Told(Told::NotApplied),
            (Kind::Update, _, Some(row)) => update(row, row.stock + 1),
            (Kind::AddOrUpdate, _, Some(row)) if !call.has_turned => return self.add(call, row, row.at, -1),
            (Kind::AddOrUpdate, _, Some(row)) if row.stock > 0 => update(row, row.stock - 1),
            (Kind::AddOrUpdate, _, Some(row)) => update(row, REFILL),
            (Kind::Delete, _, Some(row)) => Write::Bury { at: row.at, id, prune: self.prunable(row, id), purge_at },
            (Kind::DeleteAtVersion, _, Some(row)) => Write::Bury { at: row.at, id, prune: Vec::new(), purge_at },
        };
        Next::Send(write)
    }

    pub(super) fn decide_again(&self, call: &mut Call, row: Option<&Row>, now: u32) -> Next<Self> {
        if call.kind == Kind::DeleteAtVersion {
            return Next::Told(Told::NotApplied);
        }
        if call.attempts == 0 {
            return Next::Told(self.gives_up(call));
        }
        call.attempts -= 1;
        self.decide(call, row, now)
    }

    fn add(&self, call: &Call, row: &Row, at: At, by: i8) -> Next<Self> {
        let window = if self.lacks("window-within-memory") { self.window + 2 } else { self.window };
        let (prune, burn, next) = (self.prunable(row, call.id), burnable(call, row), row.stock + by);
        let results = bands(call.kind).iter().find(|band| band.contains(&next)).cloned().unwrap_or(0..=MOST);
        let (low, high) = (results.start() - by, results.end() - by);
        Next::Send(Write::Add { at, window, id: call.id, prune, burn, by, low, high })
    }

    /// The next step of an add that was not applied, by the current row.
    pub(super) fn stands(&self, call: &mut Call, write: &Write, row: Option<&Row>, now: u32) -> Next<Self> {
        let by = match call.kind {
            Kind::Add(by) => by,
            Kind::AddOrUpdate | Kind::AddInBand => -1,
            _ => return Next::Told(Told::NotApplied),
        };
        let Some(row) = row.filter(|row| row.purge_at.is_none()) else { return Next::Told(Told::NotApplied) };
        let sent = write.sent(self.remembered, false).expect("an add leaves an id");
        let at =
            ItemVersion { version: row::version(row.at.version), incarnation: row::incarnation(row.at.incarnation) };
        let bands = bands(call.kind).iter().map(|band| (i64::from(*band.start())..=i64::from(*band.end()), 0));
        let add = Edit::add("stock", i64::from(by), 0..=i64::from(MOST)).bands("band", "stock", bands);
        match unmet(&add, &attributes(row), !is_in_window(&sent, at)) {
            None | Some(Unmet::WindowPassed) if call.attempts == 0 => Next::Told(self.gives_up(call)),
            None | Some(Unmet::WindowPassed) => {
                call.attempts -= 1;
                self.add(call, row, row.at, by)
            }
            _ if call.kind == Kind::AddOrUpdate => {
                call.has_turned = true;
                self.decide_again(call, Some(row), now)
            }
            _ => Next::Told(Told::NotApplied),
        }
    }

    pub(super) fn judge(&self, sent: &SentWrite, row: Option<&Row>) -> Verdict {
        if self.lacks("judge") { Verdict::NeverApplied } else { judge(sent, self.seen(row).as_ref()) }
    }

    pub(super) fn seen(&self, row: Option<&Row>) -> Option<SeenRow> {
        let mut row = row.cloned();
        if self.lacks("burned-is-not-applied") {
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
        is_create && !self.lacks("margin") && is_soon(purge_at, UNIX_EPOCH + Self::time(now))
    }

    /// Leaves a refused attempt open that may still be applied. The next one has an id of its own.
    pub(super) fn leave_open(&self, call: &mut Call, write: &Write, sent: &SentWrite, row: Option<&Row>) {
        if !self.lacks("own-id") {
            call.open.push(write.clone().narrowed(&sent.not_applied_before(self.seen(row).as_ref())));
            call.id += 1;
        }
    }

    /// The end of a call without an answer and with nothing pending.
    pub(super) fn gives_up(&self, call: &Call) -> Told<Said> {
        let is_open = self.has_open_attempts(call) && !self.lacks("open-is-unknown");
        if is_open { Told::Unknown } else { Told::NotApplied }
    }

    /// The row's evidence on the open attempts: the applied one, and whether the row may have forgotten one.
    pub(super) fn judge_earlier(&self, call: &mut Call, row: Option<&Row>, now: u32) -> (Option<Said>, bool) {
        let (mut landed, mut is_forgotten) = (None, false);
        call.open.retain_mut(|open| {
            let (sent, seen) = (self.sent(open), self.seen(row));
            match judge_open(&sent, seen.as_ref(), self.is_soon(open, row, now)) {
                Verdict::Landed(made) if !self.lacks("knows-earlier") => landed = Some(said(open, small(made.get()))),
                Verdict::Landed(_) => {}
                Verdict::NeverApplied => return false,
                Verdict::Open => *open = open.clone().narrowed(&sent.not_applied_before(seen.as_ref())),
                Verdict::Unproved | Verdict::Corrupt => is_forgotten |= !self.lacks("forgotten-is-unknown"),
            }
            true
        });
        (landed, is_forgotten)
    }
}

/// The bands of the results of an add, of which an attempt sends the one that it guesses.
fn bands(kind: Kind) -> &'static [RangeInclusive<i8>] {
    const ALL: RangeInclusive<i8> = 0..=MOST;
    if kind == Kind::AddInBand { &[0..=0, 1..=MOST] } else { &[ALL] }
}

/// The open attempts that a write to this row burns.
pub(super) fn burnable(call: &Call, row: &Row) -> Vec<Id> {
    call.open.iter().filter(|open| open.row() == Some(row.at.incarnation)).filter_map(Write::id).collect()
}

/// The value of an item as production sees it.
pub fn attributes(row: &Row) -> Attributes {
    let stock = fencepost::AttributeValue::N(row.stock.to_string());
    Attributes::from([("stock".to_owned(), stock)])
}
