//! The table: rows, and what a conditional write does to one. `tests/conformance.rs` compares this with an engine that
//! reads the expressions of production.

use fencepost_core::{Base, Incarnation, ItemVersion, Line, Memory, SeenRow, Trace, Version, WriteId, is_fenced};
use std::collections::BTreeMap;

/// A rule of `scenes.rs` that is taken away.
pub type Without = Option<&'static str>;

/// What stands at a key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Stored {
    Item(Row),
    Lease(LeaseRow),
    Instance(Instance),
}

/// An item or its tombstone.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Row {
    pub at: ItemVersion,
    /// `None` for a row of another program.
    pub memory: Option<BTreeMap<WriteId, Trace>>,
    /// The value.
    pub stock: i8,
    /// On a tombstone: when TTL may remove it, in epoch seconds.
    pub purge_at: Option<u64>,
    pub fence: Option<u64>,
    /// The tickets given out, and the last one served.
    pub line: Line,
    /// On a product: what attempts have taken for their orders.
    pub holds: BTreeMap<WriteId, Hold>,
    /// On an order: the attempt that placed it.
    pub placed_by: Option<WriteId>,
}

/// A part of the stock of a product, taken for an order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hold {
    pub attempt: WriteId,
    /// The place of the product.
    pub product: usize,
    pub quantity: i8,
    /// The place of the order.
    pub order: usize,
    /// The tombstone on which the attempt creates the order.
    pub base: Option<ItemVersion>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LeaseRow {
    pub holder: Option<usize>,
    pub token: u64,
    pub renewals: u64,
    /// The end, in milliseconds.
    pub expires_at: u64,
    pub acquire_id: u64,
    /// When TTL may remove the row, in epoch seconds.
    pub purge_at: u64,
}

/// The order of an instance: its number and its name. No name stands for all instances with the number.
pub type OrderKey = (u8, Option<char>);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Instance {
    pub order_key: OrderKey,
    /// The value. `None` on a tombstone.
    pub live: Option<u8>,
    /// On a tombstone: when TTL may remove it, in epoch seconds.
    pub purge_at: Option<u64>,
}

/// A conditional write to one row.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Write {
    /// The place of the row.
    pub row: usize,
    /// The state that it demands.
    pub on: Option<Base>,
    /// The write id that it leaves.
    pub id: Option<WriteId>,
    pub does: Does,
    pub fence: Option<u64>,
    /// The old ids that it removes.
    pub forgets: Vec<WriteId>,
    /// The earlier attempts of the same change, which it leaves as burned.
    pub burns: Vec<WriteId>,
    /// The value that it demands, in a table in which other programs write as they like.
    pub demands: Option<i8>,
}

/// The effect of a write.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Does {
    /// Creates, changes or revives the item with this value.
    Set(i8),
    /// Adds within bounds.
    Add {
        by: i8,
        low: i8,
        high: i8,
    },
    /// Deletes the item, and leaves a tombstone. On a free key, this is the burn of a create.
    Bury {
        purge_at: u64,
    },
    /// Deletes the item with its row.
    Remove,
    /// Leaves the id as burned.
    Burn,
    /// Takes a part of the stock, and leaves a hold. Removes those of these attempts, which have placed their orders.
    Take(Hold, Vec<WriteId>),
    /// Adds back what this hold has taken, and removes it.
    GiveBack(Hold),
    /// Creates an order as this attempt.
    Place(WriteId),
    /// Changes nothing.
    Check,
    Acquire {
        process: usize,
        id: u64,
        expires_at: u64,
        cutoff: u64,
        floor: u64,
        purge_at: u64,
    },
    Renew {
        token: u64,
        at: u64,
        expires_at: u64,
        purge_at: u64,
    },
    Release {
        token: u64,
        purge_at: u64,
    },
    /// Demands that the lease is held under this token.
    Require {
        token: u64,
    },
    Register(OrderKey, u8),
    /// Deletes the instance and all older ones.
    Unregister(OrderKey, u64),
}

