//! Whether one order of the operations explains what all clients of an object saw, by the tester of `stateright`.

use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::rc::Rc;
use std::time::Instant;

/// How many steps a search may try. A history that needs more counts as undecided, and so as a violation.
const STEPS: u64 = 100_000;

/// How a violation begins.
pub const NO_ORDER: &str = "no order of the operations explains what the clients saw";
/// How the sentence about a history begins that was not decided.
pub const UNDECIDED: &str = "the search for an order was given up";

/// An operation as its client saw it.
#[derive(Clone, Debug)]
pub struct Seen<Op, Told> {
    /// Who asked. A client asks one thing after the other.
    pub client: u64,
    /// When it asked.
    pub began: Instant,
    /// When it was told.
    pub ended: Instant,
    /// What it asked for.
    pub op: Op,
    /// What it was told. `None` if it does not know what became of it: it may have been done at any moment since it
    /// began, also after the answer, or never.
    pub told: Option<Told>,
}

/// An object, as its clients understand it.
pub trait Object: Clone + Eq + Hash + 'static {
    /// What can be asked of it.
    type Op: Debug + PartialEq + 'static;
    /// What can be told of that.
    type Told: Debug + 'static;

    /// Does the operation if this can be told of it now, and says whether it can.
    fn does(&mut self, op: &Self::Op, told: &Self::Told) -> bool;

    /// Does an operation of which nobody was told, if it can be done now.
    fn may_do(&mut self, op: &Self::Op);
}

/// Looks for an order of these operations that an object which was `start` explains: each takes effect at one moment
/// between its begin and its end.
///
/// # Errors
/// A sentence, if there is none.
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

/// The last one that began before this one, where both are the same operation and nobody knows what became of either. What
/// the later one can explain, the earlier one can too. So the search does them in this order and does not try the others.
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

/// When an operation began and ended, and whose it was.
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

/// The begins and ends in the order of time. What ends before another begins at the same instant is before it: every
/// request is under way for some time.
///
/// What is unknown ends after everything else, and can be done then in any case. So its client goes on as another one. The
/// tester tries the clients in the order of their numbers, and what is unknown last.
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

/// A place in the search: what was done so far, and what the object is like then.
trait Node {
    /// Does the operation at this place. `false` if that cannot be, or if the search was here before.
    fn goes_on(&mut self, place: usize) -> bool;

    fn fork(&self) -> Box<dyn Node>;
}

struct Branch<O: Object> {
    object: O,
    /// One bit for each operation that was done.
    done: Vec<u64>,
    /// How many operations with an answer are not done yet.
    left: usize,
    seen: Rc<[Seen<O::Op, O::Told>]>,
    /// Of each operation, the one that has to be done before it, if there is one.
    earlier: Rc<[Option<usize>]>,
    /// Where the search was before. It had no luck from there. The tester alone would try every order of operations that
    /// do not depend on each other.
    tried: Rc<RefCell<Tried<O>>>,
}

impl<O: Object> Branch<O> {
    fn is_done(&self, place: usize) -> bool {
        self.done[place / 64] & 1 << (place % 64) != 0
    }
}

/// What was done, and what the object was like then.
type Tried<O> = HashSet<(Vec<u64>, O)>;

impl<O: Object> Node for Branch<O> {
    fn goes_on(&mut self, place: usize) -> bool {
        let Seen { op, told, .. } = &self.seen[place];
        let can = match told {
            Some(told) => {
                self.left -= 1;
                self.object.does(op, told)
            }
            // When all answers are explained, the rest may happen or not.
            None if self.left == 0 => return true,
            None if self.earlier[place].is_some_and(|earlier| !self.is_done(earlier)) => false,
            // What changes nothing now is left for later: it explains nothing.
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

/// What the tester takes for the object: it counts the steps of the search, and explains nothing when they were too many.
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
