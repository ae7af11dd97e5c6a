//! An item in the eyes of its clients: a register with reads, compare-and-set, creates, adds within bounds, and
//! deletes.

use crate::linearizable::{self, Object, Seen};
use std::fmt::Debug;
use std::hash::Hash;
use std::rc::Rc;

/// A value that a register holds.
pub trait Value: Clone + Eq + Hash + Debug + 'static {
    /// The amount of an add.
    type Amount: Clone + PartialEq + Debug + 'static;

    /// The value after the add. `None` if it is out of bounds.
    fn plus(&self, amount: &Self::Amount) -> Option<Self>;
}

/// A version of a register in an answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Version {
    /// The row. Only versions of one row are compared.
    pub row: [u8; 8],
    /// The number of changes to the row.
    pub number: u64,
}

/// The operations on a register.
#[derive(Clone, PartialEq, Debug)]
pub enum Op<V: Value> {
    /// Shows the value.
    Read,
    /// Sets the value, if there is none.
    Create(V),
    /// Replaces the expected value.
    CompareAndSet {
        /// The expected value.
        from: V,
        /// The new value.
        to: V,
    },
    /// Adds to the value, within its bounds.
    Add(V::Amount),
    /// Removes the value.
    Delete,
    /// Sets or removes the value, without a condition.
    Put(Option<V>),
    /// Removes the remains of a delete. Versions start again.
    Purge,
}

/// A list that is only replaced.
impl Value for Vec<u64> {
    type Amount = std::convert::Infallible;

    fn plus(&self, amount: &Self::Amount) -> Option<Self> {
        match *amount {}
    }
}

/// The answers to operations.
#[derive(Clone, PartialEq, Debug)]
pub enum Told<V> {
    /// It was done. The version is the one that it made, if the answer shows it.
    Done(Option<Version>),
    /// Nothing was done. This value was there, or none.
    Saw(Option<Shown<V>>),
    /// Nothing was added, because the sum of this value and the amount would be out of bounds.
    OutOfBounds(Shown<V>),
}

/// A value that was there, with its version if the answer shows it.
#[derive(Clone, PartialEq, Debug)]
pub struct Shown<V> {
    /// The value.
    pub value: V,
    /// Its version.
    pub at: Option<Version>,
}

/// An operation on a register as its client saw it.
pub type SeenOf<V> = Seen<Op<V>, Told<V>>;

/// Decides whether a register with this first value explains the clients' answers.
///
/// # Errors
/// A sentence, if it does not.
pub fn judge<V: Value>(value: Option<V>, seen: Vec<SeenOf<V>>) -> Result<(), String> {
    let made = |seen: &SeenOf<V>| if let Some(Told::Done(at)) = seen.told { at } else { None };
    let made: Rc<[Version]> = seen.iter().filter_map(made).collect();
    linearizable::judge(Register { value, at: None, made }, seen)
}

/// The register. Versions rise with every change, as far as the clients know them.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Register<V> {
    value: Option<V>,
    /// The highest known version. `None` if there was none or it was purged.
    at: Option<Version>,
    /// All versions made by changes, as far as answers show them. The search need not try an order that skips one of
    /// them.
    made: Rc<[Version]>,
}

impl<V: Value> Register<V> {
    /// Whether the register can be at this version next. If a change `makes` it, the version must be new.
    fn reaches(&mut self, next: Version, makes: bool) -> bool {
        if self.at.is_some_and(|at| at.row != next.row) {
            return false;
        }
        let now = self.at.map_or(0, |at| at.number);
        let is_skipped =
            |made: &Version| made.row == next.row && now < made.number && made.number < next.number + u64::from(!makes);
        if next.number < now + u64::from(makes) || self.made.iter().any(is_skipped) {
            return false;
        }
        self.at = Some(next);
        true
    }

    /// Whether the register can be in the shown state now.
    fn shows(&mut self, Shown { value, at }: &Shown<V>) -> bool {
        self.value.as_ref() == Some(value) && at.is_none_or(|at| self.reaches(at, false))
    }

