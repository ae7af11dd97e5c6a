//! [`Explanation`]: the account of a row.

use std::fmt;

/// The kind of a row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// An item that this crate has written.
    Live,
    /// The mark that a delete leaves.
    Tombstone,
    /// An item of another program. The first change adopts it.
    Foreign,
    /// A lease.
    Lease,
    /// A row of a table where the newest instance wins.
    Mapping,
    /// A row that contradicts itself. This crate refuses to change it
    /// ([`Failure::CorruptItem`](crate::Failure::CorruptItem)).
    Damaged,
}

impl Kind {
    /// The kind in one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Live => "live",
            Kind::Tombstone => "tombstone",
            Kind::Foreign => "foreign",
            Kind::Lease => "lease",
            Kind::Mapping => "mapping",
            Kind::Damaged => "damaged",
        }
    }
}

/// The account of a row.
///
/// `Display` writes all sentences, one per line.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The kind of the row.
    pub kind: Kind,
    /// Its version, if that can be read.
    pub version: Option<u64>,
    /// Its incarnation in base64url, as in the `ETag`, if that can be read.
    pub incarnation: Option<String>,
    /// The time after which TTL or a sweep may remove a tombstone, in epoch seconds, if that can be read.
    pub purge_at: Option<u64>,
    /// Facts, in sentences.
    pub sentences: Vec<String>,
    /// Problems, in sentences. A row that is not damaged may have some too.
    pub problems: Vec<String>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sentences.iter().try_for_each(|sentence| writeln!(f, "{sentence}"))?;
        self.problems.iter().try_for_each(|problem| writeln!(f, "Wrong: {problem}"))
    }
}

impl Explanation {
    pub(super) fn new(kind: Kind) -> Self {
        let (sentences, problems) = (Vec::new(), Vec::new());
        Explanation { kind, version: None, incarnation: None, purge_at: None, sentences, problems }
    }

    /// A row with a problem of its own kind is damaged.
    pub(super) fn if_damaged(mut self) -> Self {
        if !self.problems.is_empty() {
            self.kind = Kind::Damaged;
        }
        self
    }
}
