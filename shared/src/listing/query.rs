//! [`Query`]: names the items of one partition of a table or of an index, or all items.

use super::index::{
    Index, Keys, Projection, SORT, has_all_marks, has_the_keys_of_its_table, keys_of, keys_of_index, shows_tombstones,
};
use crate::driver::send::PageRequest;
use crate::error::Failure;
use crate::store::Store;
use crate::table::handle::invalid;
use crate::table::key::check_partition;
use crate::table::{self, KeyPart, Record, Table};
use fencepost_core::condition::{self, Condition, Selection, SortBound};
use fencepost_core::edit::filter;
use fencepost_core::format::layout::{Layout, contains};
use fencepost_core::{AttributeValue, Names};
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

/// The value of each attribute of the partition key of an index. It is made from one part, or from up to four in a tuple.
#[derive(Clone, PartialEq, Debug)]
pub struct Partition(Vec<AttributeValue>);

impl<P: Into<KeyPart>> From<P> for Partition {
    fn from(part: P) -> Self {
        Partition(vec![part.into().into_value()])
    }
}

macro_rules! partition_from {
    ($($part:ident: $of:ident),*) => {
        impl<$($of: Into<KeyPart>),*> From<($($of),*)> for Partition {
            fn from(($($part),*): ($($of),*)) -> Self {
                Partition(vec![$($part.into().into_value()),*])
            }
        }
    };
}

partition_from!(one: A, two: B);
partition_from!(one: A, two: B, three: C);
partition_from!(one: A, two: B, three: C, four: D);

/// A bound on the sort key of a [`Query`].
#[derive(Clone, PartialEq, Debug)]
pub struct Sort(Vec<SortBound>);

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
        let mut sort = Self::of(condition::BETWEEN, first);
        sort.0[0].end = Some(last.into().into_value());
        sort
    }

    /// The sort key starts with this text, or with these bytes (`begins_with`). In a table with several kinds of items,
    /// the start of the sort key often names the kind.
    pub fn starts_with(prefix: impl Into<KeyPart>) -> Self {
        Self::of(condition::BEGINS_WITH, prefix)
    }

    /// This bound for the first attributes of the sort key of an index, and `next` for those that follow. Only the last
    /// attribute that is bound may be bound otherwise than by [`Sort::equal_to`].
    #[must_use]
    pub fn then(self, next: Sort) -> Self {
        Sort([self.0, next.0].concat())
    }

    fn of(condition: &'static str, value: impl Into<KeyPart>) -> Self {
        Sort(vec![SortBound { condition, value: value.into().into_value(), end: None }])
    }

    /// The bounds of these attributes.
    fn of_names(&self, names: &[&'static str]) -> Result<Vec<(&'static str, SortBound)>, String> {
        let (last, others) = self.0.split_last().expect("a sort has a bound");
        if self.0.len() > names.len() {
            return Err(format!("the query bounds {} attributes of the sort key, of {}", self.0.len(), names.len()));
        }
        if others.iter().any(|bound| bound.condition != condition::EQUAL_TO) {
            return Err("only the last bound of several attributes of a sort key may be no Sort::equal_to".to_owned());
        }
        let name = names[others.len()];
        last.check().map_err(|reason| format!("the bound of the sort key {name} holds for no key: {reason}"))?;
        Ok(names.iter().copied().zip(self.0.iter().cloned()).collect())
    }
}

/// A query for the items of one partition, in the order of the sort key ([`Table::query`], [`Table::query_index`]), or
/// for all items, in no order ([`Table::scan`], [`Table::scan_index`]). [`Query::items`] and [`Query::pages`] run it.
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
/// /// All at once, in four parts that are read beside each other.
/// async fn warm_places(readings: &Table<Reading>) -> Result<u64, Error<InvalidCursor>> {
///     let warm = readings.scan().filter(Reading::FIELDS.degrees.is_more_than(30)).eventually_consistent();
///     let parts: Vec<_> = warm.segments(4).map(|part| tokio::spawn(part.count())).collect();
///     let mut places = 0;
///     for part in parts {
///         places += part.await.expect("no panic")?;
///     }
///     Ok(places)
/// }
///
/// /// The 20 newest after those that the client has seen.
/// async fn newest(readings: &Table<Reading>, cursor: Option<&str>) -> Result<Page<Reading>, Error<InvalidCursor>> {
///     let query = readings.query("roof").descending().limit(20).after(cursor);
///     Ok(query.pages().next_page().await?.unwrap_or_default())
/// }
/// ```
#[must_use = "a query reads nothing until its items or pages are asked for"]
pub struct Query<T> {
    pub(super) raw: RawQuery,
    shown: PhantomData<fn() -> T>,
}

