//! Seeded histories: clients race under every fault, and afterwards nothing may contradict their answers.

mod audit;
mod history;
mod holds;
mod lists;
mod mixed;
mod programs;
pub mod scene;
