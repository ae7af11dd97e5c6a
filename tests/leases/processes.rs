//! Functions as processes over real sockets: nothing is sent between two invocations.

use super::world::{acquire, ensure_under, renew};
use crate::harness::functions::{Functions, Leasing};
use crate::harness::runtime_api::FunctionProcess;
use crate::harness::server::Server;
use serde_json::json;
use std::time::Duration;

/// It idles past the middle of the lease and past its end, so any automatic renewal would have been sent. Idling for
/// longer on a slow machine changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_function_sends_nothing_between_two_invocations() {
    let server = Server::start(Leasing::TABLES).await;
    let (engine, clocks) = (&server.engine, [("LEASE_CLOCK_SKEW_SECONDS", "0")]);
    let lease = FunctionProcess::start(&server, "lease", &clocks).await;
    let children = FunctionProcess::start(&server, "ensure-child", &clocks).await;
    let token = super::world::token(&lease.answer(&acquire("k", "a", 1)).await.shown(201));
    lease.answer(&acquire("another", "a", 1)).await.shown(201);
    let wanted = ensure_under("p", "u-1", &json!({}), ("k", token));
    children.answer(&wanted).await.shown(201);
    assert_eq!(engine.take_counts(), (1, 3));
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(engine.take_counts(), (0, 0));
    lease.answer(&renew("k", token, 1)).await.shown(200);
    children.answer(&wanted).await.shown(200);
    assert_eq!(engine.take_counts(), (2, 1));
    // The setting assumes that clocks do not differ at all.
    lease.answer(&acquire("another", "b", 1)).await.shown(201);
}
