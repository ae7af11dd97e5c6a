//! A caller without a name is served, but has no idempotency keys.

use super::Api;
use crate::harness::events::{authorizers_that_name_nobody, sample};
use crate::harness::functions::all_routes;
use functions::operation::IdempotencyKey;

#[tokio::test]
async fn a_caller_without_a_name_has_no_keys_and_is_served_otherwise() {
    for authorizer in authorizers_that_name_nobody() {
        let (named, nameless) = (Api::start(), Api::start());
        for route in all_routes() {
            let event = sample(route.at, "192.0.2.1").without_header("idempotency-key");
            if route.key == IdempotencyKey::Honoured {
                let keyed = event.clone().key("k-1").authorized(&authorizer);
                let world = nameless.of(route.at);
                world.engine.take_log();
                world.send(&keyed).await.says(403, "caller_unknown");
                assert_eq!(world.engine.take_counts(), (0, 0), "{keyed:?}");
            }
            let expected = named.of(route.at).send(&event).await;
            let served = nameless.of(route.at).send(&event.authorized(&authorizer)).await;
            assert_eq!((served.status, served.code()), (expected.status, expected.code()), "{}", route.at);
        }
    }
}
