//! [`ThrottlingLimit`], [`Throttled`]: an answer by which `DynamoDB` throttled a request, with the limit that it names.

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::types::ThrottlingReason;
use aws_sdk_dynamodb::types::error::{
    ProvisionedThroughputExceededException, RequestLimitExceeded, ThrottlingException,
};
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// The limit for which `DynamoDB` throttled a request. Source:
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/throttling-diagnosing.html>
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ThrottlingLimit {
    /// One range of keys gives 1,000 write units and 3,000 read units a second. A key of this request, or a neighbour of
    /// it, is hot. Spread the changes over more keys, or make fewer of them.
    KeyRange,
    /// The quota of the account for one table on demand. Ask AWS for more.
    Account,
    /// The maximum that was set for the table or the index on demand. Raise it.
    TableMaximum,
    /// The capacity that was provisioned for the table or the index. Provision more.
    Provisioned,
    /// The answer names no limit. That of a transaction never does.
    Unnamed,
}

impl ThrottlingLimit {
    /// As log lines and metrics name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ThrottlingLimit::KeyRange => "key_range",
            ThrottlingLimit::Account => "account",
            ThrottlingLimit::TableMaximum => "table_maximum",
            ThrottlingLimit::Provisioned => "provisioned",
            ThrottlingLimit::Unnamed => "unnamed",
        }
    }

    /// A reason has the form resource, operation, limit: `TableWriteKeyRangeThroughputExceeded`.
    fn of_reason(reason: &str) -> Self {
        let limits = [
            ("KeyRangeThroughputExceeded", ThrottlingLimit::KeyRange),
            ("AccountLimitExceeded", ThrottlingLimit::Account),
            ("MaxOnDemandThroughputExceeded", ThrottlingLimit::TableMaximum),
            ("ProvisionedThroughputExceeded", ThrottlingLimit::Provisioned),
        ];
        limits.into_iter().find(|(name, _)| reason.ends_with(name)).map_or(ThrottlingLimit::Unnamed, |(_, limit)| limit)
    }
}

impl fmt::Display for ThrottlingLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ThrottlingLimit::KeyRange => "a key is hot: its range of keys gives no more units a second",
            ThrottlingLimit::Account => "the account's quota for one table is used up",
            ThrottlingLimit::TableMaximum => "the maximum that was set for the table or index is reached",
            ThrottlingLimit::Provisioned => "the capacity that was provisioned for the table or index is used up",
            ThrottlingLimit::Unnamed => "the answer names no limit",
        })
    }
}

/// An error of the service that throttled a request.
#[derive(Debug)]
pub(crate) struct Throttled {
    pub limit: ThrottlingLimit,
    /// The table or index, as the answer names it.
    resource: Option<String>,
    /// How long the service asks to wait before the next send.
    pub retry_after: Option<Duration>,
    source: Box<dyn Error + Send + Sync>,
}

impl Throttled {
    pub(crate) fn new(error: impl Error + Send + Sync + 'static, retry_after: Option<Duration>) -> Self {
        // DynamoDB may give several reasons. The first names a limit of the request itself.
        let reason = error.source().and_then(reasons).and_then(<[_]>::first);
        let limit =
            reason.and_then(|reason| reason.reason()).map_or(ThrottlingLimit::Unnamed, ThrottlingLimit::of_reason);
        let resource = reason.and_then(|reason| reason.resource()).map(ToOwned::to_owned);
        Throttled { limit, resource, retry_after, source: error.into() }
    }

    /// `None` if the request was not throttled.
    pub(crate) fn of<'e>(error: &'e (dyn Error + Send + Sync + 'static)) -> Option<&'e Self> {
        error.downcast_ref()
    }
}

impl fmt::Display for Throttled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "throttled, because {}", self.limit)?;
        self.resource.iter().try_for_each(|resource| write!(f, " ({resource})"))
    }
}

impl Error for Throttled {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

fn reasons<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e [ThrottlingReason]> {
    let of_throttling = error.downcast_ref().map(ThrottlingException::throttling_reasons);
    let of_provisioned = || error.downcast_ref().map(ProvisionedThroughputExceededException::throttling_reasons);
    let of_requests = || error.downcast_ref().map(RequestLimitExceeded::throttling_reasons);
    of_throttling.or_else(of_provisioned).or_else(of_requests)
}

/// The header `x-amz-retry-after`, in milliseconds.
pub(crate) fn retry_after(answer: &HttpResponse) -> Option<Duration> {
    answer.headers().get("x-amz-retry-after")?.parse().ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
    use aws_smithy_types::body::SdkBody;

    #[test]
    fn the_first_reason_names_the_limit() {
        let reasons = ["TableWriteKeyRangeThroughputExceeded", "TableWriteAccountLimitExceeded"];
        let reasons = reasons.map(|reason| ThrottlingReason::builder().reason(reason).build());
        let hot = ThrottlingException::builder().set_throttling_reasons(Some(reasons.into())).build();
        let throttled = Throttled::new(UpdateItemError::ThrottlingException(hot), None);
        assert_eq!(throttled.limit, ThrottlingLimit::KeyRange);
        assert!(throttled.source().is_some(), "the error of the SDK: {throttled}");
    }

    #[test]
    fn a_wait_that_is_no_number_of_milliseconds_is_none() {
        for (header, expected) in [(Some("250"), Some(250)), (Some("soon"), None), (Some("-1"), None), (None, None)] {
            let mut answer = HttpResponse::new(400.try_into().expect("a status"), SdkBody::empty());
            if let Some(header) = header {
                answer.headers_mut().insert("x-amz-retry-after", header);
            }
            assert_eq!(retry_after(&answer), expected.map(Duration::from_millis), "{header:?}");
        }
    }
}
