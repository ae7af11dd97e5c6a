//! A restore to an earlier moment, as point-in-time recovery makes it, with the later steps of the runbook.

use super::clients::client_whose;
use super::engine::{Engine, is_read, with_indexed_tables};
use super::functions::LEASES;
use super::maintenance::run_over;
use aws_sdk_dynamodb::Client;
use fencepost::maintenance::{Found, Task};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// All rows of all tables at one moment.
pub struct Moment(BTreeMap<String, Vec<Value>>);

impl Moment {
    /// Copies all rows.
    pub fn of(engine: &Engine) -> Self {
        Moment(engine.tables().into_iter().map(|(table, _)| (table.clone(), rows(engine, &table))).collect())
    }

    /// Puts the rows back: each of these tables is then exactly as it was at the moment.
    pub fn restore(&self, engine: &Engine, tables: &[&str]) {
        for (table, key) in engine.tables().iter().filter(|(table, _)| tables.contains(&table.as_str())) {
            empty(engine, table, key);
            for row in &self.0[table] {
                engine.raw("PutItem", &json!({"TableName": table, "Item": row}));
            }
        }
    }

    /// The same for all tables.
    fn restore_all(&self, engine: &Engine) {
        let tables = engine.tables();
        let tables: Vec<_> = tables.iter().map(|(table, _)| table.as_str()).collect();
        self.restore(engine, &tables);
    }

    /// The same, and with the runbook its steps for restored tables.
    pub async fn restored(&self, engine: &Engine, with_runbook: bool) {
        self.restore_all(engine);
        if with_runbook {
            self.follow_runbook(engine).await;
        }
    }

    /// The tables under other names, as point-in-time recovery restores them. The old ones stay where they are.
    pub fn elsewhere(&self, tables: &[(&str, &str)]) -> Engine {
        let engine = with_indexed_tables(tables);
        self.restore_all(&engine);
        engine
    }

    /// The steps of the runbook for restored tables: new incarnations, and no leases.
    pub async fn follow_runbook(&self, engine: &Engine) {
        for (table, key) in &engine.tables() {
            if table == LEASES {
                empty(engine, table, key);
            } else {
                restamp(engine, table).await;
            }
        }
    }
}

/// All rows of a table, page by page.
pub fn rows(engine: &Engine, table: &str) -> Vec<Value> {
    let (mut rows, mut request) = (Vec::new(), json!({"TableName": table, "ConsistentRead": true}));
    loop {
        let mut page = engine.raw("Scan", &request);
        rows.append(page["Items"].as_array_mut().expect("a list"));
        match page["LastEvaluatedKey"].take() {
            Value::Null => return rows,
            last => request["ExclusiveStartKey"] = last,
        }
    }
}

fn empty(engine: &Engine, table: &str, key: &str) {
    for row in rows(engine, table) {
        engine.raw("DeleteItem", &json!({"TableName": table, "Key": {key: row[key]}}));
    }
}

/// Gives each row of a table a new incarnation, in the way of `fencepost restamp --write`.
pub async fn restamp(engine: &Engine, table: &str) -> Found {
    // An operator has other permissions than the functions.
    let client = engine.with_own_uses().client();
    run_over(&client, table, Task::Restamp, true).await.unwrap_or_else(|failure| panic!("{failure}"))
}

/// Writes as they were sent, to deliver copies of them later.
#[derive(Clone, Default)]
pub struct SentWrites(Arc<Mutex<Vec<Sent>>>);

/// One write: operation and body.
type Sent = (String, Vec<u8>);

impl SentWrites {
    /// A client that notes its writes here.
    pub fn client(&self, engine: &Engine) -> Client {
        let noted = self.0.clone();
        client_whose(engine, move |engine, _, operation, body| {
            if !is_read(operation) {
                noted.lock().expect("no panic").push((operation.to_owned(), body.to_vec()));
            }
            engine.answer(operation, body)
        })
    }

    /// Delivers a copy of the last write. Gives whether it was applied.
    pub fn deliver_last(&self, engine: &Engine) -> bool {
        let (operation, body) = self.0.lock().expect("no panic").last().cloned().expect("a write");
        // The token of a transaction is forgotten after ten minutes.
        engine.forget_tokens();
        let (status, answer) = engine.answer(&operation, &body);
        assert!(status == 200 || status == 400, "{operation}: {status} {answer}");
        status == 200
    }
}
