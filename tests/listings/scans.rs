//! Scans in segments, filters, counts, projections, and an index whose keys have several attributes.

use super::messages::{ByRank, Headline, Message, TABLE, all, engine, fill, key, message, place, table};
use crate::harness::engine::{Engine, properties_of, with_properties};
use aws_sdk_dynamodb::types::ScalarAttributeType;
use fencepost::field::Field;
use fencepost::{
    Condition, Error, FailureKind, Index, InvalidCursor, Key, Query, Record, Settings, Sort, Store, Table, TableSchema,
    Upserted,
};
use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;

async fn places<T: Record + Send + 'static>(query: Query<T>) -> Vec<(String, i64)> {
    query.items().map_ok(|item| place(&item)).try_collect().await.expect("items")
}

/// The reason for which a query is refused before anything is sent.
async fn refusal<T: Record>(engine: &Engine, query: Query<T>) -> String {
    engine.take_log();
    let refused = [query.clone().count().await.err(), all(query).await.err()];
    assert_eq!(engine.take_counts(), (0, 0));
    let reasons = refused.map(|refused| match refused {
        Some(Error::Failed(failure)) => match failure.kind {
            FailureKind::InvalidRecord { reason } => reason,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    });
    assert_eq!(reasons[0], reasons[1]);
    reasons.into_iter().next().expect("one")
}

#[tokio::test]
async fn segments_are_disjoint_and_show_together_what_the_whole_shows() {
    let engine = engine();
    let table = table(&engine);
    for room in ["a", "b", "c", "d", "e"] {
        fill(&table, room, 1..=4).await;
    }
    for room in ["a", "c"] {
        table.delete(key(room, 2)).await.expect("it was there");
    }
    let mut whole = places(table.scan()).await;
    whole.sort();
    assert_eq!(whole.len(), 18);
    let mut in_parts = Vec::new();
    for segment in table.scan().segments(3) {
        let (counted, shown) = (segment.clone().count().await.expect("a count"), places(segment).await);
        assert_eq!(counted, shown.len() as u64);
        in_parts.extend(shown);
    }
    in_parts.sort();
    assert_eq!(in_parts, whole);
    engine.take_log();
    assert_eq!(table.scan().count().await.expect("a count"), 18);
    assert_eq!(table.query("a").count().await.expect("a count"), 3);
    assert_eq!(table.scan_index(ByRank).eventually_consistent().count().await.expect("a count"), 18);
    let log: Vec<_> = engine
        .take_log()
        .into_iter()
        .map(|asked| (asked.body["Select"].clone(), asked.body["ConsistentRead"] == true))
        .collect();
    assert_eq!(log, [(json!("COUNT"), true), (json!("COUNT"), true), (json!("COUNT"), false)]);
    let first = table.scan().segments(2).next().expect("a segment").limit(1).pages().next_page().await;
    let cursor = first.expect("an answer").expect("a page").next.expect("more");
    let goes_on = |query: Query<Message>| query.after(Some(cursor.as_str())).count();
    assert!(goes_on(table.scan().segments(2).next().expect("a segment")).await.is_ok());
    for other in [table.scan(), table.scan().segments(2).last().expect("a segment"), table.query("a")] {
        assert!(matches!(goes_on(other).await, Err(Error::Refused(InvalidCursor))));
    }
}

/// Deletes leave marks of another kind in each of these tables.
#[tokio::test]
async fn a_count_leaves_out_tombstones_of_every_kind_and_counts_what_was_created_again() {
    macro_rules! counts {
        ($($settings:expr),*) => {$({
            #[derive(Serialize, Deserialize, Record)]
            #[record(key = "id", settings = $settings)]
            struct Note { text: String }
            let engine = Engine::with_tables(&[(TABLE, "id")]);
            let notes: Table<Note> = Store::new(&engine.client()).table(TABLE);
            for id in ["a", "b", "c", "d"] {
                notes.create(id, &Note { text: id.to_owned() }).await.expect("a free key");
            }
            for id in ["a", "b"] {
                notes.delete(id).await.expect("it was there");
            }
            let made = notes.upsert_with_retry("a", |_| Note { text: "again".to_owned() }).await.expect("an answer");
            assert!(matches!(made, Upserted::Created(_)));
            notes.edit("a", &Note::FIELDS.text.set("and changed".to_owned())).await.expect("it is there");
            assert_eq!(notes.scan().count().await.expect("a count"), 3, "{}", stringify!($settings));
            let changed = notes.scan().filter(Note::FIELDS.text.is("and changed".to_owned()));
            assert_eq!(changed.count().await.expect("a count"), 1);
        })*};
    }
    counts!(
        Settings::own(),
        Settings::without_ttl().swept(),
        Settings::without_ttl().removed(),
        Settings::without_ttl().kept(),
        Settings::without_ttl().shared_with_versioned_writers().swept(),
        Settings::open_to_any()
    );
}

#[tokio::test]
async fn a_filter_shows_what_meets_it_and_a_projection_reads_only_its_attributes() {
    let engine = engine();
    let table = table(&engine);
    fill(&table, "a", 1..=5).await;
    table.create(key("b", 1), &message("bob", 3)).await.expect("a free key");
    table.delete(key("a", 4)).await.expect("it was there");
    let fields = Message::FIELDS;
    let low = fields.rank.is_less_than(97);
    let found = |places: Vec<(String, i64)>| places.into_iter().collect::<BTreeSet<_>>();
    let of = |all: &[(&str, i64)]| all.iter().map(|(room, number)| ((*room).to_owned(), *number)).collect();
    assert_eq!(found(places(table.scan().filter(low.clone())).await), of(&[("a", 5), ("b", 1)]));
    assert_eq!(found(places(table.query("a").filter(low.clone())).await), of(&[("a", 5)]));
    let one = Condition::any([low.clone().and(fields.author.is("ann".to_owned()))]);
    assert_eq!(found(places(table.scan().filter(one)).await), of(&[("a", 5)]), "a join of one needs no parentheses");
    engine.take_log();
    let heads: Vec<_> = table.query("a").filter(low).project::<Headline>().items().try_collect().await.expect("items");
    let asked = engine.take_log().remove(0).body;
    let names = &asked["ExpressionAttributeNames"];
    let shown = asked["ProjectionExpression"].as_str().expect("a projection").split(", ");
    let shown: BTreeSet<_> = shown.map(|name| names[name].as_str().expect("a name")).collect();
    let expected = ["_buried", "_incarnation", "_purgeAt", "_version", "author", "number", "rank", "room"];
    assert_eq!(shown, BTreeSet::from(expected));
    let whole = table.get(key("a", 5)).await.expect("an answer").expect("it is there");
    assert_eq!(heads.len(), 1);
    assert_eq!((heads[0].value.rank, heads[0].at), (95, Some(whole.at)));

    let refused = refusal(&engine, table.query_index(ByRank, "a").filter(fields.rank.is(1))).await;
    assert!(refused.contains("names rank, which is a key of what is queried"), "{refused}");
    assert!(table.scan_index(ByRank).filter(fields.rank.is(95)).count().await.is_ok(), "a scan may filter by it");
    for (query, reason) in [
        (table.scan().sort(Sort::at_least(1)), "a scan has no order"),
        (table.scan().descending(), "a scan has no order"),
        (table.query("a").segments(2).next().expect("a segment"), "has no segments"),
        (
            table.scan().segments(2).flat_map(|part| part.segments(2)).last().expect("a segment"),
            "and a segment has none",
        ),
        (table.scan().segments(0).next().expect("a segment"), "1 to 1,000,000 segments"),
        (table.scan().filter(Condition::any([])), "made of no others"),
        (table.scan().filter(Field::<Message, u64>::of("zzz").is(1)), "zzz"),
        (table.query("a").sort(Sort::equal_to(1).then(Sort::equal_to(2))), "bounds 2 attributes of the sort key, of 1"),
    ] {
        let refused = refusal(&engine, query).await;
        assert!(refused.contains(reason), "{refused}");
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Record)]
#[record(key = "orderId")]
struct Order {
    /// The key, as a field.
    #[serde(rename = "orderId")]
    id: String,
    tenant: String,
    region: String,
    year: i64,
    day: i64,
}

struct ByPlace;

impl Index for ByPlace {
    type Record = Order;
    type Shown = Order;
    const NAME: &'static str = "byPlace";
    const PARTITION_KEY: &'static str = "tenant";
    const MORE_PARTITION_KEYS: &'static [&'static str] = &["region"];
    const SORT_KEY: Option<&'static str> = Some("year");
    const MORE_SORT_KEYS: &'static [&'static str] = &["day"];
}

