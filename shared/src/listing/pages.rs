//! [`Pages`]: reads the items of a query, page by page.

use super::cursor::{Cursor, InvalidCursor};
use super::query::{Query, Rows};
use crate::call::Call;
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
use std::vec;

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

    /// The items as a stream, which reads page by page as it is asked. A row that cannot be used is an error with its key
    /// ([`FailureKind::CorruptItem`]), after which the stream goes on with the next row. After any other error it ends.
    ///
    /// ```
    /// # use fencepost::{Error, InvalidCursor, Record, Table};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize, Record)]
    /// # #[record(key = "sensor", sort = "at")]
    /// # struct Reading { degrees: i64 }
    /// use futures_util::TryStreamExt;
    ///
    /// async fn degrees(readings: &Table<Reading>) -> Result<Vec<i64>, Error<InvalidCursor>> {
    ///     readings.query("roof").items().map_ok(|reading| reading.value.degrees).try_collect().await
    /// }
    /// ```
    #[must_use]
    pub fn items(self) -> Items<T>
    where
        T: Send + 'static,
    {
        Items { page: Vec::new().into_iter(), next: Some(reading(self.pages())) }
    }

    /// Counts the items, from where the query begins to its end. Reads them all, in as many requests as they have MB, but
    /// `DynamoDB` sends only numbers, so a row that does not decode counts too. Each request has the time limit of the store.
    ///
    /// # Errors
    /// As [`Pages::next_page`].
    pub async fn count(self) -> Result<u64, Error<InvalidCursor>> {
        let mut request = self.request(true).map_err(|failure| failure.at(|| self.place("count")))?;
        let begins_by_cursor = self.begin(&mut request, &Position::Start)?;
        let mut count = 0;
        loop {
            let call = &self.raw.store.call();
            let (rows, last) = self.read(&request, call, begins_by_cursor).await?;
            count += rows.len() as u64;
            if last.is_none() {
                return Ok(count);
            }
            request.after = last;
        }
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
        let begin = self.position.clone();
        let Some((rows, next)) = self.next_rows().await? else { return Ok(None) };
        match rows.into_iter().collect() {
            Ok(items) => Ok(Some(Page { items, next })),
            Err(failure) => {
                self.position = begin;
                Err(Error::Failed(failure))
            }
        }
    }

    /// The rows of the next page, and where the one after it begins.
    async fn next_rows(&mut self) -> Result<Option<NextRows<T>>, Error<InvalidCursor>> {
        if matches!(self.position, Position::End) {
            return Ok(None);
        }
        let query = &self.query;
        let call = &query.raw.store.call();
        let mut request = query.request(false).map_err(|failure| failure.at(|| query.place("next_page")))?;
        // One row more, to know whether another page follows.
        request.limit = query.raw.limit.map(|limit| i32::from(limit) + 1);
        let begins_by_cursor = query.begin(&mut request, &self.position)?;
        let mut items = Vec::new();
        for _ in 0..READS_PER_PAGE {
            let rows = query.read(&request, call, begins_by_cursor).await?;
            request.after = query.take(rows, &mut items).map_err(|failure| failure.at(|| query.place("next_page")))?;
            if query.raw.limit.is_none_or(|limit| items.len() >= usize::from(limit)) || request.after.is_none() {
                break;
            }
        }
        let next = match &request.after {
            Some(key) => {
                let cursor = request.cursor_after(&query.key_names(), key);
                Some(cursor.ok_or_else(|| without_key(T::PARTITION_KEY))?)
            }
            None => None,
        };
        self.position = request.after.map_or(Position::End, Position::After);
        Ok(Some((items, next)))
    }
}

/// What each row of a page is, and where the next page begins.
type NextRows<T> = (Vec<Result<Listed<T>, Failure>>, Option<Cursor>);

/// The items of a [`Query`] as a [`Stream`]. [`Query::items`] makes it.
pub struct Items<T> {
    /// The rows of the last page that are still to come.
    page: vec::IntoIter<Result<Listed<T>, Failure>>,
    /// The page now being read. `None` after the last one.
    next: Option<Reading<T>>,
}

type Reading<T> = Pin<Box<dyn Future<Output = (Pages<T>, Result<Option<NextRows<T>>, Error<InvalidCursor>>)> + Send>>;

