//! [`Decision`]: what a decision on an item may answer. [`Upserted`]: what became of one that may also create.

use fencepost_core::Versioned;
use std::convert::Infallible;

/// The answer of a decision on the current value of an item.
///
/// | answer | what it says |
/// |---|---|
/// | `T` | write this value, also if it is equal to the current one |
/// | `Option<T>` | the same, or `None`: keep the item, and write nothing |
/// | `Result<T, R>`, `Result<Option<T>, R>` | the same, or `Err`: refuse for this reason, and write nothing |
///
/// Where nothing says what `R` is, leave the `Ok` out, or write `Ok::<_, MyError>(..)`.
#[diagnostic::on_unimplemented(
    message = "a decision cannot answer `{Self}`",
    label = "this is not the answer of a decision on `{T}`",
    note = "a decision answers the new `{T}`, an `Option` of it (`None` keeps the item), or a `Result` of one of these"
)]
pub trait Decision<T> {
    /// The reason of a refusal. [`Infallible`] if the decision cannot refuse.
    type Reason;

    /// The new value, or `None` to keep the item.
    ///
    /// # Errors
    /// The reason of the refusal.
    fn into_decision(self) -> Result<Option<T>, Self::Reason>;
}

impl<T> Decision<T> for T {
    type Reason = Infallible;

    fn into_decision(self) -> Result<Option<T>, Infallible> {
        Ok(Some(self))
    }
}

impl<T> Decision<T> for Option<T> {
    type Reason = Infallible;

    fn into_decision(self) -> Result<Option<T>, Infallible> {
        Ok(self)
    }
}

impl<T, R> Decision<T> for Result<T, R> {
    type Reason = R;

    fn into_decision(self) -> Result<Option<T>, R> {
        self.map(Some)
    }
}

impl<T, R> Decision<T> for Result<Option<T>, R> {
    type Reason = R;

    fn into_decision(self) -> Result<Option<T>, R> {
        self
    }
}

/// What became of a [`Table::upsert_with_retry`](crate::Table::upsert_with_retry).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Upserted<T> {
    /// The key had no item, and has this one now.
    Created(Versioned<T>),
    /// The item was changed.
    Updated {
        /// The item before.
        old: Versioned<T>,
        /// The item after.
        new: Versioned<T>,
    },
    /// The decision kept what is there: this item, or none.
    Kept(Option<Versioned<T>>),
}

impl<T> Upserted<T> {
    /// The item as it is after the decision.
    #[must_use]
    pub fn item(self) -> Option<Versioned<T>> {
        match self {
            Upserted::Created(item) | Upserted::Updated { new: item, .. } => Some(item),
            Upserted::Kept(item) => item,
        }
    }
}
