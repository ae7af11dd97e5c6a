//! [`Pages`]: reads the items of a query, page by page.

use super::cursor::{Cursor, InvalidCursor};
use super::query::Query;
use crate::driver::read_page;
use crate::driver::send::{PageRequest, ReadRows, is_malformed_query};
use crate::error::{Error, Failure, FailureKind, Place};
use crate::table::{Key, Record, Table};
use fencepost_core::format::item::Attributes;
use fencepost_core::format::layout::Layout;
use fencepost_core::format::row::{self, Row};
use fencepost_core::{ItemVersion, Version, Versioned};
use futures_core::Stream;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The most requests for one page. A partition may have many tombstones in a row, which a page does not show.
const READS_PER_PAGE: usize = 10;

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

impl<T: Record> Query<T> {
    /// The pages, read one at a time. Each is an operation with the time limit of the store.
    #[must_use]
    pub fn pages(self) -> Pages<T> {
        Pages { query: self, position: Position::Start }
    }
}

/// The pages of a [`Query`]. At most one page is held at a time.
#[derive(Debug)]
pub struct Pages<T> {
    query: Query<T>,
    position: Position,
}

/// The place of a run in its table or partition.
#[derive(Clone, PartialEq, Debug)]
pub enum Position {
    /// Before the first row.
    Start,
    /// After the row with this key.
    After(Attributes),
    /// After the last row.
    End,
}

impl<T: Record> Pages<T> {
    /// Reads the next page. `None` after the last one. A page may be short or empty although another one follows,
    /// because deleted items take room until they are removed.
    ///
    /// # Errors
    /// [`Error::Refused`]: begin again without a cursor. [`Error::Failed`]: see [`Failure`]. A row that cannot be read
    /// is [`FailureKind::CorruptItem`] with its key: repair it. The next call asks again.
    pub async fn next_page(&mut self) -> Result<Option<Page<T>>, Error<InvalidCursor>> {
        let query = &self.query;
        let call = &query.store.call();
        let names = query.key_names();
        let mut request = PageRequest {
            table: query.table.clone(),
            index: query.index.map(str::to_owned),
            partition: (query.partition_key, query.partition.clone()),
            sort: query.bound()?,
            is_consistent: query.is_consistent,
            is_descending: query.is_descending,
            // One row more, to know whether another page follows.
            limit: query.limit.map(|limit| i32::from(limit) + 1),
            after: None,
        };
        let begins_by_cursor;
        (request.after, begins_by_cursor) = match (&self.position, &query.after) {
            (Position::Start, None) => (None, false),
            (Position::Start, Some(cursor)) => {
                let mut key = request.key_in(&names, cursor).ok_or(Error::Refused(InvalidCursor))?;
                key.insert(query.partition_key.to_owned(), query.partition.clone());
                (Some(key), true)
            }
            (Position::After(key), _) => (Some(key.clone()), false),
            (Position::End, _) => return Ok(None),
        };
        let mut items = Vec::new();
        for _ in 0..READS_PER_PAGE {
            let sender = query.store.sender();
            let rows =
                read_page(sender, call, &|leave| Box::pin(sender.query(&request, leave))).await.map_err(|failure| {
                    match failure {
                        // The digest is right, but the parts do not fit the key: the cursor is made up.
                        Failure { kind: FailureKind::Rejected { source }, .. }
                            if begins_by_cursor && is_malformed_query(&source) =>
                        {
                            Error::Refused(InvalidCursor)
                        }
                        failure => failure.at(|| query.place()).into(),
                    }
                })?;
            request.after = query.take(rows, &mut items).map_err(|failure| failure.at(|| query.place()))?;
            if query.limit.is_none_or(|limit| items.len() >= usize::from(limit)) || request.after.is_none() {
                break;
            }
        }
        let next = match &request.after {
            Some(key) => Some(request.cursor_after(&names, key).ok_or_else(|| without_key(query.partition_key))?),
            None => None,
        };
        self.position = request.after.map_or(Position::End, Position::After);
        Ok(Some(Page { items, next }))
    }

    /// The pages as a stream. It ends after the last page, and after the first error.
    ///
    /// ```
    /// # use fencepost::{Error, InvalidCursor, Page, Record, Table};
    /// # use futures_core::Stream;
    /// # use std::{future::poll_fn, pin::pin};
    /// async fn first<T: Record + Send + 'static>(all: &Table<T>) -> Option<Result<Page<T>, Error<InvalidCursor>>> {
    ///     let mut pages = pin!(all.query("roof").pages().into_stream());
    ///     poll_fn(|context| pages.as_mut().poll_next(context)).await // or `next()` of `futures_util::StreamExt`
    /// }
    /// ```
    #[must_use]
    pub fn into_stream(self) -> PageStream<T>
    where
        T: Send + 'static,
    {
        PageStream { next: Some(Box::pin(self.step())) }
    }

