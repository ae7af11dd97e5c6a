//! The TLS of [`https_client`](super::https_client).

use aws_smithy_types::base64;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::iter;
use std::sync::Arc;

pub(super) type Connections = HttpsConnector<Tcp>;

pub(super) fn connections(mut tcp: Tcp) -> Connections {
    tcp.enforce_http(false); // the connector above it handles `https`
    HttpsConnector::from((tcp, tls()))
}

fn tls() -> ClientConfig {
    let roots = authorities();
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
fn authorities() -> RootCertStore {
    let bundle = (!openssl_probe::has_ssl_cert_env_vars())
        .then(|| openssl_probe::probe().cert_file)
        .flatten()
        .and_then(|path| File::open(path).ok());
    let mut roots = RootCertStore::empty();
    match bundle {
        Some(bundle) => roots.add_parsable_certificates(certificates(BufReader::new(bundle))),
        None => roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs),
    };
    roots
}

/// The certificates of a bundle in PEM. Anything else in it, and a certificate that is no base64, is left out.
///
/// `rustls` can read one too. Its decoder takes the same time for all bytes, as it must for private keys. That would be
/// more than half of what the processor does in a function's start.
fn certificates(mut bundle: impl BufRead) -> impl Iterator<Item = CertificateDer<'static>> {
    let (mut line, mut text) = (Vec::new(), Vec::new());
    iter::from_fn(move || {
        loop {
            line.clear();
            if bundle.read_until(b'\n', &mut line).ok()? == 0 {
                return None;
            }
            match line.trim_ascii() {
                b"-----BEGIN CERTIFICATE-----" => text.clear(),
                b"-----END CERTIFICATE-----" => {
                    if let Some(certificate) = str::from_utf8(&text).ok().and_then(|text| base64::decode(text).ok()) {
                        return Some(certificate.into());
                    }
                }
                line => text.extend_from_slice(line),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::pem::PemObject;

    #[test]
    fn a_bundle_is_read_as_rustls_reads_it() {
        let bundle =
            std::fs::read(openssl_probe::probe().cert_file.expect("this system has a bundle")).expect("a file");
        let ours: Vec<_> = certificates(&*bundle).collect();
        let theirs: Vec<_> = CertificateDer::pem_slice_iter(&bundle).map(|read| read.expect("a certificate")).collect();
        assert!(ours == theirs && ours.len() > 50, "{} and {} certificates", ours.len(), theirs.len());
    }

    #[test]
    fn comments_other_blocks_and_what_is_no_base64_are_left_out() {
        let bundle = b"# \xe9\n-----BEGIN CERTIFICATE-----\r\nAQ\r\nI=\r\n-----END CERTIFICATE-----\r\n\
            -----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n-----BEGIN PUBLIC KEY-----\nAAAA\n\
            -----END PUBLIC KEY-----\n-----BEGIN CERTIFICATE-----\nAwQ=\n-----END CERTIFICATE-----";
        let read: Vec<_> = certificates(&bundle[..]).map(|certificate| certificate.to_vec()).collect();
        assert_eq!(read, [[1, 2], [3, 4]]);
    }
}
