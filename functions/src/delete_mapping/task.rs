//! The task in a message, with the folding of tasks for one address. No I/O.

use fencepost::Timestamp;
use fencepost::http::{Fields, Ip, Problem};
use fencepost::lww::OrderKey;
use std::collections::BTreeMap;

/// One message: delete this instance and all older ones behind this address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// The address.
    pub ip: Ip,
    /// The instance. Without a name, all instances of its creation time.
    pub instance: OrderKey,
}

/// Parses the task in `{hostIp, creationTimestamp, instanceId?}`. Ignores all other fields of the message.
pub fn parse_task(body: &str, now: Timestamp) -> Result<Task, Problem> {
    let mut fields = Fields::from_message(body)?;
    let ip = fields.required_ip("hostIp")?;
    let order = fields.required_past("creationTimestamp", now)?.epoch_millis().unwrap_or_default();
    let name = fields.optional_id("instanceId")?.map(|id| id.to_string());
    Ok(Task { ip, instance: OrderKey { order, name } })
}

/// Returns the position of the newest task of each address. This task does the work of the others of the address too.
#[must_use]
pub fn newest_of_each<'a>(tasks: impl Iterator<Item = (usize, &'a Task)>) -> BTreeMap<Ip, usize> {
    let mut newest = BTreeMap::<Ip, (usize, &Task)>::new();
    for (place, task) in tasks {
        let kept = newest.entry(task.ip).or_insert((place, task));
        if task.instance > kept.1.instance {
            *kept = (place, task);
        }
    }
    newest.into_iter().map(|(ip, (place, _))| (ip, place)).collect()
}
