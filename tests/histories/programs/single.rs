//! Plays the operations on one table.

use super::catalog::{Row, attributes_of, item_of};
use super::edits::Why;
use super::plan::{Answer, Change, How, Listing, Op, Task};
use super::player::{Noted, Player};
use super::records::{ByLine, ByN, SortedPart, SortedText, Subject};
use super::told::{Does, Outcome, Shown, Told, shown};
use super::writing::{condition_of, edit_of};
use fencepost::lease::{LeaseTerms, Unfinished};
use fencepost::testing::edit_or_update;
use fencepost::{
    Call, Cursor, Edited, Error, Exists, FencingToken, InvalidCursor, ItemVersion, KeyPart, Listed, NotEdited,
    NotEditedReason, Query, Record, Sort, Table, UpdateError, Upserted, VersionError, Versioned,
};
use futures_util::TryStreamExt;
use std::any::Any;
use std::cmp::Ordering;
use std::time::Duration;

pub async fn perform<T: Subject>(player: &Player, task: &Task, row: Row, call: &Call, noted: &Noted<'_>) -> Told {
    let plays = |name| noted.own.plays(name);
    let (table, key) = (player.table::<T>(task, call), player.key(row));
    match &task.op {
        Op::GetMany(rows) => {
            plays("Table::get_many");
            let seen = table.get_many(rows.iter().map(|row| player.key(*row))).await;
            match seen.and_then(|seen| seen.into_iter().collect::<Result<Vec<_>, _>>()) {
                Ok(seen) => Told::shows(rows.iter().zip(&seen).map(|(row, seen)| shown(*row, seen.as_ref())).collect()),
                Err(failure) => failure.into(),
            }
        }
        Op::List(_, of) => list::<T>(player, &table, row, of, noted).await,
        Op::Create(_, seed) => {
            plays("Table::create");
            let value = noted.drawn::<T>(row, *seed, noted.next());
            noted.decided(value.by(), Vec::new(), vec![(row, noted.made(row, &value))]);
            match table.create(key, &value).await {
                Ok(made) => Told::made(value.by(), row, &made),
                Err(Error::Refused(Exists(there))) => Told::shows(vec![shown(row, Some(&there))]),
                Err(Error::Failed(failure)) => failure.into(),
            }
        }
        Op::Update(_, change) => {
            plays("Table::update_with_retry");
            let done = table.update_with_retry(key, |now| changed(row, now, *change, noted)).await;
            updated(row, *change, done)
        }
        Op::Upsert(_, change) => upserted(player, &table, row, *change, noted).await,
        Op::Lease(_) => under_lease(player, &table, row, call, noted).await,
        Op::UpdateAt(_, change) => {
            let Some(at) = known(player, &table, row).await else { return Told::of(Outcome::Refused) };
            plays("Table::update_at_version");
            match table.update_at_version(key, at, |now| changed(row, now, *change, noted)).await {
                Ok(made) if change.answer == Answer::Keep => Told::shows(vec![shown(row, Some(&made))]),
                Ok(made) => Told::made(made.value.by(), row, &made),
                Err(VersionError::NotFound) => Told::shows(vec![shown::<T>(row, None)]),
                Err(VersionError::Conflict(there)) => {
                    Told { not_at: Some(at), ..Told::shows(vec![shown(row, Some(&there))]) }
                }
                Err(VersionError::Refused(())) => Told::of(Outcome::Refused),
                Err(VersionError::Failed(failure)) => failure.into(),
            }
        }
        Op::DeleteAt(_) => {
            let Some(at) = known(player, &table, row).await else { return Told::of(Outcome::Refused) };
            plays("Table::delete_at_version");
            let id = noted.next();
            noted.decided(id, Vec::new(), vec![(row, Does::Delete)]);
            match table.delete_at_version(key, at).await {
                Ok(_) => Told { decision: Some(id), ..Told::of(Outcome::Applied) },
                Err(VersionError::NotFound) => Told::shows(vec![shown::<T>(row, None)]),
                Err(VersionError::Conflict(there)) => {
                    Told { not_at: Some(at), ..Told::shows(vec![shown(row, Some(&there))]) }
                }
                Err(VersionError::Failed(failure)) => failure.into(),
            }
        }
        Op::Delete(_) => deleted(player, &table, row, noted).await,
        Op::Edit(_, of) => {
            plays("Table::edit");
            let seen = if of.seen { player.known(row) } else { None };
            let id = noted.next();
            let (of, edit) = edit_of::<T>(of, seen, id, noted);
            noted.decided(id, Vec::new(), vec![(row, Does::Edit(of))]);
            edited(row, id, table.edit(key, &edit).await)
        }
        Op::EditOrUpdate(_, of, change) => {
            let id = noted.next();
            let (of, edit) = edit_of::<T>(of, None, id, noted);
            noted.decided(id, Vec::new(), vec![(row, Does::Edit(of))]);
            match edit_or_update(&table, &key, &edit, |now| changed(row, now, *change, noted)).await {
                // It was the edit, the update, or a decision to keep the item.
                Ok(now) => Told { shown: vec![shown(row, Some(&now))], ..Told::of(Outcome::Applied) },
                Err(error) => updated::<T>(row, *change, Err(error)),
            }
        }
        _ => {
            plays("Table::get");
            match table.get(key).await {
                Ok(seen) => Told::shows(vec![shown(row, seen.as_ref())]),
                Err(failure) => failure.into(),
            }
        }
    }
}

