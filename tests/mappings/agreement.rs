//! What `host-mapping` and `delete-mapping` have in common without knowing each other.

use super::world::{IP, T1, T1_MS, World, batch_of, task};
use crate::harness::functions::MAPPINGS;
use fencepost::lww::{LwwRecord, OrderKey};
use fencepost::{Call, Deadline, Key, Record, Store};
use functions::delete_mapping::task::Mapping as Part;
use functions::host_mapping::mapping::Mapping as Whole;
use serde_json::{Value, json};
use std::time::Duration;

fn call() -> Call {
    Call::new(Deadline::within(Duration::from_mins(1)))
}

#[test]
fn both_have_one_key_one_order_and_one_name() {
    assert_eq!(Part::PARTITION_KEY, Whole::PARTITION_KEY);
    assert_eq!(Part::ORDERED_BY, Whole::ORDERED_BY);
    assert_eq!(Part::NAMED_BY, Whole::NAMED_BY);
    assert!(Part::ATTRIBUTES.iter().all(|attribute| Whole::ATTRIBUTES.contains(attribute)));
}

#[test]
fn both_write_what_they_share_in_the_same_way() {
    for (creation_timestamp, instance_id) in [(0, "i"), (T1_MS, "i-a"), (u64::MAX, "I.:_-9")] {
        let whole = Whole { cell_id: "cell-1".to_owned(), instance_id: instance_id.to_owned(), creation_timestamp };
        let part = Part { instance_id: instance_id.to_owned(), creation_timestamp };
        let (whole, part_as_json) = (json!(whole), json!(part));
        let names: Vec<_> = part_as_json.as_object().expect("an object").keys().collect();
        assert_eq!(names.len(), Part::ATTRIBUTES.len());
        for name in names {
            assert!(Part::ATTRIBUTES.contains(&name.as_str()), "{name}");
            assert_eq!(part_as_json[name], whole[name], "{name}");
        }
        assert_eq!(serde_json::from_value::<Part>(whole).expect("a part of it"), part);
    }
}

#[tokio::test]
async fn each_reads_in_the_row_what_the_other_has_registered() {
    let world = World::new();
    let client = world.engine.client();
    let (wholes, parts) =
        (Store::new(&client).lww_table::<Whole>(MAPPINGS), Store::new(&client).lww_table::<Part>(MAPPINGS));
    let key = Key::from(IP);
    let whole = Whole { cell_id: "cell-1".to_owned(), instance_id: "i-a".to_owned(), creation_timestamp: T1_MS };
    wholes.register(&key, &whole, &call()).await.expect("registered");
    let part = Part { instance_id: "i-a".to_owned(), creation_timestamp: T1_MS };
    assert_eq!(parts.get(&key, &call()).await.expect("read"), Some(part));
    assert_eq!(wholes.get(&key, &call()).await.expect("read"), Some(whole));
    // A tombstone has all that the one knows of a mapping, and is none.
    for name in [Some("i-a".to_owned()), None] {
        parts.delete(&key, &OrderKey { order: T1_MS, name }, &call()).await.expect("deleted");
        assert_eq!(wholes.get(&key, &call()).await.expect("read"), None);
        assert_eq!(parts.get(&key, &call()).await.expect("read"), None);
    }
}

#[tokio::test]
async fn both_leave_the_same_tombstone_by_the_same_request() {
    for instance in [None, Some("i-a")] {
        let mut left: Vec<(Value, Vec<Value>)> = Vec::new();
        for by_queue in [false, true] {
            let world = World::new();
            world.stands(IP, "i-a", T1).await;
            world.engine.take_log();
            if by_queue {
                assert!(world.batch(&batch_of(&[("m-1", task(IP, T1, instance))])).await.is_empty());
            } else {
                assert_eq!(world.delete(IP, T1, instance).await, "deleted");
            }
            let asked = world.engine.take_log().into_iter().map(|asked| asked.body).collect();
            left.push((world.row(IP), asked));
        }
        assert_eq!(left[0], left[1]);
    }
}
