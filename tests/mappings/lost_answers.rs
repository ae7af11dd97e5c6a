//! Lost answers and throttling: each answer about such a write is true.

use super::world::Trouble::{AnswerLost, Lost, Throttled};
use super::world::{DAY_MS, IP, START_MS, T1, T1_MS, T2, T2_MS, Trouble, World};
use super::world::{batch_of, client_in_trouble, deletion, registration, task};
use crate::harness::clients::client_whose;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

impl World {
    /// The same, where the first writes get into this trouble, one after another.
    fn troubled(&self, first: &'static [Trouble]) -> World {
        self.reached_by(&client_in_trouble(&self.engine, |before, _| first.get(before).copied()))
    }

    /// The same, where every write does.
    fn doomed(&self, trouble: Trouble) -> World {
        self.reached_by(&client_in_trouble(&self.engine, move |_, _| Some(trouble)))
    }

    /// The same, where the first write arrives or does not, its answer is lost, and another client acts before the second
    /// write, as `meanwhile` says.
    fn overtaken(&self, meanwhile: impl Fn(&World) + Send + Sync + 'static, arrives: bool) -> World {
        let writes = AtomicUsize::new(0);
        let other = self.reached_by(&self.engine.client());
        self.reached_by(&client_whose(&self.engine, move |engine, _, operation, body| {
            if operation == "PutItem" && writes.fetch_add(1, SeqCst) == 0 {
                if arrives {
                    engine.answer(operation, body);
                }
                meanwhile(&other);
                return (500, String::new());
            }
            engine.answer(operation, body)
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn a_registration_whose_answer_is_lost_finds_itself_and_counts_once() {
    let world = World::new();
    let same = world.troubled(&[AnswerLost]).register(IP, "i-a", T1).await;
    assert_eq!((same.shown(200)["instanceId"].as_str(), same.header("location")), (Some("i-a"), None));
    let row = world.row(IP);
    world.troubled(&[AnswerLost, Lost, AnswerLost, Throttled]).register(IP, "i-a", T1).await.shown(200);
    assert_eq!(world.row(IP), row);
    world.troubled(&[Lost, Throttled, Lost]).register(IP, "i-b", T2).await.shown(201);
    assert_eq!(world.instance(IP).await.as_deref(), Some("i-b"));
}

#[tokio::test(start_paused = true)]
async fn a_delete_whose_answer_is_lost_is_done_and_claims_no_more_than_it_knows() {
    for (trouble, outcome) in [
        (&[Lost][..], "deleted"),
        (&[Throttled, Lost], "deleted"),
        (&[AnswerLost], "already_gone"),
        (&[AnswerLost, Throttled, AnswerLost], "already_gone"),
    ] {
        let world = World::new();
        world.stands(IP, "i-a", T1).await;
        assert_eq!(world.troubled(trouble).delete(IP, T1, Some("i-a")).await, outcome, "{trouble:?}");
        assert_eq!(world.instance(IP).await, None);
        world.register(IP, "i-a", T1).await.superseded_by(T1, Some("i-a"));
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
            let answer = world.doomed(trouble).send(&event).await;
            answer.says(status, code);
            answer.check_problem();
            assert_eq!(world.row(IP) != row, applied, "{event:?} {trouble:?}");
            assert!(world.send(&event).await.status < 300, "it can be sent again at any time");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_registration_that_a_newer_one_replaced_is_told_of_the_newer_one() {
    for arrived in [true, false] {
        let world = World::new();
        world.overtaken(newer_registration, arrived).register(IP, "i-a", T1).await.superseded_by(T2, Some("i-b"));
        assert_eq!(world.instance(IP).await.as_deref(), Some("i-b"));
    }
}

/// Another client registers `i-b` of `T2`.
fn newer_registration(other: &World) {
    other.plant(&json!({
        "hostIp": {"S": IP},
        "cellId": {"S": "cell-1"},
        "instanceId": {"S": "i-b"},
        "creationTimestamp": {"N": T2_MS.to_string()},
    }));
}

/// Another client deleted `i-a` of `T1`; the tombstone may be purged in so many milliseconds.
fn dying_tombstone(milliseconds_left: u64) -> impl Fn(&World) + Send + Sync + 'static {
    move |other| {
        let purge_at = (START_MS + milliseconds_left) / 1000;
        other.plant(&json!({
            "hostIp": {"S": IP},
            "instanceId": {"S": "i-a"},
            "creationTimestamp": {"N": T1_MS.to_string()},
            "_purgeAt": {"N": purge_at.to_string()},
        }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_registration_that_is_refused_by_a_tombstone_about_to_be_purged_stays_unknown() {
    for milliseconds_left in [0, 60_000, 5 * 60_000] {
        let world = World::new();
        let answer = world.overtaken(dying_tombstone(milliseconds_left), false).register(IP, "i-a", T1).await;
        // Its first copy may still be on its way, and soon nothing will be there to refuse it.
        answer.says(504, "outcome_unknown");
    }
    let world = World::new();
    world.overtaken(dying_tombstone(30 * DAY_MS), false).register(IP, "i-a", T1).await.superseded_by(T1, Some("i-a"));
}

#[tokio::test(start_paused = true)]
async fn a_registration_of_which_nothing_is_on_its_way_is_refused_by_any_tombstone() {
    let world = World::new();
    dying_tombstone(0)(&world);
    world.register(IP, "i-a", T1).await.superseded_by(T1, Some("i-a"));
    world.troubled(&[Throttled, Throttled]).register(IP, "i-a", T1).await.superseded_by(T1, Some("i-a"));
}

#[tokio::test(start_paused = true)]
async fn a_lost_delete_that_a_newer_registration_met_is_superseded() {
    let world = World::new();
    world.stands(IP, "i-a", T1).await;
    for arrived in [true, false] {
        assert_eq!(world.overtaken(newer_registration, arrived).delete(IP, T1, Some("i-a")).await, "superseded");
    }
    assert_eq!(world.instance(IP).await.as_deref(), Some("i-b"));
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_outcome_is_unknown_comes_again() {
    for trouble in [AnswerLost, Lost] {
        let world = World::new();
        world.stands(IP, "i-a", T1).await;
        let batch = batch_of(&[("m-1", task(IP, T1, Some("i-a")))]);
        assert_eq!(world.doomed(trouble).batch(&batch).await, ["m-1"], "{trouble:?}");
        assert!(world.batch(&batch).await.is_empty());
        assert_eq!(world.instance(IP).await, None);
        world.register(IP, "i-a", T1).await.superseded_by(T1, Some("i-a"));
    }
}
