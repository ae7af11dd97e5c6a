//! Traces: each send to `DynamoDB` becomes a subsegment under the segment that Lambda writes about the invocation.
//!
//! Lambda runs the X-Ray daemon beside a function with active tracing. The daemon takes subsegments as UDP datagrams.
//! Sources: <https://docs.aws.amazon.com/xray/latest/devguide/xray-api-sendingdata.html> and
//! <https://docs.aws.amazon.com/xray/latest/devguide/xray-api-segmentdocuments.html>

use crate::clock::{Clock, Rng};
use crate::driver::send::SEND_TARGET;
use serde_json::{Map, Value, json};
use std::fmt::Debug;
use std::net::{SocketAddr, UdpSocket};
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Span, Subscriber, debug_span};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// The address of the daemon. Lambda sets this variable.
const DAEMON_VARIABLE: &str = "AWS_XRAY_DAEMON_ADDRESS";

const INVOCATION: &str = "fencepost::invocation";

pub(super) fn invocation_span(trace_id: Option<&str>) -> Span {
    debug_span!(target: INVOCATION, "invocation", trace_id)
}

pub(super) struct XRay {
    socket: UdpSocket,
    daemon: SocketAddr,
    rng: Rng,
}

struct Noted {
    start: SystemTime,
    fields: Map<String, Value>,
}

impl XRay {
    /// Reads the address of the daemon from the environment. `None` if no daemon runs.
    pub(super) fn from_env() -> Option<Self> {
        let daemon: SocketAddr = std::env::var(DAEMON_VARIABLE).ok()?.parse().ok()?;
        let socket = UdpSocket::bind(if daemon.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }).ok()?;
        socket.set_nonblocking(true).ok()?;
        Some(XRay { socket, daemon, rng: Rng::system() })
    }

    pub(super) fn filter() -> Targets {
        Targets::new().with_targets([(INVOCATION, Level::DEBUG), (SEND_TARGET, Level::DEBUG)])
    }
}

/// The subsegment of a send. `None` if it is not sampled. `header`: `Root=1-…;Parent=…;Sampled=1`.
fn subsegment(id: u64, header: &str, send: &Noted, end: SystemTime) -> Option<Value> {
    let part = |name: &str| header.split(';').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
    if part("Sampled") != Some("1") {
        return None;
    }
    let field = |name: &str| send.fields.get(name).cloned();
    let outcome = field("outcome").unwrap_or_else(|| json!("not_awaited"));
    let is_fault = ["answer_lost", "connection_broken", "token_mismatch"].iter().any(|fault| outcome == *fault);
    let mut aws = json!({ "operation": field("operation") });
    if let Some(table) = field("table") {
        aws["table_name"] = table;
    }
    Some(json!({
        "type": "subsegment",
        "name": "DynamoDB",
        "namespace": "aws",
        "id": format!("{id:016x}"),
        "trace_id": part("Root")?,
        "parent_id": part("Parent")?,
        "start_time": seconds(send.start),
        "end_time": seconds(end.max(send.start)),
        "fault": is_fault,
        "error": outcome == "rejected" || outcome == "signature_refused",
        "aws": aws,
        "annotations": { "outcome": outcome, "attempt": field("attempt"), "why": field("why") },
    }))
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for XRay {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut noted = Noted { start: Clock::system().now(), fields: Map::new() };
            attributes.record(&mut noted);
            span.extensions_mut().insert(noted);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(noted) = span.extensions_mut().get_mut::<Noted>()
        {
            values.record(noted);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(send) = context.span(&id).filter(|span| span.metadata().target() == SEND_TARGET) else { return };
        let Some(invocation) = send.scope().find(|span| span.metadata().target() == INVOCATION) else { return };
        let (send, invocation) = (send.extensions(), invocation.extensions());
        if let (Some(send), Some(invocation)) = (send.get::<Noted>(), invocation.get::<Noted>())
            && let Some(header) = invocation.fields.get("trace_id").and_then(Value::as_str)
            && let Some(subsegment) = subsegment(self.rng.next_u64(), header, send, Clock::system().now())
        {
            // A lost trace does no harm.
            let datagram = format!("{{\"format\": \"json\", \"version\": 1}}\n{subsegment}");
            let _ = self.socket.send_to(datagram.as_bytes(), self.daemon);
        }
    }
}

impl Visit for Noted {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name().to_owned(), json!(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name().to_owned(), json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.fields.insert(field.name().to_owned(), json!(value));
    }
}

/// The subsegment of a send with these fields that took no time, for fuzzing.
#[cfg(feature = "testing")]
pub(super) fn subsegment_of(header: &str, fields: &[(&'static str, &str)]) -> Option<Value> {
    let fields = fields.iter().map(|(name, text)| ((*name).to_owned(), json!(text))).collect();
    subsegment(0, header, &Noted { start: UNIX_EPOCH, fields }, UNIX_EPOCH)
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const TRACE: &str = "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=1";

    /// A send that began a second after 1970 and ended half a second later.
    fn sent(header: &str, fields: &Value) -> Option<Value> {
        let at = |millis| UNIX_EPOCH + Duration::from_millis(millis);
        let fields = fields.as_object().expect("fields").clone();
        subsegment(0xabc, header, &Noted { start: at(1000), fields }, at(1500))
    }

    #[test]
    fn a_subsegment_has_the_form_of_x_ray() {
        let fields =
            json!({"operation": "UpdateItem", "table": "T", "attempt": 2, "why": "conflict", "outcome": "applied"});
        let expected = json!({
            "type": "subsegment", "name": "DynamoDB", "namespace": "aws", "id": "0000000000000abc",
            "trace_id": "1-5bef4de7-ad49b0e87f6ef6c87fc2e700", "parent_id": "9a9197af755a6419",
            "start_time": 1.0, "end_time": 1.5, "fault": false, "error": false,
            "aws": {"operation": "UpdateItem", "table_name": "T"},
            "annotations": {"outcome": "applied", "attempt": 2, "why": "conflict"},
        });
        assert_eq!(sent(TRACE, &fields), Some(expected));
    }

    #[test]
    fn a_lost_answer_is_a_fault_a_rejection_an_error_and_a_conflict_neither() {
        for (outcome, fault, error) in [
            ("applied", false, false),
            ("refused", false, false),
            ("not_applied", false, false),
            ("answer_lost", true, false),
            ("connection_broken", true, false),
            ("token_mismatch", true, false),
            ("rejected", false, true),
        ] {
            let seen = sent(TRACE, &json!({"outcome": outcome})).expect("sampled");
            assert_eq!((&seen["fault"], &seen["error"]), (&json!(fault), &json!(error)), "{outcome}");
        }
        let not_awaited = sent(TRACE, &json!({})).expect("sampled");
        assert_eq!(not_awaited["annotations"]["outcome"], "not_awaited");
    }

    #[test]
    fn a_trace_that_is_not_sampled_or_incomplete_has_no_subsegments() {
        for header in
            ["", "Root=1-a;Parent=b;Sampled=0", "Root=1-a;Parent=b", "Root=1-a;Sampled=1", "Parent=b;Sampled=1"]
        {
            assert_eq!(sent(header, &json!({})), None, "{header}");
        }
    }
}
