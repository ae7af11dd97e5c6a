//! Made-up histories that show which answers a judge accepts.

use crate::linearizable::{self, Object, Seen};
use std::time::{Duration, Instant};

/// The client, its begin and end in milliseconds, the operation and the answer.
pub type Line<Op, Told> = (u64, u64, u64, Op, Option<Told>);

/// The clients' view of these lines.
#[expect(clippy::disallowed_methods, reason = "the moments of a made-up history begin somewhere")]
pub fn seen<Op, Told>(lines: Vec<Line<Op, Told>>) -> Vec<Seen<Op, Told>> {
    let begin = Instant::now();
    let at = |millis| begin + Duration::from_millis(millis);
    let seen = |(client, began, ended, op, told)| Seen { client, began: at(began), ended: at(ended), op, told };
    lines.into_iter().map(seen).collect()
}

/// Asserts that an order explains these lines.
///
/// # Panics
/// If none does.
pub fn assert_order<O: Object>(start: O, lines: Vec<Line<O::Op, O::Told>>) {
    assert_eq!(linearizable::judge(start, seen(lines)), Ok(()));
}

/// Asserts that no order explains these lines.
///
/// # Panics
/// If one does.
pub fn assert_no_order<O: Object>(start: O, lines: Vec<Line<O::Op, O::Told>>) {
    let why = linearizable::judge(start, seen(lines)).expect_err("a violation");
    assert!(why.starts_with(linearizable::NO_ORDER), "{why}");
}
