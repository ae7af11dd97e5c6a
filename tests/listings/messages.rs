//! The listed items: messages in rooms, in the order of their numbers, and with indexes of every kind.

use crate::harness::engine::{Engine, properties_of, with_properties};
use fencepost::{Error, Index, InvalidCursor, Key, Listed, Page, Projection, Query, Record, Store, Table, TableSchema};
use serde::{Deserialize, Serialize};

pub const TABLE: &str = "Messages";

/// A message. Its key is its room and its number.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, Record)]
#[record(key = "room", sort = "number")]
pub struct Message {
    pub author: String,
    pub rank: i64,
    pub text: String,
}

pub fn message(author: &str, rank: i64) -> Message {
    Message { author: author.to_owned(), rank, text: "hello".to_owned() }
}

/// A message without its text.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Record)]
#[record(key = "room", sort = "number")]
pub struct Headline {
    pub author: String,
    pub rank: i64,
}

/// The record of an index of the keys alone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Record)]
#[record(key = "room", sort = "number")]
pub struct Authored {
    pub author: String,
}

/// Defines an index of the messages.
macro_rules! index {
    ($(#[$doc:meta])* $name:ident, $shown:ty, $text:literal, $partition:literal, $sort:expr, $is_local:literal, $projection:expr) => {
        $(#[$doc])*
        pub struct $name;

        impl Index for $name {
            type Record = Message;
            type Shown = $shown;
            const NAME: &'static str = $text;
            const PARTITION_KEY: &'static str = $partition;
            const SORT_KEY: Option<&'static str> = $sort;
            const IS_LOCAL: bool = $is_local;
            const PROJECTION: Projection = $projection;
        }
    };
}

index!(
    /// The messages of an author, by rank.
    ByAuthor, Message, "byAuthor", "author", Some("rank"), false, Projection::All
);
index!(
    /// The messages of an author in no order, with some of their attributes and with their versions.
    Headlines, Headline, "headlines", "author", None, false,
    Projection::Include(&["rank", "_version", "_incarnation"])
);
index!(
    /// The keys of the messages of an author.
    Keys, Authored, "keys", "author", Some("number"), false, Projection::KeysOnly
);
index!(
    /// The messages of a room, by rank.
    ByRank, Message, "byRank", "room", Some("rank"), true, Projection::All
);
index!(
    /// The messages with one number in all rooms. Its keys are those of the table, so tombstones are in it.
    ByNumber, Message, "byNumber", "number", Some("room"), false, Projection::All
);

/// A message's rank alone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Record)]
#[record(key = "room", sort = "number")]
pub struct Ranked {
    pub rank: i64,
}

index!(
    /// The ranks of the messages with one number. Tombstones are in it, with their marks and without their incarnation.
    RankByNumber, Ranked, "rankByNumber", "number", Some("room"), false,
    Projection::Include(&["rank", "_version", "_purgeAt", "_buried"])
);

/// The empty table with its indexes.
pub fn engine() -> Engine {
    let schema = TableSchema::of::<Message>().with_index(ByAuthor).with_index(Headlines).with_index(Keys);
    let schema = schema.with_index(ByNumber).with_index(RankByNumber).with_index(ByRank);
    let schema = schema.with_key_type("number", "N".into()).with_key_type("rank", "N".into());
    with_properties(Engine::with_tables(&[]), &properties_of(&schema.to_cloudformation(TABLE)))
}

/// The table over a client of its own.
pub fn table(engine: &Engine) -> Table<Message> {
    Store::new(&engine.client()).table(TABLE)
}

pub fn key(room: &str, number: i64) -> Key {
    Key::from((room, number))
}

/// Creates these messages of one room.
pub async fn fill(table: &Table<Message>, room: &str, numbers: impl IntoIterator<Item = i64>) {
    for number in numbers {
        table.create(&key(room, number), &message("ann", 100 - number)).await.expect("a free key");
    }
}

/// The room and number of a listed item.
pub fn place<T>(item: &Listed<T>) -> (String, i64) {
    let (room, number) = (item.key.partition(), item.key.sort().expect("a sort part"));
    (room.as_str().expect("text").to_owned(), number.as_i64().expect("a number"))
}

/// The numbers of a page's items.
pub fn numbers<T>(page: &Page<T>) -> Vec<i64> {
    page.items.iter().map(|item| place(item).1).collect()
}

/// All pages of a query.
pub async fn all<T: Record>(query: Query<T>) -> Result<Vec<Page<T>>, Error<InvalidCursor>> {
    let mut all = Vec::new();
    let mut pages = query.pages();
    while let Some(page) = pages.next_page().await? {
        all.push(page);
    }
    Ok(all)
}

/// The numbers of all items of a query, in its order.
pub async fn all_numbers<T: Record>(query: Query<T>) -> Vec<i64> {
    all(query).await.expect("pages").iter().flat_map(numbers).collect()
}
