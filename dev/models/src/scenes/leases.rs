//! The scenes of [`LeaseModel`].

use super::limits;
use crate::leases::{AGAIN, FENCED, HOLDERS, Kind, LeaseModel, REQUIRED, Rule, TOKENS};
use crate::protocol::{Limits, NOT_APPLIED};
use crate::run::{Removal, Scene};

const MODEL: &str = "leases";
const A: usize = 0;
const B: usize = 1;

/// A lease of 2 s under clocks that differ by no more than 2 s.
fn lease(calls: &[(usize, Kind)], seconds: u8, limits: Limits) -> LeaseModel {
    let limits = Limits { life: 540, ..limits };
    LeaseModel { calls: calls.to_vec(), length: 2, skew: 2, apart: 2, seconds, weeks: 0, limits, without: None }
}

pub(super) fn scenes(is_deep: bool) -> Vec<Scene> {
    use Kind::{Acquire, Fenced, Release, Renew, Required};
    let scene = |name, lease| Scene::new(MODEL, name, lease);
    let few = limits(2, 1, 1, 0);
    if is_deep {
        return vec![
            scene("holders", lease(&[(A, Acquire), (A, Renew), (B, Acquire)], 7, limits(3, 2, 1, 0))),
            scene("renewals", lease(&[(A, Acquire), (A, Renew), (A, Renew), (B, Acquire)], 5, limits(2, 1, 0, 0))),
            scene("releases", lease(&[(A, Acquire), (A, Release), (B, Acquire), (B, Release)], 3, few)),
            scene(
                "required",
                LeaseModel { apart: 5, ..lease(&[(A, Acquire), (A, Required), (B, Acquire), (B, Required)], 2, few) },
            ),
            scene(
                "fenced",
                LeaseModel { apart: 5, ..lease(&[(A, Acquire), (A, Fenced), (B, Acquire), (B, Fenced)], 2, few) },
            ),
            scene(
                "removal",
                LeaseModel { weeks: 1, ..lease(&[(A, Acquire), (A, Renew), (B, Acquire)], 2, limits(2, 2, 1, 0)) },
            ),
        ];
    }
    vec![
        scene("holders", lease(&[(A, Acquire), (A, Renew), (B, Acquire)], 5, limits(2, 1, 0, 0))),
        scene("releases", lease(&[(A, Acquire), (A, Release), (B, Acquire)], 2, few)),
        scene(
            "required",
            LeaseModel { apart: 5, ..lease(&[(A, Acquire), (A, Required), (B, Acquire)], 3, limits(2, 1, 0, 0)) },
        ),
        scene(
            "fenced",
            LeaseModel {
                apart: 5,
                ..lease(&[(A, Acquire), (A, Fenced), (B, Acquire), (B, Fenced)], 2, limits(2, 1, 0, 0))
            },
        ),
        scene("removal", LeaseModel { weeks: 1, ..lease(&[(A, Acquire), (A, Release), (B, Acquire)], 0, few) }),
    ]
}

pub(super) fn removals() -> Vec<Removal> {
    use Kind::{Acquire, Fenced, Release, Renew, Required};
    let removal = |name, rule, keeps, without, lease: LeaseModel| {
        let lease = LeaseModel { without: Some(without), ..lease };
        Removal { scene: Scene::new(MODEL, name, lease), rule, keeps }
    };
    let (none, one) = (limits(1, 0, 0, 0), limits(2, 1, 1, 0));
    vec![
        removal(
            "skew",
            "others wait until the end lies back by more than clocks may differ",
            HOLDERS,
            Rule::Skew,
            lease(&[(A, Acquire), (B, Acquire)], 4, none),
        ),
        removal(
            "counts-from-send",
            "a holder counts from before the first send",
            HOLDERS,
            Rule::CountsFromSend,
            LeaseModel { skew: 0, apart: 0, ..lease(&[(A, Acquire), (B, Acquire)], 4, none) },
        ),
        removal(
            "release-keeps-row",
            "a release keeps the row, and so the token",
            TOKENS,
            Rule::ReleaseKeepsRow,
            lease(&[(A, Acquire), (A, Release), (B, Acquire)], 0, none),
        ),
        removal(
            "tokens-from-time",
            "where no row remembers a token, tokens count from the time of day",
            TOKENS,
            Rule::TokensFromTime,
            LeaseModel { weeks: 1, ..lease(&[(A, Acquire), (B, Acquire)], 0, none) },
        ),
        removal(
            "renewal-counts",
            "a renewal demands the number of renewals",
            HOLDERS,
            Rule::RenewalCounts,
            LeaseModel {
                length: 3,
                skew: 0,
                apart: 0,
                ..lease(&[(A, Acquire), (A, Renew), (A, Renew), (B, Acquire)], 4, limits(1, 1, 0, 0))
            },
        ),
        removal(
            "renewal-held",
            "a renewal demands that the lease is held",
            HOLDERS,
            Rule::RenewalHeld,
            lease(&[(A, Acquire), (A, Renew), (A, Release), (B, Acquire)], 0, none),
        ),
        removal(
            "acquire-once",
            "one id acquires once",
            AGAIN,
            Rule::AcquireOnce,
            lease(&[(A, Acquire), (A, Release)], 0, one),
        ),
        removal(
            "require",
            "a required write demands the lease",
            REQUIRED,
            Rule::Require,
            lease(&[(A, Acquire), (A, Required), (B, Acquire)], 5, none),
        ),
        removal(
            "ask-rows",
            "a refused lease does not prove that no earlier copy was applied",
            NOT_APPLIED,
            Rule::AskRows,
            lease(&[(A, Acquire), (A, Required), (A, Release)], 0, one),
        ),
        removal(
            "fence",
            "a fenced write demands that the item has seen no higher token",
            FENCED,
            Rule::Fence,
            lease(&[(A, Acquire), (A, Fenced), (B, Acquire), (B, Fenced)], 5, none),
        ),
    ]
}