/// Updates the item under the token of a lease, while the lease is held. Each client holds it in a way of its own.
async fn under_lease<T: Subject>(player: &Player, table: &Table<T>, row: Row, call: &Call, noted: &Noted<'_>) -> Told {
    let (key, leases, terms) = (player.key(row), player.leases(call), LeaseTerms::default());
    let (lease_key, holder) = (&*player.client.scene.name, format!("client {}", player.client.number));
    let change = Change { draw: None, answer: Answer::Change };
    let ahead = player.ahead();
    let believes = |token: &FencingToken, remaining| {
        player.believes(token.number(), remaining, ahead.min(player.ahead()));
    };
    let update = &async |token: FencingToken| {
        updated(
            row,
            change,
            table.fenced_by(&token).update_with_retry(&key, |now| changed(row, now, change, noted)).await,
        )
    };
    // It believes in the lease when the work begins and when it ends.
    let work = async |token: FencingToken| {
        believes(&token, Duration::from_nanos(1));
        let told = update(token.clone()).await;
        believes(&token, Duration::from_nanos(1));
        told
    };
    let worked = match player.client.number {
        0 => {
            noted.own.plays("Leases::while_held");
            leases.while_held(lease_key, &holder, terms, work).await
        }
        1 => {
            noted.own.plays("Leases::campaign");
            let stop = tokio::time::sleep(Duration::from_secs(2));
            leases.campaign(lease_key, &holder, terms, stop, work).await
        }
        _ => {
            noted.own.plays("Leases::hold");
            match leases.hold(lease_key, &holder, terms, Duration::from_secs(2)).await {
                Ok(held) => {
                    // No longer: if this future is dropped, the lease is released without another word.
                    believes(held.token(), held.remaining().min(Duration::from_nanos(1)));
                    noted.own.plays("Held::lost");
                    let told = tokio::select! {
                        told = update(held.token().clone()) => told,
                        () = held.lost() => Told::of(Outcome::Dropped),
                    };
                    noted.own.plays("Held::release");
                    player.stops_believing(held.token().number());
                    return held.release().await.map_or(Told::of(Outcome::Dropped), |()| told);
                }
                Err(Error::Refused(held)) => Err(Error::Refused(Unfinished::Held(held))),
                Err(Error::Failed(failure)) => Err(failure.into()),
            }
        }
    };
    match worked {
        Ok(told) => told,
        Err(Error::Refused(Unfinished::Held(_))) => Told::of(Outcome::Refused),
        // The work was dropped, or its result was.
        Err(Error::Refused(_)) => Told::of(Outcome::Dropped),
        Err(Error::Failed(failure)) => failure.into(),
    }
}

