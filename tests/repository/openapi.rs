//! The paths and the schemas of `docs/openapi.yaml`, which follow from the operations of the functions. The rest of the file
//! belongs to no function, and is written by hand. A document that says too little is noticed: all other tests compare their
//! answers with it.

use super::derived::compare;
use super::files::{Complaints, events};
use dev::openapi;
use functions::function::Event;
use functions::operation::{Conditions, ID, IdempotencyKey, Member, Operation, RETRY_AFTER, Schema};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A schema, as the operation has it that refers to it. The named schemas in it go to `named`.
fn schema(of: &Schema, named: &mut Map<String, Value>) -> Value {
    match of {
        Schema::Shared(name) => json!({"$ref": format!("#/components/schemas/{name}")}),
        Schema::Named(name, of) => {
            let known = schema(of, named);
            let other = named.insert((*name).to_owned(), known.clone()).filter(|other| *other != known);
            assert_eq!(other, None, "two schemas have the name {name}");
            schema(&Schema::Shared(name), named)
        }
        Schema::Object(members) => {
            let mut object = object(members, named);
            object["type"] = json!("object");
            object["additionalProperties"] = json!(false);
            object
        }
        Schema::List(least, most, of) => {
            let mut list = json!({"type": "array", "minItems": least, "items": schema(of, named)});
            if let Some(most) = most {
                list["maxItems"] = json!(most);
            }
            list
        }
        Schema::Whole(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Schema::OneOf(texts) => json!({"type": "string", "enum": texts}),
        Schema::Json(text) => serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}")),
        Schema::With(more, of) => {
            let mut schema = schema(of, named);
            let more = self::schema(&Schema::Json(more), named);
            schema.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            schema
        }
    }
}

/// The members of an object, of which some must be there.
fn object(members: &[Member], named: &mut Map<String, Value>) -> Value {
    let required: Vec<_> = members.iter().map(|(name, _)| *name).filter(|name| !name.ends_with('?')).collect();
    let properties: Map<_, _> =
        members.iter().map(|(name, of)| (name.trim_end_matches('?').to_owned(), schema(of, named))).collect();
    let mut object = json!({"properties": properties});
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    if properties.is_empty() {
        object = json!({"maxProperties": 0});
    }
    object
}

fn shared(kind: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{kind}/{name}")})
}

fn sentence(text: &str) -> String {
    let end = if text.ends_with('.') { "" } else { "." };
    text[..1].to_uppercase() + &text[1..] + end
}

/// A success with this item. One without a name is a page.
fn success(operation: &Operation, new: bool, item: &Schema, named: &mut Map<String, Value>) -> Value {
    let mut response =
        json!({"description": "One page.", "content": {"application/json": {"schema": schema(item, named)}}});
    if let Schema::Named(name, _) = item {
        response["description"] = json!(format!("The {}{}.", if new { "new " } else { "" }, name.to_lowercase()));
        response["headers"] = json!({"ETag": shared("headers", "ETag")});
        if new {
            response["headers"]["Location"] = shared("headers", "Location");
        }
        if operation.key == IdempotencyKey::Honoured {
            response["headers"]["Idempotency-Replayed"] = shared("headers", "IdempotencyReplayed");
        }
    }
    response
}

fn problem(codes: &[&str], means: &str, members: &[Member], named: &mut Map<String, Value>) -> Value {
    let is_member = |member: &&Member| member.0 != RETRY_AFTER.0;
    let mut own = object(&members.iter().filter(is_member).copied().collect::<Vec<_>>(), named);
    own.as_object_mut().expect("an object").remove("maxProperties");
    own["properties"]["code"] = json!({"type": "string", "enum": codes});
    let all = json!([{"$ref": "#/components/schemas/Problem"}, own]);
    let content = json!({"application/problem+json": {"schema": {"allOf": all}}});
    let mut problem = json!({"description": sentence(means), "content": content});
    if !members.iter().all(|member| is_member(&member)) {
        problem["headers"] = json!({"Retry-After": shared("headers", "RetryAfter")});
    }
    problem
}

