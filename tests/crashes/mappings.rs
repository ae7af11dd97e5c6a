//! The cases of `host-mapping` and `delete-mapping`.

use super::case::Given::{Absent, Newer, Older, Present, Same, Tombstone};
use super::case::How::Plain;
use super::case::Promise::{Nothing, Once};
use super::case::{Case, Killed, Said, answered, case};
use crate::harness::events::{Event, batch_of, deletion, registration, task};
use crate::harness::functions::{MAPPINGS, Mappings};
use crate::harness::world::{ALLOWED, World};
use crate::mappings::world::{IP, T1, T2, T3};
use serde_json::Value;

const REGISTER: &str = "PUT /mappings/{hostIp}";
const DELETE: &str = "DELETE /mappings/{hostIp}";
/// The queue of `delete-mapping`.
pub const QUEUE: &str = "DeleteMappingQueue";

const OTHER_IP: &str = "192.0.2.11";
const THIRD_IP: &str = "192.0.2.12";

impl Killed for Mappings {
    const CASES: &'static [Case] = &[
        case(REGISTER, Absent, Plain, Once, ["201", "200"]),
        case(REGISTER, Older, Plain, Once, ["201", "200"]),
        case(REGISTER, Newer, Plain, Nothing, ["409 superseded"; 2]),
        case(REGISTER, Same, Plain, Nothing, ["200", "200"]),
        // A tombstone of an older instance. A tombstone of this one would refuse it.
        case(REGISTER, Tombstone, Plain, Once, ["201", "200"]),
        case(REGISTER, Present, Plain, Nothing, ["409 superseded"; 2]),
        case(DELETE, Absent, Plain, Once, ["204 already_gone", "204 already_gone"]),
        case(DELETE, Older, Plain, Once, ["204 deleted", "204 already_gone"]),
        case(DELETE, Newer, Plain, Nothing, ["204 superseded"; 2]),
        case(DELETE, Same, Plain, Once, ["204 deleted", "204 already_gone"]),
        case(DELETE, Tombstone, Plain, Once, ["204 already_gone"; 2]),
        case(DELETE, Present, Plain, Nothing, ["204 already_gone"; 2]),
        // Three addresses, one of them in two messages.
        case(QUEUE, Absent, Plain, Once, ["all done"; 2]),
        case(QUEUE, Older, Plain, Once, ["all done"; 2]),
        case(QUEUE, Newer, Plain, Nothing, ["all done"; 2]),
        case(QUEUE, Same, Plain, Once, ["all done"; 2]),
        case(QUEUE, Tombstone, Plain, Once, ["all done"; 2]),
    ];

    fn name_of(route: &str) -> &'static str {
        if route == QUEUE { "delete-mapping" } else { "host-mapping" }
    }

    async fn prepare(world: &World<Self>, case: &Case) -> Event {
        for ip in [IP, OTHER_IP, THIRD_IP] {
            match case.given {
                Older => world.send(&registration(ip, "i-1", T1)).await.shown(201),
                Newer => world.send(&registration(ip, "i-3", T3)).await.shown(201),
                Same => world.send(&registration(ip, "i-2", T2)).await.shown(201),
                Tombstone => gone(world, ip, "i-1", T1).await,
                Present => gone(world, ip, "i-2", T2).await,
                _ => Value::Null,
            };
        }
        match case.route {
            REGISTER => registration(IP, "i-2", T2),
            DELETE => deletion(IP, T2, Some("i-2")),
            _ => {
                let ips = [("m-0", IP), ("m-1", OTHER_IP), ("m-2", THIRD_IP), ("m-3", IP)];
                Event(batch_of(&ips.map(|(id, ip)| (id, task(ip, T2, Some("i-2"))))))
            }
        }
    }

    async fn invoke(world: &World<Self>, event: &Event) -> Said {
        if event.0["Records"].is_null() {
            return answered(&world.send(event).await);
        }
        let told = world.invoke(ALLOWED, &event.0).await.expect("an answer to the batch");
        let failed = told["batchItemFailures"].as_array().expect("a list").len();
        let text = if failed == 0 { "all done".to_owned() } else { format!("{failed} failed") };
        Said { text, is_success: failed == 0, body: None }
    }
}

/// Leaves the tombstone of an instance.
async fn gone(world: &World<Mappings>, ip: &str, instance: &str, at: &str) -> Value {
    world.send(&registration(ip, instance, at)).await.shown(201);
    assert_eq!(world.send(&deletion(ip, at, Some(instance))).await.status, 204);
    world.engine.row(MAPPINGS, "hostIp", ip)
}
