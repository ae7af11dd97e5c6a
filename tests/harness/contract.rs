//! The contract of `docs/openapi.yaml`. Every answer in a test is compared with it.

use super::answers::Answer;
use super::events::Event;
use dev::openapi;
use jsonschema::{Draft, Validator};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

/// The document, with the schemas of bodies that were needed so far.
struct Contract {
    document: Value,
    schemas: Mutex<HashMap<String, Arc<Validator>>>,
}

static CONTRACT: LazyLock<Contract> =
    LazyLock::new(|| Contract { document: openapi::document(), schemas: Mutex::default() });

/// Fails if the contract does not describe this answer.
pub fn assert_described(event: &Event, answer: &Answer) {
    if let Err(undescribed) = CONTRACT.check(event, answer) {
        panic!("docs/openapi.yaml: {undescribed}\n{answer:?}");
    }
}

/// A node of the document. A reference is followed.
pub fn resolve<'a>(document: &'a Value, node: &'a Value) -> &'a Value {
    match node["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).expect("a target"),
        None => node,
    }
}

impl Contract {
    /// Checks status, headers and body. Answers to unknown paths and methods are no part of the contract. No route has
    /// HEAD: its answer would have no body to explain this.
    fn check(&self, event: &Event, answer: &Answer) -> Result<(), String> {
        let is_head = (event.method(), answer.status) == ("HEAD", 405);
        if is_head || ["no_such_route", "method_not_allowed"].contains(&answer.code().as_str()) {
            return Ok(());
        }
        self.check_accepted(event, answer)?;
        let status = answer.status.to_string();
        let (method, path) = self.route(event).ok_or_else(|| format!("no path describes {}", event.0["rawPath"]))?;
        let route = format!("{method} {path}");
        let operation = &self.document["paths"][path][method.to_lowercase()];
        let described = resolve(&self.document, &operation["responses"][&status]);
        let wrong = |what: String| Err(format!("{route}, {status}: {what}"));
        if described.is_null() {
            return wrong("the status is not described".to_owned());
        }
        let described_headers = described["headers"].as_object().cloned().unwrap_or_default();
        for (name, header) in &described_headers {
            if resolve(&self.document, header)["required"] == true && answer.header(&name.to_lowercase()).is_none() {
                return wrong(format!("the header {name} is missing"));
            }
        }
        for name in answer.header_names().filter(|name| *name != "content-type") {
            if !described_headers.keys().any(|described| described.eq_ignore_ascii_case(name)) {
                return wrong(format!("the header {name} is not described"));
            }
        }
        match (described["content"].as_object(), answer.header("content-type")) {
            (None, None) => Ok(()),
            (Some(content), Some(media_type)) if content.contains_key(media_type) => {
                let schema = self.schema(&format!("{route} {status} {media_type}"), &content[media_type]["schema"])?;
                match schema.iter_errors(&answer.json()).next() {
                    None => Ok(()),
                    Some(error) => wrong(format!("the body is another one: {error} at {}", error.instance_path())),
                }
            }
            (_, media_type) => wrong(format!("a body of {media_type:?} is not described")),
        }
    }

    /// Checks the body of a request that succeeded.
    fn check_accepted(&self, event: &Event, answer: &Answer) -> Result<(), String> {
        let (Some((method, path)), true) = (self.route(event), answer.status < 300) else { return Ok(()) };
        let content = &self.document["paths"][path][method.to_lowercase()]["requestBody"]["content"];
        let body = event.0["body"].as_str().filter(|_| event.0["isBase64Encoded"] != true);
        let body = body.and_then(|body| serde_json::from_str(body).ok());
        let (Some(body), Some(media)) = (body, content.get("application/json")) else { return Ok(()) };
        let schema = self.schema(&format!("{method} {path}"), &media["schema"])?;
        let wrong = schema.iter_errors(&body).next();
        wrong.map_or(Ok(()), |error| Err(format!("{method} {path}: a body was accepted, but {error}")))
    }

    /// The method and the path of the document for an event. Not every sender names them in `routeKey`.
    fn route<'a>(&'a self, event: &'a Event) -> Option<(&'a str, &'a str)> {
        let paths = self.document["paths"].as_object()?;
        let named = event.0["routeKey"].as_str()?.split_once(' ');
        if let Some((method, path)) = named
            && paths.contains_key(path)
        {
            return Some((method, path));
        }
        let raw: Vec<_> = event.0["rawPath"].as_str()?.split('/').collect();
        let is_meant = |path: &&String| {
            let parts: Vec<_> = path.split('/').collect();
            parts.len() == raw.len() && parts.iter().zip(&raw).all(|(part, raw)| part.starts_with('{') || part == raw)
        };
        Some((event.0["requestContext"]["http"]["method"].as_str()?, paths.keys().find(is_meant)?))
    }

    fn schema(&self, name: &str, schema: &Value) -> Result<Arc<Validator>, String> {
        let mut schemas = self.schemas.lock().expect("no panic");
        if let Some(known) = schemas.get(name) {
            return Ok(Arc::clone(known));
        }
        let whole = json!({"allOf": [schema], "components": self.document["components"]});
        let built = jsonschema::options().with_draft(Draft::Draft202012).build(&whole);
        let built = Arc::new(built.map_err(|error| format!("{name}: {error}"))?);
        schemas.insert(name.to_owned(), Arc::clone(&built));
        Ok(built)
    }
}
