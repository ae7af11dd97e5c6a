//! The bounds of each model, and for each rule the smallest scene that shows its purpose.

use crate::promises::{
    AGAIN, APPLIED, COMMITTED, DECIDED, EXAMPLES, FENCED, GREATEST, HOLDERS, NOT_APPLIED, ONCE, REQUIRED, SOLD_OUT,
    SUM, SUPERSEDED, TOKENS,
};
use crate::state::Kind::{
    Acquire, Add, AddAhead, AddInBand, AddOrUpdate, Adds, Cancel, Checked, Create, Delete, DeleteAtVersion, Fenced,
    Order, Place, Register, Release, Renew, Required, Restock, Settle, Unregister, Update,
};
use crate::state::{Budget, Kind, LeaseClocks, Scene};
use crate::table::{OrderKey, Row, Stored, row};
use fencepost_core::TableRules;
use std::collections::BTreeSet;
use std::time::Duration;

/// The models, in the order in which they build on each other.
pub const MODELS: [&str; 5] = ["one-item", "transactions", "leases", "newest", "holds"];

/// A scene of a model, or one without a rule.
pub struct Named {
    pub model: &'static str,
    /// The scene or the rule, in a few words joined by `-`.
    pub name: &'static str,
    pub scene: Scene,
}

pub struct Removal {
    /// The smallest scene that violates the promise without the rule.
    pub named: Named,
    pub rule: &'static str,
    pub keeps: &'static str,
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

/// Plays all scenes with and without the rules, of one model or all. Says each finding at once, too.
pub fn check(is_deep: bool, threads: usize, model: Option<&str>, say: impl Fn(&str)) -> Findings {
    let is_asked = |named: &Named| model.is_none_or(|model| model == named.model);
    let mut found = Findings::default();
    let finds = |place: &mut Vec<String>, line: String| {
        say(&line);
        place.push(line);
    };
    let mut shown = BTreeSet::new();
    for named in scenes(is_deep).iter().filter(|named| is_asked(named)) {
        let (Named { model, name, .. }, played) = (named, named.scene.play(threads));
        let (states, depth) = (played.states, played.depth);
        let line = format!("model={model} scene={name} states={states} depth={depth} seconds={:.1}", played.seconds);
        if let Some((promise, way)) = &played.violated {
            finds(&mut found.wrong, format!("{line}\nviolated: {promise}\n{way}"));
        } else if states <= 200 {
            finds(&mut found.wrong, format!("too few states: {line}"));
        } else {
            finds(&mut found.lines, line);
        }
        (found.states, found.seconds) = (found.states + states, found.seconds + played.seconds);
        shown.extend(played.examples.into_iter().map(|example| (*model, example)));
    }
    for model in MODELS.iter().filter(|one| model.is_none_or(|model| model == **one)) {
        let wanted = EXAMPLES.iter().filter(|(_, models, _)| models.contains(model)).map(|(name, ..)| *name);
        let missing = wanted.filter(|name| !shown.contains(&(*model, *name)));
        missing.for_each(|missing| finds(&mut found.wrong, format!("model={model} never shows: {missing}")));
    }
    for Removal { named, keeps, .. } in removals().iter().filter(|removal| is_asked(&removal.named)) {
        let Named { model, name, scene } = named;
        match scene.play(1).violated {
            Some((promise, way)) if promise == *keeps && (2..=14).contains(&way.lines().count()) => {
                let steps = way.lines().count();
                finds(&mut found.lines, format!("model={model} without={name} breaks=\"{promise}\" steps={steps}"));
            }
            Some((promise, way)) => {
                finds(
                    &mut found.wrong,
                    format!("model={model} without={name} should break \"{keeps}\", not \"{promise}\":\n{way}"),
                );
            }
            None => finds(&mut found.wrong, format!("model={model} without={name} should break \"{keeps}\"")),
        }
    }
    found
}

/// Each scene: its name, what is otherwise in its budget, and its base.
macro_rules! scenes {
    ($of:literal: $($name:literal { $($field:ident: $value:expr),* } $base:expr;)*) => {
        vec![$({
            let base: Scene = $base;
            let budget = Budget { $($field: $value,)* ..base.budget };
            Named { model: $of, name: $name, scene: Scene { budget, ..base } }
        }),*]
    };
}

/// Each rule: its name, its promise, the rule in a sentence, and the scene without it.
macro_rules! rules {
    ($of:literal: $($name:literal $keeps:ident $rule:literal { $($field:ident: $value:expr),* } $base:expr;)*) => {
        vec![$({
            let base: Scene = $base;
            let budget = Budget { $($field: $value,)* ..base.budget };
            // A rule may have two scenes.
            let without = $name.strip_suffix("-in-transaction").or($name.strip_suffix("-of-holds")).or(Some($name));
            let scene = Scene { budget, without, ..base };
            Removal { named: Named { model: $of, name: $name, scene }, rule: $rule, keeps: $keeps }
        }),*]
    };
}

const OWN: TableRules =
    TableRules { remembered: 2, rows_may_vanish: false, versions_may_repeat: false, values_may_end: false };

fn limits(losses: u8, copies: u8, throttles: u8, deadlines: u8) -> Budget {
    Budget { losses, copies, throttles, deadlines, ..Budget::default() }
}

fn item(calls: &[Kind], stock: Option<i8>, (remembered, window): (u64, u64), attempts: u32, budget: Budget) -> Scene {
    Scene {
        calls: calls.iter().map(|kind| (0, *kind)).collect(),
        rows: vec![stock.map(|stock| row(stock, 99, false)), None],
        rules: TableRules { remembered, ..OWN },
        window,
        attempts,
        life: Duration::from_mins(10),
        budget,
        lease: LeaseClocks::default(),
        seed: None,
        without: None,
    }
}

/// The same beside other programs that use versions, or write as they like.
#[must_use]
pub fn beside(scene: Scene, is_open: bool) -> Scene {
    let rules = TableRules { rows_may_vanish: true, versions_may_repeat: is_open, ..scene.rules };
    let rows = scene.rows.into_iter().map(|stored| match stored {
        Some(Stored::Item(Row { stock, .. })) => Some(row(stock, 99, true)),
        stored => stored,
    });
    let rows = rows.collect();
    Scene { rows, rules, ..scene }
}

/// The same where other clients may end a value.
fn ending(scene: Scene) -> Scene {
    Scene { rules: TableRules { values_may_end: true, ..scene.rules }, ..scene }
}

/// The scenes of all models. With `is_deep`, larger ones.
#[must_use]
pub fn scenes(is_deep: bool) -> Vec<Named> {
    let of = [of_one_item, of_transactions, of_leases, of_newest, of_holds];
    of.into_iter().flat_map(|scenes| scenes(is_deep)).collect()
}

/// The rules of all models.
#[must_use]
pub fn removals() -> Vec<Removal> {
    let of = [rules_of_one_item, rules_of_transactions, rules_of_leases, rules_of_newest, rules_of_holds];
    of.into_iter().flat_map(|rules| rules()).collect()
}

fn of_one_item(is_deep: bool) -> Vec<Named> {
    if is_deep {
        return scenes! { "one-item":
            "adds" { others: [2, 0] } item(&[Add(-1), Add(-1)], Some(1), (3, 3), 4, limits(3, 2, 1, 1));
            "three-adds" { others: [1, 0] } item(&[Add(-1), Add(-1), Add(1)], Some(1), (3, 2), 3, limits(2, 1, 0, 0));
            "hedged-adds" { others: [2, 0], hedges: 2 } item(&[Add(-1), Add(-1)], Some(1), (3, 3), 3, limits(2, 2, 0, 1));
            "add-and-updates" { others: [2, 0] } item(&[Add(-1), Update, Update], Some(0), (2, 2), 3, limits(1, 1, 0, 0));
            "add-or-updates" { others: [3, 0] } item(&[AddOrUpdate, Add(1)], Some(0), (3, 2), 4, limits(1, 1, 1, 1));
            "add-or-update-and-delete" { others: [2, 0] }
                item(&[AddOrUpdate, Delete, Create], Some(0), (3, 2), 3, limits(1, 0, 0, 1));
            "bands" { others: [3, 0] } item(&[AddInBand, Add(-1)], Some(1), (3, 3), 3, limits(2, 1, 0, 1));
            "add-and-delete" { others: [2, 0], hours: 1 } item(&[Add(-1), Delete, Create], Some(0), (2, 2), 3, limits(1, 1, 0, 0));
            "update-and-delete" { others: [2, 0] } item(&[Update, Delete, Create], Some(1), (2, 1), 3, limits(1, 1, 0, 0));
            "creates-and-delete" { hours: 2 } item(&[Create, Delete, Create], None, (2, 1), 3, limits(2, 1, 0, 0));
            "old-tag" { hours: 1, others: [1, 0] } item(&[DeleteAtVersion, Delete, Create], Some(1), (2, 1), 3, limits(2, 1, 0, 0));
            "version-made-up" { others: [4, 0] } item(&[AddAhead(2), Add(1)], Some(1), (3, 2), 3, limits(2, 2, 0, 1));
            "rejected" { others: [2, 0], rejections: 1, hedges: 1 }
                item(&[AddOrUpdate, Update], Some(0), (3, 2), 4, limits(1, 1, 0, 1));
            "values-end" { removals: 2, hedges: 1 } ending(item(&[Create, Update], None, (2, 1), 4, limits(2, 1, 0, 1)));
            "adoptions" { overwrites: 2 } beside(item(&[Update, Add(-1)], Some(1), (2, 2), 3, limits(2, 1, 0, 1)), false);
            "open" { resets: 3, hedges: 2 } beside(item(&[Update], Some(1), (2, 1), 4, limits(3, 2, 1, 1)), true);
            "two-in-open" { resets: 2, hedges: 1 } beside(item(&[Update, Add(-1)], Some(1), (2, 1), 4, limits(2, 0, 1, 1)), true);
        };
    }
    scenes! { "one-item":
        "throttled" { others: [2, 0], rejections: 1 } item(&[AddOrUpdate], Some(0), (2, 2), 4, limits(1, 1, 2, 1));
        "adds" { others: [2, 0] } item(&[Add(-1), Add(-1)], Some(1), (3, 3), 2, limits(1, 1, 0, 0));
        "rejected" { others: [1, 0], rejections: 2 } item(&[AddOrUpdate, Update], Some(0), (3, 2), 4, limits(1, 1, 0, 1));
        "hedges" { others: [1, 0], hedges: 2 } item(&[Add(-1), Update], Some(1), (3, 2), 2, limits(1, 1, 0, 0));
        "short-window" { others: [3, 0] } item(&[Add(-1)], Some(1), (2, 1), 4, limits(2, 1, 1, 1));
        "add-and-update" { others: [1, 0] } item(&[Add(-1), Update], Some(0), (2, 2), 3, limits(1, 1, 1, 0));
        "dropped" { others: [1, 0], drops: 1 } item(&[Add(-1), Update], Some(1), (2, 2), 3, limits(1, 1, 0, 0));
        "update-and-delete" { others: [1, 0] } item(&[Update, Delete], Some(1), (2, 1), 3, limits(2, 1, 0, 1));
        "create-and-delete" { hours: 1 } item(&[Create, Delete], None, (2, 1), 3, limits(2, 1, 0, 0));
        "revive" { hours: 1 } item(&[Delete, Create], Some(1), (2, 1), 3, limits(2, 1, 0, 0));
        "old-tag" { hours: 1 } item(&[DeleteAtVersion, Delete, Create], Some(1), (2, 1), 2, limits(1, 0, 0, 0));
        "version-made-up" { others: [3, 0] } item(&[AddAhead(2)], Some(1), (2, 1), 3, limits(1, 1, 0, 1));
        "add-or-update" { others: [2, 0] } item(&[AddOrUpdate], Some(0), (2, 2), 4, limits(1, 1, 0, 1));
        "bands" { others: [3, 0] } item(&[AddInBand, Add(-1)], Some(1), (3, 3), 3, limits(1, 1, 0, 0));
        "values-end" { removals: 1 } ending(item(&[Create, Update], None, (2, 1), 3, limits(1, 1, 0, 1)));
        "adoptions" { overwrites: 1, others: [1, 0] } beside(item(&[Update, Add(-1)], Some(1), (2, 2), 3, limits(1, 1, 0, 0)), false);
        "open" { resets: 2, hedges: 1 } beside(item(&[Update], Some(1), (2, 1), 3, limits(2, 2, 1, 1)), true);
        "two-in-open" { resets: 2 } beside(item(&[Update, Add(-1)], Some(1), (2, 1), 3, limits(2, 0, 0, 0)), true);
    }
}

fn rules_of_one_item() -> Vec<Removal> {
    let one = |calls: &[_], stock, memory, others| {
        item(calls, stock, memory, 3, Budget { others: [others, 0], ..limits(1, 1, 0, 0) })
    };
    let turned = |others| one(&[AddOrUpdate], Some(0), (2, 2), others);
    rules! { "one-item":
        "judge" ONCE "a refusal is judged by the memory of the row" {} one(&[Update], Some(1), (3, 1), 0);
        "prune-late" ONCE "an id stays for R commits, and is not removed one commit earlier" {}
            one(&[Add(-1)], Some(3), (3, 3), 1);
        "answered-early" ONCE "an answered id stays for W commits, and is not removed one commit earlier" {}
            one(&[Add(-1)], Some(3), (9, 3), 1);
        "window-ends" ONCE "the window of an add ends" {} one(&[Add(-1)], Some(3), (2, 1), 1);
        "window-begins" ONCE "the window of an add begins at the version that it names" {}
            one(&[AddAhead(3)], Some(1), (2, 1), 1);
        "window-within-memory" ONCE "a window is not longer than a row remembers" {}
            one(&[Add(-1)], Some(3), (2, 2), 1);
        "id-is-absent" ONCE "an add demands that the row does not know its id" {} one(&[Add(-1)], Some(3), (3, 3), 0);
        "same-id" ONCE "a resend has the id of the first send" {} one(&[Add(-1)], Some(3), (3, 3), 0);
        "lost-is-pending" NOT_APPLIED "a send with a lost answer is pending" { deadlines: 1 }
            one(&[Update], Some(1), (2, 1), 0);
        "own-id" COMMITTED "an attempt that follows one which may still be applied has an id of its own" {} turned(1);
        "burns-earlier" ONCE "an attempt leaves the ids of earlier ones as burned" {} turned(0);
        "knows-earlier" ONCE "a row tells an earlier attempt from the last one" {}
            one(&[AddOrUpdate, Delete], Some(0), (3, 2), 1);
        "forgotten-is-unknown" ONCE "an earlier attempt that a row may have forgotten makes the outcome unknown" {}
            turned(2);
        "open-is-unknown" NOT_APPLIED "a call that ends without an answer while an attempt is open is unknown"
            { throttles: 1, deadlines: 1 } turned(1);
        "tombstone" ONCE "a delete leaves a tombstone" {} one(&[Create, Delete], None, (2, 1), 0);
        "tombstone-remembers" NOT_APPLIED "a tombstone keeps the memory of its item" {}
            one(&[Update, Delete], Some(1), (3, 1), 0);
        "incarnation" DECIDED "a write to a row demands its incarnation" { hours: 1 }
            one(&[DeleteAtVersion, Delete, Create], Some(1), (2, 1), 0);
        "burn" NOT_APPLIED "an add that may still be applied is burned before it is told as refused" {}
            one(&[Add(-1)], Some(0), (3, 3), 1);
        "burn-leaves-id" NOT_APPLIED "a burn leaves the id" {} one(&[Add(-1)], Some(0), (3, 3), 1);
        "burned-is-not-applied" APPLIED "a burned id means that the add was not applied" { losses: 2, copies: 0 }
            one(&[Add(-1)], Some(0), (3, 3), 0);
        "margin" NOT_APPLIED "a tombstone that TTL may remove soon proves nothing about a create" { hours: 1 }
            one(&[Delete, Create], Some(1), (2, 1), 0);
        "values-end" NOT_APPLIED "where values may end, another row proves nothing about a create with a lost answer"
            { removals: 1 } ending(one(&[Create], None, (2, 1), 0));
        "requests-die" ONCE "no request lives longer than a tombstone" { hours: 1 }
            one(&[Create, Delete], None, (2, 1), 0);
        "token" ONCE "where versions may repeat, a token keeps a second copy from being applied" { resets: 1 }
            beside(one(&[Update], Some(1), (2, 1), 0), true);
    }
}

const TRANSFER: Kind = Adds { reads_first: true };
const BLIND: Kind = Adds { reads_first: false };
const RESTOCK: Kind = Restock { reads_second: true };
const ORDER_OR_RESTOCK: Kind = Restock { reads_second: false };

/// The number in each row, if it exists.
pub type Stock = [Option<i8>; 2];

const fn some(x: i8, y: i8) -> Stock {
    [Some(x), Some(y)]
}

const fn none(x: i8) -> Stock {
    [Some(x), None]
}

#[must_use]
pub fn two(calls: &[Kind], [x, y]: Stock, memory: (u64, u64), attempts: u32, budget: Budget) -> Scene {
    let rows = vec![x.map(|stock| row(stock, 98, false)), y.map(|stock| row(stock, 99, false))];
    let base = item(calls, None, memory, attempts, budget);
    let rules = TableRules { rows_may_vanish: budget.removals > 0, ..base.rules };
    Scene { rows, rules, ..base }
}

fn of_transactions(is_deep: bool) -> Vec<Named> {
    let gone = |budget: Budget| Budget { removals: 1, ..budget };
    if is_deep {
        return scenes! { "transactions":
            "transfers" { others: [1, 1] } two(&[TRANSFER, BLIND], some(2, 0), (3, 3), 3, limits(3, 2, 1, 1));
            "three-transfers" {} two(&[TRANSFER, BLIND, BLIND], some(3, 0), (3, 2), 3, limits(2, 1, 0, 0));
            "blind-transfers" { others: [2, 1] } two(&[BLIND, BLIND], some(1, 0), (3, 3), 4, limits(2, 1, 0, 1));
            "restock-and-transfer" { others: [2, 1] } two(&[RESTOCK, TRANSFER], some(1, 0), (2, 2), 3, limits(2, 1, 0, 1));
            "hedged-orders" { others: [1, 0], hedges: 2 } two(&[Order, Order], none(1), (2, 1), 3, limits(1, 1, 0, 1));
            "orders-or-restock" { others: [2, 0] } two(&[ORDER_OR_RESTOCK, Order], none(1), (2, 1), 3, limits(2, 1, 0, 1));
            "restock-where-rows-vanish" { others: [2, 0] }
                two(&[ORDER_OR_RESTOCK, Order], none(1), (2, 1), 3, gone(limits(2, 1, 0, 1)));
            "order-and-cancellations" {} two(&[Order, Cancel, Order], none(1), (2, 1), 3, limits(2, 1, 0, 0));
            "rows-vanish" { others: [2, 0], removals: 2 } two(&[Order, Order], none(0), (2, 1), 4, gone(limits(2, 2, 0, 1)));
            "checks" { others: [1, 1] } two(&[Checked, TRANSFER], some(2, 1), (2, 2), 3, limits(2, 1, 0, 1));
        };
    }
    scenes! { "transactions":
        "throttled" { others: [1, 0] } two(&[BLIND], some(1, 0), (3, 3), 3, limits(1, 1, 2, 1));
        "rejected" { others: [1, 0], rejections: 2 } two(&[BLIND, Order], some(1, 0), (2, 2), 3, limits(1, 1, 0, 0));
        "throttled-burn" { others: [1, 0] } two(&[ORDER_OR_RESTOCK], none(1), (2, 1), 3, limits(1, 1, 2, 1));
        "anchor" { others: [1, 1] } two(&[BLIND], some(1, 0), (3, 3), 4, limits(2, 1, 0, 1));
        "short-window" { others: [1, 3] } two(&[TRANSFER], some(2, 0), (2, 1), 4, limits(1, 1, 0, 1));
        "order" { others: [1, 0] } two(&[Order], none(0), (2, 1), 4, limits(2, 1, 1, 1));
        "hedged-order" { others: [1, 0], hedges: 2 } two(&[Order], none(1), (2, 1), 3, limits(2, 1, 0, 1));
        "order-and-cancellation" { others: [1, 0] } two(&[Order, Cancel], none(1), (2, 1), 3, limits(2, 2, 0, 1));
        "orders-where-rows-vanish" { others: [2, 0] } two(&[Order], none(0), (2, 1), 4, gone(limits(2, 2, 0, 1)));
        "checks" { others: [1, 1] } two(&[Checked], some(1, 1), (2, 1), 4, limits(1, 1, 0, 1));
        "restock" { others: [1, 1] } two(&[RESTOCK], some(1, 0), (2, 2), 4, limits(1, 1, 0, 1));
        "order-or-restock" { others: [1, 0] } two(&[ORDER_OR_RESTOCK], none(1), (2, 1), 4, limits(1, 1, 0, 1));
        "restock-where-rows-vanish" { others: [1, 0] } two(&[ORDER_OR_RESTOCK], none(1), (2, 1), 4, gone(limits(2, 2, 1, 1)));
        "two-transfers" { others: [1, 0] } two(&[TRANSFER, BLIND], some(2, 0), (2, 2), 3, limits(1, 1, 0, 1));
    }
}

fn rules_of_transactions() -> Vec<Removal> {
    let few = |others| Budget { others, ..limits(1, 1, 0, 0) };
    let gone = |budget: Budget| Budget { removals: 1, ..budget };
    rules! { "transactions":
        "judge-first" NOT_APPLIED "the judge comes before the reason why a step was refused" {}
            two(&[Order], none(1), (2, 1), 3, few([0, 0]));
        "anchor" ONCE "one row remembers a transaction that only adds" {} two(&[TRANSFER], some(9, 0), (2, 2), 3, few([0, 0]));
        "update-leaves-id" NOT_APPLIED "an update in a transaction leaves the id in its row" {}
            two(&[Cancel], some(1, 1), (2, 1), 3, few([0, 0]));
        "no-tombstone-where-rows-vanish" NOT_APPLIED
            "a create is not burned by a tombstone that another program may remove" {}
            two(&[Order], none(0), (2, 1), 3, gone(few([1, 0])));
        "bare-proves-nothing" NOT_APPLIED "a refused bare add does not prove that no earlier copy was applied" {}
            two(&[BLIND], some(2, 0), (2, 1), 3, few([0, 2]));
        "burns-beside" ONCE
            "an attempt that writes to no row which would remember an earlier one is sent after that one was burned" {}
            two(&[RESTOCK], some(1, 0), (2, 2), 4, few([0, 0]));
        "unburned-is-unknown" ONCE "an earlier attempt that nothing excludes or burns makes the outcome unknown" {}
            two(&[ORDER_OR_RESTOCK], none(1), (2, 1), 3, gone(few([0, 0])));
        "earlier-is-absent" ONCE "an attempt demands that the row remembers no earlier one" {}
            two(&[BLIND], some(1, 0), (3, 3), 4, few([2, 0]));
        "burn-in-transaction" NOT_APPLIED
            "a transaction that may still be applied is burned before it is told as refused" {}
            two(&[Order], none(0), (2, 1), 3, few([1, 0]));
        "own-id-in-transaction" COMMITTED "a transaction that follows one which may still be applied has an id of its own" {}
            two(&[TRANSFER, TRANSFER], some(3, 0), (3, 3), 3, few([1, 0]));
        "burns-earlier-in-transaction" ONCE "a transaction leaves the ids of earlier ones as burned" {}
            two(&[BLIND], some(1, 0), (3, 3), 4, few([2, 0]));
        "knows-earlier-in-transaction" NOT_APPLIED "a row tells an earlier transaction from the last one" {}
            two(&[BLIND], some(1, 0), (3, 3), 4, few([1, 0]));
        "forgotten-is-unknown-in-transaction" NOT_APPLIED
            "an earlier transaction that a row may have forgotten makes the outcome unknown" {}
            two(&[BLIND], some(1, 0), (2, 1), 4, few([2, 2]));
        "open-is-unknown-in-transaction" NOT_APPLIED
            "a call that ends without an answer while a transaction is open is unknown" { throttles: 1, deadlines: 1 }
            two(&[BLIND], some(1, 0), (3, 3), 4, few([1, 0]));
        "reads-unseen" NOT_APPLIED
            "a row of an earlier attempt that a cancellation did not show is read before the next decision" {}
            two(&[BLIND], some(1, 0), (3, 3), 4, few([1, 0]));
    }
}

const A: usize = 0;
const B: usize = 1;

/// A lease of 2 s under clocks that differ by no more than 2 s.
fn lease(calls: &[(usize, Kind)], seconds: u8, apart: u64, budget: Budget) -> Scene {
    let length = Duration::from_secs(2);
    Scene {
        calls: calls.to_vec(),
        rows: vec![None, Some(row(0, 99, false))],
        life: Duration::from_mins(9),
        lease: LeaseClocks { length, skew: length, apart: Duration::from_secs(apart) },
        ..item(&[], None, (4, 4), 3, Budget { seconds, ..budget })
    }
}

/// The same with clocks that do not differ, and are believed not to.
fn exact(scene: Scene, length: u64) -> Scene {
    let length = Duration::from_secs(length);
    Scene { lease: LeaseClocks { length, skew: Duration::ZERO, apart: Duration::ZERO }, ..scene }
}

fn of_leases(is_deep: bool) -> Vec<Named> {
    let few = limits(1, 1, 0, 0);
    if is_deep {
        return scenes! { "leases":
            "holders" {} lease(&[(A, Acquire), (A, Renew), (B, Acquire)], 7, 2, limits(2, 1, 0, 0));
            "renewals" {} lease(&[(A, Acquire), (A, Renew), (A, Renew), (B, Acquire)], 5, 2, limits(1, 0, 0, 0));
            "releases" {} lease(&[(A, Acquire), (A, Release), (B, Acquire), (B, Release)], 3, 2, few);
            "required" {} lease(&[(A, Acquire), (A, Required), (B, Acquire), (B, Required)], 2, 5, limits(1, 0, 0, 0));
            "fenced" {} lease(&[(A, Acquire), (A, Fenced), (B, Acquire), (B, Fenced)], 2, 5, few);
            "removal" { weeks: 1 } lease(&[(A, Acquire), (A, Renew), (B, Acquire)], 0, 2, limits(2, 1, 0, 0));
        };
    }
    scenes! { "leases":
        "holders" {} lease(&[(A, Acquire), (A, Renew), (B, Acquire)], 5, 2, limits(1, 0, 0, 0));
        "releases" {} lease(&[(A, Acquire), (A, Release), (B, Acquire)], 2, 2, few);
        "required" {} lease(&[(A, Acquire), (A, Required), (B, Acquire)], 2, 5, few);
        "fenced" {} lease(&[(A, Acquire), (A, Fenced), (B, Acquire), (B, Fenced)], 1, 5, limits(1, 0, 0, 0));
        "removal" { weeks: 1 } lease(&[(A, Acquire), (A, Release), (B, Acquire)], 0, 2, few);
    }
}

fn rules_of_leases() -> Vec<Removal> {
    let (none, one) = (limits(0, 0, 0, 0), limits(1, 1, 0, 0));
    rules! { "leases":
        "skew" HOLDERS "others wait until the end lies back by more than clocks may differ" {}
            lease(&[(A, Acquire), (B, Acquire)], 4, 2, none);
        "counts-from-send" HOLDERS "a holder counts from before the first send" {}
            exact(lease(&[(A, Acquire), (B, Acquire)], 4, 0, none), 2);
        "release-keeps-row" TOKENS "a release keeps the row, and so the token" {}
            lease(&[(A, Acquire), (A, Release), (B, Acquire)], 0, 2, none);
        "tokens-from-time" TOKENS "where no row remembers a token, tokens count from the time of day" { weeks: 1 }
            lease(&[(A, Acquire), (B, Acquire)], 0, 2, none);
        "renewal-counts" HOLDERS "a renewal demands the number of renewals" {}
            exact(lease(&[(A, Acquire), (A, Renew), (A, Renew), (B, Acquire)], 4, 0, limits(1, 0, 0, 0)), 3);
        "renewal-held" HOLDERS "a renewal demands that the lease is held" {}
            lease(&[(A, Acquire), (A, Renew), (A, Release), (B, Acquire)], 0, 2, none);
        "acquire-once" AGAIN "one id acquires once" {} lease(&[(A, Acquire), (A, Release)], 0, 2, one);
        "require" REQUIRED "a required write demands the lease" {}
            lease(&[(A, Acquire), (A, Required), (B, Acquire)], 5, 2, none);
        "ask-rows" NOT_APPLIED "a refused lease does not prove that no earlier copy was applied" {}
            lease(&[(A, Acquire), (A, Required), (A, Release)], 0, 2, one);
        "fence" FENCED "a fenced write demands that the item has seen no higher token" {}
            lease(&[(A, Acquire), (A, Fenced), (B, Acquire), (B, Fenced)], 5, 2, none);
    }
}

const OLD: OrderKey = (1, Some('a'));
const TIED: OrderKey = (1, Some('b'));
const NEW: OrderKey = (2, Some('a'));
const ALL_OLD: OrderKey = (1, None);

fn key(calls: &[Kind], budget: Budget) -> Scene {
    item(calls, None, (2, 1), 3, budget)
}

fn of_newest(is_deep: bool) -> Vec<Named> {
    let (few, more) = (limits(1, 1, 0, 0), limits(2, 1, 0, 0));
    if is_deep {
        return scenes! { "newest":
            "order" {} key(&[Register(OLD, 1), Register(NEW, 1), Unregister(OLD), Unregister(NEW)], more);
            "ties" {} key(&[Register(OLD, 1), Register(TIED, 1), Unregister(OLD), Unregister(ALL_OLD)], more);
            "values" {} key(&[Register(OLD, 1), Register(OLD, 2), Register(OLD, 1), Unregister(OLD)], more);
            "removal" { hours: 2 } key(&[Unregister(OLD), Register(OLD, 1), Register(NEW, 1)], more);
        };
    }
    scenes! { "newest":
        "order" {} key(&[Register(OLD, 1), Register(NEW, 1), Unregister(OLD), Unregister(NEW)], limits(1, 0, 0, 0));
        "ties" {} key(&[Register(OLD, 1), Register(TIED, 1), Unregister(OLD)], few);
        "nameless" {} key(&[Register(OLD, 1), Register(TIED, 1), Unregister(ALL_OLD)], few);
        "values" {} key(&[Register(OLD, 1), Register(OLD, 2), Register(OLD, 1)], few);
        "removal" { hours: 2 } key(&[Unregister(OLD), Register(OLD, 1)], limits(2, 1, 0, 1));
    }
}

fn rules_of_newest() -> Vec<Removal> {
    let of = |calls: &[_]| key(calls, limits(1, 1, 0, 0));
    rules! { "newest":
        "condition" GREATEST "a write has a condition" {} of(&[Register(OLD, 1), Register(NEW, 1)]);
        "ties" GREATEST "names decide between equal numbers" {} of(&[Register(OLD, 1), Register(TIED, 1)]);
        "delete-itself" GREATEST "a delete takes its own instance too" {} of(&[Register(OLD, 1), Unregister(OLD)]);
        "delete-older" GREATEST "a delete takes older instances too" {} of(&[Register(OLD, 1), Unregister(NEW)]);
        "nameless" GREATEST "a delete without a name takes each instance of its number" {}
            of(&[Register(OLD, 1), Unregister(ALL_OLD)]);
        "nameless-refuses" GREATEST "a tombstone without a name refuses each instance of its number" {}
            of(&[Register(OLD, 1), Unregister(ALL_OLD)]);
        "newest-tombstone" GREATEST "a delete leaves a tombstone" {} of(&[Register(OLD, 1), Unregister(OLD)]);
        "newest-margin" SUPERSEDED "a tombstone that TTL may remove soon proves nothing about a register" { hours: 1 }
            of(&[Unregister(OLD), Register(OLD, 1)]);
    }
}

// Products are at the places 0, 4 and 5, orders at 1, 2 and 3.
const ONE: Kind = Place(1, &[(0, 1)]);
const OTHER: Kind = Place(2, &[(0, 1)]);
const TWO: Kind = Place(1, &[(0, 1), (4, 1)]);
const SAME_TWO: Kind = Place(2, &[(4, 1), (0, 1)]);
const NEXT_TWO: Kind = Place(2, &[(4, 1), (5, 1)]);
const LAST_TWO: Kind = Place(3, &[(5, 1), (0, 1)]);
const SETTLE: Kind = Settle(0);

/// Products with this stock, and three keys of orders.
fn held(calls: &[Kind], stock: &[i8], memory: (u64, u64), attempts: u32, budget: Budget) -> Scene {
    let product = |place: usize| Some(row(*stock.get(place)?, 97 + place as u64, false));
    let rows = vec![product(0), None, None, None, product(1), product(2)];
    Scene { rows, ..item(calls, None, memory, attempts, budget) }
}

/// The same where an earlier attempt of the first order was burned.
fn burned(mut scene: Scene) -> Scene {
    let tombstone = |stored: &Stored| Some(Row { purge_at: Some(u64::MAX), ..stored.item()?.clone() });
    scene.rows[1] = tombstone(&row(0, 96, false)).map(Stored::Item);
    scene
}

fn of_holds(is_deep: bool) -> Vec<Named> {
    let one = |calls: &[_], budget| held(calls, &[1], (4, 2), 2, budget);
    if is_deep {
        return scenes! { "holds":
            "one-key" {} one(&[ONE, ONE], limits(2, 1, 0, 1));
            "one-burned-key" { drops: 1 } burned(one(&[ONE, ONE], limits(1, 1, 0, 1)));
            "last-item" { drops: 1, hedges: 1 } one(&[ONE, OTHER], limits(1, 1, 0, 1));
            "chain" {} held(&[TWO, NEXT_TWO], &[1, 1, 1], (4, 2), 2, limits(1, 1, 0, 1));
            "circle" {} held(&[TWO, NEXT_TWO, LAST_TWO], &[1, 1, 1], (4, 3), 2, limits(0, 0, 0, 0));
            "restocks" { others: [2, 0] } held(&[ONE, OTHER], &[1], (2, 1), 2, limits(1, 1, 0, 1));
            "cancellation" {} one(&[ONE, Cancel, OTHER], limits(1, 1, 0, 0));
            "settlers" { drops: 1 } one(&[ONE, SETTLE, SETTLE], limits(1, 1, 0, 0));
            "rejected" { rejections: 1 } one(&[ONE, OTHER], limits(1, 1, 1, 0));
        };
    }
    scenes! { "holds":
        "one-key" {} one(&[ONE, ONE], limits(1, 1, 0, 1));
        "one-burned-key" { drops: 1 } burned(one(&[ONE, ONE], limits(1, 0, 0, 1)));
        "last-item" { drops: 1 } one(&[ONE, OTHER], limits(1, 1, 0, 1));
        "chain" {} held(&[TWO, NEXT_TWO], &[1, 1, 1], (4, 2), 2, limits(1, 0, 0, 1));
        "crossing" {} held(&[TWO, SAME_TWO], &[1, 1], (4, 2), 2, limits(1, 0, 0, 0));
        "restock" { others: [1, 0] } one(&[ONE, OTHER], limits(1, 1, 0, 0));
        "late-restock" {} one(&[ONE, OTHER, Update], limits(0, 1, 0, 0));
        "cancellation" {} one(&[ONE, Cancel, OTHER], limits(1, 0, 0, 0));
        "deletion" {} one(&[ONE, Delete, SETTLE], limits(1, 1, 0, 0));
        "settlers" {} one(&[ONE, SETTLE, SETTLE], limits(1, 0, 0, 0));
        "settler" {} one(&[ONE, SETTLE], limits(2, 2, 0, 1));
        "rejected" { rejections: 1 } one(&[ONE, OTHER], limits(1, 0, 1, 0));
    }
}

fn rules_of_holds() -> Vec<Removal> {
    let any = |calls: &[_], stock: i8, memory| held(calls, &[stock], memory, 2, limits(1, 1, 0, 0));
    let one = |calls: &[_], stock| any(calls, stock, (4, 2));
    rules! { "holds":
        "burns-first" SUM "an attempt is burned before others give back what it took" {} one(&[ONE, OTHER], 1);
        "keeps-tombstones" SUM "the tombstone of a burn is kept" {} one(&[ONE, OTHER], 1);
        "one-create" SUM "a refused create ends its attempt" {} one(&[ONE, OTHER], 1);
        "new-attempt" SUM "what follows a give-back is another attempt" {} one(&[ONE, OTHER], 1);
        "demands-base" SUM "an order demands the tombstone on which its attempt began" {} burned(one(&[ONE, OTHER], 1));
        "hold-names-base" SUM "a hold names the base of its order" {} burned(one(&[ONE, OTHER], 1));
        "names-attempt" SUM "an order names the attempt that placed it" {} burned(one(&[ONE, ONE, OTHER], 3));
        "cancellation-keeps-attempt" SUM "a cancelled order still names its attempt" {} one(&[ONE, Cancel], 1);
        "demands-hold" SUM "a give-back demands its hold" {} one(&[ONE, OTHER], 1);
        "settlement-raises" SUM "a give-back raises the version" {} one(&[ONE, OTHER, Update], 1);
        "proved" SUM "a hold is removed only if its order is placed" {} one(&[ONE, OTHER], 2);
        "owner-leaves" SUM "after a create with a lost answer, its owner gives nothing back" { deadlines: 1 } one(&[ONE], 1);
        "takes-all" SUM "an order is placed only if all is taken" {}
            held(&[TWO, OTHER], &[1, 1], (4, 2), 2, limits(0, 0, 0, 0));
        "unproved-is-no-take" SUM "an unproved take is none" { others: [2, 0] } any(&[ONE], 1, (2, 1));
        "judge-of-holds" SUM "a refused create is judged by the memory of its tombstone" {} burned(one(&[ONE], 1));
        "id-is-absent-of-holds" SUM "a take demands that the row does not know its id" {} one(&[ONE], 2);
        "window-ends-of-holds" SUM "the window of a take ends" { others: [1, 0] } any(&[ONE], 2, (1, 1));
        "prune-late-of-holds" SUM "the id of a take stays for R commits" { others: [1, 0] } any(&[ONE], 2, (3, 3));
        "delete-without-holds" SUM "a product is deleted only without holds" {} one(&[ONE, Delete], 1);
        "provisional" SOLD_OUT "what is held may come back" {} one(&[ONE, OTHER, SETTLE], 1);
        "own-holds-too" SOLD_OUT "what is held for the same order may come back too" {} one(&[ONE, ONE], 1);
        "gone-came-back" SOLD_OUT "a hold without an order comes back" {} one(&[ONE, OTHER, SETTLE], 1);
    }
}
