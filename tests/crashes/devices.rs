//! The cases of `device-state`.

use super::case::Given::{Absent, Present, Seen, Tombstone};
use super::case::How::{Clamped, IfAny, IfMatch, IfNone, Keyed, Plain};
use super::case::Promise::{Each, Nothing, Once};
use super::case::{Case, Given, How, Killed, case};
use crate::harness::events::{Event, event_of, load};
use crate::harness::functions::{DEVICES, Devices};
use crate::harness::states::bury;
use crate::harness::world::World;
use serde_json::json;

const ID: &str = "lamp-1";

const CREATE: &str = "PUT /devices/{deviceId}";
const DELETE: &str = "DELETE /devices/{deviceId}";
const PATCH: &str = "PATCH /devices/{deviceId}/state";
const ADJUST: &str = "POST /devices/{deviceId}/adjustments";
const STATUS: &str = "PUT /devices/{deviceId}/status";
const CONFIG: &str = "PUT /devices/{deviceId}/config";

const GONE: [&str; 2] = ["404 device_not_found"; 2];
const THERE: [&str; 2] = ["409 device_exists"; 2];
const STALE: &str = "412 version_conflict";

impl Killed for Devices {
    const CASES: &'static [Case] = &[
        case(CREATE, Absent, Plain, Once, ["201", "409 device_exists"]),
        case(CREATE, Tombstone, Plain, Once, ["201", "409 device_exists"]),
        case(CREATE, Present, Plain, Nothing, THERE),
        case(CREATE, Absent, IfNone, Once, ["201", STALE]),
        case(CREATE, Tombstone, IfNone, Once, ["201", STALE]),
        case(CREATE, Present, IfNone, Nothing, [STALE; 2]),
        case(CREATE, Absent, Keyed, Once, ["201", "201 replayed"]),
        case(CREATE, Tombstone, Keyed, Once, ["201", "201 replayed"]),
        case(CREATE, Present, Keyed, Nothing, THERE),
        case(DELETE, Absent, IfMatch, Nothing, GONE),
        case(DELETE, Tombstone, IfMatch, Nothing, GONE),
        case(DELETE, Present, IfMatch, Once, ["204", GONE[0]]),
        case(DELETE, Absent, IfAny, Nothing, GONE),
        case(DELETE, Tombstone, IfAny, Nothing, GONE),
        case(DELETE, Present, IfAny, Once, ["204", GONE[0]]),
        case(PATCH, Absent, Plain, Nothing, GONE),
        case(PATCH, Tombstone, Plain, Nothing, GONE),
        case(PATCH, Present, Plain, Once, ["200", "200"]),
        case(PATCH, Present, IfMatch, Once, ["200", STALE]),
        case(PATCH, Absent, IfAny, Nothing, GONE),
        case(PATCH, Tombstone, IfAny, Nothing, GONE),
        case(PATCH, Absent, Keyed, Nothing, GONE),
        case(PATCH, Tombstone, Keyed, Nothing, GONE),
        case(PATCH, Present, Keyed, Once, ["200", "200 replayed"]),
        case(ADJUST, Absent, Plain, Nothing, GONE),
        case(ADJUST, Tombstone, Plain, Nothing, GONE),
        case(ADJUST, Present, Plain, Each, ["200", "200"]),
        case(ADJUST, Seen, Plain, Each, ["200", "200"]),
        case(ADJUST, Present, Clamped, Each, ["200", "200"]),
        case(ADJUST, Present, IfMatch, Once, ["200", STALE]),
        case(ADJUST, Absent, Keyed, Nothing, GONE),
        case(ADJUST, Tombstone, Keyed, Nothing, GONE),
        case(ADJUST, Present, Keyed, Once, ["200", "200 replayed"]),
        case(ADJUST, Seen, Keyed, Once, ["200", "200 replayed"]),
        case(STATUS, Absent, Plain, Nothing, GONE),
        case(STATUS, Tombstone, Plain, Nothing, GONE),
        case(STATUS, Present, Plain, Once, ["200", "200"]),
        case(STATUS, Present, IfMatch, Once, ["200", STALE]),
        case(STATUS, Absent, Keyed, Nothing, GONE),
        case(STATUS, Tombstone, Keyed, Nothing, GONE),
        case(STATUS, Present, Keyed, Once, ["200", "200 replayed"]),
        case(CONFIG, Absent, Plain, Nothing, GONE),
        case(CONFIG, Tombstone, Plain, Nothing, GONE),
        case(CONFIG, Present, Plain, Once, ["200", "200"]),
        case(CONFIG, Present, IfMatch, Once, ["200", STALE]),
        case(CONFIG, Absent, Keyed, Nothing, GONE),
        case(CONFIG, Tombstone, Keyed, Nothing, GONE),
        case(CONFIG, Present, Keyed, Once, ["200", "200 replayed"]),
    ];

    fn name_of(_: &str) -> &'static str {
        "device-state"
    }

    fn seeing() -> Option<Event> {
        Some(load("device-state-get").of("deviceId", ID))
    }

    async fn prepare(world: &World<Self>, case: &Case) -> Event {
        let mut tag = "\"1.AAAAAAAAAAA\"".to_owned();
        if case.given != Given::Absent {
            let device = json!({"state": {"brightness": 50}, "status": "online"});
            let created = world.send(&event_of(CREATE, ID).json(&device)).await;
            created.shown(201);
            created.etag().clone_into(&mut tag);
        }
        if case.given == Given::Tombstone {
            bury(&world.engine, DEVICES, ID);
        }
        let event = event_of(case.route, ID);
        let event = match case.route {
            CREATE => event.json(&json!({"state": {"brightness": 7}})),
            PATCH => event.json(&json!({"brightness": 51})),
            ADJUST if case.how == How::Clamped => {
                event.json(&json!({"attribute": "brightness", "by": 3, "max": 100, "onLimit": "clamp"}))
            }
            ADJUST => event.json(&json!({"attribute": "brightness", "by": 3})),
            STATUS => event.json(&json!({"status": "offline"})),
            CONFIG => event.json(&json!({"mode": "eco"})),
            _ => event,
        };
        asked(event, case.how, &tag)
    }
}

/// The event with the header for this way to ask.
pub fn asked(event: Event, how: How, tag: &str) -> Event {
    match how {
        How::Keyed => event.key("k-1"),
        How::IfMatch => event.header("if-match", tag),
        How::IfAny => event.header("if-match", "*"),
        How::IfNone => event.header("if-none-match", "*"),
        How::Plain | How::Clamped | How::Leased | How::Fenced => event,
    }
}
