//! What the clients of a program decided, and what they were told.

use super::catalog::{Row, item_of};
use super::edits::{Edit, Why};
use super::plan::Op;
use super::records::Subject;
use super::values::Item;
use fencepost::{Failure, FailureKind, ItemVersion, Versioned};
use std::time::Duration;
use tokio::time::Instant;

/// A state of a row in an answer or in a decision.
#[derive(Clone, Debug)]
pub struct Shown {
    pub row: Row,
    pub at: Option<ItemVersion>,
    /// `None` if there was no item.
    pub item: Option<Item>,
    /// Whether the row was known at all.
    pub is_certain: bool,
}

/// What a decision does with a row.
#[derive(Clone, Debug)]
pub enum Does {
    Write(Item),
    /// A value that cannot be stored.
    Impossible,
    Delete,
    Edit(Edit),
    Check,
}

#[derive(Clone, Debug)]
pub struct Decision {
    pub id: u64,
    pub looks: Vec<Shown>,
    pub does: Vec<(Row, Does)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Applied,
    /// Nothing was changed, or only looked at.
    Refused,
    /// An earlier request with the same key made this decision.
    Replayed(u64),
    Failed(String),
    Unknown(String),
    /// The future was dropped.
    Dropped,
}

/// By how much clocks may differ: the bound of every lease in programs.
pub const SKEW: Duration = Duration::from_mins(5);

/// A time in which a client believed in its lease.
#[derive(Clone, Debug)]
pub struct Belief {
    pub client: u64,
    pub token: u64,
    pub from: Instant,
    pub until: Instant,
    /// By how many milliseconds its clock was ahead at the least, when it acquired or renewed the lease.
    pub ahead: i64,
}

/// The row of a lease.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hold {
    pub holder: Option<String>,
    pub token: u64,
    pub renewals: u64,
    pub expires_at: u64,
}

/// The row of a table where the newest instance wins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stand {
    pub term: u64,
    pub node: Option<String>,
    pub live: bool,
}

impl Stand {
    pub fn of(term: u64, node: Option<&str>) -> Self {
        Stand { term, node: node.map(str::to_owned), live: true }
    }

    /// The place in the order of instances: one without a name stands after all others of its term.
    pub fn who(&self) -> (u64, bool, &Option<String>) {
        (self.term, self.node.is_none(), &self.node)
    }
}

/// What a client was told of a lease, or of the newest instance.
#[derive(Clone, Debug)]
pub enum About {
    Nothing,
    /// It holds the lease.
    Lease(Hold),
    /// This holder has it until then.
    Held(String, u64),
    LeaseLost,
    /// It was renewed more or less often than demanded.
    LeaseConflict,
    LeaseReleased,
    /// This call has registered or deleted the instance.
    Applied,
    /// The instance is there as it was registered.
    Stands,
    SupersededBy(Stand),
    Shows(Option<Stand>),
}

#[derive(Clone, Debug)]
pub struct Told {
    pub outcome: Outcome,
    /// The decision that was applied.
    pub decision: Option<u64>,
    /// The versions that it made.
    pub made: Vec<(Row, ItemVersion)>,
    pub shown: Vec<Shown>,
    /// The same of parts of items.
    pub parts: Vec<Shown>,
    /// Why the item refused an edit.
    pub why: Option<Why>,
    /// The version at which the item is said not to be.
    pub not_at: Option<ItemVersion>,
    pub about: About,
    /// The rows that a listing left out, although they are within its bounds.
    pub left_out: Vec<Row>,
}

impl Told {
    pub fn of(outcome: Outcome) -> Self {
        let (made, shown, parts, left_out) = Default::default();
        Told { outcome, decision: None, made, shown, parts, why: None, not_at: None, about: About::Nothing, left_out }
    }

    pub fn about(about: About) -> Self {
        Told { about, ..Told::of(Outcome::Refused) }
    }

    pub fn shows(shown: Vec<Shown>) -> Self {
        Told { shown, ..Told::of(Outcome::Refused) }
    }

    pub fn made<T: Subject>(id: u64, row: Row, made: &Versioned<T>) -> Self {
        Told { decision: Some(id), made: vec![(row, made.at)], ..Told::of(Outcome::Applied) }
    }
}

impl From<Failure> for Told {
    fn from(failure: Failure) -> Self {
        let is_own_mistake =
            matches!(failure.kind, FailureKind::InvalidRecord { .. } | FailureKind::InvalidTransaction { .. });
        assert!(failure.place.is_some() || is_own_mistake, "{failure} names no place");
        let text = format!("{:?}", failure.kind);
        Told::of(if failure.is_outcome_unknown() { Outcome::Unknown(text) } else { Outcome::Failed(text) })
    }
}

#[derive(Debug)]
pub struct Note {
    pub number: u64,
    pub client: u64,
    pub op: Op,
    pub began: Instant,
    pub ended: Instant,
    pub within: u64,
    /// The token of its client's lease before it.
    pub under: Option<u64>,
    /// By how many milliseconds its client's clock was ahead at the most.
    pub ahead: i64,
    pub told: Told,
    pub decisions: Vec<Decision>,
    pub is_odd: bool,
}

impl Note {
    /// The decision that was told as applied.
    pub fn decided(&self) -> Option<&Decision> {
        self.decisions.iter().find(|one| Some(one.id) == self.told.decision)
    }

    /// The edit that the item refused.
    pub fn refused_edit(&self) -> Option<&Edit> {
        self.told.why?;
        let mut does = self.decisions.iter().flat_map(|one| &one.does);
        does.find_map(|(_, does)| if let Does::Edit(edit) = does { Some(edit) } else { None })
    }
}

pub fn shown<T: Subject>(row: Row, seen: Option<&Versioned<T>>) -> Shown {
    let item = seen.map(|seen| item_of(&seen.value).expect("it was read"));
    Shown { row, at: seen.map(|seen| seen.at), item, is_certain: true }
}