    async fn step(mut self) -> Step<T> {
        let page = self.next_page().await;
        (self, page)
    }
}

type Step<T> = (Pages<T>, Result<Option<Page<T>>, Error<InvalidCursor>>);

/// The pages of a [`Query`] as a [`Stream`]. [`Pages::into_stream`] makes it.
pub struct PageStream<T> {
    /// The page now being read. `None` after the end.
    next: Option<Pin<Box<dyn Future<Output = Step<T>> + Send>>>,
}

impl<T: Record + Send + 'static> Stream for PageStream<T> {
    type Item = Result<Page<T>, Error<InvalidCursor>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(reading) = &mut self.next else { return Poll::Ready(None) };
        let (pages, page) = ready!(reading.as_mut().poll(context));
        let is_over = !matches!(page, Ok(Some(_))) || matches!(pages.position, Position::End);
        self.next = if is_over { None } else { Some(Box::pin(pages.step())) };
        Poll::Ready(page.transpose())
    }
}

impl<T> fmt::Debug for PageStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageStream").finish_non_exhaustive()
    }
}

impl<T: Record> Query<T> {
    fn place(&self) -> Place {
        let key = [(self.partition_key.to_owned(), self.partition.clone())].into();
        Place::of("next_page", [(&self.table, &key)])
    }

    /// Takes items until the limit is reached. Returns the key after which the next page begins, if there is more.
    fn take(&self, (rows, last): ReadRows, items: &mut Vec<Listed<T>>) -> Result<Option<Attributes>, Failure> {
        let limit = self.limit.map_or(usize::MAX, usize::from);
        let mut rows = rows.into_iter();
        let mut position = None;
        while items.len() < limit
            && let Some(row) = rows.next()
        {
            // Only the row that fills the page can be the one after which the next page begins.
            if items.len() + 1 == limit {
                position = Some(self.position_of(&row)?);
            }
            items.extend(self.item(row)?);
        }
        // An unreadable row counts as an item here. The next page reports it.
        if rows.any(|row| !matches!(self.item(row), Ok(None))) {
            return Ok(position);
        }
        last.map(|key| self.position_of(&key)).transpose()
    }

    fn position_of(&self, row: &Attributes) -> Result<Attributes, Failure> {
        let names = self.key_names().into_iter().chain([self.partition_key]);
        let value = |name: &str| row.get(name).cloned().ok_or_else(|| without_key(name));
        names.map(|name| Ok((name.to_owned(), value(name)?))).collect()
    }

    fn item(&self, attributes: Attributes) -> Result<Option<Listed<T>>, Failure> {
        let key = Key::of(&attributes, T::PARTITION_KEY, T::SORT_KEY).ok_or_else(|| without_key(T::PARTITION_KEY))?;
        let layout = self.layout;
        let item = if self.is_whole { whole(layout, attributes) } else { part::<T>(layout, &attributes) };
        Ok(item?.map(|(value, at)| Listed { key, value, at }))
    }
}

fn whole<T: Record>(layout: &Layout, attributes: Attributes) -> Result<Option<(T, Option<ItemVersion>)>, Failure> {
    let row = Row::read(layout, attributes)?;
    if row.is_tombstone {
        return Ok(None);
    }
    Ok(Some((Table::<T>::value_in(&row.attributes)?, Some(row.at))))
}

/// Decodes the projected part of a row. The state of the row is known only if its version and incarnation are
/// projected. In a row of another program, the tag covers all attributes. It is therefore never known.
fn part<T: Record>(layout: &Layout, attributes: &Attributes) -> Result<Option<(T, Option<ItemVersion>)>, Failure> {
    let seen =
        row::seen(layout, attributes).map(|row| ItemVersion { version: row.version, incarnation: row.incarnation });
    let is_tombstone = row::is_tombstone(layout, attributes, seen.map_or(Version::ABSENT, |at| at.version));
    if is_tombstone.map_err(|failure| row::naming_the_key(layout, attributes, failure))? {
        return Ok(None);
    }
    let at = seen.filter(|_| attributes.contains_key(layout.names.incarnation));
    Ok(Some((Table::<T>::value_in(attributes)?, at)))
}

fn without_key(name: &str) -> Failure {
    Failure::of(FailureKind::CorruptItem {
        reason: format!("a row of the query has no {name}, which is a part of its key"),
    })
}
