//! The steps that a decision adds to its [`Attempt`].

use super::reads::{Item, invalid};
use crate::driver::attempt::Attempt;
use crate::driver::rows::{Contest, EditStep, Known, KnownRow, Sending, Take, WriteStep, transact};
use crate::error::{Failure, FailureKind};
use crate::fencing_token::FencingToken;
use crate::table::{Edit, Record, Table};
use fencepost_core::condition::{self, Commit, ConditionalWrite, Demand, Operation};
use fencepost_core::edit::{RawEdit, Resolve, Room, room};
use fencepost_core::format::item::size_of_attributes;
use fencepost_core::format::row::{self, Row};
use fencepost_core::hold::{self, Hold};
use fencepost_core::plan::{Prepared, Write, first_version};
use fencepost_core::{Base, ItemVersion, Role, SentWrite, Version, Versioned, anchors_of, committed};
use std::mem;
use std::sync::atomic::Ordering::Relaxed;

/// The most bytes of all items of a transaction together (`DynamoDB` quota).
const MAX_BYTES: usize = 4 * 1024 * 1024;

impl Attempt {
    /// Demands the rows used by a decision to write but known only from memory: each is to be as it was seen, unless the
    /// decision says that the conditions of its edit suffice. Returns the rows to be read again instead, because these
    /// demands do not fit.
    pub(super) fn demand_remembered(&mut self) -> Vec<usize> {
        let remembered = self.to_be_read_again();
        let is_demanded = remembered.iter().all(|&row| self.demand_as_seen(row).is_ok());
        if is_demanded && self.bytes() <= MAX_BYTES { Vec::new() } else { remembered }
    }

    fn demand_as_seen(&mut self, row: usize) -> Result<(), Failure> {
        let Some(index) = self.steps.iter().position(|step| step.row == row) else { return self.check_row(row) };
        let WriteStep { role: Role::Adds, edit: Some(EditStep { clauses, is_blind: false, .. }), .. } =
            &self.steps[index]
        else {
            return Ok(());
        };
        let KnownRow { known: Known::Row(known), .. } = &self.rows[row] else { return Ok(()) };
        let Prepared { request, sent, .. } = self.prepared(row, Write::EditAt(known, clauses))?;
        let step = &mut self.steps[index];
        (step.write, step.role) = (request, Role::Writes(sent));
        Ok(())
    }

    /// What a decision would say if all that is held in the items came back. `None` if nothing is held.
    pub(super) fn with_all_back<A>(&mut self, decide: impl FnOnce(&mut Self) -> A) -> Option<A> {
        let mut before = Vec::new();
        for (place, row) in self.rows.iter_mut().enumerate() {
            let Known::Row(known) = &mut row.known else { continue };
            if let Some(most) = hold::with_all_back(row.layout, &known.attributes) {
                before.push((place, mem::replace(&mut known.attributes, most), mem::take(&mut row.refused)));
            }
        }
        if before.is_empty() {
            return None;
        }
        let (steps, answer) = (mem::take(&mut self.steps), decide(self));
        self.steps = steps;
        for (place, attributes, refused) in before {
            let row = &mut self.rows[place];
            row.refused = refused;
            if let Known::Row(known) = &mut row.known {
                known.attributes = attributes;
            }
        }
        Some(answer)
    }

    fn bytes(&self) -> usize {
        self.steps.iter().map(|step| step.bytes).sum()
    }

    pub(crate) fn has_steps(&self) -> bool {
        !self.steps.is_empty()
    }

    pub(super) fn take_steps(&mut self) -> Result<Sending, Failure> {
        let bytes = self.bytes();
        if bytes > MAX_BYTES {
            return Err(Failure::of(FailureKind::TooLarge { bytes, limit: MAX_BYTES }));
        }
        if let Some(sending) = self.as_takes() {
            return Ok(sending);
        }
        let mut steps = mem::take(&mut self.steps);
        let writes: Vec<_> = steps.iter().filter(|step| step.is_write()).map(|step| step.row).collect();
        let adds = steps.iter().filter(|step| matches!(step.role, Role::Adds));
        let adds: Vec<_> = adds.map(|step| (step.row, step.has_anchor())).collect();
        let Some(anchors) = anchors_of(&writes, &adds, &self.attempts().rows()) else {
            return Err(invalid(
                "an edit of an item that was not read cannot be the only write: name the item by Reads::item"
                    .to_owned(),
            ));
        };
        steps.iter_mut().filter(|step| anchors.contains(&step.row)).for_each(WriteStep::become_anchor);
        Ok(Sending {
            steps,
            transact: Some(transact),
            gives_way: false,
            contest: Contest::Race,
            rereads: false,
            takes: Vec::new(),
        })
    }

