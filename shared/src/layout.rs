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
    /// it was read, and goes as a transaction of one step, which costs twice as much. Needs [`Deletes::Remove`]: a program
    /// that sets any version could make a live row look like a tombstone.
    Any,
}

/// How the items of a table are deleted.
///
/// TTL could remove a row that another program changed after its delete. So a table with other writers has tombstones
/// that a sweep removes:
///
/// ```
/// use fencepost::{Record, Store, Deletes, OtherWriters};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Account { balance: u64 }
///
/// impl Record for Account {
///     const PARTITION_KEY: &'static str = "accountId";
///     const ATTRIBUTES: &'static [&'static str] = &["balance"];
///     const OTHER_WRITERS: OtherWriters = OtherWriters::Versioned;
///     const DELETES: Deletes = Deletes::Sweep;
/// }
///
/// fn accounts(store: &Store) -> fencepost::Table<Account> {
///     store.table("accounts")
/// }
/// # fn main() {
/// #     let _: fn(&Store) -> fencepost::Table<Account> = accounts;
/// # }
/// ```
///
/// With [`Deletes::Expire`], which is the default, the same table does not compile:
///
/// ```compile_fail,E0080
/// use fencepost::{Record, Store, Deletes, OtherWriters};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Account { balance: u64 }
///
/// impl Record for Account {
///     const PARTITION_KEY: &'static str = "accountId";
///     const ATTRIBUTES: &'static [&'static str] = &["balance"];
///     const OTHER_WRITERS: OtherWriters = OtherWriters::Versioned;
///     const DELETES: Deletes = Deletes::Expire;
/// }
///
/// fn accounts(store: &Store) -> fencepost::Table<Account> {
///     store.table("accounts")
/// }
/// # fn main() {
/// #     let _: fn(&Store) -> fencepost::Table<Account> = accounts;
/// # }
/// ```
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
    /// A delete removes the row. The version that it returns is that of no row, and versions start again with the next
    /// create. A delete whose answer was lost is
    /// unknown, and so is a create. A create whose second copy the network delivers after the delete, within 15 minutes
    /// of the first, is applied again.
    Remove,
}

/// The Regions in which a table is written.
///
/// A table that several Regions write has no TTL, so it needs other [`Deletes`] than [`Deletes::Expire`]:
///
/// ```
/// use fencepost::{Record, Store, Deletes, Regions};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Account { balance: u64 }
///
/// impl Record for Account {
///     const PARTITION_KEY: &'static str = "accountId";
///     const ATTRIBUTES: &'static [&'static str] = &["balance"];
///     const REGIONS: Regions = Regions::Strong;
///     const DELETES: Deletes = Deletes::Sweep;
/// }
///
/// fn accounts(store: &Store) -> fencepost::Table<Account> {
///     store.table("accounts")
/// }
/// # fn main() {
/// #     let _: fn(&Store) -> fencepost::Table<Account> = accounts;
/// # }
/// ```
///
/// With [`Deletes::Expire`], which is the default, it does not compile:
///
/// ```compile_fail,E0080
/// use fencepost::{Record, Store, Deletes, Regions};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Account { balance: u64 }
///
/// impl Record for Account {
///     const PARTITION_KEY: &'static str = "accountId";
///     const ATTRIBUTES: &'static [&'static str] = &["balance"];
///     const REGIONS: Regions = Regions::Strong;
///     const DELETES: Deletes = Deletes::Expire;
/// }
///
/// fn accounts(store: &Store) -> fencepost::Table<Account> {
///     store.table("accounts")
/// }
/// # fn main() {
/// #     let _: fn(&Store) -> fencepost::Table<Account> = accounts;
/// # }
/// ```
///
/// Neither does it with [`OtherWriters::Any`], which needs transactions. [`OtherWriters::Versioned`] needs none:
///
/// ```compile_fail,E0080
/// use fencepost::{Record, Store, Deletes, OtherWriters, Regions};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Account { balance: u64 }
///
/// impl Record for Account {
///     const PARTITION_KEY: &'static str = "accountId";
///     const ATTRIBUTES: &'static [&'static str] = &["balance"];
///     const REGIONS: Regions = Regions::Strong;
///     const DELETES: Deletes = Deletes::Remove;
///     const OTHER_WRITERS: OtherWriters = OtherWriters::Any;
/// }
///
/// fn accounts(store: &Store) -> fencepost::Table<Account> {
///     store.table("accounts")
/// }
/// # fn main() {
/// #     let _: fn(&Store) -> fencepost::Table<Account> = accounts;
/// # }
/// ```
///
/// ```
/// use fencepost::{Record, Store, Deletes, OtherWriters, Regions};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Account { balance: u64 }
///
/// impl Record for Account {
///     const PARTITION_KEY: &'static str = "accountId";
///     const ATTRIBUTES: &'static [&'static str] = &["balance"];
///     const REGIONS: Regions = Regions::Strong;
///     const DELETES: Deletes = Deletes::Remove;
///     const OTHER_WRITERS: OtherWriters = OtherWriters::Versioned;
/// }
///
/// fn accounts(store: &Store) -> fencepost::Table<Account> {
///     store.table("accounts")
/// }
/// # fn main() {
/// #     let _: fn(&Store) -> fencepost::Table<Account> = accounts;
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Regions {
    /// One Region writes. Replicas in other Regions are read only.
    One,
    /// A global table with multi-Region strong consistency (MRSC). Such a table has no transactions and no TTL.
    Strong,
}

