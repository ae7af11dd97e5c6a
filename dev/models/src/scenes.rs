//! The bounds of each model, and for each rule the smallest scene that shows its purpose.

use crate::leases::{AGAIN, FENCED, HOLDERS, LeaseModel, REQUIRED, TOKENS};
use crate::newest::{GREATEST, Newest, SUPERSEDED};
use crate::one_item::{DECIDED, OneItem};
use crate::protocol::{APPLIED, COMMITTED, Limits, NOT_APPLIED, ONCE};
use crate::run::{Removal, Scene};
use crate::transactions::Transactions;
use crate::world::Faults;
use crate::{leases, newest, one_item, transactions};
use std::collections::BTreeSet;

/// The models, in the order in which they build on each other.
pub const MODELS: [&str; 4] = ["one-item", "transactions", "leases", "newest"];

/// The scenes of all models. With `is_deep`, larger ones.
pub fn scenes(is_deep: bool) -> Vec<Scene> {
    [of_one_item, of_transactions, of_leases, of_newest].into_iter().flat_map(|scenes| scenes(is_deep)).collect()
}

/// The rules of all models.
pub fn removals() -> Vec<Removal> {
    [rules_of_one_item, rules_of_transactions, rules_of_leases, rules_of_newest]
        .into_iter()
        .flat_map(|rules| rules())
        .collect()
}

/// The findings about all scenes and rules.
#[derive(Default)]
pub struct Findings {
    /// One line for each scene that holds and each rule that is needed.
    pub lines: Vec<String>,
    /// Scenes that do not hold, missing examples and rules that break no promise or another one.
    pub wrong: Vec<String>,
    pub states: usize,
    pub seconds: f64,
}

/// Plays all scenes with and without the rules, of one model or all.
pub fn check(is_deep: bool, threads: usize, model: Option<&str>) -> Findings {
    let is_asked = |scene: &Scene| model.is_none_or(|model| model == scene.model);
    let mut found = Findings::default();
    let (mut examples, mut wanted) = (BTreeSet::new(), BTreeSet::new());
    for scene in scenes(is_deep).iter().filter(|scene| is_asked(scene)) {
        let (Scene { model, name, .. }, played) = (scene, scene.play(threads));
        let (states, depth) = (played.unique, played.depth);
        let line = format!("model={model} scene={name} states={states} depth={depth} seconds={:.1}", played.seconds);
        if states <= 100 || depth <= 8 {
            found.wrong.push(format!("too few states: {line}"));
        } else if let Some((property, story)) = &played.violated {
            found.wrong.push(format!("{line}\nviolated: {property}\n{story}"));
        } else {
            found.lines.push(line);
        }
        (found.states, found.seconds) = (found.states + states, found.seconds + played.seconds);
        examples.extend(played.examples.into_iter().map(|example| (*model, example)));
        wanted.extend(played.wanted.into_iter().map(|example| (*model, example)));
    }
    let missing = wanted.difference(&examples);
    found.wrong.extend(missing.map(|(model, missing)| format!("model={model} never shows: {missing}")));
    for Removal { scene, keeps, .. } in removals().iter().filter(|removal| is_asked(&removal.scene)) {
        let Scene { model, name, .. } = scene;
        match scene.play(1).violated {
            Some((property, story)) if property == *keeps && (2..=14).contains(&story.lines().count()) => {
                let steps = story.lines().count();
                found.lines.push(format!("model={model} without={name} breaks=\"{property}\" steps={steps}"));
            }
            other => found.wrong.push(format!("model={model} without={name} should break \"{keeps}\": {other:?}")),
        }
    }
    found
}

/// The bounds of a network.
fn limits(sends: u8, losses: u8, copies: u8, throttles: u8) -> Limits {
    Limits { sends, faults: Faults { losses, copies, throttles }, life: 1, hedges: false, begins: 100 }
}

