//! [`Query`]: lists the items of one partition of a table or of an index, page by page.

use super::cursor::{Cursor, Origin};
use super::handle::Table;
use super::index::{Index, IndexScope, Projection, has_the_keys_of_its_table, shows_all, shows_tombstones};
use super::key::{Key, KeyPart};
use super::record::Record;
use crate::call::Call;
use crate::error::{Failure, QueryError};
use crate::protocol::condition::{KeyRange, SortBound, key_range};
use crate::protocol::deliver::until_read;
use crate::protocol::item::Attributes;
use crate::protocol::row::{self, Row};
use crate::protocol::send::{PageRequest, is_malformed_query};
use crate::store::Store;
use crate::version::{ItemVersion, Version, Versioned};
use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::{Stream, stream};
use std::fmt;
use std::marker::PhantomData;

/// The most requests for one page. A partition may have many tombstones in a row, which a page does not show.
const READS_PER_PAGE: usize = 10;

/// A bound on the sort key of a [`Query`].
#[derive(Clone, PartialEq, Debug)]
pub struct Sort(SortBound);

impl Sort {
    /// The sort key has this value.
    pub fn equal_to(value: impl Into<KeyPart>) -> Self {
        Sort(SortBound::EqualTo(value.into().into_value()))
    }

    /// The sort key is less than this value.
    pub fn less_than(value: impl Into<KeyPart>) -> Self {
        Sort(SortBound::LessThan(value.into().into_value()))
    }

    /// The sort key is this value or less.
    pub fn at_most(value: impl Into<KeyPart>) -> Self {
        Sort(SortBound::AtMost(value.into().into_value()))
    }

    /// The sort key is more than this value.
    pub fn more_than(value: impl Into<KeyPart>) -> Self {
        Sort(SortBound::MoreThan(value.into().into_value()))
    }

    /// The sort key is this value or more.
    pub fn at_least(value: impl Into<KeyPart>) -> Self {
        Sort(SortBound::AtLeast(value.into().into_value()))
    }

    /// The sort key is `first`, `last`, or between them.
    pub fn between(first: impl Into<KeyPart>, last: impl Into<KeyPart>) -> Self {
        Sort(SortBound::Between(first.into().into_value(), last.into().into_value()))
    }

    /// The sort key starts with this text, or with these bytes (`begins_with`). In a table with several kinds of items, the start of
    /// the sort key often names the kind.
    pub fn starts_with(prefix: impl Into<KeyPart>) -> Self {
        Sort(SortBound::BeginsWith(prefix.into().into_value()))
    }
}

/// A query for the items of one partition, in the order of the sort key. [`Table::query`] and [`Table::query_index`]
/// make it, and [`Query::pages`] runs it.
///
/// Deleted items are left out. A query of a table or of a local index is strongly consistent: each page shows the items
/// as they are when it is read. Pages are read one after the other, so a listing of several pages is no snapshot. An item
/// that is there all the time is shown exactly once, unless its key in the index changes meanwhile.
///
/// ```
/// use fencepost::table::{Page, Sort};
/// use fencepost::{Call, Record, Table, error::QueryError};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Reading { degrees: i64 }
/// # impl Record for Reading {
/// #     const PARTITION_KEY: &'static str = "sensor";
/// #     const SORT_KEY: Option<&'static str> = Some("at");
/// #     const ATTRIBUTES: &'static [&'static str] = &["degrees"];
/// # }
///
/// async fn warmest(readings: &Table<Reading>, call: &Call) -> Result<Option<i64>, QueryError> {
///     let mut warmest = None;
///     let mut pages = readings.query("roof").sort(Sort::between(0, 3600)).pages(call);
///     while let Some(page) = pages.next_page().await? {
///         warmest = warmest.max(page.items.iter().map(|reading| reading.value.degrees).max());
///     }
///     Ok(warmest)
/// }
///
/// /// The 20 newest after those that the client has seen.
/// async fn newest(readings: &Table<Reading>, cursor: Option<&str>, call: &Call) -> Result<Page<Reading>, QueryError> {
///     let query = readings.query("roof").descending().limit(20).after(cursor);
///     Ok(query.pages(call).next_page().await?.unwrap_or_default())
/// }
/// ```
#[must_use = "a query reads nothing until its pages are asked for"]
pub struct Query<T> {
    store: Store,
    table: String,
    place: Place,
    partition: AttributeValue,
    sort: Option<Sort>,
    is_descending: bool,
    limit: Option<u16>,
    after: Option<String>,
    shown: PhantomData<fn() -> T>,
}

