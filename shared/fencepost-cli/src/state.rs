//! [`State`]: the place of a run in a file. After an interruption, the same command goes on from there.

use crate::Failure;
use crate::args::{Whole, name_of};
use crate::table::{Key, from_json, to_json};
use fencepost::maintenance::Found;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The place of a run in a file.
#[derive(Debug)]
pub struct State {
    file: PathBuf,
    /// The settings that must be the same for the run to go on.
    command: Value,
}

impl State {
    /// The state of this command on the table with this id.
    #[must_use]
    pub fn of(options: &Whole, file: &Path, table_id: Option<&str>) -> Self {
        let Whole { target, task, write, .. } = options;
        let setting = format!("{:?} {:?}", target.names, target.deletes);
        let command = json!({
            "command": name_of(*task), "table": target.table, "tableId": table_id, "endpoint": target.endpoint,
            "write": write, "setting": setting,
        });
        State { file: file.to_owned(), command }
    }

    /// The place at which the run was interrupted. `None` if the run has not begun.
    ///
    /// # Errors
    /// The file cannot be read or belongs to another run.
    pub fn read(&self) -> Result<Option<(Key, Found)>, Failure> {
        let file = self.file.display();
        let text = match fs::read_to_string(&self.file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| Failure::new(format!("{file} cannot be read: {error}.")))?,
        };
        let state: Value = serde_json::from_str(&text).unwrap_or_default();
        if state["of"] != self.command {
            return Err(Failure::new(format!(
                "{file} is not of this command on this table: give the command that wrote it, or another file."
            )));
        }
        let place = from_json(&state["after"]).zip(found(&state["found"]));
        place.map(Some).ok_or_else(|| Failure::new(format!("{file} is damaged: remove it, and begin at the start.")))
    }

    /// Keeps this place. An interruption leaves either the place before or this one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, after: &Key, found: Found) -> Result<(), Failure> {
        let state = json!({ "of": self.command, "after": to_json(after), "found": counts(found) });
        let beside = self.file.with_extension("new");
        let write = || {
            let mut file = File::create(&beside)?;
            file.write_all(state.to_string().as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, &self.file)
        };
        write().map_err(|error| Failure::new(format!("{} cannot be written: {error}.", self.file.display())))
    }

    /// Removes the file, because the run has reached the end.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn end(&self) -> Result<(), Failure> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Failure::new(format!("{} cannot be removed: {error}.", self.file.display())))
            }
            _ => Ok(()),
        }
    }
}

/// The counts as JSON.
#[must_use]
pub fn counts(mut found: Found) -> Value {
    let rows = ("rows", found.rows());
    let all = each(&mut found).map(|(name, count)| (name, *count));
    [rows].into_iter().chain(all).collect()
}

fn found(counts: &Value) -> Option<Found> {
    let mut found = Found::default();
    for (name, count) in each(&mut found) {
        *count = counts[name].as_u64()?;
    }
    Some(found)
}

/// Each count by its name.
fn each(found: &mut Found) -> [(&'static str, &mut u64); 9] {
    [
        ("live", &mut found.live),
        ("tombstones", &mut found.tombstones),
        ("foreign", &mut found.foreign),
        ("leases", &mut found.leases),
        ("mappings", &mut found.mappings),
        ("damaged", &mut found.damaged),
        ("written", &mut found.written),
        ("changedMeanwhile", &mut found.changed_meanwhile),
        ("removedMeanwhile", &mut found.removed_meanwhile),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_back() {
        let mut all = Found::default();
        (all.live, all.tombstones, all.foreign, all.leases, all.mappings) = (1, 2, 3, 4, 5);
        (all.damaged, all.written, all.changed_meanwhile, all.removed_meanwhile) = (6, 7, 8, 9);
        assert_eq!(found(&counts(all)), Some(all));
        assert_eq!(counts(all)["rows"], 21);
        assert_eq!(found(&json!({"live": 1})), None);
    }
}
