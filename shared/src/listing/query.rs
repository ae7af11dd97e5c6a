//! [`Query`]: names the items of one partition of a table or of an index.

use super::index::{Index, Projection, has_the_keys_of_its_table, shows_tombstones};
use crate::error::Failure;
use crate::store::Store;
use crate::table::handle::invalid;
use crate::table::key::check_partition;
use crate::table::{KeyPart, Record, Table};
use fencepost_core::AttributeValue;
use fencepost_core::condition::{self, SortBound};
use fencepost_core::format::layout::Layout;
use std::fmt;
use std::marker::PhantomData;

/// A bound on the sort key of a [`Query`].
#[derive(Clone, PartialEq, Debug)]
pub struct Sort(pub(crate) SortBound);

impl Sort {
    /// The sort key has this value.
    pub fn equal_to(value: impl Into<KeyPart>) -> Self {
        Self::of(condition::EQUAL_TO, value)
    }

    /// The sort key is less than this value.
    pub fn less_than(value: impl Into<KeyPart>) -> Self {
        Self::of(condition::LESS_THAN, value)
    }

    /// The sort key is this value or less.
    pub fn at_most(value: impl Into<KeyPart>) -> Self {
        Self::of(condition::AT_MOST, value)
    }

    /// The sort key is more than this value.
    pub fn more_than(value: impl Into<KeyPart>) -> Self {
        Self::of(condition::MORE_THAN, value)
    }

    /// The sort key is this value or more.
    pub fn at_least(value: impl Into<KeyPart>) -> Self {
        Self::of(condition::AT_LEAST, value)
    }

    /// The sort key is `first`, `last`, or between them.
    pub fn between(first: impl Into<KeyPart>, last: impl Into<KeyPart>) -> Self {
        let Sort(bound) = Self::of(condition::BETWEEN, first);
        Sort(SortBound { end: Some(last.into().into_value()), ..bound })
    }

    /// The sort key starts with this text, or with these bytes (`begins_with`). In a table with several kinds of items,
    /// the start of the sort key often names the kind.
    pub fn starts_with(prefix: impl Into<KeyPart>) -> Self {
        Self::of(condition::BEGINS_WITH, prefix)
    }

    fn of(condition: &'static str, value: impl Into<KeyPart>) -> Self {
        Sort(SortBound { condition, value: value.into().into_value(), end: None })
    }
}

/// A query for the items of one partition, in the order of the sort key. [`Table::query`] and [`Table::query_index`]
/// make it, and [`Query::pages`] runs it.
///
/// Deleted items are left out. A query of a table or of a local index is strongly consistent: each page shows the items
/// as they are when it is read. Pages are read one after the other. So a listing of several pages is no snapshot. An
/// item present all the time is shown exactly once, unless its key in the index changes meanwhile.
///
/// ```
/// use fencepost::{Error, InvalidCursor, Page, Record, Sort, Table};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize, Record)]
/// # #[record(key = "sensor", sort = "at")]
/// # struct Reading { degrees: i64 }
///
/// async fn warmest(readings: &Table<Reading>) -> Result<Option<i64>, Error<InvalidCursor>> {
///     let mut warmest = None;
///     let mut pages = readings.query("roof").sort(Sort::between(0, 3600)).pages();
///     while let Some(page) = pages.next_page().await? {
///         warmest = warmest.max(page.items.iter().map(|reading| reading.value.degrees).max());
///     }
///     Ok(warmest)
/// }
///
/// /// The 20 newest after those that the client has seen.
/// async fn newest(readings: &Table<Reading>, cursor: Option<&str>) -> Result<Page<Reading>, Error<InvalidCursor>> {
///     let query = readings.query("roof").descending().limit(20).after(cursor);
///     Ok(query.pages().next_page().await?.unwrap_or_default())
/// }
/// ```
#[must_use = "a query reads nothing until its pages are asked for"]
pub struct Query<T> {
    pub(super) store: Store,
    pub(super) table: String,
    pub(super) index: Option<&'static str>,
    pub(super) partition_key: &'static str,
    sort_key: Option<&'static str>,
    pub(super) is_consistent: bool,
    pub(super) is_whole: bool,
    pub(super) layout: &'static Layout,
    pub(super) partition: AttributeValue,
    sort: Option<Sort>,
    pub(super) is_descending: bool,
    pub(super) limit: Option<u16>,
    pub(super) after: Option<String>,
    shown: PhantomData<fn() -> T>,
}

