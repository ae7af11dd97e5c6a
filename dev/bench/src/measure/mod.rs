//! The parts of a run. Each measures and returns a typed result with [figures](crate::figure::Figure).

pub mod adds;
pub mod connections;
pub mod crowds;
pub mod engine;
pub mod function;
pub mod leases;
pub mod orders;
pub mod roots;
pub mod scene;
pub mod steps;
pub mod units;
