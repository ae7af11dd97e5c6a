//! What a function does that no other file of this folder drives: every route on an item that is absent, live and deleted, at any
//! version and at a wrong one, and with a key first, again, refused, with nothing to change and after 26 hours.

use super::drive::Drive;
use crate::harness::engine::Use;
use crate::harness::events::{Event, sample};
use crate::harness::functions::{Alone, Functions};
use crate::harness::tombstone::bury_all;
use functions::function::Function;
use functions::operation::IdempotencyKey;
use std::collections::BTreeSet;

/// The event of a route, without conditions.
fn event(route: &str, id: &str) -> Event {
    sample(route, id).without_header("if-match").without_header("if-none-match").without_header("idempotency-key")
}

/// What it uses.
pub async fn used(function: &'static Function) -> BTreeSet<Use> {
    Alone::is(function);
    let mut drive = Drive::<Alone>::new();
    let routes = function.routes();
    let of = |method: &str| routes.iter().find(|route| route.at.starts_with(method)).map(|route| route.at);
    let (create, delete) = (of("PUT ").or(of("POST ")), of("DELETE "));
    for route in &routes {
        for state in ["absent", "live", "deleted"] {
            let id = format!("{state}-{}", drive.world.engine.take_log().len());
            if let Some(create) = create.filter(|_| state != "absent") {
                note(&mut drive, &event(create, &id)).await;
            }
            match delete.filter(|_| state == "deleted") {
                Some(delete) => note(&mut drive, &event(delete, &id).header("if-match", "*")).await,
                // As a create leaves it that was burned.
                None if state == "deleted" => bury_all(&drive.world.engine, Alone::tables(), &id),
                None => {}
            }
            for condition in [None, Some("*"), Some("\"9.AAAAAAAAAAA\"")] {
                let event = event(route.at, &id);
                let event = condition.into_iter().fold(event, |event, tag| event.header("if-match", tag));
                note(&mut drive, &event).await;
            }
        }
        for hours in [0, 26] {
            drive.world.clock.set_forward(hours * 3_600_000);
            for key in ["first", "first", "kept"].iter().filter(|_| route.key == IdempotencyKey::Honoured) {
                note(&mut drive, &event(route.at, "keyed").key(key)).await;
            }
        }
    }
    drive.assert_succeeded(&[function.name]);
    drive.uses_of(function.name)
}

async fn note(drive: &mut Drive<Alone>, event: &Event) {
    let status = drive.world.send(event).await.status;
    drive.note(status, event);
}
