//! The scenes of [`OneItem`].

use super::limits;
use crate::one_item::{DECIDED, Kind, OneItem, Rule};
use crate::protocol::{APPLIED, COMMITTED, Limits, NOT_APPLIED, ONCE};
use crate::run::{Removal, Scene};

const MODEL: &str = "one-item";

fn item(calls: &[Kind], stock: Option<i8>, (remembered, window): (u64, u8), limits: Limits) -> OneItem {
    let calls = calls.to_vec();
    OneItem { calls, stock, remembered, window, others: 0, hours: 0, attempts: 1, limits, without: None }
}

pub(super) fn scenes(is_deep: bool) -> Vec<Scene> {
    use Kind::{Add, AddAhead, AddInBand, AddOrUpdate, Create, Delete, DeleteAtVersion, Update};
    let scene = |name, item| Scene::new(MODEL, name, item);
    if is_deep {
        let hedged = |limits| Limits { hedges: true, ..limits };
        return vec![
            scene(
                "adds",
                OneItem { others: 2, attempts: 2, ..item(&[Add(-1), Add(-1)], Some(1), (3, 3), limits(5, 3, 2, 1)) },
            ),
            scene(
                "three-adds",
                OneItem { others: 1, ..item(&[Add(-1), Add(-1), Add(1)], Some(1), (3, 2), limits(4, 2, 1, 0)) },
            ),
            scene(
                "hedged-adds",
                OneItem { others: 2, ..item(&[Add(-1), Add(-1)], Some(1), (3, 3), hedged(limits(5, 2, 2, 1))) },
            ),
            scene(
                "add-and-updates",
                OneItem { others: 2, ..item(&[Add(-1), Update, Update], Some(0), (2, 2), limits(4, 2, 1, 0)) },
            ),
            scene(
                "add-or-updates",
                OneItem { others: 3, attempts: 3, ..item(&[AddOrUpdate, Add(1)], Some(0), (3, 2), limits(4, 1, 2, 1)) },
            ),
            scene(
                "add-or-update-and-delete",
                OneItem {
                    others: 2,
                    attempts: 2,
                    ..item(&[AddOrUpdate, Delete, Create], Some(0), (3, 2), limits(3, 1, 1, 1))
                },
            ),
            scene(
                "bands",
                OneItem { others: 3, attempts: 2, ..item(&[AddInBand, Add(-1)], Some(1), (3, 3), limits(4, 2, 2, 1)) },
            ),
            scene(
                "add-and-delete",
                OneItem {
                    others: 2,
                    hours: 1,
                    ..item(&[Add(-1), Delete, Create], Some(0), (2, 2), limits(3, 2, 1, 0))
                },
            ),
            scene(
                "update-and-delete",
                OneItem { others: 2, ..item(&[Update, Delete, Create], Some(1), (2, 1), limits(4, 2, 1, 0)) },
            ),
            scene(
                "creates-and-delete",
                OneItem { hours: 2, ..item(&[Create, Delete, Create], None, (2, 1), limits(4, 2, 1, 0)) },
            ),
            scene(
                "old-tag",
                OneItem {
                    hours: 1,
                    others: 1,
                    ..item(&[DeleteAtVersion, Delete, Create], Some(1), (2, 1), limits(3, 2, 1, 0))
                },
            ),
            scene(
                "version-made-up",
                OneItem { others: 4, ..item(&[AddAhead(2), Add(1)], Some(1), (3, 2), limits(4, 2, 2, 1)) },
            ),
        ];
    }
    vec![
        scene(
            "throttled",
            OneItem { others: 2, attempts: 2, ..item(&[AddOrUpdate], Some(0), (2, 2), limits(3, 1, 1, 2)) },
        ),
        scene(
            "throttled-bands",
            OneItem { others: 3, ..item(&[AddInBand, Add(-1)], Some(1), (3, 3), limits(2, 1, 1, 1)) },
        ),
        scene("adds", OneItem { others: 2, ..item(&[Add(-1), Add(-1)], Some(1), (3, 3), limits(3, 1, 1, 0)) }),
        scene("short-window", OneItem { others: 3, ..item(&[Add(-1)], Some(1), (2, 1), limits(4, 2, 1, 1)) }),
        scene("add-and-update", OneItem { others: 1, ..item(&[Add(-1), Update], Some(0), (2, 2), limits(3, 1, 1, 1)) }),
        scene(
            "update-and-delete",
            OneItem { others: 1, ..item(&[Update, Delete], Some(1), (2, 1), limits(3, 2, 1, 0)) },
        ),
        scene("create-and-delete", OneItem { hours: 1, ..item(&[Create, Delete], None, (2, 1), limits(3, 2, 1, 0)) }),
        scene("revive", OneItem { hours: 1, ..item(&[Delete, Create], Some(1), (2, 1), limits(3, 2, 1, 0)) }),
        scene(
            "old-tag",
            OneItem { hours: 1, ..item(&[DeleteAtVersion, Delete, Create], Some(1), (2, 1), limits(2, 1, 0, 0)) },
        ),
        scene("version-made-up", OneItem { others: 3, ..item(&[AddAhead(2)], Some(1), (2, 1), limits(3, 1, 1, 0)) }),
        scene(
            "add-or-update",
            OneItem { others: 2, attempts: 2, ..item(&[AddOrUpdate], Some(0), (2, 2), limits(4, 1, 1, 0)) },
        ),
        scene("bands", OneItem { others: 3, ..item(&[AddInBand, Add(-1)], Some(1), (3, 3), limits(3, 1, 1, 0)) }),
    ]
}

