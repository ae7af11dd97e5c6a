//! [`Names`]: the names of this crate's attributes in a table.

/// The names that the attributes of this crate have in one table.
///
/// A table that another program made may have a version attribute already, or a TTL attribute of another name. All
/// programs that use this crate on one table must use the same names.
///
/// ```
/// # extern crate fencepost_core as fencepost;
/// use fencepost::Names;
///
/// /// A table of `PynamoDB`, whose version attribute is `version`.
/// const NAMES: Names = Names::DEFAULT.version("version");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Names {
    /// The version: a whole number that rises with each write.
    pub version: &'static str,
    /// Which row of its key this is: 8 bytes.
    pub incarnation: &'static str,
    /// The memory: a map with the ids of recent writes.
    pub writes: &'static str,
    /// The end of a tombstone, in epoch seconds.
    pub purge_at: &'static str,
    /// The mark of a tombstone: the version that the delete made.
    pub buried: &'static str,
    /// The highest fencing token of all writes that had one.
    pub fence: &'static str,
    /// The number of tickets that writers in a crowd have taken.
    pub given: &'static str,
    /// The last ticket whose writer has committed.
    pub served: &'static str,
    /// The holds of an item: a map with the parts of its number that are taken for rows of another table.
    pub holds: &'static str,
    /// The attempt that placed the item, if the item decides about holds: 8 bytes.
    pub placed_by: &'static str,
}

impl Names {
    /// `_version`, `_incarnation`, `_writes`, `_purgeAt`, `_buried`, `_fence`, `_given`, `_served`, `_holds` and `_placedBy`.
    pub const DEFAULT: Names = Names {
        version: "_version",
        incarnation: "_incarnation",
        writes: "_writes",
        purge_at: "_purgeAt",
        buried: "_buried",
        fence: "_fence",
        given: "_given",
        served: "_served",
        holds: "_holds",
        placed_by: "_placedBy",
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

    /// Renames the end of a tombstone, in epoch seconds. With `Settings::own`, it is the TTL attribute of the table. Values must not have this attribute: if they do, name it `Record::EXPIRES_AT`.
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

    /// Renames the number of tickets that writers in a crowd have taken.
    #[must_use]
    pub const fn given(self, name: &'static str) -> Self {
        Names { given: name, ..self }
    }

    /// Renames the last ticket whose writer has committed.
    #[must_use]
    pub const fn served(self, name: &'static str) -> Self {
        Names { served: name, ..self }
    }

    /// Renames the holds of an item: a map with the parts of its number that are taken for rows of another table.
    #[must_use]
    pub const fn holds(self, name: &'static str) -> Self {
        Names { holds: name, ..self }
    }

    /// Renames the attempt that placed the item, if the item decides about holds: 8 bytes.
    #[must_use]
    pub const fn placed_by(self, name: &'static str) -> Self {
        Names { placed_by: name, ..self }
    }

    /// All of them. A value must not have these attributes.
    pub const fn all(&self) -> [&'static str; 10] {
        let Names { version, incarnation, writes, purge_at, buried, fence, given, served, holds, placed_by } = *self;
        [version, incarnation, writes, purge_at, buried, fence, given, served, holds, placed_by]
    }
}

impl Default for Names {
    fn default() -> Self {
        Names::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attribute_can_be_renamed() {
        let renamed = Names::DEFAULT.version("a").incarnation("b").writes("c").purge_at("d").buried("e");
        let renamed = renamed.fence("f").given("g").served("h").holds("i").placed_by("j");
        assert_eq!(renamed.all(), ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]);
    }
}
