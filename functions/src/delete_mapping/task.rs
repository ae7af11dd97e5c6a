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
///
/// # Errors
/// A problem that names the field.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_rfc3339("2026-03-07T10:00:00Z").expect("a moment")
    }

    fn task(ip: &str, order: u64, name: Option<&str>) -> Task {
        let ip = Ip::parse(ip, "").expect("an address");
        Task { ip, instance: OrderKey { order, name: name.map(str::to_owned) } }
    }

    #[test]
    fn a_message_is_read_whatever_else_is_in_it() {
        let body =
            r#"{"hostIp":"::ffff:192.0.2.1","creationTimestamp":"1970-01-01T01:00:00.007+01:00","_extra":{"a":[1]}}"#;
        assert_eq!(parse_task(body, now()).ok(), Some(task("192.0.2.1", 7, None)));
        let body = r#"{"hostIp":"192.0.2.1","creationTimestamp":"1970-01-01T00:00:00Z","instanceId":"i-1"}"#;
        assert_eq!(parse_task(body, now()).ok(), Some(task("192.0.2.1", 0, Some("i-1"))));
    }

    #[test]
    fn every_malformed_message_is_refused_with_a_code() {
        for (body, code) in [
            ("", "invalid_json"),
            ("{", "invalid_json"),
            ("[]", "invalid_type"),
            ("{}", "missing_field"),
            (r#"{"hostIp":"192.0.2.1"}"#, "missing_field"),
            (r#"{"hostIp":1,"creationTimestamp":"2026-03-07T10:00:00Z"}"#, "invalid_type"),
            (r#"{"hostIp":"192.0.2.01","creationTimestamp":"2026-03-07T10:00:00Z"}"#, "invalid_ip"),
            (r#"{"hostIp":"192.0.2.1","creationTimestamp":"yesterday"}"#, "invalid_timestamp"),
            (r#"{"hostIp":"192.0.2.1","creationTimestamp":1772877600000}"#, "invalid_type"),
            (r#"{"hostIp":"192.0.2.1","creationTimestamp":"2026-03-07T10:06:00Z"}"#, "timestamp_in_future"),
            // If it counted as absent, it would delete every instance of that moment.
            (r#"{"hostIp":"192.0.2.1","creationTimestamp":"2026-03-07T10:00:00Z","instanceId":null}"#, "invalid_type"),
            (r#"{"hostIp":"192.0.2.1","creationTimestamp":"2026-03-07T10:00:00Z","instanceId":""}"#, "invalid_id"),
        ] {
            assert_eq!(parse_task(body, now()).expect_err("refused").code(), code, "{body}");
        }
    }

    #[test]
    fn the_newest_task_of_an_address_stands_for_all_of_it() {
        let tasks = [
            task("192.0.2.1", 2, Some("b")),
            task("192.0.2.2", 9, None),
            task("192.0.2.1", 3, Some("a")),
            task("192.0.2.1", 3, None),
            task("192.0.2.1", 3, None),
            task("192.0.2.1", 1, None),
        ];
        let newest: Vec<_> = newest_of_each(tasks.iter().enumerate()).into_values().collect();
        assert_eq!(newest, [3, 1]);
    }
}
