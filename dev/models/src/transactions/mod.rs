//! Transactions over two items: adds with an anchor, bare adds beside a create or an update, checks, burns.
//!
//! The tokens of `DynamoDB` play no part: it has forgotten them all. Only where rows may vanish do they count, because
//! nothing else keeps a second copy of a create from a key that another program has freed. A cancellation may show all
//! failed steps or only the first one.

mod decide;

use crate::protocol::{Answer, Limits, Next, Protocol, Told, promises};
use crate::row::{self, At, Id, Row, Write};
use crate::world::{Checked, World};
use decide::{Burning, Open};
use fencepost::testing::{After, Facts, Verdict, after, burn_helps, judge, judge_steps};
use stateright::Property;

pub const X: usize = 0;
/// The second row: another product or an order.
pub const Y: usize = 1;

/// The intent of one call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Takes two of X or the last one. Adds one to Y.
    Adds {
        /// Whether X is read before the first decision.
        reads_x: bool,
    },
    /// Creates Y, and takes one of X.
    Order,
    /// Sets Y to 0, and gives one back to X.
    Cancel,
    /// Adds one to X by a decision, if Y is as it was read.
    Checked,
    /// Takes two of X, and adds one to Y or creates Y. If X is short, adds two to X instead, and leaves Y alone.
    Restock {
        /// Whether Y is read before the first decision. If it is not, it is created.
        reads_y: bool,
    },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Transactions {
    pub calls: Vec<Kind>,
    /// The number in each row at the beginning. `None` if there is no row.
    pub stock: [Option<i8>; 2],
    /// R.
    pub remembered: u64,
    /// W.
    pub window: u8,
    /// How many updates others make to each row.
    pub others: [u8; 2],
    /// Whether another program may remove Y, and how often it does.
    pub removals: u8,
    /// How often a call decides again.
    pub attempts: u8,
    pub limits: Limits,
    /// The rule that is missing.
    pub without: Option<&'static str>,
}

/// The rows and the remaining events.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Shared {
    pub rows: [Option<Row>; 2],
    others: [u8; 2],
    removals: u8,
    /// The applied transactions with tokens that `DynamoDB` remembers, where rows may vanish.
    tokens: Vec<Steps>,
    /// Whether a cancellation shows all failed steps.
    shows_all: bool,
}

/// The knowledge of a call about a row.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Known {
    Nothing,
    Absent,
    Row(Row),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Call {
    kind: Kind,
    id: Id,
    attempts: u8,
    has_begun: bool,
    known: [Known; 2],
    /// The burn that is sent.
    burning: Option<Burning>,
    /// The earlier attempts that were refused and may still be applied.
    open: Vec<Open>,
    /// The rows of earlier attempts that are read before the next decision.
    unread: Vec<usize>,
    /// The earlier attempt that was applied.
    landed: Option<Said>,
    /// Whether an open attempt was burned before another one was sent.
    has_burned_beside: bool,
}

/// Events beside the calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// Another writer adds one to a row by an update.
    OtherUpdate(usize),
    Removal,
}

/// The steps of one transaction, each with its row.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Steps(Vec<(usize, Write)>);

/// The answer for an applied change: for each row the added amount or the new stock and version.
pub type Said = [Option<(i8, Option<u8>)>; 2];

/// The rows that refused, each of them or only the first.
type Refusals = [Option<Option<Row>>; 2];

const OTHERS: Id = 100;
const FIRST_ROW: Id = 90;
const IDS: Id = 8;
const MOST: i8 = 9;

impl Protocol for Transactions {
    type Shared = Shared;
    type Call = Call;
    type Write = Steps;
    type Event = Event;
    type Said = Said;
    type Shown = Refusals;

    fn limits(&self) -> Limits {
        self.limits
    }

    fn start(&self) -> Vec<(Shared, Vec<Call>)> {
        let rows = [X, Y].map(|row| {
            let at = At { version: 1, incarnation: FIRST_ROW + u8::try_from(row).expect("two rows") };
            self.stock[row].map(|stock| Row { at, memory: Vec::new(), stock, purge_at: None, fence: None })
        });
        let call = |(number, kind): (Id, &Kind)| Call {
            kind: *kind,
            id: number * IDS,
            attempts: self.attempts,
            has_begun: false,
            known: [Known::Nothing, Known::Nothing],
            burning: None,
            open: Vec::new(),
            unread: Vec::new(),
            landed: None,
            has_burned_beside: false,
        };
        let calls: Vec<_> = (1..).zip(&self.calls).map(call).collect();
        let (others, removals) = (self.others, self.removals);
        let shared = |shows_all| Shared { rows: rows.clone(), others, removals, tokens: Vec::new(), shows_all };
        vec![(shared(true), calls.clone()), (shared(false), calls)]
    }

