//! [`Reads`]: the items that a decision sees.

use crate::driver::rows::{Known, KnownRow, LEASES};
use crate::driver::send::{Address, Sender};
use crate::error::{Failure, FailureKind};
use crate::fencing_token::FencingToken;
use crate::store::Store;
use crate::table::handle::Keeping;
use crate::table::{Key, Record, Table};
use fencepost_core::format::layout::Regions;
use fencepost_core::hold;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The most steps of a transaction and the most rows read for it (`DynamoDB` quota).
const MAX_STEPS: usize = 100;

/// The items for a decision, with their names. At most 100.
///
/// An order shows most steps of an [`Attempt`](super::Attempt):
///
/// ```
/// # use fencepost::{Error, FencingToken, Reads, Record, Store, Table};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize, Record)]
/// # #[record(key = "id")]
/// # struct Customer { name: String }
/// # #[derive(Serialize, Deserialize, Record)]
/// # #[record(key = "id")]
/// # struct Product { stock: u64 }
/// # #[derive(Serialize, Deserialize, Record)]
/// # #[record(key = "id")]
/// # struct Order { name: String, first_version: u64 }
/// async fn place(store: &Store, products: &Table<Product>, open: &FencingToken) -> Result<(), Error<&'static str>> {
///     let (customers, carts): (Table<Customer>, Table<Order>) = (store.table("Customers"), store.table("Carts"));
///     let orders: Table<Order> = store.table("Orders");
///     let mut reads = Reads::new();
///     let shop = reads.lease("the shop", open);
///     let (customer, cart) = (reads.item("customer", &customers, "c-1"), reads.item("cart", &carts, "c-1"));
///     let product = reads.remembered("product", products, "p-1"); // read if this client has not seen it
///     let order = reads.later("order", &orders, "o-1"); // read only along with others
///     let placed = store.transact_with_retry(reads, |attempt| {
///         if attempt.knows(order)? && attempt.get(order)?.is_some() {
///             return Err(Error::Refused("it is placed already"));
///         }
///         let name = attempt.get(customer)?.ok_or(Error::Refused("nobody orders"))?.value.name;
///         attempt.require(shop)?; // the lease is still held
///         attempt.delete_at(cart)?; // as it was read, like `update_at`
///         attempt.edit_blind(product, &Product::FIELDS.stock.add(-1, 0..))?; // 1 is left, at any version
///         let first_version = attempt.version_after_put(order)?.get();
///         attempt.put_if_absent(order, &Order { name, first_version })?;
///         attempt.check(customer) // still as it was read; `check_rest` says so of all that have no step
///             .map_err(Error::from)
///     });
///     placed.await
/// }
/// ```
#[derive(Debug)]
pub struct Reads {
    /// Tells the [`Reads`] of one process apart, so that no handle is taken for one of another.
    id: u64,
    rows: Vec<KnownRow>,
    stores: Vec<Store>,
    failure: Option<Failure>,
    /// What is done about the holds of its items, if some may have any.
    pub(super) keeping: Option<Keeping>,
}

