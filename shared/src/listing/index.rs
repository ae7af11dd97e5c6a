//! [`Index`]: describes a secondary index of a table and the attributes in its rows.

use crate::table::Record;
use fencepost_core::Names;
use fencepost_core::format::layout::{Deletes, contains, is};

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
/// #[serde(rename_all = "camelCase")]
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
    /// The type shown by a query: the `Record` of the table, or one with fewer attributes and the same keys.
    type Shown: Record;
    /// The name of the index.
    const NAME: &'static str;
    /// The name of its partition key attribute.
    const PARTITION_KEY: &'static str;
    /// The name of its sort key attribute, if it has one.
    const SORT_KEY: Option<&'static str> = None;
    /// The further attributes of its partition key. A global index may have up to four in all. A query names a value of
    /// each: `query_index(ByRegion, ("tenant-7", "eu"))`.
    const MORE_PARTITION_KEYS: &'static [&'static str] = &[];
    /// The further attributes of its sort key, up to four in all, in their order. A query bounds them from the left
    /// ([`Sort::then`](crate::Sort::then)).
    const MORE_SORT_KEYS: &'static [&'static str] = &[];
    /// Whether it is a local index. A local index has the partitions of the table in another order, with strongly
    /// consistent reads. A global one has partitions of its own. Its rows lag behind those of the table.
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

/// The names of the attributes of a partition key, and from [`SORT`] on those of a sort key.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.DesignPattern.MultiAttributeKeys.html>
pub(crate) type Keys = [Option<&'static str>; 8];

/// Where the sort key begins.
pub(crate) const SORT: usize = 4;

pub(super) const fn keys_of<T: Record>() -> Keys {
    keys(T::PARTITION_KEY, &[], T::SORT_KEY, &[])
}

pub(crate) const fn keys_of_index<I: Index>() -> Keys {
    keys(I::PARTITION_KEY, I::MORE_PARTITION_KEYS, I::SORT_KEY, I::MORE_SORT_KEYS)
}

const fn keys(
    partition: &'static str,
    mut more: &'static [&'static str],
    sort: Option<&'static str>,
    mut more_sort: &'static [&'static str],
) -> Keys {
    assert!(more.len() < SORT && more_sort.len() < SORT, "a key of an index has at most four attributes");
    assert!(sort.is_some() || more_sort.is_empty(), "MORE_SORT_KEYS follow a SORT_KEY");
    let mut keys = [None; 8];
    (keys[0], keys[SORT]) = (Some(partition), sort);
    while let [others @ .., name] = more {
        (keys[more.len()], more) = (Some(*name), others);
    }
    while let [others @ .., name] = more_sort {
        (keys[SORT + more_sort.len()], more_sort) = (Some(*name), others);
    }
    keys
}

const fn is_one_of(keys: Keys, name: &str) -> bool {
    let mut keys: &[Option<&str>] = &keys;
    while let [key, others @ ..] = keys {
        if is(*key, name) {
            return true;
        }
        keys = others;
    }
    false
}

impl Projection {
    const fn has(self, keys: Keys, attribute: &str) -> bool {
        match self {
            _ if is_one_of(keys, attribute) => true,
            Projection::All => true,
            Projection::KeysOnly => false,
            Projection::Include(names) => contains(names, attribute),
        }
    }

    pub(super) const fn has_all(self, keys: Keys, mut attributes: &[&str]) -> bool {
        while let [attribute, others @ ..] = attributes {
            if !self.has(keys, attribute) {
                return false;
            }
            attributes = others;
        }
        true
    }
}

/// Whether no tombstone of the table of `T` can be taken for an item in an index with these keys.
pub(super) const fn shows_tombstones<T: Record>(keys: Keys, projection: Projection) -> bool {
    matches!(T::SETTINGS.0.deletes, Deletes::Remove)
        || has_all_marks::<T>(keys, projection)
        || leaves_on_delete::<T>(keys)
}

/// Whether an index with these keys has all that tells a tombstone. Otherwise, if it is usable, it has no tombstones.
pub(super) const fn has_all_marks<T: Record>(keys: Keys, projection: Projection) -> bool {
    let Names { version, purge_at, buried, .. } = T::SETTINGS.0.names;
    projection.has_all(keys, &[version, purge_at, buried])
}

/// Whether a delete removes one of these keys of an index. A tombstone keeps the attribute of the expiry time.
const fn leaves_on_delete<T: Record>(keys: Keys) -> bool {
    let mut own = T::ATTRIBUTES;
    while let [name, others @ ..] = own {
        if is_one_of(keys, name) && !is(T::EXPIRES_AT, name) {
            return true;
        }
        own = others;
    }
    false
}

