//! Checks a history by the applied writes, the clerks' answers and the stored rows.

use super::plan::{Plan, What};
use super::plan::{Scene, Sent};
use crate::harness::engine::Engine;
use crate::harness::faults::Applied;
use crate::harness::functions::{ORDERS, PRODUCTS, RECORDS};
use crate::histories::history::{Claim, contradiction};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub const TAKEN_FOR_ANOTHERS: &str = "applied it itself, and was told that another had";
pub const TOLD_ANOTHER: &str = "told a state that was never stored at the version of its tag";
const DOES_NOT_ADD_UP: &str = "stock + ordered - cancelled is not what was there and came";
pub const COUNTED_TWICE: &str = "one key has changed the stock twice";
pub const TWO_ORDERS: &str = "one key has more than one order";

/// The shortest time for which a key is remembered. An order's key is remembered for ever.
const DAY: Duration = Duration::from_hours(24);

/// A finished history: all copies have arrived.
pub struct Orders {
    pub scene: Arc<Scene>,
    pub sent: Vec<Sent>,
    pub applied: Vec<Applied>,
    /// Writes that mark another write as never to be applied. Each raised the version of its row.
    pub burns: Vec<Applied>,
    /// The requests with an effect before the repeats.
    pub landed: BTreeSet<u64>,
    /// Each unknown request and its repeat.
    pub repeats: Vec<(Sent, Sent)>,
}

impl Orders {
    pub fn applied_by(&self, sent: &Sent) -> usize {
        self.applied.iter().filter(|applied| applied.op == sent.number).count()
    }

    /// Whether the answer "nothing was applied" became untrue: an add had refused the request, but a second copy was
    /// applied later.
    pub fn is_made_untrue(&self, sent: &Sent) -> bool {
        let by_copy = |applied: &Applied| applied.op == sent.number && applied.is_copy_of_refused;
        !sent.is_success()
            && !sent.is_unknown()
            && !matches!(sent.what, What::Restock(_))
            && self.applied.iter().any(by_copy)
    }

    /// Whether this request's key had its effect before the request began.
    fn was_done_before(&self, sent: &Sent) -> bool {
        let same =
            |number: u64| self.sent.iter().any(|other| other.number == number && other.what.has_key_of(&sent.what));
        let counts = |applied: &Applied| is_remembered(&sent.what, applied.time, sent.began);
        self.applied.iter().any(|applied| applied.time < sent.began && counts(applied) && same(applied.op))
    }

    /// The times at which requests of this key changed a stock.
    pub fn stock_changes(&self, what: &What) -> Vec<Instant> {
        let changes = |applied: &&&Applied| {
            applied.rows.iter().any(|row| row.step.table == PRODUCTS && row.step.action == "UpdateItem")
        };
        self.effects(what).iter().filter(changes).map(|applied| applied.time).collect()
    }

    /// The writes that requests of this key applied, oldest first.
    fn effects(&self, what: &What) -> Vec<&Applied> {
        let of_key = |number: u64| self.sent.iter().any(|sent| sent.number == number && sent.what.has_key_of(what));
        self.applied.iter().filter(|applied| of_key(applied.op)).collect()
    }

    /// The place of the effect that an answer shows, among those of its key. `None` if another request had an effect
    /// meanwhile.
    fn told_of(&self, sent: &Sent) -> Option<usize> {
        let effects = self.effects(&sent.what);
        let of_others = |applied: &&&Applied| applied.op != sent.number && applied.time >= sent.began;
        let meanwhile = effects.iter().filter(of_others).any(|applied| applied.time <= sent.ended);
        (!meanwhile).then(|| effects.iter().filter(|applied| applied.time <= sent.ended).count())
    }

    fn successes(&self, what: &What) -> Vec<&Sent> {
        self.sent.iter().filter(|sent| sent.is_success() && sent.what.has_key_of(what)).collect()
    }

    /// Whether the key of an unknown request had an effect by the end of the storm, through any request.
    fn had_effect(&self, unknown: &Sent, repeat: &Sent) -> bool {
        let same = |sent: &&Sent| sent.number == unknown.number || sent.what.has_key_of(&unknown.what);
        let counts = |number: u64| {
            let mut own = self.applied.iter().filter(|applied| applied.op == number);
            own.any(|applied| is_remembered(&unknown.what, applied.time, repeat.began))
        };
        let landed = |sent: &Sent| self.landed.contains(&sent.number) && counts(sent.number);
        self.sent.iter().filter(same).any(landed)
    }
}

/// Whether a key that was used at `then` is still known at `now`.
fn is_remembered(what: &What, then: Instant, now: Instant) -> bool {
    !matches!(what, What::Restock(_)) || now.saturating_duration_since(then) < DAY
}

