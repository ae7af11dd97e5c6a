//! Answers as a client sees them, with assertions about them.

use aws_lambda_events::apigw::ApiGatewayV2httpResponse;
use aws_lambda_events::encodings;
use serde_json::Value;

/// An answer as a client sees it.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: i64,
    pub body: Option<String>,
    headers: Vec<(String, String)>,
}

impl From<ApiGatewayV2httpResponse> for Answer {
    fn from(response: ApiGatewayV2httpResponse) -> Self {
        let text = |value: &[u8]| String::from_utf8(value.to_vec()).expect("text");
        let headers = response.headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes())));
        let body = response.body.map(|body| match body {
            encodings::Body::Text(text) => text,
            other => panic!("a body that is no text: {other:?}"),
        });
        Answer { status: response.status_code, headers: headers.collect(), body }
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        let body = self.body.as_deref().unwrap_or_else(|| panic!("a body: {self:?}"));
        serde_json::from_str(body).expect("JSON")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(own, _)| own == name).map(|(_, value)| value.as_str());
        let value = values.next();
        assert_eq!(values.next(), None, "{name} occurs twice");
        value
    }

    /// The names of all headers.
    pub fn header_names(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().map(|(name, _)| name.as_str())
    }

    /// The code of a problem, or an empty text.
    pub fn code(&self) -> String {
        let body: Option<Value> = self.body.as_deref().and_then(|body| serde_json::from_str(body).ok());
        body.and_then(|body| Some(body["code"].as_str()?.to_owned())).unwrap_or_default()
    }

    pub fn etag(&self) -> &str {
        self.header("etag").unwrap_or_else(|| panic!("an ETag: {self:?}"))
    }

    pub fn is_replay(&self) -> bool {
        self.header("idempotency-replayed") == Some("true")
    }

    /// The body of an answer with this status.
    pub fn shown(&self, status: i64) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }

    /// Asserts that the answer shows an item with this status and this version. Gives the item.
    pub fn shows(&self, status: i64, version: u64) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"));
        let item = self.json();
        assert_eq!(item["version"], version, "{self:?}");
        let tag = self.etag().strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).expect("a strong tag");
        let (number, incarnation) = tag.split_once('.').expect("version and incarnation");
        assert_eq!(number, version.to_string());
        let base64url = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        assert!(!incarnation.is_empty() && incarnation.bytes().all(base64url), "{tag}");
        item
    }

    /// The body of a problem with this status and this code.
    pub fn says(&self, status: i64, code: &str) -> Value {
        let problem = self.json();
        assert_eq!((self.status, problem["code"].as_str()), (status, Some(code)), "{self:?}");
        problem
    }

    /// Asserts the form of RFC 9457.
    pub fn check_problem(&self) {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        for member in ["type", "title", "detail", "code"] {
            assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {problem}");
        }
        if let Some(seconds) = self.header("retry-after") {
            assert!(seconds.parse::<u64>().is_ok_and(|seconds| seconds >= 1), "{seconds}");
        }
    }
}
