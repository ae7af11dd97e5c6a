//! The requests that take the most: the worst that a search over bodies and stored items of many shapes has found, and that
//! were found by hand.

use super::functions::{Functions, KEY, Rows, Took};
use fencepost_test::size_of_item;
use serde_json::{Value, json};

/// The largest body that is read as JSON.
const MOST_READ: usize = 512 * 1024;
/// The largest event that Lambda hands to a function, less the parts beside the body.
const MOST_BYTES: usize = 6_000_000;
/// An item to which a function can still write: the largest has 396 KB.
const MOST_ITEM: usize = 390 * 1024;

/// How many objects of one member are inside each other in each element of an array. Of the shapes that the search tried, an
/// object with an array of such elements, each around an empty text, takes the most heap for each of its bytes.
const DEPTH: usize = 24;

/// The object as JSON, in so many bytes.
fn worst(bytes: usize) -> String {
    let element = format!(r#"{}""{}"#, r#"{"n":"#.repeat(DEPTH), "}".repeat(DEPTH));
    let count = (bytes - 8) / (element.len() + 1);
    format!(r#"{{"a":[{}]}}"#, vec![element; count].join(","))
}

/// The object in `DynamoDB`'s JSON, in an item of this size, with at most so many values.
fn worst_item(size: usize, values: usize) -> String {
    let element = format!(r#"{}{{"S":""}}{}"#, r#"{"M":{"n":"#.repeat(DEPTH), "}}".repeat(DEPTH));
    let of_element = size_of_item(&serde_json::from_str(&format!(r#"{{"a":{element}}}"#)).expect("JSON"));
    let count = (size / of_element).min((values - 1) / (DEPTH + 1));
    format!(r#"{{"M":{{"a":{{"L":[{}]}}}}}}"#, vec![element; count].join(","))
}

/// The row with this object in each of these attributes.
fn filled(row: &Value, attributes: &[&str], values: usize) -> String {
    let mut row = row.clone();
    let object = worst_item(MOST_ITEM / attributes.len(), values);
    let members = row.as_object_mut().expect("a row");
    for attribute in attributes {
        members.remove(*attribute);
    }
    let mut row = row.to_string();
    for attribute in attributes {
        row.insert_str(row.len() - 1, &format!(r#","{attribute}":{object}"#));
    }
    row
}

/// A body of this size has hardly fewer values than are allowed.
const MOST_VALUES: usize = 58_000;

/// One kind of request to one route.
pub struct Case {
    pub function: &'static str,
    pub name: &'static str,
    make: fn(&Base) -> Made,
}

/// An event, and the table that it meets, where this many writes lose a race.
struct Made {
    event: String,
    rows: Rows,
    refusals: u32,
}

impl Case {
    /// Hands the event to the function, and gives its cost. Nothing of the making counts.
    pub fn play(&self, functions: &Functions, base: &Base) -> Took {
        let Made { event, rows, refusals } = (self.make)(base);
        functions.engine.hold(rows, refusals);
        functions.answer(self.function, &event)
    }
}

/// Rows as the functions themselves make them.
pub struct Base {
    device: Value,
    product: Value,
    mapping: Value,
    child: Value,
}

impl Base {
    pub fn made_by(functions: &Functions) -> Self {
        let made = |function, route: &str, key: &str, body: &Value| {
            functions.engine.hold(Rows::default(), 0);
            let took = functions.answer(function, &request(route, &body.to_string(), None));
            assert!((200..300).contains(&took.status), "{}", String::from_utf8_lossy(&took.answer));
            let mut item = functions.engine.put();
            item[key] = json!({ "S": KEY });
            item
        };
        let device = json!({"state": {}, "config": {}, "status": "online"});
        let mapping = json!({"cellId": "c", "instanceId": "i", "creationTimestamp": "2020-01-01T00:00:00Z"});
        let child = json!({"parentUid": "u", "spec": {}});
        Base {
            product: made("inventory", "PUT /products/p", "productId", &json!({"stock": 1_000_000})),
            device: made("device-state", "PUT /devices/d", "deviceId", &device),
            mapping: made("host-mapping", "PUT /mappings/192.0.2.1", "hostIp", &mapping),
            child: made("ensure-child", "PUT /parents/p/child", "childId", &child),
        }
    }
}

/// An event of API Gateway for this method and path.
fn request(route: &str, body: &str, key: Option<&str>) -> String {
    let (method, path) = route.split_once(' ').expect("a method and a path");
    let mut headers = json!({"content-type": "application/json"});
    if let Some(key) = key {
        headers["idempotency-key"] = json!(key);
    }
    let event = json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "", "headers": headers,
        "requestContext": {"http": {"method": method, "path": path}, "authorizer": {"iam": {"userArn": "arn:aws:iam::1:role/a"}}},
        "body": body, "isBase64Encoded": false,
    });
    event.to_string()
}

/// A stored item that other programs have filled, and one that the function itself would store.
const OF_OTHERS: usize = usize::MAX;
const OF_OURS: usize = fencepost::json::MAX_VALUES / 2;

const KEY_OF_REQUEST: Option<&str> = Some("k");

fn on_device(base: &Base, values: usize, (route, body): (&str, &str), key: Option<&str>, refusals: u32) -> Made {
    let row = filled(&base.device, &["state", "config"], values);
    // A number to adjust.
    let row = row.replacen(r#""state":{"M":{"#, r#""state":{"M":{"x":{"N":"1"},"#, 1);
    Made { event: request(route, body, key), rows: Rows::from([("Devices", row)]), refusals }
}

/// A request with these members to a row that other programs have filled.
fn on_filled(
    (route, members): (&str, &str),
    (table, row): (&'static str, &Value),
    key: Option<&str>,
    refusals: u32,
) -> Made {
    let row = filled(row, &["more"], OF_OTHERS);
    Made { event: request(route, &format!("{{{members}}}"), key), rows: Rows::from([(table, row)]), refusals }
}

fn batch() -> Made {
    let message = |number: u32| {
        let members = r#""creationTimestamp":"2020-01-01T00:00:00Z","instanceId":"i""#;
        let object = worst(MOST_BYTES / 10 - 200);
        let body = format!(r#"{{"hostIp":"192.0.2.{number}",{members},"x":{object}}}"#);
        json!({"messageId": number.to_string(), "body": body})
    };
    let event = json!({"Records": (0..10).map(message).collect::<Vec<_>>()});
    Made { event: event.to_string(), rows: Rows::default(), refusals: 0 }
}

const fn case(function: &'static str, name: &'static str, make: fn(&Base) -> Made) -> Case {
    Case { function, name, make }
}

pub const CASES: &[Case] = &[
    case("device-state", "create with a key where one is", |base| {
        let body = format!(r#"{{"state":{}}}"#, worst(MOST_VALUES));
        on_device(base, OF_OTHERS, ("PUT /devices/d", &body), KEY_OF_REQUEST, 1)
    }),
    case("device-state", "get", |base| on_device(base, OF_OTHERS, ("GET /devices/d", ""), None, 0)),
    case("device-state", "patch with a key", |base| {
        on_device(base, OF_OURS, ("PATCH /devices/d/state", r#"{"y":1}"#), KEY_OF_REQUEST, 1)
    }),
    case("device-state", "patch of an item of others with a key", |base| {
        on_device(base, OF_OTHERS, ("PATCH /devices/d/state", r#"{"y":1}"#), KEY_OF_REQUEST, 1)
    }),
    case("device-state", "configure", |base| {
        on_device(base, OF_OTHERS, ("PUT /devices/d/config", &worst(MOST_VALUES)), None, 0)
    }),
    case("device-state", "adjust", |base| {
        let body = r#"{"attribute":"x","by":1,"max":100,"onLimit":"clamp"}"#;
        on_device(base, OF_OTHERS, ("POST /devices/d/adjustments", body), None, 1)
    }),
    case("device-state", "set the status", |base| {
        on_device(base, OF_OTHERS, ("PUT /devices/d/status", r#"{"status":"offline"}"#), None, 1)
    }),
    case("device-state", "a body with too many values", |base| {
        on_device(base, OF_OTHERS, ("PATCH /devices/d/state", &worst(MOST_READ)), None, 0)
    }),
    case("device-state", "a body that is too large", |base| {
        on_device(base, OF_OTHERS, ("PATCH /devices/d/state", &worst(MOST_BYTES)), None, 0)
    }),
    case("inventory", "adjust", |base| {
        let asked = ("POST /products/p/adjustments", r#""by":1"#);
        on_filled(asked, ("Products", &base.product), None, 1)
    }),
    case("place-order", "place after a lost race", |base| {
        let asked = ("POST /orders", r#""userId":"u","lines":[{"productId":"p","quantity":1}]"#);
        on_filled(asked, ("Products", &base.product), KEY_OF_REQUEST, 1)
    }),
    case("host-mapping", "register", |base| {
        let members = r#""cellId":"c","instanceId":"i","creationTimestamp":"2020-01-01T00:00:00Z""#;
        on_filled(("PUT /mappings/192.0.2.1", members), ("Mappings", &base.mapping), None, 1)
    }),
    case("delete-mapping", "a full batch", |_| batch()),
    case("lease", "acquire", |base| {
        // An object where none belongs.
        let members = format!(r#""holder":"h","ttlSeconds":9,"x":{}"#, worst(MOST_READ - 200));
        on_filled(("PUT /leases/l", &members), ("Leases", &base.mapping), KEY_OF_REQUEST, 0)
    }),
    case("ensure-child", "ensure an existing one", |base| {
        let asked = ("PUT /parents/p/child", r#""parentUid":"u","spec":{}"#);
        on_filled(asked, ("Children", &base.child), None, 1)
    }),
];
