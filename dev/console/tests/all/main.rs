//! The console: its stories, what it serves, and whom.

mod served;
mod stories;
