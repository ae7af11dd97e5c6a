//! `rows`: any attributes as rows of four tables with different settings, as leases and as mappings.
//!
//! Each is a state or a `CorruptItem`. The judge and the operator's `explain` agree with the operations. A write on top
//! of a row reads back.

use crate::input::Input;
use fencepost::maintenance::{Kind, explain};
use fencepost::testing::{
    AsKind, Base, ReadRow, SentWrite, TableRules, Trace, Verdict, WriteId, advanced_row, first_row, judge, read_lease,
    read_mapping, read_row, seen_row,
};
use fencepost::{AttributeValue, Attributes, Failure, FailureKind, Names, Record, Settings, Timestamp};
use functions::mapping::Mapping;
use functions::product::{Product, new_product};
use serde::{Deserialize, Serialize};

macro_rules! table {
    ($(#[$doc:meta])* $name:ident, $remembered:literal, $settings:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
        pub struct $name {
            pub a: String,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub b: Option<u64>,
        }

        impl Record for $name {
            const PARTITION_KEY: &'static str = "id";
            const ATTRIBUTES: &'static [&'static str] = &["a", "b"];
            const SETTINGS: Settings = $settings.remembered_writes($remembered);
        }

        impl Made for $name {
            const REMEMBERED: u64 = $remembered;

            fn made(input: &mut Input) -> Self {
                $name { a: input.text(), b: input.flag().then(|| input.number()) }
            }
        }
    };
}

table!(
    /// The defaults.
    Plain, 16, Settings::own()
);
table!(
    /// Beside programs that raise the version.
    Shared, 16, Settings::without_ttl().shared_with_versioned_writers().swept()
);
table!(
    /// With other names, and tombstones that stay.
    Renamed, 3, Settings::without_ttl()
        .kept()
        .names(Names::DEFAULT.version("version").purge_at("ttl").fence("f"))
        .edit_window(2)
);

pub trait Made: Record + Clone + PartialEq + std::fmt::Debug {
    const REMEMBERED: u64;

    fn made(input: &mut Input) -> Self;
}

impl Made for Product {
    const REMEMBERED: u64 = 64;

    fn made(input: &mut Input) -> Self {
        let now = Timestamp::from(crate::running::now());
        new_product(i64::from(input.byte()), i64::from(input.byte()), now)
    }
}

/// The names with a meaning in one of the tables.
const NAMES: &[&str] = &[
    "_version",
    "_incarnation",
    "_writes",
    "_purgeAt",
    "_buried",
    "_fence",
    "a",
    "b",
    "version",
    "ttl",
    "f",
    "stock",
    "token",
    "renewals",
    "holder",
    "expiresAt",
    "acquireId",
    "instanceId",
    "creationTimestamp",
    "cellId",
];

pub fn play(input: &[u8]) {
    let mut drawn = Input::new(input);
    match drawn.below(4) {
        0 => in_table::<Plain>(&mut drawn),
        1 => in_table::<Shared>(&mut drawn),
        2 => in_table::<Renamed>(&mut drawn),
        _ => in_table::<Product>(&mut drawn),
    }
}

fn in_table<T: Made>(input: &mut Input) {
    let id = WriteId::from_bytes(input.id());
    let mut row = if input.flag() { Attributes::new() } else { first_row(&T::made(input), id).expect("a row") };
    if let Ok(first) = read_row::<T>(&row)
        && !row.is_empty()
    {
        assert_eq!(first.at.incarnation, id.as_incarnation());
    }
    // Damage, or the writes of other programs and other builds.
    row.extend(input.attributes(NAMES));
    if input.flag() {
        row.insert("_writes".to_owned(), memory(input));
    }
    check_others(&row);
    check(&row, &read_row::<T>(&row), id);
    // Writes on top of it, as long as it can be read.
    for _ in 0..input.below(6) {
        let (value, by) = (T::made(input), WriteId::from_bytes(input.id()));
        let Ok(before) = read_row::<T>(&row) else { break };
        row = match advanced_row(&row, &value, by) {
            Ok(row) => row,
            Err(Failure { kind: FailureKind::CorruptItem { .. }, .. }) => break,
            Err(other) => panic!("{other:?}"),
        };
        let after = read_row::<T>(&row).expect("what this crate has written, it reads");
        check_write(&before, &after, &value, by);
        check(&row, &Ok(after), by);
    }
}

/// A memory as rows have it, or nearly.
fn memory(input: &mut Input) -> AttributeValue {
    let entry = |input: &mut Input| {
        let name = if input.below(16) == 15 { input.text() } else { WriteId::from_bytes(input.id()).name() };
        let at = if input.below(16) == 15 { input.value(0) } else { AttributeValue::N(input.byte().to_string()) };
        (name, at)
    };
    AttributeValue::M((0..input.below(6)).map(|_| entry(input)).collect())
}

