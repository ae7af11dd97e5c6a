//! [`Edit`]: a change that needs no version, of a record whose type it knows. [`Condition`]: what it asks of the item.

use fencepost_core::ItemVersion;
use fencepost_core::condition::Condition as RawCondition;
use fencepost_core::edit::{MAX_CONDITIONS, MAX_LEVELS, RawEdit};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Not;

/// A change of a record that depends on the old item only through conditions: it adds to numbers within bounds, sets values,
/// removes them, appends to lists.
///
/// Edits are made from the [`Field`](crate::field::Field)s of the record, and joined by [`Edit::and`]. All of an edit is
/// applied, or nothing. It changes each value once: two clauses that write the same value, or a map and its member, are
/// refused as [`FailureKind::InvalidRecord`](crate::FailureKind::InvalidRecord).
///
/// An edit demands no exact version. So edits of one item do not conflict with each other.
///
/// ```
/// use fencepost::{Edit, Record};
/// use serde::{Deserialize, Serialize};
/// use std::collections::BTreeMap;
///
/// #[derive(Serialize, Deserialize, Record)]
/// #[record(key = "productId")]
/// struct Product {
///     stock: u64,
///     status: String,
///     settings: BTreeMap<String, u32>,
///     #[serde(default)]
///     updated_at: u64,
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let product = Product::FIELDS;
/// // Takes 3 from the stock, but never below 0. The status follows from the new stock.
/// let bands = [(0..=0, "out of stock"), (1..=5, "low"), (6..=1_000_000, "in stock")];
/// let bands = bands.map(|(range, status)| (range, status.to_owned()));
/// let take = product.stock.add(-3, 0..=1_000_000).bands(&product.status, &product.stock, bands);
/// // Sets a member of a map, at most once in five minutes.
/// let now = 1_800_000_000;
/// let dim = product.settings.member("brightness")?.set(40);
/// let dim = dim.only_if(product.updated_at.is_at_most(now - 300)); // where it is missing, its default is
/// let dim = dim.stamp(&product.updated_at, now);
/// # drop((take, dim));
/// # Ok(())
/// # }
/// ```
///
/// An edit fits only the table of its record:
///
/// ```compile_fail,E0308
/// # use fencepost::{Edit, Record, Table};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize, Record)]
/// # #[record(key = "id")]
/// # struct Account { balance: u64 }
/// # #[derive(Serialize, Deserialize, Record)]
/// # #[record(key = "id")]
/// # struct Order { total: u64 }
/// async fn wrong(accounts: &Table<Account>) {
///     let _ = accounts.edit("a-1", &Order::FIELDS.total.set(7)).await;
/// }
/// ```
#[must_use]
pub struct Edit<T> {
    pub(crate) raw: RawEdit,
    of: PhantomData<fn() -> T>,
}

impl<T> Edit<T> {
    /// An edit with what `change` adds to none, or one that is refused for its reason.
    pub(super) fn made(change: impl FnOnce(RawEdit) -> Result<RawEdit, String>) -> Self {
        Edit::default().map(change)
    }

    pub(super) fn map(self, change: impl FnOnce(RawEdit) -> Result<RawEdit, String>) -> Self {
        Edit { raw: change(self.raw).unwrap_or_else(RawEdit::refused), of: PhantomData }
    }

    /// Both edits as one.
    pub fn and(self, other: Edit<T>) -> Self {
        self.map(|edit| Ok(edit.and(other.raw)))
    }

    /// Demands an item that meets the condition. An item that does not refuses the edit:
    /// [`NotEdited`](crate::NotEdited) says which condition it was, and what the item has.
    pub fn only_if(self, condition: Condition<T>) -> Self {
        self.map(|edit| Ok(edit.only_if(condition.raw?)))
    }

    /// Demands an item that the edit would change. An add or an append always changes it.
    pub fn only_if_changed(self) -> Self {
        self.map(|edit| Ok(edit.only_if_changed()))
    }