/// What is queried: a table or an index.
#[derive(Clone, Copy, Debug)]
struct Place {
    index: Option<&'static str>,
    partition_key: &'static str,
    sort_key: Option<&'static str>,
    is_consistent: bool,
    /// Whether its rows have all attributes.
    is_whole: bool,
}

/// One page of a [`Query`].
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Page<T> {
    /// The items. There may be fewer than the limit, or none, although another page follows.
    pub items: Vec<Listed<T>>,
    /// Where the next page begins. `None` if this is the last one.
    pub next: Option<Cursor>,
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Page { items: Vec::new(), next: None }
    }
}

/// An item of a listing.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Listed<T> {
    /// The key in the table.
    pub key: Key,
    /// The value.
    pub value: T,
    /// The state of the row. `None` if the index does not project it. In a global index it may be an old one; a change at
    /// that version is then refused as a conflict.
    pub at: Option<ItemVersion>,
}

impl<T> Listed<T> {
    /// The version, if the listing has it.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.at.map(|at| at.version)
    }

    /// The value with the state of its row, if the listing has it.
    #[must_use]
    pub fn versioned(self) -> Option<Versioned<T>> {
        Some(Versioned { value: self.value, at: self.at? })
    }
}

impl<T: Record> Table<T> {
    /// A query for the items with this partition key. Sends nothing.
    pub fn query(&self, partition: impl Into<KeyPart>) -> Query<T> {
        self.query_at(
            partition.into(),
            Place {
                index: None,
                partition_key: T::PARTITION_KEY,
                sort_key: T::SORT_KEY,
                is_consistent: true,
                is_whole: true,
            },
        )
    }

    /// A query for the items of an index with this partition key. Sends nothing. See [`Index`] for what it can show.
    pub fn query_index<I: Index<Record = T>>(&self, partition: impl Into<KeyPart>) -> Query<I::Shown> {
        const {
            assert!(has_the_keys_of_its_table::<I>(), "the keys of the Index do not fit the table of its Record");
            assert!(
                shows_all::<I>(),
                "the index lacks an attribute of the Record that it shows: show a smaller Record"
            );
            assert!(
                shows_tombstones::<I>(),
                "the index cannot tell tombstones from items: project the version, the end and the mark of tombstones"
            );
        }
        self.query_at(
            partition.into(),
            Place {
                index: Some(I::NAME),
                partition_key: I::PARTITION_KEY,
                sort_key: I::SORT_KEY,
                is_consistent: I::SCOPE == IndexScope::Local,
                is_whole: I::PROJECTION == Projection::All,
            },
        )
    }

