//! The output of the tool: rows, progress and the summary.

use crate::args::{Whole, name_of};
use crate::state::counts;
use crate::table::to_json;
use fencepost::maintenance::{Explained, Found, Task};
use serde_json::{Value, json};

/// A row as one line of JSON.
#[must_use]
pub fn row_as_json(row: &Explained) -> Value {
    let told = &row.explanation;
    json!({
        "key": to_json(&row.key),
        "kind": told.kind.name(),
        "version": told.version,
        "incarnation": told.incarnation,
        "purgeAt": told.purge_at,
        "sentences": told.sentences,
        "problems": told.problems,
    })
}

/// A row as a paragraph.
#[must_use]
pub fn row_as_text(row: &Explained) -> String {
    format!("{}: {}\n{}", to_json(&row.key), row.explanation.kind.name(), indented(&row.explanation.to_string()))
}

fn indented(lines: &str) -> String {
    lines.lines().fold(String::new(), |text, line| text + "  " + line + "\n")
}

/// The counts, in one line.
#[must_use]
pub fn rows(task: Task, found: &Found) -> String {
    let kinds = [
        (found.live, "live"),
        (found.tombstones, "tombstones"),
        (found.foreign, "of other programs"),
        (found.leases, "leases"),
        (found.mappings, "mappings"),
        (found.damaged, "damaged"),
    ];
    let kinds = kinds.iter().filter(|(count, _)| *count > 0).map(|(count, kind)| format!("{count} {kind}"));
    let mut line = format!("{} rows", found.rows());
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    if !kinds.is_empty() {
        line = format!("{line}: {kinds}");
    }
    if task != Task::Explain {
        line = format!("{line}; {} to {}", found.written, name_of(task));
    }
    line
}

/// The counts of a run as one line of JSON.
#[must_use]
pub fn summary_as_json(options: &Whole, found: &Found) -> Value {
    let Whole { target, task, write, .. } = options;
    json!({ "summary": { "command": name_of(*task), "table": target.table, "write": write, "found": counts(*found) } })
}

/// The last lines of a run.
#[must_use]
pub fn summary(options: &Whole, found: &Found) -> String {
    let Whole { target, task, write, .. } = options;
    let mut lines = vec![format!("{}: {}.", target.table, rows(*task, found))];
    let mut add = |applies: bool, line: String| lines.extend(applies.then_some(line));
    let done = match task {
        Task::Adopt => "were adopted: each has a new version, an incarnation and a memory",
        Task::Sweep => "were removed: they were tombstones whose time has passed",
        _ => "have a new incarnation",
    };
    add(*task != Task::Explain && *write, format!("{} rows {done}.", found.written));
    let before = if *task == Task::Restamp { "Stop all writers, then add" } else { "Add" };
    add(
        *task != Task::Explain && !*write,
        format!("Nothing was written. {before} --write to {} {} rows.", name_of(*task), found.written),
    );
    let Found { damaged, changed_meanwhile: changed, removed_meanwhile: removed, .. } = found;
    add(
        *damaged > 0,
        format!("{damaged} rows are damaged. They are left alone. `fencepost explain --problems` says why."),
    );
    let is_restamp = *task == Task::Restamp;
    add(
        is_restamp && found.foreign + found.mappings > 0,
        "Rows without an incarnation are left alone, because no old tag matches them.".to_owned(),
    );
    add(
        is_restamp && *changed > 0,
        format!(
            "{changed} rows changed while they were restamped, so somebody writes to the table: stop all writers, then \
             run this again."
        ),
    );
    add(!is_restamp && *changed > 0, format!("{changed} rows changed meanwhile. No change was overwritten."));
    add(*removed > 0, format!("{removed} rows were removed meanwhile, as TTL does."));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Target;

    fn options(task: Task, write: bool) -> Whole {
        let target = Target { table: "Devices-1".to_owned(), ..Target::default() };
        Whole { target, task, write, rate: None, state: None, problems_only: false }
    }

    #[test]
    fn a_run_that_only_counts_says_so_and_what_to_do_next() {
        let mut found = Found::default();
        (found.live, found.written) = (3, 3);
        let said = summary(&options(Task::Restamp, false), &found);
        let expected = "Devices-1: 3 rows: 3 live; 3 to restamp.\n\
                        Nothing was written. Stop all writers, then add --write to restamp 3 rows.";
        assert_eq!(said, expected);
        let said = summary(&options(Task::Sweep, false), &found);
        assert!(said.ends_with("Nothing was written. Add --write to sweep 3 rows."), "{said}");
        let said = summary(&options(Task::Adopt, true), &found);
        assert!(said.ends_with("3 rows were adopted: each has a new version, an incarnation and a memory."), "{said}");
    }

    #[test]
    fn rows_that_were_left_alone_or_changed_are_explained() {
        let mut found = Found::default();
        (found.foreign, found.damaged, found.changed_meanwhile, found.removed_meanwhile) = (1, 4, 2, 3);
        let said = summary(&options(Task::Restamp, true), &found);
        for part in ["left alone", "4 rows are damaged", "2 rows changed", "stop all writers", "3 rows were removed"] {
            assert!(said.contains(part), "{said}");
        }
        let said = summary(&options(Task::Adopt, true), &found);
        assert!(said.contains("No change was overwritten") && !said.contains("stop all writers"), "{said}");
        assert_eq!(summary(&options(Task::Explain, false), &found).lines().count(), 4);
    }
}