impl Write {
    /// What stands at the key afterwards. `None` if the write is refused.
    #[must_use]
    pub fn meets(&self, stored: Option<&Stored>, without: Without) -> Option<Option<Stored>> {
        match (&self.does, stored) {
            (Does::Acquire { .. } | Does::Renew { .. } | Does::Release { .. } | Does::Require { .. }, lease) => {
                let lease = if let Some(Stored::Lease(lease)) = lease { Some(lease) } else { None };
                Some(self.meets_lease(lease, without)?.map(Stored::Lease))
            }
            (Does::Register(..) | Does::Unregister(..), instance) => {
                let instance = if let Some(Stored::Instance(instance)) = instance { Some(instance) } else { None };
                Some(self.meets_instance(instance, without)?.map(Stored::Instance))
            }
            (_, None) => Some(self.meets_free_key()?.map(Stored::Item)),
            (_, Some(Stored::Item(row))) => Some(self.meets_row(row, without)?.map(Stored::Item)),
            (_, Some(_)) => None,
        }
    }

    fn meets_free_key(&self) -> Option<Option<Row>> {
        let Some(Base::NoRow(version)) = self.on else { return None };
        let (stock, purge_at, fence, placed_by) = match self.does {
            Does::Set(stock) => (stock, None, self.fence, None),
            Does::Place(attempt) => (1, None, None, Some(attempt)),
            Does::Bury { purge_at } => (0, Some(purge_at), None, None),
            _ => return (self.does == Does::Check).then_some(None),
        };
        let id = self.id?;
        let memory = Some(BTreeMap::from([(id, Trace::Applied(Version::ABSENT))]));
        let at = ItemVersion { version, incarnation: id.as_incarnation() };
        Some(Some(Row { at, memory, stock, purge_at, fence, line: Line::default(), holds: BTreeMap::new(), placed_by }))
    }

