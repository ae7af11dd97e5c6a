//! A user's own SDK client, with credentials from a container's endpoint and not from the environment.

use crate::harness::server::{Server, listen, patiently};
use axum::Router;
use axum::routing::get;
use serde_json::json;
use std::process::Stdio;
use tokio::process::Command;

const ACCESS_KEY: &str = "AKIDOFTHECONTAINER";

/// Hands out the credentials, as the endpoint of a container does. Gives where.
///
/// Source: <https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html>
async fn container() -> String {
    let credentials = json!({
        "AccessKeyId": ACCESS_KEY,
        "SecretAccessKey": "a secret",
        "Token": "a token",
        "Expiration": "2099-01-01T00:00:00Z",
    });
    let address = listen(Router::new().route("/creds", get(|| async move { credentials.to_string() }))).await;
    format!("http://{address}/creds")
}

/// The reader's output about a note, with nothing in its environment but this.
pub(super) async fn read(environment: &[(&str, &str)]) -> String {
    let reader = Command::new(env!("CARGO_BIN_EXE_reader"))
        .arg("n-1")
        .env_clear()
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output();
    let output = patiently("a read", reader).await.expect("the binary is built");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// A server with the note that [`read`] reads.
pub async fn server_with_note() -> Server {
    let server = Server::start(&[("Notes", "noteId")]).await;
    let note = json!({
        "noteId": {"S": "n-1"},
        "text": {"S": "read"},
        "_version": {"N": "1"},
        "_incarnation": {"B": "AAAAAAAAAAA="},
        "_writes": {"M": {}},
    });
    server.engine.raw("PutItem", &json!({"TableName": "Notes", "Item": note}));
    server
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_users_client_with_the_credentials_of_a_container_signs_the_requests_of_a_store() {
    let server = server_with_note().await;
    let said = read(&[
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", container().await.as_str()),
        ("AWS_ENDPOINT_URL_DYNAMODB", server.endpoint().as_str()),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_CONFIG_FILE", "/dev/null"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ])
    .await;
    assert_eq!(said, "read");
    let authorizations = server.authorizations();
    let signed = |authorization: &String| authorization.contains(&format!("Credential={ACCESS_KEY}/"));
    assert!(!authorizations.is_empty() && authorizations.iter().all(signed), "{authorizations:?}");
}
