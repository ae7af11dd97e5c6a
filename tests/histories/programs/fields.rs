//! The typed fields of records: what an edit makes of them is what the whole record stores and reads.

use super::catalog::item_of;
use super::records::*;
use super::tables;
use super::values::{Draw, Drawn, Item, canonical};
use crate::harness::engine::Engine;
use crate::harness::total::Total;
use fencepost::field::{Field, Presence};
use fencepost::{Failure, FailureKind, Store, Table, UpdateError};
use fencepost_test::seeds;

/// The attributes of the row that are the record's.
fn stored<T: Subject>(engine: &Engine, key: &str) -> Item {
    let row = engine.row(T::TABLE, "id", key);
    let own = T::ATTRIBUTES.iter().filter_map(|name| Some(((*name).to_owned(), canonical(row.get(name)?))));
    own.collect()
}

/// Sets a field to a drawn value. The item then reads as the same attributes, and the field is this value.
async fn plays<T: Subject, V: Drawn + Clone, P: Presence>(engine: &Engine, draw: &mut Draw, field: &Field<T, V, P>) {
    let table: Table<T> = Store::new(&engine.client()).table(T::TABLE);
    let value = V::drawn(draw);
    let is_odd = draw.is_odd;
    let item = match table.edit("one", &field.set(value.clone())).await {
        Ok(edited) => edited.item.expect("it decodes").expect("it is there"),
        Err(UpdateError::Failed(Failure { kind: FailureKind::InvalidRecord { .. }, .. })) if is_odd => return,
        Err(error) => panic!("{} {field:?}: {error}", T::TABLE),
    };
    let row = stored::<T>(engine, "one");
    assert!(is_odd || item_of(&item.value).as_ref() == Some(&row), "{} {field:?}: {row:?}", T::TABLE);
    let again = field.set(value.clone()).only_if(field.is(value));
    if let Err(error) = table.edit("one", &again).await {
        panic!("{} {field:?} is not what it was set to: {error}", T::TABLE);
    }
}

macro_rules! play {
    ($engine:expr, $seed:expr, $($name:ident: $($field:ident)*;)*) => {$(
        let draw = &mut Draw::new($seed);
        let table: Table<$name> = Store::new(&$engine.client()).table($name::TABLE);
        let first = (0..1_000).find_map(|_| {
            draw.is_odd = false;
            let value = $name::drawn(draw);
            (!draw.is_odd && item_of(&value).is_some()).then_some(value)
        });
        table.create("one", &first.expect("a value that can be stored")).await.expect("a free key");
        $(
            draw.is_odd = false;
            plays($engine, draw, &$name::FIELDS.$field).await;
        )*
    )*};
}

#[test]
fn a_field_is_written_and_compared_as_serde_writes_it_in_the_whole_record() {
    seeds::play(20, |range| {
        seeds::explore(range, |seed| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
            runtime.map_err(|error| error.to_string())?.block_on(fields(seed));
            Ok(Total::default())
        })
    });
}

async fn fields(seed: u64) {
    let engine = Engine::embedded(&[]);
    tables(&engine);
    play! { &engine, seed,
        Plain: note;
            Texts: text other letter;
            Skips: note list;
            Wholes: small large other;
            Floats: ratio half maybe;
            Maps: map deep;
            Lists: list pairs three none;
            Bags: bag bag_of_numbers;
            Sets: tags numbers parts;
            Binaries: data more;
            Camel: first_name last_seen_at;
            Kebab: first_name;
            Screaming: first_name;
            Pascal: first_name;
            Upper: place;
            Renamed: class r#type dotted;
            AllDefault: text list;
            SomeDefault: text number;
            Custom: number other;
            Skipped: text;
            Enums: unit data inner loose;
            Nested: place places;
            Json: json;
            MayEnd: ends;
            SharedRemoved: map;
            Open: text;
    }
}
