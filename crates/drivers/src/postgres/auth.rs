//! Authentication: what the client answers to the server's Authentication messages.
//!
//! Manual, "Message Flow: Start-up" and "SASL Authentication"; RFC 5802 and RFC 7677 for SCRAM. Nothing here
//! reads or writes a socket. Where libpq would go on and this does not:
//!
//! * A password in clear text is sent only under TLS or over a Unix socket.
//! * The server must prove that it knows the password too: it may not end a SCRAM exchange before its
//!   signature.
//! * More than 100,000 iterations in SCRAM are refused, as they would keep this side busy for a hostile
//!   server.

#[cfg(test)]
mod tests;

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::message::frontend;
use rustls::ClientConnection;

use crate::contract::error::Error;
use crate::net::scram::{Binding, Exchange, Hash, SCRAM_SHA_256, SCRAM_SHA_256_PLUS};
use crate::net::secret::Password;
use crate::net::settings::Host;
use crate::net::tls::end_point_binding;
use crate::postgres::config::{ChannelBinding, Config, PROTOCOL, SslNegotiation};

/// What lies under the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP without TLS: everybody on the way can read along.
    Plain,
    /// A Unix socket.
    Unix,
    /// TLS.
    Tls {
        /// What the SCRAM exchange can be bound to
        /// ([`end_point_binding`]); `None` where the certificate's
        /// signature has no hash function for that.
        end_point: Option<Vec<u8>>,
    },
}

impl Transport {
    /// A connection under TLS, once its handshake is complete.
    ///
    /// An error where TLS was begun directly and the server did not say that it speaks `PostgreSQL`'s protocol.
    pub fn encrypted(config: &Config, session: &ClientConnection, host: &Host) -> Result<Self, Error> {
        if config.negotiation == SslNegotiation::Direct && session.alpn_protocol() != Some(PROTOCOL) {
            return Err(Error::other(format!(
                "TLS with {host}: the server does not know the protocol \"postgresql\" (ALPN), which \
                 sslnegotiation=direct needs; it is older than PostgreSQL 17, or no PostgreSQL"
            )));
        }
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        Ok(Self::Tls { end_point: certificate.and_then(|certificate| end_point_binding(certificate)) })
    }
}

/// How far the authentication is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// What was written is to be sent, if anything was; then the next Authentication message is awaited.
    Pending,
    /// The server has let the client in.
    Done,
}

/// The authentication of one connection.
///
/// It is fed with the body of each Authentication message (type `R`) until [`Progress::Done`]. An error is
/// final.
pub struct Authentication {
    user: String,
    password: Option<Password>,
    channel_binding: ChannelBinding,
    transport: Transport,
    state: State,
}

enum State {
    /// Nothing was asked yet.
    Start,
    /// The password was sent, in clear text or hashed.
    PasswordSent,
    /// The first SCRAM message was sent.
    ScramStarted(Scram),
    /// The proof was sent.
    ScramProved(Scram),
    /// The server has proved itself.
    ScramVerified { bound: bool },
    /// After `AuthenticationOk`, or an error.
    Ended,
}

struct Scram {
    exchange: Exchange,
    /// Whether it is bound to the TLS channel.
    bound: bool,
}

impl Authentication {
    /// An authentication of a role, with its password for this host where there is one.
    #[must_use]
    pub fn new(
        user: &str,
        password: Option<&Password>,
        channel_binding: ChannelBinding,
        transport: Transport,
    ) -> Self {
        let password = password.filter(|password| !password.expose().is_empty()).cloned();
        Self { user: user.to_owned(), password, channel_binding, transport, state: State::Start }
    }

