//! Verification of the server's certificate.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, PeerMisbehaved, SignatureScheme};

use super::files::Roots;
use super::x509::Certificate;

/// Why a certificate is not accepted, where rustls has no word for it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// Made by the commands of `PostgreSQL`'s manual with OpenSSL before 3.2.
    #[error(
        "it is an X.509 certificate of version {0}, which can be verified only if it is itself in the root \
         certificate file; make one of version 3 (openssl x509 -req -extfile …)"
    )]
    Version(u8),
    #[error(
        "the server does not hold the key of the certificate that it shows, or the key is of a kind that \
         is not supported (RSA under 2048 bits)"
    )]
    Handshake,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        CertificateError::Other(OtherError(Arc::new(refusal))).into()
    }
}

/// Verifies as libpq does. The signature of the handshake is verified in any case: the server holds the key
/// of the certificate that it shows.
#[derive(Debug)]
pub(super) struct Verifier {
    /// The certificates that are trusted; `None` where any certificate will do.
    pub(super) roots: Option<Roots>,
    /// Whether the certificate must be for the host.
    pub(super) name_matters: bool,
    /// The kinds of signatures.
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn verify_chain(
        &self,
        roots: &Roots,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let certificate = read(end_entity)?;
        // A server's own certificate in the root file is trusted as it is, as OpenSSL does with one that
        // signed itself. webpki does not: it takes no certificate of an authority for a server's.
        if roots.certificates.contains(end_entity) {
            return verify_dates(&certificate, now);
        }
        if certificate.version < 3 {
            return Err(Refusal::Version(certificate.version).into());
        }
        let parsed = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &roots.store, intermediates, now, algorithms)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            self.verify_chain(roots, end_entity, intermediates, now)?;
        }
        if self.name_matters {
            verify_name(end_entity, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // Not rustls's own function: it does not read certificates of version 1.
        let certificate = read(certificate)?;
        let candidates = self.algorithms.mapping.iter().find(|(scheme, _)| *scheme == signature.scheme);
        let (_, candidates) = candidates.ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
        let fits = |id: &[u8]| id == certificate.key_algorithm;
        candidates
            .iter()
            .find(|algorithm| fits(algorithm.public_key_alg_id().as_ref()))
            .and_then(|found| found.verify_signature(certificate.key, message, signature.signature()).ok())
            .map(|()| HandshakeSignatureValid::assertion())
            .ok_or(Refusal::Handshake.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(read(certificate)?.key_info);
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms).map_err(|error| {
            match error {
                Error::InvalidCertificate(_) => Refusal::Handshake.into(),
                error => error,
            }
        })
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn read<'a>(certificate: &'a CertificateDer<'_>) -> Result<Certificate<'a>, Error> {
    Certificate::read(certificate).ok_or(CertificateError::BadEncoding.into())
}

fn verify_dates(certificate: &Certificate<'_>, now: UnixTime) -> Result<(), Error> {
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let unix_time = |seconds: i64| {
        UnixTime::since_unix_epoch(Duration::from_secs(seconds.try_into().unwrap_or_default()))
    };
    if seconds < certificate.not_before {
        let not_before = unix_time(certificate.not_before);
        return Err(CertificateError::NotValidYetContext { time: now, not_before }.into());
    }
    if seconds > certificate.not_after {
        let not_after = unix_time(certificate.not_after);
        return Err(CertificateError::ExpiredContext { time: now, not_after }.into());
    }
    Ok(())
}

/// Verifies that the certificate is for the host: one of its alternative names is the host's. Where it has
/// none, its common name, as in libpq; the certificates that `PostgreSQL`'s manual makes have no other.
fn verify_name(certificate: &CertificateDer<'_>, expected: &ServerName<'_>) -> Result<(), Error> {
    let fields = read(certificate)?;
    if fields.version == 3 {
        let verified = verify_server_name(&ParsedCertificate::try_from(certificate)?, expected);
        match verified {
            Err(Error::InvalidCertificate(CertificateError::NotValidForNameContext {
                ref presented,
                ..
            })) if presented.is_empty() => {}
            _ => return verified,
        }
    }
    if fields.common_name.is_some_and(|name| is_name_of(name, expected)) {
        return Ok(());
    }
    let presented = fields.common_name.map(|name| format!("CN={name}")).into_iter().collect();
    Err(CertificateError::NotValidForNameContext { expected: expected.to_owned(), presented }.into())
}

/// Whether a common name is the host's. It may begin with `*.`, which stands for one label.
pub(super) fn is_name_of(common_name: &str, host: &ServerName<'_>) -> bool {
    match host {
        ServerName::DnsName(name) => {
            let host = name.as_ref().trim_end_matches('.');
            let is_wildcard = common_name.strip_prefix("*.").filter(|domain| !domain.is_empty());
            match (is_wildcard, host.split_once('.')) {
                (Some(pattern), Some((label, domain))) => {
                    !label.is_empty() && domain.eq_ignore_ascii_case(pattern)
                }
                _ => host.eq_ignore_ascii_case(common_name),
            }
        }
        ServerName::IpAddress(ip) => common_name.parse().is_ok_and(|name: IpAddr| name == IpAddr::from(*ip)),
        _ => false,
    }
}
