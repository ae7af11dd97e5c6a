//! Seeded histories: clients race under every fault, and afterwards nothing may contradict what they were told.

mod attempts;
mod claims;
mod devices;
mod history;
mod item;
mod leases;
mod lists;
mod mappings;
mod mixed;
mod orders;
mod scene;
