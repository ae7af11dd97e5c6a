//! Garbled answers.

use crate::connection::{checksum_of, response};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use http_body::{Body, Frame};
use std::fmt;
use std::io::{Error, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The form of an answer that came back and proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Garbling {
    /// Its body ends too early. No header shows it.
    Truncated,
    /// The connection is reset somewhere in its body, or right after its headers.
    BrokenOff,
    /// It has no body.
    Empty,
    /// Its body is noise, with the status of the answer.
    Noise,
    /// One byte of its body is another one. It may be JSON still; only its checksum shows it. The SDK for Rust does not
    /// look at that.
    Changed,
    /// Its body is JSON of a shape that no answer has.
    Misshapen,
    /// A proxy sends a page of HTML, with status 502, 503 or 504.
    Page,
    /// A status of 4xx or 5xx with a body that cannot be read.
    Unreadable,
    /// A status of 4xx or 5xx with a message, and without the name of an error.
    Nameless,
}

impl Garbling {
    /// All of them.
    pub const ALL: [Garbling; 9] = [
        Garbling::Truncated,
        Garbling::BrokenOff,
        Garbling::Empty,
        Garbling::Noise,
        Garbling::Changed,
        Garbling::Misshapen,
        Garbling::Page,
        Garbling::Unreadable,
        Garbling::Nameless,
    ];

    /// The garbled form of this answer, for a connector of your own. The seed decides the details.
    ///
    /// # Errors
    /// None. A connector's answer is a `Result`.
    pub fn in_place_of(self, status: u16, body: &str, seed: u64) -> Result<HttpResponse, ConnectorError> {
        Garbled::of(status, body.to_owned(), self, seed).into_response()
    }
}

impl fmt::Display for Garbling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Garbling::Truncated => "an answer whose body ended too early",
            Garbling::BrokenOff => "an answer that broke off",
            Garbling::Empty => "an answer without a body",
            Garbling::Noise => "noise",
            Garbling::Changed => "an answer with another byte in it",
            Garbling::Misshapen => "JSON of no known shape",
            Garbling::Page => "a proxy's page",
            Garbling::Unreadable => "an error that cannot be read",
            Garbling::Nameless => "an error without a name",
        })
    }
}

/// The response to a client in place of an answer.
pub struct Garbled {
    pub form: Garbling,
    status: u16,
    body: Vec<u8>,
    /// The checksum of the body as the service sent it.
    checksum: Option<u32>,
}

impl Garbled {
    /// Garbles this answer. The seed decides the details.
    pub fn of(status: u16, body: String, form: Garbling, seed: u64) -> Self {
        let body = body.into_bytes();
        let mut rng = fastrand::Rng::with_seed(seed);
        let sent = Some(checksum_of(&body));
        let (status, body, checksum) = match form {
            Garbling::Truncated => (status, body[..rng.usize(1..body.len())].to_vec(), None),
            Garbling::BrokenOff => (status, body[..rng.usize(0..body.len())].to_vec(), sent),
            Garbling::Empty => (status, Vec::new(), None),
            Garbling::Noise => (status, (0..rng.usize(1..64)).map(|_| rng.u8(128..)).collect(), None),
            Garbling::Changed => (status, changed(body, &mut rng), sent),
            Garbling::Misshapen => (status, one_of(&MISSHAPEN, &mut rng), None),
            Garbling::Page => (rng.u16(502..=504), PAGE.into(), None),
            Garbling::Unreadable => (status_of_error(&mut rng), one_of(&UNREADABLE, &mut rng), None),
            Garbling::Nameless => (status_of_error(&mut rng), one_of(&NAMELESS, &mut rng), None),
        };
        Garbled { form, status, body, checksum }
    }

    pub fn into_response(self) -> Result<HttpResponse, ConnectorError> {
        let mut response = response(self.status, "")?;
        response.headers_mut().remove("x-amz-crc32");
        if let Some(checksum) = self.checksum {
            response.headers_mut().insert("x-amz-crc32", checksum.to_string());
        }
        let body = Bytes::from(self.body);
        *response.body_mut() = match self.form {
            Garbling::BrokenOff => SdkBody::from_body_1_x(BrokenOff(Some(body))),
            _ => SdkBody::from(body),
        };
        Ok(response)
    }
}

fn one_of(bodies: &[&str], rng: &mut fastrand::Rng) -> Vec<u8> {
    rng.choice(bodies).map_or_else(Vec::new, |body| body.as_bytes().to_vec())
}

fn status_of_error(rng: &mut fastrand::Rng) -> u16 {
    rng.choice([400, 403, 413, 500, 503]).unwrap_or(500)
}

/// JSON without the shape of any answer.
const MISSHAPEN: [&str; 5] = [
    "[]",
    "null",
    r#""OK""#,
    r#"{"Item": [], "Attributes": [], "Items": {}, "Responses": [], "ConsumedCapacity": "none"}"#,
    r#"{"Item": {"id": "bare"}, "Attributes": 1, "Items": 1, "Responses": {"T": 1}, "ConsumedCapacity": 1}"#,
];

const PAGE: &str = "<html><head><title>Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>";

/// Errors that break off before or after their names.
const UNREADABLE: [&str; 3] = [
    "<ErrorResponse><Error><Code>Throttling</Code></Error></ErrorResponse>",
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFai"#,
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","mess"#,
];

/// Errors without a name.
const NAMELESS: [&str; 3] = [r#"{"message":"Forbidden"}"#, r#"{"Message":null}"#, "{}"];

/// Another byte in place of one: a digit for a digit and a letter for a letter where there is one. It stays JSON.
fn changed(mut body: Vec<u8>, rng: &mut fastrand::Rng) -> Vec<u8> {
    let of_values: Vec<_> = (0..body.len()).filter(|at| body[*at].is_ascii_alphanumeric()).collect();
    match rng.choice(of_values) {
        None => body.insert(1, b' '),
        Some(at) => {
            let (first, last) = match body[at] {
                b'0'..=b'9' => (b'0', b'9'),
                b'a'..=b'z' => (b'a', b'z'),
                _ => (b'A', b'Z'),
            };
            body[at] = if body[at] == last { first } else { body[at] + 1 };
        }
    }
    body
}

/// A body that is reset after these bytes.
struct BrokenOff(Option<Bytes>);

impl Body for BrokenOff {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let bytes = self.0.take().filter(|bytes| !bytes.is_empty());
        Poll::Ready(Some(
            bytes.map(Frame::data).ok_or_else(|| Error::new(ErrorKind::ConnectionReset, "connection reset")),
        ))
    }
}
