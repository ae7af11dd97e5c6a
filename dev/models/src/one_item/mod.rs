//! One item: adds with windows, updates, deletes that leave tombstones, revives, removal by TTL, burns.
//!
//! The unit of time is ten minutes. All requests of a call are dead before the second unit after its first send is
//! over. A tombstone stays for six, an hour.

mod decide;

use decide::burnable;

use crate::protocol::{Answer, Limits, Next, Protocol, Told, promises};
use crate::row::{self, At, Id, Row, Write, small};
use crate::world::{Checked, World};
use fencepost::testing::{After, Facts, Verdict, after, burn_helps, judge_steps, may_still_land};
use stateright::Property;

/// The intent of one call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Adds this to the stock, which must not fall below 0.
    Add(i8),
    /// Takes one. Sets an attribute by the result, one or more or none, which is guessed from the stock that it saw.
    AddInBand,
    /// Adds at a made-up version, higher than the row's by this.
    AddAhead(u8),
    /// Takes one by an add. If its bounds refuse it, sets the stock by a decision instead: one less or a refill.
    AddOrUpdate,
    /// Sets the stock by a decision: one more than was read.
    Update,
    Delete,
    /// Deletes the item at the version that it looked at, however long ago.
    DeleteAtVersion,
    Create,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OneItem {
    pub calls: Vec<Kind>,
    /// The stock of the item at the beginning. `None` if there is no item.
    pub stock: Option<i8>,
    /// R.
    pub remembered: u64,
    /// W.
    pub window: u8,
    /// How many updates others make.
    pub others: u8,
    pub hours: u8,
    /// How often a call decides again.
    pub attempts: u8,
    pub limits: Limits,
    /// The rule that is missing.
    pub without: Option<&'static str>,
}

/// The row and the remaining events.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Shared {
    pub row: Option<Row>,
    others: u8,
    hours: u8,
    /// Whether a decision was applied to another state than the one that it was made on.
    is_misplaced: bool,
    has_burned: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Call {
    kind: Kind,
    /// The write id of the attempt. Burned ids are followed by new ones, and so are those of open attempts.
    id: Id,
    /// The refused attempts that may still be applied, with the narrowest known window.
    open: Vec<Write>,
    /// Whether an update follows because the item refused the add.
    has_turned: bool,
    attempts: u8,
    has_looked: bool,
    /// The row that it looked at, until it sends.
    looked: Option<Row>,
}

/// The answer for an applied change.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Said {
    /// The version that the change made.
    version: u8,
    /// The stock, if the call decided on it.
    stock: Option<i8>,
}

/// Events beside the calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    OtherUpdate,
    Hour,
    Ttl,
}

/// Write ids of others and the incarnation of the first row.
const OTHERS: Id = 100;
const FIRST_ROW: Id = 99;
/// The write ids of one call.
const IDS: Id = 8;
const HOUR: u32 = 6;
const MOST: i8 = 9;

pub const DECIDED: &str = "a decision is applied to the state that it was made on";

