//! The rows of a change as they are known, and the steps of a decision about them.

use super::send::{Address, Boxed, Reason, SendOutcome, Sender, step};
use crate::error::Failure;
use fencepost_core::condition::{Clauses, ConditionalWrite, HOLDER, LEASE_KEY, Operation, TOKEN};
use fencepost_core::edit::RawEdit;
use fencepost_core::format::item::Attributes;
use fencepost_core::format::layout::Layout;
use fencepost_core::format::row::{self, Row};
use fencepost_core::hold::Hold;
use fencepost_core::{Base, Incarnation, Leave, Line, Role, Seen, SeenRow, SentWrite, is_in_window, is_lost};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A table of leases. Only its key is of interest here.
pub(crate) static LEASES: Layout = Layout::of_key(LEASE_KEY);

/// What is known of a row.
#[derive(Debug)]
pub(crate) enum Known {
    Nothing,
    Absent,
    Row(Row),
    /// A row that cannot be read, for this reason.
    Damaged(String),
    /// The key of a lease, which is never read. It is lost if a refusal has shown so.
    Lease {
        is_lost: bool,
    },
    /// What refused a write that [repeats](Role::Repeats), as it is stored.
    Stored(Option<Attributes>),
}

impl Known {
    pub(crate) fn of(layout: &Layout, item: Option<Attributes>) -> Result<Self, Failure> {
        Ok(item.map(|row| Row::read(layout, row)).transpose()?.map_or(Known::Absent, Known::Row))
    }

    /// Whether both are the same state of one row.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        matches!((self, other), (Known::Row(one), Known::Row(other)) if one.attributes == other.attributes)
    }

    pub(crate) fn row(&self) -> Option<&Row> {
        if let Known::Row(row) = self { Some(row) } else { None }
    }
}

#[derive(Debug)]
pub(crate) struct KnownRow {
    /// The name of the item in the reads of a transaction.
    pub(crate) name: String,
    pub(crate) address: Address,
    pub(crate) layout: &'static Layout,
    /// How long a tombstone is kept.
    pub(crate) retention: Duration,
    pub(crate) fence: Option<u64>,
    /// Whether it is read before the first decision. Otherwise it is read along, or shown by a refusal.
    pub(crate) is_read_first: bool,
    pub(crate) remembers_items: bool,
    pub(crate) known: Known,
    /// Whether `known` was read or returned by a refusal during this call.
    pub(crate) is_fresh: bool,
    pub(crate) is_looked_at: AtomicBool,
    /// The conditions of edits that the row, as it is known, has refused.
    pub(crate) refused: Vec<Clauses>,
    /// What follows from the number of which parts are held. `None` if none are.
    pub(crate) follows: Option<Follows>,
    /// The table whose rows decide about the holds of this one, if it is known.
    pub(crate) held_for: Option<Arc<Decider>>,
}

/// Adds all that follows to an edit of the held number of this item.
pub(crate) type Follows = fn(&Attributes, RawEdit) -> Result<RawEdit, Failure>;

/// A table whose rows decide about holds.
#[derive(Debug)]
pub(crate) struct Decider {
    pub(crate) table: String,
    pub(crate) layout: &'static Layout,
}

/// A part to take from a row before the row that decides is created.
#[derive(Clone, Debug)]
pub(crate) struct Take {
    pub(crate) row: usize,
    pub(crate) hold: Hold,
    pub(crate) edit: RawEdit,
}

impl KnownRow {
    /// A row of which nothing is known yet.
    pub(crate) fn new(name: String, address: Address, layout: &'static Layout) -> Self {
        KnownRow {
            name,
            address,
            layout,
            retention: Duration::ZERO,
            fence: None,
            is_read_first: false,
            remembers_items: false,
            known: Known::Nothing,
            is_fresh: true,
            is_looked_at: AtomicBool::new(false),
            refused: Vec::new(),
            follows: None,
            held_for: None,
        }
    }

