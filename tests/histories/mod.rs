//! Seeded histories: clients race under every fault, and afterwards nothing may contradict what they were told.

mod attempts;
mod devices;
mod history;
mod leases;
mod lists;
mod mappings;
mod mixed;
mod orders;
mod total;
