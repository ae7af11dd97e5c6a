//! The time that an invocation may take.

use super::env;
use crate::call::Call;
use crate::clock::Clock;
use crate::deadline::Deadline;
use crate::error::Source;
use lambda_runtime::Context;
use std::time::{Duration, SystemTime};

/// The part of Lambda's time that is reserved for the answer: 250 ms.
///
/// After the deadline, the call must still be answered, logged and posted to the runtime, on a small function with a
/// fraction of a processor. Lambda's clock and ours may also differ by some milliseconds. If Lambda killed the function
/// at that moment, the client would learn nothing.
pub const MARGIN: Duration = Duration::from_millis(250);

/// The time of an invocation without a known deadline: 10 s, the timeout in `template.yaml`.
const UNKNOWN_DEADLINE: Duration = Duration::from_secs(10);

const MAX_TIMEOUT: Duration = Duration::from_mins(15);

/// The environment variable with the timeout of the function in seconds. Lambda does not tell a function its timeout.
const TIMEOUT_VARIABLE: &str = "FUNCTION_TIMEOUT_SECONDS";

/// The [`Call`] of an invocation, for [`Store::in_call`](crate::Store::in_call). It ends at Lambda's deadline, less [`MARGIN`].
///
/// Lambda's deadline is a moment of the wall clock. If that clock was stopped, it shows more time left than the timeout
/// of the function. So the environment variable `FUNCTION_TIMEOUT_SECONDS` caps the time. Without the variable,
/// Lambda's maximum of 15 minutes does.
#[must_use]
pub fn call(context: &Context) -> Call {
    let timeout = std::env::var(TIMEOUT_VARIABLE).ok().and_then(|seconds| seconds.parse().ok());
    let timeout = timeout.map_or(MAX_TIMEOUT, Duration::from_secs);
    Call::new(Deadline::within(allowance(context.deadline(), Clock::system().now(), timeout)))
}

/// Checks the environment variable with the function's timeout, so that a malformed one ends the start of the function.
pub(super) fn check_timeout() -> Result<(), Source> {
    match env::seconds_or(TIMEOUT_VARIABLE, MAX_TIMEOUT.as_secs())? {
        Duration::ZERO => Err(format!("{TIMEOUT_VARIABLE} must be at least 1").into()),
        _ => Ok(()),
    }
}

/// The time of a call: until Lambda's deadline, at most the timeout of the function, less the margin.
///
/// A development server may send a constant instead of a moment (`cargo lambda watch` sends 600,000, which is ten
/// minutes into 1970). A deadline on that day does not count, and [`UNKNOWN_DEADLINE`] replaces it.
fn allowance(deadline: SystemTime, now: SystemTime, timeout: Duration) -> Duration {
    let is_moment = deadline > SystemTime::UNIX_EPOCH + Duration::from_hours(24);
    let left = if is_moment { deadline.duration_since(now).unwrap_or_default() } else { UNKNOWN_DEADLINE };
    left.min(timeout).saturating_sub(MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allowance_ends_a_margin_before_lambdas_deadline_or_the_functions_timeout() {
        let (ten, now) = (Duration::from_secs(10), SystemTime::UNIX_EPOCH + Duration::from_hours(492_000));
        let constant = SystemTime::UNIX_EPOCH + Duration::from_mins(10);
        for (name, deadline, now, timeout, millis) in [
            ("all of it is left", now + ten, now, ten, 9750),
            ("less than the margin is left", now + Duration::from_millis(100), now, ten, 0),
            ("it has passed", now - Duration::from_secs(1), now, ten, 0),
            ("a wall clock that was stopped", now + ten, now - Duration::from_hours(1), ten, 9750),
            ("a constant in place of a deadline", constant, now, MAX_TIMEOUT, 9750),
        ] {
            assert_eq!(allowance(deadline, now, timeout), Duration::from_millis(millis), "{name}");
        }
    }
}
