//! [`Index`]: describes a secondary index of a table and the attributes in its rows.

use crate::layout::{Deletes, Settings, contains, is};
use crate::names::Names;
use crate::table::Record;

/// A secondary index of the table of a [`Record`]. Queries name it as a type.
///
/// The projection of an index decides which attributes a query can show. This is checked when the query is compiled.
///
/// - [`Index::Shown`] may have only attributes of the index: its own keys, those of the table, and the projected ones.
///   If the index does not project the whole item, write a second `Record` with the attributes of the index.
/// - Tombstones must be recognizable. They are if the index projects everything, or if one of its keys is an attribute
///   of the `Record`: a delete removes this attribute, which takes the row out of the index. There are none if deletes
///   [remove](crate::WithoutTtl::removed) the row. Otherwise the index must project the version, the end and the mark
///   of a tombstone ([`Names`]).
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// use fencepost::{Error, Index, InvalidCursor, Projection, Record, Store, Table};
///
/// #[derive(Serialize, Deserialize, Record)]
/// #[record(key = "orderId")]
/// # #[serde(rename_all = "camelCase")]
/// struct Order {
///     user_id: String,
///     created_at: String,
///     total: u64,
/// }
///
/// struct ByUser;
///
/// impl Index for ByUser {
///     type Record = Order;
///     type Shown = Order;
///     const NAME: &'static str = "byUser";
///     const PARTITION_KEY: &'static str = "userId";
///     const SORT_KEY: Option<&'static str> = Some("createdAt");
/// }
///
/// async fn newest(store: &Store, user: &str) -> Result<Vec<u64>, Error<InvalidCursor>> {
///     let orders: Table<Order> = store.table("orders");
///     let page = orders.query_index(ByUser, user).descending().limit(20).pages().next_page().await?;
///     Ok(page.into_iter().flat_map(|page| page.items).map(|order| order.value.total).collect())
/// }
/// ```
///
/// An index of only the keys cannot show the whole order. This does not compile:
///
/// ```compile_fail,E0080
/// # use serde::{Deserialize, Serialize};
/// # use fencepost::{Index, Projection, Record, Store, Table};
/// # #[derive(Serialize, Deserialize, Record)]
/// # #[record(key = "orderId")]
/// # #[serde(rename_all = "camelCase")]
/// # struct Order { user_id: String, created_at: String, total: u64 }
/// # struct ByUser;
/// impl Index for ByUser {
///     type Record = Order;
///     type Shown = Order;
///     const NAME: &'static str = "byUser";
///     const PARTITION_KEY: &'static str = "userId";
///     const SORT_KEY: Option<&'static str> = Some("createdAt");
///     const PROJECTION: Projection = Projection::KeysOnly;
/// }
/// # fn main() {
/// #     let client = aws_sdk_dynamodb::Client::from_conf(aws_sdk_dynamodb::Config::builder().build());
/// let orders: Table<Order> = Store::new(&client).table("orders");
/// orders.query_index(ByUser, "u-1");
/// # }
/// ```
pub trait Index {
    /// The `Record` of the table.
    type Record: Record;
    /// The type shown by a query of this index: the `Record` of the table, or one with fewer attributes and the same
    /// keys.
    type Shown: Record;
    /// The name of the index.
    const NAME: &'static str;
    /// The name of its partition key attribute.
    const PARTITION_KEY: &'static str;
    /// The name of its sort key attribute, if it has one.
    const SORT_KEY: Option<&'static str> = None;
    /// Whether it is a local index. A local index has the partitions of the table in another order, with strongly
    /// consistent reads. A global one has partitions of its own. Its rows may lag behind those of the table, usually by
    /// less than a second.
    const IS_LOCAL: bool = false;
    /// Its attributes beside its keys and those of the table.
    const PROJECTION: Projection = Projection::All;
}

/// The attributes of an index beside its keys and those of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Projection {
    /// All attributes (`ALL`).
    All,
    /// None (`KEYS_ONLY`).
    KeysOnly,
    /// These (`INCLUDE`).
    Include(&'static [&'static str]),
}

