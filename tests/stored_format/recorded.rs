//! The rows that a build with stored format 3 left, as `rows.json` has them, and the changes among them: each with a write id
//! that is known, and with the rows before it and after it.

use super::scene::{Rows, Scene, brighter, event, from, order, play, stocked};
use crate::harness::events::{Event, acquire};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The number of the stored format that this build writes.
const FORMAT: u32 = 3;

/// The content of the file.
#[derive(Serialize, Deserialize)]
pub struct Recorded {
    stored_format: u32,
    /// The rows after `play`.
    pub rows: Rows,
    /// Changes, each with all rows before it and after it.
    pub changes: BTreeMap<String, Change>,
}

impl Recorded {
    /// The text of the file: a line for each row.
    fn text(&self) -> String {
        let changes = self.changes.values().flat_map(|change| [&change.before, &change.after]);
        let rows: BTreeSet<_> = changes.chain([&self.rows]).flat_map(flat).map(|(.., row)| row.to_string()).collect();
        let text = serde_json::to_string(self).expect("JSON") + "\n";
        rows.iter().fold(text, |text, row| text.replace(row, &format!("\n{row}")))
    }
}

fn file() -> PathBuf {
    dev::workspace().join("tests/stored_format/rows.json")
}

/// Reads the file.
pub fn read() -> Recorded {
    let text = std::fs::read_to_string(file()).expect("tests/stored_format/rows.json");
    let recorded: Recorded = serde_json::from_str(&text).expect("recorded rows");
    assert_eq!(recorded.stored_format, FORMAT, "{WHAT_TO_DO}");
    recorded
}

pub const WHAT_TO_DO: &str = "A build of yesterday that shares the table in a canary, or comes back in a rollback, would \
    misread such a row. Either write it as before, or raise the number of the stored format: read \"Stored format 3\" in \
    DESIGN.md";

/// The rows of today's build.
pub async fn today() -> (Scene, Recorded) {
    let scene = play().await;
    let recorded = Recorded { stored_format: FORMAT, rows: scene.rows(), changes: play_changes().await };
    if std::env::var_os("FENCEPOST_RECORD_ROWS").is_some() {
        std::fs::write(file(), recorded.text()).expect("the file can be written");
    }
    (scene, recorded)
}

/// Each row with its table and its key.
pub fn flat(rows: &Rows) -> impl Iterator<Item = (&str, &str, &Value)> {
    rows.iter().flat_map(|(table, rows)| rows.iter().map(|(id, row)| (table.as_str(), id.as_str(), row)))
}

/// The random number of which the write id of each recorded change was made, and another one.
pub const MINE: u64 = 0x0123_4567_89ab_cdef;
pub const ANOTHER: u64 = 0xfedc_ba98_7654_3210;
/// The names of the write ids that are made of them.
pub const MY_NAME: &str = "ASNFZ4mrze8";
pub const ANOTHER_NAME: &str = "_ty6mHZUMhA";

/// A change that a build makes with the write id of `MINE`.
pub struct Case {
    pub name: &'static str,
    /// The events before it.
    earlier: Vec<Event>,
    pub change: Event,
    /// The status of the change, also if the row says that it was applied.
    pub applied: i64,
    /// Another caller's change of the same row, its status after it lost the race, and whether it is applied afterwards.
    pub other: (Event, i64, bool),
}

pub fn cases() -> Vec<Case> {
    let state = |brightness: u64| json!({"state": {"brightness": brightness}});
    let lamp = |brightness: u64| event("device-state-create", "lamp", &state(brightness));
    let patch = |brightness: u64| event("device-state-patch-state", "lamp", &json!({"brightness": brightness}));
    let delete = || event("device-state-delete", "lamp", &Value::Null).header("if-match", "*");
    let mug = || event("inventory-create", "mug", &json!({"stock": 20, "lowStockAt": 4}));
    let lines = |quantity: u64| json!([{"productId": "mug", "quantity": quantity}]);
    let case = |name, earlier, change, applied, other| Case { name, earlier, change, applied, other };
    vec![
        case("a create", vec![], lamp(50), 201, (lamp(51), 409, false)),
        case("a create on a tombstone", vec![lamp(40), delete()], lamp(50), 201, (lamp(51), 409, false)),
        case("a patch", vec![lamp(50)], patch(60), 200, (patch(70), 200, true)),
        case("an add", vec![lamp(50)], brighter("lamp", 1), 200, (brighter("lamp", 2), 200, true)),
        case("a delete", vec![lamp(50)], delete(), 204, (delete(), 404, false)),
        case("a keyed change", vec![lamp(50)], brighter("lamp", 1).key("k-1"), 200, (patch(70).key("k-2"), 200, true)),
        case("an add of stock", vec![mug()], stocked("mug", -3), 200, (stocked("mug", -2), 200, true)),
        case("an order", vec![mug()], order("o-1", &lines(3)), 201, (order("o-1", &lines(4)), 422, false)),
        case("a lease", vec![], acquire("key", "worker-1", 60), 201, (acquire("key", "worker-2", 60), 409, false)),
    ]
}

/// Makes each change, which begins and ends with these rows.
async fn play_changes() -> BTreeMap<String, Change> {
    let mut changes = BTreeMap::new();
    for Case { name, earlier, change, applied, .. } in cases() {
        let scene = Scene::after(&Rows::new(), 0);
        for event in earlier {
            let answer = scene.send(&event).await;
            assert!(answer.status < 300, "{answer:?}");
        }
        let before = scene.rows();
        scene.drawing(&scene.engine.client(), from(MINE)).done(&change, applied).await;
        changes.insert(name.to_owned(), Change { before, after: scene.rows() });
    }
    changes
}

/// One change of a row or of several.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Change {
    pub before: Rows,
    pub after: Rows,
}
