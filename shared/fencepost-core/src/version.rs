//! [`Version`], [`Incarnation`] and [`ItemVersion`]: one state of one row. [`Versioned`]: a value with its state.

use std::fmt;
use std::ops::Deref;

/// A counter per item: the first on create (a setting of the table), +1 with each committed write of this
/// crate, deletion included. Other programs may raise it by more.
///
/// The version of a key only rises while a delayed request can still arrive, also across delete and re-create. It is at
/// most 2^53 - 1, so every JSON reader keeps it exactly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version(u64);

impl Version {
    /// The version of a key that has no row. A create is a write at this version.
    pub const ABSENT: Version = Version(0);
    const MAX: u64 = (1 << 53) - 1;

    /// Creates the version with this number. Returns `None` above 2^53 - 1.
    #[must_use]
    pub fn new(number: u64) -> Option<Self> {
        (number <= Self::MAX).then_some(Version(number))
    }

    /// The number: 0 if there is no row, otherwise 1 or more. A row of another program may also be at 0, or have none.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }

    /// Whether this many more writes can raise the version.
    pub const fn has_room_for(self, writes: u64) -> bool {
        self.0 + writes <= Version::MAX
    }

    /// The version that a write at this version commits.
    #[must_use]
    pub const fn next(self) -> Self {
        Version(self.0 + 1)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The identity of a row: the write id of the create that made it on a free key, or of the change that adopted it.
///
/// Versions alone are not enough. After TTL has removed a row, a new row under the same key may reach an old version
/// number again. An old reader would take the new row for the one it knew. The incarnation tells them apart. A row of a
/// restored table gets a new incarnation for the same reason.
///
/// A row that another program wrote has no incarnation. A digest of its value takes the place of one, so that a state of
/// such a row is told from others as well. The first change by this crate adopts the row and gives it an incarnation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Incarnation(Identity);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Identity {
    Row([u8; 8]),
    Content([u8; 16]),
}

impl Incarnation {
    /// The incarnation with these 8 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 8]) -> Self {
        Incarnation(Identity::Row(bytes))
    }

    /// The substitute for an incarnation in a row of another program: a digest of its value.
    #[must_use]
    pub const fn of_content(digest: [u8; 16]) -> Self {
        Incarnation(Identity::Content(digest))
    }

    /// The bytes: 8 of a stored incarnation, 16 of a digest.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Identity::Row(bytes) => bytes,
            Identity::Content(digest) => digest,
        }
    }

    /// Whether the row was written by another program, and was not adopted yet.
    #[must_use]
    pub const fn is_foreign(&self) -> bool {
        matches!(self.0, Identity::Content(_))
    }
}

/// A version and an incarnation: exactly one state of one row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ItemVersion {
    /// The version of the row.
    pub version: Version,
    /// The identity of the row.
    pub incarnation: Incarnation,
}

/// A value together with the state of its row. It derefs to the value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Versioned<T> {
    /// The caller's value.
    pub value: T,
    /// The state of the row that holds the value.
    pub at: ItemVersion,
}

impl<T> Deref for Versioned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Versioned<T> {
    /// The version without the incarnation, as readers of the value see it.
    #[must_use]
    pub fn version(&self) -> Version {
        self.at.version
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_room_for_as_many_writes_as_are_left_to_the_last_one() {
        let version = Version::new(Version::MAX - 3).expect("a version");
        assert_eq!([0, 2, 3, 4].map(|writes| version.has_room_for(writes)), [true, true, true, false]);
        assert_eq!(Version::new(Version::MAX + 1), None);
    }
}
