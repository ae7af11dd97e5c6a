//! The process dies at each of its await points. Then the same event comes again.
//!
//! A function is a future. It is dropped at its first, second, third … `Pending`, until it completes. Each case of the
//! matrix is one route with one way to ask, on an item in one state.

pub mod alone;
pub mod case;
mod death;
mod devices;
mod leases;
mod library;
mod mappings;
mod matrix;
mod noticed;
mod shop;
mod trial;

use crate::harness::functions::{Devices, Leasing, Mappings, Shop};

#[test]
fn a_device_survives_a_death_at_each_await_point() {
    matrix::hold::<Devices>();
}

#[test]
fn stock_and_orders_survive_a_death_at_each_await_point() {
    matrix::hold::<Shop>();
}

#[test]
fn a_mapping_survives_a_death_at_each_await_point() {
    matrix::hold::<Mappings>();
}

#[test]
fn a_lease_and_a_child_survive_a_death_at_each_await_point() {
    matrix::hold::<Leasing>();
}
