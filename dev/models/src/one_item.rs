//! One item: adds with windows, updates, deletes that leave tombstones, revives, removal by TTL, burns.
//!
//! The unit of time is ten minutes. All requests of a call are dead before the second unit after its first send is over,
//! and a tombstone stays for six, an hour.

use crate::protocol::{Answer, Limits, Next, Protocol, Told, promises};
use crate::row::{self, At, Demands, Id, Row, Write};
use crate::world::{Checked, World};
use fencepost::testing::{
    AfterAdd, AfterWrite, Stand, Verdict, after_add, after_burn, after_write, is_in_window, is_soon, judge, stand,
};
use fencepost::{Add, Attributes, ItemVersion};
use stateright::Property;
use std::time::{Duration, UNIX_EPOCH};

/// What one call wants.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Adds this to the stock, which must not fall below 0.
    Add(i8),
    /// Adds, but names a version that nobody has seen, higher than the row's by this.
    AddAhead(u8),
    /// Sets the stock by a decision: one more than was read.
    Update,
    /// Deletes the item at any version.
    Delete,
    /// Deletes the item at the version that it looked at, however long ago.
    DeleteAtVersion,
    /// Creates the item.
    Create,
}

/// A rule that the model can do without.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rule {
    /// A refusal is judged by the memory of the row.
    Judge,
    /// An id stays for R commits: it is not removed one commit earlier.
    PruneLate,
    /// The window of an add ends.
    WindowEnds,
    /// The window of an add begins at the version that was seen.
    WindowBegins,
    /// A window is not longer than R.
    WindowWithinMemory,
    /// An add demands that its id is absent.
    IdIsAbsent,
    /// A delete leaves a tombstone.
    Tombstone,
    /// A tombstone keeps the memory.
    TombstoneRemembers,
    /// A write demands the incarnation.
    Incarnation,
    /// An add that may still be applied is burned.
    Burn,
    /// A burn leaves the id of the add.
    BurnLeavesId,
    /// A burned id means that the add was not applied.
    BurnedIsNotApplied,
    /// A resend has the id of the first send.
    SameId,
    /// A throttled resend leaves what is pending.
    ThrottledIsPending,
    /// A tombstone that TTL may remove soon proves nothing about a create.
    Margin,
}

/// The model and its bounds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OneItem {
    /// The calls.
    pub calls: Vec<Kind>,
    /// The stock of the item at the beginning. `None` if there is no item.
    pub stock: Option<i8>,
    /// R.
    pub remembered: u64,
    /// W.
    pub window: u8,
    /// How many updates somebody else makes.
    pub others: u8,
    /// How many hours may pass.
    pub hours: u8,
    /// How often a call decides again.
    pub attempts: u8,
    /// The bounds of the network.
    pub limits: Limits,
    /// The rule that is missing.
    pub without: Option<Rule>,
}

/// The row, and what is left to happen.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Shared {
    /// The row.
    pub row: Option<Row>,
    others: u8,
    hours: u8,
    /// Whether a decision was applied to another state than the one that it was made on.
    is_misplaced: bool,
    /// How many burns were applied.
    has_burned: bool,
}

/// One call.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Call {
    kind: Kind,
    /// The write id of the change. Burned ids are followed by new ones.
    id: Id,
    attempts: u8,
    has_looked: bool,
    /// What it looked at, until it sends.
    looked: Option<Row>,
}

/// What happens beside the calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// Somebody else updates the item.
    OtherUpdate,
    /// An hour passes.
    Hour,
    /// TTL removes the tombstone.
    Ttl,
}

/// Write ids of others, and the incarnation of the first row.
const OTHERS: Id = 100;
const FIRST_ROW: Id = 99;
/// The write ids of one call.
const IDS: Id = 8;
/// An hour, in the unit of the model.
const HOUR: u32 = 6;
/// The highest stock.
const MOST: i8 = 9;

/// A decision is applied to the state that it was made on.
pub const DECIDED: &str = "a decision is applied to the state that it was made on";

