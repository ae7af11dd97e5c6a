//! [`Settings`]: how a table is set up beside the values in it. [`Layout`] is all of a table that the protocol needs.

use super::names::Names;
use crate::judge::TableRules;
use std::ops::Deref;

/// The settings of a table. The crate `fencepost` lets its users write only those that can hold together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    pub names: Names,
    pub first_version: u64,
    /// How many commits a row remembers an id: R.
    pub remembered: u64,
    /// How many versions an edit may be late: W.
    pub window: u64,
    pub other_writers: OtherWriters,
    pub deletes: Deletes,
    pub regions: Regions,
    /// Whether no change moves the end of a value nearer. A table of this crate's own knows that.
    pub keeps_ends: bool,
    /// Whether its rows decide about holds: each says which attempt placed it, and its tombstones stay.
    pub decides: bool,
}

impl Settings {
    /// The settings of a table that is written and cleared like this, with defaults for the rest.
    #[must_use]
    pub const fn of(other_writers: OtherWriters, deletes: Deletes, regions: Regions) -> Self {
        Settings {
            names: Names::DEFAULT,
            first_version: 1,
            remembered: 16,
            window: 8,
            other_writers,
            deletes,
            regions,
            keeps_ends: false,
            decides: false,
        }
    }

    /// Those of a table that no other program writes, and from which TTL removes tombstones.
    #[must_use]
    pub const fn own() -> Self {
        Settings::of(OtherWriters::Nobody, Deletes::Expire, Regions::One)
    }

    /// Whether a row may be removed at any time, by another program or by a delete of this crate. Then a row that
    /// refuses a create proves nothing about a copy that is still on its way.
    pub const fn rows_may_vanish(&self) -> bool {
        !matches!(self.other_writers, OtherWriters::Nobody) || matches!(self.deletes, Deletes::Remove)
    }

    /// Whether versions may repeat. A write then demands every attribute too, and its copies share a token.
    pub const fn demands_values(&self) -> bool {
        matches!(self.other_writers, OtherWriters::Any)
    }

    /// Whether writers in a crowd take tickets. A ticket is a write that does not raise the version, which other programs
    /// and Regions need not expect.
    pub const fn has_tickets(&self) -> bool {
        matches!((self.other_writers, self.regions), (OtherWriters::Nobody, Regions::One))
    }

    /// Whether the version that a delete made marks its tombstone. Where TTL removes tombstones, the time alone marks
    /// them, because no other program writes the row.
    pub fn marks_by_version(&self) -> bool {
        self.deletes != Deletes::Expire
    }

    /// Whether a time marks a tombstone that has no other mark. Tables that were set up otherwise before may have such
    /// tombstones, under the default name.
    pub fn marks_by_time(&self) -> bool {
        !self.marks_by_version() || self.names.purge_at == Names::DEFAULT.purge_at
    }
}

/// Which other programs write the rows of a table: programs that do not use this crate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OtherWriters {
    Nobody,
    /// They demand the version in each write, and raise it.
    Versioned,
    /// They write as they like.
    Any,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deletes {
    /// A delete leaves a tombstone, which TTL removes.
    Expire,
    /// A delete leaves a tombstone, which a sweep removes.
    Sweep,
    /// A delete leaves a tombstone for ever.
    Keep,
    /// A delete removes the row.
    Remove,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Regions {
    /// One Region writes. Replicas in other Regions are read only.
    One,
    /// Several Regions write, with strong consistency.
    Strong,
}

/// The most holds of a row. A row with so many refuses another one until some are settled.
pub const MOST_HOLDS: u64 = 100;

/// All that the protocol needs to know of a record.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub partition_key: &'static str,
    pub sort_key: Option<&'static str>,
    pub attributes: &'static [&'static str],
    pub expires_at: Option<&'static str>,
    /// The attributes that order and name an instance, where the newest wins. Only maintenance looks at them.
    pub instance: Option<[&'static str; 2]>,
    /// The attribute with the number of which rows of another table hold parts, if there is one.
    pub held: Option<&'static str>,
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
    pub const fn of_key(partition_key: &'static str) -> Self {
        let settings = Settings { window: 1, ..Settings::own() };
        Layout {
            partition_key,
            sort_key: None,
            attributes: &[],
            expires_at: None,
            instance: None,
            held: None,
            settings,
        }
    }

    /// Refuses impossible settings when the program is compiled.
    ///
    /// # Panics
    /// If they are impossible. The message says why.
    #[must_use]
    pub const fn checked(self) -> Self {
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
        assert!(!is(self.sort_key, self.partition_key), "the sort key has the name of the partition key");
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
        let is_own = matches!((self.settings.other_writers, regions), (OtherWriters::Nobody, Regions::One));
        if let Some(number) = self.held {
            assert!(contains(self.attributes, number), "the held number is not among the attributes of the Record");
            assert!(self.expires_at.is_none(), "an item with holds does not end: drop EXPIRES_AT");
            assert!(
                is_own && !matches!(self.settings.deletes, Deletes::Remove),
                "a table with holds is written by this crate alone, in one Region, and keeps tombstones"
            );
        }
        if self.settings.decides {
            assert!(self.expires_at.is_none(), "an item that decides about holds does not end: drop EXPIRES_AT");
            assert!(self.held.is_none(), "an item that decides about holds has no holds itself");
        }
        self
    }

    const fn is_key(&self, name: &str) -> bool {
        is(Some(self.partition_key), name) || is(self.sort_key, name)
    }

    /// The rules of the protocol for its rows.
    pub fn rules(&self) -> TableRules {
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
    pub fn ttl_of_values(&self) -> Option<&'static str> {
        self.expires_at.filter(|_| self.deletes == Deletes::Expire)
    }
}

