//! Looks for one order of the operations on an object to explain the clients' answers, with the tester of `stateright`.

use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::rc::Rc;
use std::time::Instant;

/// The most steps of a search. A history that needs more counts as undecided, and therefore as a violation.
const STEPS: u64 = 100_000;

/// The start of the sentence about a violation.
pub const NO_ORDER: &str = "no order of the operations explains what the clients saw";
/// The start of the sentence about an undecided history.
pub const UNDECIDED: &str = "the search for an order was given up";

/// An operation as its client saw it.
#[derive(Clone, Debug)]
pub struct Seen<Op, Told> {
    /// The client. It makes one request after the other.
    pub client: u64,
    /// The time of the request.
    pub began: Instant,
    /// The time of the answer.
    pub ended: Instant,
    /// The request.
    pub op: Op,
    /// The answer. `None` if the outcome is unknown: the operation may take effect at any moment after `began`, even
    /// after `ended`, or never.
    pub told: Option<Told>,
}

/// An object, as its clients understand it.
pub trait Object: Clone + Eq + Hash + 'static {
    /// The operations on the object.
    type Op: Debug + PartialEq + 'static;
    /// The answers to them.
    type Told: Debug + 'static;

    /// Performs the operation if it can have this answer now, and says whether it can.
    fn does(&mut self, op: &Self::Op, told: &Self::Told) -> bool;

    /// Performs an operation without an answer, if it is possible now.
    fn may_do(&mut self, op: &Self::Op);
}

/// Looks for an order of these operations that explains all answers. The object is `start` at first. Each operation
/// takes effect at one moment between its begin and its end.
///
/// # Errors
/// A sentence, if there is none or the search was given up.
pub fn judge<O: Object>(start: O, seen: Vec<Seen<O::Op, O::Told>>) -> Result<(), String> {
    let moments: Vec<_> = seen.iter().map(Moments::of).collect();
    let done = vec![0; seen.len().div_ceil(64)];
    let earlier = (0..seen.len()).map(|place| earlier_of_its_kind(&seen, place)).collect();
    let seen: Rc<[_]> = seen.into();
    let left = moments.iter().filter(|moments| moments.is_known).count();
    let node = Branch { object: start, done, left, seen: seen.clone(), earlier, tried: Rc::default() };
    let why = match search(&moments, Box::new(node)) {
        Found::Order => return Ok(()),
        Found::None => NO_ORDER,
        Found::NoTime => UNDECIDED,
    };
    Err(format!("{why}: {}", describe(&seen)))
}

/// The last equal operation that began before this one, where both outcomes are unknown. The earlier one can explain
/// all that the later one can. The search therefore tries only this order.
fn earlier_of_its_kind<Op: PartialEq, Told>(seen: &[Seen<Op, Told>], place: usize) -> Option<usize> {
    let when = |place: usize| (seen[place].began, place);
    let is_like = |other: &usize| seen[*other].told.is_none() && seen[*other].op == seen[place].op;
    let others = (0..seen.len()).filter(|other| when(*other) < when(place)).filter(is_like);
    others.max_by_key(|other| when(*other)).filter(|_| seen[place].told.is_none())
}

fn describe<Op: Debug, Told: Debug>(seen: &[Seen<Op, Told>]) -> String {
    let Some(first) = seen.iter().map(|seen| seen.began).min() else { return String::new() };
    let mut seen: Vec<_> = seen.iter().collect();
    seen.sort_by_key(|seen| seen.began);
    let line = |seen: &Seen<Op, Told>| {
        let [began, ended] = [seen.began, seen.ended].map(|at| (at - first).as_millis());
        format!("[{began}..{ended} ms, client {}: {:?} -> {:?}]", seen.client, seen.op, seen.told)
    };
    seen.into_iter().map(line).collect::<Vec<_>>().join(" ")
}

/// The begin, the end and the client of an operation.
struct Moments {
    client: u64,
    began: Instant,
    ended: Instant,
    is_known: bool,
}

impl Moments {
    fn of<Op, Told>(seen: &Seen<Op, Told>) -> Self {
        Moments { client: seen.client, began: seen.began, ended: seen.ended, is_known: seen.told.is_some() }
    }
}

enum Found {
    Order,
    None,
    NoTime,
}