    /// The steps as a create with what is taken before it, if they are such: one step creates an item that decides, and each of the
    /// others takes from an item that holds.
    fn as_takes(&mut self) -> Option<Sending> {
        self.holds.as_ref()?;
        let mut others = (0..self.steps.len()).filter(|&index| self.steps[index].edit.is_none());
        let (Some(place), None) = (others.next(), others.next()) else { return None };
        let decider = &self.rows[self.steps[place].row];
        let base = match (self.steps[place].role, &decider.known) {
            (Role::Writes(SentWrite { on: Base::NoRow(_), .. }), _) => None,
            (Role::Writes(_), Known::Row(row)) if row.is_tombstone => Some(row.at),
            _ => return None,
        };
        if !decider.layout.decides || self.steps.len() < 2 {
            return None;
        }
        let (table, key) = (&decider.address.table, hold::key_of(decider.layout, &decider.address.key));
        let mut takes = Vec::with_capacity(self.steps.len() - 1);
        for step in self.steps.iter().filter(|step| step.edit.is_some()) {
            let row = &self.rows[step.row];
            let (Some(number), Some(EditStep { edit: Some(edit), .. })) = (row.layout.held, &step.edit) else {
                return None;
            };
            let is_decided_here = row.held_for.as_ref().is_some_and(|decider| decider.table == *table);
            let Known::Row(seen) = &row.known else { return None };
            // A row that another build wrote has no map of holds yet. A transaction makes it, and the next order looks.
            let has_map = hold::holds_of(&row.layout.names, &seen.attributes).is_some();
            if !has_map {
                self.row_cache.remove(&row.address.table, &row.address.key);
            }
            let quantity = edit
                .taken_from(number)
                .filter(|_| is_decided_here && has_map && !seen.is_tombstone && matches!(step.role, Role::Adds))?;
            let hold = Hold { attempt: self.hold, quantity, key: key.clone(), base };
            if !hold::has_room(seen.bytes, &hold) {
                return None;
            }
            takes.push(Take { row: step.row, hold, edit: edit.clone() });
        }
        let create = mem::take(&mut self.steps).swap_remove(place);
        Some(Sending {
            steps: vec![create],
            transact: None,
            gives_way: false,
            contest: Contest::None,
            rereads: false,
            takes,
        })
    }

    /// Whether the item is known. This is always so, except for an item from [`Reads::later`](super::Reads::later) that
    /// was not read along and has had no refused step.
    ///
    /// # Errors
    /// [`FailureKind::InvalidTransaction`]: the item is one of other [`Reads`](super::Reads).
    pub fn knows<T: Record>(&self, item: Item<T>) -> Result<bool, Failure> {
        Ok(!matches!(self.rows[self.row(item)?].known, Known::Nothing))
    }

    fn row<T>(&self, item: Item<T>) -> Result<usize, Failure> {
        item.row_of(self.reads)
    }

    /// The item as it was observed. `None` if the key has no row or a tombstone, or if the item is not
    /// [known](Attempt::knows) yet: then only a step for it, such as [`Attempt::put_if_absent`], proves that it is absent.
    ///
    /// # Errors
    /// [`FailureKind::CorruptItem`]: the stored item does not decode. Repair the row. [`FailureKind::InvalidTransaction`]: the
    /// item is one of other [`Reads`](super::Reads).
    pub fn get<T: Record>(&self, item: Item<T>) -> Result<Option<Versioned<T>>, Failure> {
        let known = &self.rows[self.row(item)?];
        known.is_looked_at.store(true, Relaxed);
        match &known.known {
            Known::Nothing | Known::Absent | Known::Lease { .. } | Known::Stored(_) | Known::Damaged(_) => Ok(None),
            Known::Row(row) => Table::<T>::decode(row),
        }
    }

    /// The sum of what is [held](crate::Holds) in the item as it was observed: 0 if there is no item, or if it is not
    /// [known](Attempt::knows) yet. A part of it may come back. A decision that says "too little" may rest on the number alone: if
    /// what is held would change that answer, the crate waits for it, and decides again.
    ///
    /// # Errors
    /// See [`Attempt::get`].
    pub fn held<T: Record>(&self, item: Item<T>) -> Result<i128, Failure> {
        let known = &self.rows[self.row(item)?];
        known.is_looked_at.store(true, Relaxed);
        known.known.row().map_or(Ok(0), Table::<T>::held_in)
    }

