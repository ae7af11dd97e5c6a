//! [`Row`] and [`Write`]: the few lines of `DynamoDB` that the models need. "Apply this write if its condition holds."
//!
//! The conditions of production are expression text. `tests/conformance.rs` plays random writes on this and on an
//! engine that reads the text, and compares outcomes and rows.

use fencepost::testing::{Base, Memory, SeenRow, SentWrite, Trace, WriteId};
use fencepost::{Incarnation, Version};

/// A write id, and so an incarnation too.
pub type Id = u8;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Row {
    /// The state, as writes demand it.
    pub at: At,
    /// Each remembered id with the version before its commit, negative if it was burned. In order.
    pub memory: Vec<(Id, i8)>,
    pub stock: i8,
    /// On a tombstone: when TTL may remove it.
    pub purge_at: Option<u32>,
    pub fence: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct At {
    pub version: u8,
    pub incarnation: Id,
}

/// A conditional write to one row.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Write {
    /// Creates the item on a key without a row.
    Create {
        id: Id,
        stock: i8,
    },
    /// The burn of a create: a tombstone on a key without a row.
    BurnCreate {
        id: Id,
        purge_at: u32,
    },
    /// Changes the item, or revives the tombstone, that is exactly there. Burns earlier attempts of the same change.
    Update {
        at: At,
        id: Id,
        prune: Vec<Id>,
        burn: Vec<Id>,
        stock: i8,
    },
    /// Deletes the item that is exactly there.
    Bury {
        at: At,
        id: Id,
        prune: Vec<Id>,
        purge_at: u32,
    },
    /// Adds in a window, and leaves the id. Burns earlier attempts of the same change.
    Add {
        at: At,
        window: u8,
        id: Id,
        prune: Vec<Id>,
        burn: Vec<Id>,
        by: i8,
        low: i8,
        high: i8,
    },
    /// Adds at any version, and leaves nothing.
    AddAnywhere {
        by: i8,
        low: i8,
        high: i8,
    },
    /// Burns an add: leaves its id as burned.
    Burn {
        at: At,
        window: u8,
        id: Id,
        burn: Vec<Id>,
    },
    Check {
        at: At,
    },
}

/// A write with a failed condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused;

impl Write {
    /// Applies the write under a fencing token to a key. Returns its next row. A model leaves out one of the rules of
    /// [`crate::scenes`] to show its purpose.
    ///
    /// # Errors
    /// [`Refused`] if the condition does not hold.
    pub fn apply(
        &self,
        row: Option<&Row>,
        fence: Option<u64>,
        without: Option<&'static str>,
    ) -> Result<Option<Row>, Refused> {
        let has = |rule: &str| without != Some(rule);
        let Some(row) = row else {
            let first = |id: Id, stock, purge_at, fence| Row {
                at: At { version: 1, incarnation: id },
                memory: vec![(id, 0)],
                stock,
                purge_at,
                fence,
            };
            return match *self {
                Write::Create { id, stock } => Ok(Some(first(id, stock, None, fence))),
                Write::BurnCreate { id, purge_at } => Ok(Some(first(id, 0, Some(purge_at), None))),
                _ => Err(Refused),
            };
        };
        let is_live = row.purge_at.is_none();
        let is_fenced = has("fence") && fence < row.fence && fence.is_some();
        let is_row = |at: &At| !has("incarnation") || row.at.incarnation == at.incarnation;
        let is_at = |at: &At| is_row(at) && row.at.version == at.version && !is_fenced;
        let is_in = |at: &At, window: u8, id: Id| {
            let begun = !has("window-begins") || row.at.version >= at.version;
            let open = !has("window-ends") || row.at.version < at.version + window;
            is_row(at) && begun && open && !(has("id-is-absent") && row.remembers(id))
        };
        let is_first = |burn: &[Id]| !has("earlier-is-absent") || !burn.iter().any(|id| row.remembers(*id));
        let allows = |low: i8, high: i8| is_live && (low..=high).contains(&row.stock);
        let (before, leaves_id) = (row.signed_version(), has("update-leaves-id"));
        let burns = has("burns-earlier") && has("burns-earlier-attempt");
        let mut next =
            Row { at: At { version: row.at.version + 1, ..row.at }, fence: fence.or(row.fence), ..row.clone() };
        match self {
            Write::Update { at, id, prune, burn, stock } if is_at(at) && is_first(burn) => {
                next.remember(*id, before, prune, leaves_id);
                next.burn(burn, before, burns);
                next.stock = *stock;
                next.purge_at = None;
            }
            Write::Bury { at, id, prune, purge_at } if is_at(at) && is_live => {
                if !has("tombstone") {
                    return Ok(None);
                }
                next.remember(*id, before, prune, leaves_id);
                if !has("tombstone-remembers") {
                    next.memory.clear();
                }
                next.stock = 0;
                next.purge_at = Some(*purge_at);
            }
            Write::Add { at, window, id, prune, burn, by, low, high } => {
                if is_fenced || !is_in(at, *window, *id) || !allows(*low, *high) || !is_first(burn) {
                    return Err(Refused);
                }
                next.remember(*id, before, prune, leaves_id);
                next.burn(burn, before, burns);
                next.stock += by;
            }
            Write::AddAnywhere { by, low, high } if allows(*low, *high) && !is_fenced => next.stock += by,
            Write::Burn { at, window, id, burn } if is_in(at, *window, *id) && is_first(burn) => {
                next.remember(*id, -before, &[], has("burn-leaves-id"));
                next.burn(burn, before, burns);
                next.fence = row.fence;
            }
            Write::Check { at } if is_row(at) && row.at.version == at.version => return Ok(Some(row.clone())),
            _ => return Err(Refused),
        }
        Ok(Some(next))
    }

