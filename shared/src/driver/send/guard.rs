//! [`Guard`]: keeps a request that was signed too late from leaving, sees whether a request left, and keeps an answer that
//! did not come whole from counting.

use crate::clock::Clock;
use aws_sdk_dynamodb::config::interceptors::{
    AfterDeserializationInterceptorContextRef, BeforeSerializationInterceptorContextRef,
    BeforeTransmitInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{
    Builder, ConfigBag, Intercept, RuntimeComponents, SharedInterceptor, StalledStreamProtectionConfig,
};
use aws_sdk_dynamodb::error::BoxError;
use std::cell::Cell;
use std::error::Error;
use std::time::SystemTime;

tokio::task_local! {
    /// The send whose request the SDK is working on. A client of `client_from_env` has none when its user sends.
    pub(super) static SENDING: Sending;
}

pub(super) struct Sending {
    /// The time by which the request must be signed, by this clock. A read may be signed at any time.
    signed_by: Option<(Clock, SystemTime)>,
    seen: Cell<Seen>,
}

/// The last step of a request that the guard saw.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Seen {
    Nothing,
    Begun,
    Left,
}

impl Sending {
    pub(super) fn new(signed_by: Option<(Clock, SystemTime)>) -> Self {
        Sending { signed_by, seen: Cell::new(Seen::Nothing) }
    }

    /// Whether the request began and never left: it had no credentials, no endpoint or a late signature. A request that
    /// the guard did not see may have left.
    pub(super) fn never_left(&self) -> bool {
        self.seen.get() == Seen::Begun
    }

    /// What has left stays so, even if a user's connector sends another request before it sends this one.
    fn begin(&self) {
        self.seen.set(self.seen.get().max(Seen::Begun));
    }

    fn leave(&self) -> Result<(), BoxError> {
        if self.signed_by.as_ref().is_some_and(|(clock, latest)| clock.now() > *latest) {
            return Err(SignedTooLate.into());
        }
        self.seen.set(Seen::Left);
        Ok(())
    }
}

/// Stands in the client, not in each request, because the SDK merges the settings of a request for each send.
#[derive(Clone, Debug)]
pub(crate) struct Guard;