fn edited<T: Subject>(row: Row, id: u64, done: Result<Edited<T>, UpdateError<NotEdited<T>>>) -> Told {
    match done {
        Ok(done) => {
            let shown = done.item.expect("it decodes").iter().map(|item| shown(row, Some(item))).collect();
            Told { decision: Some(id), made: vec![(row, done.at)], shown, ..Told::of(Outcome::Applied) }
        }
        Err(UpdateError::NotFound) => Told::shows(vec![shown::<T>(row, None)]),
        Err(UpdateError::Refused(refused)) => {
            let why = match refused.reason {
                NotEditedReason::NotANumber => Why::NotANumber,
                NotEditedReason::OutOfRange => Why::OutOfRange,
                NotEditedReason::Unchanged => Why::Unchanged,
                NotEditedReason::NotAsDemanded => Why::NotAsDemanded,
                _ => Why::Untold,
            };
            Told { why: Some(why), ..Told::shows(vec![shown(row, Some(&*refused.item))]) }
        }
        Err(UpdateError::Failed(failure)) => failure.into(),
    }
}

/// The decision of an update.
fn changed<T: Subject>(row: Row, now: &T, change: Change, noted: &Noted<'_>) -> Result<Option<T>, ()> {
    let id = noted.next();
    let looks = vec![Shown { row, at: None, item: item_of(now), is_certain: true }];
    match change.answer {
        Answer::Change => {
            let next = noted.changed(row, change, now, id);
            noted.decided(id, looks, vec![(row, noted.made(row, &next))]);
            Ok(Some(next))
        }
        kept => {
            noted.decided(id, looks, Vec::new());
            if kept == Answer::Keep { Ok(None) } else { Err(()) }
        }
    }
}

async fn upserted<T: Subject>(player: &Player, table: &Table<T>, row: Row, change: Change, noted: &Noted<'_>) -> Told {
    noted.own.plays("Table::upsert_with_retry");
    let done = table.upsert_with_retry(player.key(row), |now| match now {
        Some(now) => changed(row, now, change, noted),
        None => created(row, change, noted),
    });
    match done.await {
        Ok(Upserted::Created(made)) => Told::made(made.value.by(), row, &made),
        Ok(Upserted::Updated { old, new }) => {
            Told { shown: vec![shown(row, Some(&old))], ..Told::made(new.value.by(), row, &new) }
        }
        Ok(Upserted::Kept(there)) => Told::shows(vec![shown(row, there.as_ref())]),
        Err(Error::Refused(())) => Told::of(Outcome::Refused),
        Err(Error::Failed(failure)) => failure.into(),
    }
}

/// Deletes the item. One of the clients wants to see it.
async fn deleted<T: Subject>(player: &Player, table: &Table<T>, row: Row, noted: &Noted<'_>) -> Told {
    let (id, key) = (noted.next(), player.key(row));
    noted.decided(id, Vec::new(), vec![(row, Does::Delete)]);
    let deleted = if player.client.number == 1 {
        noted.own.plays("Table::delete_returning");
        table.delete_returning(key).await.map(|old| vec![shown(row, Some(&old))])
    } else {
        noted.own.plays("Table::delete");
        table.delete(key).await.map(|_| Vec::new())
    };
    match deleted {
        Ok(shown) => Told { decision: Some(id), shown, ..Told::of(Outcome::Applied) },
        Err(UpdateError::NotFound) => Told::shows(vec![shown::<T>(row, None)]),
        Err(UpdateError::Failed(failure)) => failure.into(),
    }
}

/// The decision of an upsert where no item is.
fn created<T: Subject>(row: Row, change: Change, noted: &Noted<'_>) -> Result<Option<T>, ()> {
    let (id, looks) = (noted.next(), vec![shown::<T>(row, None)]);
    if change.answer != Answer::Change {
        noted.decided(id, looks, Vec::new());
        return if change.answer == Answer::Keep { Ok(None) } else { Err(()) };
    }
    let value = noted.drawn::<T>(row, change.draw.unwrap_or(id), id);
    noted.decided(id, looks, vec![(row, noted.made(row, &value))]);
    Ok(Some(value))
}

fn updated<T: Subject>(row: Row, change: Change, done: Result<Versioned<T>, UpdateError<()>>) -> Told {
    match done {
        Ok(kept) if change.answer == Answer::Keep => Told::shows(vec![shown(row, Some(&kept))]),
        Ok(made) => Told::made(made.value.by(), row, &made),
        Err(UpdateError::NotFound) => Told::shows(vec![shown::<T>(row, None)]),
        Err(UpdateError::Refused(())) => Told::of(Outcome::Refused),
        Err(UpdateError::Failed(failure)) => failure.into(),
    }
}