    /// The judge's view of the write, if it leaves an id.
    pub fn sent(&self, remembered: u64, rows_may_vanish: bool) -> Option<SentWrite> {
        let base = |at: At, window: u8| Base::Row {
            version: version(at.version),
            window: u64::from(window),
            incarnation: incarnation(at.incarnation),
        };
        let (own, on) = match *self {
            Write::Create { id, .. } | Write::BurnCreate { id, .. } => (id, Base::NoRow(version(1))),
            Write::Update { at, id, .. } | Write::Bury { at, id, .. } => (id, base(at, 1)),
            Write::Add { at, window, id, .. } | Write::Burn { at, window, id, .. } => (id, base(at, window)),
            Write::AddAnywhere { .. } | Write::Check { .. } => return None,
        };
        Some(SentWrite { id: id(own), on, remembered, fence: None, rows_may_vanish, versions_may_repeat: false })
    }

    /// The row that the write demands, if it demands one and leaves an id there.
    pub fn row(&self) -> Option<Id> {
        match self {
            Write::Update { at, .. } | Write::Bury { at, .. } | Write::Add { at, .. } | Write::Burn { at, .. } => {
                Some(at.incarnation)
            }
            Write::Create { .. } | Write::BurnCreate { .. } | Write::AddAnywhere { .. } | Write::Check { .. } => None,
        }
    }

    /// The id that the write leaves.
    pub fn id(&self) -> Option<Id> {
        match *self {
            Write::Create { id, .. }
            | Write::BurnCreate { id, .. }
            | Write::Update { id, .. }
            | Write::Bury { id, .. }
            | Write::Add { id, .. }
            | Write::Burn { id, .. } => Some(id),
            Write::AddAnywhere { .. } | Write::Check { .. } => None,
        }
    }

    /// The burn of the write and of these earlier attempts, from this state of its row or from the one that it demands. `None`
    /// if it has none here.
    pub fn burn(&self, known: Option<At>, burn: Vec<Id>) -> Option<Write> {
        let (at, window, id) = match *self {
            Write::Update { at, id, .. } | Write::Bury { at, id, .. } => (at, 1, id),
            Write::Add { at, window, id, .. } => (at, window, id),
            _ => return None,
        };
        Some(Write::Burn { at: known.unwrap_or(at), window, id, burn })
    }

