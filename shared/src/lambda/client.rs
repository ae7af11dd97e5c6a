//! The `DynamoDB` client of a function. Lambda puts all its settings into the environment.
//!
//! The default chain of `aws_config` would also look at profiles, SSO, containers and the metadata of the machine. A
//! function on Lambda has none of these, and would pay with 0.8 MB of program. Elsewhere, a program gives its own client to
//! [`Store::new`](crate::Store::new).

use super::https::https_client;
use crate::driver::send::{Guard, framework};
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{Builder, SharedCredentialsProvider};
use std::env;

/// Creates a client from the environment.
///
/// | variable | meaning |
/// |---|---|
/// | `AWS_REGION`, or `AWS_DEFAULT_REGION` | the region |
/// | `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` | the credentials |
/// | `AWS_ENDPOINT_URL_DYNAMODB`, or `AWS_ENDPOINT_URL` | another endpoint than that of the region |
/// | `AWS_USE_FIPS_ENDPOINT`, `AWS_USE_DUALSTACK_ENDPOINT` | `true`: that kind of endpoint |
/// | `AWS_ACCOUNT_ID`, `AWS_ACCOUNT_ID_ENDPOINT_MODE` | the endpoint of this account: `preferred` (the default), `disabled` or `required` |
/// | `SSL_CERT_FILE`, `SSL_CERT_DIR` | the trusted authorities, instead of those of the system |
///
/// Sends nothing. The first request fails if a setting is missing. A request that you send with it directly is not sent
/// again, waits for its answer without a limit unless you give it a timeout, and fails if its answer does not agree with
/// the checksum of `DynamoDB`.
pub fn client_from_env() -> Client {
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION")).map(Region::new))
        .credentials_provider(SharedCredentialsProvider::new(EnvironmentVariableCredentialsProvider::new()))
        .retry_config(RetryConfig::disabled()) // this crate sends again itself, because it must see every lost answer
        .http_client(https_client());
    config.set_endpoint_url(variable("AWS_ENDPOINT_URL_DYNAMODB").or_else(|| variable("AWS_ENDPOINT_URL")));
    config.set_use_fips(is_true("AWS_USE_FIPS_ENDPOINT"));
    config.set_use_dual_stack(is_true("AWS_USE_DUALSTACK_ENDPOINT"));
    config.set_account_id_endpoint_mode(variable("AWS_ACCOUNT_ID_ENDPOINT_MODE").and_then(|mode| mode.parse().ok()));
    config.set_framework_metadata(framework());
    let mut config = Builder::from(&config.build());
    Guard::stand_in(&mut config);
    Client::from_conf(config.build())
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn is_true(name: &str) -> Option<bool> {
    variable(name).map(|value| value.eq_ignore_ascii_case("true"))
}