fn reading<T: Record + Send + 'static>(mut pages: Pages<T>) -> Reading<T> {
    Box::pin(async move {
        let rows = pages.next_rows().await;
        (pages, rows)
    })
}

impl<T: Record + Send + 'static> Stream for Items<T> {
    type Item = Result<Listed<T>, Error<InvalidCursor>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.page.next() {
                return Poll::Ready(Some(item.map_err(Error::Failed)));
            }
            let Some(next) = &mut self.next else { return Poll::Ready(None) };
            let (pages, rows) = ready!(next.as_mut().poll(context));
            self.next = None;
            match rows {
                Ok(Some((rows, _))) => (self.page, self.next) = (rows.into_iter(), Some(reading(pages))),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

/// Nothing in it is pinned.
impl<T> Unpin for Items<T> {}

impl<T> fmt::Debug for Items<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").finish_non_exhaustive()
    }
}

impl<T: Record> Query<T> {
    fn place(&self, operation: &'static str) -> Place {
        let key = self.raw.partition().map(|(name, value)| (name.to_owned(), value.clone())).collect();
        Place::of(operation, [(&self.raw.table, &key)])
    }

    /// Sets where the next page begins. Returns whether its cursor says so, which may be made up.
    fn begin(&self, request: &mut PageRequest, position: &Position) -> Result<bool, Error<InvalidCursor>> {
        let cursor = match (position, &self.raw.after) {
            (Position::Start, Some(cursor)) => cursor,
            (Position::After(key), _) => {
                request.after = Some(key.clone());
                return Ok(false);
            }
            _ => return Ok(false),
        };
        let mut key = request.key_in(&self.key_names(), cursor).ok_or(Error::Refused(InvalidCursor))?;
        key.extend(request.partition.clone().into_iter().map(|(name, value)| (name.to_owned(), value)));
        request.after = Some(key);
        Ok(true)
    }

    async fn read(
        &self,
        request: &PageRequest,
        call: &Call,
        begins_by_cursor: bool,
    ) -> Result<ReadRows, Error<InvalidCursor>> {
        let sender = self.raw.store.sender();
        let place = || self.place(if request.counts { "count" } else { "next_page" });
        let rows = read_page(sender, call, place, &|leave| Box::pin(sender.page(request, leave))).await;
        rows.map_err(|failure| match failure {
            // The digest is right, but the parts do not fit the key: the cursor is made up.
            Failure { kind: FailureKind::Rejected { source }, .. }
                if begins_by_cursor && is_malformed_query(&source) =>
            {
                Error::Refused(InvalidCursor)
            }
            failure => failure.into(),
        })
    }

    /// Takes items until the limit is reached. Returns the key after which the next page begins, if there is more.
    fn take(
        &self,
        (rows, last): ReadRows,
        items: &mut Vec<Result<Listed<T>, Failure>>,
    ) -> Result<Option<Attributes>, Failure> {
        let limit = self.raw.limit.map_or(usize::MAX, usize::from);
        let mut rows = rows.into_iter();
        let mut position = None;
        while items.len() < limit
            && let Some(row) = rows.next()
        {
            // Only the row that fills the page can be the one after which the next page begins.
            if items.len() + 1 == limit {
                position = Some(self.position_of(&row)?);
            }
            items.extend(self.item(row).map_err(|failure| failure.at(|| self.place("next_page"))).transpose());
        }
        // An unreadable row counts as an item here. The next page reports it.
        if rows.any(|row| !matches!(self.item(row), Ok(None))) {
            return Ok(position);
        }
        last.map(|key| self.position_of(&key)).transpose()
    }

    fn position_of(&self, row: &Attributes) -> Result<Attributes, Failure> {
        let names = self.key_names().into_iter().chain(self.raw.partition().map(|(name, _)| name));
        let value = |name: &str| row.get(name).cloned().ok_or_else(|| without_key(name));
        names.map(|name| Ok((name.to_owned(), value(name)?))).collect()
    }

    fn item(&self, attributes: Attributes) -> Result<Option<Listed<T>>, Failure> {
        let key = Key::of(&attributes, T::PARTITION_KEY, T::SORT_KEY).ok_or_else(|| without_key(T::PARTITION_KEY))?;
        let layout = self.raw.layout;
        let item =
            if self.raw.rows == Rows::Whole { whole(layout, attributes) } else { part::<T>(layout, &attributes) };
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