/// Each scene: its name, its changed bounds and its base.
macro_rules! scenes {
    ($of:literal $model:ident: $($name:literal { $($field:ident: $value:expr),* } $base:expr;)*) => {
        vec![$(Scene::new($of, $name, $model { $($field: $value,)* ..$base })),*]
    };
}

/// Each rule: its name, its promise, the rule in a sentence and the scene without it.
macro_rules! rules {
    ($of:literal $model:ident:
     $($name:literal $keeps:ident $rule:literal { $($field:ident: $value:expr),* } $base:expr;)*) => {
        vec![$({
            let model = $model { $($field: $value,)* without: Some($name), ..$base };
            Removal { scene: Scene::new($of, $name, model), rule: $rule, keeps: $keeps }
        }),*]
    };
}

fn item(calls: &[one_item::Kind], stock: Option<i8>, (remembered, window): (u64, u8), limits: Limits) -> OneItem {
    let calls = calls.to_vec();
    OneItem { calls, stock, remembered, window, others: 0, hours: 0, attempts: 1, limits, without: None }
}

fn of_one_item(is_deep: bool) -> Vec<Scene> {
    use one_item::Kind::{Add, AddAhead, AddInBand, AddOrUpdate, Create, Delete, DeleteAtVersion, Update};
    let hedged = |limits| Limits { hedges: true, ..limits };
    if is_deep {
        return scenes! { "one-item" OneItem:
            "adds" { others: 2, attempts: 2 } item(&[Add(-1), Add(-1)], Some(1), (3, 3), limits(5, 3, 2, 1));
            "three-adds" { others: 1 } item(&[Add(-1), Add(-1), Add(1)], Some(1), (3, 2), limits(4, 2, 1, 0));
            "hedged-adds" { others: 2 } item(&[Add(-1), Add(-1)], Some(1), (3, 3), hedged(limits(5, 2, 2, 1)));
            "add-and-updates" { others: 2 } item(&[Add(-1), Update, Update], Some(0), (2, 2), limits(4, 2, 1, 0));
            "add-or-updates" { others: 3, attempts: 3 } item(&[AddOrUpdate, Add(1)], Some(0), (3, 2), limits(4, 1, 2, 1));
            "add-or-update-and-delete" { others: 2, attempts: 2 }
                item(&[AddOrUpdate, Delete, Create], Some(0), (3, 2), limits(3, 1, 1, 1));
            "bands" { others: 3, attempts: 2 } item(&[AddInBand, Add(-1)], Some(1), (3, 3), limits(4, 2, 2, 1));
            "add-and-delete" { others: 2, hours: 1 } item(&[Add(-1), Delete, Create], Some(0), (2, 2), limits(3, 2, 1, 0));
            "update-and-delete" { others: 2 } item(&[Update, Delete, Create], Some(1), (2, 1), limits(4, 2, 1, 0));
            "creates-and-delete" { hours: 2 } item(&[Create, Delete, Create], None, (2, 1), limits(4, 2, 1, 0));
            "old-tag" { hours: 1, others: 1 }
                item(&[DeleteAtVersion, Delete, Create], Some(1), (2, 1), limits(3, 2, 1, 0));
            "version-made-up" { others: 4 } item(&[AddAhead(2), Add(1)], Some(1), (3, 2), limits(4, 2, 2, 1));
        };
    }
    scenes! { "one-item" OneItem:
        "throttled" { others: 2, attempts: 2 } item(&[AddOrUpdate], Some(0), (2, 2), limits(3, 1, 1, 2));
        "throttled-bands" { others: 3 } item(&[AddInBand, Add(-1)], Some(1), (3, 3), limits(2, 1, 1, 1));
        "adds" { others: 2 } item(&[Add(-1), Add(-1)], Some(1), (3, 3), limits(3, 1, 1, 0));
        "short-window" { others: 3 } item(&[Add(-1)], Some(1), (2, 1), limits(4, 2, 1, 1));
        "add-and-update" { others: 1 } item(&[Add(-1), Update], Some(0), (2, 2), limits(3, 1, 1, 1));
        "update-and-delete" { others: 1 } item(&[Update, Delete], Some(1), (2, 1), limits(3, 2, 1, 0));
        "create-and-delete" { hours: 1 } item(&[Create, Delete], None, (2, 1), limits(3, 2, 1, 0));
        "revive" { hours: 1 } item(&[Delete, Create], Some(1), (2, 1), limits(3, 2, 1, 0));
        "old-tag" { hours: 1 } item(&[DeleteAtVersion, Delete, Create], Some(1), (2, 1), limits(2, 1, 0, 0));
        "version-made-up" { others: 3 } item(&[AddAhead(2)], Some(1), (2, 1), limits(3, 1, 1, 0));
        "add-or-update" { others: 2, attempts: 2 } item(&[AddOrUpdate], Some(0), (2, 2), limits(4, 1, 1, 0));
        "bands" { others: 3 } item(&[AddInBand, Add(-1)], Some(1), (3, 3), limits(3, 1, 1, 0));
    }
}

