//! Authentication against a server that knows the password, one that does not, and one that cheats.

use std::num::NonZeroU32;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use ring::{digest, hmac, pbkdf2};

use super::*;

const PASSWORD: &str = "pencil";
const END_POINT: &[u8] = b"the hash of a certificate";

fn tls() -> Transport {
    Transport::Tls { end_point: Some(END_POINT.to_vec()) }
}

fn start(binding: ChannelBinding, transport: Transport) -> Authentication {
    Authentication::new("user", Some(&Password::new(PASSWORD)), binding, transport)
}

fn message(kind: i32, data: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes(), data].concat()
}

/// Feeds one message, and returns the body of what is sent.
fn feed(authentication: &mut Authentication, kind: i32, data: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    match authentication.receive(&message(kind, data), &mut out)? {
        Progress::Done => assert!(out.is_empty()),
        Progress::Pending if out.is_empty() => {}
        Progress::Pending => {
            assert_eq!(out[0], b'p');
            assert_eq!(out[1..5], (out.len() as u32 - 1).to_be_bytes());
            out.drain(..5);
        }
    }
    Ok(out)
}

fn refused(authentication: &mut Authentication, kind: i32, data: &[u8]) -> String {
    let error = feed(authentication, kind, data).unwrap_err();
    assert!(!error.message().contains(PASSWORD));
    assert_eq!(error.class(), crate::ErrorClass::Other);
    error.message().to_owned()
}

/// The server's side of RFC 5802 for one exchange.
struct Server {
    iterations: u32,
    salt: &'static [u8],
    client_first_bare: String,
    gs2_header: String,
    first_answer: String,
}

impl Server {
    /// Reads the client's first message, and answers it.
    fn new(initial_response: &[u8], mechanism: &str) -> Self {
        let rest = initial_response.strip_prefix(mechanism.as_bytes()).unwrap().strip_prefix(&[0]).unwrap();
        let client_first = std::str::from_utf8(&rest[4..]).unwrap();
        assert_eq!(rest[..4], (client_first.len() as u32).to_be_bytes());
        let bare_at = client_first.find("n=,r=").unwrap();
        let (gs2_header, bare) = client_first.split_at(bare_at);
        let (iterations, salt) = (4096, b"salt of the server".as_slice());
        let nonce = bare.strip_prefix("n=,r=").unwrap();
        let first_answer = format!("r={nonce}server,s={},i={iterations}", STANDARD.encode(salt));
        Self {
            iterations,
            salt,
            client_first_bare: bare.to_owned(),
            gs2_header: gs2_header.to_owned(),
            first_answer,
        }
    }

    /// Checks the client's proof, and returns the server's signature.
    fn finish(&self, response: &[u8], password: &str, binding: &[u8]) -> String {
        let response = std::str::from_utf8(response).unwrap();
        let (without_proof, proof) = response.split_once(",p=").unwrap();
        let channel = STANDARD.encode([self.gs2_header.as_bytes(), binding].concat());
        assert!(without_proof.starts_with(&format!("c={channel},r=")), "{without_proof}");

        let mut salted = [0; 32];
        let iterations = NonZeroU32::new(self.iterations).unwrap();
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, self.salt, password.as_bytes(), &mut salted);
        let sign = |key: &[u8], text: &[u8]| {
            hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
        };
        let auth_message = format!("{},{},{without_proof}", self.client_first_bare, self.first_answer);
        let stored_key = digest::digest(&digest::SHA256, &sign(&salted, b"Client Key"));
        let client_signature = sign(stored_key.as_ref(), auth_message.as_bytes());
        let client_key: Vec<u8> =
            STANDARD.decode(proof).unwrap().iter().zip(client_signature).map(|(a, b)| a ^ b).collect();
        assert_eq!(
            digest::digest(&digest::SHA256, &client_key).as_ref(),
            stored_key.as_ref(),
            "the proof is wrong"
        );
        let server_key = sign(&salted, b"Server Key");
        format!("v={}", STANDARD.encode(sign(&server_key, auth_message.as_bytes())))
    }
}

const BOTH: &[u8] = b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
const PLAIN: &[u8] = b"SCRAM-SHA-256\0\0";

/// A whole exchange; returns the GS2 header that the client sent.
fn exchange(binding: ChannelBinding, transport: Transport, offered: &[u8], mechanism: &str) -> String {
    let mut client = start(binding, transport);
    let server = Server::new(&feed(&mut client, 10, offered).unwrap(), mechanism);
    let response = feed(&mut client, 11, server.first_answer.as_bytes()).unwrap();
    let bound: &[u8] = if mechanism == SCRAM_SHA_256_PLUS { END_POINT } else { b"" };
    let signature = server.finish(&response, PASSWORD, bound);
    assert!(feed(&mut client, 12, signature.as_bytes()).unwrap().is_empty());
    assert_eq!(client.receive(&message(0, b""), &mut Vec::new()).unwrap(), Progress::Done);
    server.gs2_header
}