impl<T: Record> Table<T> {
    /// A query for the items with this partition key. Sends nothing.
    pub fn query(&self, partition: impl Into<KeyPart>) -> Query<T> {
        self.query_for(partition.into())
    }

    /// A query for the items of an index with this partition key. Sends nothing. See [`Index`].
    pub fn query_index<I: Index<Record = T>>(&self, _: I, partition: impl Into<KeyPart>) -> Query<I::Shown> {
        const {
            let index = [Some(I::PARTITION_KEY), I::SORT_KEY];
            let shown = [Some(<I::Shown as Record>::PARTITION_KEY), <I::Shown as Record>::SORT_KEY];
            assert!(
                has_the_keys_of_its_table([Some(T::PARTITION_KEY), T::SORT_KEY], shown, index, I::IS_LOCAL),
                "the keys of the Index do not fit the table of its Record"
            );
            assert!(
                I::PROJECTION.has_all(index, <I::Shown as Record>::ATTRIBUTES),
                "the index lacks an attribute of the Record that it shows: show a smaller Record"
            );
            assert!(
                shows_tombstones::<T>(index, I::PROJECTION),
                "the index cannot tell tombstones from items: project the version, the end and the mark of tombstones"
            );
        }
        Query {
            index: Some(I::NAME),
            partition_key: I::PARTITION_KEY,
            sort_key: I::SORT_KEY,
            is_consistent: I::IS_LOCAL,
            is_whole: I::PROJECTION == Projection::All,
            ..self.query_for(partition.into())
        }
    }

    fn query_for<S>(&self, partition: KeyPart) -> Query<S> {
        Query {
            store: self.raw.store.clone(),
            table: self.raw.name.clone(),
            index: None,
            partition_key: T::PARTITION_KEY,
            sort_key: T::SORT_KEY,
            is_consistent: true,
            is_whole: true,
            layout: Self::LAYOUT,
            partition: partition.into_value(),
            sort: None,
            is_descending: false,
            limit: None,
            after: None,
            shown: PhantomData,
        }
    }
}

impl<T: Record> Query<T> {
    /// Bounds the sort key. A second bound replaces the first.
    pub fn sort(self, sort: Sort) -> Self {
        Query { sort: Some(sort), ..self }
    }

    /// Lists in falling order of the sort key: the newest first, if the sort key is a time.
    pub fn descending(self) -> Self {
        Query { is_descending: true, ..self }
    }

    /// The most items of a page; 0 counts as 1. Without a limit, a page has the rows of one request: at most 1 MB.
    pub fn limit(self, items: u16) -> Self {
        Query { limit: Some(items.max(1)), ..self }
    }

    /// Begins where an earlier page of the same query ended. `None` begins at the start.
    pub fn after(self, cursor: Option<&str>) -> Self {
        Query { after: cursor.map(str::to_owned), ..self }
    }

    pub(super) fn bound(&self) -> Result<Option<(&'static str, SortBound)>, Failure> {
        Table::<T>::check_fields()?;
        check_partition(self.partition_key, &self.partition).map_err(invalid)?;
        match (&self.sort, self.sort_key) {
            (None, _) => Ok(None),
            (Some(Sort(bound)), Some(name)) => {
                bound.check().map_err(|reason| {
                    invalid(format!("the bound of the sort key {name} holds for no key: {reason}"))
                })?;
                Ok(Some((name, bound.clone())))
            }
            (Some(_), None) => Err(invalid("the query bounds the sort key, and what it queries has none".to_owned())),
        }
    }

    /// The attributes of a row's key beside the partition key of the query, each once.
    pub(super) fn key_names(&self) -> Vec<&'static str> {
        let mut names = Vec::with_capacity(3);
        for name in [self.sort_key, Some(T::PARTITION_KEY), T::SORT_KEY].into_iter().flatten() {
            if name != self.partition_key && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

impl<T> Clone for Query<T> {
    fn clone(&self) -> Self {
        Query {
            store: self.store.clone(),
            table: self.table.clone(),
            partition: self.partition.clone(),
            sort: self.sort.clone(),
            after: self.after.clone(),
            ..*self
        }
    }
}

impl<T> fmt::Debug for Query<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query").field("table", &self.table).field("index", &self.index).finish_non_exhaustive()
    }
}
