//! [`Steps`]: how far one part is, so that a run can say how long it will take.

use std::cell::Cell;

/// The steps of one part. A step is a unit of work of about the same length as the others.
pub struct Steps<'a> {
    all: Cell<usize>,
    done: Cell<usize>,
    show: &'a dyn Fn(f64),
}

impl<'a> Steps<'a> {
    /// Calls `show` with the share that is done, after each step.
    #[must_use]
    pub fn new(show: &'a dyn Fn(f64)) -> Self {
        Steps { all: Cell::new(1), done: Cell::new(0), show }
    }

    /// Sets the number of steps.
    pub fn expect(&self, all: usize) {
        self.all.set(all.max(1));
    }

    /// So many steps are done.
    pub fn done(&self, steps: usize) {
        self.done.set((self.done.get() + steps).min(self.all.get()));
        let as_number = |count: usize| u32::try_from(count).map_or(f64::MAX, f64::from);
        (self.show)(as_number(self.done.get()) / as_number(self.all.get()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn a_part_is_never_more_than_done() {
        let shown = RefCell::new(Vec::new());
        let show = |share| shown.borrow_mut().push(share);
        let steps = Steps::new(&show);
        steps.expect(4);
        for count in [1, 2, 5] {
            steps.done(count);
        }
        assert_eq!(shown.take(), [0.25, 0.75, 1.0]);
    }
}