    fn meets_row(&self, row: &Row, without: Without) -> Option<Option<Row>> {
        let has = |rule| without != Some(rule);
        let is_live = row.purge_at.is_none();
        let is_window = matches!(self.does, Does::Add { .. } | Does::Burn | Does::Take(..) | Does::GiveBack(_));
        let is_at = match self.on {
            None => true,
            Some(Base::NoRow(_)) => false,
            Some(Base::Row { .. }) if matches!(self.does, Does::Place(_)) && !has("demands-base") => true,
            Some(Base::Row { version, window, incarnation }) => {
                let (first, at) = (version.get(), row.at.version.get());
                (row.at.incarnation == incarnation || !has("incarnation"))
                    && (at >= first || (is_window && !has("window-begins")))
                    && (at < first + window || (is_window && !has("window-ends")))
            }
        };
        let remembers = |id: &WriteId| row.memory.as_ref().is_some_and(|memory| memory.contains_key(id));
        let knows_id = is_window && has("id-is-absent") && self.id.as_ref().is_some_and(remembers);
        let knows_earlier = has("earlier-is-absent") && self.burns.iter().any(remembers);
        let is_refused = has("fence") && is_fenced(row.fence, self.fence) && self.does != Does::Check;
        let is_other = self.demands.is_some_and(|stock| stock != row.stock);
        if !is_at || knows_id || knows_earlier || is_refused || is_other {
            return None;
        }
        let before = row.at.version;
        let mut next = Row { at: ItemVersion { version: before.next(), ..row.at }, ..row.clone() };
        next.fence = self.fence.or(row.fence);
        let mut leaves = self.id.filter(|_| has("update-leaves-id")).map(|id| (id, Trace::Applied(before)));
        match self.does {
            Does::Set(stock) => {
                (next.stock, next.purge_at) = (stock, None);
                next.placed_by = row.placed_by.filter(|_| has("cancellation-keeps-attempt"));
            }
            Does::Add { by, low, high } if is_live && (low..=high).contains(&row.stock) => next.stock += by,
            Does::Bury { .. } | Does::Remove if !is_live => return None,
            Does::Bury { .. } if !row.holds.is_empty() && has("delete-without-holds") => return None,
            Does::Remove => return Some(None),
            Does::Bury { .. } if !has("tombstone") => return Some(None),
            Does::Bury { purge_at } => (next.stock, next.purge_at) = (0, Some(purge_at)),
            Does::Burn => {
                leaves = self.id.filter(|_| has("burn-leaves-id")).map(|id| (id, Trace::Burned(before)));
                next.fence = row.fence;
            }
            Does::Check => return Some(Some(row.clone())),
            Does::Take(hold, ref placed) if is_live && row.stock >= hold.quantity => {
                next.stock -= hold.quantity;
                next.holds.retain(|attempt, _| !placed.contains(attempt));
                next.holds.insert(hold.attempt, hold);
            }
            Does::GiveBack(hold) if is_live && (row.holds.contains_key(&hold.attempt) || !has("demands-hold")) => {
                next.stock += hold.quantity;
                next.holds.remove(&hold.attempt);
                next.at = if has("settlement-raises") { next.at } else { row.at };
            }
            Does::Place(attempt) if !is_live => {
                (next.stock, next.purge_at, next.placed_by) = (1, None, Some(attempt));
            }
            _ => return None,
        }
        if let (Some(id), true) = (self.id, row.at.incarnation.is_foreign()) {
            // The change adopts the row.
            (next.at.incarnation, next.memory) = (id.as_incarnation(), Some(BTreeMap::new()));
        }
        if let Some(memory) = &mut next.memory {
            let is_kept = |id: &WriteId| !self.forgets.contains(id) && Some(*id) != self.id;
            memory.retain(|id, _| is_kept(id));
            memory.extend(leaves);
            if has("burns-earlier") {
                memory.extend(self.burns.iter().map(|id| (*id, Trace::Burned(before))));
            }
            if matches!(self.does, Does::Bury { .. }) && !has("tombstone-remembers") {
                memory.clear();
            }
        }
        Some(Some(next))
    }

    fn meets_lease(&self, lease: Option<&LeaseRow>, without: Without) -> Option<Option<LeaseRow>> {
        let has = |rule| without != Some(rule);
        let under = |token: u64| lease.filter(|lease| lease.token == token);
        match self.does {
            Does::Acquire { process, id, expires_at, cutoff, floor, purge_at } => {
                let is_free = lease.is_none_or(|lease| {
                    let is_new = lease.acquire_id != id || !has("acquire-once");
                    (lease.holder.is_none() && is_new) || lease.expires_at < cutoff
                });
                let (token, holder) = (lease.map_or(floor, |lease| lease.token) + 1, Some(process));
                let acquired = LeaseRow { holder, token, renewals: 0, expires_at, acquire_id: id, purge_at };
                is_free.then_some(Some(acquired))
            }
            Does::Renew { token, at, expires_at, purge_at } => {
                let lease = under(token)?;
                let is_held = lease.holder.is_some() || !has("renewal-held");
                let is_at = lease.renewals == at || !has("renewal-counts");
                let renewed = LeaseRow { renewals: lease.renewals + 1, expires_at, purge_at, ..lease.clone() };
                (is_held && is_at).then_some(Some(renewed))
            }
            Does::Release { token, purge_at } => {
                let released = LeaseRow { holder: None, purge_at, ..under(token)?.clone() };
                Some(has("release-keeps-row").then_some(released))
            }
            Does::Require { token } => {
                let is_held = under(token).is_some_and(|lease| lease.holder.is_some());
                (is_held || !has("require")).then(|| lease.cloned())
            }
            _ => None,
        }
    }

