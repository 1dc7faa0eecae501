//! The scrambles against known vectors, and what an authentication exchange refuses.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::signature::{ED25519 as RING_ED25519, UnparsedPublicKey};
use rsa::pkcs8::{EncodePublicKey, LineEnding};

use rsa::rand_core::OsRng;
use rsa::{Oaep, RsaPrivateKey};
use sha1::Sha1;

use super::*;

const NONCE: &[u8] = b"abcdefghijklmnopqrst";

fn begin<'a>(password: &'a Password, transport: Transport, key: bool, plugin: &str) -> Authentication<'a> {
    Authentication::new(Some(password), transport, key, plugin, NONCE)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[test]
fn scrambles_are_those_that_servers_check() {
    // Checked as a server does: the scramble and what it keeps, the second hash, give the first hash.
    let scramble = native(b"secret", NONCE);
    let stored = sha1(&[sha1(&[b"secret"]).as_ref()]);
    assert_eq!(hex(stored.as_ref()), "14e65567abdb5135d0cfd9a70b3032c179a49ee7");
    let first = xor(&scramble, sha1(&[NONCE, stored.as_ref()]).as_ref());
    assert_eq!(sha1(&[&first]).as_ref(), stored.as_ref());
    let scramble = sha2(b"secret", NONCE);
    let stored = sha256(&[sha256(&[b"secret"]).as_ref()]);
    let first = xor(&scramble, sha256(&[stored.as_ref(), NONCE]).as_ref());
    assert_eq!(sha256(&[&first]).as_ref(), stored.as_ref());
}

#[test]
fn an_ed25519_signature_is_that_of_the_passwords_key() {
    // What `SELECT ED25519_PASSWORD('secret')` gives (MariaDB's manual).
    let key = ed25519::public_key(b"secret");
    assert_eq!(STANDARD_NO_PAD.encode(key), "ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY");
    for message in [&[7; 32][..], b""] {
        let signature = ed25519::sign(b"secret", message);
        UnparsedPublicKey::new(&RING_ED25519, key).verify(message, &signature).unwrap();
    }
}

#[test]
fn without_a_password_nothing_is_sent() {
    for plugin in [NATIVE, SHA2] {
        let authentication = Authentication::new(None, Transport::Plain, false, plugin, NONCE);
        assert_eq!(authentication.first_answer().unwrap(), b"");
    }
}

#[test]
fn the_fast_exchange_ends_with_the_servers_consent() {
    let password = Password::new("secret");
    let mut authentication = begin(&password, Transport::Plain, false, SHA2);
    assert_eq!(authentication.first_answer().unwrap(), sha2(b"secret", NONCE));
    assert_eq!(authentication.receive(&[1, 3]).unwrap(), Progress::Pending);
    assert_eq!(authentication.receive(&[0, 0, 0, 2, 0, 0, 0]).unwrap(), Progress::Done);
}

#[test]
fn the_password_itself_leaves_only_where_nobody_can_read_it() {
    let password = Password::new("secret");
    for transport in [Transport::Tls, Transport::Unix] {
        let mut authentication = begin(&password, transport, false, SHA2);
        assert_eq!(authentication.receive(&[1, 4]).unwrap(), Progress::Answer(b"secret\0".to_vec()));
    }
    let error = begin(&password, Transport::Plain, false, SHA2).receive(&[1, 4]).unwrap_err();
    assert!(error.message().contains("get-server-public-key"), "{error}");
    assert!(!error.message().contains("secret"));
    // A server that asks a second time is not given it.
    let mut authentication = begin(&password, Transport::Tls, false, SHA2);
    authentication.receive(&[1, 4]).unwrap();
    assert!(authentication.receive(&[1, 4]).is_err());
}

#[test]
fn the_password_under_the_servers_key_is_what_the_server_reads() {
    let password = Password::new("a longer secret than the nonce has bytes");
    let private = RsaPrivateKey::new(&mut OsRng, 2048).unwrap();
    let pem = private.to_public_key().to_public_key_pem(LineEnding::LF).unwrap();
    let mut authentication = begin(&password, Transport::Plain, true, SHA2);
    assert_eq!(authentication.receive(&[1, 4]).unwrap(), Progress::Answer(vec![2]));
    let Progress::Answer(sent) = authentication.receive(&[&[1], pem.as_bytes()].concat()).unwrap() else {
        panic!("nothing was sent")
    };
    let masked = private.decrypt(Oaep::new::<Sha1>(), &sent).unwrap();
    let read: Vec<u8> = masked.iter().zip(NONCE.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    assert_eq!(read, [password.expose(), &[0]].concat());
    for wrong in [&b"\x01no key"[..], b"\x01", b"\x01\xff\xfe"] {
        let mut authentication = begin(&password, Transport::Plain, true, SHA2);
        authentication.receive(&[1, 4]).unwrap();
        assert!(authentication.receive(wrong).unwrap_err().message().contains("public key"));
    }
}

#[test]
fn the_server_may_ask_for_another_plugin() {
    let password = Password::new("secret");
    let mut authentication = begin(&password, Transport::Plain, false, SHA2);
    let request = |plugin: &str, nonce: &[u8]| [b"\xfe", plugin.as_bytes(), b"\0", nonce].concat();
    let other = b"01234567890123456789";
    let answer = authentication.receive(&request(NATIVE, &[other, &[0][..]].concat())).unwrap();
    assert_eq!(answer, Progress::Answer(native(b"secret", other)));
    assert_eq!(authentication.plugin(), NATIVE);
    let answer = authentication.receive(&request(ED25519, &[0; 32])).unwrap();
    assert_eq!(answer, Progress::Answer(ed25519::sign(b"secret", &[0; 32]).to_vec()));
    for (wrong, told) in [
        (request("mysql_clear_password", b""), "plugin \"mysql_clear_password\"; supported are"),
        (vec![0xfe], "before MySQL 4.1"),
        (request(NATIVE, b"short"), "a short nonce"),
        (vec![], "makes no sense"),
        (vec![1, 9], "makes no sense"),
    ] {
        let error = authentication.receive(&wrong).unwrap_err();
        assert!(error.message().contains(told), "{error}");
        assert!(!error.message().contains("secret"));
    }
    let mut endless = begin(&password, Transport::Plain, false, NATIVE);
    let rounds = (0..100).take_while(|_| endless.receive(&request(NATIVE, other)).is_ok()).count();
    assert_eq!(rounds, MOST_ROUNDS as usize);
}