#[test]
fn scram_proves_both_sides_and_says_what_it_could_bind() {
    use ChannelBinding::{Disable, Prefer, Require};
    let no_hash = || Transport::Tls { end_point: None };
    assert_eq!(exchange(Prefer, Transport::Plain, PLAIN, SCRAM_SHA_256), "n,,");
    assert_eq!(exchange(Prefer, Transport::Unix, PLAIN, SCRAM_SHA_256), "n,,");
    assert_eq!(exchange(Prefer, tls(), BOTH, SCRAM_SHA_256_PLUS), "p=tls-server-end-point,,");
    assert_eq!(exchange(Require, tls(), BOTH, SCRAM_SHA_256_PLUS), "p=tls-server-end-point,,");
    // The client could bind, and says so: a server that offered to then knows that its offer was removed.
    assert_eq!(exchange(Prefer, tls(), PLAIN, SCRAM_SHA_256), "y,,");
    assert_eq!(exchange(Disable, tls(), BOTH, SCRAM_SHA_256), "n,,");
    assert_eq!(exchange(Prefer, no_hash(), BOTH, SCRAM_SHA_256), "n,,");
}

#[test]
fn a_server_that_does_not_know_the_password_is_refused() {
    let mut client = start(ChannelBinding::Prefer, Transport::Plain);
    let server = Server::new(&feed(&mut client, 10, PLAIN).unwrap(), SCRAM_SHA_256);
    feed(&mut client, 11, server.first_answer.as_bytes()).unwrap();
    let forged = format!("v={}", STANDARD.encode([7; 32]));
    assert!(refused(&mut client, 12, forged.as_bytes()).contains("does not know the password"));
}

#[test]
fn a_server_that_skips_its_proof_is_refused() {
    let mut client = start(ChannelBinding::Prefer, Transport::Plain);
    let server = Server::new(&feed(&mut client, 10, PLAIN).unwrap(), SCRAM_SHA_256);
    let mut early = start(ChannelBinding::Prefer, Transport::Plain);
    feed(&mut early, 10, PLAIN).unwrap();
    assert!(refused(&mut early, 0, b"").contains("without a proof"));
    feed(&mut client, 11, server.first_answer.as_bytes()).unwrap();
    assert!(refused(&mut client, 0, b"").contains("without a proof"));
}

#[test]
fn a_scram_answer_that_is_not_to_this_client_is_refused() {
    let mut client = start(ChannelBinding::Prefer, Transport::Plain);
    feed(&mut client, 10, PLAIN).unwrap();
    assert!(refused(&mut client, 11, b"r=another,s=c2FsdA==,i=4096").contains("nonce"));
    let mut client = start(ChannelBinding::Prefer, Transport::Plain);
    let server = Server::new(&feed(&mut client, 10, PLAIN).unwrap(), SCRAM_SHA_256);
    let endless = server.first_answer.replace("i=4096", "i=4000000000");
    assert!(refused(&mut client, 11, endless.as_bytes()).contains("iteration count"));
}

#[test]
fn with_binding_required_nothing_else_will_do() {
    let required = |transport| start(ChannelBinding::Require, transport);
    for transport in [Transport::Plain, Transport::Unix] {
        assert!(refused(&mut required(transport), 10, BOTH).contains("not under TLS"));
    }
    assert!(refused(&mut required(tls()), 10, PLAIN).contains("does not offer SCRAM-SHA-256-PLUS"));
    assert!(
        refused(&mut required(Transport::Tls { end_point: None }), 10, BOTH).contains("no hash function")
    );
    assert!(refused(&mut required(tls()), 0, b"").contains("without channel binding"));
    assert!(refused(&mut required(tls()), 3, b"").contains("clear text"));
    assert!(refused(&mut required(tls()), 5, b"salt").contains("MD5"));
    assert!(refused(&mut required(tls()), 7, b"").contains("GSSAPI"));
}

#[test]
fn an_offer_of_binding_without_tls_is_refused() {
    for binding in [ChannelBinding::Disable, ChannelBinding::Prefer] {
        assert!(refused(&mut start(binding, Transport::Plain), 10, BOTH).contains("needs TLS"));
    }
}

#[test]
fn md5_hashes_password_user_and_salt() {
    let password = Password::new("secret");
    let mut client =
        Authentication::new("postgres", Some(&password), ChannelBinding::Prefer, Transport::Plain);
    // md5(hex(md5("secret" || "postgres")) || salt)
    let expected = b"md5bb41a296aab6baccb36ff243a562abff\0";
    assert_eq!(feed(&mut client, 5, &[1, 2, 3, 4]).unwrap(), expected);
    assert_eq!(client.receive(&message(0, b""), &mut Vec::new()).unwrap(), Progress::Done);
    assert!(refused(&mut start(ChannelBinding::Prefer, tls()), 5, b"abc").contains("4 bytes"));
}

