//! Yesterday's build has applied a change, and its answer is lost. Today's build judges by that row whether the change was
//! its own.

use super::recorded::{ANOTHER, ANOTHER_NAME, Case, Change, MINE, MY_NAME, WHAT_TO_DO, cases, flat, from, read};
use super::scene::{Rows, Scene, replace};
use crate::harness::clients::{client_whose, lost};
use crate::harness::engine::is_read;
use aws_sdk_dynamodb::Client;
use serde_json::Value;
use std::sync::Mutex;

/// A client that loses its first applied write: instead of it, the rows are as the recorded build left them.
fn overtaken(scene: &Scene, after: &Rows) -> Client {
    let after = Mutex::new(Some(after.clone()));
    client_whose(&scene.engine, move |engine, _, operation, body| {
        let answer = engine.answer(operation, body);
        if is_read(operation) || answer.0 != 200 {
            return answer;
        }
        let Some(after) = after.lock().expect("no panic").take() else { return answer };
        replace(engine, &after);
        engine.forget_tokens();
        lost()
    })
}

#[tokio::test(start_paused = true)]
async fn a_change_whose_answer_is_lost_is_told_applied_if_the_row_of_yesterday_s_build_has_its_id() {
    let recorded = read();
    for Case { name, change, applied, .. } in cases() {
        let Change { before, after } = &recorded.changes[name];
        let scene = Scene::after(before, 0);
        let today = scene.drawing(&overtaken(&scene, after), from(MINE));
        let answer = today.send(&change).await;
        assert_eq!(answer.status, applied, "{name}: {answer:?}\n{WHAT_TO_DO}.");
        assert_eq!(&scene.rows(), after, "{name} was applied twice\n{WHAT_TO_DO}.");
        let log = scene.engine.take_log();
        let resend = log.iter().rfind(|asked| !is_read(&asked.operation)).expect("a write");
        assert_ne!(resend.status, 200, "{name}: the row refuses the resend");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_whose_answer_is_lost_is_told_lost_if_the_row_of_yesterday_s_build_has_a_foreign_id() {
    let recorded = read();
    for Case { name, other: (other, told, is_applied), .. } in cases() {
        let Change { before, after } = &recorded.changes[name];
        let scene = Scene::after(before, 0);
        let today = scene.drawing(&overtaken(&scene, after), from(ANOTHER));
        let answer = today.send(&other).await;
        assert_eq!(answer.status, told, "{name}: {answer:?}\n{WHAT_TO_DO}.");
        if !is_applied {
            assert_eq!(&scene.rows(), after, "{name}: the other change was applied");
            continue;
        }
        let (table, id, yesterday) = flat(after).find(|(.., row)| remembers(row, MY_NAME)).expect("a changed row");
        let row = &scene.rows()[table][id];
        assert!(remembers(row, MY_NAME) && remembers(row, ANOTHER_NAME), "{name}: both changes are there: {row}");
        let versions =
            [yesterday, row].map(|row| row["_version"]["N"].as_str().and_then(|text| text.parse::<u64>().ok()));
        assert_eq!(versions[0].map(|version| version + 1), versions[1], "{name}: applied once");
    }
}

fn remembers(row: &Value, id: &str) -> bool {
    row["_writes"]["M"].get(id).is_some()
}