fn one(calls: &[Kind], stock: Option<i8>, memory: (u64, u8), others: u8) -> OneItem {
    OneItem { others, ..item(calls, stock, memory, limits(3, 1, 1, 0)) }
}

fn removal(name: &'static str, rule: &'static str, keeps: &'static str, without: Rule, item: OneItem) -> Removal {
    let item = OneItem { without: Some(without), ..item };
    Removal { scene: Scene::new(MODEL, name, item), rule, keeps }
}

pub(super) fn removals() -> Vec<Removal> {
    use Kind::{Add, AddAhead, Update};
    vec![
        removal(
            "judge",
            "a refusal is judged by the memory of the row",
            ONCE,
            Rule::Judge,
            one(&[Update], Some(1), (2, 1), 0),
        ),
        removal(
            "prune-late",
            "an id stays for R commits, and is not removed one commit earlier",
            ONCE,
            Rule::PruneLate,
            one(&[Add(-1)], Some(3), (3, 3), 1),
        ),
        removal(
            "window-ends",
            "the window of an add ends",
            ONCE,
            Rule::WindowEnds,
            one(&[Add(-1)], Some(3), (2, 1), 1),
        ),
        removal(
            "window-begins",
            "the window of an add begins at the version that it names",
            ONCE,
            Rule::WindowBegins,
            one(&[AddAhead(3)], Some(1), (2, 1), 1),
        ),
        removal(
            "window-within-memory",
            "a window is not longer than a row remembers",
            ONCE,
            Rule::WindowWithinMemory,
            one(&[Add(-1)], Some(3), (2, 2), 1),
        ),
        removal(
            "id-is-absent",
            "an add demands that the row does not know its id",
            ONCE,
            Rule::IdIsAbsent,
            one(&[Add(-1)], Some(3), (3, 3), 0),
        ),
        removal(
            "same-id",
            "a resend has the id of the first send",
            ONCE,
            Rule::SameId,
            one(&[Add(-1)], Some(3), (3, 3), 0),
        ),
    ]
    .into_iter()
    .chain(removals_of_succession())
    .chain(removals_of_deletes_and_burns())
    .collect()
}

fn removals_of_succession() -> Vec<Removal> {
    use Kind::{AddOrUpdate, Delete};
    let turned = |others| OneItem { attempts: 2, ..one(&[AddOrUpdate], Some(0), (2, 2), others) };
    vec![
        removal(
            "own-id",
            "an attempt that follows one which may still be applied has an id of its own",
            COMMITTED,
            Rule::OwnId,
            turned(1),
        ),
        removal(
            "burns-earlier",
            "an attempt leaves the ids of earlier ones as burned",
            ONCE,
            Rule::BurnsEarlier,
            turned(0),
        ),
        removal(
            "knows-earlier",
            "a row tells an earlier attempt from the last one",
            NOT_APPLIED,
            Rule::KnowsEarlier,
            OneItem { attempts: 2, ..one(&[AddOrUpdate, Delete], Some(0), (3, 2), 1) },
        ),
        removal(
            "forgotten-is-unknown",
            "an earlier attempt that a row may have forgotten makes the outcome unknown",
            ONCE,
            Rule::ForgottenIsUnknown,
            turned(2),
        ),
        removal(
            "open-is-unknown",
            "a call that ends without an answer while an attempt is open is unknown",
            NOT_APPLIED,
            Rule::OpenIsUnknown,
            OneItem { limits: limits(2, 0, 1, 1), ..turned(1) },
        ),
    ]
}

fn removals_of_deletes_and_burns() -> Vec<Removal> {
    use Kind::{Add, Create, Delete, DeleteAtVersion, Update};
    vec![
        removal(
            "tombstone",
            "a delete leaves a tombstone",
            ONCE,
            Rule::Tombstone,
            one(&[Create, Delete], None, (2, 1), 0),
        ),
        removal(
            "tombstone-remembers",
            "a tombstone keeps the memory of its item",
            NOT_APPLIED,
            Rule::TombstoneRemembers,
            one(&[Update, Delete], Some(1), (3, 1), 0),
        ),
        removal(
            "incarnation",
            "a write to a row demands its incarnation",
            DECIDED,
            Rule::Incarnation,
            OneItem { hours: 1, ..one(&[DeleteAtVersion, Delete, Create], Some(1), (2, 1), 0) },
        ),
        removal(
            "burn",
            "an add that may still be applied is burned before it is told as refused",
            NOT_APPLIED,
            Rule::Burn,
            one(&[Add(-1)], Some(0), (3, 3), 1),
        ),
        removal(
            "burn-leaves-id",
            "a burn leaves the id",
            NOT_APPLIED,
            Rule::BurnLeavesId,
            one(&[Add(-1)], Some(0), (3, 3), 1),
        ),
        removal(
            "burned-is-not-applied",
            "a burned id means that the add was not applied",
            APPLIED,
            Rule::BurnedIsNotApplied,
            OneItem { limits: limits(4, 2, 0, 0), ..one(&[Add(-1)], Some(0), (3, 3), 0) },
        ),
        removal(
            "throttled-is-pending",
            "a throttled resend clears nothing that is pending",
            NOT_APPLIED,
            Rule::ThrottledIsPending,
            OneItem { limits: limits(3, 1, 0, 1), ..one(&[Add(-1)], Some(0), (3, 3), 1) },
        ),
        removal(
            "margin",
            "a tombstone that TTL may remove soon proves nothing about a create",
            NOT_APPLIED,
            Rule::Margin,
            OneItem { hours: 1, ..one(&[Delete, Create], Some(1), (2, 1), 0) },
        ),
    ]
}
