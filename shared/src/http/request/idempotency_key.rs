//! `Idempotency-Key`: the name that a client gives to one change, and repeats each time that it sends the change.

use super::message::Request;
use crate::http::problem::Problem;
use crate::idempotency::IdempotencyClaim;
use serde::Serialize;

const HEADER: &str = "idempotency-key";
const FIELD: &str = "header:idempotency-key";

const MAX_KEY: usize = 255;

impl Request {
    /// The idempotency key, if there is one: 1 to 255 visible ASCII characters.
    ///
    /// Two such headers count as one. If they are joined with a space, they are refused. If the gateway joins them
    /// without one, they make a key of their own.
    ///
    /// # Errors
    /// `invalid_idempotency_key`. The key is not cut or cleaned, because another key would be another promise.
    pub fn idempotency_key(&self) -> Result<Option<&str>, Problem> {
        let Some(key) = self.header(HEADER) else { return Ok(None) };
        if (1..=MAX_KEY).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Some(key))
        } else {
            let detail = "send one idempotency key of 1 to 255 visible ASCII characters, without spaces";
            Err(Problem::invalid(FIELD, "invalid_idempotency_key", detail))
        }
    }

    /// The idempotency key, on a route where it is required.
    ///
    /// # Errors
    /// `idempotency_key_required`, `invalid_idempotency_key`.
    pub fn required_idempotency_key(&self) -> Result<&str, Problem> {
        self.idempotency_key()?.ok_or_else(|| {
            let detail = "send an idempotency key, the same one whenever you repeat this request";
            Problem::invalid(FIELD, "idempotency_key_required", detail)
        })
    }

    /// The identity of this request for its idempotency record, if it has a key. `payload` is the parsed content of the
    /// request, with defaults filled in.
    ///
    /// A key is unique per caller and route. The payload includes the route and its path parameters, but not the raw
    /// path. So the same request under another base path is the same request.
    ///
    /// Leave out of `payload` the differences between two copies of one request: the time and every id that this
    /// process draws. With them a repeat would be another payload, and so 422.
    ///
    /// Equal requests must have equal texts. So numbers in `payload` must be in their one notation and members in one
    /// order, as those of an [`Object`](crate::json::Object) are.
    ///
    /// # Errors
    /// `invalid_idempotency_key`, `caller_unknown`; `internal` if [`Request::route`] is empty.
    pub fn idempotency_claim(&self, payload: &impl Serialize) -> Result<Option<IdempotencyClaim>, Problem> {
        let Some(key) = self.idempotency_key()? else { return Ok(None) };
        let caller = self.known_caller()?;
        if self.route.is_empty() {
            return Err(Problem::internal("a request with an idempotency key has no route"));
        }
        let payload = serde_json::to_string(payload).map_err(|_| Problem::internal("a payload is not JSON"))?;
        let parameters = self.path_parameters.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        let says: Vec<&str> = [self.route.as_str()].into_iter().chain(parameters).chain([payload.as_str()]).collect();
        Ok(Some(IdempotencyClaim::new(&[caller, &self.route, key], &says)))
    }

    /// Refuses an idempotency key on a route that does not honour keys. A client that sends a key relies on it.
    ///
    /// # Errors
    /// `idempotency_key_unsupported`.
    pub fn refuse_idempotency_key(&self) -> Result<(), Problem> {
        if self.header(HEADER).is_none() { Ok(()) } else { Err(Problem::key_unsupported()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_key(key: &str) -> Request {
        let mut request = Request::default();
        request.headers.insert(HEADER.to_owned(), key.to_owned());
        request
    }

    #[test]
    fn a_key_is_1_to_255_visible_ascii_characters() {
        for key in ["k", "!", "~", "8e03978e-40d5-43dd-bc93-6894a57f9324", "\"quoted\"", &"x".repeat(255)] {
            assert_eq!(with_key(key).idempotency_key().ok(), Some(Some(key)));
            assert_eq!(with_key(key).required_idempotency_key().ok(), Some(key));
        }
        for key in ["", " ", "a b", "a, b", "é", "\u{fffd}", "a\t", "\x7f", &"x".repeat(256)] {
            for refused in [with_key(key).idempotency_key().err(), with_key(key).required_idempotency_key().err()] {
                assert_eq!(refused.expect("refused").code(), "invalid_idempotency_key", "{key:?}");
            }
        }
    }

    #[test]
    fn a_key_that_is_required_and_missing_is_asked_for() {
        assert_eq!(Request::default().idempotency_key().ok(), Some(None));
        let missing = Request::default().required_idempotency_key().expect_err("refused");
        assert_eq!(missing.code(), "idempotency_key_required");
    }

    #[test]
    fn a_route_that_takes_no_key_refuses_even_a_malformed_one() {
        assert!(Request::default().refuse_idempotency_key().is_ok());
        for key in ["k", ""] {
            let refused = with_key(key).refuse_idempotency_key().expect_err("refused");
            assert_eq!(refused.code(), "idempotency_key_unsupported");
        }
    }
}
