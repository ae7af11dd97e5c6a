//! The state of a world: the rows, the callers, the requests on their way and the time. A [`Scene`] has its bounds.

use crate::table::{Does, Hold, OrderKey, Stored, Without, Write};
use fencepost_core::{Answer, Change, ClientState, ItemVersion, Now, SendId, TableRules, WriteId};
use std::time::{Duration, SystemTime};

/// A world at its beginning, with the faults and events that may come.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Scene {
    /// The calls, each with its process.
    pub calls: Vec<(usize, Kind)>,
    pub rows: Vec<Option<Stored>>,
    pub rules: TableRules,
    /// W.
    pub window: u64,
    /// How many attempts a call makes at most, burns included.
    pub attempts: u32,
    /// For how long after the beginning of a call its requests live.
    pub life: Duration,
    pub budget: Budget,
    pub lease: LeaseClocks,
    /// The seed, if the order is drawn at random. Then reads travel too, answers may be late, and time passes in
    /// milliseconds.
    pub seed: Option<u64>,
    pub without: Without,
}

/// How often each fault and event may still come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Budget {
    /// Lost answers, and requests that their callers have given up.
    pub losses: u8,
    /// Second copies.
    pub copies: u8,
    pub throttles: u8,
    pub hedges: u8,
    /// Calls whose time is over.
    pub deadlines: u8,
    /// Futures that are dropped.
    pub drops: u8,
    /// Rejections because of the stored data.
    pub rejections: u8,
    /// Updates of each of the first rows by others that use the crate.
    pub others: [u8; 2],
    /// Writes by other programs, which demand the version, raise it and drop the memory.
    pub overwrites: u8,
    /// Other programs that put the first state of the row back.
    pub resets: u8,
    /// Removals of the last row by another program. Where values may end, another client ends the value, TTL removes it, and
    /// another row takes its place.
    pub removals: u8,
    pub hours: u8,
    pub seconds: u8,
    pub weeks: u8,
}

/// How long a lease is, how far clocks may differ, and how far they do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct LeaseClocks {
    pub length: Duration,
    pub skew: Duration,
    pub apart: Duration,
}

/// The intent of one call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Kind {
    /// Adds this to the stock, which must not fall below 0. Starts from a version without looking at the value.
    Add(i8),
    /// Takes one. Sets an attribute by the result, one or more or none, which is guessed from the stock that it saw.
    AddInBand,
    /// Adds at a made-up version, higher than the row's by this.
    AddAhead(u64),
    /// Takes one by an add. If the item refuses or the service rejects it, sets the stock by a decision instead.
    AddOrUpdate,
    /// Sets the stock by a decision: one more than was read. Waits in line after a conflict.
    Update,
    Delete,
    /// Deletes the item at the version that it looked at, however long ago.
    DeleteAtVersion,
    Create,
    /// Takes two of the first row or the last one. Adds one to the second.
    Adds {
        /// Whether the first row is read before the first decision.
        reads_first: bool,
    },
    /// Creates the second row, and takes one of the first.
    Order,
    /// Sets the second row to 0, and gives one back to the first.
    Cancel,
    /// Adds one to the first row by a decision, if the second is as it was read.
    Checked,
    /// Takes two of the first row, and adds one to the second or creates it. If the first is short, adds two to it
    /// instead, and leaves the second alone.
    Restock {
        /// Whether the second row is read before the first decision. If it is not, it is created.
        reads_second: bool,
    },
    Acquire,
    Renew,
    Release,
    /// Changes the item in a transaction that requires the lease.
    Required,
    /// Adds to the item under the token of the lease.
    Fenced,
    /// Registers an instance with a value.
    Register(OrderKey, u8),
    /// Deletes an instance and all older ones.
    Unregister(OrderKey),
    /// Places the order at this place, and takes so many of each product, without a transaction.
    Place(usize, &'static [(usize, i8)]),
    /// Settles the holds of a product.
    Settle(usize),
    /// A part of an order or a settlement: an edit of a product, the burn of a base, or nothing.
    Take(Hold),
    Back(Hold),
    Burn(Hold),
    #[default]
    Idle,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct World {
    pub rows: Vec<Option<Stored>>,
    pub callers: Vec<Caller>,
    pub flights: Vec<Flight>,
    /// The time since 1970.
    pub now: Duration,
    pub left: Budget,
    /// The tokens of applied transactions, where rows may vanish. Elsewhere the service has forgotten them.
    pub tokens: Vec<[u64; 2]>,
    /// Whether a cancellation shows all failed steps, or the first.
    pub shows_all: bool,
    pub history: History,
}

/// What the promises of leases and instances compare with.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct History {
    /// How far the clock of each process is ahead.
    pub ahead: [Duration; 2],
    pub held: [Option<Held>; 2],
    /// The highest token that was ever acquired.
    pub acquired: u64,
    /// The highest token under which the item was written.
    pub written: u64,
    /// The greatest instance that arrived since there was no row, and whether it was deleted.
    pub greatest: Option<(OrderKey, bool)>,
    /// The promise that was broken by what a request did.
    pub broken: Option<&'static str>,
}

