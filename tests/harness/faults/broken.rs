//! The rules that a test can break on purpose.

/// A rule that is broken on purpose, to show that the histories notice.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Broken {
    Nothing,
    /// Refusals show no write ids: the judge has no evidence.
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
    /// A transaction does not ask whether its required lease is held.
    NotRequired,
    /// The row of a lease disappears on release: its tokens start again from the first.
    LeasesDeleted,
    /// A renewal does not ask how often the lease was renewed.
    RenewalsUnchecked,
    /// A renewal does not ask whether the lease is held.
    HolderUnchecked,
    /// Cancellations hide the request's own traces: a failed condition of a step decides before the judge is asked
    /// whether the transaction landed.
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
    /// A burn does not ask whether the row remembers the write to be burned.
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
    /// The create on a tombstone forgets the memory of the row.
    RevivedWithoutMemory,
    /// No condition asks which row it is.
    AnyIncarnation,
    /// Puts have no condition.
    NoCondition,
    /// The conditions of puts ask whether values are equal where they should ask for their order.
    OnlyEqual,
    /// A client applies a restock first, without its record, which follows in a write of its own.
    RecordOutside,
    /// A client places an order whose id is taken again under another id.
    GuardRetried,
    /// A client's transaction does not check the items that it only reads.
    Unchecked,
    /// A client makes the appends of a transaction one after the other, and sometimes takes them back.
    TakenBack,
    /// A client replaces a list by its result without a condition.
    Blind,
    /// Leaders take a lease as soon as it has ended by their own clocks.
    NoSkew,
    /// Clients create and delete an item although another program removes its row.
    CreatesToo,
}
