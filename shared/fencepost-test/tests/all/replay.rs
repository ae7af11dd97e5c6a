//! One seed always tells the same story. A test that fails prints its seed.

use crate::counter::{TABLE, add, put};
use fencepost_test::Dynamo;
use std::process::Command;

/// Set by the test below, for the story to fail.
const FAILS: &str = "STORY_FAILS";

/// The log of some requests of clients that race, with the SDK's own retries.
async fn story(db: &Dynamo) -> String {
    db.create_table(TABLE, "id");
    put(db, "a");
    db.lose_answer().with_probability(0.2);
    db.throttle().with_probability(0.2);
    let clients = [db.client(), db.client(), db.client()];
    tokio::join!(add(&clients[0], "a"), add(&clients[1], "a"), add(&clients[2], "a")).0.ok();
    db.settle().await;
    db.log().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_story_of_chance() {
    let db = Dynamo::new();
    let told = Box::pin(story(&db)).await;
    assert!(std::env::var(FAILS).is_err(), "the story was\n{told}the end");
    let again = std::thread::spawn(move || replayed(db.seed())).join().expect("no panic");
    assert_eq!(told, again);
}

/// The story of this seed on a thread of its own.
fn replayed(seed: u64) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async { Box::pin(story(&Dynamo::with_seed(seed))).await })
}

/// The SDK has an allowance of 500 for retries. A retry of a refused write uses up 5 of it.
#[tokio::test(start_paused = true)]
async fn what_a_client_sends_again_does_not_depend_on_what_was_played_before() {
    let db = Dynamo::new();
    db.create_table(TABLE, "id");
    put(&db, "a");
    db.lose_answer().always();
    for _ in 0..100 {
        let before = db.log().len();
        add(&db.client(), "a").await.expect_err("no answer comes");
        assert_eq!(db.log().len() - before, 3);
    }
}

#[test]
fn another_seed_tells_another_story() {
    assert_ne!(replayed(1), replayed(2));
}

#[test]
fn a_test_that_fails_prints_its_seed_and_the_seed_replays_it() {
    let play = |seed: Option<&str>| {
        let mut test = Command::new(std::env::current_exe().expect("this program"));
        test.args(["--exact", "replay::a_story_of_chance", "--nocapture"]).env(FAILS, "1").env_remove("FENCEPOST_SEED");
        let output = test.envs(seed.map(|seed| ("FENCEPOST_SEED", seed))).output().expect("it runs");
        assert!(!output.status.success());
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        let between = |from: &str, to: &str| {
            let (_, rest) = said.split_once(from).unwrap_or_else(|| panic!("no {from} in {said}"));
            rest.split_once(to).unwrap_or_else(|| panic!("no {to} in {said}")).0.to_owned()
        };
        (between("FENCEPOST_SEED=", " plays this test again"), between("the story was\n", "the end"))
    };
    let (seed, story) = play(None);
    assert_eq!(play(Some(&seed)), (seed, story));
}