    /// Adds a step to create the item on a key without a row or with a tombstone. Returns the new version of the item.
    ///
    /// # Errors
    /// [`FailureKind::InvalidTransaction`]: the item exists, or has a step already; correct the decision. See [`Failure`].
    pub fn put_if_absent<T: Record>(&mut self, item: Item<T>, value: &T) -> Result<ItemVersion, Failure> {
        let row = self.row(item)?;
        let known = &self.rows[row];
        known.is_looked_at.store(true, Relaxed);
        let encode = || {
            let mut item = Table::<T>::encode(value, &known.address.key)?;
            if known.layout.decides {
                item.insert(known.layout.names.placed_by.to_owned(), row::bytes(self.hold.as_bytes()));
            }
            Ok::<_, Failure>(item)
        };
        let write = match &known.known {
            Known::Nothing | Known::Absent | Known::Lease { .. } | Known::Stored(_) | Known::Damaged(_) => {
                Write::Create(encode()?)
            }
            Known::Row(row) if row.is_tombstone => Write::Revive(row, encode()?),
            Known::Row(_) => return Err(invalid(format!("{} is there already", known.name))),
        };
        let prepared = self.prepared(row, write)?;
        self.write(row, prepared)
    }

    /// The version that [`put_if_absent`](Attempt::put_if_absent) will make: the
    /// [first](crate::Settings::first_version) on a free key, more on a tombstone.
    ///
    /// # Errors
    /// [`FailureKind::InvalidTransaction`]: the item is one of other [`Reads`](super::Reads).
    pub fn version_after_put<T: Record>(&self, item: Item<T>) -> Result<Version, Failure> {
        let known = &self.rows[self.row(item)?];
        known.is_looked_at.store(true, Relaxed);
        Ok(match &known.known {
            Known::Row(row) => row.at.version.next(),
            Known::Nothing | Known::Absent | Known::Lease { .. } | Known::Stored(_) | Known::Damaged(_) => {
                first_version(Table::<T>::LAYOUT)
            }
        })
    }

    /// Adds a step to replace the observed value with `value`, if the item is still at the observed version. Returns
    /// the new version of the item.
    ///
    /// # Errors
    /// [`FailureKind::InvalidTransaction`]: no item was observed, or it has a step already; correct the decision. For others,
    /// see [`Failure`].
    pub fn update_at<T: Record>(&mut self, item: Item<T>, value: &T) -> Result<ItemVersion, Failure> {
        let (index, row) = self.live(item)?;
        let current = Table::<T>::value_in(&row.attributes)?;
        let prepared = self.prepared(index, Write::Update(row, Table::<T>::diff(&current, value)?))?;
        self.write(index, prepared)
    }

    /// Adds a step to delete the item, if it is still at the observed version. Returns the version of the tombstone.
    ///
    /// # Errors
    /// [`FailureKind::InvalidTransaction`]: no item was observed, or it has a step already; correct the decision.
    pub fn delete_at<T: Record>(&mut self, item: Item<T>) -> Result<Version, Failure> {
        const { assert!(!T::SETTINGS.0.decides, "an item that decides about holds is never deleted: update it instead") }
        let (index, row) = self.live(item)?;
        let prepared = self.prepared(index, Write::Delete(row.at, Some(row)))?;
        Ok(self.write(index, prepared)?.version)
    }

    /// Adds a step without a write. It demands that the key is still as observed.
    ///
    /// # Errors
    /// [`FailureKind::InvalidTransaction`]: the item was not read, or has a step already; correct the decision.
    pub fn check<T: Record>(&mut self, item: Item<T>) -> Result<(), Failure> {
        self.check_row(self.row(item)?)
    }

    /// Adds a [`check`](Attempt::check) for every item that was read and has no step yet.
    ///
    /// # Errors
    /// See [`Attempt::check`].
    pub fn check_rest(&mut self) -> Result<(), Failure> {
        for row in 0..self.rows.len() {
            let has_step = self.steps.iter().any(|step| step.row == row);
            if !has_step
                && !matches!(
                    self.rows[row].known,
                    Known::Nothing | Known::Lease { .. } | Known::Stored(_) | Known::Damaged(_)
                )
            {
                self.check_row(row)?;
            }
        }
        Ok(())
    }