impl Protocol for OneItem {
    type Shared = Shared;
    type Call = Call;
    type Write = Write;
    type Event = Event;
    type Shown = Option<Row>;

    fn limits(&self) -> Limits {
        self.limits
    }

    fn start(&self) -> Vec<(Shared, Vec<Call>)> {
        let at = At { version: 1, incarnation: FIRST_ROW };
        let row = |stock| Row { at, memory: vec![(FIRST_ROW, 0)], stock, purge_at: None, fence: None };
        let shared = Shared {
            row: self.stock.map(row),
            others: self.others,
            hours: self.hours,
            is_misplaced: false,
            has_burned: false,
        };
        let call = |(id, kind): (Id, &Kind)| Call {
            kind: *kind,
            id: id * IDS,
            attempts: self.attempts,
            has_looked: false,
            looked: None,
        };
        vec![(shared, (1..).zip(&self.calls).map(call).collect())]
    }

    fn may_go_on(&self, _: &World<Self>, _: usize) -> bool {
        true
    }

    fn go_on(&self, shared: &mut Shared, call: &mut Call, now: u32) -> Option<Next<Write>> {
        if call.has_looked || call.kind == Kind::Create {
            let seen = call.looked.take();
            return Some(self.decide(call, seen.as_ref(), now));
        }
        (call.has_looked, call.looked) = (true, shared.row.clone());
        Some(Next::Pause)
    }

    fn meets(&self, shared: &mut Shared, write: &Write, _: u32) -> (Answer<Option<Row>>, bool) {
        let before = shared.row.clone();
        match write.apply(before.as_ref(), None, self.demands()) {
            Err(row::Refused) => (Answer::Refused(before), false),
            Ok(next) => {
                if let Write::Update { at, .. } | Write::Bury { at, .. } = write {
                    shared.is_misplaced |= before.is_none_or(|row| row.at != *at);
                }
                shared.has_burned |= matches!(write, Write::Burn { .. });
                shared.row.clone_from(&next);
                (Answer::Applied(next), !matches!(write, Write::Burn { .. }))
            }
        }
    }

    fn answered(
        &self,
        _: &mut Shared,
        call: &mut Call,
        write: &Write,
        now: u32,
        answer: Answer<Option<Row>>,
        is_pending: bool,
    ) -> Next<Write> {
        let Answer::Refused(row) = &answer else {
            let Answer::Applied(row) = answer else { return Next::Pause };
            if !matches!(write, Write::Burn { .. }) {
                return Next::Told(Told::Applied);
            }
            call.id += 1;
            return self.stands(call, write, row.as_ref());
        };
        let row = row.as_ref();
        let sent = write.sent(self.remembered, false).expect("each write here leaves an id");
        let verdict = self.judge(&sent, row);
        let after = match write {
            Write::Add { at, window, id, .. } => match after_add(verdict, is_pending) {
                AfterAdd::Burn if self.lacks(Rule::Burn) => AfterAdd::NotApplied,
                AfterAdd::Burn => return Next::Send(Write::Burn { at: *at, window: *window, id: *id }),
                after => after,
            },
            Write::Burn { .. } => {
                call.id += 1;
                after_burn(verdict)
            }
            _ => {
                let purge_at = row.and_then(|row| row.purge_at).map(|units| u64::from(units) * 600);
                let is_create = matches!(write, Write::Create { .. });
                let is_soon = is_create && !self.lacks(Rule::Margin) && is_soon(purge_at, UNIX_EPOCH + Self::time(now));
                let by_client = matches!(call.kind, Kind::Delete | Kind::DeleteAtVersion);
                return match after_write(verdict, is_pending, is_soon, by_client) {
                    AfterWrite::Applied => Next::Told(Told::Applied),
                    AfterWrite::Unknown => Next::Told(Told::Unknown),
                    AfterWrite::Corrupt => Next::Told(Told::NotApplied),
                    AfterWrite::Conflict => self.decide_again(call, row, now),
                };
            }
        };
        match after {
            AfterAdd::Landed(_) => Next::Told(Told::Applied),
            AfterAdd::NotApplied => self.stands(call, write, row),
            AfterAdd::Burn | AfterAdd::Unknown => Next::Told(Told::Unknown),
            AfterAdd::Corrupt => Next::Told(Told::NotApplied),
        }
    }