    fn query_at<S>(&self, partition: KeyPart, place: Place) -> Query<S> {
        Query {
            store: self.store.clone(),
            table: self.name.clone(),
            place,
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

    /// The most items of a page; 0 counts as 1. Without a limit, a page is what one request reads: at most 1 MB.
    pub fn limit(self, items: u16) -> Self {
        Query { limit: Some(items.max(1)), ..self }
    }

    /// Begins where an earlier page of the same query ended. `None` begins at the start.
    pub fn after(self, cursor: Option<&str>) -> Self {
        Query { after: cursor.map(str::to_owned), ..self }
    }

    /// The pages, read one at a time until the deadline of the call.
    pub fn pages(self, call: &Call) -> Pages<'_, T> {
        Pages { query: self, call, position: Position::Start }
    }

    fn range(&self) -> Result<KeyRange, Failure> {
        let sort = match (&self.sort, self.place.sort_key) {
            (None, _) => None,
            (Some(Sort(bound)), Some(name)) => Some((name, bound)),
            (Some(_), None) => {
                let reason = "the query bounds the sort key, and what it queries has none".to_owned();
                return Err(Failure::InvalidRecord { reason });
            }
        };
        Ok(key_range((self.place.partition_key, &self.partition), sort))
    }

    /// The attributes of a row's key beside the partition key of the query, each once.
    fn key_names(&self) -> Vec<&'static str> {
        let mut names = Vec::with_capacity(3);
        for name in [self.place.sort_key, Some(T::PARTITION_KEY), T::SORT_KEY].into_iter().flatten() {
            if name != self.place.partition_key && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The key of the row after which another page begins.
    fn position_of(&self, row: &Attributes) -> Result<Attributes, Failure> {
        let names = self.key_names().into_iter().chain([self.place.partition_key]);
        let value = |name: &str| row.get(name).cloned().ok_or_else(|| without_key(name));
        names.map(|name| Ok((name.to_owned(), value(name)?))).collect()
    }

    /// Decodes a row: an item, or `None` for a tombstone.
    fn item(&self, attributes: Attributes) -> Result<Option<Listed<T>>, Failure> {
        let key = Key::of(&attributes, T::PARTITION_KEY, T::SORT_KEY).ok_or_else(|| without_key(T::PARTITION_KEY))?;
        let decoded = if self.place.is_whole { whole(attributes) } else { part::<T>(&attributes) };
        match decoded {
            Ok(item) => Ok(item.map(|(value, at)| Listed { key, value, at })),
            Err(Failure::CorruptItem { reason }) => {
                Err(Failure::CorruptItem { reason: format!("{reason} (the row with the key {key:?})") })
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Decodes a whole row.
fn whole<T: Record>(attributes: Attributes) -> Result<Option<(T, Option<ItemVersion>)>, Failure> {
    let item = Table::<T>::decode(&Row::read(attributes)?)?;
    Ok(item.map(|item| (item.value, Some(item.at))))
}

/// Decodes what an index projects of a row. Its version is known only if that is projected.
fn part<T: Record>(attributes: &Attributes) -> Result<Option<(T, Option<ItemVersion>)>, Failure> {
    if row::purge_at(attributes)?.is_some() {
        return Ok(None);
    }
    let at = row::seen(attributes).map(|row| ItemVersion { version: row.version, incarnation: row.incarnation });
    Ok(Some((Table::<T>::value_in(attributes)?, at)))
}

fn without_key(name: &str) -> Failure {
    Failure::CorruptItem { reason: format!("a row of the query has no {name}, which is a part of its key") }
}

/// The pages of a [`Query`]. At most one page is held at a time.
#[derive(Debug)]
pub struct Pages<'a, T> {
    query: Query<T>,
    call: &'a Call,
    position: Position,
}

/// The place of a run in its partition.
#[derive(Debug)]
enum Position {
    Start,
    After(Attributes),
    End,
}

impl<'a, T: Record> Pages<'a, T> {
    /// Reads the next page. `None` after the last one. A page may be short or empty although another one follows,
    /// because deleted items take room until they are removed.
    ///
    /// # Errors
    /// [`QueryError::InvalidCursor`]: begin again without a cursor. [`QueryError::Failed`]: see [`Failure`]. After an
    /// error, the same page is asked for again.
    pub async fn next_page(&mut self) -> Result<Option<Page<T>>, QueryError> {
        let query = &self.query;
        let range = query.range()?;
        let names = query.key_names();
        let origin =
            Origin { table: &query.table, index: query.place.index, is_descending: query.is_descending, range: &range };
        let (mut after, begins_by_cursor) = match (&self.position, &query.after) {
            (Position::Start, None) => (None, false),
            (Position::Start, Some(cursor)) => {
                let mut key = origin.read(&names, cursor).ok_or(QueryError::InvalidCursor)?;
                key.insert(query.place.partition_key.to_owned(), query.partition.clone());
                (Some(key), true)
            }
            (Position::After(key), _) => (Some(key.clone()), false),
            (Position::End, _) => return Ok(None),
        };
        let mut items = Vec::new();
        for _ in 0..READS_PER_PAGE {
            let read = self.read(range.clone(), after).await;
            let page = read.map_err(|failure| match failure {
                // Its digest fits, so somebody made it up who knows how. Its parts do not fit the key.
                Failure::Rejected { source } if begins_by_cursor && is_malformed_query(&source) => {
                    QueryError::InvalidCursor
                }
                failure => failure.into(),
            })?;
            after = query.take(page, &mut items)?;
            if query.limit.is_none_or(|limit| items.len() >= usize::from(limit)) || after.is_none() {
                break;
            }
        }
        let next = match &after {
            Some(key) => Some(origin.cursor(&names, key).ok_or_else(|| without_key(query.place.partition_key))?),
            None => None,
        };
        self.position = after.map_or(Position::End, Position::After);
        Ok(Some(Page { items, next }))
    }

    /// The pages as a stream. It ends after the first error.
    pub fn into_stream(self) -> impl Stream<Item = Result<Page<T>, QueryError>> + Send + use<'a, T>
    where
        T: Send,
    {
        stream::try_unfold(self, |mut pages| async move { Ok(pages.next_page().await?.map(|page| (page, pages))) })
    }

    /// Reads rows once. With a limit, asks for one row more, to know whether another page follows.
    async fn read(&self, range: KeyRange, after: Option<Attributes>) -> Result<RowsRead, Failure> {
        let Query { store, table, place, is_descending, limit, .. } = &self.query;
        let request = PageRequest {
            table: table.clone(),
            index: place.index,
            range,
            is_consistent: place.is_consistent,
            is_descending: *is_descending,
            limit: limit.map(|limit| i32::from(limit) + 1),
            after,
        };
        let read = |timeout| store.sender().query(&request, timeout);
        let page = until_read(store.sender(), self.call, read).await?;
        Ok(RowsRead { rows: page.rows, last: page.last })
    }
}

/// The rows of one request, and the key after which it left off.
struct RowsRead {
    rows: Vec<Attributes>,
    last: Option<Attributes>,
}

impl<T: Record> Query<T> {
    /// Takes items until the limit is reached. Returns the key after which the next page begins, if there is more.
    fn take(&self, read: RowsRead, items: &mut Vec<Listed<T>>) -> Result<Option<Attributes>, Failure> {
        let limit = self.limit.map_or(usize::MAX, usize::from);
        let mut rows = read.rows.into_iter();
        let mut position = None;
        while items.len() < limit
            && let Some(row) = rows.next()
        {
            position = Some(self.position_of(&row)?);
            items.extend(self.item(row)?);
        }
        // A row that cannot be read counts as an item here. The next page reports it.
        if rows.any(|row| !matches!(self.item(row), Ok(None))) {
            return Ok(position);
        }
        read.last.map(|key| self.position_of(&key)).transpose()
    }
}

impl<T> Clone for Query<T> {
    fn clone(&self) -> Self {
        Query {
            store: self.store.clone(),
            table: self.table.clone(),
            place: self.place,
            partition: self.partition.clone(),
            sort: self.sort.clone(),
            is_descending: self.is_descending,
            limit: self.limit,
            after: self.after.clone(),
            shown: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Query<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query").field("table", &self.table).field("place", &self.place).finish_non_exhaustive()
    }
}
