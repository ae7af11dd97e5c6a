//! The share of unknown outcomes on a network with lost answers. Time is virtual: the machine has no influence.

use super::world::{TABLES, World};
use crate::harness::engine::Engine;
use crate::harness::events::Event;
use crate::harness::faults::{Broken, Rates, network_that_breaks};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Makes lamps brighter. Gives the numbers of acknowledged and of unknown changes.
async fn brighten(world: World, writer: usize, lamps: usize, times: usize) -> (i64, i64) {
    let (mut acknowledged, mut unknown) = (0, 0);
    for time in 0..times {
        let event = Event::adjust().device(&format!("lamp-{}", (writer + time) % lamps));
        let event = event.text(r#"{"attribute":"brightness","by":1}"#);
        match world.send(&event).await.status {
            200 => acknowledged += 1,
            504 => unknown += 1,
            other => panic!("{other} is no answer to expect here"),
        }
    }
    (acknowledged, unknown)
}

#[tokio::test(start_paused = true)]
async fn of_a_hundred_adjustments_at_most_one_stays_unknown_where_one_answer_in_twenty_is_lost() {
    const WRITERS: usize = 8;
    const LAMPS: usize = 8;
    const TIMES: usize = 40;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let engine = Engine::embedded(TABLES);
    let direct = World::on(&engine);
    for lamp in 0..LAMPS {
        direct.send(&Event::create().device(&format!("lamp-{lamp}"))).await.shows(201, 1);
    }
    // Half of the lost answers are a 500.
    let lossy = Rates { answer_lost: 25, applied_500: 25, ..Rates::default() };
    let network = network_that_breaks(&engine, lossy, Broken::Nothing, fastrand::Rng::with_seed(seed));
    let (start, mut writers) = (Instant::now(), JoinSet::new());
    for writer in 0..WRITERS {
        writers.spawn(brighten(World::over(&network, start), writer, LAMPS, TIMES));
    }
    let told = writers.join_all().await;
    let acknowledged: i64 = told.iter().map(|(acknowledged, _)| acknowledged).sum();
    let unknown: i64 = told.iter().map(|(_, unknown)| unknown).sum();
    let brightness = |lamp| {
        let row = engine.row("Devices", "deviceId", &format!("lamp-{lamp}"));
        row["state"]["M"]["brightness"]["N"].as_str().and_then(|number| number.parse::<i64>().ok()).expect("a number")
    };
    let held: i64 = (0..LAMPS).map(|lamp| brightness(lamp) - 50).sum();
    assert!((acknowledged..=acknowledged + unknown).contains(&held), "{acknowledged} <= {held}, {unknown} unknown");
    assert!(unknown * 100 <= i64::try_from(WRITERS * TIMES).expect("small"), "{unknown} unknown");
}