    /// While a burn is sent, its add is pending.
    fn out_of_time(&self, write: &Write, is_pending: bool) -> Told {
        if is_pending || matches!(write, Write::Burn { .. }) { Told::Unknown } else { Told::NotApplied }
    }

    fn events(&self, world: &World<Self>, events: &mut Vec<Event>) {
        let Shared { row, others, hours, .. } = &world.shared;
        let is_live = row.as_ref().is_some_and(|row| row.purge_at.is_none() && row.stock < MOST);
        events.extend((*others > 0 && is_live).then_some(Event::OtherUpdate));
        events.extend((*hours > 0).then_some(Event::Hour));
        let is_old = row.as_ref().and_then(|row| row.purge_at).is_some_and(|purge_at| purge_at <= world.now);
        events.extend(is_old.then_some(Event::Ttl));
    }

    fn happen(&self, shared: &mut Shared, now: &mut u32, event: &Event) {
        match event {
            Event::Hour => {
                shared.hours -= 1;
                *now += HOUR;
            }
            Event::Ttl => shared.row = None,
            Event::OtherUpdate => {
                shared.others -= 1;
                let Some(row) = &shared.row else { return };
                let id = OTHERS + shared.others;
                let write = Write::Update { at: row.at, id, prune: self.prunable(row, id), stock: row.stock + 1 };
                shared.row = write.apply(Some(row), None, self.demands()).expect("at its own version");
            }
        }
    }

    fn properties() -> Vec<Property<Checked<Self>>> {
        let mut all = promises();
        all.push(Property::always(DECIDED, |_, world: &World<Self>| !world.shared.is_misplaced));
        all
    }

    /// A second copy of a refused add meets a number in bounds, or one of a refused create meets a free key.
    fn is_left_open(&self, write: &Write) -> bool {
        matches!(write, Write::Add { .. } | Write::Create { .. })
    }

    fn again(&self, call: &mut Call, mut write: Write) -> Write {
        if self.lacks(Rule::SameId)
            && let Write::Create { id, .. } | Write::Update { id, .. } | Write::Add { id, .. } = &mut write
        {
            call.id += 1;
            *id = call.id;
        }
        write
    }

    fn throttling_clears_pending(&self) -> bool {
        self.lacks(Rule::ThrottledIsPending)
    }

    fn call(&self, call: &Call) -> String {
        match call.kind {
            Kind::Add(_) | Kind::AddAhead(_) => "add",
            Kind::Update => "update",
            Kind::Delete | Kind::DeleteAtVersion => "delete",
            Kind::Create => "create",
        }
        .to_owned()
    }

    fn write(&self, write: &Write) -> String {
        write.words()
    }

    fn event(&self, event: &Event) -> String {
        match event {
            Event::OtherUpdate => "Somebody else adds one to the stock by an update",
            Event::Hour => "An hour passes",
            Event::Ttl => "TTL removes the tombstone",
        }
        .to_owned()
    }

    fn rows(&self, shared: &Shared) -> String {
        row::words(shared.row.as_ref())
    }
}

impl OneItem {
    fn lacks(&self, rule: Rule) -> bool {
        self.without == Some(rule)
    }

    fn demands(&self) -> Demands {
        Demands {
            first: !self.lacks(Rule::WindowBegins),
            last: !self.lacks(Rule::WindowEnds),
            id_is_absent: !self.lacks(Rule::IdIsAbsent),
            incarnation: !self.lacks(Rule::Incarnation),
            burn_leaves_id: !self.lacks(Rule::BurnLeavesId),
            tombstone: !self.lacks(Rule::Tombstone),
            tombstone_remembers: !self.lacks(Rule::TombstoneRemembers),
            ..Demands::ALL
        }
    }