    /// Why a step with this role was refused, without what only its writer reads.
    pub(crate) fn reason(&self, role: &Role, reason: &Reason) -> fencepost_core::Reason {
        match reason {
            Reason::None => fencepost_core::Reason::None,
            Reason::Refused(item) => fencepost_core::Reason::Refused(self.seen(role, item.as_ref())),
            Reason::NotNow => fencepost_core::Reason::NotNow,
            Reason::Rejected => fencepost_core::Reason::Rejected,
        }
    }

    /// What this item says to the judge.
    pub(super) fn judged(&self, item: Option<&Attributes>) -> Option<SeenRow> {
        row::seen(self.layout, item?)
    }

    /// What this item says at the key of a step with this role.
    fn seen(&self, role: &Role, item: Option<&Attributes>) -> Seen {
        match role {
            Role::Requires(mine) => {
                let current = item.and_then(|row| Some((row::read_number(row.get(TOKEN)?)?, row.contains_key(HOLDER))));
                Seen::Lease { is_lost: current.is_some_and(|(current, is_held)| is_lost(*mine, current, is_held)) }
            }
            Role::Repeats => Seen::Row(None),
            _ => match self.judged(item) {
                None if item.is_some() => Seen::Unreadable,
                row => Seen::Row(row),
            },
        }
    }
}

/// One step of a decision, as it is sent and as it is judged.
#[derive(Debug)]
pub(crate) struct WriteStep {
    pub(crate) row: usize,
    pub(crate) role: Role,
    pub(crate) write: ConditionalWrite,
    /// The size of the item after it.
    pub(crate) bytes: usize,
    /// Whether the demanded version may be made up by a client.
    pub(crate) is_named_by_client: bool,
    pub(crate) edit: Option<EditStep>,
}

/// An edit without a demand on the version, beside its request.
#[derive(Debug)]
pub(crate) struct EditStep {
    pub(crate) clauses: Clauses,
    /// Whether the decision rests on no more than the conditions of the edit.
    pub(crate) is_blind: bool,
    /// The same edit as an anchor: in a window, and with the write id.
    pub(crate) anchor: Option<(ConditionalWrite, SentWrite)>,
    /// The edit, if parts of its row may be held.
    pub(crate) edit: Option<RawEdit>,
}

impl WriteStep {
    pub(crate) fn new(row: usize, role: Role, write: ConditionalWrite) -> Self {
        WriteStep { row, role, write, bytes: 0, is_named_by_client: false, edit: None }
    }

    /// Whether it leaves the write id.
    pub(crate) fn is_write(&self) -> bool {
        matches!(self.role, Role::Writes(_))
    }

    /// Whether it demands one state of its row.
    pub(super) fn is_exact(&self) -> bool {
        match &self.role {
            Role::Writes(sent) => sent.is_exact(),
            Role::Adds | Role::Repeats => false,
            Role::Checks(_) | Role::Requires(_) => true,
        }
    }

    pub(super) fn judged(&self, rows: &[KnownRow]) -> fencepost_core::Step {
        let WriteStep { row, role, is_named_by_client, .. } = *self;
        fencepost_core::Step { row, role, rules: rows[row].layout.rules(), is_named_by_client }
    }

    /// The row with a line in which the step may wait for its turn, if it leaves the row.
    pub(super) fn line(&self, rows: &[KnownRow]) -> Option<(usize, Incarnation, Line)> {
        match (self.role.base(), &self.write.action) {
            (Some(Base::Row { incarnation, .. }), Operation::Put { .. } | Operation::Update { .. })
                if !incarnation.is_foreign() =>
            {
                let KnownRow { known, layout, .. } = &rows[self.row];
                let number = |name| known.row().and_then(|row| row.attributes.get(name)).and_then(row::read_number);
                let line = Line {
                    given: number(layout.names.given).unwrap_or(0),
                    served: number(layout.names.served).unwrap_or(0),
                };
                Some((self.row, incarnation, line))
            }
            _ => None,
        }
    }

