//! Seeded listings: among random changes, under faults, and of as many items as there may be.

mod counted;
mod faults;
mod live;
