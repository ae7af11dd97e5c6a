//! Begins to use a table that another program has filled and still writes, with versions of its own.

use aws_sdk_dynamodb::types::AttributeValue;
use fencepost::{Names, Record, Settings, Store, Table, from_sdk};
use fencepost_test::Engine;
use serde::{Deserialize, Serialize};

/// Each write of the other program demands `version` and raises it.
const SETTINGS: Settings =
    Settings::without_ttl().shared_with_versioned_writers().swept().names(Names::DEFAULT.version("version"));

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Record)]
#[record(key = "userId", settings = SETTINGS)]
struct User {
    name: String,
    points: i64,
}

#[tokio::test]
async fn a_row_is_adopted_by_its_first_change_and_stays_readable_to_the_other_program() {
    let engine = Engine::embedded(&[("Users", "userId")]);
    let plain = engine.client();
    let [s, n] = [AttributeValue::S, AttributeValue::N].map(|kind| move |value: &str| kind(value.to_owned()));
    let put = plain.put_item().table_name("Users").item("userId", s("u-1")).item("name", s("Ann"));
    let put = put.item("points", n("1")).item("version", n("4")).item("shelf", s("A7"));
    put.send().await.expect("another program writes it");

    let users: Table<User> = Store::new(&plain).table("Users");
    engine.take_counts();
    users.edit("u-1", &User::FIELDS.points.add(10, ..)).await.expect("adopted and changed");
    assert_eq!(engine.take_counts(), (1, 1));
    // The other program reads its row, and this one reads a row that it got from the plain SDK.
    let read = plain.get_item().table_name("Users").key("userId", s("u-1")).send().await.expect("an answer");
    let row = read.item.expect("a row");
    assert_eq!((&row["version"], &row["shelf"]), (&n("5"), &s("A7")));
    let user = Table::<User>::live(from_sdk(row)).expect("it decodes").expect("it is no tombstone");
    assert_eq!(user.value, User { name: "Ann".to_owned(), points: 11 });
    users.delete("u-1").await.expect("it is there");
    let read = plain.get_item().table_name("Users").key("userId", s("u-1")).send().await.expect("an answer");
    assert_eq!(Table::<User>::live(from_sdk(read.item.expect("a tombstone"))).expect("it is one"), None);
}