    pub(crate) fn has_anchor(&self) -> bool {
        self.edit.as_ref().is_some_and(|edit| edit.anchor.is_some())
    }

    pub(crate) fn become_anchor(&mut self) {
        if let Some((write, sent)) = self.edit.as_mut().and_then(|edit| edit.anchor.take()) {
            (self.write, self.role) = (write, Role::Writes(sent));
        }
    }

    /// The conditions of its edit, if nothing else can have made the row refuse the step: the row is in the state that
    /// the step demands, which was decided on `before`.
    pub(super) fn refused_conditions(&self, layout: &Layout, before: &Known, now: &Known) -> Option<Clauses> {
        let (Some(edit), Known::Row(now)) = (&self.edit, now) else { return None };
        let differs = |name: &&str| match before {
            Known::Row(before) => before.attributes.get(*name) != now.attributes.get(*name),
            _ => true,
        };
        let is_as_demanded = match &self.role {
            Role::Writes(sent) if layout.demands_values() => {
                is_in_window(sent, now.at) && !layout.attributes.iter().any(differs)
            }
            Role::Writes(sent) => is_in_window(sent, now.at),
            _ => true,
        };
        is_as_demanded.then(|| edit.clauses.conditions())
    }
}

/// The steps of one attempt.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) steps: Vec<WriteStep>,
    /// How they are sent as a transaction, if they are. A single step is usually a write of its own, for half of the price.
    pub(crate) transact: Option<Transact>,
    /// Whether another decision follows if `DynamoDB` rejects the attempt.
    pub(crate) gives_way: bool,
    /// What a refusal says of other writers.
    pub(crate) contest: Contest,
    /// Whether the row is read again after throttling, because the write would come too late by then.
    pub(crate) rereads: bool,
    /// What is taken before the steps are sent, and given back if they are not applied.
    pub(crate) takes: Vec<Take>,
}

/// What a refusal says of other writers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Contest {
    /// Nothing: an edit has a window, and its own pauses.
    None,
    /// They were first.
    Race,
    /// They were first, and those of this row form a line.
    Line,
}

impl Sending {
    /// One write of one row.
    pub(crate) fn alone(step: WriteStep, layout: &Layout) -> Self {
        Sending {
            steps: vec![step],
            transact: layout.demands_values().then_some(transact as Transact),
            gives_way: false,
            contest: if layout.has_tickets() { Contest::Line } else { Contest::Race },
            rereads: false,
            takes: Vec::new(),
        }
    }

    /// One write that may be applied any number of times, and that its writer judges.
    pub(crate) fn repeating(write: ConditionalWrite) -> Self {
        let steps = vec![WriteStep::new(0, Role::Repeats, write)];
        Sending { steps, transact: None, gives_way: false, contest: Contest::None, rereads: false, takes: Vec::new() }
    }
}

/// Sends steps as a transaction. Only what makes such a change names it, so a program without one does not contain the
/// request.
pub(crate) type Transact = for<'s> fn(&'s Sender, &'s [KnownRow], &'s [WriteStep], [u64; 2], Leave) -> Boxed<'s>;

pub(crate) fn transact<'s>(
    sender: &'s Sender,
    rows: &'s [KnownRow],
    steps: &'s [WriteStep],
    [one, other]: [u64; 2],
    leave: Leave,
) -> Boxed<'s> {
    // Where versions may repeat, only this token keeps a copy from being applied again.
    let keeps_token = steps.iter().any(|step| rows[step.row].layout.demands_values());
    let mismatches = if keeps_token { 0 } else { leave.mismatches };
    let token = format!("{one:016x}{other:016x}{mismatches:02}");
    let steps = steps.iter().map(|one| step(&rows[one.row].address.table, one.write.clone()));
    let steps = steps.collect::<Result<Vec<_>, _>>();
    Box::pin(async move {
        match steps {
            Ok(steps) => sender.transact(steps, token, leave).await,
            Err(source) => (SendOutcome::Rejected(source), false),
        }
    })
}
