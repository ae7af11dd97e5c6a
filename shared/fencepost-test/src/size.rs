//! How large `DynamoDB` takes an item to be.

use serde_json::{Map, Value};

/// The size of an item in `DynamoDB`'s JSON, in bytes: of its names and its values. `Null`, no item, has none.
///
/// It is close to the count of `DynamoDB`. Source:
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html>
#[must_use]
pub fn size_of_item(item: &Value) -> usize {
    item.as_object().map_or(0, size_of_attributes)
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
    fn an_item_has_the_size_of_its_names_and_values() {
        assert_eq!(size_of_item(&Value::Null), 0);
        let item = json!({"id": {"S": "lamp"}, "n": {"N": "1234"}, "m": {"M": {"a": {"BOOL": true}}}});
        assert_eq!(size_of_item(&item), (2 + 4) + (1 + 3) + (1 + 3 + 1 + 1 + 1));
    }
}