fn rules_of_one_item() -> Vec<Removal> {
    use one_item::Kind::{Add, AddAhead, AddOrUpdate, Create, Delete, DeleteAtVersion, Update};
    let one = |calls: &[_], stock, memory, others| OneItem { others, ..item(calls, stock, memory, limits(3, 1, 1, 0)) };
    let turned = |others| OneItem { attempts: 2, ..one(&[AddOrUpdate], Some(0), (2, 2), others) };
    rules! { "one-item" OneItem:
        "judge" ONCE "a refusal is judged by the memory of the row" {} one(&[Update], Some(1), (2, 1), 0);
        "prune-late" ONCE "an id stays for R commits, and is not removed one commit earlier" {}
            one(&[Add(-1)], Some(3), (3, 3), 1);
        "window-ends" ONCE "the window of an add ends" {} one(&[Add(-1)], Some(3), (2, 1), 1);
        "window-begins" ONCE "the window of an add begins at the version that it names" {}
            one(&[AddAhead(3)], Some(1), (2, 1), 1);
        "window-within-memory" ONCE "a window is not longer than a row remembers" {}
            one(&[Add(-1)], Some(3), (2, 2), 1);
        "id-is-absent" ONCE "an add demands that the row does not know its id" {} one(&[Add(-1)], Some(3), (3, 3), 0);
        "same-id" ONCE "a resend has the id of the first send" {} one(&[Add(-1)], Some(3), (3, 3), 0);
        "own-id" COMMITTED "an attempt that follows one which may still be applied has an id of its own" {} turned(1);
        "burns-earlier" ONCE "an attempt leaves the ids of earlier ones as burned" {} turned(0);
        "knows-earlier" NOT_APPLIED "a row tells an earlier attempt from the last one" { attempts: 2 }
            one(&[AddOrUpdate, Delete], Some(0), (3, 2), 1);
        "forgotten-is-unknown" ONCE "an earlier attempt that a row may have forgotten makes the outcome unknown" {}
            turned(2);
        "open-is-unknown" NOT_APPLIED "a call that ends without an answer while an attempt is open is unknown"
            { limits: limits(2, 0, 1, 1) } turned(1);
        "tombstone" ONCE "a delete leaves a tombstone" {} one(&[Create, Delete], None, (2, 1), 0);
        "tombstone-remembers" NOT_APPLIED "a tombstone keeps the memory of its item" {}
            one(&[Update, Delete], Some(1), (3, 1), 0);
        "incarnation" DECIDED "a write to a row demands its incarnation" { hours: 1 }
            one(&[DeleteAtVersion, Delete, Create], Some(1), (2, 1), 0);
        "burn" NOT_APPLIED "an add that may still be applied is burned before it is told as refused" {}
            one(&[Add(-1)], Some(0), (3, 3), 1);
        "burn-leaves-id" NOT_APPLIED "a burn leaves the id" {} one(&[Add(-1)], Some(0), (3, 3), 1);
        "burned-is-not-applied" APPLIED "a burned id means that the add was not applied" { limits: limits(4, 2, 0, 0) }
            one(&[Add(-1)], Some(0), (3, 3), 0);
        "throttled-is-pending" NOT_APPLIED "a throttled resend clears nothing that is pending"
            { limits: limits(3, 1, 0, 1) } one(&[Add(-1)], Some(0), (3, 3), 1);
        "margin" NOT_APPLIED "a tombstone that TTL may remove soon proves nothing about a create" { hours: 1 }
            one(&[Delete, Create], Some(1), (2, 1), 0);
    }
}