impl Guard {
    /// Puts the guard into a client, where no request can switch it off. If one could, the SDK would ask at each of its
    /// steps whether it did, which takes more than 10,000 instructions an update. The protection against stalled streams
    /// goes, because each send of this crate has a timeout.
    pub(crate) fn stand_in(config: &mut Builder) {
        config.push_interceptor(SharedInterceptor::permanent(Guard));
        config.set_stalled_stream_protection(Some(StalledStreamProtectionConfig::disabled()));
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the request was signed too late, and was not sent")]
pub(super) struct SignedTooLate;

pub(super) fn is_too_late(error: &(dyn Error + 'static)) -> bool {
    error.is::<SignedTooLate>() || error.source().is_some_and(is_too_late)
}

impl Intercept for Guard {
    /// A client with an interceptor of this name is taken as guarded, so a user's may not have it by chance.
    fn name(&self) -> &'static str {
        concat!("fencepost::Guard ", env!("CARGO_PKG_VERSION"))
    }

    fn read_before_execution(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let _ = SENDING.try_with(Sending::begin);
        Ok(())
    }

    /// Looks at the clock when the request has been signed, just before it leaves. So its time limit bounds the date of
    /// the signature, even if the process stood still before the signing.
    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        SENDING.try_with(Sending::leave).unwrap_or(Ok(()))
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

/// The header with the CRC-32 of the body. `DynamoDB` sends it with each answer, and some other engines do.
const CHECKSUM: &str = "x-amz-crc32";

/// Why an answer did not come whole.
///
/// The SDK reads a body without bytes as `{}`. For a write this would be a success, for a read "there is no item".
/// `DynamoDB` never sends such a body. Nor does the SDK look at the checksum. So a body changed on its way would pass,
/// as long as it is still JSON.
fn problem(body: &[u8], checksum: Option<&str>) -> Option<&'static str> {
    if body.is_empty() {
        return Some("the answer has no body");
    }
    let fits = |said: &str| said.trim().parse() == Ok(crc32fast::hash(body));
    checksum.is_some_and(|said| !fits(said)).then_some("the answer does not fit its checksum")
}

#[cfg(test)]
mod tests {
    use super::super::Sender;
    use super::super::classify::tests::{leave, sender_to};
    use super::super::outcome::SendOutcome;
    #[cfg(feature = "lambda-without-tls")]
    use super::{super::sender::guarded, Guard, Intercept};
    use super::{is_too_late, problem};
    use crate::clock::Clock;
    use aws_credential_types::provider::error::CredentialsError;
    use aws_credential_types::provider::future::ProvideCredentials as ProvidedCredentials;
    use aws_sdk_dynamodb::Client;
    use aws_sdk_dynamodb::config::{Config, Credentials, ProvideCredentials, Region};
    use fencepost_core::condition::{ConditionalWrite, Operation};
    use fencepost_core::format::item::Attributes;
    use std::collections::HashMap;
    use std::time::Duration;

    const MINUTE: Duration = Duration::from_mins(1);

    /// A client of `client_from_env` is guarded already: making another one would read the TLS roots again.
    #[cfg(feature = "lambda-without-tls")]
    #[test]
    fn every_client_is_guarded_once() {
        let retrying = Config::builder().behavior_version_latest().build();
        for client in [crate::lambda::client_from_env(), Client::from_conf(retrying)] {
            let guarded = guarded(&guarded(&client));
            let guards = guarded.config().interceptors().filter(|interceptor| interceptor.name() == Guard.name());
            assert_eq!((guards.count(), guarded.config().framework_metadata().len()), (1, 1));
        }
    }

    #[test]
    fn a_request_never_left_only_if_the_guard_saw_it_begin_and_not_leave() {
        let sending = super::Sending::new(None);
        assert!(!sending.never_left(), "it may have left unseen");
        sending.begin();
        assert!(sending.never_left());
        sending.leave().expect("in time");
        sending.begin();
        assert!(!sending.never_left());
    }

    /// They are wrong settings. To take them for lost answers would leave each change unknown.
    #[tokio::test(start_paused = true)]
    async fn a_request_without_a_region_credentials_or_an_account_was_not_applied_and_what_will_stay_so_is_rejected() {
        let complete = || {
            let credentials = Credentials::new("test", "test", None, None, "tests");
            let config = Config::builder().behavior_version_latest().credentials_provider(credentials);
            config.region(Region::new("eu-west-1"))
        };
        let mut without_region = complete();
        without_region.set_region(None);
        let mut without_credentials = complete();
        without_credentials.set_credentials_provider(None);
        let without_account = complete().account_id_endpoint_mode("required".parse().expect("a mode"));
        let not_loaded = complete().credentials_provider(NotLoaded);
        let configs = [
            ("region", without_region, true),
            ("credentials", not_loaded, true),
            ("provider of credentials", without_credentials, false),
            ("account", without_account, false),
        ];
        for (missing, config, is_known) in configs {
            let sender = Sender::new(&Client::from_conf(config.build()));
            let in_a_minute = leave(Some(sender.clock.now() + MINUTE));
            let send = async || sender.transact(Vec::new(), "token".to_owned(), in_a_minute).await.0;
            if missing == "credentials" {
                // A machine may hand them out a moment later.
                for _ in 0..2 {
                    let together = tokio::join!(send(), send(), send());
                    for outcome in <[SendOutcome; 3]>::from(together) {
                        assert!(matches!(outcome, SendOutcome::NotApplied(_)), "too soon: {outcome:?}");
                    }
                }
            }
            let outcome = send().await;
            if missing == "credentials" {
                sender.reach.answered();
                assert!(matches!(send().await, SendOutcome::NotApplied(_)), "it had some");
            }
            match outcome {
                SendOutcome::Rejected(source) if is_known => assert!(source.to_string().contains(missing), "{source}"),
                SendOutcome::NotApplied(_) if !is_known => {}
                other => panic!("no {missing}: {other:?}"),
            }
        }
    }

    #[derive(Debug)]
    struct NotLoaded;

    impl ProvideCredentials for NotLoaded {
        fn provide_credentials<'a>(&'a self) -> ProvidedCredentials<'a>
        where
            Self: 'a,
        {
            ProvidedCredentials::new(async {
                tokio::task::yield_now().await; // so that sends that begin together look together
                Err(CredentialsError::not_loaded("nobody has any"))
            })
        }
    }

    /// No listener is at the address. So a request sent there is refused.
    #[tokio::test]
    async fn a_request_that_was_signed_too_late_does_not_leave() {
        let mut sender = sender_to("http://127.0.0.1:1");
        let now = sender.clock.now();
        sender.clock = Clock::new(move || now);
        let key = Attributes::new();
        let update = Operation::Update { key: key.clone(), expression: "SET a = b".to_owned() };
        let actions = [update, Operation::Put { item: key.clone() }, Operation::Delete { key }];
        for (signed_by, is_late) in [(now + MINUTE, false), (now, false), (now - MINUTE, true)] {
            let send = leave(Some(signed_by));
            let (SendOutcome::NotApplied(source), _) = sender.transact(Vec::new(), "token".to_owned(), send).await
            else {
                panic!("nothing was sent")
            };
            assert_eq!(is_too_late(&*source), is_late, "{signed_by:?}: {source:?}");
            for action in actions.clone() {
                let (names, values) = (HashMap::new(), HashMap::new());
                let write = ConditionalWrite { action, condition: "a = b".into(), names, values, returning: None };
                let (SendOutcome::NotApplied(source), _) = sender.write("t", write, send).await else {
                    panic!("nothing was sent")
                };
                assert_eq!(is_too_late(&*source), is_late, "{signed_by:?}: {source:?}");
            }
        }
    }

    #[test]
    fn a_body_without_bytes_and_one_that_does_not_fit_its_checksum_are_refused() {
        // The CRC-32 of `123456789` is the check value of its definition.
        for (body, checksum, is_whole) in [
            ("123456789", Some("3421780262"), true),
            ("123456789", None, true),
            ("{}", Some(" 2745614147 "), true),
            ("123456780", Some("3421780262"), false),
            ("{}", Some("no number"), false),
            ("", None, false),
            ("", Some("0"), false),
        ] {
            assert_eq!(problem(body.as_bytes(), checksum).is_none(), is_whole, "{body} {checksum:?}");
        }
    }
}
