//! Calls that end while an earlier attempt is open.

use super::rows::{left, stock, take_or_halve, with_shelf};
use super::transactions::{moved, take_by_adds};
use super::{account, assert_told_is_stored, deposit, with_accounts};
use crate::harness::engine::Engine;
use crate::harness::late::{Moments, Rival};

/// All that follows the second copy is throttled until the deadline, so no row shows that the copy was applied.
#[tokio::test(start_paused = true)]
async fn a_change_that_ends_without_an_answer_while_an_earlier_attempt_may_have_been_applied_is_unknown() {
    let before_the_second = || Moments::all().filter(|moments| (moments.rival, moments.copy) == (1, 1));
    let throttling = |rival| Rival { throttles: true, ..rival };
    let rows = |engine: &Engine| vec![account(engine, "a-1")];
    let rival = throttling(Rival::of(|engine| stock(engine, -20), |engine| stock(engine, 40)));
    assert_told_is_stored(before_the_second(), with_shelf, rival, rows, take_or_halve, left).await;
    let rows = |engine: &Engine| vec![account(engine, "a-1"), account(engine, "a-2")];
    let rival = throttling(Rival::of(|engine| deposit(engine, -30), |engine| deposit(engine, 30)));
    assert_told_is_stored(before_the_second(), with_accounts, rival, rows, take_by_adds, moved).await;
}
