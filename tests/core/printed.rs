//! Handles in a log: they name their tables and leave out the client and its keys.

use super::accounts::{Account, Leader, TABLE};
use crate::harness::engine::Engine;
use fencepost::{Reads, Store};
use std::time::Duration;

#[test]
fn a_handle_is_printed_with_the_name_of_its_table_and_without_its_client() {
    let store = Store::new(&Engine::with_tables(&[]).client());
    let table = store.table::<Account>(TABLE);
    let leases = store.leases("Leases").with_clock_skew(Duration::from_secs(3));
    assert_eq!(leases.clock_skew(), Duration::from_secs(3));
    let mut reads = Reads::new();
    reads.later("first", &table, "a-1");
    let printed = [
        format!("{table:?}"),
        format!("{:?}", table.query("a-1")),
        format!("{:?}", table.query("a-1").pages().into_stream()),
        format!("{leases:?}"),
        format!("{:?}", store.lww_table::<Leader>("Leaders")),
        format!("{:?}", store.idempotency::<u64>("Keys")),
        format!("{:?}", reads.later("second", &table, "a-2")),
    ];
    let expected = [
        r#"Table { name: "Accounts", .. }"#,
        r#"Query { table: "Accounts", index: None, .. }"#,
        "PageStream { .. }",
        r#"Leases { name: "Leases", clock_skew: 3s, .. }"#,
        r#"LwwTable { table: Table { name: "Leaders", .. } }"#,
        r#"Idempotency { records: Table { name: "Keys", .. }, .. }"#,
        "Item(1)",
    ];
    assert_eq!(printed, expected);
}
