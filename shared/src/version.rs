//! Which state of which row: [`Version`], [`Incarnation`] and the value that carries both.

use std::fmt;

/// Per-item counter: 1 on create, +1 per committed write, deletion included.
///
/// Versions of one key only rise, also across delete and re-create, as long as a delayed request
/// can still be on its way. At most 2^53 - 1, so that every JSON reader keeps it exactly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version(u64);

impl Version {
    /// The version of a key at which no row exists: a create is a write at this version.
    pub const ABSENT: Version = Version(0);
    const MAX: u64 = (1 << 53) - 1;

    /// The version with this number, unless it is beyond 2^53 - 1.
    #[must_use]
    pub fn new(number: u64) -> Option<Self> {
        (number <= Self::MAX).then_some(Version(number))
    }

    /// The number: 0 where nothing is, else 1 or more.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }

    /// The version that a write on this one commits.
    #[must_use]
    pub fn next(self) -> Self {
        Version(self.0 + 1)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which row of a key: the write id that created it where nothing was.
///
/// Without it, a row that TTL removed and somebody made anew could reach an old version number
/// again, and an old reader would take it for the row that it knew.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Incarnation([u8; 8]);

impl Incarnation {
    /// The incarnation with these 8 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 8]) -> Self {
        Incarnation(bytes)
    }

    /// The 8 bytes as they are stored.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

/// Version and incarnation together: exactly one state of one row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ItemVersion {
    /// How many writes this row has seen.
    pub version: Version,
    /// Which row it is.
    pub incarnation: Incarnation,
}

/// A value as one committed write left it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Versioned<T> {
    /// The caller's value.
    pub value: T,
    /// The state of the row that holds it.
    pub at: ItemVersion,
}

impl<T> Versioned<T> {
    /// The version alone: what a reader of the value is shown.
    #[must_use]
    pub fn version(&self) -> Version {
        self.at.version
    }
}
