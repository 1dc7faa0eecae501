//! TLS errors in the words of a database's administrator.

use rustls::pki_types::{ServerName, UnixTime};
use rustls::{AlertDescription, CertificateError, Error as TlsError, OtherError, PeerIncompatible};

use crate::contract::calendar::civil_from_days;
use crate::contract::error::Error;
use crate::net::settings::Host;

/// The error with the host. `roots` is where the trusted certificates are from.
///
/// A refusal, by this side or by the server, is not a lost connection: it would come again.
pub(super) fn explain(error: &TlsError, host: &Host, roots: &str) -> Error {
    let (what, is_refusal) = match error {
        TlsError::InvalidCertificate(error) => {
            (format!("the server's certificate is not accepted: {}", certificate(error, roots)), true)
        }
        TlsError::AlertReceived(alert) => (self::alert(*alert), true),
        TlsError::NoCertificatesPresented => ("the server shows no certificate".to_owned(), true),
        TlsError::PeerIncompatible(why) => (incompatible(why), true),
        TlsError::InvalidMessage(_) => (
            "the server's answer is not TLS; is a PostgreSQL server with TLS at that port?".to_owned(),
            false,
        ),
        error => (error.to_string(), false),
    };
    let message = format!("TLS with {host}: {what}");
    if is_refusal { Error::other(message) } else { Error::connection_lost(message) }
}

fn certificate(error: &CertificateError, roots: &str) -> String {
    match error {
        CertificateError::ExpiredContext { time, not_after } => {
            format!("it expired at {} (it is {} now)", utc(*not_after), utc(*time))
        }
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "it is not valid before {} (it is {} now; is this machine's clock right?)",
            utc(*not_before),
            utc(*time)
        ),
        CertificateError::NotValidForNameContext { expected, presented } => wrong_name(expected, presented),
        CertificateError::UnknownIssuer => {
            format!(
                "no authority in {roots} has signed it (sslrootcert names the file of those that are \
                 trusted)"
            )
        }
        CertificateError::BadSignature => format!(
            "its signature is not by the key of the authority of that name in {roots}; was that authority \
             made anew?"
        ),
        CertificateError::Expired => "its dates make no sense: it ends before it begins".to_owned(),
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "its signature or its key is of a kind that is not supported; RSA, P-256, P-384 and Ed25519 \
             with SHA-2 are"
                .to_owned()
        }
        CertificateError::Other(error) => other(error, roots),
        error => error.to_string(),
    }
}

fn wrong_name(expected: &ServerName<'_>, presented: &[String]) -> String {
    let names: Vec<&str> = presented.iter().map(|name| plain_name(name)).collect();
    let names = if names.is_empty() { "no name at all".to_owned() } else { names.join(", ") };
    format!(
        "it is for {names}, and not for {}, the host in the URL (sslmode=verify-ca does not look at the \
         name)",
        expected.to_str()
    )
}

/// The name in webpki's `DnsName("…")` or `IpAddress(…)`.
fn plain_name(presented: &str) -> &str {
    let inside = |start, end| presented.strip_prefix(start)?.strip_suffix(end);
    inside("DnsName(\"", "\")").or_else(|| inside("IpAddress(", ")")).unwrap_or(presented)
}

fn other(error: &OtherError, roots: &str) -> String {
    match error.to_string().as_str() {
        // The name that webpki has for it, whose types rustls does not show.
        "CaUsedAsEndEntity" => {
            format!(
                "it is an authority's own, as one that signed itself, and not in {roots}; add it there to \
                 trust it"
            )
        }
        text => text.to_owned(),
    }
}

fn alert(alert: AlertDescription) -> String {
    use AlertDescription as Alert;
    match alert {
        Alert::CertificateRequired | Alert::NoCertificate => {
            "the server asks for a client certificate; sslcert and sslkey name one".to_owned()
        }
        Alert::BadCertificate
        | Alert::UnsupportedCertificate
        | Alert::CertificateRevoked
        | Alert::CertificateExpired
        | Alert::CertificateUnknown
        | Alert::UnknownCA
        | Alert::AccessDenied => format!("the server does not accept the client certificate ({alert:?})"),
        Alert::ProtocolVersion => "the server does not accept TLS 1.2 or 1.3, as far as allowed".to_owned(),
        Alert::HandshakeFailure | Alert::InsufficientSecurity => {
            format!("the server has no cipher in common with this client ({alert:?})")
        }
        Alert::NoApplicationProtocol => {
            "the server does not speak the protocol \"postgresql\" (ALPN), which sslnegotiation=direct needs"
                .to_owned()
        }
        Alert::UnrecognisedName => "the server does not know the host's name (SNI)".to_owned(),
        alert => format!("the server ended the handshake ({alert:?})"),
    }
}

fn incompatible(why: &PeerIncompatible) -> String {
    match why {
        PeerIncompatible::ServerDoesNotSupportTls12Or13
        | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig => {
            "the server has no TLS version that is allowed; allowed are 1.2 and 1.3, within \
             ssl_min_protocol_version and ssl_max_protocol_version"
                .to_owned()
        }
        why => format!("the server has nothing in common with this client ({why:?})"),
    }
}

/// `2026-01-31 12:00:00 UTC`.
fn utc(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let (year, month, day) = civil_from_days(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}
