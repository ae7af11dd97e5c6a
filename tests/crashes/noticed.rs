//! Rules that are broken on purpose: the matrix notices. And a route without a row: that is noticed too.

use super::death::{Breaks, Fate};
use super::mappings::QUEUE;
use super::matrix::{Tally, Undisturbed, on_paused_time, play};
use super::row::{Given, How, Killed, Promise, Row};
use crate::harness::functions::{Devices, Leasing, Mappings, RECORDS, Shop, alone};
use crate::harness::routes::{honours_key, routes_in_code};
use fencepost_test::Request;
use std::collections::BTreeMap;

/// What the row of this route comes to with a rule broken.
fn broken<F: Killed>(route: &str, given: Given, how: How, breaks: Breaks) -> Tally {
    let is_wanted = |row: &&Row| (row.route, row.given, row.how) == (route, given, how);
    let row = F::ROWS.iter().find(is_wanted).expect("a row of the matrix");
    on_paused_time(async {
        let undisturbed = Undisturbed::of::<F>(row).await;
        play::<F>(row, &undisturbed, &[Fate::Delivered, Fate::Late], breaks).await
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
    let Some(write) = request.body.as_object_mut() else { return };
    if write.remove("ConditionExpression").is_none() {
        return;
    }
    let update = write.get("UpdateExpression").and_then(|update| update.as_str()).unwrap_or_default().to_owned();
    for member in ["ExpressionAttributeNames", "ExpressionAttributeValues"] {
        let Some(placeholders) = write.get_mut(member).and_then(|all| all.as_object_mut()) else { continue };
        let named: Vec<&str> =
            update.split(|letter: char| !letter.is_alphanumeric() && !"_#:".contains(letter)).collect();
        placeholders.retain(|name, _| named.contains(&name.as_str()));
        if placeholders.is_empty() {
            write.remove(member);
        }
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
fn a_record_without_its_change_loses_what_the_repeat_is_told() {
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

/// The rows of each function, by its name in template.yaml.
fn all_rows() -> BTreeMap<&'static str, Vec<Row>> {
    fn add<F: Killed>(rows: &mut BTreeMap<&'static str, Vec<Row>>) {
        for row in F::ROWS {
            rows.entry(F::name_of(row.route)).or_default().push(*row);
        }
    }
    let mut rows = BTreeMap::new();
    add::<Devices>(&mut rows);
    add::<Shop>(&mut rows);
    add::<Mappings>(&mut rows);
    add::<Leasing>(&mut rows);
    rows
}

/// What is missing among the rows of one changing route.
fn missing(route: &str, rows: &[Row]) -> Vec<&'static str> {
    let has = |such: &dyn Fn(&Row) -> bool| rows.iter().any(|row| row.route == route && such(row));
    let on = |given: &[Given]| has(&|row| given.contains(&row.given));
    let there = [Given::Present, Given::Seen, Given::Same, Given::Older, Given::Newer];
    let found = [
        (on(&[Given::Absent]), "an item that is absent"),
        (on(&there), "an item that is there"),
        (on(&[Given::Tombstone, Given::Released]), "an item that was deleted"),
        (has(&|row| row.promise != Promise::Nothing), "something to change"),
        (!honours_key(route) || has(&|row| row.how == How::Keyed), "an Idempotency-Key"),
    ];
    found.into_iter().filter(|(is_there, _)| !is_there).map(|(_, what)| what).collect()
}

#[test]
fn every_changing_route_has_its_rows() {
    let (rows, routes) = (all_rows(), routes_in_code());
    let mut found = Vec::new();
    let others = alone().map(|function| function.name).collect::<Vec<_>>(); // `alone.rs` makes their rows
    for (function, routes) in routes.iter().filter(|(function, _)| !others.contains(function)) {
        let rows = rows.get(function).map_or(&[][..], Vec::as_slice);
        for route in routes.iter().filter(|route| !route.starts_with("GET ")) {
            found.extend(missing(route, rows).iter().map(|what| format!("{route} of {function}: no row with {what}")));
        }
    }
    for name in dev::template::Template::load(dev::workspace()).expect("template.yaml").functions {
        let is_known = rows.contains_key(name.name.as_str()) || others.contains(&name.name.as_str());
        if !is_known {
            found.push(format!("{}: no row at all", name.name));
        }
    }
    for (function, rows) in &rows {
        for row in rows.iter().filter(|row| row.route != QUEUE) {
            if !routes.get(function).is_some_and(|routes| routes.contains(row.route)) {
                found.push(format!("{row}: {function} has no such route"));
            }
        }
    }
    assert!(found.is_empty(), "tests/crashes: {}", found.join("\n"));
}
