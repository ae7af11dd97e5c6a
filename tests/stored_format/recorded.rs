//! The rows that a build with stored format 3 left, as `rows.json` has them.

use super::changes::{self, Change};
use super::scene::{Rows, Scene, play};
use serde::{Deserialize, Serialize};
use serde_json::Value;
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
    let recorded = Recorded { stored_format: FORMAT, rows: scene.rows(), changes: changes::play().await };
    if std::env::var_os("FENCEPOST_RECORD_ROWS").is_some() {
        std::fs::write(file(), recorded.text()).expect("the file can be written");
    }
    (scene, recorded)
}

/// Each row with its table and its key.
pub fn flat(rows: &Rows) -> impl Iterator<Item = (&str, &str, &Value)> {
    rows.iter().flat_map(|(table, rows)| rows.iter().map(|(id, row)| (table.as_str(), id.as_str(), row)))
}
