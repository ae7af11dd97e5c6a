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
    refuse_envelope(&fields)?;
    let ip = fields.required_ip("hostIp")?;
    let order = fields.required_past("creationTimestamp", now)?.epoch_millis().unwrap_or_default();
    let name = fields.optional_id("instanceId")?.map(|id| id.to_string());
    Ok(Task { ip, instance: OrderKey { order, name } })
}

/// The envelopes of services that can pass messages on: their members, with the remedy.
const ENVELOPES: [([&str; 2], &str); 2] = [
    (["TopicArn", "Message"], "this is the envelope of SNS: switch on raw message delivery for its subscription"),
    (["detail-type", "detail"], "this is the envelope of EventBridge: set the InputPath of its target to $.detail"),
];

/// Says so if a task is in the envelope of another service. Its members are not those of a task.
fn refuse_envelope(fields: &Fields) -> Result<(), Problem> {
    let found =
        ENVELOPES.iter().find(|(members, _)| members.iter().all(|name| fields.has(name)) && !fields.has("hostIp"));
    found.map_or(Ok(()), |(_, remedy)| Err(Problem::invalid("", "message_in_envelope", *remedy)))
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
