//! [`Settings`]: how a table is set up beside the values in it. [`Layout`] is all of a table that the protocol needs.

use crate::names::Names;
use fencepost_core::TableRules;
use std::ops::Deref;

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
pub struct Settings {
    pub(crate) names: Names,
    pub(crate) first_version: u64,
    /// How many commits a row remembers an id: R.
    pub(crate) remembered: u64,
    /// How many versions an edit may be late: W.
    pub(crate) window: u64,
    pub(crate) other_writers: OtherWriters,
    pub(crate) deletes: Deletes,
    pub(crate) regions: Regions,
    /// Whether no change moves the end of a value nearer. A table of this crate's own knows that.
    pub(crate) keeps_ends: bool,
}

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

    const fn of(other_writers: OtherWriters, deletes: Deletes, regions: Regions) -> Self {
        let names = Names::DEFAULT;
        Settings {
            names,
            first_version: 1,
            remembered: 16,
            window: 8,
            other_writers,
            deletes,
            regions,
            keeps_ends: false,
        }
    }

    /// Sets the names of this crate's attributes in the table.
    #[must_use]
    pub const fn names(self, names: Names) -> Self {
        Settings { names, ..self }
    }

    /// Sets the version that a create makes: at least 1, which is the default. Take that of the other writers.
    #[must_use]
    pub const fn first_version(self, version: u64) -> Self {
        Settings { first_version: version, ..self }
    }

    /// Sets how many commits a row remembers the id of a write: R, from the [edit window](Settings::edit_window) to 128, and
    /// 16 by default. Every program that writes the table must use the same number, or a change may be applied twice. To change
    /// it, stop all writers, wait 15 minutes, and start the new build.
    ///
    /// After a lost answer, the resend learns the outcome of the first send while the row remembers it. Later, the
    /// answer is "unknown", never a guess. One id takes 16 bytes of the item. 16 is enough where writers decide on a
    /// version. For edits of hot items, take 32 to 64.
    #[must_use]
    pub const fn remembered_writes(self, commits: u64) -> Self {
        Settings { remembered: commits, ..self }
    }

    /// Sets how many versions an [`Edit`](crate::Edit) may be late: W, at least 1, and 8 by default. An edit is refused, and
    /// sent again, if more than W - 1 other writes were committed since its writer saw the row.
    ///
    /// Take more than the commits per second times the age of the writer's view, and at most the
    /// [remembered writes](Settings::remembered_writes) less the commits in the time that a lost answer takes to be
    /// noticed.
    #[must_use]
    pub const fn edit_window(self, versions: u64) -> Self {
        Settings { window: versions, ..self }
    }

    /// Whether a row may be removed at any time, by another program or by a delete of this crate. Then a row that
    /// refuses a create proves nothing about a copy that is still on its way.
    pub(crate) const fn rows_may_vanish(&self) -> bool {
        !matches!(self.other_writers, OtherWriters::Nobody) || matches!(self.deletes, Deletes::Remove)
    }

    /// Whether versions may repeat. A write then demands every attribute too, and its copies share a token.
    pub(crate) const fn demands_values(&self) -> bool {
        matches!(self.other_writers, OtherWriters::Any)
    }

    /// Whether writers in a crowd take tickets. A ticket is a write that does not raise the version, which other programs
    /// and Regions need not expect.
    pub(crate) const fn has_tickets(&self) -> bool {
        matches!((self.other_writers, self.regions), (OtherWriters::Nobody, Regions::One))
    }

    /// Whether the version that a delete made marks its tombstone. Where TTL removes tombstones, the time alone marks
    /// them, because no other program writes the row.
    pub(crate) fn marks_by_version(&self) -> bool {
        self.deletes != Deletes::Expire
    }

    /// Whether a time marks a tombstone that has no other mark. Tables that were set up otherwise before may have such
    /// tombstones, under the default name.
    pub(crate) fn marks_by_time(&self) -> bool {
        !self.marks_by_version() || self.names.purge_at == Names::DEFAULT.purge_at
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

    /// A delete leaves a tombstone, which a [sweep](crate::maintenance::Task::Sweep) removes after its time.
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

/// Which other programs write the rows of a table: programs that do not use this crate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OtherWriters {
    Nobody,
    /// [`WithoutTtl::shared_with_versioned_writers`].
    Versioned,
    /// [`Settings::open_to_any`].
    Any,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deletes {
    /// [`Settings::own`].
    Expire,
    /// [`WithoutTtl::swept`].
    Sweep,
    /// [`WithoutTtl::kept`].
    Keep,
    /// [`WithoutTtl::removed`].
    Remove,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Regions {
    /// One Region writes. Replicas in other Regions are read only.
    One,
    /// [`WithoutTtl::in_regions`].
    Strong,
}

/// All that the protocol needs to know of a [`Record`](crate::Record).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub partition_key: &'static str,
    pub sort_key: Option<&'static str>,
    pub attributes: &'static [&'static str],
    pub expires_at: Option<&'static str>,
    /// The attributes that order and name an instance, where the newest wins. Only maintenance looks at them.
    pub instance: Option<[&'static str; 2]>,
    pub settings: Settings,
}

impl Deref for Layout {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl Layout {
    /// A table of which only the partition key is known. No edit is late in it.
    pub(crate) const fn of_key(partition_key: &'static str) -> Self {
        let settings = Settings::own().edit_window(1);
        Layout { partition_key, sort_key: None, attributes: &[], expires_at: None, instance: None, settings }
    }

    /// Refuses impossible settings when the program is compiled.
    pub(crate) const fn checked(self) -> Self {
        let Settings { names, first_version, remembered, window, regions, .. } = self.settings;
        assert!(1 <= window && window <= remembered, "edit_window is 1 to remembered_writes");
        assert!(remembered <= 128, "remembered_writes is at most 128");
        assert!(first_version >= 1, "first_version is at least 1");
        assert!(first_version < 1 << 52, "first_version leaves no room for later versions");
        assert!(
            self.expires_at.is_none() || matches!(regions, Regions::One),
            "a table with multi-Region strong consistency has no TTL: drop EXPIRES_AT"
        );
        let mut keys: &[Option<&str>] = &[Some(self.partition_key), self.sort_key];
        while let [key, others @ ..] = keys {
            if let Some(key) = key {
                assert!(!key.is_empty() && key.len() <= 255, "the name of a key has 1 to 255 bytes");
            }
            keys = others;
        }
        assert!(!contains(self.attributes, "") && !contains(&names.all(), ""), "the name of an attribute is empty");
        let mut ours: &[&str] = &names.all();
        while let [name, others @ ..] = ours {
            assert!(!contains(others, name), "the names of the settings give one name to two attributes");
            assert!(!self.is_key(name), "the names of the settings give an attribute the name of a key of the table");
            ours = others;
        }
        let mut attributes = self.attributes;
        while let [name, others @ ..] = attributes {
            assert!(!self.is_key(name), "an attribute of the Record is a key of the table");
            assert!(!contains(&names.all(), name), "an attribute of the Record has the name of one of this crate's");
            attributes = others;
        }
        if let Some(name) = self.expires_at {
            assert!(contains(self.attributes, name), "EXPIRES_AT is not among the attributes of the Record");
        }
        self
    }

    const fn is_key(&self, name: &str) -> bool {
        is(Some(self.partition_key), name) || is(self.sort_key, name)
    }

    /// The rules of the protocol for its rows.
    pub(crate) fn rules(&self) -> TableRules {
        TableRules {
            remembered: self.remembered,
            rows_may_vanish: self.rows_may_vanish(),
            versions_may_repeat: self.demands_values(),
            values_may_end: self.values_may_end(),
        }
    }

    /// Whether another client may end a value just after its create.
    fn values_may_end(&self) -> bool {
        self.expires_at.is_some() && !self.keeps_ends
    }

    /// The attribute at which TTL looks, beside the end of a tombstone.
    pub(crate) fn ttl_of_values(&self) -> Option<&'static str> {
        self.expires_at.filter(|_| self.deletes == Deletes::Expire)
    }
}

pub(crate) const fn contains(mut names: &[&str], wanted: &str) -> bool {
    while let [name, others @ ..] = names {
        if is(Some(name), wanted) {
            return true;
        }
        names = others;
    }
    false
}

/// Whether the name is the wanted one. Strings cannot be compared by `==` in a constant.
pub(crate) const fn is(name: Option<&str>, wanted: &str) -> bool {
    let Some(name) = name else { return false };
    let (mut name, mut wanted) = (name.as_bytes(), wanted.as_bytes());
    while let ([one, others @ ..], [other, rest @ ..]) = (name, wanted) {
        if *one != *other {
            return false;
        }
        (name, wanted) = (others, rest);
    }
    name.is_empty() && wanted.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_equal_only_as_a_whole() {
        assert!(is(Some("userId"), "userId"));
        for other in [None, Some(""), Some("user"), Some("userIds"), Some("userid")] {
            assert!(!is(other, "userId"), "{other:?}");
        }
        assert!(contains(&["a", "b"], "b") && !contains(&["a", "b"], "c"));
    }

    /// In a program, each of these panics ends the build.
    #[test]
    fn a_layout_that_cannot_hold_is_refused() {
        const LAYOUT: Layout =
            Layout { attributes: &["total", "endsAt"], sort_key: Some("line"), ..Layout::of_key("orderId") };
        const LONG: &str = match str::from_utf8(&[b'n'; 256]) {
            Ok(name) => name,
            Err(_) => "",
        };
        let with = |settings| Layout { settings, ..LAYOUT };
        let named = |names| with(Settings::own().names(names));
        for layout in [
            LAYOUT,
            Layout { expires_at: Some("endsAt"), ..LAYOUT },
            with(Settings::own().remembered_writes(128).edit_window(128)),
            with(Settings::own().remembered_writes(1).edit_window(1)),
            with(Settings::own().first_version((1 << 52) - 1)),
            named(Names::DEFAULT.version("version")),
        ] {
            layout.checked();
        }
        for (layout, complaint) in [
            (with(Settings::own().edit_window(0)), "edit_window is"),
            (with(Settings::own().edit_window(17)), "edit_window is"),
            (with(Settings::own().remembered_writes(129)), "at most 128"),
            (with(Settings::own().first_version(0)), "at least 1"),
            (with(Settings::own().first_version(1 << 52)), "no room"),
            (Layout { expires_at: Some("endsAt"), ..with(Settings::without_ttl().in_regions().swept()) }, "has no TTL"),
            (Layout { expires_at: Some("end"), ..LAYOUT }, "EXPIRES_AT is not"),
            (Layout { attributes: &["orderId"], ..LAYOUT }, "is a key"),
            (Layout { attributes: &["total", ""], ..LAYOUT }, "is empty"),
            (named(Names::DEFAULT.version("")), "is empty"),
            (Layout { partition_key: "", ..LAYOUT }, "1 to 255 bytes"),
            (Layout { sort_key: Some(LONG), ..LAYOUT }, "1 to 255 bytes"),
            (Layout { attributes: &["total", "line"], ..LAYOUT }, "is a key"),
            (Layout { attributes: &["_writes"], ..LAYOUT }, "one of this crate's"),
            (Layout { attributes: &["v"], ..named(Names::DEFAULT.version("v")) }, "one of this crate's"),
            (named(Names::DEFAULT.version("orderId")), "the name of a key"),
            (named(Names::DEFAULT.version("line")), "the name of a key"),
            (named(Names::DEFAULT.version("_fence")), "to two attributes"),
        ] {
            let refused = std::panic::catch_unwind(|| layout.checked()).expect_err(complaint);
            let reason = refused.downcast_ref::<&str>().expect("a reason");
            assert!(reason.contains(complaint), "{reason}");
        }
    }
}
