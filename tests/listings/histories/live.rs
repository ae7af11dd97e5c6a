//! Random creates, changes and deletes: a listing is the live set, and cursors survive the changes.

use super::explored;
use crate::harness::engine::Engine;
use crate::harness::seeds::play;
use crate::harness::total::Total;
use crate::listings::messages::{
    ByAuthor, ByNumber, ByRank, Headlines, Keys, Message, RankByNumber, all, key, message, place, table,
};
use fencepost::{ItemVersion, Key, Page, Query, Record, Sort, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt::Debug;

/// The expected content: each live item by its room and its number.
type Live = BTreeMap<(String, i64), (Message, ItemVersion)>;

/// Rooms and authors of one history, and numbers in each room.
const ROOMS: u64 = 2;
const AUTHORS: u64 = 3;
const NUMBERS: i64 = 14;

struct History {
    table: Table<Message>,
    seed: u64,
    rng: fastrand::Rng,
    live: Live,
    deleted: BTreeSet<(String, i64)>,
    seen: Total,
}

impl History {
    fn room(&self, room: u64) -> String {
        format!("room-{}-{room}", self.seed)
    }

    fn author(&self, author: u64) -> String {
        format!("author-{}-{author}", self.seed)
    }

    /// The numbers of this history, which no other one has.
    fn number(&self, number: i64) -> i64 {
        i64::try_from(self.seed).expect("small") * 1000 + number
    }

    fn any_message(&mut self) -> Message {
        let author = self.rng.u64(..AUTHORS);
        message(&self.author(author), self.rng.i64(-3..4))
    }

    /// One create, change or delete.
    async fn change(&mut self) -> Result<(), String> {
        let room = self.rng.u64(..ROOMS);
        let number = self.rng.i64(0..NUMBERS);
        let (room, number) = (self.room(room), self.number(number));
        let (key, at) = (key(&room, number), (room, number));
        let value = self.any_message();
        if !self.live.contains_key(&at) {
            let made = self.table.create(&key, &value).await.map_err(|error| error.to_string())?;
            self.seen.count("createdAgain", usize::from(self.deleted.contains(&at)));
            self.live.insert(at, (made.value, made.at));
        } else if self.rng.u8(..5) < 2 {
            self.table.delete(&key).await.map_err(|error| error.to_string())?;
            self.live.remove(&at);
            self.deleted.insert(at);
            self.seen.count("deletes", 1);
        } else {
            let decide = |_: &Message| Ok::<_, Infallible>(Some(value.clone()));
            let changed = self.table.update_with_retry(&key, decide).await;
            let changed = changed.map_err(|error| error.to_string())?;
            self.live.insert(at, (changed.value, changed.at));
            self.seen.count("changes", 1);
        }
        Ok(())
    }

    /// Limits and directs a query at random.
    fn shaped<T: Record>(&mut self, query: Query<T>) -> (Query<T>, bool) {
        let query = if self.rng.bool() { query.limit(self.rng.u16(1..9)) } else { query };
        if self.rng.bool() { (query.descending(), true) } else { (query, false) }
    }

    /// The live items that pass, in the order of `by`.
    fn expected<O: Ord>(
        &self,
        passes: impl Fn(&(String, i64), &Message) -> bool,
        by: impl Fn(&(String, i64), &Message) -> O,
    ) -> Vec<(String, i64)> {
        let mut expected: Vec<_> = self.live.iter().filter(|(at, (value, _))| passes(at, value)).collect();
        expected.sort_by_key(|(at, (value, _))| by(at, value));
        expected.into_iter().map(|(at, _)| at.clone()).collect()
    }

    /// Lists a query and compares it with the expected items one by one. DynamoDB chooses the order of items with equal
    /// sort keys, so only `by` is compared.
    async fn check<T: Record + PartialEq + Debug, O: Ord + Debug>(
        &mut self,
        name: &str,
        query: Query<T>,
        passes: impl Fn(&(String, i64), &Message) -> bool,
        by: impl Fn(&(String, i64), &Message) -> O,
        shown: impl Fn(&Message) -> T,
        has_version: bool,
    ) -> Result<(), String> {
        let (query, is_descending) = self.shaped(query);
        let pages: Vec<Page<T>> = all(query.clone()).await.map_err(|error| format!("{name}: {error}"))?;
        self.seen.count("listings", 1);
        self.seen.count("pages", pages.len());
        let mut expected = self.expected(&passes, &by);
        let order = |at: &(String, i64)| self.live.get(at).map(|(value, _)| by(at, value));
        let listed: Vec<_> = pages.iter().flat_map(|page| &page.items).collect();
        let mut places: Vec<_> = listed.iter().map(|item| place(item)).collect();
        if is_descending {
            places.reverse();
        }
        if !places.is_sorted_by_key(order) {
            return Err(format!("{name}: out of order: {query:?} {places:?}"));
        }
        places.sort();
        expected.sort();
        if places != expected {
            return Err(format!("{name}: {query:?} listed {places:?}, live are {expected:?}"));
        }
        for item in listed {
            let (value, at) = &self.live[&place(item)];
            if item.value != shown(value) || item.at != has_version.then_some(*at) {
                return Err(format!("{name}: listed {item:?}, stored {value:?} {at:?}"));
            }
        }
        Ok(())
    }

    /// Compares every listing with the expected one.
    async fn check_all(&mut self) -> Result<(), String> {
        let by_number = |at: &(String, i64), _: &Message| at.1;
        let by_rank = |_: &(String, i64), value: &Message| value.rank;
        for room in 0..ROOMS {
            let room = self.room(room);
            let in_room = |at: &(String, i64), _: &Message| at.0 == room;
            let table = self.table.clone();
            let rooms = || table.query(room.as_str());
            self.check("table", rooms(), in_room, by_number, Clone::clone, true).await?;
            let mut bounds = [self.rng.i64(0..NUMBERS), self.rng.i64(0..NUMBERS)].map(|number| self.number(number));
            bounds.sort_unstable();
            let [first, last] = bounds;
            for (bound, keeps) in bounds_of(first, last) {
                let within = |at: &(String, i64), _: &Message| at.0 == room && keeps(at.1, first, last);
                let name = format!("{bound:?}");
                self.check(&name, rooms().sort(bound), within, by_number, Clone::clone, true).await?;
            }
            let query = table.query_index(ByRank, room.as_str());
            self.check("by rank", query, in_room, by_rank, Clone::clone, true).await?;
        }
        for author in 0..AUTHORS {
            let author = self.author(author);
            let of_author = |_: &(String, i64), value: &Message| value.author == author;
            let table = self.table.clone();
            let query = table.query_index(ByAuthor, author.as_str());
            self.check("by author", query.clone(), of_author, by_rank, Clone::clone, true).await?;
            let ranked = |_: &(String, i64), value: &Message| value.author == author && (-1..=2).contains(&value.rank);
            let query = query.sort(Sort::between(-1, 2));
            self.check("by author and rank", query, ranked, by_rank, Clone::clone, true).await?;
            let headline = |m: &Message| crate::listings::messages::Headline { author: m.author.clone(), rank: m.rank };
            let query = table.query_index(Headlines, author.as_str());
            self.check("headlines", query, of_author, |_, _| (), headline, true).await?;
            let authored = |m: &Message| crate::listings::messages::Authored { author: m.author.clone() };
            let query = table.query_index(Keys, author.as_str());
            self.check("keys", query, of_author, by_number, authored, false).await?;
        }
        for number in (0..NUMBERS).step_by(5) {
            let number = self.number(number);
            let with_number = |at: &(String, i64), _: &Message| at.1 == number;
            let by_room = |at: &(String, i64), _: &Message| at.0.clone();
            let query = self.table.query_index(ByNumber, number);
            self.check("by number", query, with_number, by_room, Clone::clone, true).await?;
            let ranked = |m: &Message| crate::listings::messages::Ranked { rank: m.rank };
            let query = self.table.query_index(RankByNumber, number);
            self.check("ranks by number", query, with_number, by_room, ranked, false).await?;
        }
        self.check_many().await
    }

    /// Reads every key, and some twice.
    async fn check_many(&mut self) -> Result<(), String> {
        let mut places: Vec<_> = (0..ROOMS)
            .flat_map(|room| (0..NUMBERS).map(move |number| (room, number)))
            .map(|(room, number)| (self.room(room), self.number(number)))
            .collect();
        places.extend_from_within(..5);
        self.rng.shuffle(&mut places);
        let keys: Vec<Key> = places.iter().map(|(room, number)| key(room, *number)).collect();
        let found = self.table.get_many(&keys).await.map_err(|error| error.to_string())?;
        for (at, found) in places.iter().zip(found) {
            let found = found.map(|item| (item.value, item.at));
            if found.as_ref() != self.live.get(at) {
                return Err(format!("get_many: {at:?} is {found:?}, stored is {:?}", self.live.get(at)));
            }
        }
        Ok(())
    }

    /// Lists a room by its cursors during changes. An item present all the time is listed once. An item that never
    /// existed is never listed.
    async fn list_while_changing(&mut self) -> Result<(), String> {
        let room = self.rng.u64(..ROOMS);
        let room = self.room(room);
        let (limit, is_descending) = (self.rng.u16(1..5), self.rng.bool());
        let of_room = |live: &Live| -> BTreeSet<i64> {
            live.keys().filter(|(own, _)| *own == room).map(|(_, number)| *number).collect()
        };
        let mut always = of_room(&self.live);
        let mut ever = always.clone();
        let (mut listed, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let query = self.table.query(room.as_str()).limit(limit).after(cursor.as_deref());
            let query = if is_descending { query.descending() } else { query };
            let page = query.pages().next_page().await.map_err(|error| error.to_string())?;
            let page = page.ok_or("no page after a cursor")?;
            listed.extend(page.items.iter().map(|item| place(item).1));
            cursor = page.next.map(String::from);
            if cursor.is_none() {
                break;
            }
            for _ in 0..self.rng.usize(..4) {
                self.change().await?;
                self.seen.count("changedWhileListed", 1);
                let now = of_room(&self.live);
                always.retain(|number| now.contains(number));
                ever.extend(now);
            }
        }
        if is_descending {
            listed.reverse();
        }
        let is_strictly_sorted = listed.windows(2).all(|pair| pair[0] < pair[1]);
        let listed: BTreeSet<_> = listed.into_iter().collect();
        if is_strictly_sorted && listed.is_superset(&always) && listed.is_subset(&ever) {
            return Ok(());
        }
        Err(format!("limit {limit}: listed {listed:?}, always there {always:?}, ever there {ever:?}"))
    }
}

/// Whether a number is within a bound of two numbers.
type Keeps = fn(i64, i64, i64) -> bool;

/// Every bound of a sort key.
fn bounds_of(first: i64, last: i64) -> [(Sort, Keeps); 6] {
    [
        (Sort::equal_to(first), |number, first, _| number == first),
        (Sort::less_than(last), |number, _, last| number < last),
        (Sort::at_most(last), |number, _, last| number <= last),
        (Sort::more_than(first), |number, first, _| number > first),
        (Sort::at_least(first), |number, first, _| number >= first),
        (Sort::between(first, last), |number, first, last| (first..=last).contains(&number)),
    ]
}

fn run(engine: &Engine, seed: u64) -> Result<Total, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let rng = fastrand::Rng::with_seed(seed);
        let (table, live, deleted) = (table(engine), Live::new(), BTreeSet::new());
        let mut history = History { table, seed, rng, live, deleted, seen: Total::default() };
        for _ in 0..2 {
            for _ in 0..history.rng.usize(5..25) {
                history.change().await?;
            }
            history.list_while_changing().await?;
            history.check_all().await?;
        }
        Ok(history.seen)
    })
}

#[test]
fn a_listing_is_the_live_set_and_its_cursors_survive_changes() {
    if let Some(seen) = play(16, |seeds| explored(seeds, run)) {
        println!("{seen}");
        let least = seen.least(&["changes", "deletes", "createdAgain", "changedWhileListed"]);
        assert!(least > 0, "something never happened: {seen}");
        assert!(seen["pages"] > seen["listings"], "every listing had one page: {seen}");
    }
}
