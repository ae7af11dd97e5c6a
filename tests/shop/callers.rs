//! The caller that an authorizer names: an order belongs to one caller, and to nobody who has no name.

use super::world::{Shop, adjustment, cancellation, order, shown_order};
use crate::harness::events::authorizers_that_name_nobody;
use serde_json::json;

#[tokio::test]
async fn a_caller_without_a_name_places_no_order_and_is_served_otherwise() {
    for authorizer in authorizers_that_name_nobody() {
        let shop = Shop::with(&[("a", 10)]).await;
        let placed = shop.place("k-1", &[("a", 1)]).await.order();
        shop.engine.take_counts();
        for keyed in [order("k-1", &[("a", 1)]), order("k-2", &[("a", 1)]), adjustment("a", 1).key("k-1")] {
            shop.refused(&keyed.authorized(&authorizer), 403, "caller_unknown").await;
        }
        assert_eq!(shop.engine.take_counts(), (0, 0), "{authorizer}");
        for unkeyed in [adjustment("a", 1), shown_order(&placed), cancellation(&placed)] {
            shop.send(&unkeyed.authorized(&authorizer)).await.shown(200);
        }
        assert_eq!(shop.stock("a").await.0, 11);
    }
}

#[tokio::test]
async fn two_subjects_with_one_key_place_two_orders() {
    let shop = Shop::with(&[("a", 10)]).await;
    let by = |subject: &str| {
        let claims = json!({"iss": "https://issuer.example.com/", "sub": subject});
        order("k-1", &[("a", 1)]).authorized(&json!({"jwt": {"claims": claims, "scopes": null}}))
    };
    let [ann, bob] = [shop.send(&by("ann")).await, shop.send(&by("bob")).await];
    assert_ne!(ann.order(), bob.order());
    let again = shop.send(&by("ann")).await;
    assert_eq!((again.shown(201), shop.stock("a").await.0), (ann.shown(201), 8));
}
