//! The console: its stories, its answers, and its visitors.

mod served;
mod stories;