/// Whether the rows of an index with these keys show the keys of its table, and a local index has the table's partitions.
pub(super) const fn has_the_keys_of_its_table(table: Keys, shown: Keys, index: Keys, is_local: bool) -> bool {
    let has_one = index[1].is_none() && index[SORT].is_some() && index[SORT + 1].is_none();
    let fits = !is_local || are_equal(index[0], table[0]) && has_one;
    fits && are_equal(table[0], shown[0]) && are_equal(table[SORT], shown[SORT])
}

const fn are_equal(one: Option<&str>, other: Option<&str>) -> bool {
    match other {
        Some(other) => is(one, other),
        None => one.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Order;

    impl Record for Order {
        const PARTITION_KEY: &'static str = "orderId";
        const ATTRIBUTES: &'static [&'static str] = &["userId", "day", "endsAt"];
        const EXPIRES_AT: Option<&'static str> = Some("endsAt");
    }

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Removed;

    impl Record for Removed {
        const PARTITION_KEY: &'static str = "orderId";
        const ATTRIBUTES: &'static [&'static str] = &["userId"];
        const SETTINGS: crate::Settings = crate::Settings::without_ttl().removed();
    }

    #[test]
    fn an_index_shows_records_of_which_it_has_every_attribute() {
        for (projection, total, lines) in [
            (Projection::All, true, true),
            (Projection::KeysOnly, false, false),
            (Projection::Include(&["total"]), true, false),
        ] {
            let has = |attributes: &[&str]| projection.has_all(keys("userId", &[], Some("createdAt"), &[]), attributes);
            assert!(has(&[]) && has(&["userId", "createdAt"]) && has(&["createdAt", "userId"]), "{projection:?}");
            assert_eq!((has(&["userId", "total"]), has(&["total", "lines"])), (total, lines), "{projection:?}");
        }
    }

    #[test]
    fn a_tombstone_is_known_in_an_index_that_it_leaves_or_that_has_all_of_its_marks() {
        const NONE: Projection = Projection::KeysOnly;
        for (keys, projection, is_known) in [
            (keys("userId", &[], None, &[]), NONE, true),
            (keys("foreign", &[], Some("day"), &[]), NONE, true),
            (keys("foreign", &[], Some("endsAt"), &[]), NONE, false), // a tombstone has it too
            (keys("foreign", &["other"], Some("far"), &["day"]), NONE, true),
            (keys("foreign", &["day"], Some("far"), &[]), NONE, true),
            (keys("foreign", &["other"], Some("far"), &["endsAt"]), NONE, false),
            (keys("foreign", &[], None, &[]), Projection::All, true),
            (keys("foreign", &[], None, &[]), Projection::Include(&["_version", "_purgeAt", "_buried"]), true),
            (keys("foreign", &[], None, &[]), Projection::Include(&["_purgeAt", "_buried"]), false),
            (keys("foreign", &[], None, &[]), Projection::Include(&["_version", "_buried"]), false),
            (keys("foreign", &[], None, &[]), Projection::Include(&["_version", "_purgeAt"]), false),
        ] {
            assert_eq!(shows_tombstones::<Order>(keys, projection), is_known, "{keys:?} {projection:?}");
        }
        assert!(shows_tombstones::<Removed>(keys("foreign", &[], None, &[]), NONE));
    }

    #[test]
    fn an_index_has_the_keys_of_its_table_and_a_local_one_its_partitions_in_an_order_of_its_own() {
        let (order, line, lot) = (
            keys("orderId", &[], None, &[]),
            keys("orderId", &[], Some("line"), &[]),
            keys("orderId", &[], Some("lot"), &[]),
        );
        let by_user = keys("userId", &[], None, &[]);
        for (table, shown, index, is_local, fits) in [
            (order, order, by_user, false, true),
            (line, line, by_user, false, true),
            (order, keys("basketId", &[], None, &[]), by_user, false, false),
            (order, line, by_user, false, false),
            (line, order, by_user, false, false),
            (line, lot, by_user, false, false),
            (line, line, keys("orderId", &[], Some("day"), &[]), true, true),
            (line, line, keys("userId", &[], Some("day"), &[]), true, false),
            (line, line, keys("orderId", &[], None, &[]), true, false),
            (line, line, keys("userId", &["day"], Some("lot"), &["line"]), false, true),
            (line, line, keys("orderId", &["day"], Some("lot"), &[]), true, false),
            (line, line, keys("orderId", &[], Some("lot"), &["day"]), true, false),
        ] {
            let found = has_the_keys_of_its_table(table, shown, index, is_local);
            assert_eq!(found, fits, "{table:?} {shown:?} {index:?} {is_local}");
        }
    }
}
