//! TLS errors in the words of a database's administrator.

use rustls::pki_types::{ServerName, UnixTime};
use rustls::{AlertDescription, CertificateError, Error as TlsError, OtherError, PeerIncompatible};

use crate::contract::calendar::civil_from_days;
use crate::contract::error::Error;
use crate::net::settings::{Host, SslMode, TlsWords};

/// The error with the host. `roots` is where the trusted certificates are from.
///
/// A refusal, by this side or by the server, is not a lost connection: it would come again.
pub(super) fn explain(error: &TlsError, host: &Host, roots: &str, words: &TlsWords) -> Error {
    let (what, is_refusal) = match error {
        TlsError::InvalidCertificate(error) => {
            (format!("the server's certificate is not accepted: {}", certificate(error, roots, words)), true)
        }
        TlsError::AlertReceived(alert) => (self::alert(*alert, words), true),
        TlsError::NoCertificatesPresented => ("the server shows no certificate".to_owned(), true),
        TlsError::PeerIncompatible(why) => (incompatible(why, words), true),
        TlsError::InvalidMessage(_) => (
            format!("the server's answer is not TLS; is a {} server with TLS at that port?", words.product),
            false,
        ),
        error => (error.to_string(), false),
    };
    let message = format!("TLS with {host}: {what}");
    if is_refusal { Error::other(message) } else { Error::connection_lost(message) }
}

fn certificate(error: &CertificateError, roots: &str, words: &TlsWords) -> String {
    match error {
        CertificateError::ExpiredContext { time, not_after } => {
            format!("it expired at {} (it is {} now)", utc(*not_after), utc(*time))
        }
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "it is not valid before {} (it is {} now; is this machine's clock right?)",
            utc(*not_before),
            utc(*time)
        ),
        CertificateError::NotValidForNameContext { expected, presented } => {
            wrong_name(expected, presented, words)
        }
        CertificateError::UnknownIssuer => {
            format!(
                "no authority in {roots} has signed it ({} names the file of those that are trusted)",
                words.roots
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

fn wrong_name(expected: &ServerName<'_>, presented: &[String], words: &TlsWords) -> String {
    let names: Vec<&str> = presented.iter().map(|name| plain_name(name)).collect();
    let names = if names.is_empty() { "no name at all".to_owned() } else { names.join(", ") };
    format!(
        "it is for {names}, and not for {}, the host in the URL ({} does not look at the name)",
        expected.to_str(),
        words.with_mode(SslMode::VerifyCa)
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

fn alert(alert: AlertDescription, words: &TlsWords) -> String {
    use AlertDescription as Alert;
    match alert {
        Alert::CertificateRequired | Alert::NoCertificate => {
            let TlsWords { certificate, key, .. } = words;
            format!("the server asks for a client certificate; {certificate} and {key} name one")
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

fn incompatible(why: &PeerIncompatible, words: &TlsWords) -> String {
    match why {
        PeerIncompatible::ServerDoesNotSupportTls12Or13
        | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig => {
            let within = words.versions.map_or_else(String::new, |settings| format!(", within {settings}"));
            format!("the server has no TLS version that is allowed; allowed are 1.2 and 1.3{within}")
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
