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

pub use story::{Invalid, Setting, Settings, Story};
pub use told::Told;

use futures_util::future::join_all;
use scene::{Scene, Verdict};
use serde_json::{Value, json};
use std::io;
use std::rc::Rc;
use std::time::Duration;
use story::Side;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, timeout};
use told::{Teller, side_span, subscriber, tell};
use tracing::Instrument;

/// Every story, in the order of the page.
pub const STORIES: &[&Story] = &[
    &counting::FIVE_USERS,
    &counting::LOST_ANSWERS,
    &last_item::STORY,
    &late_delete::STORY,
    &two_leaders::STORY,
    &counting::ONE_HUNDRED,
];

/// The story with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Story> {
    STORIES.iter().copied().find(|story| story.name == name)
}

/// The most virtual time for a story.
const LONGEST: Duration = Duration::from_mins(30);

/// How many moments a play may be ahead of its listener.
const AHEAD: usize = 1024;

/// How a play ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// By itself.
    Finished,
    /// Because the listener has gone.
    Stopped,
}

/// Plays a story until it ends or its listener has gone. Then `ended` is called.
///
/// # Errors
/// The operating system gives no thread or no timer.
pub fn play(
    story: &'static Story,
    settings: Settings,
    ended: impl FnOnce(Ending) + Send + 'static,
) -> io::Result<Receiver<Told>> {
    let (to, told) = channel(AHEAD);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let play = move || {
        let how = runtime.block_on(async {
            tokio::select! {
                () = perform(story, &settings, &to) => Ending::Finished,
                () = to.closed() => Ending::Stopped,
            }
        });
        ended(how);
    };
    std::thread::Builder::new().name(format!("story {}", story.name)).spawn(play)?;
    Ok(told)
}

async fn perform(story: &'static Story, settings: &Settings, to: &Sender<Told>) {
    let begun = begin();
    let tellers: Vec<_> = (0..story.sides.len()).map(|side| Teller::new(to, begun, side)).collect();
    let _listening = tracing::subscriber::set_default(subscriber(tellers.clone()));
    tell(to, Told::Begin(story.begin(settings)));
    let sides = story.sides.iter().zip(tellers).enumerate();
    let ends = join_all(sides.map(|(number, (side, teller))| {
        let settings = settings.clone();
        async move { perform_side(story, side, teller, settings).await }.instrument(side_span(number))
    }));
    let Ok(ends) = timeout(LONGEST, ends).await else { return };
    let at = begun.elapsed().as_secs_f64() * 1000.0;
    tell(to, Told::End(json!({ "sides": ends, "at": at })));
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
