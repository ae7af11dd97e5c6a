//! What the page shows of one row: what it says about itself, and who wrote it.

use crate::requests::Requests;
use crate::watched::WatchedTable;
use aws_sdk_dynamodb::types::AttributeValue;
use fencepost::json::from_attribute;
use fencepost::maintenance::explain;
use fencepost::{Attributes, Settings, Timestamp};
use serde_json::{Map, Value, json};

/// A row, and when it was first seen as it is.
#[derive(Debug)]
pub struct Row {
    /// Its table and its key, as one text.
    pub id: String,
    /// The number of its table.
    pub table: usize,
    pub attributes: Attributes,
    /// When it was first seen as it is, in milliseconds since 1970.
    pub seen_at: u64,
    /// Whether it was like this before anybody looked. Then nobody knows since when.
    pub is_old: bool,
}

/// The id of a row: the table, and the key as JSON.
pub fn id_of(table: &WatchedTable, attributes: &Attributes) -> String {
    let part = |name: &String| (name.clone(), attributes.get(name).map_or(Value::Null, plain));
    let key: Map<_, _> = table.key.iter().map(part).collect();
    format!("{} {}", table.name, Value::Object(key))
}

impl Row {
    /// What the page is told.
    pub fn to_json(&self, tables: &[WatchedTable], requests: &Requests, now: Timestamp) -> Value {
        let table = &tables[self.table];
        let told = explain(&self.attributes, Settings::own(), now);
        let number = |name: &str| self.attributes.get(name).and_then(|value| value.as_n().ok()?.parse::<u64>().ok());
        let key: Vec<_> = table.key.iter().filter_map(|name| Some(text_of(self.attributes.get(name)?))).collect();
        let key = key.join(", ");
        let is_writer = |function: &str| table.writers.iter().any(|writer| writer == function);
        let is_lease = told.kind.name() == "lease";
        let (made, what) = if is_lease { (number("token"), "Token") } else { (told.version, "Version") };
        let written = made.and_then(|made| {
            let writer = requests.writer_of(&key, made, is_writer)?;
            Some(format!("{what} {made} was written by {writer}."))
        });
        // What begins with `_` is the crate's own, and the sentences tell it.
        let attributes = self.attributes.iter().filter(|(name, _)| !name.starts_with('_'));
        json!({
            "id": self.id,
            "table": table.name,
            "key": key,
            "kind": told.kind.name(),
            "version": told.version,
            "incarnation": told.incarnation,
            "purgeAt": told.purge_at,
            "expiresAt": if is_lease { number("expiresAt") } else { None },
            "holder": self.attributes.get("holder").filter(|_| is_lease).map(text_of),
            "token": if is_lease { number("token") } else { None },
            "seenAt": self.seen_at,
            "changedAt": Some(self.seen_at).filter(|_| !self.is_old),
            "written": written,
            "sentences": told.sentences,
            "problems": told.problems,
            "attributes": attributes.map(|(name, value)| (name.clone(), plain(value))).collect::<Map<_, _>>(),
        })
    }
}

/// A value as plain JSON. Bytes and sets, which JSON does not have, are described.
fn plain(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::B(bytes) => json!(format!("{} bytes", bytes.as_ref().len())),
        AttributeValue::Ss(set) | AttributeValue::Ns(set) => json!(set),
        AttributeValue::M(map) => map.iter().map(|(name, value)| (name.clone(), plain(value))).collect(),
        AttributeValue::L(list) => list.iter().map(plain).collect(),
        other => from_attribute(other.clone()).unwrap_or_else(|what| json!(what)),
    }
}

fn text_of(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) | AttributeValue::N(text) => text.clone(),
        other => plain(other).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_dynamodb::primitives::Blob;

    #[test]
    fn a_lease_shows_its_clock_and_bytes_are_counted() {
        let tables =
            [WatchedTable { name: "Leases".to_owned(), key: vec!["leaseKey".to_owned()], writers: Vec::new() }];
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let number = |number: u64| AttributeValue::N(number.to_string());
        let attributes: Attributes = [
            ("leaseKey", text("k")),
            ("holder", text("ann")),
            ("token", number(12)),
            ("renewals", number(0)),
            ("expiresAt", number(1_772_877_610_000)),
            ("acquireId", AttributeValue::B(Blob::new([1; 8]))),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        let row = Row { id: id_of(&tables[0], &attributes), table: 0, attributes, seen_at: 5, is_old: false };
        let now = Timestamp::from_epoch_millis(1_772_877_600_000).expect("a moment");
        let shown = row.to_json(&tables, &Requests::default(), now);
        assert_eq!(shown["id"], r#"Leases {"leaseKey":"k"}"#);
        assert_eq!((&shown["kind"], &shown["holder"], &shown["token"]), (&json!("lease"), &json!("ann"), &json!(12)));
        assert_eq!(shown["expiresAt"], 1_772_877_610_000_u64);
        assert_eq!(shown["attributes"]["acquireId"], "8 bytes");
        assert_eq!(shown["written"], Value::Null);
    }
}
