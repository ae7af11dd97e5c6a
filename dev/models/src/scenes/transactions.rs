//! The scenes of [`Transactions`].

use super::limits;
use crate::protocol::{COMMITTED, Limits, NOT_APPLIED, ONCE};
use crate::run::{Removal, Scene};
use crate::transactions::{Kind, Rule, Transactions};

const MODEL: &str = "transactions";
const TRANSFER: Kind = Kind::Adds { reads_x: true };
const BLIND: Kind = Kind::Adds { reads_x: false };
const RESTOCK: Kind = Kind::Restock { reads_y: true };
const ORDER_OR_RESTOCK: Kind = Kind::Restock { reads_y: false };

fn two(calls: &[Kind], stock: [Option<i8>; 2], (remembered, window): (u64, u8), limits: Limits) -> Transactions {
    let calls = calls.to_vec();
    Transactions { calls, stock, remembered, window, others: [0, 0], removals: 0, attempts: 2, limits, without: None }
}

pub(super) fn scenes(is_deep: bool) -> Vec<Scene> {
    use Kind::{Cancel, Checked, Order};
    let scene = |name, two| Scene::new(MODEL, name, two);
    let (some, none) = (|x, y| [Some(x), Some(y)], |x| [Some(x), None]);
    if is_deep {
        return vec![
            scene(
                "transfers",
                Transactions { others: [1, 1], ..two(&[TRANSFER, BLIND], some(2, 0), (3, 3), limits(5, 3, 2, 1)) },
            ),
            scene(
                "three-transfers",
                Transactions { ..two(&[TRANSFER, BLIND, BLIND], some(3, 0), (3, 2), limits(4, 2, 1, 0)) },
            ),
            scene(
                "blind-transfers",
                Transactions {
                    others: [2, 1],
                    attempts: 3,
                    ..two(&[BLIND, BLIND], some(1, 0), (3, 3), limits(4, 2, 2, 1))
                },
            ),
            scene(
                "restock-and-transfer",
                Transactions { others: [2, 1], ..two(&[RESTOCK, TRANSFER], some(1, 0), (2, 2), limits(4, 2, 2, 1)) },
            ),
            scene(
                "orders-or-restock",
                Transactions { others: [2, 0], ..two(&[ORDER_OR_RESTOCK, Order], none(1), (2, 1), limits(4, 2, 2, 1)) },
            ),
            scene(
                "restock-where-rows-vanish",
                Transactions {
                    others: [2, 0],
                    removals: 1,
                    ..two(&[ORDER_OR_RESTOCK, Order], none(1), (2, 1), limits(4, 2, 2, 1))
                },
            ),
            scene(
                "order-and-transfer",
                Transactions { others: [1, 0], ..two(&[Order, Cancel, Order], none(1), (2, 1), limits(4, 3, 1, 0)) },
            ),
            scene(
                "order-and-cancellations",
                Transactions {
                    others: [1, 1],
                    ..two(&[Cancel, Cancel, Order], some(1, 1), (2, 1), limits(4, 2, 1, 0))
                },
            ),
            scene(
                "rows-vanish",
                Transactions {
                    others: [2, 0],
                    removals: 2,
                    ..two(&[Order, Order], none(0), (2, 1), limits(5, 3, 2, 1))
                },
            ),
            scene(
                "checks",
                Transactions { others: [1, 1], ..two(&[Checked, TRANSFER], some(2, 1), (2, 2), limits(4, 2, 1, 0)) },
            ),
        ];
    }
    vec![
        scene("throttled", Transactions { others: [1, 0], ..two(&[BLIND], some(1, 0), (3, 3), limits(3, 1, 1, 2)) }),
        scene(
            "throttled-burn",
            Transactions { others: [1, 0], ..two(&[ORDER_OR_RESTOCK], none(1), (2, 1), limits(3, 1, 1, 2)) },
        ),
        scene("anchor", Transactions { others: [1, 1], ..two(&[BLIND], some(1, 0), (3, 3), limits(4, 2, 1, 0)) }),
        scene(
            "short-window",
            Transactions { others: [0, 3], ..two(&[TRANSFER], some(2, 0), (2, 1), limits(4, 1, 1, 0)) },
        ),
        scene("order", Transactions { others: [1, 0], ..two(&[Order], none(0), (2, 1), limits(4, 2, 1, 1)) }),
        scene("order-and-cancellation", Transactions { ..two(&[Order, Cancel], none(1), (2, 1), limits(3, 1, 1, 0)) }),
        scene(
            "orders-where-rows-vanish",
            Transactions { others: [1, 0], removals: 1, ..two(&[Order], none(0), (2, 1), limits(4, 2, 1, 0)) },
        ),
        scene("checks", Transactions { others: [1, 1], ..two(&[Checked], some(1, 1), (2, 1), limits(4, 1, 1, 0)) }),
        scene("restock", Transactions { others: [1, 1], ..two(&[RESTOCK], some(1, 0), (2, 2), limits(4, 1, 1, 0)) }),
        scene(
            "order-or-restock",
            Transactions { others: [1, 0], ..two(&[ORDER_OR_RESTOCK], none(1), (2, 1), limits(4, 1, 1, 0)) },
        ),
        scene(
            "restock-where-rows-vanish",
            Transactions {
                others: [1, 0],
                removals: 1,
                ..two(&[ORDER_OR_RESTOCK], none(1), (2, 1), limits(4, 1, 1, 1))
            },
        ),
        scene("two-transfers", two(&[TRANSFER, BLIND], some(2, 0), (2, 2), limits(3, 1, 1, 0))),
    ]
}

