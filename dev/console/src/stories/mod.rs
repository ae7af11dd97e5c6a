//! The stories: races played for real, each on tables of its own.
//!
//! A [`Story`] has one or two sides, which play at once, each on an embedded engine of its own and with the same seed.
//! The functions' own handlers answer the clients. The faults are those of the test kit. Time is virtual. So a seed
//! always gives the same play. In reading order: `settings`, `told`, `cost`, `ledger`, `trace`, `scene`, `story`, the
//! stories themselves, and `player`.

mod cost;
mod counting;
mod last_item;
mod late_delete;
mod ledger;
mod naive;
mod player;
mod scene;
mod settings;
mod story;
mod told;
mod trace;
mod two_leaders;

pub use player::{Ending, play};
pub use settings::{Invalid, Setting, Settings};
pub use story::Story;
pub use told::Told;

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
