//! Made-up stories of one address: what the judge accepts, and what it does not.

use super::{Address, Op, Told};
use crate::histories::mappings::plan::{Change, Who};
use crate::histories::mappings::scene::What;
use judges::made_up::{self, assert_no_order, assert_order};

type Line = made_up::Line<Op, Told>;

fn who(moment: u64) -> Who {
    Who::one(moment, "i-a")
}

fn registers(client: u64, (began, ended): (u64, u64), moment: u64, told: Option<Told>) -> Line {
    (client, began, ended, Op::Asked(What::Change(Change::Register(who(moment)))), told)
}

fn deletes(client: u64, (began, ended): (u64, u64), moment: u64, told: Option<Told>) -> Line {
    (client, began, ended, Op::Asked(What::Change(Change::Delete(who(moment)))), told)
}

fn looks(began: u64, shown: Option<u64>) -> Line {
    let told = shown.map_or(Told::ShownNothing, |moment| Told::Shown(who(moment)));
    (9, began, began + 5, Op::Asked(What::LookUp), Some(told))
}

#[test]
fn the_newest_stays_whatever_comes_late() {
    assert_order(
        Address::default(),
        vec![
            registers(1, (0, 10), 100, Some(Told::New)),
            registers(2, (0, 50), 200, Some(Told::New)),
            looks(60, Some(200)),
            deletes(1, (70, 80), 100, Some(Told::Superseded(Some(who(200))))),
            looks(90, Some(200)),
            deletes(2, (100, 110), 200, Some(Told::Deleted)),
            looks(120, None),
        ],
    );
}

#[test]
fn an_older_instance_does_not_replace_a_newer_one() {
    let second = |told| registers(2, (20, 30), 100, Some(told));
    let first = || registers(1, (0, 10), 200, Some(Told::New));
    assert_no_order(Address::default(), vec![first(), second(Told::New)]);
    assert_order(Address::default(), vec![first(), second(Told::Superseded(Some(who(200))))]);
}

#[test]
fn what_is_deleted_stays_deleted_though_its_register_comes_once_more() {
    let lines = |last: Line| {
        vec![
            registers(1, (0, 10), 100, Some(Told::New)),
            deletes(1, (20, 30), 100, Some(Told::Deleted)),
            registers(2, (40, 50), 100, None),
            last,
        ]
    };
    assert_order(Address::default(), lines(looks(60, None)));
    assert_no_order(Address::default(), lines(looks(60, Some(100))));
}

#[test]
fn nothing_is_refused_for_a_newer_one_that_nobody_has_asked_for() {
    let superseded = Some(Told::Superseded(None));
    assert_no_order(Address::default(), vec![registers(1, (0, 10), 100, superseded.clone())]);
    assert_no_order(
        Address::default(),
        vec![registers(1, (0, 10), 100, Some(Told::New)), deletes(1, (20, 30), 100, superseded)],
    );
}

#[test]
fn a_look_does_not_show_an_older_instance_than_one_before_it() {
    let lines = |first, second| {
        let registered = [registers(1, (0, 100), 100, Some(Told::New)), registers(2, (0, 100), 200, Some(Told::New))];
        [&registered[..], &[looks(10, Some(first)), looks(20, Some(second))]].concat()
    };
    assert_order(Address::default(), lines(100, 200));
    assert_no_order(Address::default(), lines(200, 100));
}