fn removal(name: &'static str, rule: &'static str, keeps: &'static str, without: Rule, two: Transactions) -> Removal {
    let two = Transactions { without: Some(without), ..two };
    Removal { scene: Scene::new(MODEL, name, two), rule, keeps }
}

pub(super) fn removals() -> Vec<Removal> {
    use Kind::{Cancel, Order};
    let (some, none) = (|x, y| [Some(x), Some(y)], |x| [Some(x), None]);
    let few = limits(4, 1, 1, 0);
    vec![
        removal(
            "judge-first",
            "the judge comes before the reason why a step was refused",
            NOT_APPLIED,
            Rule::JudgeFirst,
            two(&[Order], none(1), (2, 1), few),
        ),
        removal(
            "anchor",
            "one row remembers a transaction that only adds",
            ONCE,
            Rule::Anchor,
            two(&[TRANSFER], some(9, 0), (2, 2), few),
        ),
        removal(
            "update-leaves-id",
            "an update in a transaction leaves the id in its row",
            NOT_APPLIED,
            Rule::UpdateLeavesId,
            two(&[Cancel], some(1, 1), (2, 1), few),
        ),
        removal(
            "burn-transaction",
            "a transaction that may still be applied is burned before it is told as refused",
            NOT_APPLIED,
            Rule::Burn,
            Transactions { others: [1, 0], ..two(&[Order], none(0), (2, 1), few) },
        ),
        removal(
            "no-tombstone-where-rows-vanish",
            "a create is not burned by a tombstone that another program may remove",
            NOT_APPLIED,
            Rule::NoTombstoneWhereRowsVanish,
            Transactions { others: [1, 0], removals: 1, ..two(&[Order], none(0), (2, 1), few) },
        ),
        removal(
            "bare-proves-nothing",
            "a refused bare add does not prove that no earlier copy was applied",
            NOT_APPLIED,
            Rule::BareProvesNothing,
            Transactions { others: [0, 2], ..two(&[BLIND], some(2, 0), (2, 1), few) },
        ),
    ]
    .into_iter()
    .chain(removals_of_succession())
    .collect()
}

fn removals_of_succession() -> Vec<Removal> {
    let (some, none) = (|x, y| [Some(x), Some(y)], |x| [Some(x), None]);
    let few = limits(4, 1, 1, 0);
    vec![
        removal(
            "own-id-of-attempt",
            "an attempt that follows one which may still be applied has an id of its own",
            COMMITTED,
            Rule::OwnId,
            Transactions { others: [1, 0], ..two(&[TRANSFER, TRANSFER], some(3, 0), (3, 3), few) },
        ),
        removal(
            "earlier-is-absent",
            "an attempt demands that the row remembers no earlier one",
            ONCE,
            Rule::EarlierIsAbsent,
            Transactions { others: [2, 0], ..two(&[BLIND], some(1, 0), (3, 3), few) },
        ),
        removal(
            "burns-earlier-attempt",
            "an attempt leaves the ids of earlier ones as burned",
            ONCE,
            Rule::BurnsEarlier,
            Transactions { others: [2, 0], ..two(&[BLIND], some(1, 0), (3, 3), few) },
        ),
        removal(
            "burns-beside",
            "an attempt that writes to no row which would remember an earlier one is sent after that one was burned",
            ONCE,
            Rule::BurnsBeside,
            two(&[RESTOCK], some(1, 0), (2, 2), few),
        ),
        removal(
            "unburned-is-unknown",
            "an earlier attempt that nothing excludes or burns makes the outcome unknown",
            ONCE,
            Rule::UnburnedIsUnknown,
            Transactions { removals: 1, ..two(&[ORDER_OR_RESTOCK], none(1), (2, 1), few) },
        ),
        removal(
            "knows-earlier-attempt",
            "a row tells an earlier attempt from the last one",
            NOT_APPLIED,
            Rule::KnowsEarlier,
            Transactions { others: [1, 0], ..two(&[BLIND], some(1, 0), (3, 3), few) },
        ),
        removal(
            "forgotten-attempt-is-unknown",
            "an earlier attempt that a row may have forgotten makes the outcome unknown",
            NOT_APPLIED,
            Rule::ForgottenIsUnknown,
            Transactions { others: [2, 2], ..two(&[BLIND], some(1, 0), (2, 1), few) },
        ),
        removal(
            "reads-unseen",
            "a row of an earlier attempt that a cancellation did not show is read before the next decision",
            NOT_APPLIED,
            Rule::ReadsUnseen,
            Transactions { others: [1, 0], ..two(&[BLIND], some(1, 0), (3, 3), few) },
        ),
        removal(
            "open-attempt-is-unknown",
            "a call that ends without an answer while an attempt is open is unknown",
            NOT_APPLIED,
            Rule::OpenIsUnknown,
            Transactions { others: [1, 0], ..two(&[BLIND], some(1, 0), (3, 3), limits(2, 0, 1, 1)) },
        ),
    ]
}
