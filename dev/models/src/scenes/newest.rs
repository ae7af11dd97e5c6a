//! The scenes of [`Newest`].

use super::limits;
use crate::newest::{GREATEST, Instance, Kind, Newest, Rule, SUPERSEDED};
use crate::protocol::Limits;
use crate::run::{Removal, Scene};

const MODEL: &str = "newest";
const OLD: Instance = (1, Some('a'));
const TIED: Instance = (1, Some('b'));
const NEW: Instance = (2, Some('a'));
const ALL_OLD: Instance = (1, None);

fn key(calls: &[Kind], limits: Limits) -> Newest {
    Newest { calls: calls.to_vec(), hours: 0, limits, without: None }
}

pub(super) fn scenes(is_deep: bool) -> Vec<Scene> {
    use Kind::{Delete, Register};
    let scene = |name, key| Scene::new(MODEL, name, key);
    let few = limits(2, 1, 1, 0);
    if is_deep {
        let more = limits(3, 2, 2, 0);
        return vec![
            scene("order", key(&[Register(OLD, 1), Register(NEW, 1), Delete(OLD), Delete(NEW)], more)),
            scene("ties", key(&[Register(OLD, 1), Register(TIED, 1), Delete(OLD), Delete(ALL_OLD)], more)),
            scene("values", key(&[Register(OLD, 1), Register(OLD, 2), Register(OLD, 1), Delete(OLD)], more)),
            scene("removal", Newest { hours: 2, ..key(&[Delete(OLD), Register(OLD, 1), Register(NEW, 1)], more) }),
        ];
    }
    vec![
        scene("order", key(&[Register(OLD, 1), Register(NEW, 1), Delete(OLD), Delete(NEW)], limits(2, 1, 0, 0))),
        scene("ties", key(&[Register(OLD, 1), Register(TIED, 1), Delete(OLD)], few)),
        scene("nameless", key(&[Register(OLD, 1), Register(TIED, 1), Delete(ALL_OLD)], few)),
        scene("values", key(&[Register(OLD, 1), Register(OLD, 2), Register(OLD, 1)], few)),
        scene("removal", Newest { hours: 2, ..key(&[Delete(OLD), Register(OLD, 1)], limits(3, 2, 1, 0)) }),
    ]
}

pub(super) fn removals() -> Vec<Removal> {
    use Kind::{Delete, Register};
    let removal = |name, rule, keeps, without, key: Newest| {
        let key = Newest { without: Some(without), ..key };
        Removal { scene: Scene::new(MODEL, name, key), rule, keeps }
    };
    let few = limits(2, 1, 1, 0);
    let of = |calls: &[Kind]| key(calls, few);
    vec![
        removal(
            "condition",
            "a write has a condition",
            GREATEST,
            Rule::Condition,
            of(&[Register(OLD, 1), Register(NEW, 1)]),
        ),
        removal(
            "ties",
            "names decide between equal numbers",
            GREATEST,
            Rule::Ties,
            of(&[Register(OLD, 1), Register(TIED, 1)]),
        ),
        removal(
            "delete-itself",
            "a delete takes its own instance too",
            GREATEST,
            Rule::DeleteItself,
            of(&[Register(OLD, 1), Delete(OLD)]),
        ),
        removal(
            "delete-older",
            "a delete takes older instances too",
            GREATEST,
            Rule::DeleteOlder,
            of(&[Register(OLD, 1), Delete(NEW)]),
        ),
        removal(
            "nameless",
            "a delete without a name takes each instance of its number",
            GREATEST,
            Rule::Nameless,
            of(&[Register(OLD, 1), Delete(ALL_OLD)]),
        ),
        removal(
            "nameless-refuses",
            "a tombstone without a name refuses each instance of its number",
            GREATEST,
            Rule::NamelessRefuses,
            of(&[Register(OLD, 1), Delete(ALL_OLD)]),
        ),
        removal(
            "newest-tombstone",
            "a delete leaves a tombstone",
            GREATEST,
            Rule::Tombstone,
            of(&[Register(OLD, 1), Delete(OLD)]),
        ),
        removal(
            "newest-margin",
            "a tombstone that TTL may remove soon proves nothing about a register",
            SUPERSEDED,
            Rule::Margin,
            Newest { hours: 1, ..key(&[Delete(OLD), Register(OLD, 1)], few) },
        ),
    ]
}
