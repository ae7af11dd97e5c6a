//! [`Settings`]: how a table is set up beside the values in it, as far as a program may say.

use fencepost_core::Names;
use fencepost_core::format::layout::{self, Deletes, OtherWriters, Regions};

/// The settings of a table beside its key and its attributes, as one value.
///
/// They begin with one of three tables, which say who else writes and how deletes go. Methods change the rest. Settings
/// that cannot hold together cannot be written.
///
/// ```
/// use fencepost::{Names, Settings};
///
/// /// Only this program writes, to hot items.
/// const HOT: Settings = Settings::own().remembered_writes(64).edit_window(32);
/// /// Programs with `PynamoDB` write too.
/// const SHARED: Settings =
///     Settings::without_ttl().shared_with_versioned_writers().swept().names(Names::DEFAULT.version("version"));
/// ```
///
/// `docs/adoption.md` lists the settings that a library needs, with the promises under each. All programs that use this
/// crate on one table have the same settings. Only [`Settings::edit_window`] may differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings(pub(crate) layout::Settings);

impl Settings {
    /// A table that no other program writes. A delete leaves a tombstone, which TTL removes. This is the default.
    ///
    /// Rows may be there of another program that no longer writes. The TTL attribute of the table is that of
    /// [`Names::purge_at`], or [`EXPIRES_AT`](crate::Record::EXPIRES_AT) if values have one.
    ///
    /// Another program may bring a tombstone back to life, and TTL would remove that row. A table that several Regions
    /// write has no TTL. So both need [`Settings::without_ttl`], and neither of these compiles:
    ///
    /// ```compile_fail,E0599
    /// const SETTINGS: fencepost::Settings = fencepost::Settings::own().shared_with_versioned_writers();
    /// ```
    ///
    /// ```compile_fail,E0599
    /// const SETTINGS: fencepost::Settings = fencepost::Settings::own().in_regions();
    /// ```
    #[must_use]
    pub const fn own() -> Self {
        Settings::of(OtherWriters::Nobody, Deletes::Expire, Regions::One)
    }

    /// A table in which TTL removes no tombstones. [`WithoutTtl`] takes its other writers, Regions and deletes.
    pub const fn without_ttl() -> WithoutTtl {
        WithoutTtl { other_writers: OtherWriters::Nobody, regions: Regions::One }
    }

    /// A table beside programs that do not always demand the version, that delete a row and create it again at the same
    /// version, or that replace it without a condition.
    ///
    /// Each write of this crate then also demands every attribute of the value as it was read, and goes as a transaction
    /// of one step, which costs twice as much. A delete removes the row, as with [`WithoutTtl::removed`], because a program
    /// that sets any version could make a live row look like a tombstone.
    ///
    /// It needs transactions, which a table with multi-Region strong consistency has not. None of these compiles:
    ///
    /// ```compile_fail,E0599
    /// const SETTINGS: fencepost::Settings = fencepost::Settings::open_to_any().swept();
    /// ```
    ///
    /// ```compile_fail,E0599
    /// const SETTINGS: fencepost::Settings = fencepost::Settings::open_to_any().kept();
    /// ```
    ///
    /// ```compile_fail,E0599
    /// const SETTINGS: fencepost::Settings = fencepost::Settings::open_to_any().in_regions();
    /// ```
    #[must_use]
    pub const fn open_to_any() -> Self {
        Settings::of(OtherWriters::Any, Deletes::Remove, Regions::One)
    }

    /// A table whose items decide about [holds](crate::Holds), such as orders. No other program writes it, and it has no TTL: its
    /// items are never deleted and never end, and the tombstones of burned attempts stay. A delete does not compile, and neither
    /// does an [`EXPIRES_AT`](crate::Record::EXPIRES_AT). A cancellation is an update.
    ///
    /// Each item says which attempt placed it. If TTL removed it, what was taken for it would be given back.
    ///
    /// ```compile_fail,E0080
    /// use fencepost::{Record, Settings, Table};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize, Record)]
    /// #[record(key = "orderId", settings = Settings::deciding())]
    /// struct Order { quantity: u64 }
    ///
    /// async fn delete(orders: Table<Order>) {
    ///     let _ = orders.delete("o-1").await;
    /// }
    /// # fn main() {
    /// #     fn compiled<F: Future>(_: fn(Table<Order>) -> F) {
    /// #         let poll: fn(std::pin::Pin<&mut F>, &mut std::task::Context<'_>) -> std::task::Poll<F::Output> = F::poll;
    /// #         println!("{poll:p}");
    /// #     }
    /// #     compiled(delete);
    /// # }
    /// ```
    #[must_use]
    pub const fn deciding() -> Self {
        let Settings(settings) = Settings::of(OtherWriters::Nobody, Deletes::Keep, Regions::One);
        Settings(layout::Settings { decides: true, ..settings })
    }