/// The belief of a process that it holds the lease.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Held {
    pub token: u64,
    pub renewals: u64,
    /// Until when, by its own clock, in milliseconds.
    pub until: u64,
}

/// One call, and what really became of it.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Caller {
    pub process: usize,
    pub kind: Kind,
    /// `None` before its beginning and after its end.
    pub run: Option<Run>,
    /// The version that it looked at before its beginning.
    pub looked: Option<ItemVersion>,
    pub began: Option<Duration>,
    pub end: Option<End>,
    /// The attempts that were open at its end.
    pub open: Vec<WriteId>,
    /// What was applied of it, in order.
    pub applied: Vec<Applied>,
    /// How much of it had been applied at its end.
    pub applied_then: usize,
    /// Whether a copy of an open attempt was applied after its end: the case that is known and left open.
    pub is_excused: bool,
    pub met: Met,
    /// The call of which it is a part.
    pub part_of: Option<usize>,
    /// What was missing when it was told as sold out, of each product, if these holds of other orders are all placed.
    pub missing: Vec<(i8, Vec<Hold>)>,
}

/// What a call has met, for the examples that each model has to show.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Met {
    /// Whether an answer was ever missing, or rejected a send whose copy may be applied to other data.
    pub loss: bool,
    /// Whether an attempt was ever open.
    pub open: bool,
    pub burn: bool,
    pub hedge: bool,
    pub ticket: bool,
    /// Whether an earlier attempt was told as applied.
    pub earlier: bool,
}

/// A call that goes on: production's machine, and the front that decides.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Run {
    pub change: Change,
    pub client: ClientState,
    pub known: Vec<Known>,
    /// The attempt that was decided last.
    pub writes: Vec<Write>,
    /// The answers of the attempts that may have been applied.
    pub answers: Vec<(WriteId, Vec<(usize, Does)>)>,
    /// The rows shown by the last answer.
    pub shown: Rows,
    /// The rows that refused the last attempt.
    pub refusal: Rows,
    pub has_sent: bool,
    /// Whether an update follows because the item refused the add.
    pub has_turned: bool,
    /// Whether its time is over.
    pub is_late: bool,
    /// The last number that it drew.
    pub drawn: u64,
    /// The highest number drawn that was used.
    pub used: u64,
    pub progress: Progress,
}

