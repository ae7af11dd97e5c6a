//! Orders after a restore: their tags. `devices` has the late copies of changes.

use crate::harness::events::{Event, load};
use crate::harness::functions::{Functions, Shop};
use crate::harness::restore::Moment;
use crate::harness::world::World;

type TestShop = World<Shop>;

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