impl Projection {
    /// Whether an index with these keys has the attribute.
    const fn has(self, keys: [Option<&str>; 2], attribute: &str) -> bool {
        let [partition, sort] = keys;
        match self {
            _ if is(partition, attribute) || is(sort, attribute) => true,
            Projection::All => true,
            Projection::KeysOnly => false,
            Projection::Include(names) => contains(names, attribute),
        }
    }
}

/// Whether the index has each attribute of its `Shown` record.
pub(super) const fn shows_all<I: Index>() -> bool {
    let mut rest = <I::Shown as Record>::ATTRIBUTES;
    while let [attribute, others @ ..] = rest {
        if !I::PROJECTION.has([Some(I::PARTITION_KEY), I::SORT_KEY], attribute) {
            return false;
        }
        rest = others;
    }
    true
}

/// Whether no tombstone can be taken for an item in the index.
pub(super) const fn shows_tombstones<I: Index>() -> bool {
    let keys = [Some(I::PARTITION_KEY), I::SORT_KEY];
    let Settings { names: Names { version, purge_at, buried, .. }, deletes, .. } = <I::Record as Record>::SETTINGS;
    let all_marks =
        I::PROJECTION.has(keys, version) && I::PROJECTION.has(keys, purge_at) && I::PROJECTION.has(keys, buried);
    let leaves_none = matches!(deletes, Deletes::Remove);
    leaves_none || all_marks || leaves_on_delete::<I::Record>(keys[0]) || leaves_on_delete::<I::Record>(keys[1])
}

/// Whether a delete removes this key of an index. A tombstone keeps the attribute of the expiry time.
const fn leaves_on_delete<T: Record>(key: Option<&str>) -> bool {
    match key {
        Some(key) => contains(T::ATTRIBUTES, key) && !is(T::EXPIRES_AT, key),
        None => false,
    }
}

