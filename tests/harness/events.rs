//! The events of API Gateway and of the queue: files of `events/`, varied.

use fencepost::derived_id;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

/// An event as API Gateway sends it. An event of a queue is a batch: only `load` works for it.
#[derive(Clone)]
pub struct Event(pub Value);

/// The names of events without a file, with their routes.
const DERIVED: [(&str, &str); 4] = [
    ("device-state-delete", "DELETE /devices/{deviceId}"),
    ("host-mapping-get", "GET /mappings/{hostIp}"),
    ("inventory-get", "GET /products/{productId}"),
    ("lease-get", "GET /leases/{leaseKey}"),
];

/// The event of `events/` with this name, or the one that is derived for it.
pub fn load(name: &str) -> Event {
    match DERIVED.iter().find(|(derived, _)| *derived == name) {
        Some((_, route)) => of_route(route),
        None => read(name),
    }
}

fn read(name: &str) -> Event {
    let path = dev::workspace().join(format!("events/{name}.json"));
    Event(serde_json::from_str(&std::fs::read_to_string(path).expect("an event of that name")).expect("JSON"))
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Value| value.to_string().chars().take(300).collect::<String>();
        let (route, path) = (&self.0["routeKey"], &self.0["rawPath"]);
        write!(f, "{} {} {} {}", text(route), text(path), text(&self.0["headers"]), text(&self.0["body"]))
    }
}

impl Event {
    pub fn method(&self) -> &str {
        self.0["requestContext"]["http"]["method"].as_str().expect("a method")
    }

    /// The route that the gateway has matched.
    pub fn route(&self) -> &str {
        self.0["routeKey"].as_str().expect("a route")
    }

    pub fn path(&self) -> &str {
        self.0["rawPath"].as_str().expect("a path")
    }

    fn with_path(mut self, path: &str) -> Self {
        self.0["rawPath"] = json!(path);
        self.0["requestContext"]["http"]["path"] = json!(path);
        self
    }

    /// The same with this value of a path parameter. The gateway decodes parameters, so the raw path may look different.
    pub fn of(self, parameter: &str, id: &str) -> Self {
        let before = self.0["pathParameters"][parameter].as_str().expect("a parameter");
        let path = self.path().replace(before, id);
        let mut event = self.with_path(&path);
        event.0["pathParameters"][parameter] = json!(id);
        event
    }

