//! Clients over real sockets: the HTTPS client of the functions, and a user's own client with the credentials of a
//! container.

use super::accounts::{Account, TABLE};
use super::deadlines::is_unavailable_at;
use crate::harness::clients::{Reply, client_whose};
use crate::harness::engine::{Engine, is_read};
use crate::harness::server::{Server, config_at, listen, patiently};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::error::SdkError;
use axum::Router;
use axum::routing::get;
use fencepost::lambda::https_client;
use fencepost::{Record, Store};
use serde_json::json;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

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
        let config = config_at(&format!("{scheme}://{address}"), https_client()).timeout_config(timeouts.build());
        let error = Client::from_conf(config.build()).list_tables().send().await.expect_err("nobody answers");
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

/// A user's own program, with only this environment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_is_read_over_tls_from_a_server_that_the_environment_trusts_with_the_credentials_of_a_container() {
    let server = Server::start(&[("Notes", "noteId")]).await;
    let note = json!({
        "noteId": {"S": "n-1"},
        "text": {"S": "read"},
        "_version": {"N": "1"},
        "_incarnation": {"B": "AAAAAAAAAAA="},
        "_writes": {"M": {}},
    });
    server.engine.raw("PutItem", &json!({"TableName": "Notes", "Item": note}));
    let (credentials, endpoint) = (container().await, tls_for(&server).await);
    let reader = Command::new(env!("CARGO_BIN_EXE_reader"))
        .arg("n-1")
        .env_clear()
        .envs([
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", credentials.as_str()),
            ("AWS_ENDPOINT_URL_DYNAMODB", endpoint.as_str()),
            ("AWS_REGION", "eu-west-1"),
            ("SSL_CERT_FILE", CERTIFICATE),
            ("AWS_CONFIG_FILE", "/dev/null"),
            ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output();
    let output = patiently("a read", reader).await.expect("the binary is built");
    assert_eq!(String::from_utf8(output.stdout).expect("text").trim(), "read");
    let authorizations = server.authorizations();
    let signed = |authorization: &String| authorization.contains(&format!("Credential={ACCESS_KEY}/"));
    assert!(!authorizations.is_empty() && authorizations.iter().all(signed), "{authorizations:?}");
}

const OTHERS: &str = "Others";

/// A client that never gets the answer to its first write. The write is applied.
fn client_without_the_first_answer(engine: &Engine) -> Client {
    client_whose(engine, |engine, writes, operation, body| {
        let answer = engine.answer(operation, body);
        if writes == 0 && !is_read(operation) { Reply::Never } else { answer.into() }
    })
}

/// Each change is sent by the same machine, and a client has one state for all of its tables.
#[tokio::test(start_paused = true)]
async fn a_first_write_after_a_read_of_another_table_is_sent_again_without_the_patience_of_a_first_connection() {
    for connected in [true, false] {
        let engine = Engine::with_tables(&[(TABLE, Account::PARTITION_KEY), (OTHERS, Account::PARTITION_KEY)]);
        let store = Store::new(&client_without_the_first_answer(&engine));
        if connected {
            store.table::<Account>(TABLE).get("a-1").await.expect("an answer");
        }
        let began = Instant::now();
        store.table::<Account>(OTHERS).create("a-1", &Account { balance: 1 }).await.expect("a free key");
        let took = began.elapsed();
        let expected = if connected { took < Duration::from_secs(1) } else { took >= Duration::from_secs(2) };
        assert!(expected, "after a read: {connected}, took {took:?}");
    }
}
