//! Every route and every answer of `host-mapping`, with the rows behind them, also where answers are lost.

use super::world::Trouble::{AnswerLost, Lost, Throttled};
use super::world::{DAY_MS, IP, START_MS, T1, T1_MS, T2, World, deletion, look_up, registration};
use crate::harness::clients::{client_whose_first_write, lost};
use crate::harness::functions::MAPPINGS;
use serde_json::{Value, json};

/// A live mapping as it is stored.
fn live(ip: &str, instance: &str, at_ms: u64) -> Value {
    json!({
        "hostIp": {"S": ip},
        "cellId": {"S": "cell-1"},
        "instanceId": {"S": instance},
        "creationTimestamp": {"N": at_ms.to_string()},
    })
}

#[tokio::test]
async fn a_registration_is_created_and_then_the_same_again_and_shown() {
    let world = World::new();
    let created = world.register(IP, "i-a", T1).await;
    let mapping = json!({"hostIp": IP, "cellId": "cell-1", "instanceId": "i-a", "creationTimestamp": T1});
    assert_eq!(created.shown(201), mapping);
    assert_eq!(created.header("location"), Some("/mappings/192.0.2.10"));
    assert!(created.etag().starts_with(&format!("\"{T1_MS}.")), "{created:?}");
    assert_eq!(world.row(IP), live(IP, "i-a", T1_MS));
    world.engine.take_log();
    let again = world.register(IP, "i-a", T1).await;
    assert_eq!(world.engine.take_counts(), (0, 1));
    assert_eq!((again.shown(200), again.etag(), again.header("location")), (mapping.clone(), created.etag(), None));
    let shown = world.get(IP).await;
    assert_eq!((shown.shown(200), shown.etag()), (mapping, created.etag()));
    assert_eq!(shown.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn a_client_that_has_the_mapping_already_is_told_so() {
    let world = World::new();
    let tag = world.register(IP, "i-a", T1).await.etag().to_owned();
    for tags in [&tag, "*", &format!("\"other\", {tag}")] {
        let answer = world.send(&look_up(IP).header("if-none-match", tags)).await;
        assert_eq!((answer.status, &answer.body, answer.etag()), (304, &None, tag.as_str()), "{tags}");
    }
    world.send(&look_up(IP).header("if-match", &tag)).await.shown(200);
    let newer = world.register(IP, "i-b", T2).await.etag().to_owned();
    assert_eq!(world.send(&look_up(IP).header("if-none-match", &tag)).await.etag(), newer);
    world.send(&look_up(IP).header("if-match", &tag)).await.says(412, "version_conflict");
    assert_eq!(world.delete(IP, T2, None).await, "deleted");
    world.send(&look_up(IP).header("if-none-match", &newer)).await.says(404, "mapping_not_found");
}

#[tokio::test]
async fn the_same_instance_in_another_cell_is_refused_and_the_first_cell_stays() {
    let world = World::new();
    world.stands(IP, "i-a", T1).await;
    let elsewhere = json!({"cellId": "cell-2", "instanceId": "i-a", "creationTimestamp": T1}).to_string();
    world.engine.take_log();
    let differs = world.send(&registration(IP, "i-a", T1).text(&elsewhere)).await;
    assert_eq!(world.engine.take_counts(), (0, 1));
    assert_eq!(differs.says(409, "mapping_differs")["cellId"], "cell-1");
    differs.check_problem();
    assert_eq!(world.row(IP), live(IP, "i-a", T1_MS));
}

#[tokio::test]
async fn every_notation_of_an_address_means_the_same_row() {
    let notations = [
        ["2001:db8::a", "2001:DB8::A", "2001:0db8:0:0:0:0:0:000A"],
        ["192.0.2.10", "::ffff:192.0.2.10", "::FFFF:C000:020A"],
    ];
    for [plain, one, another] in notations {
        let world = World::new();
        let created = world.register(one, "i-a", T1).await;
        assert_eq!(created.shown(201)["hostIp"], plain);
        assert_eq!(created.header("location"), Some(format!("/mappings/{plain}").as_str()));
        assert_eq!(world.row(plain), live(plain, "i-a", T1_MS));
        for notation in [plain, one, another] {
            assert_eq!(world.register(notation, "i-a", T1).await.shown(200)["hostIp"], plain);
            assert_eq!(world.get(notation).await.shown(200)["hostIp"], plain);
        }
        assert_eq!(world.delete(another, T1, Some("i-a")).await, "deleted");
        assert_eq!(world.instance(plain).await, None);
    }
}

#[tokio::test]
async fn a_tombstone_is_kept_for_30_days_from_the_arrival_of_its_delete() {
    let world = World::new();
    let long_ago = "2025-01-01T00:00:00.000Z";
    let tombstone = |instance: Option<&str>, purge_at_ms: u64| {
        let mut row = json!({
            "hostIp": {"S": IP},
            "creationTimestamp": {"N": "1735689600000"},
            "_purgeAt": {"N": (purge_at_ms / 1000).to_string()},
        });
        if let Some(instance) = instance {
            row["instanceId"] = json!({"S": instance});
        }
        row
    };
    world.stands(IP, "i-a", long_ago).await;
    world.delete(IP, long_ago, Some("i-a")).await;
    assert_eq!(world.row(IP), tombstone(Some("i-a"), START_MS + 30 * DAY_MS));
    // The same delete arrives again. Its registration may be as late.
    world.pass(DAY_MS);
    world.delete(IP, long_ago, Some("i-a")).await;
    assert_eq!(world.row(IP), tombstone(Some("i-a"), START_MS + 31 * DAY_MS));
    // A delete that is too late changes nothing.
    world.pass(DAY_MS);
    assert_eq!(world.delete(IP, "2024-12-31T00:00:00.000Z", None).await, "superseded");
    assert_eq!(world.row(IP), tombstone(Some("i-a"), START_MS + 31 * DAY_MS));
    world.delete(IP, long_ago, None).await;
    assert_eq!(world.row(IP), tombstone(None, START_MS + 32 * DAY_MS));
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_a_fault_and_is_left_alone() {
    let world = World::new();
    for broken in [
        json!({"hostIp": {"S": IP}, "cellId": {"S": "cell-1"}, "instanceId": {"S": "i-a"}}),
        json!({"hostIp": {"S": IP}, "instanceId": {"S": "i-a"}, "creationTimestamp": {"S": T1}}),
        json!({"hostIp": {"S": IP}, "instanceId": {"N": "1"}, "creationTimestamp": {"N": "9999999999999"}}),
    ] {
        world.plant(&broken);
        for event in [registration(IP, "i-a", T1), look_up(IP), deletion(IP, T1, Some("i-a"))] {
            let answer = world.send(&event).await;
            answer.says(500, "internal");
            assert!(!answer.body.as_deref().unwrap_or_default().contains("malformed"), "{answer:?}");
        }
        assert_eq!(world.row(IP), broken);
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_never_answered_is_unknown_and_a_throttled_one_was_not_applied() {
    for event in [registration(IP, "i-b", T2), deletion(IP, T2, Some("i-b"))] {
        for (trouble, status, code, applied) in [
            (AnswerLost, 504, "outcome_unknown", true),
            (Lost, 504, "outcome_unknown", false),
            (Throttled, 503, "unavailable", false),
        ] {
            let world = World::new();
            world.stands(IP, "i-a", T1).await;
            let row = world.row(IP);
            let answer = world.in_trouble(trouble, "").send(&event).await;
            answer.says(status, code);
            answer.check_problem();
            assert_eq!(world.row(IP) != row, applied, "{event:?} {trouble:?}");
            assert!(world.send(&event).await.status < 300, "it can be sent again at any time");
        }
    }
}

/// The same, where the first write does not arrive. Before the second, another client has deleted `i-a` of `T1`; the
/// tombstone may be purged in so many milliseconds.
fn overtaken(world: &World, milliseconds_left: u64) -> World {
    let purge_at = (START_MS + milliseconds_left) / 1000;
    let tombstone = json!({
        "hostIp": {"S": IP},
        "instanceId": {"S": "i-a"},
        "creationTimestamp": {"N": T1_MS.to_string()},
        "_purgeAt": {"N": purge_at.to_string()},
    });
    world.reached_by(&client_whose_first_write(&world.engine, move |engine, _, _| {
        engine.raw("PutItem", &json!({"TableName": MAPPINGS, "Item": tombstone}));
        lost()
    }))
}

#[tokio::test(start_paused = true)]
async fn a_lost_registration_that_is_refused_by_a_tombstone_about_to_be_purged_stays_unknown() {
    for milliseconds_left in [0, 60_000, 5 * 60_000] {
        let answer = overtaken(&World::new(), milliseconds_left).register(IP, "i-a", T1).await;
        // Its first copy may still be on its way, and soon nothing will be there to refuse it.
        answer.says(504, "outcome_unknown");
    }
    overtaken(&World::new(), 30 * DAY_MS).register(IP, "i-a", T1).await.superseded_by(T1, Some("i-a"));
}
