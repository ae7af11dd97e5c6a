//! The rules that a test can break on purpose.

/// A rule broken on purpose: the tests that do show that the histories notice.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Broken {
    Nothing,
    /// Refusals show nobody's write ids: there is nothing to judge by.
    NoJudge,
    /// Refusals show the last writer's id alone.
    LastWriterOnly,
    /// A deleted row is gone at once: no tombstone.
    RowsDeleted,
    /// A lost answer is forgotten when the resend is throttled.
    ThrottlingClears,
    /// The steps of a transaction leave no write id behind.
    NoIdInTransactions,
    /// Nothing is refused because of a lower fencing token.
    NoFence,
    /// A transaction does not ask whether the lease that it requires is held.
    NotRequired,
    /// The row of a lease is gone as soon as it is released: its tokens begin anew.
    LeasesDeleted,
    /// A renewal does not ask how often the lease was renewed.
    RenewalsUnchecked,
    /// A renewal does not ask whether the lease is held.
    HolderUnchecked,
    /// Cancellations do not show what the request itself left in the items: a step whose own condition failed decides
    /// before anybody asks whether the transaction landed.
    GuardBeforeJudge,
    /// All transactions of one operation have the token of its first.
    TokenReused,
    /// An add does not ask whether its row remembers it.
    AddOfAnyId,
    /// The window of an add has no upper bound.
    AddNeverLate,
    /// The window of an add has no lower bound.
    AddNeverEarly,
    /// Rows forget each id after so many commits.
    Forgets {
        after: u64,
    },
    /// A burn does not ask whether the row remembers the write that it burns.
    BurnOfAnyId,
    /// A burn stores no id.
    BurnLeavesNothing,
    /// A burn has no window.
    BurnAtAnyVersion,
    /// A burn stores the id as an applied write does.
    BurnAsAdd,
    /// Burned writes are judged as applied ones.
    BurnsIgnored,
    /// A write has another id on every send but the first.
    FreshIds,
    /// The create on a tombstone forgets what the row remembered.
    RevivedWithoutMemory,
    /// No condition asks which row it is.
    AnyIncarnation,
    /// Puts have no condition.
    NoCondition,
    /// The conditions of puts ask whether values are equal where they should ask for their order.
    OnlyEqual,
}