    /// No change moves the end of a value nearer.
    pub(crate) const fn with_ends_that_stay(self) -> Self {
        Settings(layout::Settings { keeps_ends: true, ..self.0 })
    }

    const fn of(other_writers: OtherWriters, deletes: Deletes, regions: Regions) -> Self {
        Settings(layout::Settings::of(other_writers, deletes, regions))
    }

    /// Sets the names of this crate's attributes in the table.
    #[must_use]
    pub const fn names(self, names: Names) -> Self {
        Settings(layout::Settings { names, ..self.0 })
    }

    /// Sets the version that a create makes: at least 1, which is the default. Take that of the other writers.
    #[must_use]
    pub const fn first_version(self, version: u64) -> Self {
        Settings(layout::Settings { first_version: version, ..self.0 })
    }

    /// Sets how many commits a row remembers the id of a write: R, from the [edit window](Settings::edit_window) to 128, and
    /// 16 by default. Every program that writes the table must use the same number, or a change may be applied twice. To change
    /// it, stop all writers, wait 15 minutes, and start the new build.
    ///
    /// After a lost answer, the resend learns the outcome of the first send while the row remembers it. Later, the
    /// answer is "unknown", never a guess. One id takes 16 bytes of the item, and a busy row may have 8 more. 16 is enough where
    /// writers decide on a version. Clients that edit an item again and again remove their own ids, so 16 is also enough for
    /// eight of them: of 400 edits with 20 lost answers, 2 were unknown. For edits of hot items by many clients, or by clients
    /// that edit it once, take 32 to 64.
    #[must_use]
    pub const fn remembered_writes(self, commits: u64) -> Self {
        Settings(layout::Settings { remembered: commits, ..self.0 })
    }

    /// Sets how many versions an [`Edit`](crate::Edit) may be late: W, at least 1, and 8 by default. An edit is refused, and
    /// sent again, if more than W - 1 other writes were committed since its writer saw the row.
    ///
    /// Take more than the commits per second times the age of the writer's view, and at most the
    /// [remembered writes](Settings::remembered_writes) less the commits in the time that a lost answer takes to be
    /// noticed.
    #[must_use]
    pub const fn edit_window(self, versions: u64) -> Self {
        Settings(layout::Settings { window: versions, ..self.0 })
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings::own()
    }
}

/// A table in which TTL removes no tombstones, before it is said how deletes go. [`Settings::without_ttl`] makes it.
///
/// ```
/// use fencepost::Settings;
///
/// const SWEPT: Settings = Settings::without_ttl().swept();
/// const REGIONAL: Settings = Settings::without_ttl().shared_with_versioned_writers().in_regions().removed();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "it says nothing of deletes yet: choose swept, kept or removed"]
pub struct WithoutTtl {
    other_writers: OtherWriters,
    regions: Regions,
}

impl WithoutTtl {
    /// Other programs write the table too. They demand the version in each write, and raise it. Their writes may drop the
    /// attributes of this crate.
    pub const fn shared_with_versioned_writers(self) -> Self {
        WithoutTtl { other_writers: OtherWriters::Versioned, ..self }
    }

    /// Several Regions write the table, which is a global table with multi-Region strong consistency (MRSC). Such a table
    /// has no transactions. It has no TTL either, so a `Record` with an [`EXPIRES_AT`](crate::Record::EXPIRES_AT) does not
    /// compile.
    pub const fn in_regions(self) -> Self {
        WithoutTtl { regions: Regions::Strong, ..self }
    }

    /// A delete leaves a tombstone, which a sweep (`maintenance::Task::Sweep`) removes after its time.
    #[must_use]
    pub const fn swept(self) -> Settings {
        Settings::of(self.other_writers, Deletes::Sweep, self.regions)
    }

    /// A delete leaves a tombstone for ever.
    #[must_use]
    pub const fn kept(self) -> Settings {
        Settings::of(self.other_writers, Deletes::Keep, self.regions)
    }

    /// A delete removes the row. It returns the version of no row; the next create starts again.
    ///
    /// A delete or a create with a lost answer is unknown. A create with a second copy that the network delivers after
    /// the delete, within 15 minutes of the first, is applied again.
    #[must_use]
    pub const fn removed(self) -> Settings {
        Settings::of(self.other_writers, Deletes::Remove, self.regions)
    }
}
