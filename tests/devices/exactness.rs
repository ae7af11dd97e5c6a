//! Sums of numbers of any length are exact or refused.

use super::world::World;
use crate::harness::events::Event;
use fencepost::json::Decimal;

/// Whether the last write of a device demanded no version.
fn was_an_add(world: &World) -> bool {
    let log = world.engine.take_log();
    let write = log.iter().rev().find(|asked| asked.operation == "UpdateItem").expect("a write");
    write.body["UpdateExpression"].as_str().is_some_and(|text| text.contains("#version = #version + :one"))
}

#[tokio::test]
async fn an_adjustment_needs_a_version_only_beside_numbers_whose_sums_might_be_rounded() {
    for (state, by, is_add) in [
        ("0", "1", true),
        ("0.1", "0.2", true),
        ("1.5", "-0.000000000000000001", true),
        ("1000000000000000000", "-1000000000000000000", true),
        ("1", "0.0000000000000000001", false),
        ("1", "1000000000000000001", false),
        ("1000000000000000001", "1", false),
        ("1000000000000000000", "1", false),
        ("-1e19", "1", false),
        ("99999999999999999999999999999999999999", "1", false),
        ("0.0000000000000000001", "1", false),
    ] {
        let world = World::with_state(&format!(r#"{{"n":{state}}}"#)).await;
        let event = Event::adjust().text(&format!(r#"{{"attribute":"n","by":{by}}}"#));
        world.engine.take_log();
        let shown = world.send(&event).await.shows(200, 2)["state"]["n"].to_string();
        let [state_number, by_number] = [state, by].map(|text| Decimal::parse(text).expect("a number"));
        assert_eq!(Decimal::parse(&shown), state_number.plus(&by_number).to_decimal(), "{state} + {by}");
        assert_eq!(was_an_add(&world), is_add, "{state} + {by}");
    }
}

#[tokio::test]
async fn a_wide_number_that_another_client_wrote_is_noticed_by_a_client_that_adds() {
    let world = World::with_state(r#"{"n":1}"#).await;
    world.send(&Event::adjust().text(r#"{"attribute":"n","by":1}"#)).await.shows(200, 2);
    let other = world.reached_by(&world.engine.client());
    let wide = "0.00000000000000000000000000000000000001";
    let answer = other.send(&Event::patch_state().text(&format!(r#"{{"n":{wide}}}"#))).await;
    assert!(!answer.shows(200, 3).to_string().contains("wideNumbers"), "it is not shown");
    assert_eq!(world.row()["wideNumbers"]["BOOL"], true);
    world.engine.take_log();
    let event = Event::adjust().text(&format!(r#"{{"attribute":"n","by":{wide}}}"#));
    let twice = "0.00000000000000000000000000000000000002";
    let shown = world.send(&event).await.body.expect("a device");
    assert!(shown.contains(&format!(r#""state":{{"n":{twice}}}"#)), "{shown}");
    let event = Event::adjust().text(r#"{"attribute":"n","by":1}"#);
    world.refused(&event, 409, "not_representable").await;
    other.send(&Event::patch_state().text(r#"{"n":7}"#)).await.shows(200, 5);
    assert!(world.row().get("wideNumbers").is_none(), "and it goes with the number");
    world.engine.take_log();
    assert_eq!(world.send(&event).await.shows(200, 6)["state"]["n"], 8);
    assert!(was_an_add(&world));
}
