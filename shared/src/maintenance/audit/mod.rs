//! [`Audit`] (pure): whether a change of a row kept the rules of this crate, by the images before and after it.

mod others;
mod rows;

use super::explain::{Kind, kind_of};
use crate::settings::Settings;
use crate::timestamp::Timestamp;
use fencepost_core::format::AsKind;
use fencepost_core::format::Unwritable;
use fencepost_core::format::item::Attributes;
use fencepost_core::format::layout::{Deletes, Layout, OtherWriters};
use fencepost_core::format::number::{self, Number};
use fencepost_core::format::row::{Row, read_number};
use std::cmp::Ordering;
use std::fmt;

/// The lead of a clock that may remove a row: `DynamoDB` refuses requests that were signed by a clock further ahead.
const MOST_AHEAD: u64 = 5 * 60;

/// A rule that a change can break. [`Audit`] says what it does not see.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Rule {
    /// A row can be read: its attributes of this crate fit together.
    Readable,
    /// A write raises the version by one, and a create begins at the first one.
    Version,
    /// A write has an id that the row has not seen, and is applied once. A burned write is never applied.
    WriteId,
    /// A row remembers a burned write for as many commits as its settings say.
    Memory,
    /// A row keeps its incarnation for life, and a new one gets that of the write that created it.
    Incarnation,
    /// A delete leaves a tombstone, which stays until its end.
    Tombstone,
    /// The highest fencing token that a row has seen never falls.
    Fence,
    /// What was taken from a number is held, and comes back at most once.
    Holds,
    /// A placed row says for life which attempt placed it.
    Placed,
    /// A lease gets a higher token with each acquire. Only a lease that is held is renewed, each time to another end.
    Lease,
    /// A newer instance is never replaced by an older one, and a deleted one never comes back.
    Newest,
    /// No other program writes the table, as its settings say.
    OtherWriters,
    /// A number stays within the bounds that the audit was given.
    Bounds,
}

impl Rule {
    /// The rule in a few letters.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Rule::Readable => "readable",
            Rule::Version => "version",
            Rule::WriteId => "write-id",
            Rule::Memory => "memory",
            Rule::Incarnation => "incarnation",
            Rule::Tombstone => "tombstone",
            Rule::Fence => "fence",
            Rule::Holds => "holds",
            Rule::Placed => "placed",
            Rule::Lease => "lease",
            Rule::Newest => "newest",
            Rule::OtherWriters => "other-writers",
            Rule::Bounds => "bounds",
        }
    }
}

/// A broken rule, and how it was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Breach {
    /// The rule.
    pub rule: Rule,
    /// What the images show, in one sentence.
    pub sentence: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule.name(), self.sentence)
    }
}

/// A change of one row, as a record of a stream or of an export shows it.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    before: Option<&'a Attributes>,
    after: Option<&'a Attributes>,
    at: Timestamp,
    by_ttl: bool,
    is_one: bool,
}

impl<'a> Change<'a> {
    /// One change, from its images with all attributes (`NEW_AND_OLD_IMAGES`) and the time at which `DynamoDB` made it.
    #[must_use]
    pub fn new(before: Option<&'a Attributes>, after: Option<&'a Attributes>, at: Timestamp) -> Self {
        Change { before, after, at, by_ttl: false, is_one: true }
    }

    /// Says that TTL removed the row: the record has the `userIdentity` of the service.
    #[must_use]
    pub fn by_ttl(self) -> Self {
        Change { by_ttl: true, ..self }
    }

    /// Says that the images are those of the beginning and the end of a period, with any number of changes between them, as
    /// in an incremental export. A row of a full export is such a change that has no image before it.
    #[must_use]
    pub fn of_a_period(self) -> Self {
        Change { is_one: false, ..self }
    }

    /// Whether the row may be gone that could be removed from this time on, in epoch seconds.
    fn is_after(&self, end: Option<u64>) -> bool {
        let latest = self.at.epoch_millis().map_or(u64::MAX, |now| now / 1000 + MOST_AHEAD);
        end.is_some_and(|end| end <= latest)
    }
}

/// Checks changes of a table against the rules of this crate, one by one. It needs nothing but their images, so changes may
/// come in any order and from any part of a table. An auditor that reads the stream of a table needs no access to the table.
///
/// In a table that is [open to any](Settings::open_to_any) writer, only bounds and unreadable rows can be checked.
///
/// A breach means that a writer did not keep the rules: another program, a person, an import, or a defect of this crate.
/// No breach does not mean that all went well. These leave nothing in an image: a write that was sent again under another
/// id, an answer that claims too much, a condition that was checked on too little, two holders of a lease whose clocks
/// disagree, and a write id that was forgotten too early, unless it is a burned one.
///
/// ```
/// # fn main() -> Result<(), fencepost::InvalidValue> {
/// use fencepost::maintenance::{Audit, Change, Rule};
/// use fencepost::{AttributeValue, Settings, Timestamp};
/// use std::collections::HashMap;
///
/// let at = Timestamp::from_rfc3339("2026-03-07T10:00:00Z")?;
/// let written_by_hand = HashMap::from([("stock".to_owned(), AttributeValue::N("7".to_owned()))]);
/// let breaches = Audit::of(Settings::own()).check(&Change::new(None, Some(&written_by_hand), at));
/// assert_eq!(breaches[0].rule, Rule::OtherWriters);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Audit {
    layout: Layout,
    bounds: Vec<(String, [Option<Number>; 2])>,
}