    /// The judge of production.
    fn judge(&self, sent: &fencepost::testing::SentWrite, row: Option<&Row>) -> Verdict {
        if self.lacks(Rule::Judge) {
            return Verdict::NeverApplied;
        }
        let mut row = row.cloned();
        if self.lacks(Rule::BurnedIsNotApplied) {
            row.iter_mut().flat_map(|row| &mut row.memory).for_each(|(_, trace)| *trace = trace.abs());
        }
        judge(sent, row.map(|row| row.seen()).as_ref())
    }

    fn prunable(&self, row: &Row, by: Id) -> Vec<Id> {
        row.prunable(self.remembered - u64::from(self.lacks(Rule::PruneLate)), by)
    }

    fn time(units: u32) -> Duration {
        Duration::from_mins(10) * units
    }

    /// Decides on this state of the key: what is sent, or told.
    fn decide(&self, call: &Call, row: Option<&Row>, now: u32) -> Next<Write> {
        let (id, purge_at) = (call.id, now + HOUR);
        let live = row.filter(|row| row.purge_at.is_none());
        let write = match (call.kind, row, live) {
            (Kind::Create, None, _) => Write::Create { id, stock: 1 },
            (Kind::Create, Some(row), None) => {
                Write::Update { at: row.at, id, prune: self.prunable(row, id), stock: 1 }
            }
            (Kind::Create, _, Some(_)) | (_, _, None) => return Next::Told(Told::NotApplied),
            (Kind::Add(by), _, Some(row)) => return self.add(call, row, row.at, by),
            (Kind::AddAhead(ahead), _, Some(row)) => {
                return self.add(call, row, At { version: row.at.version + ahead, ..row.at }, 1);
            }
            (Kind::Update, _, Some(row)) if row.stock >= MOST => return Next::Told(Told::NotApplied),
            (Kind::Update, _, Some(row)) => {
                Write::Update { at: row.at, id, prune: self.prunable(row, id), stock: row.stock + 1 }
            }
            (Kind::Delete, _, Some(row)) => Write::Bury { at: row.at, id, prune: self.prunable(row, id), purge_at },
            (Kind::DeleteAtVersion, _, Some(row)) => Write::Bury { at: row.at, id, prune: Vec::new(), purge_at },
        };
        Next::Send(write)
    }

    fn decide_again(&self, call: &mut Call, row: Option<&Row>, now: u32) -> Next<Write> {
        if call.kind == Kind::DeleteAtVersion || call.attempts == 0 {
            return Next::Told(Told::NotApplied);
        }
        call.attempts -= 1;
        self.decide(call, row, now)
    }

    fn add(&self, call: &Call, row: &Row, at: At, by: i8) -> Next<Write> {
        let window = if self.lacks(Rule::WindowWithinMemory) { self.window + 2 } else { self.window };
        let prune = self.prunable(row, call.id);
        Next::Send(Write::Add { at, window, id: call.id, prune, by, low: -by, high: MOST - by })
    }

    /// What an add does that was not applied, by the row that is there.
    fn stands(&self, call: &mut Call, write: &Write, row: Option<&Row>) -> Next<Write> {
        let (Kind::Add(by), Some(row)) = (call.kind, row.filter(|row| row.purge_at.is_none())) else {
            return Next::Told(Told::NotApplied);
        };
        let sent = write.sent(self.remembered, false).expect("an add leaves an id");
        let at =
            ItemVersion { version: row::version(row.at.version), incarnation: row::incarnation(row.at.incarnation) };
        let add = Add::to("stock", i64::from(by)).within(0..=i64::from(MOST));
        match stand(&add, &attributes(row), !is_in_window(&sent, at)) {
            Stand::Takes | Stand::WindowPassed if call.attempts > 0 => {
                call.attempts -= 1;
                self.add(call, row, row.at, by)
            }
            _ => Next::Told(Told::NotApplied),
        }
    }
}

/// The value of an item as production sees it.
pub fn attributes(row: &Row) -> Attributes {
    let stock = aws_sdk_dynamodb::types::AttributeValue::N(row.stock.to_string());
    Attributes::from([("stock".to_owned(), stock)])
}