    /// Answers an Authentication message: what is to be sent is appended to `out`.
    ///
    /// An error says why this side does not go on; no message holds the password. That the server refuses the
    /// password it says itself, in an `ErrorResponse`, which is not fed in here.
    pub fn receive(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<Progress, Error> {
        let state = std::mem::replace(&mut self.state, State::Ended);
        let (kind, data) = body.split_first_chunk::<4>().ok_or_else(|| garbage("it is too short"))?;
        let kind = i32::from_be_bytes(*kind);
        self.check_binding(kind)?;
        let next = match (kind, state) {
            (0, state) => return self.admitted(&state),
            (3, State::Start) => self.clear_text(out)?,
            (5, State::Start) => self.md5(data, out)?,
            (10, State::Start) => self.start_scram(data, out)?,
            (11, State::ScramStarted(scram)) => prove(scram, data, out)?,
            (12, State::ScramProved(scram)) => verify(&scram, data)?,
            (3 | 5 | 10 | 11 | 12, _) => return Err(garbage("it comes out of turn")),
            (kind, _) => return Err(not_supported(kind)),
        };
        self.state = next;
        Ok(Progress::Pending)
    }

    /// With channel binding required, nothing but SASL is answered: a server that asks for a password in
    /// another way may not be the one that is meant.
    fn check_binding(&self, kind: i32) -> Result<(), Error> {
        if self.channel_binding == ChannelBinding::Require && !matches!(kind, 0 | 10 | 11 | 12) {
            return Err(Error::other(format!(
                "channel_binding=require: the server asks for {}, which cannot be bound to the TLS channel",
                method(kind)
            )));
        }
        Ok(())
    }

    fn admitted(&self, state: &State) -> Result<Progress, Error> {
        if matches!(state, State::ScramStarted(_) | State::ScramProved(_)) {
            return Err(Error::other(
                "the server ended the SCRAM exchange without a proof that it knows the password",
            ));
        }
        if matches!(state, State::Ended) {
            return Err(garbage("it comes out of turn"));
        }
        let bound = matches!(state, State::ScramVerified { bound: true });
        if self.channel_binding == ChannelBinding::Require && !bound {
            return Err(Error::other(
                "channel_binding=require: the server let the client in without channel binding",
            ));
        }
        Ok(Progress::Done)
    }

    fn clear_text(&self, out: &mut Vec<u8>) -> Result<State, Error> {
        if self.transport == Transport::Plain {
            return Err(Error::other(
                "the server asks for the password in clear text, and the connection is neither under TLS \
                 nor over a Unix socket; use sslmode=require, or have pg_hba.conf say scram-sha-256",
            ));
        }
        send_password(self.password()?.expose(), out)
    }

    fn md5(&self, salt: &[u8], out: &mut Vec<u8>) -> Result<State, Error> {
        let salt = salt.try_into().map_err(|_| garbage("the salt for MD5 is not of 4 bytes"))?;
        let hash = md5_hash(self.user.as_bytes(), self.password()?.expose(), salt);
        send_password(hash.as_bytes(), out)
    }

    fn start_scram(&self, mechanisms: &[u8], out: &mut Vec<u8>) -> Result<State, Error> {
        let offered: Vec<&[u8]> = mechanisms.split(|&b| b == 0).filter(|name| !name.is_empty()).collect();
        let (mechanism, binding) = self.choose(&offered)?;
        // The start-up message has told the user.
        let exchange = Exchange::new(Hash::Sha256, "", self.password()?, binding)?;
        let first = exchange.first();
        encode(out, |buffer| frontend::sasl_initial_response(mechanism, first.as_bytes(), buffer))?;
        Ok(State::ScramStarted(Scram { exchange, bound: mechanism == SCRAM_SHA_256_PLUS }))
    }

    /// The mechanism and the GS2 flag (RFC 5802, section 6). The flag says `y` where this side could bind and
    /// the server did not offer it: a server that did offer it then knows that somebody stands between. It
    /// says `n` where this side cannot bind, for want of a hash function too; libpq fails there.
    fn choose(&self, offered: &[&[u8]]) -> Result<(&'static str, Binding), Error> {
        let offers = |name: &str| offered.contains(&name.as_bytes());
        let required = self.channel_binding == ChannelBinding::Require;
        let Transport::Tls { end_point } = &self.transport else {
            if required {
                return Err(Error::other("channel_binding=require: the connection is not under TLS"));
            }
            if offers(SCRAM_SHA_256_PLUS) {
                return Err(Error::other(
                    "the server offers SCRAM-SHA-256-PLUS, which needs TLS, on a connection without it; \
                     does somebody on the way take the TLS off?",
                ));
            }
            return plain_scram(offered, Binding::unsupported());
        };
        if self.channel_binding == ChannelBinding::Disable {
            return plain_scram(offered, Binding::unsupported());
        }
        match end_point {
            Some(end_point) if offers(SCRAM_SHA_256_PLUS) => {
                Ok((SCRAM_SHA_256_PLUS, Binding::end_point(end_point.clone())))
            }
            None if required => Err(Error::other(
                "channel_binding=require: the signature of the server's certificate has no hash function \
                 to bind to, as Ed25519 has none; RSA and ECDSA with SHA-2 have one",
            )),
            _ if required => {
                Err(Error::other("channel_binding=require: the server does not offer SCRAM-SHA-256-PLUS"))
            }
            Some(_) => plain_scram(offered, Binding::unrequested()),
            None => plain_scram(offered, Binding::unsupported()),
        }
    }

    fn password(&self) -> Result<&Password, Error> {
        self.password.as_ref().ok_or_else(|| {
            Error::other(format!(
                "the server asks for a password for user \"{}\", and none was given (URL, PGPASSWORD or \
                 ~/.pgpass)",
                self.user
            ))
        })
    }
}

fn plain_scram(offered: &[&[u8]], binding: Binding) -> Result<(&'static str, Binding), Error> {
    if offered.contains(&SCRAM_SHA_256.as_bytes()) {
        return Ok((SCRAM_SHA_256, binding));
    }
    let names: Vec<_> = offered.iter().map(|name| String::from_utf8_lossy(name)).collect();
    Err(Error::other(format!(
        "the server offers the SASL mechanisms \"{}\"; supported are {SCRAM_SHA_256}, and \
         {SCRAM_SHA_256_PLUS} under TLS",
        names.join(", ")
    )))
}

fn prove(mut scram: Scram, data: &[u8], out: &mut Vec<u8>) -> Result<State, Error> {
    let proof = scram.exchange.prove(data)?;
    encode(out, |buffer| frontend::sasl_response(proof.as_bytes(), buffer))?;
    Ok(State::ScramProved(scram))
}

fn verify(scram: &Scram, data: &[u8]) -> Result<State, Error> {
    scram.exchange.verify(data)?;
    Ok(State::ScramVerified { bound: scram.bound })
}

fn send_password(password: &[u8], out: &mut Vec<u8>) -> Result<State, Error> {
    encode(out, |buffer| frontend::password_message(password, buffer))?;
    Ok(State::PasswordSent)
}

/// Appends a message. It goes through a buffer of its own, as the encoder writes into no other kind.
fn encode(out: &mut Vec<u8>, write: impl FnOnce(&mut BytesMut) -> std::io::Result<()>) -> Result<(), Error> {
    let mut buffer = BytesMut::new();
    write(&mut buffer).map_err(|_| Error::other("the password holds a zero byte, or is too long"))?;
    out.extend_from_slice(&buffer);
    Ok(())
}

fn garbage(what: &str) -> Error {
    Error::other(format!("the server sent an Authentication message that makes no sense: {what}"))
}

fn not_supported(kind: i32) -> Error {
    Error::other(format!(
        "the server asks for {}, which is not supported; supported are scram-sha-256, md5, password, and \
         the methods that ask for nothing (trust, peer, cert)",
        method(kind)
    ))
}

/// The authentication method behind a request's number (manual, "Message Formats").
fn method(kind: i32) -> String {
    match kind {
        1 | 2 => "Kerberos authentication".to_owned(),
        3 => "the password in clear text".to_owned(),
        4 => "a password hashed by crypt".to_owned(),
        5 => "the password hashed by MD5".to_owned(),
        6 => "SCM credentials".to_owned(),
        7 | 8 => "GSSAPI authentication".to_owned(),
        9 => "SSPI authentication".to_owned(),
        kind => format!("the unknown authentication method {kind}"),
    }
}
