//! Transactions over two items: adds with an anchor, bare adds beside a create or an update, checks, burns.
//!
//! The tokens of `DynamoDB` play no part: it has forgotten them all. Only where rows may vanish do they count, because
//! nothing else keeps a second copy of a create from a key that another program has freed. A cancellation may show each
//! step whose condition did not hold, or only the first one.

mod decide;

use crate::protocol::{Answer, Limits, Next, Protocol, Told, promises};
use crate::row::{self, At, Demands, Id, Row, Write};
use crate::world::{Checked, World};
use fencepost::testing::{
    AfterCancellation, StepBurn, Verdict, after_cancellation, after_settling, burn_of_step, judge, judge_steps,
};
use stateright::Property;

/// The first row: a product.
pub const X: usize = 0;
/// The second row: another product, or an order.
pub const Y: usize = 1;

/// What one call wants.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Takes two of X, or the last one, and adds one to Y.
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
}

/// A rule that the model can do without.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rule {
    /// The judge comes before the reason why a step was refused.
    JudgeFirst,
    /// One row remembers a transaction that only adds.
    Anchor,
    /// An update leaves the id in its row.
    UpdateLeavesId,
    /// A transaction that may still be applied is burned.
    Burn,
    /// A create is not burned where rows may vanish.
    NoTombstoneWhereRowsVanish,
    /// A refused bare add proves nothing about earlier copies.
    BareProvesNothing,
}

/// The model and its bounds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Transactions {
    /// The calls.
    pub calls: Vec<Kind>,
    /// The number in each row at the beginning. `None` if there is no row.
    pub stock: [Option<i8>; 2],
    /// R.
    pub remembered: u64,
    /// W.
    pub window: u8,
    /// How many updates somebody else makes to each row.
    pub others: [u8; 2],
    /// Whether another program may remove Y, and how often it does.
    pub removals: u8,
    /// How often a call decides again.
    pub attempts: u8,
    /// The bounds of the network.
    pub limits: Limits,
    /// The rule that is missing.
    pub without: Option<Rule>,
}

/// The rows, and what is left to happen.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Shared {
    /// The rows.
    pub rows: [Option<Row>; 2],
    others: [u8; 2],
    removals: u8,
    /// The applied transactions whose tokens `DynamoDB` remembers, where rows may vanish.
    tokens: Vec<Steps>,
    /// Whether a cancellation shows all steps whose condition did not hold.
    shows_all: bool,
}

/// What a call knows of a row.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Known {
    Nothing,
    Absent,
    Row(Row),
}

/// One call.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Call {
    kind: Kind,
    id: Id,
    attempts: u8,
    has_begun: bool,
    known: [Known; 2],
    /// The step that is being burned.
    burned: Option<(usize, Write)>,
}

/// What happens beside the calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// Somebody else adds one to a row by an update.
    OtherUpdate(usize),
    /// Another program removes Y.
    Removal,
}

