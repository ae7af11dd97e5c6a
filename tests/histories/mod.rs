//! Seeded histories: clients race under every fault, and afterwards nothing may contradict their answers.

mod devices;
mod history;
mod item;
mod leases;
mod lists;
mod mappings;
mod mixed;
mod orders;
mod programs;
mod scene;