const TRANSFER: transactions::Kind = transactions::Kind::Adds { reads_x: true };
const BLIND: transactions::Kind = transactions::Kind::Adds { reads_x: false };
const RESTOCK: transactions::Kind = transactions::Kind::Restock { reads_y: true };
const ORDER_OR_RESTOCK: transactions::Kind = transactions::Kind::Restock { reads_y: false };

/// The number in each row, if it exists.
type Stock = [Option<i8>; 2];

fn some(x: i8, y: i8) -> Stock {
    [Some(x), Some(y)]
}

fn none(x: i8) -> Stock {
    [Some(x), None]
}

fn two(calls: &[transactions::Kind], stock: Stock, (remembered, window): (u64, u8), limits: Limits) -> Transactions {
    let calls = calls.to_vec();
    Transactions { calls, stock, remembered, window, others: [0, 0], removals: 0, attempts: 2, limits, without: None }
}

fn of_transactions(is_deep: bool) -> Vec<Scene> {
    use transactions::Kind::{Cancel, Checked, Order};
    if is_deep {
        return scenes! { "transactions" Transactions:
            "transfers" { others: [1, 1] } two(&[TRANSFER, BLIND], some(2, 0), (3, 3), limits(5, 3, 2, 1));
            "three-transfers" {} two(&[TRANSFER, BLIND, BLIND], some(3, 0), (3, 2), limits(4, 2, 1, 0));
            "blind-transfers" { others: [2, 1], attempts: 3 }
                two(&[BLIND, BLIND], some(1, 0), (3, 3), limits(4, 2, 2, 1));
            "restock-and-transfer" { others: [2, 1] } two(&[RESTOCK, TRANSFER], some(1, 0), (2, 2), limits(4, 2, 2, 1));
            "orders-or-restock" { others: [2, 0] } two(&[ORDER_OR_RESTOCK, Order], none(1), (2, 1), limits(4, 2, 2, 1));
            "restock-where-rows-vanish" { others: [2, 0], removals: 1 }
                two(&[ORDER_OR_RESTOCK, Order], none(1), (2, 1), limits(4, 2, 2, 1));
            "order-and-transfer" { others: [1, 0] } two(&[Order, Cancel, Order], none(1), (2, 1), limits(4, 3, 1, 0));
            "order-and-cancellations" { others: [1, 1] }
                two(&[Cancel, Cancel, Order], some(1, 1), (2, 1), limits(4, 2, 1, 0));
            "rows-vanish" { others: [2, 0], removals: 2 } two(&[Order, Order], none(0), (2, 1), limits(5, 3, 2, 1));
            "checks" { others: [1, 1] } two(&[Checked, TRANSFER], some(2, 1), (2, 2), limits(4, 2, 1, 0));
        };
    }
    scenes! { "transactions" Transactions:
        "throttled" { others: [1, 0] } two(&[BLIND], some(1, 0), (3, 3), limits(3, 1, 1, 2));
        "throttled-burn" { others: [1, 0] } two(&[ORDER_OR_RESTOCK], none(1), (2, 1), limits(3, 1, 1, 2));
        "anchor" { others: [1, 1] } two(&[BLIND], some(1, 0), (3, 3), limits(4, 2, 1, 0));
        "short-window" { others: [0, 3] } two(&[TRANSFER], some(2, 0), (2, 1), limits(4, 1, 1, 0));
        "order" { others: [1, 0] } two(&[Order], none(0), (2, 1), limits(4, 2, 1, 1));
        "order-and-cancellation" {} two(&[Order, Cancel], none(1), (2, 1), limits(3, 1, 1, 0));
        "orders-where-rows-vanish" { others: [1, 0], removals: 1 } two(&[Order], none(0), (2, 1), limits(4, 2, 1, 0));
        "checks" { others: [1, 1] } two(&[Checked], some(1, 1), (2, 1), limits(4, 1, 1, 0));
        "restock" { others: [1, 1] } two(&[RESTOCK], some(1, 0), (2, 2), limits(4, 1, 1, 0));
        "order-or-restock" { others: [1, 0] } two(&[ORDER_OR_RESTOCK], none(1), (2, 1), limits(4, 1, 1, 0));
        "restock-where-rows-vanish" { others: [1, 0], removals: 1 }
            two(&[ORDER_OR_RESTOCK], none(1), (2, 1), limits(4, 1, 1, 1));
        "two-transfers" {} two(&[TRANSFER, BLIND], some(2, 0), (2, 2), limits(3, 1, 1, 0));
    }
}

