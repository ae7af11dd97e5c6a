//! The audit of the crate, on the images that a stream would show of what a history applied.

use super::scene::{EPOCH, TTL};
use crate::harness::faults::Applied;
use fencepost::maintenance::{Audit, Change};
use fencepost::{AttributeValue, Timestamp};
use std::collections::HashMap;
use tokio::time::Instant;

type Attributes = HashMap<String, AttributeValue>;

/// What the audit finds in what was applied to the rows of a table since the start. If it `had_rows` then, the first image of
/// each row is not taken for that of a create.
pub fn breaches((table, had_rows): (&str, bool), audit: &Audit, start: Instant, applied: &[Applied]) -> Vec<String> {
    let (mut images, mut found) = (HashMap::<String, Attributes>::new(), Vec::new());
    for applied in applied {
        let millis = (EPOCH + (applied.time - start)).as_millis();
        let at = Timestamp::from_epoch_millis(u64::try_from(millis).expect("small")).expect("a time");
        for touched in applied.rows.iter().filter(|touched| touched.step.table == table) {
            let row = &touched.row;
            let after: Option<Attributes> =
                row.is_object().then(|| serde_json::from_value(row.clone()).expect("a row"));
            let key = touched.step.key.to_string();
            let before = images.remove(&key);
            let change = Change::new(before.as_ref(), after.as_ref(), at);
            let change = if had_rows && before.is_none() { change.of_a_period() } else { change };
            let change = if applied.op == TTL { change.by_ttl() } else { change };
            let of = |breach| format!("the audit, {breach}: operation {} made {row}", applied.op);
            found.extend(audit.check(&change).into_iter().map(of));
            images.extend(after.map(|after| (key, after)));
        }
    }
    found
}