    /// With this query and no other.
    pub fn asking<'a>(mut self, query: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let parameters: Map<_, _> = query.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
        let text = |(name, value): (&String, &Value)| format!("{name}={}", value.as_str().unwrap_or_default());
        self.0["rawQueryString"] = json!(parameters.iter().map(text).collect::<Vec<_>>().join("&"));
        self.0["queryStringParameters"] = Value::Object(parameters);
        self
    }

    /// With this idempotency key.
    pub fn key(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    /// The same from another caller, with this ARN in IAM.
    pub fn by(mut self, arn: &str) -> Self {
        self.0["requestContext"]["authorizer"]["iam"]["userArn"] = json!(arn);
        self
    }

    /// As API Gateway sends it behind another authorizer than the one of the template.
    pub fn authorized(mut self, authorizer: &Value) -> Self {
        self.0["requestContext"]["authorizer"] = authorizer.clone();
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.0["headers"][name] = json!(value);
        self
    }

    pub fn without_header(mut self, name: &str) -> Self {
        self.0["headers"].as_object_mut().expect("headers").remove(name);
        self
    }

    /// Without a body, a query, a key and preconditions.
    fn bare(mut self) -> Self {
        for header in ["if-match", "if-none-match", "idempotency-key"] {
            self = self.without_header(header);
        }
        self.0.as_object_mut().expect("an event").remove("body");
        self.asking([])
    }

    /// With this body.
    pub fn text(mut self, body: &str) -> Self {
        self.0["body"] = json!(body);
        self
    }

    /// With this body as JSON.
    pub fn json(self, body: &Value) -> Self {
        self.text(&body.to_string())
    }

    /// With this body in base64.
    pub fn base64(mut self, body: &str) -> Self {
        self.0["isBase64Encoded"] = json!(true);
        self.text(body)
    }

    /// As it comes through an API under a base path of a custom domain.
    pub fn under_base_path(self, base: &str) -> Self {
        let path = format!("{base}{}", self.path());
        self.with_path(&path)
    }

    /// In the form in which no route of the gateway matched it, with this method and path.
    pub fn unrouted(self, method: &str, path: &str) -> Self {
        let mut event = self.with_path(path);
        event.0["routeKey"] = json!("$default");
        event.0["requestContext"]["routeKey"] = json!("$default");
        event.0["requestContext"]["http"]["method"] = json!(method);
        event.0.as_object_mut().expect("an event").remove("pathParameters");
        event
    }

    /// In the form in which `cargo lambda watch` sends it.
    pub fn by_cargo_lambda(mut self) -> Self {
        let event = self.0.as_object_mut().expect("an event");
        event.insert("routeKey".to_owned(), json!("$default"));
        event.insert("rawQueryString".to_owned(), Value::Null);
        event.insert("queryStringParameters".to_owned(), json!({}));
        event.insert("httpMethod".to_owned(), json!("GET"));
        event.insert("cookies".to_owned(), json!([]));
        event.insert("stageVariables".to_owned(), json!({}));
        let context = event["requestContext"].as_object_mut().expect("a context");
        context.remove("authorizer");
        context.insert("routeKey".to_owned(), json!("$default"));
        context.insert("timeEpoch".to_owned(), json!(1_772_877_600));
        self
    }
}

/// Values of `authorizer` that name no caller, unless a parameter says where to find one.
pub fn authorizers_that_name_nobody() -> [Value; 4] {
    [
        json!({"lambda": {"tenantId": "acme"}}),
        json!({"lambda": null}),
        json!({"jwt": {"claims": {"iss": "https://issuer.example.com/", "scope": "devices"}, "scopes": null}}),
        json!({"iam": {"userArn": null}}),
    ]
}

/// The events of `events/` that have a route, by that route.
static ROUTED: LazyLock<BTreeMap<String, Event>> = LazyLock::new(|| {
    let folder = std::fs::read_dir(dev::workspace().join("events")).expect("a folder");
    let names = folder.map(|file| file.expect("a file").file_name().into_string().expect("a name"));
    let events = names.filter_map(|name| Some(read(name.strip_suffix(".json")?)));
    events.filter_map(|event| Some((event.0["routeKey"].as_str()?.to_owned(), event))).collect()
});

/// The event of `events/` for this route. A GET and a DELETE need no file: then it is made of the event of another method of the
/// same path, without a body, a query, a key or a precondition.
fn of_route(route: &str) -> Event {
    let (method, path) = route.split_once(' ').expect("a method and a path");
    let derived = || {
        let is_sibling = |other: &str| other.split_once(' ').is_some_and(|(_, other)| other == path);
        let (_, event) = ROUTED.iter().find(|(other, _)| is_sibling(other))?;
        let mut event = event.clone().bare();
        for header in ["content-type", "content-length"] {
            event = event.without_header(header);
        }
        event.0["routeKey"] = json!(route);
        event.0["requestContext"]["routeKey"] = json!(route);
        event.0["requestContext"]["http"]["method"] = json!(method);
        ["GET", "DELETE"].contains(&method).then_some(event)
    };
    let event = ROUTED.get(route).cloned().or_else(derived);
    event.unwrap_or_else(|| panic!("no event has the route {route}"))
}

/// The same about this id.
pub fn sample(route: &str, id: &str) -> Event {
    let event = of_route(route);
    match event.0["pathParameters"].as_object().and_then(|all| all.keys().next().cloned()) {
        Some(parameter) => event.of(&parameter, id),
        None => event,
    }
}