fn rules_of_transactions() -> Vec<Removal> {
    use transactions::Kind::{Cancel, Order};
    let few = limits(4, 1, 1, 0);
    rules! { "transactions" Transactions:
        "judge-first" NOT_APPLIED "the judge comes before the reason why a step was refused" {}
            two(&[Order], none(1), (2, 1), few);
        "anchor" ONCE "one row remembers a transaction that only adds" {} two(&[TRANSFER], some(9, 0), (2, 2), few);
        "update-leaves-id" NOT_APPLIED "an update in a transaction leaves the id in its row" {}
            two(&[Cancel], some(1, 1), (2, 1), few);
        "burn-transaction" NOT_APPLIED "a transaction that may still be applied is burned before it is told as refused"
            { others: [1, 0] } two(&[Order], none(0), (2, 1), few);
        "no-tombstone-where-rows-vanish" NOT_APPLIED
            "a create is not burned by a tombstone that another program may remove"
            { others: [1, 0], removals: 1 } two(&[Order], none(0), (2, 1), few);
        "bare-proves-nothing" NOT_APPLIED "a refused bare add does not prove that no earlier copy was applied"
            { others: [0, 2] } two(&[BLIND], some(2, 0), (2, 1), few);
        "own-id-of-attempt" COMMITTED "an attempt that follows one which may still be applied has an id of its own"
            { others: [1, 0] } two(&[TRANSFER, TRANSFER], some(3, 0), (3, 3), few);
        "earlier-is-absent" ONCE "an attempt demands that the row remembers no earlier one" { others: [2, 0] }
            two(&[BLIND], some(1, 0), (3, 3), few);
        "burns-earlier-attempt" ONCE "an attempt leaves the ids of earlier ones as burned" { others: [2, 0] }
            two(&[BLIND], some(1, 0), (3, 3), few);
        "burns-beside" ONCE
            "an attempt that writes to no row which would remember an earlier one is sent after that one was burned" {}
            two(&[RESTOCK], some(1, 0), (2, 2), few);
        "unburned-is-unknown" ONCE "an earlier attempt that nothing excludes or burns makes the outcome unknown"
            { removals: 1 } two(&[ORDER_OR_RESTOCK], none(1), (2, 1), few);
        "knows-earlier-attempt" NOT_APPLIED "a row tells an earlier attempt from the last one" { others: [1, 0] }
            two(&[BLIND], some(1, 0), (3, 3), few);
        "forgotten-attempt-is-unknown" NOT_APPLIED
            "an earlier attempt that a row may have forgotten makes the outcome unknown" { others: [2, 2] }
            two(&[BLIND], some(1, 0), (2, 1), few);
        "reads-unseen" NOT_APPLIED
            "a row of an earlier attempt that a cancellation did not show is read before the next decision"
            { others: [1, 0] } two(&[BLIND], some(1, 0), (3, 3), few);
        "open-attempt-is-unknown" NOT_APPLIED "a call that ends without an answer while an attempt is open is unknown"
            { others: [1, 0] } two(&[BLIND], some(1, 0), (3, 3), limits(2, 0, 1, 1));
    }
}

