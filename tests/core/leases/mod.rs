//! Leases of the crate: their tokens and their end, waiting for a lease and working under one.

use crate::harness::clients::{Way, client_that};
use crate::harness::engine::number;
use crate::harness::functions::LEASES;
use crate::harness::states::set;
use crate::leases::world::World;
use serde_json::json;
use std::sync::{Arc, Mutex};

mod tokens;
mod waiting;
mod work;

/// How long a request takes.
const TRIP: u64 = 10;

/// Requests as they leave, in milliseconds since the world was reached.
type Sent = Arc<Mutex<Vec<u64>>>;

/// The same world, in which a request fares by the moment at which it leaves, and when requests leave.
fn reached(world: &World, way: impl Fn(u64) -> Way + Send + Sync + 'static) -> (World, Sent) {
    let (sent, clock, began) = (Sent::default(), world.clock.clone(), world.clock.now());
    let noted = sent.clone();
    let client = client_that(&world.engine, move |_| {
        let at = clock.now() - began;
        noted.lock().expect("no panic").push(at);
        way(at)
    });
    (world.reached_by(&client), sent)
}

/// Another client acquires the lease `k`, as if it had ended or were free.
fn take_over(world: &World) {
    let token = number(&world.row("k"), "token") + 1;
    let taken = [
        ("holder", json!({"S": "b"})),
        ("token", json!({"N": token.to_string()})),
        ("renewals", json!({"N": "0"})),
        ("acquireId", json!({"B": "AAAA"})),
    ];
    set(&world.engine, LEASES, "k", &taken);
}