fn order(id: &str, region: &str, (year, day): (i64, i64)) -> Order {
    Order { id: id.to_owned(), tenant: "t-7".to_owned(), region: region.to_owned(), year, day }
}

#[tokio::test]
async fn an_index_may_have_several_attributes_in_its_keys() {
    let schema = TableSchema::of::<Order>().with_index(ByPlace);
    let schema = ["year", "day"].iter().fold(schema, |schema, key| schema.with_key_type(key, ScalarAttributeType::N));
    let engine = with_properties(Engine::embedded(&[]), &properties_of(&schema.to_cloudformation("Orders")));
    let store = Store::new(&engine.client());
    store.check_table("Orders", &schema).await.expect("the printed table passes");
    assert!(schema.to_terraform("Orders").contains(r#"{ "attribute_name": "region", "key_type": "HASH" }"#));

    let orders: Table<Order> = store.table("Orders");
    let made = [("a", "eu", (2026, 7)), ("b", "eu", (2026, 9)), ("c", "eu", (2025, 9)), ("d", "us", (2026, 9))];
    for (id, region, on) in made {
        orders.create(id, &order(id, region, on)).await.expect("a free key");
    }
    orders.create("e", &order("e", "eu", (2026, 10))).await.expect("a free key");
    orders.delete("e").await.expect("it was there");
    let ids = async |query: Query<Order>| -> Vec<String> {
        query.limit(1).items().map_ok(|order| order.value.id).try_collect().await.expect("items")
    };
    let eu = orders.query_index(ByPlace, ("t-7", "eu"));
    assert_eq!(ids(eu.clone()).await, ["c", "a", "b"], "by year, then by day, over three pages");
    assert_eq!(ids(eu.clone().sort(Sort::at_least(2026))).await, ["a", "b"]);
    assert_eq!(ids(eu.clone().sort(Sort::equal_to(2026).then(Sort::more_than(7)))).await, ["b"]);
    assert_eq!(ids(orders.scan_index(ByPlace).filter(Order::FIELDS.region.is("us".to_owned()))).await, ["d"]);
    let refused = refusal(&engine, orders.query_index(ByPlace, "t-7")).await;
    assert!(refused.contains("names 1 of the 2 parts of the partition key: tenant, region"), "{refused}");
    let refused = refusal(&engine, eu.sort(Sort::at_least(2026).then(Sort::more_than(7)))).await;
    assert!(refused.contains("only the last bound"), "{refused}");

    // The key that a value has as a field is that of its item.
    let wrong = order("x", "eu", (2026, 1));
    let reasons = [
        orders.create("f", &wrong).await.map(drop).map_err(|error| error.to_string()),
        orders.update_with_retry("a", |_| wrong.clone()).await.map(drop).map_err(|error| error.to_string()),
        orders.upsert_with_retry("f", |_| wrong.clone()).await.map(drop).map_err(|error| error.to_string()),
        orders.upsert_with_retry("e", |_| wrong.clone()).await.map(drop).map_err(|error| error.to_string()),
    ];
    for reason in reasons {
        let reason = reason.expect_err("another key");
        assert!(reason.contains("has the orderId \"x\""), "{reason}");
    }
    let taken = orders.delete_returning("a").await.expect("it was there");
    assert_eq!((&*taken.id, taken.day), ("a", 7));
    assert_eq!(orders.get(Key::from("a")).await.expect("an answer"), None);
}