fn check<T: Made>(row: &Attributes, read: &Result<ReadRow<T>, Failure>, id: WriteId) {
    let seen = seen_row::<T>(row);
    let explained = explain(row, T::SETTINGS, Timestamp::from(crate::running::now()));
    assert!(!explained.sentences.is_empty());
    let read = match read {
        Ok(read) => read,
        Err(Failure { kind: FailureKind::CorruptItem { reason }, .. }) => return assert!(!reason.is_empty()),
        Err(other) => panic!("{other:?}"),
    };
    let seen = seen.expect("what is read is seen");
    assert_eq!((seen.version, seen.incarnation, seen.fence), (read.at.version, read.at.incarnation, read.fence));
    assert!(seen.memory.is_none_or(|memory| memory == read.memory));
    assert_eq!(read.at.incarnation.is_foreign(), !row.contains_key("_incarnation"));
    assert!(read.has_version || read.at.version.get() == 0);
    let expected: &[Kind] = match &read.value {
        None => &[Kind::Tombstone],
        Some(_) if read.at.incarnation.is_foreign() => &[Kind::Foreign],
        Some(_) => &[Kind::Live, Kind::Tombstone],
    };
    // The operator is told about every mark of a delete, also where it means nothing, and about leases and mappings, which
    // are no rows of such a table.
    let deletes = T::SETTINGS.names(Names::DEFAULT).edit_window(8).remembered_writes(16);
    let is_marked = deletes == Settings::own() && row.contains_key("_buried");
    let has = |name: &&str| row.contains_key(*name);
    let is_another = read.at.incarnation.is_foreign() && ["_purgeAt", "instanceId", "token"].iter().any(has);
    assert!(is_marked || is_another || expected.contains(&explained.kind), "{explained:?}: {read:?}");
    if let (Kind::Live, Some(version)) = (explained.kind, explained.version) {
        assert_eq!(version, read.at.version.get());
    }
    check_pruning(read, id);
}

/// A row forgets only ids without further use to a judge.
fn check_pruning<T: Made>(read: &ReadRow<T>, by: WriteId) {
    let removed = read.memory.prunable(read.at.version, T::REMEMBERED, by, 0);
    assert!(removed.len() <= 4);
    for id in removed {
        let trace = read.memory.get(id).expect("only what is there is removed");
        assert!(trace.version().get() + T::REMEMBERED <= read.at.version.get() + 1, "{trace:?} is too young");
    }
}

/// A write raises the version by one, stays in the memory of the row, and is seen as landed.
fn check_write<T: Made>(before: &ReadRow<T>, after: &ReadRow<T>, value: &T, by: WriteId) {
    assert_eq!(after.value.as_ref(), Some(value));
    assert_eq!(after.at.version, before.at.version.next());
    assert_eq!(after.memory.get(by), Some(Trace::Applied(before.at.version)));
    if !before.at.incarnation.is_foreign() {
        assert_eq!(after.at.incarnation, before.at.incarnation);
    }
    let on = Base::Row { version: before.at.version, window: 1, incarnation: before.at.incarnation };
    let rules = TableRules {
        remembered: T::REMEMBERED,
        rows_may_vanish: false,
        versions_may_repeat: false,
        values_may_end: false,
    };
    let sent = SentWrite { id: by, on, fence: None, rules };
    let seen = fencepost::testing::SeenRow {
        version: after.at.version,
        incarnation: after.at.incarnation,
        memory: Some(after.memory.clone()),
        fence: after.fence,
        ends_at: None,
    };
    assert_eq!(judge(&sent, Some(&seen)), Verdict::Landed(after.at.version));
}

fn check_others(row: &Attributes) {
    match read_lease(row) {
        Ok(lease) => {
            assert_eq!(row["token"].as_n().and_then(|token| token.parse().ok()), Some(lease.token));
            assert_eq!(row.get("holder").and_then(|holder| holder.as_s()), lease.holder.as_ref());
        }
        Err(Failure { kind: FailureKind::CorruptItem { reason }, .. }) => assert!(!reason.is_empty()),
        Err(other) => panic!("{other:?}"),
    }
    match read_mapping::<Mapping>(row) {
        Ok((key, instance)) => {
            assert_eq!(instance.is_none(), row.contains_key("_purgeAt"));
            if let Some(instance) = instance {
                assert_eq!((instance.creation_timestamp, Some(instance.instance_id)), (key.order, key.name));
            }
        }
        Err(Failure { kind: FailureKind::CorruptItem { reason }, .. }) => assert!(!reason.is_empty()),
        Err(other) => panic!("{other:?}"),
    }
}
