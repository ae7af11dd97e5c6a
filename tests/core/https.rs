//! Clients over real sockets: the HTTPS client of the functions, and a user's own client with the credentials of a
//! container.

use super::deadlines::is_unavailable_at;
use crate::harness::server::{Server, listen, patiently};
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, retry::RetryConfig};
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::{Client, Config};
use axum::Router;
use axum::routing::get;
use fencepost::lambda::https_client;
use serde_json::json;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

/// A self-signed certificate for `localhost`, valid from 2020 to 2120, with its key.
const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/core/tls/localhost.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/core/tls/localhost.key");

/// Speaks TLS for a server without it. Gives the endpoint.
async fn tls_for(server: &Server) -> String {
    let certificate = CertificateDer::from_pem_file(CERTIFICATE).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(KEY).expect("a key");
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key);
    let acceptor = TlsAcceptor::from(Arc::new(config.expect("the key is that of the certificate")));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let endpoint = format!("https://localhost:{}", listener.local_addr().expect("bound").port());
    let address = server.address.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (acceptor, address) = (acceptor.clone(), address.clone());
            tokio::spawn(async move {
                let mut client = acceptor.accept(client).await?;
                let mut server = TcpStream::connect(address).await?;
                tokio::io::copy_bidirectional(&mut client, &mut server).await
            });
        }
    });
    endpoint
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_is_read_over_tls_from_a_server_that_the_environment_trusts() {
    let server = server_with_note().await;
    let said = read(&[
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_ENDPOINT_URL_DYNAMODB", tls_for(&server).await.as_str()),
        ("AWS_REGION", "eu-west-1"),
        ("SSL_CERT_FILE", CERTIFICATE),
    ])
    .await;
    assert_eq!(said, "read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_sent_to_a_server_that_nobody_trusts() {
    let server = Server::start(&[]).await;
    is_unavailable_at(&tls_for(&server).await, https_client()).await;
    assert_eq!(server.answered(), 0);
}

/// Connecting includes TLS: a silent server is never connected to over `https`.
#[tokio::test(start_paused = true)]
async fn connecting_and_waiting_for_an_answer_end_with_the_timeouts_of_the_sdk() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("bound");
    let second = Duration::from_secs(1);
    let timeouts = TimeoutConfig::builder();
    for (scheme, timeouts) in
        [("https", timeouts.clone().connect_timeout(second)), ("http", timeouts.read_timeout(second))]
    {
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-west-1"))
            .credentials_provider(Credentials::new("test", "test", None, None, "tests"))
            .endpoint_url(format!("{scheme}://{address}"))
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeouts.build())
            .http_client(https_client())
            .build();
        let error = Client::from_conf(config).list_tables().send().await.expect_err("nobody answers");
        assert!(matches!(&error, SdkError::DispatchFailure(failure) if failure.is_timeout()), "{scheme}: {error:?}");
    }
}

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

/// The reader's output for a note, with only this environment.
async fn read(environment: &[(&str, &str)]) -> String {
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

/// A server with the note for [`read`].
async fn server_with_note() -> Server {
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
