//! The text that an answer is kept as, to be given again to whoever repeats the request.

use super::Response;
use crate::error::Failure;
use crate::version::Version;
use serde::{Deserialize, Serialize};

/// The first line of a stored answer. The body follows as it is: neither a byte of it changes, nor does it grow.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Head {
    status: u16,
    headers: Vec<(String, String)>,
    version: Option<u64>,
    has_body: bool,
}

impl Response {
    /// The text from which [`Response::from_stored`] makes the same status, headers and body again.
    ///
    /// # Panics
    /// Never: numbers, texts and lists of texts are JSON.
    #[must_use]
    pub fn to_stored(&self) -> String {
        let head = Head {
            status: self.status,
            headers: self.headers.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
            version: self.version.map(Version::get),
            has_body: self.body.is_some(),
        };
        let head = serde_json::to_string(&head).expect("numbers and texts are JSON");
        format!("{head}\n{}", self.body().unwrap_or_default())
    }

    /// The answer that was kept as this text. Mark it with [`Response::replayed`] before it is given again.
    ///
    /// # Errors
    /// [`Failure::CorruptItem`] for a text that [`Response::to_stored`] does not make.
    pub fn from_stored(text: &str) -> Result<Self, Failure> {
        let corrupt = |reason: String| Failure::CorruptItem { reason: format!("a stored answer: {reason}") };
        let (head, body) = text.split_once('\n').ok_or_else(|| corrupt("its body is missing".to_owned()))?;
        let head: Head = serde_json::from_str(head).map_err(|error| corrupt(error.to_string()))?;
        let version = head.version.map(|number| Version::new(number).ok_or_else(|| corrupt(number.to_string())));
        Ok(Response {
            status: head.status,
            outcome: "stored",
            headers: head.headers.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            body: head.has_body.then(|| body.to_owned()),
            version: version.transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::{Incarnation, ItemVersion};
    use serde_json::Value;

    fn at(version: u64) -> ItemVersion {
        ItemVersion { version: Version::new(version).expect("small"), incarnation: Incarnation::from_bytes([7; 8]) }
    }

    #[test]
    fn a_stored_answer_comes_back_with_its_status_headers_body_and_version() {
        let text = r#"{"a":1e+100,"b":12345678901234567890123456789012345678,"c":"\"\\ é \u2028 \u0001"}"#;
        let body: Value = serde_json::from_str(text).expect("JSON");
        let first = Response::created("/devices/a".to_owned(), at(3), &body);
        for answer in [first, Response::ok(at((1 << 53) - 1), &body), Response::deleted(at(4).version)] {
            let back = Response::from_stored(&answer.to_stored()).expect("a stored answer");
            assert_eq!(Response { outcome: answer.outcome, ..back.clone() }, answer);
            assert_eq!(back.to_stored(), answer.to_stored());
            assert!(answer.to_stored().len() < 200 + answer.body().map_or(0, str::len), "the body is kept as it is");
        }
    }

    #[test]
    fn a_replayed_answer_says_so_to_the_client_and_to_the_log() {
        let first = Response::ok(at(3), &Value::Null);
        let replayed = Response::from_stored(&first.to_stored()).expect("a stored answer").replayed();
        assert_eq!((replayed.outcome(), replayed.status(), replayed.body()), ("replayed", 200, first.body()));
        let marks: Vec<_> = replayed.headers().iter().filter(|header| !first.headers().contains(header)).collect();
        assert_eq!(marks, [&("idempotency-replayed".into(), "true".to_owned())]);
    }

    #[test]
    fn what_is_no_stored_answer_is_corrupt() {
        for text in [
            "",
            "{}\n",
            "null\n",
            r#"{"status":200,"headers":[],"version":null,"hasBody":false}"#,
            "{\"status\":70000,\"headers\":[],\"version\":null,\"hasBody\":false}\n",
            "{\"status\":200,\"headers\":[],\"version\":9007199254740992,\"hasBody\":false}\n",
            "{\"status\":200,\"headers\":[],\"version\":null,\"hasBody\":false,\"more\":1}\n",
        ] {
            assert!(matches!(Response::from_stored(text), Err(Failure::CorruptItem { .. })), "{text}");
        }
    }
}