#[test]
fn a_clear_text_password_is_sent_only_where_nobody_reads_along() {
    for transport in [Transport::Unix, tls()] {
        let mut client = start(ChannelBinding::Prefer, transport);
        assert_eq!(feed(&mut client, 3, b"").unwrap(), b"pencil\0");
    }
    let mut out = Vec::new();
    let mut client = start(ChannelBinding::Prefer, Transport::Plain);
    let error = client.receive(&message(3, b""), &mut out).unwrap_err();
    assert!(error.message().contains("neither under TLS nor over a Unix socket"), "{error}");
    assert!(out.is_empty());
}

#[test]
fn a_password_that_was_not_given_is_asked_for_by_name() {
    for (kind, data) in [(3, b"".as_slice()), (5, b"salt"), (10, PLAIN)] {
        for password in [None, Some(Password::new(""))] {
            let transport = Transport::Unix;
            let mut client = Authentication::new("x", password.as_ref(), ChannelBinding::Prefer, transport);
            assert_eq!(
                refused(&mut client, kind, data),
                "the server asks for a password for user \"x\", and none was given (URL, PGPASSWORD or \
                 ~/.pgpass)"
            );
        }
    }
}

#[test]
fn methods_that_ask_for_nothing_need_no_password() {
    let mut client = Authentication::new("x", None, ChannelBinding::Prefer, Transport::Plain);
    assert_eq!(client.receive(&message(0, b""), &mut Vec::new()).unwrap(), Progress::Done);
    assert!(refused(&mut client, 0, b"").contains("out of turn"));
}

#[test]
fn methods_without_support_are_named() {
    let ask = |kind| refused(&mut start(ChannelBinding::Prefer, tls()), kind, b"");
    for (kind, name) in [(2, "Kerberos"), (6, "SCM"), (7, "GSSAPI"), (9, "SSPI"), (99, "method 99")] {
        assert!(ask(kind).contains(name), "{kind}");
    }
    let other = refused(&mut start(ChannelBinding::Prefer, tls()), 10, b"OAUTHBEARER\0\0");
    assert!(other.contains("\"OAUTHBEARER\"; supported are SCRAM-SHA-256"), "{other}");
}

#[test]
fn messages_out_of_turn_are_refused() {
    for kind in [11, 12] {
        assert!(refused(&mut start(ChannelBinding::Prefer, tls()), kind, b"").contains("out of turn"));
    }
    let mut client = start(ChannelBinding::Prefer, tls());
    feed(&mut client, 3, b"").unwrap();
    assert!(refused(&mut client, 5, b"salt").contains("out of turn"));
    // An error is final.
    assert!(refused(&mut client, 0, b"").contains("out of turn"));
}

proptest! {
    #[test]
    fn any_messages_are_answered_or_refused(
        messages in prop::collection::vec(
            (
                prop::sample::select(vec![0i32, 3, 5, 10, 11, 12, 7]),
                prop::collection::vec(any::<u8>(), 0..40),
            ),
            0..5,
        ),
        cut in 0usize..8,
        binding in prop::sample::select(vec![
            ChannelBinding::Disable, ChannelBinding::Prefer, ChannelBinding::Require,
        ]),
        transport in prop::sample::select(vec![Transport::Plain, Transport::Unix, tls()]),
    ) {
        let mut client = start(binding, transport);
        for (kind, data) in messages {
            let body = message(kind, &data);
            let _ = client.receive(&body[cut.min(body.len())..], &mut Vec::new());
        }
    }

    #[test]
    fn any_scram_messages_are_answered_or_refused(
        first in "(r=[!-~]{0,8},)?(s=[a-zA-Z0-9+/=]{0,8},)?(i=[0-9]{0,3})?\\PC{0,3}",
        own_nonce in any::<bool>(),
        last in "(v=|e=)?[a-zA-Z0-9+/=]{0,44}\\PC{0,3}",
    ) {
        let mut client = start(ChannelBinding::Prefer, Transport::Plain);
        let server = Server::new(&feed(&mut client, 10, PLAIN).unwrap(), SCRAM_SHA_256);
        let nonce = server.client_first_bare.strip_prefix("n=,").unwrap();
        let first = if own_nonce { format!("{nonce}{}", first.trim_start_matches("r=")) } else { first };
        if feed(&mut client, 11, first.as_bytes()).is_ok() {
            let _ = feed(&mut client, 12, last.as_bytes());
        }
        prop_assert!(client.receive(&message(0, b""), &mut Vec::new()).is_err());
    }
}
