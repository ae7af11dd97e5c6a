//! What `DynamoDB` charges for a request, in request units.
//!
//! Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html>

use fencepost_test::{Engine, Sent};
use serde_json::{Map, Value};

const KB: usize = 1024;

/// The write units of a request: one for each started KB of each row, twice as many in a transaction. A refused write
/// is charged too.
pub fn write_units(engine: &Engine, sent: &Sent) -> i64 {
    let times = if sent.operation() == "TransactWriteItems" { 2 } else { 1 };
    sent.steps.iter().map(|step| times * units(size_of_row(&engine.row_at(&step.table, &step.key)), KB)).sum()
}

/// The read units of a consistent read: one for each started 4 KB of each row.
pub fn read_units(engine: &Engine, sent: &Sent) -> i64 {
    let rows = sent.steps.iter().filter(|step| step.key != Value::Null);
    rows.map(|step| units(size_of_row(&engine.row_at(&step.table, &step.key)), 4 * KB)).sum()
}

fn units(bytes: usize, of: usize) -> i64 {
    i64::try_from(bytes.div_ceil(of).max(1)).unwrap_or(i64::MAX)
}

/// The size of a row in `DynamoDB`'s JSON, in bytes.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html>
fn size_of_row(row: &Value) -> usize {
    row.as_object().map_or(0, size_of_attributes)
}

fn size_of_attributes(attributes: &Map<String, Value>) -> usize {
    attributes.iter().map(|(name, value)| name.len() + size_of(value)).sum()
}

fn size_of(value: &Value) -> usize {
    let Some((kind, value)) = value.as_object().and_then(|typed| typed.iter().next()) else { return 0 };
    let text = value.as_str().map_or(1, str::len);
    match (kind.as_str(), value) {
        ("N", _) => text.div_ceil(2) + 1,
        ("B", _) => text / 4 * 3,
        ("M", Value::Object(map)) => 3 + map.len() + size_of_attributes(map),
        ("L", Value::Array(list)) => 3 + list.iter().map(|value| 1 + size_of(value)).sum::<usize>(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_has_the_size_of_its_names_and_values() {
        assert_eq!(size_of_row(&Value::Null), 0);
        let row = json!({"id": {"S": "lamp"}, "n": {"N": "1234"}, "m": {"M": {"a": {"BOOL": true}}}});
        assert_eq!(size_of_row(&row), (2 + 4) + (1 + 3) + (1 + 3 + 1 + 1 + 1));
        assert_eq!((units(0, KB), units(1024, KB), units(1025, KB)), (1, 1, 2));
    }
}
