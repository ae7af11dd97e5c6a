//! Tags, late writes and idempotency keys of devices, and tags of orders, after a restore.

use crate::harness::engine::number;
use crate::harness::events::{Event, load};
use crate::harness::functions::{DEVICES, Devices, Functions, Shop};
use crate::harness::restore::{Moment, SentWrites, restamp};
use crate::harness::world::World;
use serde_json::{Value, json};

type Lamps = World<Devices>;
type TestShop = World<Shop>;

fn brightness(value: u64) -> Event {
    Event::patch_state().json(&json!({"brightness": value}))
}

fn brighter() -> Event {
    Event::adjust().text(r#"{"attribute":"brightness","by":1}"#)
}

/// A client sees version 2. Everything goes back to version 1. Another client makes a second version 2. Then the first
/// client deletes the version that it saw.
async fn deletes_a_state_that_it_never_saw(runbook: bool) -> bool {
    let (world, _) = Lamps::with_lamp().await;
    let moment = Moment::of(&world.engine);
    let seen = world.send(&brightness(70)).await;
    seen.shows(200, 2);
    moment.restored(&world.engine, runbook).await;
    let world = Lamps::on(&world.engine);
    world.send(&brightness(10)).await.shows(200, 2);
    let answer = world.send(&Event::delete().header("if-match", seen.etag())).await;
    if answer.status == 204 {
        return true;
    }
    assert_eq!(answer.says(412, "version_conflict")["currentVersion"], 2);
    world.send(&Event::get()).await.shows(200, 2);
    false
}

#[tokio::test]
async fn an_old_tag_matches_another_state_after_a_restore_and_412_with_the_runbook() {
    assert!(deletes_a_state_that_it_never_saw(false).await, "the rehearsal shows nothing");
    assert!(!deletes_a_state_that_it_never_saw(true).await);
}

/// A change of the restored state was applied earlier. After the restore, a copy of it arrives.
async fn late_copy_is_applied(event: &Event, runbook: bool) -> bool {
    let (world, _) = Lamps::with_lamp().await;
    let moment = Moment::of(&world.engine);
    let sent = SentWrites::default();
    let answer = world.reached_by(&sent.client(&world.engine)).send(event).await;
    assert!(answer.status < 300, "{answer:?}");
    moment.restored(&world.engine, runbook).await;
    let before = world.row();
    let applied = sent.deliver_last(&world.engine);
    assert_eq!(world.row() != before, applied);
    applied
}

#[tokio::test]
async fn a_late_copy_of_any_change_is_applied_after_a_restore_and_refused_with_the_runbook() {
    let keyed = brightness(70).key("k-1");
    for event in [brightness(70), brighter(), Event::delete().header("if-match", "*"), keyed] {
        assert!(late_copy_is_applied(&event, false).await, "the rehearsal shows nothing: {event:?}");
        assert!(!late_copy_is_applied(&event, true).await, "{event:?}");
    }
}

/// New incarnations cannot stop a create, which demands only a missing row. But the restored table has another name.
/// The copy names the old one.
#[tokio::test]
async fn a_late_copy_of_a_create_finds_the_key_free_in_a_table_of_the_same_name_and_not_in_a_new_one() {
    let world = Lamps::new();
    let moment = Moment::of(&world.engine);
    let sent = SentWrites::default();
    world.reached_by(&sent.client(&world.engine)).send(&Event::create()).await.shows(201, 1);

    let elsewhere = moment.elsewhere(Devices::TABLES);
    moment.follow_runbook(&elsewhere).await;
    assert!(!sent.deliver_last(&world.engine), "the old table has it already");
    assert_eq!(Lamps::on(&elsewhere).row(), Value::Null);

    moment.restored(&world.engine, true).await;
    assert!(sent.deliver_last(&world.engine), "rows that are put back under the old name need the 15 minutes");
}

#[tokio::test]
async fn a_key_from_before_the_moment_is_answered_again_with_its_old_tag_and_a_later_key_applies_again() {
    let (world, _) = Lamps::with_lamp().await;
    let first = world.send(&brighter().key("before")).await;
    first.shows(200, 2);
    let moment = Moment::of(&world.engine);
    world.send(&brighter().key("after")).await.shows(200, 3);
    let restored = moment.elsewhere(Devices::TABLES);
    moment.follow_runbook(&restored).await;
    let world = world.moved_to(&restored);

    let again = world.send(&brighter().key("before")).await;
    assert_eq!((again.status, &again.body, again.etag(), again.is_replay()), (200, &first.body, first.etag(), true));
    world.refused(&brightness(70).header("if-match", again.etag()), 412, "version_conflict").await;

    let applied = world.send(&brighter().key("after")).await;
    assert_eq!((applied.shows(200, 3)["state"]["brightness"].as_u64(), applied.is_replay()), (Some(52), false));
    assert!(world.send(&brighter().key("after")).await.is_replay());
}

#[tokio::test]
async fn a_key_lies_where_its_record_is_not_restored_to_the_same_second_as_its_item() {
    let (world, _) = Lamps::with_lamp().await;
    let moment = Moment::of(&world.engine);
    world.send(&brighter().key("after")).await.shows(200, 2);
    moment.restore(&world.engine, &[DEVICES]);
    restamp(&world.engine, DEVICES).await;
    let world = Lamps::on(&world.engine);
    assert!(world.send(&brighter().key("after")).await.is_replay(), "it says that it was applied");
    assert_eq!(number(&world.row(), "_version"), 1, "and it is not");
}

/// An order of two mugs.
fn order() -> Event {
    load("place-order-place").key("k-1")
}

#[tokio::test]
async fn a_repeated_order_from_before_the_moment_is_shown_with_the_new_tag_and_a_later_one_is_placed_again() {
    let shop = TestShop::with(&[("mug-blue", 10)]).await;
    let first = shop.send(&order()).await;
    let moment = Moment::of(&shop.engine);
    shop.send(&order().key("k-2")).await.shown(201);
    let restored = moment.elsewhere(Shop::TABLES);
    moment.follow_runbook(&restored).await;
    let shop = shop.moved_to(&restored);
    assert_eq!(shop.stock("mug-blue").await.0, 8);
    let again = shop.send(&order()).await;
    assert_eq!((again.shown(201), again.is_replay()), (first.json(), true));
    assert_ne!(again.etag(), first.etag());
    let shown = shop.send(&load("place-order-get").of("orderId", &first.order())).await;
    assert_eq!(again.etag(), shown.etag(), "the order was not changed since, so its tag is the current one");
    assert!(!shop.send(&order().key("k-2")).await.is_replay(), "its order was gone");
    assert_eq!(shop.stock("mug-blue").await.0, 6);
}
