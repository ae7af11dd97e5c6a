//! How a table is set up beside the values in it: the names of this crate's attributes, who else writes, how deletes
//! go, in which Regions it lives.

/// The names that the attributes of this crate have in one table.
///
/// A table that another program made may have a version attribute already, or a TTL attribute of another name. All
/// programs that use this crate on one table must use the same names.
///
/// ```
/// use fencepost::Names;
///
/// /// A table of `PynamoDB`, whose version attribute is `version`.
/// const NAMES: Names = Names::DEFAULT.version("version");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Names {
    pub(crate) version: &'static str,
    pub(crate) incarnation: &'static str,
    pub(crate) writes: &'static str,
    pub(crate) purge_at: &'static str,
    pub(crate) buried: &'static str,
    pub(crate) fence: &'static str,
}

impl Names {
    /// `_version`, `_incarnation`, `_writes`, `_purgeAt`, `_buried` and `_fence`.
    pub const DEFAULT: Names = Names {
        version: "_version",
        incarnation: "_incarnation",
        writes: "_writes",
        purge_at: "_purgeAt",
        buried: "_buried",
        fence: "_fence",
    };

    /// Renames the version: a whole number that rises with each write.
    #[must_use]
    pub const fn version(self, name: &'static str) -> Self {
        Names { version: name, ..self }
    }

    /// Renames the incarnation: 8 bytes that say which row of its key this is.
    #[must_use]
    pub const fn incarnation(self, name: &'static str) -> Self {
        Names { incarnation: name, ..self }
    }

    /// Renames the memory: a map with the ids of recent writes.
    #[must_use]
    pub const fn writes(self, name: &'static str) -> Self {
        Names { writes: name, ..self }
    }

    /// Renames the end of a tombstone, in epoch seconds. With [`Deletes::Expire`], it is the TTL attribute of the
    /// table. Values must not have this attribute: if they do, name it [`EXPIRES_AT`](crate::Record::EXPIRES_AT).
    #[must_use]
    pub const fn purge_at(self, name: &'static str) -> Self {
        Names { purge_at: name, ..self }
    }

    /// Renames the mark of a tombstone: the version that the delete made.
    #[must_use]
    pub const fn buried(self, name: &'static str) -> Self {
        Names { buried: name, ..self }
    }

    /// Renames the highest fencing token of all writes that had one.
    #[must_use]
    pub const fn fence(self, name: &'static str) -> Self {
        Names { fence: name, ..self }
    }

    /// All of them. A value must not have these attributes.
    pub(crate) const fn all(&self) -> [&'static str; 6] {
        [self.version, self.incarnation, self.writes, self.purge_at, self.buried, self.fence]
    }
}

impl Default for Names {
    fn default() -> Self {
        Names::DEFAULT
    }
}

/// Which other programs write the rows of a table: programs that do not use this crate.
///
/// `docs/adoption.md` says which setting a library needs, and what holds under each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OtherWriters {
    /// None. Rows of another program may be there, but it does not write any more.
    Nobody,
    /// Programs that demand the version in each write, and raise it. Their writes may drop the attributes of this crate.
    Versioned,
    /// Programs that do not always demand the version, that delete a row and create it again at the same version, or
    /// that replace it without a condition. Each write of this crate then also demands every attribute of the value as
    /// it was read, and goes as a transaction of one step, which costs twice as much.
    Any,
}

/// How the items of a table are deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Deletes {
    /// A delete leaves a tombstone, which TTL removes. The TTL attribute of the table is that of [`Names::purge_at`], or
    /// [`EXPIRES_AT`](crate::Record::EXPIRES_AT) if values have one. Only where nobody else writes: another program may
    /// bring a tombstone back to life, and TTL would remove that row.
    Expire,
    /// A delete leaves a tombstone, which a sweep removes after its time.
    Sweep,
    /// A delete leaves a tombstone for ever.
    Keep,
    /// A delete removes the row. Versions then start again with the next create. A delete whose answer was lost is
    /// unknown, and so is a create. A create whose second copy the network delivers after the delete, within 15 minutes
    /// of the first, is applied again.
    Remove,
}

/// The Regions in which a table is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Regions {
    /// One Region writes. Replicas in other Regions are read only.
    One,
    /// A global table with multi-Region strong consistency (MRSC). Such a table has no transactions and no TTL.
    Strong,
}