impl Audit {
    /// The audit of a table with these settings.
    #[must_use]
    pub fn of(settings: Settings) -> Self {
        Audit { layout: Layout { settings: settings.0, ..Layout::of_key("") }, bounds: Vec::new() }
    }

    /// Says that the newest instance wins in the table. Takes the names in its [`LwwRecord`](crate::lww::LwwRecord):
    /// `ORDERED_BY` and `NAMED_BY`. Without them, the rows of such tables are not checked.
    #[must_use]
    pub fn of_instances(self, instance: [&'static str; 2]) -> Self {
        Audit { layout: Layout { instance: Some(instance), ..self.layout }, ..self }
    }

    /// Names the attribute of which rows of another table hold parts ([`Holds`](crate::Holds)). Without it, holds are not
    /// compared with their number.
    #[must_use]
    pub fn with_held(self, attribute: &'static str) -> Self {
        Audit { layout: Layout { held: Some(attribute), ..self.layout }, ..self }
    }

    /// Demands that a number of each item is within these bounds.
    #[must_use]
    pub fn within(mut self, attribute: impl Into<String>, lowest: Option<Number>, highest: Option<Number>) -> Self {
        self.bounds.push((attribute.into(), [lowest, highest]));
        self
    }

    /// The rules that a change broke.
    #[must_use]
    pub fn check(&self, change: &Change<'_>) -> Vec<Breach> {
        let mut found = Breaches(Vec::new());
        let before = change.before.map(|image| Image { image, kind: kind_of(image, &self.layout) });
        let after = change.after.map(|image| Image { image, kind: kind_of(image, &self.layout) });
        match (&before, &after) {
            (None, None) => {}
            (Some(before), None) => self.check_removal(before, change, &mut found),
            (before, Some(after)) => {
                self.check_bounds(after, &mut found);
                self.check_step(before.as_ref(), after, change, &mut found);
            }
        }
        found.0
    }

    fn check_step(&self, before: Option<&Image<'_>>, after: &Image<'_>, change: &Change<'_>, found: &mut Breaches) {
        let was = before.map(Image::kind);
        match (was, after.kind()) {
            // The damage was there before.
            (Some(Kind::Damaged), _) => {}
            (_, Kind::Damaged) => {
                let why = after.kind.1.as_ref().err().map(ToString::to_string).unwrap_or_default();
                found.add(Rule::Readable, why);
            }
            (None | Some(Kind::Lease), Kind::Lease) => {
                others::check_lease(before.map(|before| before.image), after.image, change.is_one, found);
            }
            (None | Some(Kind::Mapping), Kind::Mapping) => {
                if let Some(instance) = self.layout.instance {
                    let before = before.map(|before| before.image);
                    others::check_instance(instance, self.layout.names.purge_at, before, after.image, found);
                }
            }
            (Some(Kind::Lease | Kind::Mapping), _) | (_, Kind::Lease | Kind::Mapping) => {
                found.add(Rule::Readable, "a row became one of another kind");
            }
            _ => rows::check(&self.layout, before, after, change, found),
        }
    }

    /// A row that is gone. Of a period, nobody knows whether it left a tombstone between.
    fn check_removal(&self, before: &Image<'_>, change: &Change<'_>, found: &mut Breaches) {
        let layout = &self.layout;
        let is_shared = layout.other_writers != OtherWriters::Nobody;
        let has_ended = || change.is_after(number_of(before.image, layout.names.purge_at));
        let may_go = match before.kind() {
            _ if !change.is_one => true,
            Kind::Tombstone => is_shared || layout.deletes != Deletes::Keep && has_ended(),
            Kind::Mapping => has_ended(),
            Kind::Live => is_shared || change.by_ttl || layout.deletes == Deletes::Remove,
            Kind::Foreign => is_shared,
            // TTL goes by another time than the end of the lease, which comes much later.
            Kind::Lease => change.by_ttl,
            Kind::Damaged => true,
        };
        if !may_go {
            found.add(Rule::Tombstone, format!("a row of the kind {} was removed", before.kind().name()));
        }
    }

    fn check_bounds(&self, after: &Image<'_>, found: &mut Breaches) {
        if !matches!(after.kind(), Kind::Live | Kind::Foreign) {
            return;
        }
        for (name, [lowest, highest]) in &self.bounds {
            let Some(text) = after.image.get(name).and_then(AsKind::as_n) else { continue };
            let is_beyond = |bound: &Option<Number>, beyond: Ordering| {
                bound.as_ref().is_some_and(|bound| number::compare(text, bound.as_str()) == beyond)
            };
            if is_beyond(lowest, Ordering::Less) || is_beyond(highest, Ordering::Greater) {
                found.add(Rule::Bounds, format!("`{name}` is {text}"));
            }
        }
    }
}

/// An image of a row, with its kind.
struct Image<'a> {
    image: &'a Attributes,
    kind: (Kind, Result<Row, Unwritable>),
}

impl Image<'_> {
    fn kind(&self) -> Kind {
        self.kind.0
    }
}

struct Breaches(Vec<Breach>);

impl Breaches {
    fn add(&mut self, rule: Rule, sentence: impl Into<String>) {
        self.0.push(Breach { rule, sentence: sentence.into() });
    }
}

fn number_of(image: &Attributes, name: &str) -> Option<u64> {
    image.get(name).and_then(read_number)
}

#[cfg(test)]
mod tests;
