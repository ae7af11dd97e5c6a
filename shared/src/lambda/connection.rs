//! Opens the connections of [`https_client`](super::https_client).

use hyper_util::client::legacy::connect::HttpConnector as Tcp;

#[cfg(feature = "lambda")]
pub(super) use tls::{Connections, connections};

/// Without the feature `lambda` there is no TLS, and an endpoint with `https` is an error of each request.
#[cfg(not(feature = "lambda"))]
pub(super) type Connections = Tcp;

#[cfg(not(feature = "lambda"))]
pub(super) fn connections() -> Connections {
    tcp()
}

fn tcp() -> Tcp {
    let mut tcp = Tcp::new();
    tcp.set_nodelay(true);
    tcp
}

#[cfg(feature = "lambda")]
mod tls {
    use super::{Tcp, tcp};
    use hyper_rustls::HttpsConnector;
    use rustls::crypto::aws_lc_rs::default_provider;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use rustls::{ClientConfig, RootCertStore};
    use std::sync::Arc;

    pub type Connections = HttpsConnector<Tcp>;

    pub fn connections() -> Connections {
        let mut tcp = tcp();
        tcp.enforce_http(false); // the connector above it handles `https`
        HttpsConnector::from((tcp, settings()))
    }

    fn settings() -> ClientConfig {
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
}