pub const fn contains(mut names: &[&str], wanted: &str) -> bool {
    while let [name, others @ ..] = names {
        if is(Some(name), wanted) {
            return true;
        }
        names = others;
    }
    false
}

/// Whether the name is the wanted one. Strings cannot be compared by `==` in a constant.
pub const fn is(name: Option<&str>, wanted: &str) -> bool {
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
        let named = |names| with(Settings { names, ..Settings::own() });
        for layout in [
            LAYOUT,
            Layout { expires_at: Some("endsAt"), ..LAYOUT },
            with(Settings { remembered: 128, window: 128, ..Settings::own() }),
            with(Settings { remembered: 1, window: 1, ..Settings::own() }),
            with(Settings { first_version: (1 << 52) - 1, ..Settings::own() }),
            named(Names::DEFAULT.version("version")),
        ] {
            let _ = layout.checked();
        }
        for (layout, complaint) in [
            (with(Settings { window: 0, ..Settings::own() }), "edit_window is"),
            (with(Settings { window: 17, ..Settings::own() }), "edit_window is"),
            (with(Settings { remembered: 129, ..Settings::own() }), "at most 128"),
            (with(Settings { first_version: 0, ..Settings::own() }), "at least 1"),
            (with(Settings { first_version: 1 << 52, ..Settings::own() }), "no room"),
            (
                Layout {
                    expires_at: Some("endsAt"),
                    ..with(Settings::of(OtherWriters::Nobody, Deletes::Sweep, Regions::Strong))
                },
                "has no TTL",
            ),
            (Layout { expires_at: Some("end"), ..LAYOUT }, "EXPIRES_AT is not"),
            (Layout { attributes: &["orderId"], ..LAYOUT }, "is a key"),
            (Layout { attributes: &["total", ""], ..LAYOUT }, "is empty"),
            (named(Names::DEFAULT.version("")), "is empty"),
            (Layout { partition_key: "", ..LAYOUT }, "1 to 255 bytes"),
            (Layout { sort_key: Some(LONG), ..LAYOUT }, "1 to 255 bytes"),
            (Layout { sort_key: Some("orderId"), ..LAYOUT }, "the name of the partition key"),
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

    #[test]
    fn the_rules_of_a_table_follow_from_its_settings() {
        let with = |others, deletes, regions| Settings::of(others, deletes, regions);
        for (settings, vanish, repeat, tickets) in [
            (with(OtherWriters::Nobody, Deletes::Expire, Regions::One), false, false, true),
            (with(OtherWriters::Nobody, Deletes::Remove, Regions::One), true, false, true),
            (with(OtherWriters::Nobody, Deletes::Keep, Regions::Strong), false, false, false),
            (with(OtherWriters::Versioned, Deletes::Sweep, Regions::One), true, false, false),
            (with(OtherWriters::Any, Deletes::Sweep, Regions::One), true, true, false),
        ] {
            let rules = Layout { settings, ..Layout::of_key("id") }.rules();
            assert_eq!((rules.rows_may_vanish, rules.versions_may_repeat), (vanish, repeat), "{settings:?}");
            assert_eq!(settings.has_tickets(), tickets, "{settings:?}");
        }
        let ends = |expires_at, keeps_ends| {
            let settings = Settings { keeps_ends, ..Settings::own() };
            Layout { expires_at, settings, ..Layout::of_key("id") }.rules().values_may_end
        };
        assert!(ends(Some("a"), false) && !ends(Some("a"), true) && !ends(None, false));
        assert_eq!(Layout::of_key("id").window, 1);
    }
}