fn responses(operation: &Operation, named: &mut Map<String, Value>) -> Value {
    let Operation { key, conditions, .. } = operation;
    let is = |method: &str| operation.at.starts_with(method);
    let checked = !matches!(conditions, Conditions::None | Conditions::CreateByKey);
    let has_key = *key == IdempotencyKey::Honoured;
    let usual = [
        ("304", "NotModified", *conditions == Conditions::Read),
        ("400", "Invalid", true),
        ("403", "CallerUnknown", has_key),
        ("412", "VersionConflict", checked),
        ("413", "TooLarge", operation.body.is_some()),
        ("415", "UnsupportedMediaType", operation.body.is_some()),
        ("422", "KeyReused", has_key),
        ("428", "ConditionRequired", is("DELETE ")),
        ("500", "Internal", true),
        ("503", "Unavailable", true),
        ("504", "OutcomeUnknown", *key != IdempotencyKey::Ignored),
    ];
    let usual = usual.into_iter().filter(|(.., applies)| *applies);
    let mut all: Map<_, _> = usual.map(|(status, name, _)| (status.to_owned(), shared("responses", name))).collect();
    let mut add = |status: &str, response| all.insert(status.to_owned(), response);
    if let Some(item) = &operation.shown {
        add("200", success(operation, false, item, named));
    }
    if let Some(item) = &operation.created {
        add("201", success(operation, true, item, named));
    }
    if is("DELETE ") {
        let outcome = json!({"required": true, "schema": {"type": "string", "enum": operation.outcomes}});
        let told = json!({"description": "It is gone, now or before.", "headers": {"Fencepost-Outcome": outcome}});
        add("204", if operation.outcomes.is_empty() { json!({"description": "It is deleted."}) } else { told });
    }
    if let Some((code, means)) = operation.missing {
        add("404", problem(&[code], means, &[], named));
    }
    if let Some((codes, means, members)) = operation.refused {
        add("409", problem(codes, means, members, named));
    }
    Value::Object(all)
}

/// The parameters in path, query and headers. The examples are those of the event.
fn parameters(operation: &Operation, path: &str, event: &Value, named: &mut Map<String, Value>) -> Value {
    let in_path = path.split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0));
    let in_path =
        in_path.map(|name| operation.parameters.iter().copied().find(|own| own.0 == name).unwrap_or((name, ID)));
    let in_path: Vec<_> = in_path.collect();
    let in_query = operation.parameters.iter().filter(|own| in_path.iter().all(|(name, _)| *name != own.0));
    let placed = in_path.iter().map(|own| ("path", own)).chain(in_query.map(|own| ("query", own)));
    let mut all = Vec::new();
    for (place, (name, of)) in placed {
        let (name, required) = (name.trim_end_matches('?'), !name.ends_with('?'));
        let mut schema = schema(of, named);
        let description = schema.as_object_mut().expect("an object").remove("description");
        let mut parameter = json!({"name": name, "in": place, "required": required, "schema": schema});
        if let Some(description) = description {
            parameter["description"] = description;
        }
        let told = if place == "path" { "pathParameters" } else { "queryStringParameters" };
        if let Some(example) = event[told][name].as_str() {
            let number = example.parse::<u64>().ok().filter(|_| !matches!(of, Schema::Shared("Id")));
            parameter["example"] = number.map_or(json!(example), |number| json!(number));
        }
        all.push(parameter);
    }
    let key = (operation.key == IdempotencyKey::Honoured).then_some("idempotencyKey");
    let headers = match operation.conditions {
        Conditions::None => [key, None],
        Conditions::Read => [Some("ifMatch"), Some("ifNoneMatch")],
        Conditions::Change => [key, Some("ifMatch")],
        Conditions::ChangeKnown => [key, Some("ifMatchRequired")],
        Conditions::Create => [key, Some("ifNoneMatchAny")],
        Conditions::CreateByKey => [Some("idempotencyKeyRequired"), Some("ifNoneMatchByKey")],
    };
    all.extend(headers.into_iter().flatten().map(|name| shared("parameters", name)));
    json!(all)
}