    fn meets_instance(&self, stored: Option<&Instance>, without: Without) -> Option<Option<Instance>> {
        let has = |rule| without != Some(rule);
        let (mine, live, purge_at) = match self.does {
            Does::Register(mine, value) => (mine, Some(value), None),
            Does::Unregister(mine, purge_at) => (mine, None, Some(purge_at)),
            _ => return None,
        };
        let is_free = !has("condition")
            || stored.is_none_or(|stored| {
                let (order, is_lower) = (order(stored.order_key).cmp(&order(mine)), stored.order_key.0 < mine.0);
                let is_tie = stored.order_key.0 == mine.0;
                match live {
                    Some(_) if !has("ties") => is_lower,
                    Some(_) if !has("nameless-refuses") && stored.order_key.1.is_none() && is_tie => true,
                    Some(_) => order.is_lt(),
                    None if !has("delete-itself") => order.is_lt(),
                    None if !has("delete-older") => order.is_eq(),
                    None if !has("nameless") && mine.1.is_none() => is_lower,
                    None => order.is_le(),
                }
            });
        let leaves_row = live.is_some() || has("newest-tombstone");
        is_free.then(|| leaves_row.then_some(Instance { order_key: mine, live, purge_at }))
    }
}

/// Instances are ordered by number, then by name. No name stands after each name.
#[must_use]
pub fn order((number, name): OrderKey) -> (u8, bool, Option<char>) {
    (number, name.is_none(), name)
}

impl Row {
    #[must_use]
    pub fn memory(&self) -> Option<Memory> {
        Some(self.memory.as_ref()?.iter().map(|(id, trace)| (*id, *trace)).collect())
    }

    /// The row as a refusal shows it to the machine.
    #[must_use]
    pub fn seen(&self) -> SeenRow {
        let ItemVersion { version, incarnation } = self.at;
        SeenRow { version, incarnation, memory: self.memory(), fence: self.fence, ends_at: self.purge_at }
    }
}

impl Stored {
    #[must_use]
    pub fn item(&self) -> Option<&Row> {
        if let Stored::Item(row) = self { Some(row) } else { None }
    }

    #[must_use]
    pub fn lease(&self) -> Option<&LeaseRow> {
        if let Stored::Lease(lease) = self { Some(lease) } else { None }
    }

    #[must_use]
    pub fn instance(&self) -> Option<Instance> {
        if let Stored::Instance(instance) = self { Some(*instance) } else { None }
    }

    /// When TTL may remove it.
    #[must_use]
    pub fn purge_at(&self) -> Option<u64> {
        match self {
            Stored::Item(row) => row.purge_at,
            Stored::Lease(lease) => Some(lease.purge_at),
            Stored::Instance(instance) => instance.purge_at,
        }
    }
}

/// A row of the crate at version 1, or of another program.
#[must_use]
pub fn row(stock: i8, id: u64, is_foreign: bool) -> Stored {
    let memory = BTreeMap::from([(WriteId::from_random(id), Trace::Applied(Version::ABSENT))]);
    let incarnation = if is_foreign { content(version(1), stock) } else { WriteId::from_random(id).as_incarnation() };
    let at = ItemVersion { version: version(1), incarnation };
    let memory = (!is_foreign).then_some(memory);
    let (line, holds) = Default::default();
    Stored::Item(Row { at, memory, stock, purge_at: None, fence: None, line, holds, placed_by: None })
}

/// The version with this number.
///
/// # Panics
/// For a large number.
#[must_use]
pub fn version(number: u64) -> Version {
    Version::new(number).expect("a small version")
}

/// The identity of a row of another program: a digest of its state.
#[must_use]
pub fn content(version: Version, stock: i8) -> Incarnation {
    let mut digest = [0; 16];
    digest[..8].copy_from_slice(&version.get().to_be_bytes());
    digest[8] = stock.to_be_bytes()[0];
    Incarnation::of_content(digest)
}
