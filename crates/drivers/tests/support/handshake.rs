//! TLS handshakes in memory, with rustls as the server.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring::{default_provider, sign::any_supported_type};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConnection, RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion};

use super::Identity;

/// The certificates of a PEM file.
pub(crate) fn certificates(path: &Path) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_file_iter(path).unwrap().collect::<Result<_, _>>().unwrap()
}

/// A server with a certificate and a key that need not belong together.
pub(crate) struct Server {
    /// What it shows, and what it signs with.
    pub(crate) certified: CertifiedKey,
    versions: Vec<&'static SupportedProtocolVersion>,
    /// The protocols that it knows (ALPN).
    pub(crate) protocols: Vec<Vec<u8>>,
    /// The authority for client certificates, where it asks for one.
    pub(crate) client_root: Option<CertificateDer<'static>>,
}

impl Server {
    /// A server that speaks TLS 1.2 and 1.3.
    pub(crate) fn new(identity: &Identity) -> Self {
        let key = PrivateKeyDer::from_pem_file(&identity.key).unwrap();
        Self {
            certified: CertifiedKey::new(
                certificates(&identity.certificate),
                any_supported_type(&key).unwrap(),
            ),
            versions: vec![&TLS13, &TLS12],
            protocols: Vec::new(),
            client_root: None,
        }
    }

    /// The same with one version only.
    pub(crate) fn only(mut self, version: &'static SupportedProtocolVersion) -> Self {
        self.versions = vec![version];
        self
    }

    /// Waits for a client.
    pub(crate) fn start(self) -> ServerConnection {
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&self.versions)
            .unwrap();
        let builder = match self.client_root {
            None => builder.with_no_client_auth(),
            Some(root) => {
                let mut roots = RootCertStore::empty();
                roots.add(root).unwrap();
                let provider = Arc::new(default_provider());
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(self.certified)));
        config.alpn_protocols = self.protocols;
        ServerConnection::new(config.into()).unwrap()
    }
}

/// A whole handshake; the error is the client's.
pub(crate) fn complete(
    client: &mut ClientConnection,
    server: &mut ServerConnection,
) -> Result<(), rustls::Error> {
    for _ in 0..8 {
        let mut sent = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut sent).unwrap();
        }
        let mut sent = Cursor::new(sent);
        while server.read_tls(&mut sent).unwrap() > 0 {
            let _ = server.process_new_packets();
        }
        let mut sent = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut sent).unwrap();
        }
        let mut sent = Cursor::new(sent);
        while client.read_tls(&mut sent).unwrap() > 0 {
            client.process_new_packets()?;
        }
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok(())
}
