//! The audit of the crate, on the images that a stream would show of what a history applied.

use super::faults::Applied;
use crate::histories::scene::{EPOCH, TTL};
use fencepost::maintenance::{Audit, Change};
use fencepost::{AttributeValue, Timestamp};
use serde_json::Value;
use std::collections::HashMap;
use tokio::time::Instant;

type Attributes = HashMap<String, AttributeValue>;

/// What the audit finds in these states of one row, which are in the order of their writes.
pub fn breaches<'a>(
    audit: &Audit,
    start: Instant,
    states: impl Iterator<Item = (&'a Applied, &'a Value)>,
) -> Vec<String> {
    let (mut before, mut found) = (None::<Attributes>, Vec::new());
    for (applied, row) in states {
        let after: Option<Attributes> = row.is_object().then(|| serde_json::from_value(row.clone()).expect("a row"));
        let millis = (EPOCH + (applied.time - start)).as_millis();
        let at = Timestamp::from_epoch_millis(u64::try_from(millis).expect("small")).expect("a time");
        let change = Change::new(before.as_ref(), after.as_ref(), at);
        let change = if applied.op == TTL { change.by_ttl() } else { change };
        let of = |breach| format!("the audit, {breach}: operation {} made {row}", applied.op);
        found.extend(audit.check(&change).into_iter().map(of));
        before = after;
    }
    found
}