/// All that the protocol needs to know of a [`Record`](crate::Record).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub partition_key: &'static str,
    pub sort_key: Option<&'static str>,
    /// Every top-level attribute that a value may have.
    pub attributes: &'static [&'static str],
    pub expires_at: Option<&'static str>,
    /// How many commits a row remembers an id: R.
    pub remembered: u64,
    /// How many versions an add may be late: W.
    pub window: u64,
    pub names: Names,
    pub first_version: u64,
    pub other_writers: OtherWriters,
    pub deletes: Deletes,
    pub regions: Regions,
}

impl Layout {
    /// A table of which only the partition key is known. Its names and all settings are the defaults.
    pub(crate) const fn of_key(partition_key: &'static str) -> Self {
        Layout {
            partition_key,
            sort_key: None,
            attributes: &[],
            expires_at: None,
            remembered: 16,
            window: 1,
            names: Names::DEFAULT,
            first_version: 1,
            other_writers: OtherWriters::Nobody,
            deletes: Deletes::Expire,
            regions: Regions::One,
        }
    }

    /// Refuses settings that cannot hold, when the program is compiled.
    pub(crate) const fn checked(self) -> Self {
        assert!(1 <= self.window && self.window <= self.remembered, "ADD_WINDOW is 1 to REMEMBERED_WRITES");
        assert!(self.remembered <= 128, "a row remembers at most 128 writes");
        assert!(self.first_version >= 1, "FIRST_VERSION is at least 1");
        assert!(self.first_version < 1 << 52, "FIRST_VERSION leaves no room for later versions");
        let expires = matches!(self.deletes, Deletes::Expire);
        assert!(
            matches!(self.other_writers, OtherWriters::Nobody) || !expires,
            "TTL could remove a row that another program changed after its delete: choose other DELETES than Expire"
        );
        assert!(
            !self.demands_values() || matches!(self.deletes, Deletes::Remove),
            "a program that sets any version could make a live row look like a tombstone: OtherWriters::Any needs Deletes::Remove"
        );
        if matches!(self.regions, Regions::Strong) {
            assert!(
                !expires,
                "a table with multi-Region strong consistency has no TTL: choose other DELETES than Expire"
            );
            assert!(
                !self.demands_values(),
                "OtherWriters::Any needs transactions, which a table with multi-Region strong consistency has not"
            );
            assert!(
                self.expires_at.is_none(),
                "a table with multi-Region strong consistency has no TTL: drop EXPIRES_AT"
            );
        }
        self
    }

    /// Whether a row may be removed at any time, by another program or by a delete of this crate. Then a row that
    /// refuses a create proves nothing about a copy that is still on its way.
    pub(crate) const fn rows_may_vanish(&self) -> bool {
        !matches!(self.other_writers, OtherWriters::Nobody) || matches!(self.deletes, Deletes::Remove)
    }

    /// Whether versions may repeat. A write then demands every attribute of the value too, and its copies share the
    /// token of a transaction.
    pub(crate) const fn demands_values(&self) -> bool {
        matches!(self.other_writers, OtherWriters::Any)
    }

    /// Whether the version that a delete made marks its tombstone. With [`Deletes::Expire`], the time alone marks it, because
    /// nobody else writes the row.
    pub(crate) fn marks_by_version(&self) -> bool {
        self.deletes != Deletes::Expire
    }

    /// Whether a time marks a tombstone that has no other mark. Tables that were set up otherwise before may have such
    /// tombstones, under the default name.
    pub(crate) fn marks_by_time(&self) -> bool {
        !self.marks_by_version() || self.names.purge_at == Names::DEFAULT.purge_at
    }

    /// The attribute at which TTL looks, beside the end of a tombstone.
    pub(crate) fn ttl_of_values(&self) -> Option<&'static str> {
        self.expires_at.filter(|_| self.deletes == Deletes::Expire)
    }
}
