//! The last requests to the functions, from the lines that the functions write about them.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::broadcast;

/// How many requests are kept.
const KEPT: usize = 100;

/// The last requests. It is fed with what the functions write.
#[derive(Debug)]
pub struct Requests {
    kept: Mutex<VecDeque<Arc<Value>>>,
    new: broadcast::Sender<Arc<Value>>,
}

impl Default for Requests {
    fn default() -> Self {
        Requests { kept: Mutex::default(), new: broadcast::channel(KEPT).0 }
    }
}

impl Requests {
    fn kept(&self) -> MutexGuard<'_, VecDeque<Arc<Value>>> {
        self.kept.lock().expect("no panic while keeping")
    }

    /// Takes a line that a function has written. Gives the line that belongs on the terminal: without the directives for
    /// `CloudWatch`, which nobody reads there.
    pub fn take(&self, line: String) -> String {
        let Some(mut emf) = read(&line) else { return line };
        let request = Arc::new(shown(&emf));
        if let Some(members) = emf.as_object_mut() {
            members.remove("_aws");
        }
        let mut kept = self.kept();
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(request.clone());
        // Nobody may be looking.
        let _ = self.new.send(request);
        emf.to_string()
    }

    /// The requests that are kept, oldest first, and those that come from now on.
    pub fn watch(&self) -> (Vec<Arc<Value>>, broadcast::Receiver<Arc<Value>>) {
        let kept = self.kept();
        (kept.iter().cloned().collect(), self.new.subscribe())
    }

    /// The request that made this version of the item with this key, by its function and route. `is_writer` says which
    /// functions write the table of the item.
    pub fn writer_of(&self, key: &str, version: u64, is_writer: impl Fn(&str) -> bool) -> Option<String> {
        let kept = self.kept();
        let request = kept.iter().rev().find(|request| {
            request["key"] == key
                && request["version"].as_u64() == Some(version)
                && request["emf"]["changes"].as_u64().is_some_and(|changes| changes > 0) // it has sent a write
                && request["status"].as_u64().is_some_and(|status| status < 300)
                && request["function"].as_str().is_some_and(&is_writer)
        })?;
        Some(format!("{} of {}", request["route"].as_str()?, request["function"].as_str()?))
    }
}

/// The line about a request or a batch, if this is one.
fn read(line: &str) -> Option<Value> {
    if !line.starts_with('{') {
        return None;
    }
    let line: Value = serde_json::from_str(line).ok()?;
    let is_one = ["request", "batch"].iter().any(|message| line["message"] == *message);
    (is_one && line["route"].is_string()).then_some(line)
}

/// What the page shows of a line.
fn shown(emf: &Value) -> Value {
    json!({
        "at": emf["_aws"]["Timestamp"],
        "function": emf["function"],
        "route": emf["route"],
        "key": emf["key"],
        "status": emf["status"],
        "outcome": emf["outcome"],
        "version": emf["version"],
        "attempts": emf["attempts"],
        "conflicts": emf["conflicts"],
        "lostAnswers": emf["lost_answers"],
        "durationMs": emf["duration_ms"],
        "emf": emf,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(key: &str, version: u64, status: u64) -> String {
        json!({
            "message": "request", "function": "device-state", "route": "PATCH /devices/{deviceId}/state", "key": key,
            "version": version, "status": status, "outcome": "ok", "attempts": 2, "conflicts": 1, "lost_answers": 0,
            "duration_ms": 3, "changes": u8::from(status == 200), "_aws": {"Timestamp": 1_772_877_600_000_u64},
        })
        .to_string()
    }

    #[test]
    fn a_line_about_a_request_is_kept_and_shown_without_its_directives() {
        let requests = Requests::default();
        let on_terminal = requests.take(line("lamp", 7, 200));
        assert!(!on_terminal.contains("_aws") && on_terminal.contains("\"attempts\":2"), "{on_terminal}");
        for other in ["Compiling x", "{\"message\":\"task\",\"level\":\"INFO\"}", "{broken", ""] {
            assert_eq!(requests.take(other.to_owned()), other);
        }
        let (kept, _) = requests.watch();
        assert_eq!(kept.len(), 1);
        assert_eq!((&kept[0]["conflicts"], &kept[0]["at"]), (&json!(1), &json!(1_772_877_600_000_u64)));
        assert!(kept[0]["emf"]["_aws"].is_object());
    }

    #[test]
    fn the_last_hundred_are_kept() {
        let requests = Requests::default();
        let (_, mut new) = requests.watch();
        for version in 0..150 {
            requests.take(line("lamp", version, 200));
        }
        let (kept, _) = requests.watch();
        assert_eq!((kept.len(), &kept[0]["version"], &kept[99]["version"]), (100, &json!(50), &json!(149)));
        assert!(new.try_recv().is_err(), "what a watcher is too slow for is left out");
        let next = new.try_recv().expect("the next")["version"].as_u64();
        assert!(next.is_some_and(|version| version > 0 && version <= 50), "{next:?}");
    }

    #[test]
    fn the_writer_of_a_version_is_a_request_that_succeeded() {
        let requests = Requests::default();
        requests.take(line("lamp", 7, 200));
        requests.take(line("lamp", 8, 409));
        let writer = |key: &str, version| requests.writer_of(key, version, |function| function == "device-state");
        assert_eq!(writer("lamp", 7).as_deref(), Some("PATCH /devices/{deviceId}/state of device-state"));
        assert_eq!((writer("lamp", 8), writer("bulb", 7)), (None, None));
        assert_eq!(requests.writer_of("lamp", 7, |_| false), None);
        let mut unchanged: Value = serde_json::from_str(&line("lamp", 7, 200)).expect("JSON");
        (unchanged["changes"], unchanged["route"]) = (json!(0), json!("PUT /devices/{deviceId}/status"));
        requests.take(unchanged.to_string());
        let writer = requests.writer_of("lamp", 7, |_| true);
        assert_eq!(writer.as_deref(), Some("PATCH /devices/{deviceId}/state of device-state"), "it changed nothing");
    }
}
