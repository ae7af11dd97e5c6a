use super::*;
use fencepost_core::AttributeValue;
use fencepost_core::WriteId;
use std::collections::HashMap;

fn id(number: u8) -> WriteId {
    WriteId::from_bytes([number; 8])
}

fn n(number: i64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// A row at a version, with the writes that it remembers: an id, and the version before it, negative if it was burned.
fn row(version: i64, writes: &[(u8, i64)], more: &[(&str, AttributeValue)]) -> Attributes {
    let writes = writes.iter().map(|(number, before)| (id(*number).name(), n(*before))).collect();
    let mut row = HashMap::from([
        ("_version".to_owned(), n(version)),
        ("_incarnation".to_owned(), AttributeValue::B(vec![1; 8])),
        ("_writes".to_owned(), AttributeValue::M(writes)),
    ]);
    row.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    row
}

fn of(more: &[(&str, AttributeValue)]) -> Attributes {
    more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn lease(holder: Option<&str>, [token, renewals, expires_at]: [i64; 3]) -> Attributes {
    let mut lease = of(&[("token", n(token)), ("renewals", n(renewals)), ("expiresAt", n(expires_at))]);
    lease.insert("acquireId".to_owned(), AttributeValue::B(vec![1]));
    lease.extend(holder.map(|holder| ("holder".to_owned(), AttributeValue::S(holder.to_owned()))));
    lease
}

fn instance(term: i64, node: Option<&str>, more: &[(&str, AttributeValue)]) -> Attributes {
    let mut row = of(more);
    row.insert("term".to_owned(), n(term));
    row.extend(node.map(|node| ("node".to_owned(), AttributeValue::S(node.to_owned()))));
    row
}

fn hold(number: u8, quantity: i64) -> (String, AttributeValue) {
    (id(number).name(), AttributeValue::L(vec![n(quantity), AttributeValue::S("order".to_owned())]))
}

fn stock(version: i64, stock: i64, holds: &[(u8, i64)]) -> Attributes {
    let holds = holds.iter().map(|(number, quantity)| hold(*number, *quantity)).collect();
    let writes: Vec<_> = (0..version).map(|before| (u8::try_from(before + 1).expect("small"), before)).collect();
    row(version, &writes, &[("stock", n(stock)), ("_holds", AttributeValue::M(holds))])
}

const SECOND: u64 = 1_800_000_000;

/// The names of the broken rules.
fn broken(audit: &Audit, before: Option<&Attributes>, after: Option<&Attributes>) -> Vec<&'static str> {
    let at = Timestamp::from_epoch_millis(SECOND * 1000).expect("a time");
    audit.check(&Change::new(before, after, at)).iter().map(|breach| breach.rule.name()).collect()
}

#[test]
fn a_write_makes_the_next_version_under_a_fresh_id() {
    let own = Audit::of(Settings::own());
    let first = row(1, &[(1, 0)], &[]);
    for (after, rules) in [
        (row(2, &[(1, 0), (2, 1)], &[]), vec![]),
        (row(2, &[(1, 0)], &[]), vec![]), // an edit in a transaction leaves none
        (row(2, &[(1, 0), (2, 1), (3, -1)], &[]), vec![]),
        (row(1, &[(1, 0)], &[("_given", n(1))]), vec![]),
        (row(1, &[(1, 0)], &[("a", n(1))]), vec!["version"]),
        (row(3, &[(1, 0), (2, 2)], &[]), vec!["version", "write-id"]),
        (row(2, &[(1, 1)], &[]), vec!["write-id"]),
        (row(2, &[(1, 0), (2, 1), (3, 1)], &[]), vec!["write-id", "write-id"]),
        (row(2, &[(1, 0), (2, 2)], &[]), vec!["write-id", "write-id"]),
        (of(&[("a", n(1))]), vec!["other-writers"]),
        (row(2, &[(1, 0), (2, 1)], &[("_fence", AttributeValue::Bool(true))]), vec!["readable"]),
    ] {
        assert_eq!(broken(&own, Some(&first), Some(&after)), rules, "{after:?}");
    }
    let of_another = Attributes::from([("_incarnation".to_owned(), AttributeValue::B(vec![9; 8]))]);
    let restamped: Attributes = first.clone().into_iter().chain(of_another.clone()).collect();
    assert_eq!(broken(&own, Some(&first), Some(&restamped)), [""; 0]);
    let replaced = row(2, &[(9, 1)], &[]).into_iter().chain(of_another).collect();
    assert_eq!(broken(&own, Some(&first), Some(&replaced)), ["incarnation"]);
    for (created, rules) in [
        (row(1, &[(1, 0)], &[]), vec![]),
        (row(4, &[(1, 3)], &[]), vec!["version"]),
        (row(1, &[(2, 0)], &[]), vec!["incarnation"]),
    ] {
        assert_eq!(broken(&own, None, Some(&created)), rules, "{created:?}");
    }
}

#[test]
fn a_burned_write_stays_burned_and_remembered() {
    let own = Audit::of(Settings::own().remembered_writes(3));
    let burned = row(2, &[(1, 0), (2, 1), (3, -1)], &[]);
    for (after, rules) in [
        (row(3, &[(1, 0), (2, 1), (3, 2)], &[]), vec!["write-id"]),
        (row(3, &[(3, -1), (4, 2)], &[]), vec![]), // answered ones may go
        (row(3, &[(1, 0), (2, 1), (4, 2)], &[]), vec!["memory"]),
    ] {
        assert_eq!(broken(&own, Some(&burned), Some(&after)), rules, "{after:?}");
    }
    let late = row(3, &[(3, -1), (4, 2)], &[]);
    assert_eq!(broken(&own, Some(&late), Some(&row(4, &[(4, 2), (5, 3)], &[]))), [""; 0], "after three commits");
}

#[test]
fn tokens_only_rise_and_a_placed_row_stays_with_its_attempt() {
    let own = Audit::of(Settings::own());
    let placed = |byte| ("_placedBy", AttributeValue::B(vec![byte; 8]));
    let before = row(1, &[(1, 0)], &[("_fence", n(7)), placed(1)]);
    let after = |more: &[(&str, AttributeValue)]| row(2, &[(1, 0), (2, 1)], more);
    assert_eq!(broken(&own, Some(&before), Some(&after(&[("_fence", n(8)), placed(1)]))), [""; 0]);
    assert_eq!(broken(&own, Some(&before), Some(&after(&[("_fence", n(6)), placed(2)]))), ["fence", "placed"]);
    assert_eq!(broken(&own, Some(&before), Some(&after(&[placed(1)]))), ["fence"]);
}

#[test]
fn a_row_leaves_a_tombstone_that_stays_until_its_end() {
    let end = i64::try_from(SECOND).expect("small");
    let tombstone = |end| row(2, &[(1, 0), (2, 1)], &[("_purgeAt", n(end))]);
    let live = row(1, &[(1, 0)], &[]);
    let swept = Settings::without_ttl().swept();
    let shared = Settings::without_ttl().shared_with_versioned_writers().swept();
    for (settings, row, may_go) in [
        (Settings::own(), &live, false),
        (Settings::own(), &tombstone(end), true),
        (Settings::own(), &tombstone(end + 301), false),
        (Settings::without_ttl().removed(), &live, true),
        (swept, &live, false),
        (shared, &live, true),
        (Settings::own(), &lease(None, [1, 0, 9]), false),
        (Settings::own(), &instance(1, Some("a"), &[("_purgeAt", n(end))]), true),
    ] {
        assert_eq!(broken(&Audit::of(settings), Some(row), None).is_empty(), may_go, "{settings:?} {row:?}");
    }
    let at = Timestamp::from_epoch_millis(SECOND * 1000).expect("a time");
    assert_eq!(Audit::of(Settings::own()).check(&Change::new(Some(&live), None, at).by_ttl()), []);
    assert_eq!(Audit::of(Settings::own()).check(&Change::new(Some(&live), None, at).of_a_period()), []);
}

#[test]
fn what_is_taken_is_held_and_comes_back_once() {
    let own = Audit::of(Settings::own()).with_held("stock");
    let before = stock(3, 10, &[(1, 2), (2, 3)]);
    for (after, is_kept) in [
        (stock(4, 9, &[(1, 2), (2, 3), (4, 1)]), true),
        (stock(4, 11, &[(2, 3), (4, 1)]), true), // and gave two back
        (stock(4, 9, &[(2, 3), (4, 1)]), true),  // and removed a hold whose order is there
        (stock(4, 10, &[(1, 2), (2, 3), (4, 1)]), false),
        (stock(4, 13, &[(2, 3), (4, 1)]), false),
        (stock(4, 10, &[(1, 2), (2, 4)]), false),
        (stock(4, 50, &[(2, 3)]), true), // a restock that removed a hold
    ] {
        let rules = broken(&own, Some(&before), Some(&after));
        assert_eq!(rules, if is_kept { vec![] } else { vec!["holds"] }, "{after:?}");
    }
}

#[test]
fn a_lease_goes_by_acquires_renewals_and_releases() {
    let own = Audit::of(Settings::own());
    let before = lease(Some("a"), [5, 1, 100]);
    for (after, is_kept) in [
        (lease(Some("a"), [5, 2, 110]), true),
        (lease(None, [5, 1, 100]), true),
        (lease(Some("b"), [6, 0, 120]), true),
        (lease(Some("b"), [4, 0, 120]), false),
        (lease(Some("b"), [6, 1, 120]), false),
        (lease(Some("b"), [5, 2, 110]), false),
        (lease(Some("a"), [5, 3, 110]), false),
        (lease(Some("a"), [5, 2, 100]), false),
        (lease(Some("a"), [5, 1, 110]), false),
    ] {
        let rules = broken(&own, Some(&before), Some(&after));
        assert_eq!(rules, if is_kept { vec![] } else { vec!["lease"] }, "{after:?}");
    }
    let damaged: Attributes = before.clone().into_iter().chain(of(&[("token", AttributeValue::Bool(true))])).collect();
    assert_eq!(broken(&own, Some(&before), Some(&damaged)), ["readable"]);
    let released = lease(None, [5, 1, 100]);
    assert_eq!(broken(&own, Some(&released), Some(&lease(Some("a"), [5, 2, 110]))), ["lease"]);
}

#[test]
fn the_newest_instance_wins() {
    let newest = Audit::of(Settings::own()).of_instances(["term", "node"]);
    let buried = [("_purgeAt", n(9))];
    let (live, dead) = (instance(5, Some("b"), &[]), instance(5, Some("b"), &buried));
    for (before, after, is_kept) in [
        (&live, instance(5, Some("c"), &[]), true),
        (&live, instance(5, None, &buried), true),
        (&live, dead.clone(), true),
        (&dead, dead.clone(), true),
        (&live, live.clone(), false),
        (&live, instance(4, Some("z"), &[]), false),
        (&live, instance(5, Some("a"), &buried), false),
        (&dead, live.clone(), false),
        (&dead, instance(5, Some("a"), &buried), false),
    ] {
        let rules = broken(&newest, Some(before), Some(&after));
        assert_eq!(rules, if is_kept { vec![] } else { vec!["newest"] }, "{before:?} {after:?}");
    }
}

#[test]
fn numbers_stay_within_their_bounds() {
    let number = |text| crate::Number::parse(text);
    let audit = Audit::of(Settings::own()).within("stock", number("0"), number("1e1"));
    for (stock, is_kept) in [("0", true), ("10.0", true), ("-0.1", false), ("11", false)] {
        let row = row(1, &[(1, 0)], &[("stock", AttributeValue::N(stock.to_owned()))]);
        assert_eq!(broken(&audit, None, Some(&row)).is_empty(), is_kept, "{stock}");
    }
}
