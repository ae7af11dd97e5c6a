//! Seeded histories: clients race under every fault, and afterwards nothing may contradict their answers.

mod history;
mod leases;
mod lists;
mod mappings;
mod mixed;
mod programs;
mod scene;
