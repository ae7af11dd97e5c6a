//! What device-state does: every route on a device that never was, one that is and one that was deleted, with a key and
//! without.

use super::drive::Drive;
use crate::harness::engine::Use;
use crate::harness::events::{Event, event_of, load};
use crate::harness::functions::Devices;
use std::collections::BTreeSet;

/// Every route by the name of its event, in a form that does change a device which is there.
fn event(name: &str, id: &str) -> Event {
    let event = load(&format!("device-state-{name}")).without_header("if-match").of("deviceId", id);
    if name == "set-status" { event.text(r#"{"status":"offline"}"#) } else { event }
}

/// What device-state uses.
pub async fn used() -> BTreeSet<Use> {
    let mut drive = Drive::<Devices>::new();
    for name in ["patch-state", "adjust", "set-status", "set-config", "delete", "create", "get"] {
        for state in ["absent", "live", "deleted"] {
            let id = format!("{state}-{name}");
            if state != "absent" {
                drive.send(201, &event("create", &id)).await;
            }
            if state == "deleted" {
                drive.send(204, &event_of("DELETE /devices/{deviceId}", &id).header("if-match", "*")).await;
            }
            for event in [event(name, &id), event(name, &id).header("if-match", "*")] {
                let status = drive.world.send(&event).await.status;
                drive.note(status, &event);
            }
        }
    }
    drive_keyed_changes(&drive).await;
    drive.assert_succeeded(&["device-state"]);
    drive.uses_of("device-state")
}

/// What a key adds: a first request, a repeat, a refusal, a change that changes nothing, and a record that has expired.
async fn drive_keyed_changes(drive: &Drive<Devices>) {
    let keep = || event("adjust", "keyed").text(r#"{"attribute":"brightness","by":0}"#);
    for hours in [0, 26] {
        drive.world.clock.set_forward(hours * 3_600_000);
        for (event, key, status) in [
            (event("create", "keyed"), "created", if hours == 0 { 201 } else { 409 }),
            (event("create", "keyed"), "refused", 409),
            (event("adjust", "keyed"), "changed", 200),
            (event("adjust", "keyed"), "changed", 200),
            (keep(), "kept", 200),
        ] {
            let answer = drive.world.send(&event.key(key)).await;
            assert_eq!(answer.status, status, "{key}: {answer:?}");
        }
    }
}
