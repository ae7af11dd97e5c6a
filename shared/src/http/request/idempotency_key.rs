//! `Idempotency-Key`: the name that a client gives to one change, and repeats each time that it sends the change.

use super::message::Request;
use crate::http::problem::Problem;
use crate::idempotency::IdempotencyClaim;
use serde::Serialize;

const HEADER: &str = "idempotency-key";
const FIELD: &str = "header:idempotency-key";

const MAX_KEY: usize = 255;

impl Request {
    /// The idempotency key, if there is one: 1 to 255 visible ASCII characters without a comma.
    ///
    /// A gateway joins two such headers with a comma. So a key with a comma is refused, because it may be two keys.
    ///
    /// # Errors
    /// `invalid_idempotency_key`. The key is not cut or cleaned, because another key would be another promise.
    pub fn idempotency_key(&self) -> Result<Option<&str>, Problem> {
        let Some(key) = self.header(HEADER) else { return Ok(None) };
        if (1..=MAX_KEY).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',') {
            Ok(Some(key))
        } else {
            let detail = "send one idempotency key of 1 to 255 visible ASCII characters, without spaces and commas";
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
        IdempotencyClaim::new(&[caller, &self.route, key], &says)
            .map(Some)
            .map_err(|error| Problem::internal(error.to_string()))
    }

    /// Refuses an idempotency key on a route that does not honour keys. A client that sends a key relies on it.
    ///
    /// # Errors
    /// `idempotency_key_unsupported`.
    pub fn refuse_idempotency_key(&self) -> Result<(), Problem> {
        if self.header(HEADER).is_none() { Ok(()) } else { Err(Problem::key_unsupported()) }
    }
}
