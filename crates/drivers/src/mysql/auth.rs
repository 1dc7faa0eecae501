//! Authentication without I/O: what a client answers to a server's challenge.
//!
//! * `mysql_native_password`: `SHA1(password) XOR SHA1(nonce, SHA1(SHA1(password)))`.
//! * `caching_sha2_password`: a scramble by SHA-256, and the password itself where the server does not have it cached:
//!   only over TLS or a Unix socket, or under the server's RSA key where the user has asked for that
//!   (<https://dev.mysql.com/doc/dev/mysql-server/latest/page_caching_sha2_authentication_exchanges.html>).
//! * `client_ed25519`, MariaDB's: a signature of the nonce.
//!
//! No password leaves in clear over plain TCP, whatever the server asks for.

mod ed25519;
mod key;
mod modulus;
#[cfg(test)]
mod tests;

use ring::digest::{Digest, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

use crate::contract::error::Error;
use crate::mysql::wire::{Fields, garbage};
use crate::net::secret::Password;

/// How many messages a server may send before it has let the client in.
const MOST_ROUNDS: u32 = 16;
/// A nonce has 20 bytes; `client_ed25519`'s has 32.
const NATIVE_NONCE: usize = 20;

const NATIVE: &str = "mysql_native_password";
const SHA2: &str = "caching_sha2_password";
const ED25519: &str = "client_ed25519";

/// What lies under the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP: everybody on the way can read.
    Plain,
    /// TLS.
    Tls,
    /// A Unix socket, which does not leave the machine.
    Unix,
}

/// What a message has come to.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// This is to be sent as the next packet.
    Answer(Vec<u8>),
    /// The server says more.
    Pending,
    /// The client is let in; this is the server's `OK_Packet`.
    Done,
}

/// How far the exchange of `caching_sha2_password` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begun,
    KeyRequested,
    Ended,
}

/// The client's side of the authentication.
pub struct Authentication<'a> {
    password: &'a [u8],
    transport: Transport,
    /// Whether the server's RSA key is asked for (`get-server-public-key`).
    may_ask_for_key: bool,
    plugin: String,
    nonce: Vec<u8>,
    stage: Stage,
    rounds: u32,
}

impl<'a> Authentication<'a> {
    /// Begins with what the server's greeting says: its default plugin and a nonce.
    #[must_use]
    pub fn new(
        password: Option<&'a Password>,
        transport: Transport,
        may_ask_for_key: bool,
        plugin: &str,
        nonce: &[u8],
    ) -> Self {
        // A plugin that is not known here need not be the user's: the server says so if it is.
        let plugin = if [NATIVE, SHA2, ED25519].contains(&plugin) { plugin } else { NATIVE };
        Self {
            password: password.map_or(&[], Password::expose),
            transport,
            may_ask_for_key,
            plugin: plugin.to_owned(),
            nonce: nonce.to_vec(),
            stage: Stage::Begun,
            rounds: 0,
        }
    }

    /// The plugin that the first answer is for.
    #[must_use]
    pub fn plugin(&self) -> &str {
        &self.plugin
    }

    /// The answer to the nonce.
    ///
    /// # Errors
    /// If the plugin is not supported, or the server's nonce cannot be one.
    pub fn first_answer(&self) -> Result<Vec<u8>, Error> {
        match self.plugin.as_str() {
            NATIVE | SHA2 if self.password.is_empty() => Ok(Vec::new()),
            NATIVE => Ok(native(self.password, self.nonce.get(..NATIVE_NONCE).ok_or_else(short)?)),
            SHA2 => Ok(sha2(self.password, self.nonce.get(..NATIVE_NONCE).ok_or_else(short)?)),
            ED25519 => Ok(ed25519::sign(self.password, &self.nonce).to_vec()),
            "mysql_old_password" => Err(Error::other(
                "the server wants the password hashed as before MySQL 4.1, which is not safe; give the user a new one",
            )),
            plugin => Err(Error::other(format!(
                "the server wants the authentication plugin {plugin:?}; supported are {NATIVE}, {SHA2} and {ED25519}"
            ))),
        }
    }