const A: usize = 0;
const B: usize = 1;

/// A lease of 2 s under clocks that differ by no more than 2 s.
fn lease(calls: &[(usize, leases::Kind)], seconds: u8, limits: Limits) -> LeaseModel {
    let limits = Limits { life: 540, ..limits };
    LeaseModel { calls: calls.to_vec(), length: 2, skew: 2, apart: 2, seconds, weeks: 0, limits, without: None }
}

fn of_leases(is_deep: bool) -> Vec<Scene> {
    use leases::Kind::{Acquire, Fenced, Release, Renew, Required};
    let few = limits(2, 1, 1, 0);
    if is_deep {
        return scenes! { "leases" LeaseModel:
            "holders" {} lease(&[(A, Acquire), (A, Renew), (B, Acquire)], 7, limits(3, 2, 1, 0));
            "renewals" {} lease(&[(A, Acquire), (A, Renew), (A, Renew), (B, Acquire)], 5, limits(2, 1, 0, 0));
            "releases" {} lease(&[(A, Acquire), (A, Release), (B, Acquire), (B, Release)], 3, few);
            "required" { apart: 5 } lease(&[(A, Acquire), (A, Required), (B, Acquire), (B, Required)], 2, few);
            "fenced" { apart: 5 } lease(&[(A, Acquire), (A, Fenced), (B, Acquire), (B, Fenced)], 2, few);
            "removal" { weeks: 1 } lease(&[(A, Acquire), (A, Renew), (B, Acquire)], 2, limits(2, 2, 1, 0));
        };
    }
    scenes! { "leases" LeaseModel:
        "holders" {} lease(&[(A, Acquire), (A, Renew), (B, Acquire)], 5, limits(2, 1, 0, 0));
        "releases" {} lease(&[(A, Acquire), (A, Release), (B, Acquire)], 2, few);
        "required" { apart: 5 } lease(&[(A, Acquire), (A, Required), (B, Acquire)], 3, limits(2, 1, 0, 0));
        "fenced" { apart: 5 } lease(&[(A, Acquire), (A, Fenced), (B, Acquire), (B, Fenced)], 2, limits(2, 1, 0, 0));
        "removal" { weeks: 1 } lease(&[(A, Acquire), (A, Release), (B, Acquire)], 0, few);
    }
}

fn rules_of_leases() -> Vec<Removal> {
    use leases::Kind::{Acquire, Fenced, Release, Renew, Required};
    let (none, one) = (limits(1, 0, 0, 0), limits(2, 1, 1, 0));
    rules! { "leases" LeaseModel:
        "skew" HOLDERS "others wait until the end lies back by more than clocks may differ" {}
            lease(&[(A, Acquire), (B, Acquire)], 4, none);
        "counts-from-send" HOLDERS "a holder counts from before the first send" { skew: 0, apart: 0 }
            lease(&[(A, Acquire), (B, Acquire)], 4, none);
        "release-keeps-row" TOKENS "a release keeps the row, and so the token" {}
            lease(&[(A, Acquire), (A, Release), (B, Acquire)], 0, none);
        "tokens-from-time" TOKENS "where no row remembers a token, tokens count from the time of day" { weeks: 1 }
            lease(&[(A, Acquire), (B, Acquire)], 0, none);
        "renewal-counts" HOLDERS "a renewal demands the number of renewals" { length: 3, skew: 0, apart: 0 }
            lease(&[(A, Acquire), (A, Renew), (A, Renew), (B, Acquire)], 4, limits(1, 1, 0, 0));
        "renewal-held" HOLDERS "a renewal demands that the lease is held" {}
            lease(&[(A, Acquire), (A, Renew), (A, Release), (B, Acquire)], 0, none);
        "acquire-once" AGAIN "one id acquires once" {} lease(&[(A, Acquire), (A, Release)], 0, one);
        "require" REQUIRED "a required write demands the lease" {}
            lease(&[(A, Acquire), (A, Required), (B, Acquire)], 5, none);
        "ask-rows" NOT_APPLIED "a refused lease does not prove that no earlier copy was applied" {}
            lease(&[(A, Acquire), (A, Required), (A, Release)], 0, one);
        "fence" FENCED "a fenced write demands that the item has seen no higher token" {}
            lease(&[(A, Acquire), (A, Fenced), (B, Acquire), (B, Fenced)], 5, none);
    }
}