/// The steps of one transaction, each with its row.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Steps(Vec<(usize, Write)>);

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
    type Said = ();
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
            burned: None,
        };
        let calls: Vec<_> = (1..).zip(&self.calls).map(call).collect();
        let (others, removals) = (self.others, self.removals);
        let shared = |shows_all| Shared { rows: rows.clone(), others, removals, tokens: Vec::new(), shows_all };
        vec![(shared(true), calls.clone()), (shared(false), calls)]
    }

    fn may_go_on(&self, _: &World<Self>, _: usize) -> bool {
        true
    }

    fn go_on(&self, shared: &mut Shared, call: &mut Call, _: u32) -> Option<Next<Self>> {
        if call.has_begun {
            return Some(self.decide(call));
        }
        call.has_begun = true;
        let known = |row: usize| shared.rows[row].clone().map_or(Known::Absent, Known::Row);
        call.known = match call.kind {
            Kind::Adds { reads_x: true } | Kind::Checked => [known(X), known(Y)],
            Kind::Adds { reads_x: false } | Kind::Cancel => [Known::Nothing, known(Y)],
            // An order reads nothing. A taken key and a product that refuses show themselves.
            Kind::Order => return Some(self.decide(call)),
        };
        Some(Next::Pause)
    }

    fn meets(&self, shared: &mut Shared, sent @ Steps(steps): &Steps, _: u32) -> (Answer<Refusals>, Option<()>) {
        if shared.tokens.contains(sent) {
            return (Answer::Applied([None, None]), None);
        }
        let mut next = shared.rows.clone();
        let mut refusals = [None, None];
        for (row, write) in steps {
            match write.apply(shared.rows[*row].as_ref(), None, self.demands()) {
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
        let is_burn = steps.iter().any(|(_, write)| matches!(write, Write::Burn { .. } | Write::BurnCreate { .. }));
        let shown = [X, Y].map(|row| steps.iter().any(|(step, _)| *step == row).then(|| next[row].clone()));
        shared.rows = next;
        if self.rows_may_vanish() && !is_burn {
            shared.tokens.push(sent.clone());
        }
        (Answer::Applied(shown), (!is_burn).then_some(()))
    }

    fn answered(
        &self,
        _: &mut Shared,
        call: &mut Call,
        Steps(steps): &Steps,
        _: u32,
        answer: Answer<Refusals>,
        is_pending: bool,
    ) -> Next<Self> {
        if let Some((row, burned)) = call.burned.take() {
            return self.burned(call, row, &burned, &answer);
        }
        let Answer::Refused(refusals) = answer else { return Next::Told(Told::Applied(())) };
        if self.lacks(Rule::JudgeFirst) {
            call.learn(&refusals);
            if let next @ Next::Told(_) = self.decide(&mut call.clone()) {
                return next;
            }
        }
        let judged = steps.iter().filter_map(|(row, write)| Some((write, refusals[*row].as_ref()?)));
        let verdicts = judged.filter_map(|(write, shown)| Some((self.judge(write, shown.as_ref())?, false)));
        let after = after_cancellation(judge_steps(verdicts), is_pending, false);
        call.learn(&refusals);
        match after {
            AfterCancellation::Burn if self.lacks(Rule::Burn) => self.decide_again(call),
            AfterCancellation::Burn => match steps.iter().find_map(|step| self.burn_of(call, step)) {
                Some((row, write, burn)) => {
                    call.burned = Some((row, write));
                    Next::Send(Steps(vec![(row, burn)]))
                }
                None => self.settled(call, Verdict::Unproved),
            },
            after => self.follow(call, after),
        }
    }

    fn out_of_time(&self, _: &Call, Steps(steps): &Steps, is_pending: bool) -> Told<()> {
        let is_burn = steps.iter().any(|(_, write)| matches!(write, Write::Burn { .. } | Write::BurnCreate { .. }));
        if is_pending || is_burn { Told::Unknown } else { Told::NotApplied }
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
                shared.rows[row] = write.apply(Some(old), None, Demands::ALL).expect("at its own version");
            }
        }
    }

    fn properties() -> Vec<Property<Checked<Self>>> {
        let mut all = promises();
        all.push(Property::sometimes("a step is being burned", |_, world: &World<Self>| {
            world.callers.iter().any(|caller| caller.call.burned.is_some())
        }));
        all
    }

    /// A second copy of a transaction that was refused by a bare add, or by an anchored one.
    fn is_left_open(&self, _: &Call, Steps(steps): &Steps) -> bool {
        steps.iter().any(|(_, write)| matches!(write, Write::AddAnywhere { .. } | Write::Add { .. }))
    }

    fn call(&self, call: &Call) -> String {
        match call.kind {
            Kind::Adds { .. } => "transfer",
            Kind::Order => "order",
            Kind::Cancel => "cancellation",
            Kind::Checked => "change",
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

    fn rows(&self, shared: &Shared) -> String {
        let [x, y] = shared.rows.each_ref().map(|row| row::words(row.as_ref()));
        format!("X: {x}; Y: {y}")
    }
}

impl Transactions {
    fn lacks(&self, rule: Rule) -> bool {
        self.without == Some(rule)
    }

    fn rows_may_vanish(&self) -> bool {
        self.removals > 0
    }

    fn demands(&self) -> Demands {
        Demands { writes_leave_id: !self.lacks(Rule::UpdateLeavesId), ..Demands::ALL }
    }

    /// The verdict on a refused step. `None` if it leaves no id.
    fn judge(&self, write: &Write, row: Option<&Row>) -> Option<Verdict> {
        if self.lacks(Rule::BareProvesNothing) && matches!(write, Write::AddAnywhere { .. }) {
            return Some(Verdict::NeverApplied);
        }
        let sent = write.sent(self.remembered, self.rows_may_vanish())?;
        Some(judge(&sent, row.map(Row::seen).as_ref()))
    }

    /// The burn of a step, if it leaves an id and can be burned.
    fn burn_of(&self, call: &Call, (row, write): &(usize, Write)) -> Option<(usize, Write, Write)> {
        let sent =
            write.sent(self.remembered, self.rows_may_vanish() && !self.lacks(Rule::NoTombstoneWhereRowsVanish))?;
        let burn = match (burn_of_step(&sent)?, write) {
            (StepBurn::Tombstone, _) => Write::BurnCreate { id: call.id + 1, purge_at: u32::MAX },
            (StepBurn::InRow, Write::Update { at, id, .. }) => Write::Burn { at: *at, window: 1, id: *id },
            (StepBurn::InRow, Write::Add { at, window, id, .. }) => Write::Burn { at: *at, window: *window, id: *id },
            (StepBurn::InRow, _) => return None,
        };
        Some((*row, write.clone(), burn))
    }

    /// The answer to a burn.
    fn burned(&self, call: &mut Call, row: usize, burned: &Write, answer: &Answer<Refusals>) -> Next<Self> {
        // The row refuses the burned id. What follows is a new write. The burn of a create has an id of its own.
        call.id += 2;
        let (Answer::Applied(shown) | Answer::Refused(shown)) = answer;
        call.learn(shown);
        let verdict = match answer {
            Answer::Applied(_) => Some(Verdict::NeverApplied),
            Answer::Refused(shown) => shown[row].as_ref().and_then(|row| self.judge(burned, row.as_ref())),
        };
        self.settled(call, verdict.unwrap_or(Verdict::Unproved))
    }

    /// The end of a transaction with a pending send, of which no more can be found out.
    fn settled(&self, call: &mut Call, verdict: Verdict) -> Next<Self> {
        self.follow(call, after_settling(verdict, true))
    }

    fn follow(&self, call: &mut Call, after: AfterCancellation) -> Next<Self> {
        match after {
            AfterCancellation::Landed => Next::Told(Told::Applied(())),
            AfterCancellation::NotApplied => self.decide_again(call),
            AfterCancellation::Corrupt => Next::Told(Told::NotApplied),
            AfterCancellation::AskRows | AfterCancellation::Burn | AfterCancellation::Unknown => {
                Next::Told(Told::Unknown)
            }
        }
    }
}