    /// Takes a message of the server.
    ///
    /// # Errors
    /// If the server refuses the user, asks for what would give the password away, or makes no sense.
    pub fn receive(&mut self, payload: &[u8]) -> Result<Progress, Error> {
        self.rounds += 1;
        if self.rounds > MOST_ROUNDS {
            return Err(garbage("an authentication without an end"));
        }
        match payload.split_first() {
            Some((0x00, _)) => Ok(Progress::Done),
            Some((0xff, _)) => Err(crate::mysql::wire::error(payload)),
            Some((0xfe, request)) => self.switch(request),
            Some((0x01, data)) => self.more(data),
            _ => Err(garbage("a message of the authentication")),
        }
    }

    /// `AuthSwitchRequest`: another plugin, another nonce. One without a body is from before MySQL 4.1.
    fn switch(&mut self, request: &[u8]) -> Result<Progress, Error> {
        let mut fields = Fields(request);
        let plugin = if request.is_empty() { b"mysql_old_password" } else { fields.until_zero() };
        self.plugin = String::from_utf8_lossy(plugin).chars().take(64).collect();
        // Most plugins' nonces end with a zero byte.
        self.nonce = match (self.plugin.as_str(), fields.0) {
            (ED25519, nonce) => nonce.get(..32).unwrap_or(nonce).to_vec(),
            (_, [nonce @ .., 0] | nonce) => nonce.to_vec(),
        };
        self.stage = Stage::Begun;
        self.first_answer().map(Progress::Answer)
    }

    /// `AuthMoreData`.
    fn more(&mut self, data: &[u8]) -> Result<Progress, Error> {
        match (self.plugin.as_str(), self.stage, data) {
            // The server has the password's hash cached, and the scramble was right.
            (SHA2, Stage::Begun, [3]) => {
                self.stage = Stage::Ended;
                Ok(Progress::Pending)
            }
            (SHA2, Stage::Begun, [4]) => self.full(),
            (SHA2, Stage::KeyRequested, pem) => {
                self.stage = Stage::Ended;
                let nonce = self.nonce.get(..NATIVE_NONCE).ok_or_else(short)?;
                key::encrypt(self.password, nonce, pem).map(Progress::Answer)
            }
            _ => Err(garbage("a message of the authentication")),
        }
    }

    /// The server wants the password itself.
    fn full(&mut self) -> Result<Progress, Error> {
        const ASK_FOR_KEY: u8 = 2;
        if self.transport != Transport::Plain {
            self.stage = Stage::Ended;
            return Ok(Progress::Answer([self.password, &[0]].concat()));
        }
        if self.may_ask_for_key {
            self.stage = Stage::KeyRequested;
            return Ok(Progress::Answer(vec![ASK_FOR_KEY]));
        }
        Err(Error::other(
            "the server does not know the password yet (caching_sha2_password) and wants it in clear; use TLS \
             (ssl-mode=REQUIRED), or get-server-public-key=true where the network can be trusted",
        ))
    }
}

fn short() -> Error {
    garbage("a short nonce")
}

fn sha1(parts: &[&[u8]]) -> Digest {
    digest(&SHA1_FOR_LEGACY_USE_ONLY, &parts.concat())
}

fn sha256(parts: &[&[u8]]) -> Digest {
    digest(&SHA256, &parts.concat())
}

fn xor(left: &[u8], right: &[u8]) -> Vec<u8> {
    left.iter().zip(right).map(|(left, right)| left ^ right).collect()
}

/// `mysql_native_password`.
fn native(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let once = sha1(&[password]);
    let twice = sha1(&[once.as_ref()]);
    xor(once.as_ref(), sha1(&[nonce, twice.as_ref()]).as_ref())
}

/// `caching_sha2_password`'s scramble.
fn sha2(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let once = sha256(&[password]);
    let twice = sha256(&[once.as_ref()]);
    xor(once.as_ref(), sha256(&[twice.as_ref(), nonce]).as_ref())
}
