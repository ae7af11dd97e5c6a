//! Tables that were there before: rows of other programs, writers that are not ours, other ways to delete, two Regions.

mod adopting;
mod any_writers;
mod corrupt;
mod creating;
mod deletes;
mod regions;
mod tags;
mod transactions;
mod world;
