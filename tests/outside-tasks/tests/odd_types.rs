//! Stores what serde can write: ids, times, bytes, sets, enums, maps, and the key as a field.

use fencepost::{Record, Store, Table};
use fencepost_test::Engine;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use time::OffsetDateTime;
use time::serde::rfc3339;
use uuid::Uuid;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Shape {
    Dot,
    Box { width: u32 },
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Record)]
#[record(key = "id")]
struct Drawing {
    id: Uuid, // the key
    #[serde(with = "rfc3339")]
    drawn_at: OffsetDateTime,
    #[serde(with = "rfc3339::option", default)]
    sold_at: Option<OffsetDateTime>,
    shapes: Vec<Shape>,
    tags: BTreeSet<String>,
    prices: BTreeMap<String, f64>,
    owner: Option<Uuid>,
    size: (u16, u16),
}

#[tokio::test]
async fn every_field_is_read_back_as_it_was_written_and_edited_by_its_type() {
    let engine = Engine::embedded(&[("Drawings", "id")]);
    let drawings: Table<Drawing> = Store::new(&engine.client()).table("Drawings");
    let (id, at) = (Uuid::from_u128(7), OffsetDateTime::from_unix_timestamp(1_800_000_000).expect("a time"));
    let drawing = Drawing {
        id,
        drawn_at: at,
        sold_at: None,
        shapes: vec![Shape::Dot, Shape::Box { width: 3 }],
        tags: ["blue".to_owned()].into(),
        prices: [("EUR".to_owned(), 9.5)].into(),
        owner: None,
        size: (30, 40),
    };
    drawings.create(id, &drawing).await.expect("a free key");
    let fields = Drawing::FIELDS;
    let price = fields.prices.member("EUR").expect("a name");
    let sale = fields.owner.set(Uuid::from_u128(8)).and(fields.sold_at.set(at));
    let sale = sale.only_if(price.is_at_most(10.0)).only_if(fields.sold_at.is_none());
    engine.take_counts();
    drawings.edit(id, &sale).await.expect("it is for sale");
    assert_eq!(engine.take_counts(), (1, 1));
    drawings.edit(id, &sale).await.expect_err("it was sold");
    let sold = drawings.get(id).await.expect("an answer").expect("it is there");
    assert_eq!(sold.value, Drawing { owner: Some(Uuid::from_u128(8)), sold_at: Some(at), ..drawing });
}