/// A query without the type of its values.
#[derive(Clone)]
pub(super) struct RawQuery {
    pub(super) store: Store,
    pub(super) table: String,
    pub(super) index: Option<&'static str>,
    keys: Keys,
    pub(super) is_consistent: bool,
    pub(super) rows: Rows,
    pub(super) layout: &'static Layout,
    /// `None` in a scan.
    partition: Option<Partition>,
    sort: Option<Sort>,
    /// The part of a scan, from 0, and the number of parts.
    segment: Option<(i32, i32)>,
    filter: Option<Result<Condition, String>>,
    /// The only attributes to read, beside the keys and those of this crate.
    projected: Option<&'static [&'static str]>,
    is_descending: bool,
    pub(super) limit: Option<u16>,
    pub(super) after: Option<String>,
}

/// What is seen of the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// All attributes.
    Whole,
    /// Some, among them those that tell a tombstone.
    Marked,
    /// Some, and there are no tombstones.
    Live,
}

/// The most parts of a scan.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Scan.html>
const MAX_SEGMENTS: u32 = 1_000_000;

impl<T: Record> Table<T> {
    /// A query for the items with this partition key. Sends nothing.
    pub fn query(&self, partition: impl Into<KeyPart>) -> Query<T> {
        Query::of(self.query_for(Some(partition.into().into())))
    }

    /// A query for all items of the table, in no order. Sends nothing.
    pub fn scan(&self) -> Query<T> {
        Query::of(self.query_for(None))
    }

    /// A query for the items of an index with this partition key. Sends nothing. See [`Index`].
    pub fn query_index<I: Index<Record = T>>(&self, _: I, partition: impl Into<Partition>) -> Query<I::Shown> {
        self.of_index::<I>(Some(partition.into()))
    }

    /// A query for all items of an index, in no order. Sends nothing. An item without the keys of the index is not in it.
    pub fn scan_index<I: Index<Record = T>>(&self, _: I) -> Query<I::Shown> {
        self.of_index::<I>(None)
    }

