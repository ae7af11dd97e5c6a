//! Rules broken on purpose: the matrix notices each of them, as it notices a route without a case.

use super::case::{Case, Given, How, Killed, Promise};
use super::mappings::QUEUE;
use super::shop::SCHEDULE;
use super::trial::{Breaks, Fate};
use super::{Tally, Undisturbed, on_paused_time, play};
use crate::harness::faults::drop_unused;
use crate::harness::functions::{Devices, Leasing, Mappings, RECORDS, Shop, alone};
use fencepost_test::Request;
use functions::operation::{IdempotencyKey, Operation};
use std::collections::BTreeMap;

/// The results of the case of this route with a rule broken.
fn broken<F: Killed>(route: &str, given: Given, how: How, breaks: Breaks) -> Tally {
    let is_wanted = |case: &&Case| (case.route, case.given, case.how) == (route, given, how);
    let case = F::CASES.iter().find(is_wanted).expect("a case of the matrix");
    on_paused_time(async {
        let undisturbed = Undisturbed::of::<F>(case).await;
        play::<F>(case, &undisturbed, &[Fate::Delivered, Fate::Late], breaks).await
    })
}

fn keep_steps(request: &mut Request, is_kept: impl Fn(&str) -> bool) {
    if let Some(steps) = request.body["TransactItems"].as_array_mut() {
        steps.retain(|step| {
            let action = step.as_object().and_then(|step| step.values().next()).expect("an action");
            is_kept(action["TableName"].as_str().expect("a table"))
        });
    }
}

fn without_records(request: &mut Request) {
    keep_steps(request, |table| table != RECORDS);
}

fn records_alone(request: &mut Request) {
    keep_steps(request, |table| table == RECORDS);
}

fn without_conditions(request: &mut Request) {
    if request.body.as_object_mut().is_some_and(|write| write.remove("ConditionExpression").is_some()) {
        drop_unused(&mut request.body);
    }
}

#[test]
fn a_change_whose_record_is_not_in_its_transaction_is_doubled_by_the_repeat() {
    let tally = broken::<Devices>("POST /devices/{deviceId}/adjustments", Given::Present, How::Keyed, without_records);
    assert!(tally.doubled > 0, "{tally:?}");
    let tally = broken::<Shop>("POST /products/{productId}/adjustments", Given::Present, How::Keyed, without_records);
    assert!(tally.doubled > 0, "{tally:?}");
}

#[test]
fn a_record_without_its_change_is_replayed_and_the_change_is_lost() {
    let tally = broken::<Devices>("PUT /devices/{deviceId}/status", Given::Present, How::Keyed, records_alone);
    assert!(tally.lost > 0, "{tally:?}");
}

#[test]
fn without_its_condition_a_change_is_doubled() {
    let tally = broken::<Devices>("PUT /devices/{deviceId}", Given::Absent, How::Plain, without_conditions);
    assert!(tally.doubled > 0, "{tally:?}");
    let tally = broken::<Devices>("PATCH /devices/{deviceId}/state", Given::Present, How::Plain, without_conditions);
    assert!(tally.doubled > 0, "by the late copy: {tally:?}");
    let tally = broken::<Leasing>("PUT /leases/{leaseKey}", Given::Absent, How::Keyed, without_conditions);
    assert!(tally.doubled > 0, "{tally:?}");
}

/// The cases of each function, by its name in template.yaml.
fn all_cases() -> BTreeMap<&'static str, Vec<Case>> {
    fn add<F: Killed>(cases: &mut BTreeMap<&'static str, Vec<Case>>) {
        for case in F::CASES {
            cases.entry(F::name_of(case.route)).or_default().push(*case);
        }
    }
    let mut cases = BTreeMap::new();
    add::<Devices>(&mut cases);
    add::<Shop>(&mut cases);
    add::<Mappings>(&mut cases);
    add::<Leasing>(&mut cases);
    cases
}

/// The kinds of cases missing for one changing route.
fn missing(route: &Operation, cases: &[Case]) -> Vec<&'static str> {
    let has = |such: &dyn Fn(&Case) -> bool| cases.iter().any(|case| case.route == route.at && such(case));
    let on = |given: &[Given]| has(&|case| given.contains(&case.given));
    let there = [Given::Present, Given::Seen, Given::Same, Given::Older, Given::Newer];
    let found = [
        (on(&[Given::Absent]), "an item that is absent"),
        (on(&there), "an item that is there"),
        (on(&[Given::Tombstone, Given::Released]), "an item that was deleted"),
        (has(&|case| case.promise != Promise::Nothing), "something to change"),
        (route.key != IdempotencyKey::Honoured || has(&|case| case.how == How::Keyed), "an Idempotency-Key"),
    ];
    found.into_iter().filter(|(is_there, _)| !is_there).map(|(_, what)| what).collect()
}

/// `repository/permissions.rs` names a function without any case.
#[test]
fn every_changing_route_has_its_rows() {
    let (all, mut found) = (all_cases(), Vec::new());
    let others = alone().map(|function| function.name).collect::<Vec<_>>(); // `cases_of` makes their cases
    for function in functions::ALL.iter().filter(|function| !others.contains(&function.name)) {
        let (name, routes) = (function.name, function.routes());
        let cases = all.get(name).map_or(&[][..], Vec::as_slice);
        for route in routes.iter().filter(|route| !route.at.starts_with("GET ")) {
            let at = route.at;
            found.extend(missing(route, cases).iter().map(|what| format!("{at} of {name}: no case with {what}")));
        }
        for case in cases.iter().filter(|case| ![QUEUE, SCHEDULE].contains(&case.route)) {
            if !routes.iter().any(|route| route.at == case.route) {
                found.push(format!("{case}: {name} has no such route"));
            }
        }
    }
    assert!(found.is_empty(), "tests/crashes: {}", found.join("\n"));
}