    fn go_on(&self, shared: &mut Shared, call: &mut Call, _: u32) -> Option<Next<Self>> {
        if let Some(row) = call.unread.pop() {
            return Some(self.has_read(call, row, shared.rows[row].clone()));
        }
        if call.has_begun {
            return Some(self.decide(call));
        }
        call.has_begun = true;
        let known = |row: usize| shared.rows[row].clone().map_or(Known::Absent, Known::Row);
        call.known = match call.kind {
            Kind::Adds { reads_x: true } | Kind::Checked => [known(X), known(Y)],
            Kind::Adds { reads_x: false } | Kind::Cancel | Kind::Restock { reads_y: true } => {
                [Known::Nothing, known(Y)]
            }
            // An order reads nothing. A taken key and a product that refuses show themselves.
            Kind::Order | Kind::Restock { reads_y: false } => return Some(self.decide(call)),
        };
        Some(Next::Pause)
    }

    fn meets(&self, shared: &mut Shared, sent @ Steps(steps): &Steps, _: u32) -> (Answer<Refusals>, Option<Said>) {
        if shared.tokens.contains(sent) {
            return (Answer::Applied([None, None]), None);
        }
        let mut next = shared.rows.clone();
        let mut refusals = [None, None];
        for (row, write) in steps {
            match write.apply(shared.rows[*row].as_ref(), None, self.without) {
                Ok(applied) => next[*row] = applied,
                Err(row::Refused) => refusals[*row] = Some(shared.rows[*row].clone()),
            }
        }
        if refusals.iter().any(Option::is_some) {
            let first = steps.iter().map(|(row, _)| *row).find(|row| refusals[*row].is_some());
            if !shared.shows_all {
                refusals
                    .iter_mut()
                    .enumerate()
                    .filter(|(row, _)| Some(*row) != first)
                    .for_each(|(_, shown)| *shown = None);
            }
            return (Answer::Refused(refusals), None);
        }
        let is_burn = sent.is_burn();
        let shown = [X, Y].map(|row| steps.iter().any(|(step, _)| *step == row).then(|| next[row].clone()));
        shared.rows = next;
        if self.rows_may_vanish() && !is_burn {
            shared.tokens.push(sent.clone());
        }
        (Answer::Applied(shown), (!is_burn).then(|| sent.said()))
    }

    fn answered(
        &self,
        _: &mut Shared,
        call: &mut Call,
        sent @ Steps(steps): &Steps,
        _: u32,
        answer: Answer<Refusals>,
        is_pending: bool,
    ) -> Next<Self> {
        if let Some(burning) = call.burning.take() {
            return self.burned(call, burning, &answer);
        }
        let Answer::Refused(refusals) = answer else { return Next::Told(Told::Applied(sent.said())) };
        for row in [X, Y].into_iter().filter(|row| refusals[*row].is_some()) {
            self.judge_earlier(call, row, refusals[row].as_ref().and_then(Option::as_ref));
        }
        if let Some(landed) = call.landed {
            return Next::Told(Told::Applied(landed));
        }
        if self.lacks("judge-first") {
            let mut told = call.clone();
            self.learn(&mut told, &refusals);
            if let next @ Next::Told(_) = self.decide(&mut told) {
                return next;
            }
        }
        let judged = steps.iter().filter_map(|(row, write)| Some((write, refusals[*row].as_ref()?)));
        let verdicts = judged.filter_map(|(write, shown)| Some((self.judge(write, shown.as_ref())?, false)));
        let verdict = judge_steps(verdicts);
        let burnable = || {
            steps.iter().filter(|(row, write)| {
                let shown = refusals[*row].as_ref().and_then(|shown| self.judge(write, shown.as_ref()));
                self.sent_to_burn(write).is_some_and(|sent| burn_helps(&sent, shown))
            })
        };
        let facts = Facts { is_pending, can_burn: burnable().next().is_some(), ..Facts::default() };
        let after = after(verdict, facts);
        if after == After::Burn && !self.lacks("burn-transaction") {
            return match burnable().find_map(|(row, write)| self.burn_of(call, *row, write)) {
                Some((row, burned, burn)) => {
                    call.burning = Some(Burning::Pending { row, burned, steps: sent.clone(), refusals });
                    Next::Send(Steps(vec![(row, burn)]))
                }
                None => self.settled(call, sent, Verdict::Unproved, &refusals),
            };
        }
        let is_open = verdict != Verdict::NeverApplied && self.may_still_land(steps, &refusals);
        self.follow(call, sent, after, &refusals, is_open)
    }

    /// During the burn of a pending attempt, the attempt stays pending.
    fn out_of_time(&self, call: &Call, _: &Steps, is_pending: bool) -> Told<Said> {
        let burns_pending = matches!(call.burning, Some(Burning::Pending { .. }));
        if is_pending || burns_pending { Told::Unknown } else { self.gives_up(call) }
    }