    /// The same write with the window of an attempt of which more is known since.
    #[must_use]
    pub fn narrowed(mut self, to: &SentWrite) -> Self {
        if let (Write::Add { at, window, .. }, Base::Row { version, window: versions, .. }) = (&mut self, to.on) {
            (at.version, *window) = (small(version.get()), small(versions));
        }
        self
    }

    pub fn words(&self) -> String {
        match self {
            Write::Create { .. } => "create".to_owned(),
            Write::BurnCreate { .. } => "burn (a tombstone on the free key)".to_owned(),
            Write::Update { at, .. } => format!("update on version {}", at.version),
            Write::Bury { at, .. } => format!("delete on version {}", at.version),
            Write::Add { at, window, id, .. } => {
                format!("add (id {id}) on {}", versions(*at, *window))
            }
            Write::AddAnywhere { .. } => "add on any version".to_owned(),
            Write::Burn { at, window, id, .. } => {
                format!("burn of id {id} on {}", versions(*at, *window))
            }
            Write::Check { at } => format!("check of version {}", at.version),
        }
    }
}

impl Row {
    fn remembers(&self, id: Id) -> bool {
        self.memory.iter().any(|(known, _)| *known == id)
    }

    fn signed_version(&self) -> i8 {
        i8::try_from(self.at.version).expect("a small version")
    }

    fn remember(&mut self, id: Id, trace: i8, prune: &[Id], leaves_id: bool) {
        self.memory.retain(|(known, _)| !prune.contains(known) && *known != id);
        if leaves_id {
            self.memory.push((id, trace));
            self.memory.sort_unstable();
        }
    }

    fn burn(&mut self, earlier: &[Id], before: i8, burns: bool) {
        for id in earlier.iter().filter(|_| burns) {
            self.remember(*id, -before, &[], true);
        }
    }

    /// The memory as production reads it.
    pub fn read_memory(&self) -> Memory {
        let trace = |number: i8| {
            let version = version(number.unsigned_abs());
            if number < 0 { Trace::Burned(version) } else { Trace::Applied(version) }
        };
        self.memory.iter().map(|(known, number)| (id(*known), trace(*number))).collect()
    }

    pub fn seen(&self) -> SeenRow {
        SeenRow {
            version: version(self.at.version),
            incarnation: incarnation(self.at.incarnation),
            memory: Some(self.read_memory()),
            fence: self.fence,
            ends_at: None,
        }
    }

    /// The ids that a write by `by` removes if its writer saw this row.
    pub fn prunable(&self, remembered: u64, by: Id) -> Vec<Id> {
        let old = self.read_memory().prunable(version(self.at.version), remembered, id(by), 0);
        old.iter().map(|id| id.as_bytes()[7]).collect()
    }

    pub fn words(&self) -> String {
        let At { version, incarnation } = self.at;
        let what = match self.purge_at {
            Some(_) => "a tombstone".to_owned(),
            None => format!("stock {}", self.stock),
        };
        let memory = self.memory.iter().map(|(id, trace)| match trace {
            0.. => format!("{id}@{trace}"),
            _ => format!("{id} burned@{}", -trace),
        });
        let memory: Vec<_> = memory.collect();
        format!("row {incarnation}, version {version}, {what}, remembers [{}]", memory.join(", "))
    }
}

fn versions(at: At, window: u8) -> String {
    match window {
        1 => format!("version {}", at.version),
        _ => format!("version {} to {}", at.version, at.version + window - 1),
    }
}

pub fn words(row: Option<&Row>) -> String {
    row.map_or_else(|| "no row".to_owned(), Row::words)
}

pub fn id(id: Id) -> WriteId {
    WriteId::from_random(u64::from(id))
}

pub fn incarnation(of: Id) -> Incarnation {
    id(of).as_incarnation()
}

/// A number of production as the models have it.
pub fn small(number: u64) -> u8 {
    u8::try_from(number).expect("a small number")
}

pub fn version(number: u8) -> Version {
    Version::new(u64::from(number)).expect("a small version")
}