    /// Adds a step that edits the item at any version. So it conflicts with no other write. Bands are
    /// guessed from the item as known.
    ///
    /// An edit that the item has refused in this call is not sent again as long as the item stays as it is. The error
    /// [`FailureKind::EditRefused`] then ends the call, unless the decision refuses for a reason of its own:
    ///
    /// ```
    /// # use fencepost::{Attempt, Error, Failure, FailureKind, Item, Record};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize, Record)]
    /// # #[record(key = "productId")]
    /// # struct Product { stock: u64 }
    /// fn take(attempt: &mut Attempt, product: Item<Product>) -> Result<(), Error<&'static str>> {
    ///     match attempt.edit(product, &Product::FIELDS.stock.add(-1, 0..)) {
    ///         Err(Failure { kind: FailureKind::EditRefused { .. }, .. }) => Err(Error::Refused("it is sold out")),
    ///         added => Ok(added?),
    ///     }
    /// }
    /// ```
    ///
    /// If the decision has also looked at the item, and the item is only [remembered](super::Reads::remembered), the edit
    /// demands the version that was seen. [`Attempt::edit_blind`] never does.
    ///
    /// An edit does not demand the item that the decision has read. So do not answer with a number that follows from that item:
    /// another writer may have changed it since. Use [`Attempt::update_at`] for such an answer.
    ///
    /// Only one row of a transaction must remember its write id. If a step creates, updates or deletes an item, that
    /// step does. Otherwise the first edit of a known item does, and then demands the window of its table.
    ///
    /// # Errors
    /// [`FailureKind::InvalidTransaction`]: the item has a step already; correct the decision.
    /// [`FailureKind::InvalidRecord`]: the `Record` does not declare an attribute; correct it. [`FailureKind::Fenced`]: the row
    /// has seen a higher token than that of its table. [`FailureKind::EditRefused`]: the item is not
    /// there, or has refused such an edit; refuse, or decide otherwise.
    pub fn edit<T: Record>(&mut self, item: Item<T>, edit: &Edit<T>) -> Result<(), Failure> {
        self.add_edit(item, edit, false)
    }

    /// Adds a step like [`Attempt::edit`], but demands only the conditions of the edit (a *blind write*), even of a
    /// remembered item that the decision has looked at. Use it if the decision is right for every item that meets these
    /// conditions, as when it takes a fixed amount from a stock that must not fall below 0.
    ///
    /// # Errors
    /// See [`Attempt::edit`].
    pub fn edit_blind<T: Record>(&mut self, item: Item<T>, edit: &Edit<T>) -> Result<(), Failure> {
        self.add_edit(item, edit, true)
    }

    fn add_edit<T: Record>(&mut self, item: Item<T>, edit: &Edit<T>, is_blind: bool) -> Result<(), Failure> {
        let row = self.row(item)?;
        let added = self.edit_row(row, &edit.raw, is_blind);
        if added.is_err() {
            // The error may show the state of the row.
            self.rows[row].is_looked_at.store(true, Relaxed);
        }
        added
    }

    fn edit_row(&mut self, index: usize, edit: &RawEdit, is_blind: bool) -> Result<(), Failure> {
        let KnownRow { name, address, known, fence, layout, refused, .. } = &self.rows[index];
        let refusal =
            |reason: &str| Failure::of(FailureKind::EditRefused { name: name.clone(), reason: reason.to_owned() });
        if matches!(known, Known::Absent) || matches!(known, Known::Row(row) if row.is_tombstone) {
            return Err(refusal("it is not there"));
        }
        let row = if let Known::Row(row) = known { Some(row) } else { None };
        let clauses = edit.resolve(layout, row.map(|row| &row.attributes))?;
        let anchored = row.map(|row| self.prepared(index, Write::Edit(row.at, Some(row), &clauses))).transpose()?;
        if refused.contains(&clauses.conditions()) {
            let clause = row.and_then(|row| edit.refusing_clause(&row.attributes));
            return Err(refusal(clause.as_deref().unwrap_or("it is not as the edit demands")));
        }
        if self.refusals >= self.most_refusals {
            return Err(refusal("too many other edits of this change were refused"));
        }
        if layout.demands_values() || (row.is_some() && room(layout, row, &clauses)? == Room::AtItsVersion) {
            let Prepared { request, sent, .. } =
                anchored.ok_or_else(|| invalid(format!("{name} must be read and be there before an edit")))?;
            let edit = EditStep { clauses, is_blind, anchor: None, edit: None };
            return self.add_step(index, request, Role::Writes(sent), Some(edit));
        }
        let anchor = anchored.map(|Prepared { request, sent, .. }| (request, sent));
        let bare = condition::edit_anywhere(address.key.clone(), layout, &clauses)
            .and_then(|write| condition::fenced(write, &layout.names, *fence));
        let bare = bare.ok_or_else(|| invalid("an edit is too long".to_owned()))?;
        let edit = layout.held.map(|_| edit.clone());
        self.add_step(index, bare, Role::Adds, Some(EditStep { clauses, is_blind, anchor, edit }))
    }