    /// A change makes a higher version, even where no client was told which. A put may leave the version unchanged.
    fn rises(&mut self, op: &Op<V>) {
        match (op, &mut self.at) {
            (Op::Purge, at) => *at = None,
            (Op::Put(_), _) | (_, None) => {}
            (_, Some(at)) => at.number += 1,
        }
    }

    /// Performs the operation if it is possible now, and says whether it was.
    fn performs(&mut self, op: &Op<V>) -> bool {
        let next = match (op, &self.value) {
            (Op::Create(value), None) => Some(value.clone()),
            (Op::CompareAndSet { from, to }, Some(now)) if now == from => Some(to.clone()),
            (Op::Add(amount), Some(now)) => {
                let Some(sum) = now.plus(amount) else { return false };
                Some(sum)
            }
            (Op::Delete, Some(_)) | (Op::Purge, None) => None,
            (Op::Put(value), _) => value.clone(),
            _ => return false,
        };
        self.value = next;
        true
    }
}

impl<V: Value> Object for Register<V> {
    type Op = Op<V>;
    type Told = Told<V>;

    fn may_do(&mut self, op: &Op<V>) {
        if self.performs(op) {
            self.rises(op);
        }
    }

    fn does(&mut self, op: &Op<V>, told: &Told<V>) -> bool {
        match told {
            Told::Done(Some(made)) => self.performs(op) && self.reaches(*made, true),
            Told::Done(None) => {
                let can = self.performs(op);
                self.rises(op);
                can
            }
            Told::Saw(None) => self.value.is_none(),
            Told::Saw(Some(shown)) => self.shows(shown),
            Told::OutOfBounds(shown) => !self.clone().performs(op) && self.shows(shown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    impl Value for i64 {
        type Amount = i64;

        fn plus(&self, amount: &i64) -> Option<i64> {
            Some(self + amount).filter(|sum| (0..=10).contains(sum))
        }
    }

    /// The client, its begin and end in milliseconds, the operation and the answer.
    type Line = (u64, u64, u64, Op<i64>, Option<Told<i64>>);

    #[expect(clippy::disallowed_methods, reason = "the moments of a made-up history begin somewhere")]
    fn judged(lines: Vec<Line>) -> Result<(), String> {
        let begin = Instant::now();
        let at = |millis| begin + Duration::from_millis(millis);
        let seen = |(client, began, ended, op, told)| Seen { client, began: at(began), ended: at(ended), op, told };
        judge(Some(5), lines.into_iter().map(seen).collect())
    }

    fn at(number: u64) -> Version {
        Version { row: [1; 8], number }
    }

    fn set(from: i64, to: i64) -> Op<i64> {
        Op::CompareAndSet { from, to }
    }

    fn saw(value: i64, version: u64) -> Told<i64> {
        Told::Saw(Some(Shown { value, at: Some(at(version)) }))
    }

    fn done(version: u64) -> Told<i64> {
        Told::Done(Some(at(version)))
    }

    fn assert_no_order(lines: Vec<Line>) {
        let why = judged(lines).expect_err("a violation");
        assert!(why.starts_with(linearizable::NO_ORDER), "{why}");
    }

    #[test]
    fn a_race_that_one_order_explains_is_accepted() {
        let lines = vec![
            (1, 0, 10, set(5, 6), Some(done(2))),
            (2, 0, 10, Op::Add(2), Some(done(3))),
            (3, 5, 20, Op::Read, Some(saw(6, 2))),
            (1, 30, 40, Op::Delete, Some(done(4))),
            (2, 35, 50, Op::Read, Some(Told::Saw(None))),
            (3, 60, 70, Op::Create(1), Some(done(5))),
        ];
        assert_eq!(judged(lines), Ok(()));
    }

    #[test]
    fn what_no_order_explains_is_a_violation() {
        let deleted = [(1, 0, 10, Op::Delete, Some(done(2))), (2, 20, 30, Op::Read, Some(Told::Saw(None)))];
        let [deleted, looked] = deleted;
        let one = || (1, 0, 10, Op::Add(1), Some(done(2)));
        for (story, lines) in [
            (
                "both were applied to 5",
                vec![(1, 0, 10, set(5, 6), Some(done(2))), (2, 0, 10, set(5, 7), Some(done(3)))],
            ),
            ("an add that counts twice", vec![one(), (2, 20, 30, Op::Read, Some(saw(7, 3)))]),
            ("no commit", vec![(1, 0, 10, Op::Read, Some(saw(9, 2))), (2, 20, 30, Op::Read, Some(saw(5, 1)))]),
            ("a deleted item comes back", vec![deleted, looked, (2, 40, 50, Op::Read, Some(saw(5, 3)))]),
            ("an older read", vec![(1, 0, 10, set(5, 6), Some(done(2))), (2, 11, 20, Op::Read, Some(saw(5, 1)))]),
            ("a version falls", vec![(1, 0, 10, set(5, 6), Some(done(3))), (1, 20, 30, set(6, 7), Some(done(2)))]),
            ("a version is made twice", vec![one(), (1, 20, 30, Op::Add(1), Some(done(2)))]),
        ] {
            let why = judged(lines).expect_err(story);
            assert!(why.starts_with(linearizable::NO_ORDER), "{story}: {why}");
        }
    }

    #[test]
    fn a_value_that_changes_without_its_version_is_a_violation() {
        let read = |began, value, version| (2, began, began + 5, Op::Read, Some(saw(value, version)));
        let unknown = (1, 0, 10, Op::Add(1), None);
        assert_eq!(judged(vec![unknown.clone(), read(20, 5, 1), read(30, 6, 2)]), Ok(()));
        assert_no_order(vec![unknown, read(20, 5, 1), read(30, 6, 1)]);
        let deleted = (1, 10, 20, Op::Delete, Some(Told::Done(None)));
        let created = |version| (1, 30, 40, Op::Create(3), Some(done(version)));
        assert_eq!(judged(vec![read(0, 5, 1), deleted.clone(), created(3)]), Ok(()));
        assert_no_order(vec![read(0, 5, 1), deleted, created(2)]);
    }

    #[test]
    fn a_refusal_for_a_bound_that_was_not_reached_is_a_violation() {
        let refused = |value| Told::OutOfBounds(Shown { value, at: None });
        assert_eq!(judged(vec![(1, 0, 10, Op::Add(6), Some(refused(5)))]), Ok(()));
        assert_no_order(vec![(1, 0, 10, Op::Add(5), Some(refused(5)))]);
    }

    #[test]
    fn what_is_unknown_may_be_done_once_at_any_time_since_it_began_or_never() {
        let unknown = || (1, 10, 20, Op::Add(1), None);
        assert_eq!(judged(vec![unknown(), (1, 30, 40, Op::Read, Some(saw(5, 1)))]), Ok(()));
        assert_eq!(judged(vec![unknown(), (1, 30, 40, Op::Read, Some(saw(6, 2)))]), Ok(()));
        let late = vec![unknown(), (1, 30, 40, Op::Read, Some(saw(5, 1))), (1, 50, 60, Op::Read, Some(saw(6, 2)))];
        assert_eq!(judged(late), Ok(()));
        assert_no_order(vec![unknown(), (1, 30, 40, Op::Read, Some(saw(7, 3)))]);
        assert_no_order(vec![(2, 0, 9, Op::Read, Some(saw(6, 2))), unknown()]);
    }

    /// The first operation has to wait until the second has made room.
    #[test]
    fn two_operations_without_an_answer_take_turns_where_only_that_explains_an_answer() {
        let unknown = |client, op| (client, 0, 10, op, None);
        let lines = [unknown(1, Op::Add(5)), unknown(2, Op::Add(-10)), unknown(3, Op::Add(5))];
        let read = |began, value| (9, began, began + 5, Op::Read, Some(Told::Saw(Some(Shown { value, at: None }))));
        assert_eq!(judged([&lines[..], &[read(20, 10), read(30, 0), read(40, 5)]].concat()), Ok(()));
        assert_no_order([&lines[..], &[read(20, 0), read(30, 10)]].concat());
    }
}
