//! The start of every function on Lambda.

use super::allowance::check_timeout;
use super::client::client_from_env;
use super::logs::init_tracing;
use super::metrics::Reporter;
use crate::error::Source;
use crate::store::Store;

/// Reads the environment, and makes the state of the function from a store.
///
/// # Errors
/// A variable is malformed, or `init` failed.
pub(super) fn start<A>(init: impl FnOnce(&Store) -> Result<A, Source>) -> Result<(A, Reporter), Source> {
    init_tracing(&[]);
    check_timeout()?;
    let reporter = Reporter::from_env()?;
    let app = init(&Store::new(&client_from_env()))?;
    Ok((app, reporter))
}
