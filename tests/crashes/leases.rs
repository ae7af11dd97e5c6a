//! The cases of `lease` and `ensure-child`.

use super::case::Given::{Absent, Expired, Present, Released, Tombstone};
use super::case::How::{Fenced, IfMatch, IfNone, Keyed, Leased, Plain};
use super::case::Promise::{Each, Nothing, Once};
use super::case::{Case, Given, Killed, Said, answered, case};
use super::devices::asked;
use crate::harness::answers::Answer;
use crate::harness::events::{Event, acquire, ensure, ensure_under, release, renew};
use crate::harness::functions::{CHILDREN, Leasing};
use crate::harness::states::bury;
use crate::harness::world::World;
use serde_json::json;

const ACQUIRE: &str = "PUT /leases/{leaseKey}";
const RENEW: &str = "PATCH /leases/{leaseKey}";
const RELEASE: &str = "DELETE /leases/{leaseKey}";
const ENSURE: &str = "PUT /parents/{parentId}/child";

const KEY: &str = "job-1";
const HELD: &str = "409 lease_held";
const NONE: [&str; 2] = ["404 lease_not_found"; 2];
const FENCED: [&str; 2] = ["409 fenced"; 2];
const STALE: &str = "412 version_conflict";

impl Killed for Leasing {
    const CASES: &'static [Case] = &[
        case(ACQUIRE, Absent, Plain, Once, ["201", HELD]),
        case(ACQUIRE, Released, Plain, Once, ["201", HELD]),
        case(ACQUIRE, Expired, Plain, Once, ["201", HELD]),
        case(ACQUIRE, Present, Plain, Nothing, [HELD; 2]),
        case(ACQUIRE, Absent, Keyed, Once, ["201", "201 replayed"]),
        case(ACQUIRE, Released, Keyed, Once, ["201", "201 replayed"]),
        case(ACQUIRE, Expired, Keyed, Once, ["201", "201 replayed"]),
        case(ACQUIRE, Present, Keyed, Nothing, [HELD; 2]),
        case(RENEW, Absent, Plain, Nothing, NONE),
        case(RENEW, Released, Plain, Nothing, FENCED),
        case(RENEW, Expired, Plain, Each, ["200", "200"]),
        case(RENEW, Present, Plain, Each, ["200", "200"]),
        case(RENEW, Present, IfMatch, Once, ["200", STALE]),
        case(RELEASE, Absent, Plain, Nothing, NONE),
        case(RELEASE, Released, Plain, Nothing, ["204 released"; 2]),
        case(RELEASE, Expired, Plain, Once, ["204 released"; 2]),
        case(RELEASE, Present, Plain, Once, ["204 released"; 2]),
        case(RELEASE, Present, IfMatch, Once, ["204 released"; 2]),
        case(ENSURE, Absent, Plain, Once, ["201", "200"]),
        case(ENSURE, Tombstone, Plain, Once, ["201", "200"]),
        case(ENSURE, Present, Plain, Nothing, ["200", "200"]),
        case(ENSURE, Absent, IfNone, Once, ["201", STALE]),
        case(ENSURE, Absent, Leased, Once, ["201", "200"]),
        case(ENSURE, Tombstone, Leased, Once, ["201", "200"]),
        case(ENSURE, Present, Leased, Nothing, ["200", "200"]),
        case(ENSURE, Absent, Fenced, Nothing, FENCED),
        case(ENSURE, Present, Fenced, Nothing, ["200", "200"]),
    ];

    fn name_of(route: &str) -> &'static str {
        if route == ENSURE { "ensure-child" } else { "lease" }
    }

    /// A standing clock would give a renewal the same end as the one before it.
    const TICK: u64 = 1;

    /// A lease is shown with its remaining time.
    async fn invoke(world: &World<Self>, event: &Event) -> Said {
        Said { body: None, ..answered(&world.send(event).await) }
    }

    async fn prepare(world: &World<Self>, case: &Case) -> Event {
        if case.route == ENSURE {
            return wanted_child(world, case).await;
        }
        let mut token = 1_772_870_400_001;
        let mut tag = "\"1.0\"".to_owned();
        if case.given != Given::Absent {
            let acquired = world.send(&acquire(KEY, "worker-1", 60)).await;
            token = token_of(&acquired);
            acquired.etag().clone_into(&mut tag);
        }
        match case.given {
            Released => assert_eq!(world.send(&release(KEY, token)).await.status, 204),
            Expired => world.clock.set_forward(120_000),
            _ => {}
        }
        let event = match case.route {
            ACQUIRE => acquire(KEY, "worker-2", 60),
            RENEW => renew(KEY, token, 60),
            _ => release(KEY, token),
        };
        asked(event, case.how, &tag)
    }
}

fn token_of(acquired: &Answer) -> u64 {
    acquired.shown(201)["token"].as_u64().expect("a number")
}

/// Prepares the child of a parent, with a lease or without.
async fn wanted_child(world: &World<Leasing>, case: &Case) -> Event {
    let spec = json!({"pages": 12});
    let mut event = ensure("p-1", "u-1", &spec);
    if [Present, Tombstone].contains(&case.given) {
        let child = world.send(&event).await.shown(201);
        if case.given == Tombstone {
            bury(&world.engine, CHILDREN, child["childId"].as_str().expect("an id"));
        }
    }
    if case.how == Leased || case.how == Fenced {
        let token = token_of(&world.send(&acquire(KEY, "worker-1", 60)).await);
        event = ensure_under("p-1", "u-1", &spec, (KEY, token));
        if case.how == Fenced {
            assert_eq!(world.send(&release(KEY, token)).await.status, 204);
        }
    }
    asked(event, case.how, "")
}
