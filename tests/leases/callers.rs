//! The caller that an authorizer names: nobody who has no name acquires with a key.

use super::world::{World, acquire};
use crate::harness::events::authorizers_that_name_nobody;

#[tokio::test(start_paused = true)]
async fn a_caller_without_a_name_acquires_without_a_key_only() {
    for authorizer in authorizers_that_name_nobody() {
        let world = World::new();
        let event = acquire("k", "a", 60).authorized(&authorizer);
        world.refused_for(&event.clone().key("once"), 403, "caller_unknown", (0, 0)).await;
        world.send(&event).await.shown(201);
    }
}
