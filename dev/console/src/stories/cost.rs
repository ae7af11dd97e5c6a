//! The charge of `DynamoDB` for a request, in request units.
//!
//! Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html>

use fencepost_test::{Engine, Sent, size_of_item};
use serde_json::Value;

const KB: usize = 1024;

/// The write units of a request: one for each started KB of each row, twice as many in a transaction. A refused write
/// is charged too.
pub fn write_units(engine: &Engine, sent: &Sent) -> i64 {
    let times = if sent.operation() == "TransactWriteItems" { 2 } else { 1 };
    sent.steps.iter().map(|step| times * units(size_of_item(&engine.row_at(&step.table, &step.key)), KB)).sum()
}

/// The read units of a consistent read: one for each started 4 KB of each row.
pub fn read_units(engine: &Engine, sent: &Sent) -> i64 {
    let rows = sent.steps.iter().filter(|step| step.key != Value::Null);
    rows.map(|step| units(size_of_item(&engine.row_at(&step.table, &step.key)), 4 * KB)).sum()
}

fn units(bytes: usize, of: usize) -> i64 {
    i64::try_from(bytes.div_ceil(of).max(1)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_started_kilobyte_is_a_unit_and_no_row_is_one_too() {
        assert_eq!((units(0, KB), units(1024, KB), units(1025, KB)), (1, 1, 2));
    }
}
