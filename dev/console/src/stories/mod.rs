//! The stories: races played for real, each on tables of its own.
//!
//! A [`Story`] has one or two sides, which play at once, each on an embedded engine of its own and with the same seed.
//! The functions' own handlers answer the clients. The faults are those of the test kit. Time is virtual. So a seed
//! always gives the same play. In reading order: `story`, `told`, `ledger`, `scene`, the stories themselves, and [`play`].

mod counting;
mod last_item;
mod late_delete;
mod ledger;
mod naive;
mod scene;
mod story;
mod told;
mod two_leaders;

pub use story::{Settings, Story};

use futures_util::future::join_all;
use scene::{Scene, Verdict};
use serde_json::{Value, json};
use std::rc::Rc;
use std::time::Duration;
use story::Side;
use tokio::time::{Instant, timeout};
use told::{Teller, Told, millis, side_span, subscriber};
use tracing::Instrument;

/// Every story, in the order of the page.
pub const STORIES: &[&Story] = &[
    &counting::ONE_ANSWER,
    &counting::FIVE_USERS,
    &last_item::STORY,
    &last_item::FLASH_SALE,
    &late_delete::STORY,
    &two_leaders::STORY,
    &counting::ONE_HUNDRED,
];

/// The most virtual time for a story.
const LONGEST: Duration = Duration::from_mins(30);

/// What happened in a play.
#[derive(Clone, PartialEq, Debug)]
pub struct Play {
    /// What happened, in its order.
    pub moments: Vec<Value>,
    /// How each side ended.
    pub ends: Vec<Value>,
    /// When it ended, in milliseconds.
    pub at: u64,
}

/// Plays a story.
///
/// # Panics
/// If the operating system has no timer, or the story takes longer than half an hour of its time.
#[must_use]
pub fn play(story: &'static Story, settings: Settings) -> Play {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a timer").block_on(perform(story, settings))
}

async fn perform(story: &'static Story, settings: Settings) -> Play {
    let (begun, told) = (begin(), Told::default());
    let tellers: Vec<_> = (0..story.sides.len()).map(|side| Teller::new(&told, begun, side)).collect();
    let _listening = tracing::subscriber::set_default(subscriber(tellers.clone()));
    let sides = story.sides.iter().zip(tellers).enumerate();
    let ends = join_all(sides.map(|(number, (side, teller))| {
        async move { perform_side(story, side, teller, settings).await }.instrument(side_span(number))
    }));
    let ends = timeout(LONGEST, ends).await.expect("the story ends");
    let moments = std::mem::take(&mut *told.lock().expect("no panic while telling"));
    Play { moments, ends, at: millis(begun.elapsed()) }
}

#[expect(clippy::disallowed_methods, reason = "the time of a play is tokio's, which is virtual")]
fn begin() -> Instant {
    Instant::now()
}

async fn perform_side(story: &Story, side: &Side, teller: Teller, settings: Settings) -> Value {
    let scene = Rc::new(Scene::new(teller, settings.seed, side.tables, side.held, story.twice));
    (side.play)(scene.clone(), settings).await;
    scene.db().settle().await;
    let totals = scene.totals();
    scene.ledger().tell_counters();
    let Verdict { text, is_good } = (side.verdict)(&totals);
    json!({ "counters": totals.to_json(), "verdict": text, "good": is_good })
}
