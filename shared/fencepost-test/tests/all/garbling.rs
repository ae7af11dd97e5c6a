//! Garbled answers and the reaction of the SDK.

use crate::counter::{Failed, TABLE, add, held, read, scene};
use aws_sdk_dynamodb::types::AttributeValue;
use fencepost_test::{Dynamo, Fault, Garbling, Outcome, Rates};
use std::collections::{BTreeSet, HashMap};

/// The forms that the SDK takes for an answer: it looks at neither the length nor the checksum of a body.
const PASSING: [Garbling; 2] = [Garbling::Empty, Garbling::Changed];

#[tokio::test(start_paused = true)]
async fn what_is_garbled_is_an_error_without_a_name_except_where_the_sdk_does_not_look() {
    for form in Garbling::ALL {
        for (seed, executed) in (0..8).map(|seed| (seed, seed % 2 == 0)) {
            let db = scene(seed);
            let garbled = db.fault(Fault::GarbledAs { form, executed }).times(2);
            let client = db.client_without_retries();
            let added = add(&client, "a").await;
            assert!(PASSING.contains(&form) || matches!(added, Err(Failed::WithoutAnswer(_))), "{form}: {added:?}");
            assert_eq!(held(&db, "a"), i64::from(executed), "{form}");
            if !PASSING.contains(&form) {
                let read = read(&client, "a").await;
                assert!(matches!(read, Err(Failed::WithoutAnswer(_))), "{form}: {read:?}");
                assert_eq!(garbled.struck(), 2);
            }
            let log = db.log();
            assert!(matches!(&log[0].heard, Some((_, Outcome::Garbled(heard))) if *heard == form), "{log}");
            assert_eq!(log[0].executed(), usize::from(executed), "{log}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_sdk_takes_an_answer_without_a_body_for_a_success_and_for_no_item() {
    let db = scene(1);
    db.fault(Fault::GarbledAs { form: Garbling::Empty, executed: false }).always();
    let client = db.client();
    add(&client, "a").await.expect("the SDK believes it");
    let key = AttributeValue::S("a".to_owned());
    let read = client.get_item().table_name(TABLE).key("id", key).send().await.expect("the SDK believes it");
    assert_eq!((held(&db, "a"), read.item), (0, None), "nothing was added, and the item is there");
}

#[tokio::test(start_paused = true)]
async fn the_sdk_takes_a_changed_byte_for_what_was_sent() {
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let db = scene(seed);
        db.fault(Fault::GarbledAs { form: Garbling::Changed, executed: true }).once();
        let key = AttributeValue::S("a".to_owned());
        let read = db.client_without_retries().get_item().table_name(TABLE).key("id", key).send().await;
        let version = |item: HashMap<String, AttributeValue>| item.get("version")?.as_n().ok().cloned();
        seen.insert(read.ok().map(|read| read.item.and_then(version)));
    }
    assert!(seen.contains(&Some(Some("2".to_owned()))), "a version that never was: {seen:?}");
    assert!(seen.contains(&Some(None)), "no item, or none with a version: {seen:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_drawn_takes_every_form_executed_and_not() {
    let db = Dynamo::with_seam(4, Rates { garbled: 1000, ..Rates::default() }, ());
    db.create_table(TABLE, "id");
    let client = db.client_without_retries();
    for _ in 0..200 {
        let _ = add(&client, "a").await;
    }
    let log = db.log();
    let drawn: Vec<_> = log.iter().filter_map(|sent| sent.fault).collect();
    for form in Garbling::ALL {
        for executed in [true, false] {
            assert!(drawn.contains(&Fault::GarbledAs { form, executed }), "{form} {executed}");
        }
    }
    assert_eq!(i64::try_from(log.executed()).expect("few"), held(&db, "a"));
}
