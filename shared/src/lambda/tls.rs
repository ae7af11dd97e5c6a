//! The TLS of [`https_client`](super::https_client).

use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;

pub(super) type Connections = HttpsConnector<Tcp>;

pub(super) fn connections(mut tcp: Tcp) -> Connections {
    tcp.enforce_http(false); // the connector above it handles `https`
    HttpsConnector::from((tcp, tls()))
}

fn tls() -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(authorities());
    if roots.is_empty() {
        tracing::warn!("no certificate authority was found, so no https endpoint will be trusted");
    }
    ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("AWS-LC has cipher suites for TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// The trusted authorities of the system, from one file.
///
/// Most systems have them twice, in a bundle and in a folder. To read both would double a function's start. If the
/// environment names the authorities, or if there is no bundle, they are looked for everywhere.
fn authorities() -> Vec<CertificateDer<'static>> {
    let bundle = (!openssl_probe::has_ssl_cert_env_vars())
        .then(|| openssl_probe::probe().cert_file)
        .flatten()
        .and_then(|path| std::fs::read(path).ok());
    match bundle {
        Some(bundle) => CertificateDer::pem_slice_iter(&bundle).flatten().collect(),
        None => rustls_native_certs::load_native_certs().certs,
    }
}