    fn of_index<I: Index<Record = T>>(&self, partition: Option<Partition>) -> Query<I::Shown> {
        const {
            let index = keys_of_index::<I>();
            assert!(
                has_the_keys_of_its_table(keys_of::<T>(), keys_of::<I::Shown>(), index, I::IS_LOCAL),
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
        Query::of(RawQuery {
            index: Some(I::NAME),
            keys: const { keys_of_index::<I>() },
            is_consistent: I::IS_LOCAL,
            rows: match I::PROJECTION {
                Projection::All => Rows::Whole,
                _ if const { has_all_marks::<T>(keys_of_index::<I>(), I::PROJECTION) } => Rows::Marked,
                _ => Rows::Live,
            },
            ..self.query_for(partition)
        })
    }

    fn query_for(&self, partition: Option<Partition>) -> RawQuery {
        RawQuery {
            store: self.raw.store.clone(),
            table: self.raw.name.clone(),
            index: None,
            keys: const { keys_of::<T>() },
            is_consistent: true,
            rows: Rows::Whole,
            layout: Self::LAYOUT,
            partition,
            sort: None,
            segment: None,
            filter: None,
            projected: None,
            is_descending: false,
            limit: None,
            after: None,
        }
    }
}

impl<T: Record> Query<T> {
    pub(super) fn of(raw: RawQuery) -> Self {
        Query { raw, shown: PhantomData }
    }

    fn with(mut self, set: impl FnOnce(&mut RawQuery)) -> Self {
        set(&mut self.raw);
        self
    }

    /// Bounds the sort key. A second bound replaces the first. A scan has no order, and refuses a bound.
    pub fn sort(self, sort: Sort) -> Self {
        self.with(|raw| raw.sort = Some(sort))
    }

    /// Lists in falling order of the sort key: the newest first, if the sort key is a time. A scan refuses it.
    pub fn descending(self) -> Self {
        self.with(|raw| raw.is_descending = true)
    }

    /// The most items of a page; 0 counts as 1. Without a limit, a page has the rows of one request: at most 1 MB.
    pub fn limit(self, items: u16) -> Self {
        self.with(|raw| raw.limit = Some(items.max(1)))
    }

    /// Begins where an earlier page of the same query ended. `None` begins at the start.
    pub fn after(self, cursor: Option<&str>) -> Self {
        self.with(|raw| raw.after = cursor.map(str::to_owned))
    }

    /// Shows only items that meet the condition. A second filter replaces the first. `DynamoDB` filters after it has read,
    /// so the rest costs read units, but it is not sent. A query bounds its keys by [`Query::sort`], and refuses a filter
    /// by one of them. `Field::of` names a key for the filter of a scan.
    pub fn filter(self, condition: table::Condition<T>) -> Self {
        let mut names = T::ATTRIBUTES.to_vec();
        names.extend([Some(T::PARTITION_KEY), T::SORT_KEY].into_iter().flatten());
        let filter = condition.into_raw().and_then(|condition| filter(condition, &names));
        self.with(|raw| raw.filter = Some(filter))
    }

    /// Shows a smaller [`Record`] with the same keys, and reads only its attributes. That saves time and memory, and no
    /// read units. `cargo build` looks at whether it fits, and `cargo check` does not.
    pub fn project<S: Record>(self) -> Query<S> {
        const {
            let (whole, part) = (keys_of::<T>(), keys_of::<S>());
            assert!(has_the_keys_of_its_table(whole, part, whole, false), "the smaller Record has other keys");
            let mut names = S::ATTRIBUTES;
            while let [name, others @ ..] = names {
                assert!(contains(T::ATTRIBUTES, name), "the smaller Record has an attribute that the larger one lacks");
                names = others;
            }
        }
        let rows = if self.raw.rows == Rows::Live { Rows::Live } else { Rows::Marked };
        Query::of(RawQuery { projected: Some(S::ATTRIBUTES), rows, ..self.raw })
    }

    /// Reads eventually consistent, for half the read units. What it shows may be old; a change at a version that it shows
    /// is then refused as a conflict.
    pub fn eventually_consistent(self) -> Self {
        self.with(|raw| raw.is_consistent = false)
    }

    /// A scan in parts, which are disjoint and together show what the whole shows. Each can be read by another task or
    /// process. Their number is from 1 to 1,000,000. There are no parts of a part, and none of a query of one partition: what
    /// this returns then refuses to run.
    pub fn segments(self, parts: u32) -> impl Iterator<Item = Self> {
        let is_usable = self.raw.segment.is_none() && (1..=MAX_SEGMENTS).contains(&parts);
        let parts = if is_usable { i32::try_from(parts).unwrap_or_default() } else { 0 };
        (0..parts.max(1)).map(move |part| self.clone().with(|raw| raw.segment = Some((part, parts))))
    }

    /// The request for the next page, which only counts if `counts`.
    pub(super) fn request(&self, counts: bool) -> Result<PageRequest, Failure> {
        Table::<T>::check_fields()?;
        let raw = &self.raw;
        if let Some(Partition(values)) = &raw.partition {
            if values.len() != raw.partition_names().len() {
                let names = raw.partition_names().join(", ");
                let (named, parts) = (values.len(), raw.partition_names().len());
                return Err(invalid(format!(
                    "the query names {named} of the {parts} parts of the partition key: {names}"
                )));
            }
            for (name, value) in raw.partition() {
                check_partition(name, value).map_err(invalid)?;
            }
        }
        let refused = |reason: &str| Err(invalid(reason.to_owned()));
        let sort = match &raw.sort {
            _ if raw.partition.is_none() && (raw.sort.is_some() || raw.is_descending) => {
                return refused("a scan has no order of the sort key: filter it, or query one partition");
            }
            _ if raw.partition.is_some() && raw.segment.is_some() => {
                return refused("a query of one partition has no segments: scan the table in segments");
            }
            _ if raw.segment.is_some_and(|(_, parts)| parts == 0) => {
                return refused("a scan has 1 to 1,000,000 segments, and a segment has none");
            }
            None => Vec::new(),
            Some(_) if raw.keys[SORT].is_none() => {
                return refused("the query bounds the sort key, and what it queries has none");
            }
            Some(sort) => sort.of_names(&raw.sort_names()).map_err(invalid)?,
        };
        let condition = raw.filter.clone().transpose().map_err(invalid)?;
        let names = condition.iter().flat_map(Condition::leaves).filter_map(|(path, _)| path.first());
        let mut keys = names.filter(|name| raw.partition.is_some() && raw.keys.contains(&Some(name)));
        if let Some(name) = keys.next() {
            return Err(invalid(format!(
                "the filter names {name}, which is a key of what is queried: bound the sort key"
            )));
        }
        let attributes = if counts { Vec::new() } else { self.projection() };
        let selection = Selection { condition, is_live: counts && raw.rows != Rows::Live, attributes };
        let selected = selection.selected(raw.layout).ok_or_else(|| {
            invalid("the filter or the list of attributes is longer than the 4 KB that DynamoDB takes".to_owned())
        })?;
        Ok(PageRequest {
            table: raw.table.clone(),
            index: raw.index.map(str::to_owned),
            partition: raw.partition().map(|(name, value)| (name, value.clone())).collect(),
            sort,
            segment: raw.segment,
            is_consistent: raw.is_consistent,
            is_descending: raw.is_descending,
            limit: None,
            after: None,
            selected,
            counts,
        })
    }

    /// The attributes to read, if they are not all: those of the value, the keys, and those that tell a tombstone and the
    /// state of the row.
    fn projection(&self) -> Vec<&'static str> {
        let Some(attributes) = self.raw.projected else { return Vec::new() };
        let Names { version, incarnation, purge_at, buried, .. } = self.raw.layout.names;
        let mut all = self.key_names();
        all.extend(self.raw.partition_names());
        all.extend([version, incarnation, purge_at, buried]);
        all.extend(attributes);
        let mut seen = HashSet::new();
        all.retain(|name| seen.insert(*name));
        all
    }

    /// The attributes of a row's key beside the partition key of the query, each once.
    pub(super) fn key_names(&self) -> Vec<&'static str> {
        let raw = &self.raw;
        let is_named = |name: &str| raw.partition.is_some() && raw.keys[..SORT].contains(&Some(name));
        let mut names = Vec::with_capacity(4);
        let all = raw.sort_names().into_iter().map(Some).chain([Some(T::PARTITION_KEY), T::SORT_KEY]);
        for name in all.chain(raw.partition_names().into_iter().map(Some)).flatten() {
            if !is_named(name) && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

impl RawQuery {
    /// The attributes of the partition key of what is queried.
    pub(super) fn partition_names(&self) -> Vec<&'static str> {
        self.keys[..SORT].iter().copied().flatten().collect()
    }

    fn sort_names(&self) -> Vec<&'static str> {
        self.keys[SORT..].iter().copied().flatten().collect()
    }

    /// The names and values of the partition of a query.
    pub(super) fn partition(&self) -> impl Iterator<Item = (&'static str, &AttributeValue)> {
        self.partition_names().into_iter().zip(self.partition.iter().flat_map(|Partition(values)| values))
    }
}

impl<T> Clone for Query<T> {
    fn clone(&self) -> Self {
        Query { raw: self.raw.clone(), shown: PhantomData }
    }
}

impl<T> fmt::Debug for Query<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RawQuery { table, index, .. } = &self.raw;
        f.debug_struct("Query").field("table", table).field("index", index).finish_non_exhaustive()
    }
}
