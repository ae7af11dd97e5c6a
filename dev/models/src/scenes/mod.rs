//! The bounds of each model, and for each rule the smallest scene that shows what it is for.

mod leases;
mod newest;
mod one_item;
mod transactions;

use crate::protocol::Limits;
use crate::run::{Removal, Scene};
use crate::world::Faults;

/// The models, in the order in which they build on each other.
pub const MODELS: [&str; 4] = ["one-item", "transactions", "leases", "newest"];

/// The scenes of all models. With `is_deep`, larger ones.
pub fn scenes(is_deep: bool) -> Vec<Scene> {
    [one_item::scenes, transactions::scenes, leases::scenes, newest::scenes]
        .into_iter()
        .flat_map(|scenes| scenes(is_deep))
        .collect()
}

/// The rules of all models.
pub fn removals() -> Vec<Removal> {
    [one_item::removals, transactions::removals, leases::removals, newest::removals]
        .into_iter()
        .flat_map(|removals| removals())
        .collect()
}

/// The bounds of a network.
fn limits(sends: u8, losses: u8, copies: u8, throttles: u8) -> Limits {
    Limits { sends, faults: Faults { losses, copies, throttles }, life: 1, hedges: false, begins: 100 }
}
