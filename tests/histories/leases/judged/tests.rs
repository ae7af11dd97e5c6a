//! Made-up stories of one lease: what the judge accepts, and what it does not.

use super::{Acquirer, Lease, Op, Told, Under};
use judges::made_up::{self, assert_no_order, assert_order};

type Line = made_up::Line<Op, Told>;

/// Two leaders. Each acquires only once, if no number says otherwise.
const ONE: u64 = 1;
const TWO: u64 = 2;

fn by(leader: u64, acquire: u64) -> Acquirer {
    Acquirer { holder: format!("leader-{leader}"), acquire }
}

fn under(leader: u64, token: u64) -> Under {
    Under { holder: format!("leader-{leader}"), token }
}

fn lease(token: u64, renewals: u64, expires_at: u64) -> Told {
    Told::Lease { token, renewals, expires_at }
}

fn held(leader: u64, until: u64) -> Told {
    Told::Held { holder: format!("leader-{leader}"), until }
}

fn acquires(leader: u64, (began, ended): (u64, u64), told: Option<Told>) -> Line {
    (leader, began, ended, Op::Acquire { by: by(leader, leader) }, told)
}

fn renews(leader: u64, (began, ended): (u64, u64), token: u64, told: Option<Told>) -> Line {
    (leader, began, ended, Op::Renew { under: under(leader, token), at: None }, told)
}

fn releases(leader: u64, (began, ended): (u64, u64), token: u64, told: Told) -> Line {
    (leader, began, ended, Op::Release { under: under(leader, token), at: None }, Some(told))
}

fn requires(leader: u64, (began, ended): (u64, u64), token: u64) -> Line {
    (leader, began, ended, Op::Require { under: under(leader, token) }, Some(Told::Done))
}

#[test]
fn a_lease_goes_from_hand_to_hand_under_tokens_that_rise() {
    assert_order(
        Lease::default(),
        vec![
            acquires(ONE, (0, 10), Some(lease(5, 0, 100))),
            acquires(TWO, (20, 30), Some(held(ONE, 100))),
            renews(ONE, (40, 50), 5, Some(lease(5, 1, 140))),
            requires(ONE, (60, 70), 5),
            releases(ONE, (80, 90), 5, Told::Done),
            releases(ONE, (91, 95), 5, Told::Done),
            acquires(TWO, (100, 110), Some(lease(6, 0, 200))),
            releases(ONE, (120, 130), 5, Told::Fenced),
        ],
    );
}

#[test]
fn nobody_is_told_that_another_holds_it_who_acquired_it_itself() {
    let without_an_answer = acquires(TWO, (0, 10), None);
    let again = |acquire| (TWO, 20, 30, Op::Acquire { by: by(TWO, acquire) }, Some(held(TWO, 100)));
    assert_no_order(Lease::default(), vec![without_an_answer.clone(), again(TWO)]);
    assert_order(Lease::default(), vec![without_an_answer, again(3)]);
}

#[test]
fn tokens_do_not_fall_and_are_nobody_elses_after_an_acquire_without_an_answer() {
    for token in [20, 50] {
        assert_no_order(
            Lease::default(),
            vec![
                acquires(ONE, (0, 10), None),
                (ONE, 20, 30, Op::Acquire { by: by(ONE, 3) }, Some(lease(50, 0, 100))),
                requires(ONE, (40, 50), 50),
                acquires(TWO, (200, 210), Some(lease(token, 0, 300))),
            ],
        );
    }
}

#[test]
fn nobody_writes_under_a_token_that_was_replaced() {
    let begun = |leader, began, ended, token| {
        (leader + 10, began, ended, Op::Work { by: by(leader, leader), token }, Some(Told::Done))
    };
    let lines = |second, third| {
        let work = [begun(ONE, 10, 100, 6), begun(TWO, 20, 110, 7)];
        [&[acquires(3, (0, 5), None)], &work[..], &[second, third]].concat()
    };
    assert_no_order(Lease::default(), lines(requires(TWO, (40, 50), 7), requires(ONE, (60, 70), 6)));
    assert_order(Lease::default(), lines(requires(ONE, (40, 50), 6), requires(TWO, (60, 70), 7)));
}

#[test]
fn without_a_renewal_it_ends_when_it_was_told_to_end() {
    let looks = |began, until| acquires(TWO, (began, began + 10), Some(held(ONE, until)));
    let unknown = || acquires(ONE, (0, 10), None);
    assert_order(Lease::default(), vec![unknown(), looks(20, 100), looks(40, 100)]);
    assert_no_order(Lease::default(), vec![unknown(), looks(20, 100), looks(40, 200)]);
}

#[test]
fn each_renewal_has_a_number_of_its_own() {
    let lines = |second| {
        vec![
            acquires(ONE, (0, 10), Some(lease(5, 0, 100))),
            renews(ONE, (20, 30), 5, Some(lease(5, 1, 120))),
            renews(ONE, (40, 50), 5, Some(lease(5, second, 140))),
        ]
    };
    assert_order(Lease::default(), lines(2));
    assert_no_order(Lease::default(), lines(1));
    assert_no_order(Lease::default(), lines(3));
}

#[test]
fn a_renewal_that_demands_a_number_of_renewals_follows_that_number() {
    let demands = |at| (ONE, 20, 30, Op::Renew { under: under(ONE, 5), at: Some(at) }, Some(lease(5, 1, 120)));
    let acquired = || acquires(ONE, (0, 10), Some(lease(5, 0, 100)));
    assert_order(Lease::default(), vec![acquired(), demands(0)]);
    assert_no_order(Lease::default(), vec![acquired(), demands(1)]);
}

#[test]
fn a_token_that_was_replaced_is_not_released() {
    assert_no_order(
        Lease::default(),
        vec![
            acquires(ONE, (0, 10), Some(lease(5, 0, 100))),
            acquires(TWO, (200, 210), Some(lease(6, 0, 300))),
            releases(ONE, (220, 230), 5, Told::Done),
        ],
    );
}

#[test]
fn a_renewal_whose_answer_was_lost_is_seen_by_others() {
    let lines = |renewed: Vec<Line>| {
        let others = [acquires(TWO, (40, 50), Some(held(ONE, 80))), acquires(3, (90, 100), Some(lease(6, 0, 200)))];
        [&[acquires(ONE, (0, 10), Some(lease(5, 0, 60)))], &renewed[..], &others].concat()
    };
    assert_order(
        Lease::default(),
        lines(vec![renews(ONE, (20, 110), 5, None), renews(ONE, (20, 110), 5, Some(Told::Fenced))]),
    );
    assert_no_order(Lease::default(), lines(vec![]));
}