    fn events(&self, world: &World<Self>, events: &mut Vec<Event>) {
        let Shared { rows, others, removals, .. } = &world.shared;
        for row in [X, Y] {
            let is_live = rows[row].as_ref().is_some_and(|row| row.purge_at.is_none() && row.stock < MOST);
            events.extend((others[row] > 0 && is_live).then_some(Event::OtherUpdate(row)));
        }
        events.extend((*removals > 0 && rows[Y].is_some()).then_some(Event::Removal));
    }

    fn happen(&self, shared: &mut Shared, _: &mut u32, event: &Event) {
        match *event {
            Event::Removal => {
                shared.removals -= 1;
                shared.rows[Y] = None;
            }
            Event::OtherUpdate(row) => {
                shared.others[row] -= 1;
                let id = OTHERS + 10 * u8::try_from(row).expect("two rows") + shared.others[row];
                let Some(old) = &shared.rows[row] else { return };
                let prune = old.prunable(self.remembered, id);
                let write = Write::Update { at: old.at, id, prune, burn: Vec::new(), stock: old.stock + 1 };
                shared.rows[row] = write.apply(Some(old), None, None).expect("at its own version");
            }
        }
    }

    fn properties() -> Vec<Property<Checked<Self>>> {
        let mut all = promises();
        all.push(Property::sometimes("a step is being burned", |_, world: &World<Self>| {
            world.callers.iter().any(|caller| matches!(caller.call.burning, Some(Burning::Pending { .. })))
        }));
        all.push(Property::sometimes("told the answer of an earlier attempt", |_, world: &World<Self>| {
            world.callers.iter().any(|caller| caller.is_told_applied() && caller.call.landed.is_some())
        }));
        all.push(Property::sometimes("applied after an earlier attempt was burned", |_, world: &World<Self>| {
            world.callers.iter().any(|caller| caller.is_told_applied() && caller.call.has_burned_beside)
        }));
        all
    }

    /// A second copy of an attempt that was open when its call ended.
    fn is_left_open(&self, call: &Call, Steps(steps): &Steps) -> bool {
        let id = steps.iter().find_map(|(_, write)| write.id());
        let beside = if let Some(Burning::Open(_, open)) = &call.burning { Some(open) } else { None };
        call.open.iter().chain(beside).any(|open| Some(open.id) == id)
    }

    fn has_open_attempts(&self, call: &Call) -> bool {
        !call.open.is_empty() || matches!(call.burning, Some(Burning::Open(..)))
    }

    fn call(&self, call: &Call) -> String {
        match call.kind {
            Kind::Adds { .. } => "transfer",
            Kind::Order => "order",
            Kind::Cancel => "cancellation",
            Kind::Checked => "change",
            Kind::Restock { .. } => "order or restock",
        }
        .to_owned()
    }

    fn write(&self, Steps(steps): &Steps) -> String {
        let name = |row: &usize| if *row == X { "X" } else { "Y" };
        let steps = steps.iter().map(|(row, write)| format!("{}: {}", name(row), write.words()));
        format!("transaction ({})", steps.collect::<Vec<_>>().join("; "))
    }

    fn event(&self, event: &Event) -> String {
        match event {
            Event::OtherUpdate(row) => format!("Somebody else adds one to {} by an update", ["X", "Y"][*row]),
            Event::Removal => "Another program removes the row Y".to_owned(),
        }
    }

    fn said(&self, said: &Said) -> String {
        let one = |(row, said): (&str, &Option<(i8, Option<u8>)>)| match said {
            Some((by, None)) => Some(format!("{row} {by:+}")),
            Some((stock, Some(version))) => Some(format!("{row} has stock {stock} at version {version}")),
            None => None,
        };
        let rows: Vec<_> = ["X", "Y"].into_iter().zip(said).filter_map(one).collect();
        format!(" ({})", rows.join(", "))
    }

    fn rows(&self, shared: &Shared) -> String {
        let [x, y] = shared.rows.each_ref().map(|row| row::words(row.as_ref()));
        format!("X: {x}; Y: {y}")
    }
}

impl Transactions {
    fn lacks(&self, rule: &str) -> bool {
        self.without == Some(rule)
    }

    fn rows_may_vanish(&self) -> bool {
        self.removals > 0
    }

    /// The verdict on a refused step. `None` if it leaves no id.
    fn judge(&self, write: &Write, row: Option<&Row>) -> Option<Verdict> {
        if self.lacks("bare-proves-nothing") && matches!(write, Write::AddAnywhere { .. }) {
            return Some(Verdict::NeverApplied);
        }
        let sent = write.sent(self.remembered, self.rows_may_vanish())?;
        Some(judge(&sent, row.map(Row::seen).as_ref()))
    }
}
