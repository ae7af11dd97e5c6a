//! The writes that a row remembers, in sentences.

use super::values::{Explanation, in_words, plural, quoted};
use fencepost_core::format::AsKind;
use fencepost_core::{AttributeValue, WriteId};

/// The most writes that a row remembers under any [`Record`](crate::Record): R, the ids that nobody has seen, and those left
/// by one write. Only many burns or attempts that are left open at the same time make more.
const MOST_REMEMBERED: usize = 128 + 32 + 1;
/// How many of the writes that it remembers are named.
pub(super) const NAMED: usize = 5;

pub(super) fn explain_memory(name: &str, value: &AttributeValue, version: Option<u64>, told: &mut Explanation) {
    let AttributeValue::M(map) = value else {
        told.problems.push(format!("`{name}` is {}, and must be a map of write ids.", in_words(value)));
        return;
    };
    let (mut traces, mut wrong) = (Vec::new(), Vec::new());
    for (id, value) in map {
        match trace(id, value) {
            Ok(trace) => traces.push(trace),
            Err(what) => wrong.push(format!("`{name}` has {what}.")),
        }
    }
    let more = wrong.len().saturating_sub(NAMED);
    wrong.sort_unstable();
    told.problems.extend(wrong.into_iter().take(NAMED));
    if more > 0 {
        told.problems.push(format!("`{name}` has {} more that this crate cannot read.", plural(more as u64, "entry")));
    }
    traces.sort_unstable_by(|one, other| other.version.cmp(&one.version).then_with(|| one.id.cmp(&other.id)));
    explain_traces(name, &traces, version, told);
}

fn explain_traces(name: &str, traces: &[Trace], version: Option<u64>, told: &mut Explanation) {
    told.sentences.push(match traces.len() {
        0 => "It remembers no write.".to_owned(),
        count => format!("It remembers {}.", plural(count as u64, "write")),
    });
    told.sentences.extend(traces.iter().take(NAMED).map(Trace::sentence));
    if traces.len() > MOST_REMEMBERED {
        let count = traces.len();
        told.problems.push(format!("`{name}` has {count} ids, and rows rarely have more than {MOST_REMEMBERED}."));
    }
    let Some(version) = version else { return };
    // Each write of this crate goes from one version to the next. All but bare adds of transactions leave an id.
    for Trace { id, version: before, .. } in traces.iter().filter(|trace| trace.version >= version).take(NAMED) {
        let made = before + 1;
        told.problems.push(format!("The write {id} made version {made}, and the row is only at version {version}."));
    }
    let newest = traces.first().map_or(0, |trace| trace.version + 1);
    if !traces.is_empty() && newest < version {
        let first = newest + 1;
        told.sentences.push(if first == version {
            format!("Version {version} came without an id: an add in a transaction made it, or another program.")
        } else {
            format!(
                "Versions {first} to {version} came without ids: adds in transactions made them, or another program."
            )
        });
    }
}

struct Trace {
    id: String,
    /// The version before it.
    version: u64,
    burned: bool,
}

impl Trace {
    fn sentence(&self) -> String {
        let Trace { id, version, burned } = self;
        if *burned {
            format!("The write {id} was burned at version {version}: no copy of it is ever applied.")
        } else {
            format!("The write {id} made version {}.", version + 1)
        }
    }
}

fn trace(name: &str, value: &AttributeValue) -> Result<Trace, String> {
    let id = WriteId::from_name(name).ok_or_else(|| format!("the id {}, which is none of this crate", quoted(name)))?;
    let number = value.as_n().and_then(|number| number.parse::<i64>().ok());
    let number = number
        .filter(|number| number.unsigned_abs() < 1 << 53)
        .ok_or_else(|| format!("{} for the write {}, and must have a version there", in_words(value), id.name()))?;
    Ok(Trace { id: id.name(), version: number.unsigned_abs(), burned: number < 0 })
}