/// The search itself, for objects of every kind. It is compiled in this package, which is optimised in tests too.
fn search(moments: &[Moments], object: Box<dyn Node>) -> Found {
    let steps = Rc::new(Cell::new(STEPS));
    let mut tester = LinearizabilityTester::new(Counted { object, steps: steps.clone() });
    for (client, event) in events(moments) {
        match event {
            Event::Begins(place) => tester.on_invoke(client, place).map(drop),
            Event::Ends => tester.on_return(client, ()).map(drop),
        }
        .expect("a client asks one thing after the other");
    }
    match tester.is_consistent() {
        true => Found::Order,
        false if steps.get() == 0 => Found::NoTime,
        false => Found::None,
    }
}

enum Event {
    /// The operation at this place.
    Begins(usize),
    Ends,
}

/// The begins and ends in the order of time. An operation that ends at the instant of another's begin comes before it,
/// because every request takes some time.
///
/// An operation with an unknown outcome ends after all others, when it is possible in any case. The client therefore
/// goes on under another number. The tester tries the clients in the order of their numbers, unknown outcomes last.
fn events(moments: &[Moments]) -> Vec<(u64, Event)> {
    let Some(last) = moments.iter().map(|moments| moments.ended).max() else { return Vec::new() };
    let mut events = Vec::new();
    for (place, Moments { client, began, ended, is_known }) in moments.iter().enumerate() {
        let unknown = u64::MAX - u64::try_from(place).expect("few");
        let (client, ended) = if *is_known { (*client, (*ended, 1)) } else { (unknown, (last, 4)) };
        let began = (*began, if ended == (*began, 1) { 2 } else { 3 });
        let ended = (ended.0, if began.1 == 2 { 2 } else { ended.1 });
        events.push(((began, place, 0), client, Event::Begins(place)));
        events.push(((ended, place, 1), client, Event::Ends));
    }
    events.sort_by_key(|(when, ..)| *when);
    events.into_iter().map(|(_, client, event)| (client, event)).collect()
}

/// A place in the search: the operations that were done, and the state of the object.
trait Node {
    /// Performs the operation at this place. `false` if it is impossible, or if the search was here before.
    fn goes_on(&mut self, place: usize) -> bool;

    fn fork(&self) -> Box<dyn Node>;
}

struct Branch<O: Object> {
    object: O,
    /// One bit for each operation, set if it was done.
    done: Vec<u64>,
    /// The number of operations with an answer that are not done yet.
    left: usize,
    seen: Rc<[Seen<O::Op, O::Told>]>,
    /// For each operation, the one that must be done before it, if there is one.
    earlier: Rc<[Option<usize>]>,
    /// Places where the search failed before. The tester alone would try every order of independent operations.
    tried: Rc<RefCell<Tried<O>>>,
}

impl<O: Object> Branch<O> {
    fn is_done(&self, place: usize) -> bool {
        self.done[place / 64] & 1 << (place % 64) != 0
    }
}

/// The operations that were done, and the state of the object.
type Tried<O> = HashSet<(Vec<u64>, O)>;

impl<O: Object> Node for Branch<O> {
    fn goes_on(&mut self, place: usize) -> bool {
        let Seen { op, told, .. } = &self.seen[place];
        let can = match told {
            Some(told) => {
                self.left -= 1;
                self.object.does(op, told)
            }
            // After all answers are explained, the other operations may happen or not.
            None if self.left == 0 => return true,
            None if self.earlier[place].is_some_and(|earlier| !self.is_done(earlier)) => false,
            // An operation that changes nothing now can wait: it explains nothing.
            None => {
                let before = self.object.clone();
                self.object.may_do(op);
                self.object != before
            }
        };
        self.done[place / 64] |= 1 << (place % 64);
        can && self.tried.borrow_mut().insert((self.done.clone(), self.object.clone()))
    }

    fn fork(&self) -> Box<dyn Node> {
        let Branch { object, done, left, seen, earlier, tried } = self;
        let (object, done, tried) = (object.clone(), done.clone(), tried.clone());
        Box::new(Branch { object, done, left: *left, seen: seen.clone(), earlier: earlier.clone(), tried })
    }
}

/// The object for the tester: counts the steps of the search and explains nothing after too many.
struct Counted {
    object: Box<dyn Node>,
    steps: Rc<Cell<u64>>,
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Counted { object: self.object.fork(), steps: self.steps.clone() }
    }
}

impl SequentialSpec for Counted {
    type Op = usize;
    type Ret = ();

    fn invoke(&mut self, _: &usize) {
        unreachable!("every operation ends");
    }

    fn is_valid_step(&mut self, place: &usize, (): &()) -> bool {
        let left = self.steps.get();
        self.steps.set(left.saturating_sub(1));
        left > 0 && self.object.goes_on(*place)
    }
}
