//! Today's build writes the same rows as the recorded build, so the recorded build can read them.

use super::recorded::{Change, WHAT_TO_DO, flat, read, today};
use super::scene::Rows;
use fencepost::testing::own_attributes;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A row without random ids: write ids, and the ids of keyless acquires. Everything else must be exactly equal.
fn certain(row: &Value) -> Value {
    let created_by = created_by(row).unwrap_or_default();
    let mut row = row.clone();
    let Some(attributes) = row.as_object_mut() else { return row };
    if let Some(writes) = attributes.get_mut("_writes") {
        let traces = writes["M"].as_object().expect("`_writes` is a map").clone();
        let names_creation = traces.get(&created_by) == Some(&json!({"N": "0"}));
        let ids = traces.keys().filter(|name| is_write_id(name)).count();
        let mut versions: Vec<_> = traces.values().map(ToString::to_string).collect();
        versions.sort();
        *writes = json!({"write ids": ids, "their versions": versions, "has the id of the create": names_creation});
    }
    if let Some(holds) = attributes.get_mut("_holds") {
        let all = holds["M"].as_object().expect("`_holds` is a map");
        assert!(all.keys().all(|attempt| is_write_id(attempt)), "{all:?}");
        *holds = json!(all.values().collect::<Vec<_>>());
    }
    for (name, bytes) in [("_incarnation", 12), ("_placedBy", 12), ("acquireId", 24)] {
        if let Some(id) = attributes.get_mut(name).filter(|id| id["B"].as_str().is_some_and(|text| text.len() == bytes))
        {
            *id = json!({"B": format!("{bytes} characters of base64")});
        }
    }
    row
}

/// The write id that created a row, as its name is in `_writes`. The engine shows the bytes in standard base64.
fn created_by(row: &Value) -> Option<String> {
    let incarnation = row["_incarnation"]["B"].as_str()?;
    Some(incarnation.trim_end_matches('=').replace('+', "-").replace('/', "_"))
}

/// The same row, where a stored answer has tags of these incarnations.
fn without_tags(mut row: Value, incarnations: &[String]) -> Value {
    if let Some(answer) = row["answer"]["S"].as_str() {
        let answer = incarnations.iter().fold(answer.to_owned(), |text, tag| text.replace(tag, "incarnation"));
        row["answer"]["S"] = json!(answer);
    }
    row
}

/// Whether a name in `_writes` is 8 bytes in base64url without padding.
fn is_write_id(name: &str) -> bool {
    name.len() == 11 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// The differences between two rows, attribute by attribute.
fn differences(place: &str, then: &Value, now: &Value) -> Vec<String> {
    let attributes = |row: &Value| row.as_object().cloned().unwrap_or_default();
    let (then, now) = (attributes(then), attributes(now));
    let names: BTreeSet<_> = then.keys().chain(now.keys()).collect();
    let text = |value: Option<&Value>| value.map_or("absent".to_owned(), ToString::to_string);
    let differ = names.into_iter().filter(|name| then.get(*name) != now.get(*name));
    differ.map(|name| format!("{place}: {name} was {}, it is {}", text(then.get(name)), text(now.get(name)))).collect()
}

fn compare(what: &str, then: &Rows, now: &Rows) -> Vec<String> {
    let rows = |rows: &Rows| -> BTreeMap<String, Value> {
        let tags: Vec<_> = flat(rows).filter_map(|(.., row)| created_by(row)).collect();
        let certain = |row| without_tags(certain(row), &tags);
        flat(rows).map(|(table, id, row)| (format!("{table} {id}{what}"), certain(row))).collect()
    };
    let (then, now) = (rows(then), rows(now));
    let places: BTreeSet<_> = then.keys().chain(now.keys()).collect();
    let row = |rows: &BTreeMap<String, Value>, place: &String| rows.get(place).cloned().unwrap_or_default();
    places.into_iter().flat_map(|place| differences(place, &row(&then, place), &row(&now, place))).collect()
}

#[tokio::test(start_paused = true)]
async fn today_s_build_writes_rows_that_yesterday_s_build_can_read() {
    let (_, now) = today().await;
    let then = read();
    let mut found = compare("", &then.rows, &now.rows);
    assert_eq!(then.changes.keys().collect::<Vec<_>>(), now.changes.keys().collect::<Vec<_>>());
    for (name, change) in &then.changes {
        let Change { before, after } = &now.changes[name];
        found.extend(compare(&format!(" before {name}"), &change.before, before));
        found.extend(compare(&format!(" after {name}"), &change.after, after));
    }
    assert!(found.is_empty(), "{}\n{WHAT_TO_DO}.\n", found.join("\n"));
}

/// A build that writes another attribute has another stored format. Its rows are recorded with the new number.
#[tokio::test(start_paused = true)]
async fn the_recorded_rows_have_every_attribute_that_a_build_writes() {
    let (rows, written) = (read().rows, today().await.1.rows);
    let names = |rows: &Rows| -> BTreeSet<String> {
        flat(rows).flat_map(|(.., row)| row.as_object().expect("a row").keys().cloned().collect::<Vec<_>>()).collect()
    };
    let (recorded, mut written) = (names(&rows), names(&written));
    written.extend(own_attributes().map(str::to_owned));
    let unknown: Vec<_> = written.difference(&recorded).collect();
    assert!(unknown.is_empty(), "no recorded row has {unknown:?}\n{WHAT_TO_DO}.");
}
