//! The routes of each function: which events and which stored items a search may make for them.

use super::functions::{Functions, KEY, Rows};
use super::shape::{Shape, any_magnitude, near};
use fastrand::Rng;
use serde_json::{Value, json};
use std::fmt::Write;

/// The largest event that Lambda hands to a function, less the parts beside the body.
const MOST_BYTES: u32 = 6_000_000;
/// The largest item of `DynamoDB`, less the attributes beside a free-form object.
const MOST_ITEM: usize = 400 * 1024 - 2000;

/// The variables of a search.
#[derive(Clone, Debug)]
pub struct Input {
    /// In the body of the request.
    body: Shape,
    /// In the stored item.
    stored: Shape,
    /// How long the body may be.
    bytes: u32,
    is_base64: bool,
    /// Whether the body goes down along the stored object, or has its shape at another place.
    is_deep: bool,
    /// Whether the stored item has the object twice.
    is_twice: bool,
    /// How many lines, messages or items there are.
    count: u32,
    /// How many characters an id has.
    id: u32,
    /// How many values the stored object may have.
    values: usize,
}

impl Input {
    pub fn random(rng: &mut Rng) -> Self {
        Input {
            body: Shape::random(rng),
            stored: Shape::random(rng),
            bytes: if rng.u32(..4) > 0 { 512 * 1024 } else { any_magnitude(rng, MOST_BYTES) },
            is_base64: rng.u32(..4) == 0,
            is_deep: rng.bool(),
            is_twice: rng.bool(),
            count: any_magnitude(rng, 100),
            id: any_magnitude(rng, 128),
            values: usize::MAX,
        }
    }

    /// The input with a stored object that the function itself would store.
    fn of_ours(&self) -> Self {
        Input { values: fencepost::json::MAX_VALUES, ..self.clone() }
    }

    /// The input with one part changed.
    pub fn varied(&self, rng: &mut Rng) -> Self {
        let mut next = self.clone();
        match rng.u32(..16) {
            0..6 => next.body = self.body.varied(rng),
            6..11 => next.stored = self.stored.varied(rng),
            11 => next.bytes = near(rng, self.bytes, MOST_BYTES),
            12 => next.is_base64 = !self.is_base64,
            13 => next.is_deep = !self.is_deep,
            14 => next.is_twice = !self.is_twice,
            _ => (next.count, next.id) = (near(rng, self.count, 100), near(rng, self.id, 128)),
        }
        next
    }

    fn free_form(&self) -> String {
        self.body.json((self.bytes as usize).saturating_sub(200))
    }

    fn id_of(&self, number: u32) -> String {
        format!("{number:0>width$}", width = self.id as usize)
    }

    /// The row with the free-form object in these attributes, the second only if it is there twice.
    fn filled(&self, row: &Value, attributes: [&str; 2]) -> String {
        let mut row = row.clone();
        let object = self.stored.item(if self.is_twice { MOST_ITEM / 2 } else { MOST_ITEM }, self.values);
        let members = row.as_object_mut().expect("a row");
        let mut text = String::new();
        for attribute in &attributes[..if self.is_twice { 2 } else { 1 }] {
            members.remove(*attribute);
            write!(text, r#","{attribute}":{object}"#).expect("a text takes all");
        }
        let mut row = row.to_string();
        row.insert_str(row.len() - 1, &text);
        row
    }
}

/// One kind of request to one route.
pub struct Case {
    pub function: &'static str,
    pub name: &'static str,
    make: fn(&Input, &Base) -> Made,
}

/// An event, and the table that it meets.
struct Made {
    event: String,
    rows: Rows,
    found: usize,
    refusals: u32,
}

impl Case {
    /// Hands the event of this input to the function, and gives its cost. Nothing of the making counts.
    pub fn play(&self, functions: &Functions, base: &Base, input: &Input) -> super::functions::Took {
        let Made { event, rows, found, refusals } = (self.make)(input, base);
        functions.engine.hold(rows, found, refusals);
        functions.answer(self.function, &event)
    }
}

/// Rows as the functions themselves make them.
pub struct Base {
    device: Value,
    product: Value,
    order: Value,
    mapping: Value,
    child: Value,
}

impl Base {
    pub fn made_by(functions: &Functions) -> Self {
        let made = |function, route: &str, key: &str, body: &Value, (header, rows): (Option<&str>, Rows)| {
            functions.engine.hold(rows, 0, 0);
            let took = functions.answer(function, &request(route, &body.to_string(), false, header));
            assert!((200..300).contains(&took.status), "{}", String::from_utf8_lossy(&took.answer));
            let mut item = functions.engine.put();
            item[key] = json!({ "S": KEY });
            item
        };
        let plain = || (None, Rows::default());
        let device = json!({"state": {}, "config": {}, "status": "online"});
        let product = json!({"stock": 1_000_000});
        let product = made("inventory", "PUT /products/p", "productId", &product, plain());
        let order = json!({"userId": "u", "lines": [{"productId": "p", "quantity": 1}]});
        let products = (Some("k"), Rows::from([("Products", product.to_string())]));
        let mapping = json!({"cellId": "c", "instanceId": "i", "creationTimestamp": "2020-01-01T00:00:00Z"});
        let child = json!({"parentUid": "u", "spec": {}});
        Base {
            device: made("device-state", "PUT /devices/d", "deviceId", &device, plain()),
            order: made("place-order", "POST /orders", "orderId", &order, products),
            mapping: made("host-mapping", "PUT /mappings/192.0.2.1", "hostIp", &mapping, plain()),
            child: made("ensure-child", "PUT /parents/p/child", "childId", &child, plain()),
            product,
        }
    }
}

/// An event of API Gateway for this method and path.
fn request(route: &str, body: &str, is_base64: bool, key: Option<&str>) -> String {
    let (method, target) = route.split_once(' ').expect("a method and a path");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query: serde_json::Map<_, _> = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    let mut headers = json!({"content-type": "application/json"});
    if let Some(key) = key {
        headers["idempotency-key"] = json!(key);
    }
    let mut event = json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "", "headers": headers,
        "requestContext": {"http": {"method": method, "path": path}, "authorizer": {"iam": {"userArn": "arn:aws:iam::1:role/a"}}},
        "queryStringParameters": query, "isBase64Encoded": is_base64,
    });
    event["body"] = if is_base64 { json!(aws_smithy_types::base64::encode(body)) } else { json!(body) };
    event.to_string()
}