/// The broken promises, one sentence each.
pub fn violations(engine: &Engine, ended: &Orders) -> Vec<String> {
    let plan = &ended.scene.plan;
    let mut found = Vec::new();
    for sent in &ended.sent {
        let why = verdict(ended, sent).or_else(|| told_another(ended, sent));
        found.extend(why.map(|why| format!("{why}: {sent:?}")));
    }
    for (unknown, repeat) in &ended.repeats {
        found.extend(resolved(ended, unknown, repeat).map(|why| format!("{why}: {unknown:?}, then {repeat:?}")));
    }
    let steps = ended.applied.iter().flat_map(|applied| &applied.rows).map(|row| &row.step);
    let ids: BTreeSet<_> = steps.filter(|step| step.table == ORDERS).map(|step| &step.id).collect();
    let orders: Vec<_> = ids.into_iter().map(|id| engine.row(ORDERS, "orderId", id)).collect();
    for order in 0..plan.orders.len() {
        let user = Plan::user(order);
        let mine: Vec<_> = orders.iter().filter(|row| row["userId"]["S"] == user.as_str()).collect();
        if mine.len() > 1 {
            found.push(format!("{TWO_ORDERS}: {mine:?}"));
        }
        found.extend(one_answer(ended, &What::Place(order), !mine.is_empty()));
        let cancelled = |sent: &&Sent| matches!(sent.what, What::Cancel(other, _) if other == order);
        let told = ended.sent.iter().filter(cancelled).any(Sent::is_success);
        if told && !mine.iter().any(|row| row["status"]["S"] == "CANCELLED") {
            found.push(format!("told that it is cancelled, but it is not: {mine:?}"));
        }
    }
    let mut restocked = Vec::new();
    for restock in 0..plan.restocks.len() {
        let what = What::Restock(restock);
        let record = engine.row(RECORDS, "recordId", &plan.record_id(restock));
        let there = !record.is_null() && record.get("_purgeAt").is_none();
        // After a day, a key may stand for another change. Its record may be gone.
        let days = ended.scene.days.is_some();
        found.extend(one_answer(ended, &what, there || days));
        let changes = ended.stock_changes(&what);
        if changes.windows(2).any(|pair| is_remembered(&what, pair[0], pair[1])) {
            found.push(format!("{COUNTED_TWICE}: {}", Plan::restock_key(restock)));
        }
        restocked.push(if days { changes.len() } else { usize::from(there) });
    }
    for product in 0..plan.products.len() {
        found.extend(adds_up(engine, ended, product, &orders, &restocked));
    }
    found
}

/// The mistake in the answer to a request, if any.
fn verdict(ended: &Orders, sent: &Sent) -> Option<&'static str> {
    let effects: Vec<_> = ended.applied.iter().filter(|applied| applied.op == sent.number).collect();
    let (is_first, cancels) = match sent.what {
        What::Place(_) | What::Restock(_) => (!sent.replayed, false),
        What::Cancel(_, ref tag) => (false, tag.is_some()),
        What::Adjust(_, by) => (by != 0, false),
    };
    let claim = match () {
        () if sent.is_unknown() => Claim::Nothing,
        () if sent.is_success() && (is_first || cancels) => Claim::Applied,
        () if sent.is_success() => Claim::Nothing,
        () => Claim::NotApplied,
    };
    // After an add was refused, the denial is true at first. The network may make it untrue later, at most once.
    let may_land = !matches!(sent.what, What::Restock(_));
    if let Some(why) = contradiction(claim, (sent.began, sent.ended), &effects, may_land) {
        return Some(why);
    }
    match effects.len() {
        _ if sent.is_refusal() && ended.was_done_before(sent) && !ended.is_made_untrue(sent) => {
            Some("refused, though it was done already")
        }
        1 if sent.replayed => Some(TAKEN_FOR_ANOTHERS),
        _ => None,
    }
}

/// A success must show the row that was stored with its tag, by any writer.
fn told_another(ended: &Orders, sent: &Sent) -> Option<&'static str> {
    let tag = sent.etag.as_deref().filter(|_| sent.is_success())?;
    let shown: Value = serde_json::from_str(&sent.body).expect("JSON");
    let (table, id) = if shown["orderId"].is_string() { (ORDERS, "orderId") } else { (PRODUCTS, "productId") };
    let key = shown[id].as_str().expect("an id");
    if table == PRODUCTS && shown["version"] == 1 {
        return None; // It was there before the history.
    }
    let commits = ended.applied.iter().chain(&ended.burns);
    let rows = commits.filter_map(|applied| applied.left_in(table, key)).filter(|row| tag_of(row) == tag);
    let is_own = |name: &str| [id, "version"].contains(&name);
    let mut shows = rows.map(|row| {
        let mut members = shown.as_object().expect("an item").iter().filter(|(name, _)| !is_own(name));
        members.all(|(name, value)| plain(&row[name]) == *value)
            && row.get("cancelledAt").is_some() == shown.get("cancelledAt").is_some()
    });
    (!shows.any(|same| same)).then_some(TOLD_ANOTHER)
}