/// Rows with their places.
pub type Rows = Vec<(usize, Option<Stored>)>;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Known {
    Nothing,
    Absent,
    There(Stored),
    /// The lease is lost.
    LostLease,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Applied {
    pub id: Option<WriteId>,
    /// The state that it left, if it has one step with an id.
    pub at: Option<ItemVersion>,
    pub does: Vec<(usize, Does)>,
}

/// What the caller is told.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum End {
    Applied(Applied),
    NotApplied,
    Replayed,
    SoldOut,
    Unknown,
    /// What a register or a delete of an instance is told.
    Instance(Said),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Said {
    New,
    Same,
    Differs,
    Superseded,
    Deleted,
    AlreadyGone,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Flight {
    pub caller: usize,
    /// The number of the send, as long as its answer is awaited.
    pub send: SendId,
    pub request: Request,
    pub way: Way,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Request {
    Read(Vec<usize>),
    Attempt {
        writes: Vec<Write>,
        token: Option<[u64; 2]>,
        /// The ticket to store as the last one served.
        serve: Option<u64>,
    },
    Burn(Write),
    Ticket(usize),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Way {
    /// It is on its way. Its caller waits for the answer.
    Awaited,
    /// It is on its way. Its caller has given up.
    Unheard,
    /// It met the table. The network may deliver a second copy.
    Met,
    /// It met the table, and its answer is on its way. Only random play has this: elsewhere an answer is heard at once,
    /// because the next request of the caller may be late instead.
    Answered(Box<Answer>, Rows),
}

impl Scene {
    /// The time as a caller sees it.
    #[must_use]
    pub fn now(&self, world: &World, caller: usize) -> Now {
        let Caller { process, began, run, part_of, .. } = &world.callers[caller];
        let spent = world.now.saturating_sub(began.unwrap_or(world.now));
        let whole = part_of.and_then(|whole| world.callers[whole].run.as_ref()).or(run.as_ref());
        let is_late = whole.is_some_and(|run| run.is_late);
        let left = if is_late { Duration::ZERO } else { Duration::from_mins(1).saturating_sub(spent) };
        Now { at: world.now, wall: SystemTime::UNIX_EPOCH + world.now + world.history.ahead[*process], left }
    }

    #[must_use]
    pub fn lacks(&self, rule: &str) -> bool {
        self.without == Some(rule)
    }

    #[must_use]
    pub fn is_random(&self) -> bool {
        self.seed.is_some()
    }

    /// Whether rows may vanish, so that the service's memory of tokens counts.
    #[must_use]
    pub fn keeps_tokens(&self) -> bool {
        (self.rules.rows_may_vanish || self.rules.versions_may_repeat) && !self.lacks("token")
    }
}

impl Kind {
    /// Whether it changes two rows together.
    #[must_use]
    pub fn is_transaction(self) -> bool {
        matches!(self, Kind::Adds { .. } | Kind::Order | Kind::Cancel | Kind::Checked | Kind::Restock { .. })
    }

    /// Whether it changes an item, exactly once.
    #[must_use]
    pub fn is_change(self) -> bool {
        let is_part = matches!(self, Kind::Settle(_) | Kind::Take(_) | Kind::Back(_) | Kind::Burn(_) | Kind::Idle);
        let is_instance = matches!(self, Kind::Register(..) | Kind::Unregister(..));
        !is_part && !is_instance && !matches!(self, Kind::Acquire | Kind::Renew | Kind::Release)
    }
}

impl Run {
    #[must_use]
    pub fn stored(&self, row: usize) -> Option<&Stored> {
        if let Known::There(stored) = &self.known[row] { Some(stored) } else { None }
    }

    /// It knows the rows that it was shown.
    pub fn learn(&mut self) {
        for (row, stored) in std::mem::take(&mut self.shown) {
            self.known[row] = stored.map_or(Known::Absent, Known::There);
        }
    }
}

/// How far an order or a settlement has come.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Progress {
    pub decisions: u32,
    /// What the attempt of the last decision has taken, or may have taken.
    pub taken: Vec<Hold>,
    /// Whether nothing proves what became of one of its takes.
    pub has_failed: bool,
    /// How many parts have begun so far, how many are under way, and what follows them.
    pub begun: u64,
    pub parts: usize,
    pub then: Then,
    /// The holds in its way that are not known to be placed, and whether it has looked at their orders.
    pub open: Vec<Hold>,
    pub has_looked: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Then {
    #[default]
    Decide,
    Place,
    Settle,
    Fail,
}

impl Progress {
    /// Whether holds are in its way, at whose orders it may look.
    pub(crate) fn settles(&self) -> bool {
        self.then == Then::Settle && self.parts == 0
    }
}
