//! Errors: what became of the change, and what the program does next.
//!
//! Each error of an operation is one of three things: an answer (`NotFound`, `Conflict`, `Refused`, `KeyReused`), or a
//! [`Failure`](crate::Failure) after which nothing was applied, or a failure that leaves the outcome unknown. The
//! [first page](crate#what-is-promised) states the promise. Ask these questions instead of listing variants, which may
//! grow:
//!
//! ```
//! use fencepost::{Record, Table, UpdateError};
//! # use serde::{Deserialize, Serialize};
//! # #[derive(Serialize, Deserialize, Record)]
//! # #[record(key = "accountId")]
//! # struct Account { balance: u64 }
//!
//! async fn withdraw(accounts: &Table<Account>, id: &str, amount: u64) -> String {
//!     let decide = |account: &Account| match account.balance.checked_sub(amount) {
//!         Some(balance) => Ok(Some(Account { balance })),
//!         None => Err(account.balance),
//!     };
//!     match accounts.update_with_retry(id, decide).await {
//!         Ok(account) => format!("{} left, at version {}", account.balance, account.version()),
//!         Err(UpdateError::NotFound) => "there is no such account".to_owned(),
//!         Err(UpdateError::Refused(balance)) => format!("refused: there are only {balance}"),
//!         Err(error) if error.is_retryable() => "nothing was applied: try again".to_owned(),
//!         Err(error) if error.is_outcome_unknown() => "perhaps applied: wait 15 minutes, then read".to_owned(),
//!         Err(error) => error.to_string(), // nothing was applied; says what to correct
//!     }
//! }
//! ```
//!
//! `failure()` gives the [`Failure`](crate::Failure) itself, if there is one. A layer with errors of its own turns
//! refusals and failures into them by [`Error::into_own`](crate::Error::into_own) or
//! [`UpdateError::into_own`](crate::UpdateError::into_own):
//!
//! ```
//! # use fencepost::{Failure, FailureKind, Record, Table};
//! # use serde::{Deserialize, Serialize};
//! # #[derive(Serialize, Deserialize, Record)]
//! # #[record(key = "seatId")]
//! # struct Seat { taken_by: Option<String> }
//! enum BookingError {
//!     NoSuchSeat,
//!     Taken,
//!     Store(Failure),
//! }
//! # impl From<Failure> for BookingError { fn from(failure: Failure) -> Self { BookingError::Store(failure) } }
//!
//! async fn book(seats: &Table<Seat>, seat: &str, guest: &str) -> Result<(), BookingError> {
//!     let taken_by = Seat::FIELDS.taken_by;
//!     let book = taken_by.set(guest.to_owned()).only_if(taken_by.is_none());
//!     let booked = seats.edit(seat, &book).await;
//!     booked.map_err(|error| error.into_own(|refusal| refusal.map_or(BookingError::NoSuchSeat, |_| BookingError::Taken)))?;
//!     Ok(())
//! }
//! ```
//!
//! # An unknown outcome
//!
//! [`FailureKind::OutcomeUnknown`](crate::FailureKind::OutcomeUnknown) says what to do. Give a change that must not be made
//! twice an [idempotency key](super::transactions): repeating it under the key is always safe and finds out. Without a
//! key, do not repeat the change before the outcome is known. Lambda repeats an invocation that ends with `Err`, so
//! return none there for an unknown outcome. For an operator, `docs/troubleshooting.md` has the steps, and the tool
//! `fencepost` reads the last writes off a row.
//!
//! # Traces
//!
//! Each operation is a `tracing` span named `operation`, at `DEBUG` with the target `fencepost::operation`. Its fields are
//! `operation`, `table` and `key` (if it is about one), `requests`, `attempts` (the rounds with a write) and `outcome`:
//! `applied`, `answered`, `failed`, `unknown` or `dropped`. The same is told to the observer of
//! [`Store::with_observer`](crate::Store::with_observer), for totals and metrics. Where keys are secret, filter these spans
//! out.
//!
//! In it, each send is a span named `send`, at `DEBUG` with the target `fencepost::send`. Its fields are
//! `operation`, `table`, `attempt`, `why` (the reason of this send) and `outcome` (what its answer proves).
//! `docs/operations.md` lists their values. Where a refused write is judged, an event at `DEBUG` with the target
//! `fencepost::judge` has the `verdict`: `landed`, `never_applied`, `open`, `unproved` or `corrupt`. The functions send
//! the spans to X-Ray, and the example `opentelemetry` exports them.
