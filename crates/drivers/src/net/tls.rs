//! TLS as libpq does it: what `sslmode`, `sslrootcert`, `sslcert` and the rest mean, on top of rustls. Each protocol has
//! its own words for them: see [`TlsWords`].
//!
//! Nothing here reads or writes a socket. A [`TlsConnector`] is built once from the configuration; it makes a
//! [`ClientConnection`] for each connection, says how it is bound to the SCRAM exchange, and explains its
//! errors.
//!
//! What OpenSSL does and this does not: keys of P-521 and RSA keys under 2048 bits, which *ring* does not
//! verify; certificate revocation lists; chains that hold a certificate of X.509 version 1, in verify-ca and
//! verify-full.

mod explain;
mod files;
#[cfg(test)]
mod tests;
mod verify;
mod x509;

use std::net::Ipv4Addr;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, SupportedProtocolVersion};

pub use x509::end_point_binding;
pub(crate) use x509::rsa_public_key;

use super::settings::{Host, SslMode, TlsSettings, TlsVersion, TlsWords};
use crate::contract::error::{ConfigError, Error};
use files::Roots;
use verify::Verifier;

/// Makes TLS connections to the hosts of a configuration.
#[derive(Clone, Debug)]
pub struct TlsConnector {
    config: Arc<ClientConfig>,
    /// Where the trusted certificates are from, for messages.
    roots: Arc<str>,
    name_matters: bool,
    words: &'static TlsWords,
}

impl TlsConnector {
    /// Reads the certificates that the configuration names. `None` where TLS is not used: with
    /// `sslmode=disable`, or with Unix sockets only.
    ///
    /// An error names the file that is missing or not readable, or the host that cannot be verified.
    pub fn new(tls: &TlsSettings, hosts: &[Host]) -> Result<Option<Self>, ConfigError> {
        if tls.mode == SslMode::Disable || hosts.iter().all(Host::is_unix) {
            return Ok(None);
        }
        let name_matters = tls.mode == SslMode::VerifyFull;
        if let Some(host) = hosts.iter().find(|host| !host.is_unix() && server_name(host).is_none())
            && name_matters
        {
            return Err(ConfigError(format!("url: {}", no_server_name(host, tls.words))));
        }
        let roots = files::roots(tls)?;
        let from: Arc<str> = roots.as_ref().map_or_else(String::new, |roots| roots.from.clone()).into();
        let mut rustls = builder(tls, roots)?;
        rustls.enable_sni = tls.server_name_indication;
        // Each connection is measured with its whole handshake, as a client of libpq has it; PostgreSQL
        // itself hands out no tickets.
        rustls.resumption = Resumption::disabled();
        rustls.alpn_protocols = tls.protocol.map(<[u8]>::to_vec).into_iter().collect();
        Ok(Some(Self { config: Arc::new(rustls), roots: from, name_matters, words: tls.words }))
    }

    /// Begins a handshake with a host: the connection has its first bytes ready to be written.
    pub fn start(&self, host: &Host) -> Result<ClientConnection, Error> {
        let name = match server_name(host) {
            Some(name) => name,
            None if self.name_matters => return Err(Error::other(no_server_name(host, self.words))),
            // Whatever stands here is not verified; an address is not sent to the server either.
            None => ServerName::IpAddress(Ipv4Addr::UNSPECIFIED.into()),
        };
        ClientConnection::new(self.config.clone(), name).map_err(|error| self.explain(&error, host))
    }

    /// A TLS error in the words of a database's administrator.
    #[must_use]
    pub fn explain(&self, error: &rustls::Error, host: &Host) -> Error {
        explain::explain(error, host, &self.roots, self.words)
    }
}

fn no_server_name(host: &Host, words: &TlsWords) -> String {
    format!(
        "the host \"{}\" is neither a DNS name nor an IP address, as {} needs",
        host.name,
        words.with_mode(SslMode::VerifyFull)
    )
}

/// The host's name as it stands in certificates, if it can.
fn server_name(host: &Host) -> Option<ServerName<'static>> {
    // The zone of an IPv6 address is known on this machine only.
    let name = host.name.split('%').next()?;
    ServerName::try_from(name.to_owned()).ok()
}

/// The configuration with its versions, its verification and the client's certificate.
fn builder(tls: &TlsSettings, roots: Option<Roots>) -> Result<ClientConfig, ConfigError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let algorithms = provider.signature_verification_algorithms;
    // As in libpq: where there is a root certificate file, every mode that uses TLS verifies against it.
    let name_matters = tls.mode == SslMode::VerifyFull;
    let verifier = Arc::new(Verifier { roots, name_matters, algorithms });
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions(tls))
        .map_err(|error| ConfigError(format!("TLS: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    Ok(match files::client_certificate(tls)? {
        Some(key) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key))),
        None => builder.with_no_client_auth(),
    })
}

fn versions(tls: &TlsSettings) -> Vec<&'static SupportedProtocolVersion> {
    let allowed = |version| version >= tls.min_version && tls.max_version.is_none_or(|max| version <= max);
    let versions = [(TlsVersion::V1_3, &TLS13), (TlsVersion::V1_2, &TLS12)];
    versions.into_iter().filter(|(version, _)| allowed(*version)).map(|(_, version)| version).collect()
}