impl Reads {
    /// Creates an empty list.
    #[must_use]
    pub fn new() -> Self {
        static CREATED: AtomicU64 = AtomicU64::new(0);
        Reads { id: CREATED.fetch_add(1, Relaxed), rows: Vec::new(), stores: Vec::new(), failure: None, keeping: None }
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Adds an item to read before the first decision. Logs use `name` for its step.
    ///
    /// All tables of one transaction must belong to its store. A
    /// transaction of tables of different stores is refused as [`FailureKind::InvalidTransaction`].
    pub fn item<T: Record>(&mut self, name: impl Into<String>, table: &Table<T>, key: impl Into<Key>) -> Item<T> {
        self.add(name.into(), table, &key.into(), true)
    }

    /// Adds an item to read before the first decision, unless the client remembers it ([`Table::remembering_items`]). A
    /// decision to write may rest on a remembered item. If it has looked at the item, the transaction demands the item
    /// as it was seen, by its step or by a [check](super::Attempt::check) of its own. Only
    /// [`Attempt::edit_blind`](super::Attempt::edit_blind) demands no more than its conditions. Before any other answer,
    /// the item is read and decided on again.
    pub fn remembered<T: Record>(&mut self, name: impl Into<String>, table: &Table<T>, key: impl Into<Key>) -> Item<T> {
        let item = self.item(name, table, key);
        if let Some(row) = self.rows.last_mut().filter(|_| self.failure.is_none())
            && let Some(seen) = table.raw.remembered(&row.address.key)
        {
            (row.known, row.is_fresh) = (Known::Row((*seen).clone()), false);
        }
        item
    }

    /// Adds an item to read only along with others, or if a remembered item [holds](crate::Holds) something for it. Otherwise it
    /// stays unknown until one of its steps is refused; see [`Attempt::knows`](super::Attempt::knows).
    pub fn later<T: Record>(&mut self, name: impl Into<String>, table: &Table<T>, key: impl Into<Key>) -> Item<T> {
        self.add(name.into(), table, &key.into(), false)
    }

    /// Adds a lease for [`Attempt::require`](super::Attempt::require). Nothing is read for it.
    ///
    /// The table of the lease must have transactions. `DynamoDB` rejects the whole transaction if the table has
    /// multi-Region strong consistency. There, write under the token of the lease instead: [`Table::fenced_by`].
    pub fn lease(&mut self, name: impl Into<String>, token: &FencingToken) -> Item<FencingToken> {
        let address = Address { table: token.table.clone(), key: token.row() };
        let row = KnownRow::new(name.into(), address, &LEASES);
        self.rows.push(KnownRow { fence: Some(token.token), known: Known::Lease { is_lost: false }, ..row });
        self.last_item()
    }

    fn add<T: Record>(&mut self, name: String, table: &Table<T>, key: &Key, is_read_first: bool) -> Item<T> {
        match table.key_attributes(key) {
            Ok(key) => {
                let address = Address { table: table.raw.name.clone(), key };
                self.rows.push(KnownRow {
                    retention: table.raw.tombstone_retention,
                    fence: table.raw.fence,
                    is_read_first,
                    remembers_items: table.raw.remembers_items,
                    follows: table.raw.keeping.map(|keeping| keeping.follows),
                    held_for: table.raw.held_for.clone(),
                    ..KnownRow::new(name, address, table.raw.layout)
                });
                self.stores.push(table.raw.store.clone());
                self.keeping = self.keeping.or(table.raw.keeping);
            }
            Err(failure) => self.failure = Some(failure),
        }
        self.last_item()
    }

    fn last_item<T>(&self) -> Item<T> {
        Item { reads: self.id, row: self.rows.len().saturating_sub(1), value: PhantomData }
    }

    /// The items, all of which must be reached by this client.
    pub(super) fn into_rows(self, sender: &Sender) -> Result<Vec<KnownRow>, Failure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if self.stores.iter().any(|store| !store.sender().has_client_of(sender)) {
            return Err(invalid(
                "its tables have clients of their own: make them of one Store or its clones".to_owned(),
            ));
        }
        if self.rows.len() > MAX_STEPS {
            return Err(invalid(format!("it names {} items, at most {MAX_STEPS} can be", self.rows.len())));
        }
        if let Some(row) = self.rows.iter().find(|row| row.layout.regions == Regions::Strong) {
            let name = &row.name;
            return Err(invalid(format!(
                "{name} is in a table with multi-Region strong consistency, which has no transactions: change its items one by one"
            )));
        }
        for (index, row) in self.rows.iter().enumerate() {
            if let Some(twin) = self.rows[..index].iter().find(|twin| twin.address == row.address) {
                return Err(invalid(format!("{} and {} are the same item", twin.name, row.name)));
            }
        }
        let mut rows = self.rows;
        for row in 0..rows.len() {
            rows[row].is_read_first = rows[row].is_read_first || is_held_for(&rows, &rows[row]);
        }
        Ok(rows)
    }
}

/// Whether an item that is remembered holds something for this one: an earlier call was here with its key. A repeat then costs
/// a read, and no take that is given back.
fn is_held_for(rows: &[KnownRow], decider: &KnownRow) -> bool {
    if !decider.layout.decides {
        return false;
    }
    let key = hold::key_of(decider.layout, &decider.address.key);
    let its = rows.iter().filter(|row| row.held_for.as_ref().is_some_and(|of| of.table == decider.address.table));
    let mut holds = its.filter_map(|row| hold::holds_of(&row.layout.names, &row.known.row()?.attributes)).flatten();
    holds.any(|hold| hold.key == key)
}

impl Default for Reads {
    fn default() -> Self {
        Self::new()
    }
}

/// A handle to an item of [`Reads`], or to a lease (`Item<FencingToken>`). It belongs to these [`Reads`]: an
/// [`Attempt`](super::Attempt) on others answers it with [`FailureKind::InvalidTransaction`].
pub struct Item<T> {
    reads: u64,
    row: usize,
    value: PhantomData<fn() -> T>,
}

impl<T> Item<T> {
    /// Its row, if it is a handle of these [`Reads`].
    pub(super) fn row_of(self, reads: Option<u64>) -> Result<usize, Failure> {
        let foreign = || invalid("an item is a handle of other Reads: use one that these Reads returned".to_owned());
        (Some(self.reads) == reads).then_some(self.row).ok_or_else(foreign)
    }
}

impl<T> Clone for Item<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Item<T> {}

impl<T> fmt::Debug for Item<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Item({})", self.row)
    }
}

pub(super) fn invalid(reason: String) -> Failure {
    Failure::of(FailureKind::InvalidTransaction { reason })
}