    /// Names a state in which the item was seen. The edit then needs no read. It does not know which old write ids the item
    /// may forget. So where the item has more than 32 beyond
    /// [`Settings::remembered_writes`](crate::Settings::remembered_writes), it is refused once, and removes some with one
    /// more write.
    pub fn seen(self, at: ItemVersion) -> Self {
        self.map(|edit| Ok(edit.seen(at)))
    }
}

impl<T> Default for Edit<T> {
    /// An edit without clauses, to which others are joined. Alone, it is refused, because it changes nothing.
    fn default() -> Self {
        Edit { raw: RawEdit::default(), of: PhantomData }
    }
}

impl<T> Clone for Edit<T> {
    fn clone(&self) -> Self {
        Edit { raw: self.raw.clone(), of: PhantomData }
    }
}

impl<T> fmt::Debug for Edit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}

/// What an [`Edit`] asks of an item. The methods of [`Field`](crate::field::Field) make conditions, and `and`, `or` and
/// `!` join them, as in `!(status.is(Status::Sold).or(price.is_less_than(10)))`.
///
/// An edit has at most 100 single conditions, in at most 8 levels, and its expressions have at most 4 KB. A larger edit
/// is refused as [`FailureKind::InvalidRecord`](crate::FailureKind::InvalidRecord).
#[must_use]
pub struct Condition<T> {
    /// The condition, or why there is none.
    raw: Result<RawCondition, String>,
    of: PhantomData<fn() -> T>,
}

impl<T> Condition<T> {
    pub(super) fn new(raw: RawCondition) -> Self {
        Condition { raw: Ok(raw), of: PhantomData }
    }

    pub(super) fn invalid(reason: String) -> Self {
        Condition { raw: Err(reason), of: PhantomData }
    }

    /// The condition, or why there is none.
    pub(crate) fn into_raw(self) -> Result<RawCondition, String> {
        self.raw
    }

    /// Both conditions hold.
    pub fn and(self, other: Condition<T>) -> Self {
        Self::joined([self, other], RawCondition::All)
    }

    /// At least one of the two conditions holds.
    pub fn or(self, other: Condition<T>) -> Self {
        Self::any([self, other])
    }

    /// At least one of these conditions holds. There is at least one.
    pub fn any(conditions: impl IntoIterator<Item = Condition<T>>) -> Self {
        Self::joined(conditions, RawCondition::Any)
    }

    /// A condition that is made of others. A deeper one than an edit takes is dropped, because each level takes room on the
    /// stack.
    fn made(raw: RawCondition) -> Self {
        if raw.levels() > MAX_LEVELS {
            return Self::invalid(format!("a condition has at most {MAX_LEVELS} levels"));
        }
        Self::new(raw)
    }

    /// Joins conditions. One that is joined in the same way already gives its parts, so that a long chain has one level.
    fn joined(conditions: impl IntoIterator<Item = Condition<T>>, join: fn(Vec<RawCondition>) -> RawCondition) -> Self {
        let is_all = matches!(join(Vec::new()), RawCondition::All(_));
        let mut all = Vec::new();
        for condition in conditions {
            match condition.raw {
                Ok(RawCondition::All(parts)) if is_all => all.extend(parts),
                Ok(RawCondition::Any(parts)) if !is_all => all.extend(parts),
                Ok(other) => all.push(other),
                Err(reason) => return Self::invalid(reason),
            }
        }
        if all.len() > MAX_CONDITIONS {
            return Self::invalid(format!("there are at most {MAX_CONDITIONS} conditions"));
        }
        Self::made(join(all))
    }
}

impl<T> Not for Condition<T> {
    type Output = Self;

    /// The condition does not hold.
    fn not(self) -> Self {
        self.raw.map_or_else(Self::invalid, |condition| Self::made(RawCondition::Not(Box::new(condition))))
    }
}

impl<T> Clone for Condition<T> {
    fn clone(&self) -> Self {
        Condition { raw: self.raw.clone(), of: PhantomData }
    }
}

impl<T> fmt::Debug for Condition<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}
