//! What the clients of both Regions saw of one item, for a judge that knows nothing else.

use crate::adoption::world::{Account, Regional};
use fencepost::{ItemVersion, Versioned};
use judges::linearizable::Seen;
use judges::register::{self, Op, SeenOf, Shown, Told, Value, Version};
use tokio::time::Instant;

/// The balance of an account.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Balance(pub i64);

impl Value for Balance {
    type Amount = i64;

    fn plus(&self, amount: &i64) -> Option<Self> {
        self.0.checked_add(*amount).map(Balance)
    }
}

/// What one client saw of an item, from when it asked until now.
pub fn seen(client: u64, began: Instant, op: Op<Balance>, told: Option<Told<Balance>>) -> SeenOf<Balance> {
    Seen { client, began: began.into_std(), ended: Instant::now().into_std(), op, told }
}

/// A change was done, and made this version, if that was told.
pub fn done(made: Option<ItemVersion>) -> Told<Balance> {
    Told::Done(made.map(version))
}

/// This was read.
pub fn saw(read: Option<Versioned<Account<Regional>>>) -> Told<Balance> {
    Told::Saw(read.map(|read| Shown { value: Balance(read.value.balance), at: Some(version(read.at)) }))
}

fn version(at: ItemVersion) -> Version {
    let row = at.incarnation.as_bytes().try_into().expect("a row of Fencepost");
    Version { row, number: at.version.get() }
}

/// What the judge says against what was seen of each item.
pub fn violations(seen: &[(&'static str, SeenOf<Balance>)], items: &[&'static str]) -> Vec<String> {
    let of = |item: &str| seen.iter().filter(|(of, _)| *of == item).map(|(_, seen)| seen.clone()).collect();
    items.iter().filter_map(|item| register::judge(None, of(item)).err()).collect()
}
