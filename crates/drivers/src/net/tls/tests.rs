//! Certificates: the fields that are read, whom they name, and that damaged ones break nothing.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use rustls::pki_types::ServerName;

use super::verify::is_name_of;
use super::x509::{Certificate, end_point_binding};

/// Of version 3, P-256, signed by itself with SHA-384 (`openssl req -x509 -subj
/// /O=Nephoscope/CN=db.example.com`).
const VERSION_3: &str = "\
MIIBnTCCAUSgAwIBAgIBATAKBggqhkjOPQQDAzAuMRMwEQYDVQQKDApOZXBob3Nj\
b3BlMRcwFQYDVQQDDA5kYi5leGFtcGxlLmNvbTAeFw0yNjExMjAyMDE4MTRaFw0z\
NjExMTcyMDE4MTRaMC4xEzARBgNVBAoMCk5lcGhvc2NvcGUxFzAVBgNVBAMMDmRi\
LmV4YW1wbGUuY29tMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEYqFhDKN8qZVJ\
NfhGhGKa2XfO4KA4dSwErjt1rkz+RnxaS6UD/l3eADzpF6CR9pxjF51n4uEeAyZW\
iBMb+hG4o6NTMFEwHQYDVR0OBBYEFDVaWInlWh/MqH4vC8oBD/HLq1/PMB8GA1Ud\
IwQYMBaAFDVaWInlWh/MqH4vC8oBD/HLq1/PMA8GA1UdEwEB/wQFMAMBAf8wCgYI\
KoZIzj0EAwMDRwAwRAIgSeyZgfLEEVry4sVwdVZS1NX1DWSD8cI5Nh5UO9cnKpkC\
IBcY9K3dT6PPCj8DIh8JU4hp3zff5JpaHgRuRcjLZ4a8";

/// Of version 1 (`openssl x509 -req` of OpenSSL 3.0).
const VERSION_1: &str = "\
MIIBGzCBwgIBAjAKBggqhkjOPQQDAjAaMRgwFgYDVQQDDA9vbGQuZXhhbXBsZS5j\
b20wHhcNMjYxMTIwMjAxODE0WhcNMzYxMTE3MjAxODE0WjAaMRgwFgYDVQQDDA9v\
bGQuZXhhbXBsZS5jb20wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARioWEMo3yp\
lUk1+EaEYprZd87goDh1LASuO3WuTP5GfFpLpQP+Xd4APOkXoJH2nGMXnWfi4R4D\
JlaIExv6EbijMAoGCCqGSM49BAMCA0gAMEUCIHOgvqyV8I+Fu32u5HWfi6seXb2F\
gJ8lxGkWzkVerht9AiEA4jzjetBHfsWxXswX3e7dgAaq///MqnD/WYxkOEb9fFY=";

fn der(base64: &str) -> Vec<u8> {
    STANDARD.decode(base64).unwrap()
}

/// An element with a short length.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag, u8::try_from(content.len()).unwrap()], content].concat()
}

/// As much of a certificate as the channel binding reads.
fn with_signature(identifier: &[u8]) -> Vec<u8> {
    element(0x30, &[element(0x30, b""), element(0x30, identifier), element(0x03, b"\0")].concat())
}

fn binding_length(identifier: &[u8]) -> Option<usize> {
    end_point_binding(&with_signature(identifier)).map(|hash| hash.len())
}

#[test]
fn the_fields_of_a_certificate_are_read() {
    let (version_3, version_1) = (der(VERSION_3), der(VERSION_1));
    let new = Certificate::read(&version_3).unwrap();
    // From `openssl x509 -noout -dates`.
    assert_eq!((new.version, new.not_before, new.not_after), (3, 1_795_205_894, 2_110_565_894));
    assert_eq!(new.common_name, Some("db.example.com"));
    assert_eq!(new.key.len(), 65);
    assert_eq!(new.key_info.len(), 91);
    let old = Certificate::read(&version_1).unwrap();
    assert_eq!((old.version, old.common_name), (1, Some("old.example.com")));
    assert_eq!(old.key_info, new.key_info);
}

#[test]
fn the_hash_follows_the_signatures_algorithm() {
    // Their real kinds are tested with certificates of openssl in tests/postgres_tls.rs.
    assert_eq!(end_point_binding(&der(VERSION_3)).unwrap().len(), 48);
    assert_eq!(end_point_binding(&der(VERSION_1)).unwrap().len(), 32);
    let oid = |bytes: &[u8]| element(0x06, bytes);
    let pss = oid(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a]);
    let sha512 = oid(&[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x03]);
    let hash = |hash: &[u8]| [pss.clone(), element(0x30, &element(0xa0, &element(0x30, hash)))].concat();
    assert_eq!(binding_length(&hash(&sha512)), Some(64));
    assert_eq!(binding_length(&hash(&oid(&[0x2b, 0x0e, 0x03, 0x02, 0x1a]))), Some(32));
    assert_eq!(binding_length(&hash(&oid(&[1, 2, 3]))), None);
    assert_eq!(binding_length(&[pss.clone(), element(0x30, b"")].concat()), Some(32), "SHA-1 is the default");
    assert_eq!(binding_length(&pss), None, "the parameters are missing");
    assert_eq!(binding_length(&oid(&[0x2b, 0x65, 0x70])), None, "Ed25519");
    assert_eq!(binding_length(&oid(b"")), None);
    assert_eq!(binding_length(b""), None);
}

#[test]
fn lengths_are_read_only_in_their_shortest_form() {
    for bytes in [
        &[0x30, 0x80, 0, 0][..],
        &[0x30, 0x81, 0x01, 0],
        &[0x30, 0x82, 0x00, 0xff],
        &[0x30, 0x85, 1, 1, 1, 1, 1],
        &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
        &[0x1f, 0x01, 0x00],
        &[0x30],
        &[],
    ] {
        assert_eq!(end_point_binding(bytes), None, "{bytes:?}");
        assert_eq!(Certificate::read(bytes), None, "{bytes:?}");
    }
}

#[test]
fn a_common_name_matches_as_in_libpq() {
    let matches = |name: &str, host: &str| is_name_of(name, &ServerName::try_from(host.to_owned()).unwrap());
    assert!(matches("db.example.com", "DB.example.com"));
    assert!(matches("db.example.com", "db.example.com."));
    assert!(matches("*.example.com", "db.example.com"));
    assert!(!matches("*.example.com", "a.db.example.com"));
    assert!(!matches("*.example.com", "example.com"));
    assert!(!matches("*.", "db"));
    assert!(!matches("*", "db"));
    assert!(!matches("d*.example.com", "db.example.com"));
    assert!(matches("10.0.0.1", "10.0.0.1"));
    assert!(matches("0:0:0:0:0:0:0:1", "::1"));
    assert!(!matches("*.0.0.1", "10.0.0.1"));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = end_point_binding(&bytes);
        let _ = Certificate::read(&bytes);
    }

    #[test]
    fn a_damaged_certificate_is_read_or_refused(
        at in 0usize..400,
        byte in any::<u8>(),
        length in 0usize..500,
    ) {
        for base64 in [VERSION_3, VERSION_1] {
            let mut bytes = der(base64);
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(length);
            let _ = end_point_binding(&bytes);
            let _ = Certificate::read(&bytes);
        }
    }
}