    /// Adds a step without a write. It demands that the lease is still held under its token. So a holder replaced
    /// without knowing it changes nothing.
    ///
    /// # Errors
    /// [`FailureKind::Fenced`]: an earlier attempt showed that the lease is lost. If other items can decide the answer,
    /// look at them first. [`FailureKind::InvalidTransaction`]: the lease has a step already; correct the decision.
    pub fn require(&mut self, lease: Item<FencingToken>) -> Result<(), Failure> {
        let row = self.row(lease)?;
        let KnownRow { address, known, fence, .. } = &self.rows[row];
        match (known, fence) {
            (Known::Lease { is_lost: false }, Some(token)) => {
                let check = condition::check_held(address.key.clone(), *token);
                let requires = Role::Requires(*token);
                self.add_step(row, check, requires, None)
            }
            _ => Err(Failure::of(FailureKind::Fenced)),
        }
    }

    fn live<T>(&self, item: Item<T>) -> Result<(usize, &Row), Failure> {
        let index = self.row(item)?;
        let known = &self.rows[index];
        known.is_looked_at.store(true, Relaxed);
        match &known.known {
            Known::Row(row) if !row.is_tombstone => Ok((index, row)),
            _ => Err(invalid(format!("{} is not there", known.name))),
        }
    }

    fn prepared(&self, row: usize, write: Write<'_>) -> Result<Prepared, Failure> {
        let known = &self.rows[row];
        let burn = self.attempts().ids_to_burn(row, write.row().map(|at| at.incarnation));
        let commit = Commit { id: self.attempts().id, prune: &[], burn: &burn, fence: known.fence };
        Ok(write.prepare(known.layout, &known.address.key, commit, self.now, known.retention)?)
    }

    fn write(&mut self, row: usize, Prepared { request, sent, .. }: Prepared) -> Result<ItemVersion, Failure> {
        self.add_step(row, request, Role::Writes(sent), None)?;
        Ok(committed(&sent))
    }

    fn check_row(&mut self, row: usize) -> Result<(), Failure> {
        let known = &self.rows[row];
        let key = known.address.key.clone();
        let (request, base) = match &known.known {
            Known::Nothing | Known::Lease { .. } | Known::Stored(_) | Known::Damaged(_) => {
                return Err(invalid(format!("{} was not read", known.name)));
            }
            Known::Absent => (condition::check_absent(known.layout, key), Base::NoRow(first_version(known.layout))),
            Known::Row(row) => {
                let demand = Demand::of(known.layout, row);
                let check = condition::check_at(key, &demand);
                (check.ok_or_else(|| invalid("a check is too long".to_owned()))?, demand.base())
            }
        };
        self.add_step(row, request, Role::Checks(base), None)
    }

    fn add_step(
        &mut self,
        row: usize,
        write: ConditionalWrite,
        role: Role,
        edit: Option<EditStep>,
    ) -> Result<(), Failure> {
        let known = &self.rows[row];
        if self.steps.iter().any(|step| step.row == row) {
            return Err(invalid(format!("{} has two steps; a transaction takes one of each item", known.name)));
        }
        let bytes = size(&write, &known.known);
        self.steps.push(WriteStep { bytes, edit, ..WriteStep::new(row, role, write) });
        Ok(())
    }
}

/// The size of the item after the step: the attributes in the step together with the untouched ones of the row.
fn size(write: &ConditionalWrite, known: &Known) -> usize {
    let kept = |is_kept: &dyn Fn(&String) -> bool| {
        let Known::Row(row) = known else { return 0 };
        size_of_attributes(row.attributes.iter().filter(|(name, _)| is_kept(name)))
    };
    match &write.action {
        Operation::Put { item } => size_of_attributes(item),
        Operation::Delete { .. } | Operation::Check { .. } => kept(&|_| true),
        Operation::Update { .. } => {
            let is_named = |name: &String| write.names.values().any(|named| named == name);
            kept(&|name| !is_named(name)) + size_of_attributes(&write.values)
        }
    }
}