/// An operation. Its examples are those of the event of its route.
fn described(operation: &Operation, tag: &str, event: &Value, named: &mut Map<String, Value>) -> Value {
    let (method, path) = operation.at.split_once(' ').expect("a method and a path");
    let mut words = operation.name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    let mut described = json!({
        "tags": [tag],
        "operationId": words.fold(first, |id, word| id + &word[..1].to_uppercase() + &word[1..]),
        "summary": operation.summary,
        "parameters": parameters(operation, path, event, named),
        "responses": responses(operation, named),
    });
    if !operation.description.is_empty() {
        described["description"] = json!(operation.description);
    }
    if let Some(body) = &operation.body {
        let mut media = json!({"schema": schema(body, named)});
        if let Some(example) = event["body"].as_str().and_then(|body| serde_json::from_str(body).ok()) {
            media["example"] = example;
        }
        let mut content = json!({"application/json": media});
        if method == "PATCH" {
            content["application/merge-patch+json"] = content["application/json"].clone();
        }
        let required = !matches!(body, Schema::Object([]));
        described["requestBody"] = json!({"required": required, "content": content});
    }
    described
}

/// The paths with their operations, and the schemas that they name.
fn document() -> (BTreeMap<String, Map<String, Value>>, Map<String, Value>) {
    let (mut paths, mut named, events) = (BTreeMap::<_, Map<_, _>>::new(), Map::new(), events());
    for function in functions::ALL {
        let Event::Http { tag, .. } = function.event else { continue };
        for operation in function.routes() {
            let (method, path) = operation.at.split_once(' ').expect("a method and a path");
            let event = events.values().find(|event| event["routeKey"] == operation.at).cloned();
            let event = event.unwrap_or_else(|| {
                // Without an event of its own, a GET or a DELETE has the path of another operation.
                let is_sibling =
                    |event: &&Value| event["routeKey"].as_str().is_some_and(|at| at.ends_with(&format!(" {path}")));
                json!({"pathParameters": events.values().find(is_sibling).map(|event| &event["pathParameters"])})
            });
            let described = described(&operation, tag.0, &event, &mut named);
            paths.entry(path.to_owned()).or_default().insert(method.to_lowercase(), described);
        }
    }
    (paths, named)
}

#[test]
fn the_document_has_the_operations_of_the_functions_and_their_schemas() {
    let (paths, named) = document();
    let mut text = String::new();
    for (path, operations) in &paths {
        let _ = writeln!(text, "  {path}:");
        for (method, operation) in operations {
            let _ = writeln!(text, "    {method}:");
            for (part, value) in operation.as_object().expect("an object") {
                let _ = writeln!(text, "      {part}: {value}");
            }
        }
    }
    let mut found = Complaints::default();
    compare("docs/openapi.yaml", "paths", &text, &mut found);
    let schemas = named.iter().map(|(name, schema)| format!("    {name}: {schema}\n"));
    compare("docs/openapi.yaml", "schemas", &schemas.collect::<String>(), &mut found);
    let tags = functions::ALL.iter().filter_map(|function| match function.event {
        Event::Http { tag: (name, means), .. } => Some(json!({"name": name, "description": means})),
        Event::Sqs { .. } | Event::Schedule { .. } => None,
    });
    let tags = tags.map(|tag| format!("  - {tag}\n"));
    compare("docs/openapi.yaml", "tags", &tags.collect::<String>(), &mut found);
    found.report();
}

#[test]
fn each_reference_of_the_document_has_a_target() {
    let document = openapi::document();
    for reference in openapi::TEXT.split("#/").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(document.pointer(&format!("/{reference}")).is_some(), "{reference}");
    }
}
