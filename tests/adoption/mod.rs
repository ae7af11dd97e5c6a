//! Tables with a past: rows of other programs, foreign writers, two Regions.

mod adopting;
mod any_writers;
mod regions;
mod tags;
mod world;