/// The same without its body, its query, its key and its preconditions.
pub fn event_of(route: &str, id: &str) -> Event {
    sample(route, id).bare()
}

/// Registers an instance of `cell-1`.
pub fn registration(ip: &str, instance: &str, at: &str) -> Event {
    let body = json!({"cellId": "cell-1", "instanceId": instance, "creationTimestamp": at});
    load("host-mapping-register").of("hostIp", ip).json(&body)
}

pub fn look_up(ip: &str) -> Event {
    load("host-mapping-get").of("hostIp", ip)
}

/// Deletes an instance, or without its id all of the moment.
pub fn deletion(ip: &str, at: &str, instance: Option<&str>) -> Event {
    let instance = instance.map(|instance| ("instanceId", instance));
    load("host-mapping-delete").of("hostIp", ip).asking([("creationTimestamp", at)].into_iter().chain(instance))
}

/// The body of a message for the delete of an instance, or of all of the moment.
pub fn task(ip: &str, at: &str, instance: Option<&str>) -> String {
    let mut task = json!({"hostIp": ip, "creationTimestamp": at});
    if let Some(instance) = instance {
        task["instanceId"] = json!(instance);
    }
    task.to_string()
}

/// A batch of these messages, `(id, body)`.
pub fn batch_of<I: AsRef<str>, B: AsRef<str>>(messages: &[(I, B)]) -> Value {
    let message = |(id, body): &(I, B)| {
        let mut message = load("delete-mapping-superseded").0["Records"][0].take();
        let (id, body): (&str, &str) = (id.as_ref(), body.as_ref());
        message["messageId"] = json!(id);
        message["body"] = json!(body);
        message
    };
    json!({"Records": messages.iter().map(message).collect::<Vec<_>>()})
}

/// Places an order of `user-1` under this key.
pub fn order(key: &str, lines: &[(&str, i64)]) -> Event {
    let line = |(id, quantity): &(&str, i64)| json!({"productId": id, "quantity": quantity});
    let lines: Vec<_> = lines.iter().map(line).collect();
    load("place-order-place").key(key).json(&json!({"userId": "user-1", "lines": lines}))
}

/// The id of the order under this key.
pub fn order_id(key: &str) -> String {
    let event = load("place-order-place").0;
    let caller = event["requestContext"]["authorizer"]["iam"]["userArn"].as_str().expect("who sends it");
    derived_id(&["order", caller, "user-1", key])
}

pub fn cancellation(id: &str) -> Event {
    load("place-order-cancel").of("orderId", id)
}

/// Acquires a lease for so many seconds.
pub fn acquire(key: &str, holder: &str, seconds: u64) -> Event {
    load("lease-acquire").of("leaseKey", key).json(&json!({"holder": holder, "ttlSeconds": seconds}))
}

/// Renews a lease for so many seconds.
pub fn renew(key: &str, token: u64, seconds: u64) -> Event {
    load("lease-renew").of("leaseKey", key).json(&json!({"token": token, "ttlSeconds": seconds}))
}

pub fn release(key: &str, token: u64) -> Event {
    load("lease-release").of("leaseKey", key).asking([("token", token.to_string().as_str())])
}

pub fn shown_lease(key: &str) -> Event {
    load("lease-get").of("leaseKey", key)
}

/// Wants the child of a parent, without a lease.
pub fn ensure(parent: &str, uid: &str, spec: &Value) -> Event {
    load("ensure-child-ensure").of("parentId", parent).json(&json!({"parentUid": uid, "spec": spec}))
}

/// The same under a lease.
pub fn ensure_under(parent: &str, uid: &str, spec: &Value, (key, token): (&str, u64)) -> Event {
    let body = json!({"parentUid": uid, "spec": spec, "lease": {"key": key, "token": token}});
    load("ensure-child-ensure").of("parentId", parent).json(&body)
}

pub fn shown_child(parent: &str, uid: &str) -> Event {
    load("ensure-child-get").of("parentId", parent).asking([("parentUid", uid)])
}