fn tag_of(row: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let incarnation = text(&row["_incarnation"]["B"]).trim_end_matches('=').replace('+', "-").replace('/', "_");
    format!("\"{}.{incarnation}\"", text(&row["_version"]["N"]))
}

/// A stored attribute as an answer shows it.
fn plain(value: &Value) -> Value {
    let Some((kind, value)) = value.as_object().and_then(|value| value.iter().next()) else { return Value::Null };
    match (kind.as_str(), value) {
        ("N", Value::String(number)) => number.parse::<i64>().expect("a whole number").into(),
        ("L", Value::Array(members)) => members.iter().map(plain).collect(),
        ("M", Value::Object(members)) => members.iter().map(|(name, value)| (name.clone(), plain(value))).collect(),
        _ => value.clone(),
    }
}

/// The repeat of an unknown request must get an answer once the faults are over.
fn resolved(ended: &Orders, unknown: &Sent, repeat: &Sent) -> Option<&'static str> {
    if repeat.is_success() {
        return None;
    }
    if ended.had_effect(unknown, repeat) {
        return Some("a repeat denies what was done");
    }
    let refused = repeat.body.contains("insufficient_stock");
    (!refused).then_some("a repeat does not tell")
}

/// All successes of a key must be the same answer about an existing row. Where keys are forgotten, each effect has one
/// answer.
fn one_answer(ended: &Orders, what: &What, there: bool) -> Option<String> {
    let successes = ended.successes(what);
    let first = successes.first()?;
    if !there {
        return Some(format!("told of what is not there: {first:?}"));
    }
    let differ = |one: &Sent, other: &Sent| (&one.body, &one.etag) != (&other.body, &other.etag);
    if ended.scene.days.is_none() || !matches!(what, What::Restock(_)) {
        let other = successes.iter().find(|other| differ(first, other))?;
        return Some(format!("one key has two answers: {first:?} and {other:?}"));
    }
    let told: Vec<_> = successes.iter().filter_map(|sent| Some((ended.told_of(sent)?, *sent))).collect();
    let two = |(of, one): &(usize, &Sent)| told.iter().any(|(same, other)| same == of && differ(one, other));
    told.iter().find(|one| two(one)).map(|(_, one)| format!("one effect has two answers: {one:?}"))
}

/// The stock of a product must match all orders, restocks and adjustments, each counted once.
fn adds_up(engine: &Engine, ended: &Orders, product: usize, orders: &[Value], restocked: &[usize]) -> Option<String> {
    let plan = &ended.scene.plan;
    let id = plan.products[product].as_str();
    let row = engine.row(PRODUCTS, "productId", id);
    let number = |value: &Value| value["N"].as_str().and_then(|text| text.parse::<i64>().ok());
    let pending = orders.iter().filter(|row| row["status"]["S"] == "PENDING");
    let lines = pending.flat_map(|row| row["lines"]["L"].as_array().into_iter().flatten());
    let lines = lines.filter(|line| line["M"]["productId"]["S"] == id);
    let ordered: i64 = lines.filter_map(|line| number(&line["M"]["quantity"])).sum();
    let restocks = plan.restocks.iter().zip(restocked).filter(|((of, _), _)| *of == product);
    let restocks: i64 = restocks.map(|((_, by), times)| by * i64::try_from(*times).expect("few")).sum();
    let adjusted = |sent: &Sent| match sent.what {
        What::Adjust(of, by) if of == product && ended.applied_by(sent) > 0 => by,
        _ => 0,
    };
    let adjusted: i64 = ended.sent.iter().map(adjusted).sum();
    let expected = plan.stocks[product] + restocks + adjusted - ordered;
    if number(&row["stock"]) != Some(expected) {
        let (stock, first) = (&row["stock"], plan.stocks[product]);
        return Some(format!(
            "{DOES_NOT_ADD_UP}: {stock} of {id}, not {first} + {restocks} restocked + {adjusted} adjusted - {ordered} ordered"
        ));
    }
    let commits =
        1 + ended.applied.iter().chain(&ended.burns).filter(|applied| applied.left_in(PRODUCTS, id).is_some()).count();
    let version = number(&row["_version"]);
    (version != i64::try_from(commits).ok()).then(|| format!("{commits} commits left {id} at version {version:?}"))
}
