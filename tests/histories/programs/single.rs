//! Plays the operations on one table.

use super::catalog::{Row, item_of};
use super::edits::Why;
use super::plan::{Answer, Change, Listing, Op, Task};
use super::player::{LEASES, Noted, Player};
use super::records::{ByN, SortedText, Subject};
use super::told::{Does, Outcome, Shown, Told, shown};
use super::writing::edit_of;
use fencepost::lease::{LeaseTerms, Unfinished};
use fencepost::testing::edit_or_update;
use fencepost::{
    Call, Cursor, Edited, Error, Exists, FencingToken, ItemVersion, KeyPart, NotEdited, Sort, Table, UpdateError,
    VersionError, Versioned,
};
use futures_util::StreamExt;
use std::any::Any;
use std::time::Duration;

pub async fn perform<T: Subject>(player: &Player, task: &Task, row: Row, call: &Call, noted: &Noted<'_>) -> Told {
    let plays = |name| noted.own.plays(name);
    let (table, key) = (player.table::<T>(task, call), player.key(row));
    match &task.op {
        Op::GetMany(rows) => {
            plays("Table::get_many");
            match table.get_many(rows.iter().map(|row| player.key(*row))).await {
                Ok(seen) => Told::shows(rows.iter().zip(&seen).map(|(row, seen)| shown(*row, seen.as_ref())).collect()),
                Err(failure) => failure.into(),
            }
        }
        Op::List(_, of) => list::<T>(player, &table, row, *of, noted).await,
        Op::Create(_, seed) => {
            plays("Table::create");
            let value = noted.drawn::<T>(*seed, noted.next());
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
        Op::Lease(_) => while_held(player, &table, row, call, noted).await,
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
        Op::Delete(_) => {
            plays("Table::delete");
            let id = noted.next();
            noted.decided(id, Vec::new(), vec![(row, Does::Delete)]);
            match table.delete(key).await {
                Ok(_) => Told { decision: Some(id), ..Told::of(Outcome::Applied) },
                Err(UpdateError::NotFound) => Told::shows(vec![shown::<T>(row, None)]),
                Err(UpdateError::Failed(failure)) => failure.into(),
            }
        }
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

/// Updates the item under the token of a lease, while the lease is held.
async fn while_held<T: Subject>(player: &Player, table: &Table<T>, row: Row, call: &Call, noted: &Noted<'_>) -> Told {
    let key = player.key(row);
    noted.own.plays("Leases::while_held");
    let leases = player.store.leases(LEASES).with_clock_skew(Duration::from_mins(10)).in_call(call);
    let (lease_key, holder) = (&*player.client.scene.name, format!("client {}", player.client.number));
    let change = Change { draw: None, answer: Answer::Change };
    let work = async |token: FencingToken| {
        let done = table.fenced_by(&token).update_with_retry(key, |now| changed(row, now, change, noted)).await;
        updated(row, change, done)
    };
    match leases.while_held(lease_key, &holder, LeaseTerms::default(), work).await {
        Ok(told) => told,
        Err(Error::Refused(Unfinished::Held(_))) => Told::of(Outcome::Refused),
        // The work was dropped.
        Err(Error::Refused(_)) => Told::of(Outcome::Dropped),
        Err(Error::Failed(failure)) => failure.into(),
    }
}

fn edited<T: Subject>(row: Row, id: u64, done: Result<Edited<T>, UpdateError<NotEdited<T>>>) -> Told {
    match done {
        Ok(done) => {
            let shown = done.item.iter().map(|item| shown(row, Some(item))).collect();
            Told { decision: Some(id), made: vec![(row, done.at)], shown, ..Told::of(Outcome::Applied) }
        }
        Err(UpdateError::NotFound) => Told::shows(vec![shown::<T>(row, None)]),
        Err(UpdateError::Refused(refused)) => {
            let why = match &refused {
                NotEdited::NotANumber(_) => Why::NotANumber,
                NotEdited::OutOfRange(_) => Why::OutOfRange,
                NotEdited::Unchanged(_) => Why::Unchanged,
                NotEdited::NotAsDemanded(_) => Why::NotAsDemanded,
                _ => Why::Untold,
            };
            Told { why: Some(why), ..Told::shows(vec![shown(row, Some(refused.item()))]) }
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
            let next = noted.changed(change, now, id);
            noted.decided(id, looks, vec![(row, noted.made(row, &next))]);
            Ok(Some(next))
        }
        kept => {
            noted.decided(id, looks, Vec::new());
            if kept == Answer::Keep { Ok(None) } else { Err(()) }
        }
    }
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

/// A bound of a listing, with its name.
type Bound = (&'static str, fn(KeyPart) -> Sort);

async fn list<T: Subject>(player: &Player, table: &Table<T>, row: Row, of: Listing, noted: &Noted<'_>) -> Told {
    let plays = |name| noted.own.plays(name);
    let key = player.key(row);
    let any: &dyn Any = table;
    if let (true, Some(table)) = (of.by_index, any.downcast_ref::<Table<SortedText>>()) {
        plays("Table::query_index");
        return match table.query_index(ByN, key.partition()).pages().next_page().await {
            Ok(_) => Told::of(Outcome::Refused),
            Err(Error::Refused(_)) => Told::of(Outcome::Failed("a cursor of nobody".to_owned())),
            Err(Error::Failed(failure)) => failure.into(),
        };
    }
    plays("Table::query");
    let mut query = table.query(key.partition());
    if let Some(sort) = key.sort() {
        let bounds: [Bound; 6] = [
            ("Sort::equal_to", Sort::equal_to),
            ("Sort::less_than", Sort::less_than),
            ("Sort::at_most", Sort::at_most),
            ("Sort::more_than", Sort::more_than),
            ("Sort::at_least", Sort::at_least),
            ("Sort::between", |part| Sort::between(part.clone(), part)),
        ];
        if let Some((name, bound)) = bounds.get(usize::from(of.bound)) {
            plays(name);
            plays("Query::sort");
            query = query.sort(bound(sort));
        } else if let (6, Some(text)) = (of.bound, sort.as_str()) {
            plays("Sort::starts_with");
            query = query.sort(Sort::starts_with(&text[..4]));
        }
    }
    if of.descending {
        plays("Query::descending");
        query = query.descending();
    }
    if of.limit > 0 {
        plays("Query::limit");
        query = query.limit(of.limit);
    }
    plays("Query::pages");
    let mut items = Vec::new();
    let told = |error| match error {
        Error::Refused(_) => Told::of(Outcome::Failed("a cursor of nobody".to_owned())),
        Error::Failed(failure) => Told::from(failure),
    };
    if of.as_stream {
        plays("Pages::into_stream");
        let mut pages = query.pages().into_stream();
        while let Some(page) = pages.next().await {
            match page {
                Ok(page) => items.extend(page.items),
                Err(error) => return told(error),
            }
        }
    } else {
        plays("Pages::next_page");
        plays("Query::after");
        let mut cursor = None;
        loop {
            // Each page is asked for by its cursor, as another process would.
            let next = query.clone().after(cursor.as_ref().map(Cursor::as_str));
            let page = match next.pages().next_page().await {
                Ok(page) => page.expect("a first page"),
                Err(error) => return told(error),
            };
            items.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
    }
    plays("Listed::versioned");
    let rows = (0..2).map(|key| Row { key, ..row });
    let found = rows.filter_map(|row| {
        let item = items.iter().find(|item| item.key == player.key(row))?.clone();
        Some(shown(row, item.versioned().as_ref()))
    });
    Told::shows(found.collect())
}
