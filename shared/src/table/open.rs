//! [`Store::table`]: opens a table.

use super::handle::{Keeping, RawTable, Table, follows};
use super::holder::Holder;
use super::record::Record;
use crate::store::Store;
use std::marker::PhantomData;

impl Store {
    /// The table with this name, with items that hold values of type `T`. Sends nothing.
    pub fn table<T: Record>(&self, name: impl Into<String>) -> Table<T> {
        const { assert!(Table::<T>::LAYOUT.settings.window >= 1) } // Evaluates the layout, and with it its checks.
        let raw = RawTable {
            store: self.clone(),
            name: name.into(),
            layout: Table::<T>::LAYOUT,
            tombstone_retention: Table::<T>::TOMBSTONE_RETENTION,
            fence: None,
            remembers_items: false,
            keeping: const { keeping::<T>() },
            held_for: None,
        };
        Table { raw, value: PhantomData }
    }
}

const fn keeping<T: Record>() -> Option<Keeping> {
    match T::HOLDS {
        Some(_) => Some(Keeping { follows: follows::<T>, keeper: Holder::boxed }),
        None => None,
    }
}
