use super::engine::{Engine, number};
use serde_json::json;

/// Makes the row a tombstone, as a delete leaves it.
pub fn bury(engine: &Engine, table: &str, id: &str) {
    let key = engine.key_of(table);
    let row = engine.row(table, &key, id);
    let mut tombstone = json!({"_purgeAt": {"N": "1772971200"}});
    for kept in [key.as_str(), "_incarnation", "_writes"] {
        tombstone[kept] = row[kept].clone();
    }
    tombstone["_version"] = json!({"N": (number(&row, "_version") + 1).to_string()});
    engine.raw("PutItem", &json!({"TableName": table, "Item": tombstone}));
}

/// Makes the row of this id a tombstone in each of these tables where it has a version.
pub fn bury_all(engine: &Engine, tables: &[(&str, &str)], id: &str) {
    for (table, _) in tables.iter().filter(|(table, key)| !engine.row(table, key, id)["_version"].is_null()) {
        bury(engine, table, id);
    }
}