impl Protocol for OneItem {
    type Shared = Shared;
    type Call = Call;
    type Write = Write;
    type Event = Event;
    type Said = Said;
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
            open: Vec::new(),
            has_turned: false,
            attempts: self.attempts,
            has_looked: false,
            looked: None,
        };
        vec![(shared, (1..).zip(&self.calls).map(call).collect())]
    }

    fn go_on(&self, shared: &mut Shared, call: &mut Call, now: u32) -> Option<Next<Self>> {
        if call.has_looked || call.kind == Kind::Create {
            let seen = call.looked.take();
            return Some(self.decide(call, seen.as_ref(), now));
        }
        (call.has_looked, call.looked) = (true, shared.row.clone());
        Some(Next::Pause)
    }

    fn meets(&self, shared: &mut Shared, write: &Write, _: u32) -> (Answer<Option<Row>>, Option<Said>) {
        let before = shared.row.clone();
        match write.apply(before.as_ref(), None, self.without) {
            Err(row::Refused) => (Answer::Refused(before), None),
            Ok(next) => {
                if let Write::Update { at, .. } | Write::Bury { at, .. } = write {
                    shared.is_misplaced |= before.as_ref().is_none_or(|row| row.at != *at);
                }
                shared.has_burned |= matches!(write, Write::Burn { .. });
                shared.row.clone_from(&next);
                let made = before.map_or(1, |row| row.at.version + 1);
                (Answer::Applied(next), (!matches!(write, Write::Burn { .. })).then(|| said(write, made)))
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
    ) -> Next<Self> {
        let Answer::Refused(row) = &answer else {
            let Answer::Applied(row) = answer else { return Next::Pause };
            if !matches!(write, Write::Burn { .. }) {
                let made = row.as_ref().map_or_else(|| committed(write), |row| row.at.version);
                return Next::Told(Told::Applied(said(write, made)));
            }
            call.id += 1;
            // The burn has burned the open attempts too, so none of them was applied.
            let _ = self.judge_earlier(call, row.as_ref(), now);
            return self.stands(call, write, row.as_ref(), now);
        };
        let row = row.as_ref();
        let (earlier, is_forgotten) = self.judge_earlier(call, row, now);
        if let Some(earlier) = earlier {
            return Next::Told(Told::Applied(earlier));
        }
        let sent = self.sent(write);
        let is_soon = self.is_soon(write, row, now);
        let is_burn = matches!(write, Write::Burn { .. });
        call.id += Id::from(is_burn);
        let shown = match self.judge(&sent, row) {
            // A client may make up the version that it names.
            Verdict::Corrupt if matches!(call.kind, Kind::Delete | Kind::DeleteAtVersion) => Verdict::Unproved,
            verdict => verdict,
        };
        let can_burn = !is_burn && burn_helps(&sent, Some(shown));
        let facts = Facts { is_pending: is_pending || is_burn, can_burn, ..Facts::default() };
        match after(judge_steps([(shown, is_soon)].into_iter()), facts) {
            After::Landed(made) => Next::Told(Told::Applied(said(write, small(made.get())))),
            After::Burn if !self.lacks("burn") => {
                let others = row.map(|row| burnable(call, row)).unwrap_or_default();
                Next::Send(write.burn(row.map(|row| row.at), others).expect("it can be burned"))
            }
            After::Unknown | After::AskRows => Next::Told(Told::Unknown),
            _ if is_forgotten => Next::Told(Told::Unknown),
            After::Corrupt => {
                self.leave_open(call, write, &sent, row);
                Next::Told(Told::NotApplied)
            }
            After::NotApplied | After::Burn => {
                if !is_burn && may_still_land(&sent, self.seen(row).as_ref(), is_soon) {
                    self.leave_open(call, write, &sent, row);
                }
                match write {
                    Write::Add { .. } | Write::Burn { .. } => self.stands(call, write, row, now),
                    _ => self.decide_again(call, row, now),
                }
            }
        }
    }

    /// While a burn is sent, its add is pending.
    fn out_of_time(&self, call: &Call, write: &Write, is_pending: bool) -> Told<Said> {
        if is_pending || matches!(write, Write::Burn { .. }) { Told::Unknown } else { self.gives_up(call) }
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
                let (prune, burn) = (self.prunable(row, id), Vec::new());
                let write = Write::Update { at: row.at, id, prune, burn, stock: row.stock + 1 };
                shared.row = write.apply(Some(row), None, self.without).expect("at its own version");
            }
        }
    }

    fn properties() -> Vec<Property<Checked<Self>>> {
        let mut all = promises();
        all.push(Property::always(DECIDED, |_, world: &World<Self>| !world.shared.is_misplaced));
        all
    }

    /// The second copy of a refused add meets a number in bounds. That of a refused create meets a free key.
    fn is_left_open(&self, call: &Call, write: &Write) -> bool {
        call.open.iter().any(|open| open.id() == write.id())
    }

    fn has_open_attempts(&self, call: &Call) -> bool {
        !call.open.is_empty()
    }

    fn again(&self, call: &mut Call, mut write: Write) -> Write {
        if self.lacks("same-id")
            && let Write::Create { id, .. } | Write::Update { id, .. } | Write::Add { id, .. } = &mut write
        {
            call.id += 1;
            *id = call.id;
        }
        write
    }

    fn throttling_clears_pending(&self) -> bool {
        self.lacks("throttled-is-pending")
    }

    fn call(&self, call: &Call) -> String {
        match call.kind {
            Kind::Add(_) | Kind::AddInBand | Kind::AddAhead(_) => "add",
            Kind::AddOrUpdate => "change",
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

    fn said(&self, Said { version, stock }: &Said) -> String {
        let stock = stock.map(|stock| format!(", with stock {stock}"));
        format!(" (version {version}{})", stock.unwrap_or_default())
    }

    fn rows(&self, shared: &Shared) -> String {
        row::words(shared.row.as_ref())
    }
}

impl OneItem {
    fn lacks(&self, rule: &str) -> bool {
        self.without == Some(rule)
    }
}

/// The answer to an applied write. An add does not decide on the stock.
fn said(write: &Write, version: u8) -> Said {
    let stock = match write {
        Write::Create { stock, .. } | Write::Update { stock, .. } => Some(*stock),
        _ => None,
    };
    Said { version, stock }
}

/// The version that a write at one version makes.
fn committed(write: &Write) -> u8 {
    match write {
        Write::Update { at, .. } | Write::Bury { at, .. } => at.version + 1,
        _ => 1,
    }
}
