//! [`Guard`]: keeps a request that was signed too late from leaving, and an answer that did not come whole from counting.

use super::whole::{CHECKSUM, problem};
use crate::clock::Clock;
use aws_sdk_dynamodb::config::interceptors::{
    AfterDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use std::time::SystemTime;

tokio::task_local! {
    /// The time by which the request of this send must be signed, by this clock. A read may be signed at any time.
    pub(super) static SIGNED_BY: Option<(Clock, SystemTime)>;
}

/// Stands in the client, not in each request, because the SDK merges the settings of a request for each send.
#[derive(Clone, Debug)]
pub(crate) struct Guard;

#[derive(Debug, thiserror::Error)]
#[error("the request was signed too late, and was not sent")]
pub(super) struct SignedTooLate;

impl Intercept for Guard {
    /// A client with an interceptor of this name is taken as guarded, so a user's may not have it by chance.
    fn name(&self) -> &'static str {
        concat!("fencepost::Guard ", env!("CARGO_PKG_VERSION"))
    }

    /// Looks at the clock when the request has been signed, just before it leaves. So its time limit bounds the date of
    /// the signature, even if the process stood still before the signing.
    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let is_late =
            |limit: &Option<(Clock, SystemTime)>| limit.as_ref().is_some_and(|(clock, latest)| clock.now() > *latest);
        // Outside of a send, a client of `client_from_env` sends for its user.
        if SIGNED_BY.try_with(is_late).unwrap_or(false) { Err(SignedTooLate.into()) } else { Ok(()) }
    }

    /// Looks at the bytes of the answer after the SDK has read it. A refused answer proves nothing.
    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let answer = context.response();
        // Where the body broke off, the SDK has an error already and keeps no body in memory.
        let Some(body) = answer.body().bytes() else { return Ok(()) };
        match problem(body, answer.headers().get(CHECKSUM)) {
            Some(problem) => Err(problem.into()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Send;
    use super::super::classify::tests::sender_to;
    use super::super::outcome::SendOutcome;
    #[cfg(feature = "lambda-without-tls")]
    use super::{super::sender::guarded, Guard, Intercept};
    use crate::clock::Clock;
    use crate::protocol::condition::{Action, ConditionalWrite};
    use crate::protocol::item::Attributes;
    use std::collections::HashMap;
    use std::error::Error;
    use std::time::Duration;

    fn is_too_late(error: &(dyn Error + 'static)) -> bool {
        error.is::<super::SignedTooLate>() || error.source().is_some_and(is_too_late)
    }

    /// A client of `client_from_env` is guarded already: making another one would read the TLS roots again.
    #[cfg(feature = "lambda-without-tls")]
    #[test]
    fn every_client_is_guarded_once() {
        let retrying = aws_sdk_dynamodb::Config::builder().behavior_version_latest().build();
        for client in [crate::lambda::client_from_env(), aws_sdk_dynamodb::Client::from_conf(retrying)] {
            let guarded = guarded(&guarded(&client));
            let guards = guarded.config().interceptors().filter(|interceptor| interceptor.name() == Guard.name());
            assert_eq!((guards.count(), guarded.config().framework_metadata().len()), (1, 1));
        }
    }

    /// No listener is at the address. So a request sent there is refused.
    #[tokio::test]
    async fn a_request_that_was_signed_too_late_does_not_leave() {
        let mut sender = sender_to("http://127.0.0.1:1");
        let now = sender.clock.now();
        sender.clock = Clock::new(move || now);
        let minute = Duration::from_mins(1);
        let key = Attributes::new();
        let update = Action::Update { key: key.clone(), expression: "SET a = b".to_owned() };
        let actions = [update, Action::Put { item: key.clone() }, Action::Delete { key }];
        for (signed_by, is_late) in [(now + minute, false), (now, false), (now - minute, true)] {
            let send = Send { timeout: minute, signed_by, mismatches: 0 };
            let SendOutcome::NotApplied(source) = sender.transact(Vec::new(), "token".to_owned(), send).await else {
                panic!("nothing was sent")
            };
            assert_eq!(is_too_late(&*source), is_late, "{signed_by:?}: {source:?}");
            for action in actions.clone() {
                let (names, values) = (HashMap::new(), HashMap::new());
                let write = ConditionalWrite { action, condition: "a = b".into(), names, values, returning: None };
                let SendOutcome::NotApplied(source) = sender.write("t", write, send).await else {
                    panic!("nothing was sent")
                };
                assert_eq!(is_too_late(&*source), is_late, "{signed_by:?}: {source:?}");
            }
        }
    }
}