/// Whether both records have the same keys of the table, and a local index has the table's partitions.
pub(super) const fn has_the_keys_of_its_table<I: Index>() -> bool {
    let table = <I::Record as Record>::PARTITION_KEY;
    let same_sort = match (<I::Record as Record>::SORT_KEY, <I::Shown as Record>::SORT_KEY) {
        (Some(one), other) => is(other, one),
        (None, other) => other.is_none(),
    };
    let fits = !I::IS_LOCAL || is(Some(I::PARTITION_KEY), table) && I::SORT_KEY.is_some();
    same_sort && fits && is(Some(<I::Shown as Record>::PARTITION_KEY), table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_has_its_keys_and_what_it_projects() {
        let keys = [Some("userId"), Some("createdAt")];
        for (projection, total, lines) in [
            (Projection::All, true, true),
            (Projection::KeysOnly, false, false),
            (Projection::Include(&["total"]), true, false),
        ] {
            assert!(projection.has(keys, "userId") && projection.has(keys, "createdAt"));
            assert_eq!((projection.has(keys, "total"), projection.has(keys, "lines")), (total, lines));
        }
    }

    /// A record of this table with these attributes; the braces have the other differences from the defaults.
    macro_rules! record {
        ($name:ident, $key:literal, $attributes:expr, {$($more:item)*}) => {
            #[derive(serde::Serialize, serde::Deserialize)]
            struct $name;

            impl Record for $name {
                const PARTITION_KEY: &'static str = $key;
                const ATTRIBUTES: &'static [&'static str] = $attributes;
                $($more)*
            }
        };
    }

    /// The verdict of `$check` on an index of `$record` that shows `$shown`, with this partition key; the braces have
    /// the other differences from the defaults.
    macro_rules! says {
        ($check:ident, $record:ty, $shown:ty, $partition:literal, {$($more:item)*}) => {{
            struct Indexed;

            impl Index for Indexed {
                type Record = $record;
                type Shown = $shown;
                const NAME: &'static str = "index";
                const PARTITION_KEY: &'static str = $partition;
                $($more)*
            }
            $check::<Indexed>()
        }};
    }

    record!(Order, "orderId", &["userId", "day", "total", "endsAt"], {
        const EXPIRES_AT: Option<&'static str> = Some("endsAt");
    });
    record!(Removed, "orderId", &["userId"], {
        const SETTINGS: Settings = Settings::without_ttl().removed();
    });
    record!(Total, "orderId", &["userId", "total"], {});
    record!(Elsewhere, "basketId", &["userId"], {});
    record!(Line, "orderId", &["userId"], {
        const SORT_KEY: Option<&'static str> = Some("line");
    });
    record!(Lot, "orderId", &["userId"], {
        const SORT_KEY: Option<&'static str> = Some("lot");
    });

    #[test]
    fn an_index_shows_records_of_which_it_has_every_attribute() {
        assert!(says!(shows_all, Order, Order, "userId", {}));
        assert!(says!(shows_all, Order, Total, "userId", {
            const PROJECTION: Projection = Projection::Include(&["total"]);
        }));
        assert!(says!(shows_all, Order, Total, "total", {
            const SORT_KEY: Option<&'static str> = Some("userId");
            const PROJECTION: Projection = Projection::KeysOnly;
        }));
        assert!(!says!(shows_all, Order, Total, "userId", {
            const PROJECTION: Projection = Projection::KeysOnly;
        }));
        assert!(!says!(shows_all, Order, Order, "userId", {
            const PROJECTION: Projection = Projection::Include(&["total"]);
        }));
    }

    #[test]
    fn a_tombstone_leaves_an_index_whose_key_a_delete_removes() {
        assert!(says!(shows_tombstones, Order, Order, "userId", {
            const PROJECTION: Projection = Projection::KeysOnly;
        }));
        assert!(says!(shows_tombstones, Order, Order, "foreign", {
            const SORT_KEY: Option<&'static str> = Some("day");
            const PROJECTION: Projection = Projection::KeysOnly;
        }));
        assert!(!says!(shows_tombstones, Order, Order, "foreign", {
            const SORT_KEY: Option<&'static str> = Some("endsAt"); // a tombstone has it too
            const PROJECTION: Projection = Projection::KeysOnly;
        }));
        assert!(says!(shows_tombstones, Removed, Removed, "foreign", {
            const PROJECTION: Projection = Projection::KeysOnly;
        }));
    }

    #[test]
    fn a_tombstone_that_stays_in_an_index_is_known_by_all_of_its_marks() {
        assert!(says!(shows_tombstones, Order, Order, "foreign", {}));
        assert!(says!(shows_tombstones, Order, Order, "foreign", {
            const PROJECTION: Projection = Projection::Include(&["_version", "_purgeAt", "_buried"]);
        }));
        assert!(!says!(shows_tombstones, Order, Order, "foreign", {
            const PROJECTION: Projection = Projection::Include(&["_purgeAt", "_buried"]);
        }));
        assert!(!says!(shows_tombstones, Order, Order, "foreign", {
            const PROJECTION: Projection = Projection::Include(&["_version", "_buried"]);
        }));
        assert!(!says!(shows_tombstones, Order, Order, "foreign", {
            const PROJECTION: Projection = Projection::Include(&["_version", "_purgeAt"]);
        }));
    }

    #[test]
    fn what_an_index_shows_has_the_keys_of_the_table() {
        assert!(says!(has_the_keys_of_its_table, Order, Total, "userId", {}));
        assert!(says!(has_the_keys_of_its_table, Line, Line, "userId", {}));
        assert!(!says!(has_the_keys_of_its_table, Order, Elsewhere, "userId", {}));
        assert!(!says!(has_the_keys_of_its_table, Order, Line, "userId", {}));
        assert!(!says!(has_the_keys_of_its_table, Line, Order, "userId", {}));
        assert!(!says!(has_the_keys_of_its_table, Line, Lot, "userId", {}));
    }

    #[test]
    fn a_local_index_has_the_partitions_of_the_table_in_an_order_of_its_own() {
        assert!(says!(has_the_keys_of_its_table, Line, Line, "orderId", {
            const SORT_KEY: Option<&'static str> = Some("day");
            const IS_LOCAL: bool = true;
        }));
        assert!(!says!(has_the_keys_of_its_table, Line, Line, "userId", {
            const SORT_KEY: Option<&'static str> = Some("day");
            const IS_LOCAL: bool = true;
        }));
        assert!(!says!(has_the_keys_of_its_table, Line, Line, "orderId", {
            const IS_LOCAL: bool = true;
        }));
    }
}
