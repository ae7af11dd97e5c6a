//! Numbers keep their value to the last digit on every way through.

use super::world::World;
use crate::harness::events::Event;
use fencepost::json::Decimal;

const DIGITS: &str = "12345678901234567890123456789012345678";

fn state_of(body: &str) -> &str {
    let after = body.split_once("\"state\":").expect("a state").1;
    &after[..=after.find('}').expect("its end")]
}

#[tokio::test]
async fn thirty_eight_digits_survive_create_read_patch_and_adjustment() {
    let world = World::with_state(&format!(r#"{{"n":{DIGITS}}}"#)).await;
    let read = async || world.send(&Event::get()).await.body.expect("a device");
    assert_eq!(state_of(&read().await), format!(r#"{{"n":{DIGITS}}}"#));
    assert_eq!(world.row()["state"]["M"]["n"]["N"], DIGITS);

    world.send(&Event::patch_state().text(&format!(r#"{{"m":-0.{DIGITS}}}"#))).await.shows(200, 2);
    assert_eq!(state_of(&read().await), format!(r#"{{"m":-0.{DIGITS},"n":{DIGITS}}}"#));

    let answer = world.send(&Event::adjust().text(r#"{"attribute":"n","by":1}"#)).await;
    answer.shows(200, 3);
    let more = "12345678901234567890123456789012345679";
    assert_eq!(state_of(answer.body.as_deref().expect("a device")), format!(r#"{{"m":-0.{DIGITS},"n":{more}}}"#));
    assert_eq!(state_of(&read().await), format!(r#"{{"m":-0.{DIGITS},"n":{more}}}"#));

    let by = format!(r#"{{"attribute":"n","by":-{more}}}"#);
    assert_eq!(world.send(&Event::adjust().text(&by)).await.shows(200, 4)["state"]["n"], 0);
}

#[tokio::test]
async fn numbers_at_the_ends_of_the_range_survive() {
    let most = "9.9999999999999999999999999999999999999e125";
    for sent in [most, &format!("-{most}"), "1e-130", "-1E-130", "1e100", "0.1", "-0", "9.99e-128"] {
        let world = World::with_state(&format!(r#"{{"n":{sent}}}"#)).await;
        let shown = world.send(&Event::get()).await.shows(200, 1)["state"]["n"].to_string();
        assert_eq!(Decimal::parse(&shown), Decimal::parse(sent), "{sent} came back as {shown}");
        world.send(&Event::patch_state().text(&format!(r#"{{"n":{shown}}}"#))).await.shows(200, 1);
    }
}

#[tokio::test]
async fn notations_of_one_value_are_one_value() {
    let world = World::with_state(r#"{"n":100}"#).await;
    for same in ["1e2", "100.0", "1E+2", "1000e-1", "100.000000000000000000000000000000000000000000000000"] {
        world.send(&Event::patch_state().text(&format!(r#"{{"n":{same}}}"#))).await.shows(200, 1);
    }
    world.send(&Event::patch_state().text(r#"{"n":100.01}"#)).await.shows(200, 2);
}

#[tokio::test]
async fn a_sum_that_38_digits_cannot_hold_is_not_representable() {
    let nines = "9".repeat(38);
    for (state, by) in [(nines.as_str(), "0.1"), ("1e100", "1"), ("9.9e125", "9e125"), (DIGITS, "0.5")] {
        let world = World::with_state(&format!(r#"{{"n":{state}}}"#)).await;
        let event = Event::adjust().text(&format!(r#"{{"attribute":"n","by":{by}}}"#));
        world.refused(&event, 409, "not_representable").await;
    }
    let world = World::with_state(&format!(r#"{{"n":{nines}}}"#)).await;
    let by_one = world.send(&Event::adjust().text(r#"{"attribute":"n","by":1}"#)).await;
    by_one.shows(200, 2);
    let world = World::with_state(r#"{"n":0.1}"#).await;
    let sum = world.send(&Event::adjust().text(r#"{"attribute":"n","by":0.2}"#)).await.shows(200, 2);
    assert_eq!(sum["state"]["n"].to_string(), "0.3");
}

#[tokio::test]
async fn the_current_number_in_a_refusal_is_exact() {
    let world = World::with_state(&format!(r#"{{"n":{DIGITS}}}"#)).await;
    let event = Event::adjust().text(&format!(r#"{{"attribute":"n","by":1,"max":{DIGITS}}}"#));
    let answer = world.refused(&event, 409, "limit_reached").await;
    assert_eq!(answer.json()["current"].to_string(), DIGITS);
}