const OLD: newest::Instance = (1, Some('a'));
const TIED: newest::Instance = (1, Some('b'));
const NEW: newest::Instance = (2, Some('a'));
const ALL_OLD: newest::Instance = (1, None);

fn key(calls: &[newest::Kind], limits: Limits) -> Newest {
    Newest { calls: calls.to_vec(), hours: 0, limits, without: None }
}

fn of_newest(is_deep: bool) -> Vec<Scene> {
    use newest::Kind::{Delete, Register};
    let (few, more) = (limits(2, 1, 1, 0), limits(3, 2, 2, 0));
    if is_deep {
        return scenes! { "newest" Newest:
            "order" {} key(&[Register(OLD, 1), Register(NEW, 1), Delete(OLD), Delete(NEW)], more);
            "ties" {} key(&[Register(OLD, 1), Register(TIED, 1), Delete(OLD), Delete(ALL_OLD)], more);
            "values" {} key(&[Register(OLD, 1), Register(OLD, 2), Register(OLD, 1), Delete(OLD)], more);
            "removal" { hours: 2 } key(&[Delete(OLD), Register(OLD, 1), Register(NEW, 1)], more);
        };
    }
    scenes! { "newest" Newest:
        "order" {} key(&[Register(OLD, 1), Register(NEW, 1), Delete(OLD), Delete(NEW)], limits(2, 1, 0, 0));
        "ties" {} key(&[Register(OLD, 1), Register(TIED, 1), Delete(OLD)], few);
        "nameless" {} key(&[Register(OLD, 1), Register(TIED, 1), Delete(ALL_OLD)], few);
        "values" {} key(&[Register(OLD, 1), Register(OLD, 2), Register(OLD, 1)], few);
        "removal" { hours: 2 } key(&[Delete(OLD), Register(OLD, 1)], limits(3, 2, 1, 0));
    }
}

fn rules_of_newest() -> Vec<Removal> {
    use newest::Kind::{Delete, Register};
    let of = |calls: &[_]| key(calls, limits(2, 1, 1, 0));
    rules! { "newest" Newest:
        "condition" GREATEST "a write has a condition" {} of(&[Register(OLD, 1), Register(NEW, 1)]);
        "ties" GREATEST "names decide between equal numbers" {} of(&[Register(OLD, 1), Register(TIED, 1)]);
        "delete-itself" GREATEST "a delete takes its own instance too" {} of(&[Register(OLD, 1), Delete(OLD)]);
        "delete-older" GREATEST "a delete takes older instances too" {} of(&[Register(OLD, 1), Delete(NEW)]);
        "nameless" GREATEST "a delete without a name takes each instance of its number" {}
            of(&[Register(OLD, 1), Delete(ALL_OLD)]);
        "nameless-refuses" GREATEST "a tombstone without a name refuses each instance of its number" {}
            of(&[Register(OLD, 1), Delete(ALL_OLD)]);
        "newest-tombstone" GREATEST "a delete leaves a tombstone" {} of(&[Register(OLD, 1), Delete(OLD)]);
        "newest-margin" SUPERSEDED "a tombstone that TTL may remove soon proves nothing about a register" { hours: 1 }
            of(&[Delete(OLD), Register(OLD, 1)]);
    }
}
