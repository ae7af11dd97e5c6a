//! The rows of `device-state`.

use super::row::Given::{Absent, Present, Seen, Tombstone};
use super::row::How::{Clamped, IfAny, IfMatch, IfNone, Keyed, Plain};
use super::row::Promise::{Each, Nothing, Once};
use super::row::{Given, How, Killed, Row, row};
use crate::harness::events::{Event, event_of, load};
use crate::harness::functions::{DEVICES, Devices};
use crate::harness::tombstone::bury;
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
    const ROWS: &'static [Row] = &[
        row(CREATE, Absent, Plain, Once, ["201", "409 device_exists"]),
        row(CREATE, Tombstone, Plain, Once, ["201", "409 device_exists"]),
        row(CREATE, Present, Plain, Nothing, THERE),
        row(CREATE, Absent, IfNone, Once, ["201", STALE]),
        row(CREATE, Tombstone, IfNone, Once, ["201", STALE]),
        row(CREATE, Present, IfNone, Nothing, [STALE; 2]),
        row(CREATE, Absent, Keyed, Once, ["201", "201 replayed"]),
        row(CREATE, Tombstone, Keyed, Once, ["201", "201 replayed"]),
        row(CREATE, Present, Keyed, Nothing, THERE),
        row(DELETE, Absent, IfMatch, Nothing, GONE),
        row(DELETE, Tombstone, IfMatch, Nothing, GONE),
        row(DELETE, Present, IfMatch, Once, ["204", GONE[0]]),
        row(DELETE, Absent, IfAny, Nothing, GONE),
        row(DELETE, Tombstone, IfAny, Nothing, GONE),
        row(DELETE, Present, IfAny, Once, ["204", GONE[0]]),
        row(PATCH, Absent, Plain, Nothing, GONE),
        row(PATCH, Tombstone, Plain, Nothing, GONE),
        row(PATCH, Present, Plain, Once, ["200", "200"]),
        row(PATCH, Present, IfMatch, Once, ["200", STALE]),
        row(PATCH, Absent, Keyed, Nothing, GONE),
        row(PATCH, Tombstone, Keyed, Nothing, GONE),
        row(PATCH, Present, Keyed, Once, ["200", "200 replayed"]),
        row(ADJUST, Absent, Plain, Nothing, GONE),
        row(ADJUST, Tombstone, Plain, Nothing, GONE),
        row(ADJUST, Present, Plain, Each, ["200", "200"]),
        row(ADJUST, Seen, Plain, Each, ["200", "200"]),
        row(ADJUST, Present, Clamped, Each, ["200", "200"]),
        row(ADJUST, Present, IfMatch, Once, ["200", STALE]),
        row(ADJUST, Absent, Keyed, Nothing, GONE),
        row(ADJUST, Tombstone, Keyed, Nothing, GONE),
        row(ADJUST, Present, Keyed, Once, ["200", "200 replayed"]),
        row(ADJUST, Seen, Keyed, Once, ["200", "200 replayed"]),
        row(STATUS, Absent, Plain, Nothing, GONE),
        row(STATUS, Tombstone, Plain, Nothing, GONE),
        row(STATUS, Present, Plain, Once, ["200", "200"]),
        row(STATUS, Present, IfMatch, Once, ["200", STALE]),
        row(STATUS, Absent, Keyed, Nothing, GONE),
        row(STATUS, Tombstone, Keyed, Nothing, GONE),
        row(STATUS, Present, Keyed, Once, ["200", "200 replayed"]),
        row(CONFIG, Absent, Plain, Nothing, GONE),
        row(CONFIG, Tombstone, Plain, Nothing, GONE),
        row(CONFIG, Present, Plain, Once, ["200", "200"]),
        row(CONFIG, Present, IfMatch, Once, ["200", STALE]),
        row(CONFIG, Absent, Keyed, Nothing, GONE),
        row(CONFIG, Tombstone, Keyed, Nothing, GONE),
        row(CONFIG, Present, Keyed, Once, ["200", "200 replayed"]),
    ];

    fn name_of(_: &str) -> &'static str {
        "device-state"
    }

    fn seeing() -> Option<Event> {
        Some(load("device-state-get").of("deviceId", ID))
    }

    async fn prepare(world: &World<Self>, row: &Row) -> Event {
        let mut tag = "\"1.AAAAAAAAAAA\"".to_owned();
        if row.given != Given::Absent {
            let device = json!({"state": {"brightness": 50}, "status": "online"});
            let created = world.send(&event_of(CREATE, ID).json(&device)).await;
            created.shown(201);
            created.etag().clone_into(&mut tag);
        }
        if row.given == Given::Tombstone {
            bury(&world.engine, DEVICES, ID);
        }
        let event = event_of(row.route, ID);
        let event = match row.route {
            CREATE => event.json(&json!({"state": {"brightness": 7}})),
            PATCH => event.json(&json!({"brightness": 51})),
            ADJUST if row.how == How::Clamped => {
                event.json(&json!({"attribute": "brightness", "by": 3, "max": 100, "onLimit": "clamp"}))
            }
            ADJUST => event.json(&json!({"attribute": "brightness", "by": 3})),
            STATUS => event.json(&json!({"status": "offline"})),
            CONFIG => event.json(&json!({"mode": "eco"})),
            _ => event,
        };
        asked(event, row.how, &tag)
    }
}

/// With the header that says how it is asked.
pub fn asked(event: Event, how: How, tag: &str) -> Event {
    match how {
        How::Keyed => event.key("k-1"),
        How::IfMatch => event.header("if-match", tag),
        How::IfAny => event.header("if-match", "*"),
        How::IfNone => event.header("if-none-match", "*"),
        How::Plain | How::Clamped | How::Leased | How::Fenced => event,
    }
}