/// The version that the client knows, or else the one that it reads.
async fn known<T: Subject>(player: &Player, table: &Table<T>, row: Row) -> Option<ItemVersion> {
    match player.known(row) {
        Some(at) => Some(at),
        None => table.get(player.key(row)).await.ok()?.map(|seen| seen.at),
    }
}

/// A bound of a listing, with its name and the order of the keys that are within it.
type Bound = (&'static str, fn(KeyPart) -> Sort, fn(Ordering) -> bool);

async fn list<T: Subject>(player: &Player, table: &Table<T>, row: Row, of: &Listing, noted: &Noted<'_>) -> Told {
    let plays = |name| noted.own.plays(name);
    let key = player.key(row);
    let sorted = (table as &dyn Any).downcast_ref::<Table<SortedText>>().filter(|_| of.by_index);
    let within = if key.sort().is_some() { &[0, 1][..] } else { std::slice::from_ref(&row.key) };
    match (of.how, sorted) {
        (How::Scan(parts), None) => {
            plays("Table::scan");
            return scanned(player, row, within, table.scan(), parts, of, noted).await;
        }
        (How::Scan(parts), Some(table)) => {
            plays("Table::scan_index");
            return scanned(player, row, within, table.scan_index(ByN), parts, of, noted).await;
        }
        (_, Some(table)) if of.bound > 3 => {
            plays("Sort::then");
            let partition = (key.partition(), key.sort().expect("a sort part"));
            let sort = Sort::equal_to(u32::from(of.bound)).then(Sort::more_than(0));
            let query = asking(table.query_index(ByLine, partition).sort(sort), of, noted);
            // It may leave it out, because its number is another one.
            let told = told_of(player, row, &[row.key], listed(query, of, noted).await);
            return Told { left_out: Vec::new(), ..told };
        }
        (_, Some(table)) => {
            plays("Table::query_index");
            // The index has an order of its own.
            let mut found = listed(asking(table.query_index(ByN, key.partition()), of, noted), of, noted).await;
            let first = player.key(Row { key: 0, ..row });
            let _ = found.as_mut().map(|items| items.sort_by_key(|item| item.key != first));
            return told_of(player, row, within, found);
        }
        (_, None) => {}
    }
    plays("Table::query");
    let mut query = table.query(key.partition());
    let mut within = vec![row.key];
    if let Some(sort) = key.sort() {
        let bounds: [Bound; 6] = [
            ("Sort::equal_to", Sort::equal_to, Ordering::is_eq),
            ("Sort::less_than", Sort::less_than, Ordering::is_lt),
            ("Sort::at_most", Sort::at_most, Ordering::is_le),
            ("Sort::more_than", Sort::more_than, Ordering::is_gt),
            ("Sort::at_least", Sort::at_least, Ordering::is_ge),
            ("Sort::between", |part| Sort::between(part.clone(), part), Ordering::is_eq),
        ];
        within = vec![0, 1];
        if let Some((name, bound, is_within)) = bounds.get(usize::from(of.bound)) {
            plays(name);
            plays("Query::sort");
            query = query.sort(bound(sort));
            within.retain(|other| is_within(other.cmp(&row.key)));
        } else if let (6, Some(text)) = (of.bound, sort.as_str()) {
            plays("Sort::starts_with");
            query = query.sort(Sort::starts_with(&text[..4]));
        }
    }
    if of.descending {
        plays("Query::descending");
        query = query.descending();
        within.reverse();
    }
    if of.limit > 0 {
        plays("Query::limit");
        query = query.limit(of.limit);
    }
    let query = asking(query, of, noted);
    if of.how == How::Count {
        plays("Query::count");
        // Only a count of none tells of each row that it is not there.
        return match query.count().await {
            Ok(0) => told_of::<T>(player, row, &within, Ok(Vec::new())),
            Ok(some) if some <= within.len() as u64 => Told::of(Outcome::Refused),
            Ok(more) => Told::of(Outcome::Failed(format!("counted {more}"))),
            Err(error) => not_listed(error),
        };
    }
    if let (How::Project, Some(query)) = (of.how, (&query as &dyn Any).downcast_ref::<Query<SortedText>>()) {
        plays("Query::project");
        return match listed(query.clone().project::<SortedPart>(), of, noted).await {
            Ok(parts) => {
                let row_of =
                    |part: &Listed<_>| Row { key: u8::from(part.key != player.key(Row { key: 0, ..row })), ..row };
                let shown = |part: &Listed<SortedPart>| Shown {
                    row: row_of(part),
                    at: part.at,
                    item: attributes_of(&part.value),
                    is_certain: true,
                };
                Told { parts: parts.iter().map(shown).collect(), ..Told::of(Outcome::Refused) }
            }
            Err(told) => told,
        };
    }
    told_of(player, row, &within, listed(query, of, noted).await)
}

/// What a scan of the table or of an index shows of the rows with these keys. Other programs have items there too.
async fn scanned<T: Subject>(
    player: &Player,
    row: Row,
    within: &[u8],
    scan: Query<T>,
    parts: u32,
    of: &Listing,
    noted: &Noted<'_>,
) -> Told {
    let keys: Vec<_> = within.iter().map(|key| player.key(Row { key: *key, ..row })).collect();
    let mut found = Vec::new();
    noted.own.plays("Query::segments");
    for part in asking(scan, of, noted).limit(500).segments(parts) {
        match listed(part, of, noted).await {
            Ok(items) => found.extend(items.into_iter().filter(|item| keys.contains(&item.key))),
            Err(told) => return told,
        }
    }
    // It has no order.
    found.sort_by_key(|item| keys.iter().position(|key| *key == item.key));
    told_of(player, row, within, Ok(found))
}

/// The query with its filter, and as consistent as it is asked for.
fn asking<T: Subject>(mut query: Query<T>, of: &Listing, noted: &Noted<'_>) -> Query<T> {
    let plays = |name| noted.own.plays(name);
    if let Some(filter) = &of.filter {
        plays("Query::filter");
        query = query.filter(condition_of(filter, &plays));
    }
    if of.limit == 0 {
        plays("Query::eventually_consistent");
        query = query.eventually_consistent();
    }
    query
}

fn not_listed(error: Error<InvalidCursor>) -> Told {
    match error {
        Error::Refused(_) => Told::of(Outcome::Failed("a cursor of nobody".to_owned())),
        Error::Failed(failure) => Told::from(failure),
    }
}

/// The items of all pages.
async fn listed<T: Record + Send + Sync + 'static>(
    query: Query<T>,
    of: &Listing,
    noted: &Noted<'_>,
) -> Result<Vec<Listed<T>>, Told> {
    let plays = |name| noted.own.plays(name);
    if of.as_stream {
        plays("Query::items");
        return query.items().try_collect().await.map_err(not_listed);
    }
    plays("Query::pages");
    plays("Pages::next_page");
    plays("Query::after");
    let (mut items, mut cursor) = (Vec::new(), None);
    loop {
        // Each page is asked for by its cursor, as another process would.
        let next = query.clone().after(cursor.as_ref().map(Cursor::as_str));
        let page = next.pages().next_page().await.map_err(not_listed)?.expect("a first page");
        items.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(items);
        }
    }
}

/// What a listing shows of the rows with these keys, and which of them it leaves out. It shows no others, and none twice.
fn told_of<T: Subject>(player: &Player, row: Row, within: &[u8], listed: Result<Vec<Listed<T>>, Told>) -> Told {
    let items = match listed {
        Ok(items) => items,
        Err(told) => return told,
    };
    let rows = || within.iter().map(|key| Row { key: *key, ..row });
    let mut expected = rows().map(|row| (row, player.key(row)));
    let is_listed: Option<Vec<_>> =
        items.iter().map(|item| expected.find(|(_, key)| *key == item.key).map(|(row, _)| (row, item))).collect();
    let Some(shows) = is_listed else {
        return Told::of(Outcome::Failed(format!(
            "listed {:?}",
            items.iter().map(|item| &item.key).collect::<Vec<_>>()
        )));
    };
    let left_out = rows().filter(|row| shows.iter().all(|(of, _)| of != row)).collect();
    let shown =
        shows.into_iter().map(|(row, item)| Shown { row, at: item.at, item: item_of(&item.value), is_certain: true });
    Told { left_out, ..Told::shows(shown.collect()) }
}
