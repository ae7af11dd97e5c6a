//! Why a request is of no use until the set-up is corrected. [`Rejection`]: what `DynamoDB` answered, with its code and message.
//! [`NotConfigured`]: what the client lacks to send anything.

use crate::error::Source;
use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::config::Config;
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::CancellationReason;
use std::error::Error;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};

#[derive(Debug, thiserror::Error)]
#[error("{said}")]
pub(crate) struct Rejection {
    /// The code of each step that was a reason. A request that is no transaction is step 0.
    codes: Vec<Option<String>>,
    said: String,
    source: Source,
}

impl Rejection {
    pub(crate) fn new(error: impl ProvideErrorMetadata + Error + Send + Sync + 'static) -> Self {
        let said = sentence(error.code(), error.message());
        Rejection { codes: vec![error.code().map(str::to_owned)], said, source: error.into() }
    }

    pub(crate) fn of_steps(reasons: &[CancellationReason], error: impl Error + Send + Sync + 'static) -> Self {
        let codes: Vec<_> = reasons.iter().map(|reason| reason.code.clone().filter(|code| code != "None")).collect();
        let steps = reasons.iter().enumerate().filter(|(step, _)| codes[*step].is_some());
        let said: Vec<_> = steps
            .map(|(step, reason)| format!("step {}: {}", step + 1, sentence(reason.code(), reason.message())))
            .collect();
        Rejection { codes, said: said.join("; "), source: error.into() }
    }

    /// Names the operation, and the table unless it is a request about several.
    pub(crate) fn of_request(operation: &str, table: Option<&str>, source: Source) -> Source {
        let place = table.map_or_else(|| operation.to_owned(), |table| format!("{operation} of the table {table}"));
        Self::altered(source, |rejection| rejection.said = format!("{place}: {}", rejection.said))
    }

    /// Drops the code, because it is that of a whole transaction and of no step.
    pub(crate) fn of_no_step(source: Source) -> Source {
        Self::altered(source, |rejection| rejection.codes.clear())
    }

    fn altered(mut source: Source, alter: impl FnOnce(&mut Rejection)) -> Source {
        if let Some(rejection) = source.downcast_mut() {
            alter(rejection);
        }
        source
    }

    /// The codes of a rejected request, one for each step. There are none if the request never left, or if a transaction was
    /// rejected as a whole.
    pub(crate) fn codes_of(source: &Source) -> &[Option<String>] {
        source.downcast_ref().map_or(&[], |rejection: &Rejection| &rejection.codes)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{lacks}")]
pub(crate) struct NotConfigured {
    lacks: &'static str,
    source: Source,
}

/// What a client has learnt about its set-up from its sends.
#[derive(Default, Debug)]
pub(crate) struct Reach {
    was_answered: AtomicBool,
    /// How many looks found no credentials. Those of sends that began together count once, because they share a look.
    fruitless: AtomicU32,
}

/// So many looks must find no credentials before nobody expects any: a look for those of a machine may fail once.
const FRUITLESS: u32 = 3;

impl Reach {
    /// The service has answered. So the client had credentials, and may find some again.
    pub(crate) fn answered(&self) {
        self.was_answered.store(true, Relaxed);
    }

    pub(crate) fn fruitless(&self) -> u32 {
        self.fruitless.load(Relaxed)
    }

    /// Why a request that did not leave will never do so. If it may leave later, gives back its error. `before`: how many
    /// looks had found nothing when it began.
    pub(crate) fn lacks(&self, config: &Config, before: u32, source: Source) -> Result<NotConfigured, Source> {
        let lacks = match credentials_in(&*source) {
            Some(CredentialsError::CredentialsNotLoaded(_)) => {
                "it found no credentials; a client of lambda::client_from_env takes them only from AWS_ACCESS_KEY_ID, \
                 AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, which Lambda sets; for one with the settings of aws_config, \
                 an IAM role of the program or AWS_PROFILE is enough too"
            }
            Some(CredentialsError::InvalidConfiguration(_)) => {
                "the configuration of its credentials is not valid; correct the profile or the variables that it names"
            }
            None if config.region().is_none() => {
                return Ok(NotConfigured {
                    lacks: "it has no region; set AWS_REGION, or the region of its configuration",
                    source,
                });
            }
            _ => return Err(source),
        };
        let looks = before.saturating_add(1);
        self.fruitless.fetch_max(looks, Relaxed);
        let is_final = !self.was_answered.load(Relaxed) && looks >= FRUITLESS;
        if is_final { Ok(NotConfigured { lacks, source }) } else { Err(source) }
    }
}

/// What to correct.
fn remedy(code: &str) -> &'static str {
    match code {
        "ResourceNotFoundException" => "; create the table, or correct its name, the region or the account",
        "AccessDeniedException" => "; allow this action in the IAM policy of the program",
        "ExpiredTokenException" => "; renew the credentials",
        "InvalidSignatureException" | "RequestExpired" | "RequestTimeTooSkewed" => {
            "; set the clock of this machine, or correct the secret key"
        }
        "UnrecognizedClientException" => "; correct the credentials",
        "ValidationException" => {
            "; correct what it names (if that is a key or an index, Store::check_table says what the table lacks)"
        }
        _ => "",
    }
}

fn credentials_in<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e CredentialsError> {
    error.downcast_ref().or_else(|| credentials_in(error.source()?))
}

/// What the service said, and what to correct.
fn sentence(code: Option<&str>, message: Option<&str>) -> String {
    let code = code.unwrap_or("no code");
    format!("{code}: {}{}", message.unwrap_or("no message"), remedy(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_dynamodb::error::ErrorMetadata;
    use aws_sdk_dynamodb::operation::put_item::PutItemError;

    #[test]
    fn a_rejection_says_what_dynamodb_said_and_which_steps_were_meant() {
        let denied = || ErrorMetadata::builder().code("AccessDeniedException").message("no such grant").build();
        let one: Source = Rejection::new(PutItemError::generic(denied())).into();
        assert_eq!(one.to_string(), format!("AccessDeniedException: no such grant{}", remedy("AccessDeniedException")));
        assert_eq!(Rejection::codes_of(&one), [Some("AccessDeniedException".to_owned())]);
        let one = Rejection::of_request("PutItem", Some("Devices"), one);
        let said = "PutItem of the table Devices: AccessDeniedException: no such grant; allow this action in the IAM \
                    policy of the program";
        assert_eq!(one.to_string(), said);
        let whole = Rejection::of_no_step(one);
        assert_eq!((whole.to_string().as_str(), Rejection::codes_of(&whole).len()), (said, 0));
        let reason = |code: &str| CancellationReason::builder().code(code).build();
        let large = CancellationReason::builder().code("ValidationError").message("too large").build();
        let steps: Source =
            Rejection::of_steps(&[reason("None"), large, reason("AccessDenied")], std::fmt::Error).into();
        assert_eq!(steps.to_string(), "step 2: ValidationError: too large; step 3: AccessDenied: no message");
        assert_eq!(Rejection::codes_of(&steps).iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, true]);
        assert_eq!(Rejection::codes_of(&"never sent".into()).len(), 0);
    }
}