/// Whether the request has a key, and how often its write loses a race.
type With = (Option<&'static str>, u32);

const PLAIN: With = (None, 0);
const KEYED: With = (Some("k"), 0);
const REFUSED: With = (None, 1);
const KEYED_AND_REFUSED: With = (Some("k"), 1);

fn create_device(input: &Input, (key, refusals): With) -> Made {
    let object = input.free_form();
    let body = if input.is_twice {
        let half = input.body.json((input.bytes as usize / 2).saturating_sub(100));
        format!(r#"{{"state":{half},"config":{half}}}"#)
    } else {
        format!(r#"{{"state":{object}}}"#)
    };
    let event = request("PUT /devices/d", &body, input.is_base64, key);
    Made { event, rows: Rows::default(), found: 0, refusals }
}

fn on_device(input: &Input, base: &Base, route: &str, body: &str, (key, refusals): With) -> Made {
    let row = input.filled(&base.device, ["state", "config"]);
    // A number to adjust.
    let row =
        row.replacen(r#""state":{"M":{"#, r#""state":{"M":{"x":{"N":"1"},"#, 1).replacen(r#""1"},}"#, r#""1"}}"#, 1);
    let rows = Rows::from([("Devices", row)]);
    Made { event: request(route, body, input.is_base64, key), rows, found: 0, refusals }
}

fn patch_device(input: &Input, base: &Base, with: With) -> Made {
    let patch = if input.is_deep { input.stored.deep_patch() } else { input.free_form() };
    on_device(input, base, "PATCH /devices/d/state", &patch, with)
}

/// A body with these members, and a free-form object at a place where none belongs.
fn with_more(input: &Input, members: &str) -> String {
    format!(r#"{{{members},"x":{}}}"#, input.free_form())
}

fn of_small_row(input: &Input, route: &str, members: &str, table: (&'static str, &Value), with: With) -> Made {
    let body = if input.is_deep { format!("{{{members}}}") } else { with_more(input, members) };
    let rows = if input.is_twice {
        Rows::from([(table.0, input.filled(table.1, ["more", "yetMore"]))])
    } else {
        Rows::default()
    };
    let refusals = if rows.is_empty() { 0 } else { with.1 };
    Made { event: request(route, &body, input.is_base64, with.0), rows, found: 0, refusals }
}

fn order(input: &Input, base: &Base, refusals: u32) -> Made {
    let line = |number| format!(r#"{{"productId":"{}","quantity":1}}"#, input.id_of(number));
    let lines = (0..input.count.min(60)).map(line).collect::<Vec<_>>().join(",");
    let members = format!(r#""userId":"u","lines":[{lines}]"#);
    let body = if input.is_deep { format!("{{{members}}}") } else { with_more(input, &members) };
    let product =
        if input.count == 1 { input.filled(&base.product, ["more", "yetMore"]) } else { base.product.to_string() };
    let rows = Rows::from([("Products", product)]);
    Made { event: request("POST /orders", &body, input.is_base64, Some("k")), rows, found: 0, refusals }
}

fn stored_order(input: &Input, base: &Base, route: &str, refusals: u32) -> Made {
    let line = |number| json!({"M": {"productId": {"S": input.id_of(number)}, "quantity": {"N": "1"}}});
    let mut row = base.order.clone();
    row["lines"] = json!({"L": (0..input.count.min(50)).map(line).collect::<Vec<_>>()});
    let rows = Rows::from([("Orders", row.to_string()), ("Products", base.product.to_string())]);
    Made { event: request(route, "", false, None), rows, found: 100, refusals }
}

fn batch(input: &Input) -> Made {
    let count = input.count.min(10);
    let bytes = input.bytes.min(MOST_BYTES / count) as usize;
    let object = input.body.json(bytes.saturating_sub(200));
    let message = |number| {
        let body = format!(
            r#"{{"hostIp":"192.0.2.{number}","creationTimestamp":"2020-01-01T00:00:00Z","instanceId":"{}","x":{object}}}"#,
            input.id_of(number)
        );
        json!({"messageId": input.id_of(number), "body": body})
    };
    let event = json!({"Records": (0..count).map(message).collect::<Vec<_>>()});
    Made { event: event.to_string(), rows: Rows::default(), found: 0, refusals: 0 }
}

fn child(input: &Input, base: &Base, is_there: bool) -> Made {
    let body = format!(r#"{{"parentUid":"u","spec":{}}}"#, input.free_form());
    let rows = if is_there {
        Rows::from([("Children", input.filled(&base.child, ["spec", "more"]))])
    } else {
        Rows::default()
    };
    let event = request("PUT /parents/p/child", &body, input.is_base64, None);
    Made { event, rows, found: 0, refusals: u32::from(is_there) }
}

/// The most heap at one moment of an invocation, in bytes. The process, before its first request included, stays below
/// 64 MB.
pub const PEAK: u64 = 48 * 1024 * 1024;

const fn case(function: &'static str, name: &'static str, make: fn(&Input, &Base) -> Made) -> Case {
    Case { function, name, make }
}

pub const CASES: &[Case] = &[
    case("device-state", "create", |input, _| create_device(input, PLAIN)),
    case("device-state", "create with a key", |input, _| create_device(input, KEYED)),
    case("device-state", "create where one is", |input, base| Made {
        rows: on_device(input, base, "GET /devices/d", "", PLAIN).rows,
        ..create_device(input, REFUSED)
    }),
    case("device-state", "get", |input, base| on_device(input, base, "GET /devices/d", "", PLAIN)),
    case("device-state", "patch", |input, base| patch_device(input, base, PLAIN)),
    case("device-state", "patch with a key", |input, base| patch_device(input, base, KEYED)),
    case("device-state", "patch after a lost race", |input, base| patch_device(&input.of_ours(), base, REFUSED)),
    case("device-state", "patch with a key after a lost race", |input, base| {
        patch_device(&input.of_ours(), base, KEYED_AND_REFUSED)
    }),
    case("device-state", "patch of an item of others after a lost race", |input, base| {
        patch_device(input, base, REFUSED)
    }),
    case("device-state", "patch of an item of others with a key after a lost race", |input, base| {
        patch_device(input, base, KEYED_AND_REFUSED)
    }),
    case("device-state", "configure", |input, base| {
        on_device(input, base, "PUT /devices/d/config", &input.free_form(), PLAIN)
    }),
    case("device-state", "configure with a key", |input, base| {
        on_device(input, base, "PUT /devices/d/config", &input.free_form(), KEYED)
    }),
    case("device-state", "adjust", |input, base| {
        let body = r#"{"attribute":"x","by":1,"max":100,"onLimit":"clamp"}"#;
        on_device(input, base, "POST /devices/d/adjustments", body, if input.is_deep { KEYED } else { PLAIN })
    }),
    case("device-state", "set the status", |input, base| {
        let with = if input.is_deep { KEYED } else { PLAIN };
        on_device(input, base, "PUT /devices/d/status", r#"{"status":"offline"}"#, with)
    }),
    case("inventory", "create", |input, base| {
        of_small_row(input, "PUT /products/p", r#""stock":1"#, ("Products", &base.product), REFUSED)
    }),
    case("inventory", "adjust", |input, base| {
        of_small_row(input, "POST /products/p/adjustments", r#""by":1"#, ("Products", &base.product), PLAIN)
    }),
    case("place-order", "place", |input, base| order(input, base, 0)),
    case("place-order", "place after a lost race", |input, base| order(input, base, 1)),
    case("place-order", "cancel", |input, base| stored_order(input, base, "POST /orders/o/cancellation", 0)),
    case("place-order", "list", |input, base| stored_order(input, base, "GET /orders?userId=u&limit=100", 0)),
    case("host-mapping", "register", |input, base| {
        let members = r#""cellId":"c","instanceId":"i","creationTimestamp":"2020-01-01T00:00:00Z""#;
        of_small_row(input, "PUT /mappings/192.0.2.1", members, ("Mappings", &base.mapping), REFUSED)
    }),
    case("delete-mapping", "batch", |input, _| batch(input)),
    case("lease", "acquire", |input, base| {
        of_small_row(input, "PUT /leases/l", r#""holder":"h","ttlSeconds":9"#, ("Leases", &base.mapping), KEYED)
    }),
    case("ensure-child", "ensure", |input, base| child(input, base, false)),
    case("ensure-child", "ensure where one is", |input, base| child(input, base, true)),
];
