//! Tables with a past: rows of other programs, foreign writers, other ways to delete, two Regions.

mod adopting;
mod any_writers;
mod deletes;
mod regions;
mod tags;
mod world;
