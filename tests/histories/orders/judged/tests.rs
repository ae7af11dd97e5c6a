//! Made-up stories of a shop with one product and one order: what the judge accepts, and what it does not.

use super::{Op, Order, Shop, Told};
use judges::made_up::{self, assert_no_order, assert_order};

type Line = made_up::Line<Op, Told>;

fn shop(stock: i64) -> Shop {
    Shop { stocks: vec![stock], orders: vec![Order::Absent], restocked: vec![false], forgets: false }
}

fn places(client: u64, (began, ended): (u64, u64), told: Option<Told>) -> Line {
    (client, began, ended, Op::Place { order: 0, lines: vec![(0, 1)] }, told)
}

fn cancels(client: u64, (began, ended): (u64, u64), as_placed: bool, told: Option<Told>) -> Line {
    (client, began, ended, Op::Cancel { order: 0, lines: vec![(0, 1)], as_placed }, told)
}

fn restocks(client: u64, (began, ended): (u64, u64), by: i64, told: Told) -> Line {
    (client, began, ended, Op::Restock { restock: 0, product: 0, by }, Some(told))
}

fn looks(began: u64, stock: i64) -> Line {
    (9, began, began + 5, Op::Look { product: 0 }, Some(Told::Stock(stock)))
}

#[test]
fn an_order_takes_stock_once_and_its_cancellation_gives_it_back_once() {
    let lines = |stock| {
        vec![
            places(1, (0, 10), None),
            places(2, (20, 30), Some(Told::IsDone)),
            cancels(1, (40, 50), true, Some(Told::Done)),
            cancels(2, (60, 70), false, Some(Told::Done)),
            looks(80, stock),
        ]
    };
    assert_order(shop(1), lines(1));
    assert_no_order(shop(1), lines(0));
    assert_no_order(shop(1), lines(2));
}

#[test]
fn a_repeat_is_not_told_that_its_own_order_has_taken_the_stock() {
    let repeated = places(1, (20, 30), Some(Told::Insufficient));
    assert_no_order(shop(1), vec![places(1, (0, 10), Some(Told::Done)), repeated.clone()]);
    assert_order(shop(0), vec![repeated]);
}

#[test]
fn a_restock_is_not_refused_because_of_itself_and_counts_once() {
    let first = || restocks(1, (0, 10), -1, Told::Done);
    assert_order(shop(1), vec![first(), restocks(1, (20, 30), -1, Told::IsDone), looks(40, 0)]);
    assert_no_order(shop(1), vec![first(), restocks(1, (20, 30), -1, Told::Insufficient)]);
    assert_no_order(shop(2), vec![first(), restocks(1, (20, 30), -1, Told::Done)]);
}

#[test]
fn an_order_that_was_cancelled_is_not_as_it_was_placed() {
    let lines = |told| {
        vec![
            places(1, (0, 10), Some(Told::Done)),
            cancels(2, (20, 30), false, Some(Told::Done)),
            cancels(1, (40, 50), true, Some(told)),
        ]
    };
    assert_order(shop(1), lines(Told::Changed));
    assert_no_order(shop(1), lines(Told::Done));
}
