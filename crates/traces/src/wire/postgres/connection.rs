//! One connection from its first byte: how it begins, its messages in both directions, and why it is not followed.

use nephoscope_drivers::postgres::Fields;

use super::ENCRYPTED;
use super::frames::{Frames, Keep};
use super::session::Session;
use crate::wire::kept::Foreign;
use crate::wire::{Common, Conversation, FOREIGN, MOST, REPLICATION, Side, TOO_MUCH};

/// The longest message that opens a connection, by the server's own limit.
const LONGEST_GREETING: usize = 10_000;
/// Codes in the place of a version.
const CANCEL: u32 = 80_877_102;
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
const VERSION: u32 = 3;
/// The first byte of a connection that begins with TLS.
const HANDSHAKE: u8 = 22;

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    /// The client is to say what it wants.
    Greeting,
    /// It has asked for encryption.
    Asked,
    Messages,
    /// It is not followed.
    Over,
}

#[derive(Debug)]
pub(super) struct Connection {
    phase: Phase,
    greeting: Vec<u8>,
    up: Frames,
    down: Frames,
    session: Session,
}

impl Connection {
    pub(super) fn new(name: String) -> Self {
        let session = Session::new(name);
        let (up, down) = (Frames::default(), Frames::default());
        Self { phase: Phase::Greeting, greeting: Vec::new(), up, down, session }
    }
}

impl Conversation for Connection {
    fn passed(&mut self, side: Side, at: i64, mut bytes: &[u8], to: &mut Common) -> Result<(), &'static str> {
        while !bytes.is_empty() {
            bytes = match (&self.phase, side) {
                (Phase::Over, _) => return Ok(()),
                (Phase::Greeting, Side::Client) => self.greeted(bytes)?,
                (Phase::Asked, Side::Server) => self.encrypted_or_not(bytes)?,
                (Phase::Messages, _) => {
                    let used = self.message(side, at, bytes, to).map_err(|Foreign| FOREIGN)?;
                    if self.session.size() > MOST {
                        return Err(TOO_MUCH);
                    }
                    &bytes[used..]
                }
                (Phase::Greeting, Side::Server) | (Phase::Asked, Side::Client) => return Err(FOREIGN),
            };
        }
        Ok(())
    }

    fn end(&mut self, to: &mut Common) {
        self.session.end(to);
    }
}

impl Connection {
    fn message(&mut self, side: Side, at: i64, bytes: &[u8], to: &mut Common) -> Result<usize, Foreign> {
        let (used, message) = match side {
            Side::Client => self.up.next(bytes, of_client)?,
            Side::Server => self.down.next(bytes, of_server)?,
        };
        match (message, side) {
            (None, _) => {}
            (Some(message), Side::Client) => self.session.asked(message, at, to)?,
            (Some(message), Side::Server) => self.session.answered(message, at, to)?,
        }
        Ok(used)
    }

    /// Takes what opens the connection; gives the bytes behind it.
    fn greeted<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], &'static str> {
        if self.greeting.is_empty() && bytes.first() == Some(&HANDSHAKE) {
            return Err(ENCRYPTED);
        }
        let mut rest = bytes;
        for wanted in [4, 8] {
            let (taken, behind) = rest.split_at(rest.len().min(wanted - self.greeting.len().min(wanted)));
            self.greeting.extend_from_slice(taken);
            rest = behind;
        }
        let Some((head, _)) = self.greeting.split_first_chunk::<8>() else { return Ok(rest) };
        let [length @ .., _, _, _, _] = *head;
        let [_, _, _, _, code @ ..] = *head;
        let (length, code) = (u32::from_be_bytes(length) as usize, u32::from_be_bytes(code));
        if !(8..=LONGEST_GREETING).contains(&length) {
            return Err(FOREIGN);
        }
        let (taken, behind) = rest.split_at(rest.len().min(length - self.greeting.len()));
        self.greeting.extend_from_slice(taken);
        if self.greeting.len() == length {
            let greeting = std::mem::take(&mut self.greeting);
            self.begin(code, &greeting[8..])?;
        }
        Ok(behind)
    }

    fn begin(&mut self, code: u32, parameters: &[u8]) -> Result<(), &'static str> {
        match code {
            TLS | GSS => self.phase = Phase::Asked,
            CANCEL => self.phase = Phase::Over,
            _ if code >> 16 == VERSION => {
                let (mut user, mut database) = (String::new(), None);
                let mut fields = Fields(parameters);
                while let Some(name) = fields.bytes().ok().filter(|name| !name.is_empty()) {
                    let value = String::from_utf8_lossy(fields.bytes().map_err(|_| FOREIGN)?);
                    match name {
                        b"user" => user = value.into_owned(),
                        b"database" => database = Some(value.into_owned()).filter(|name| !name.is_empty()),
                        b"replication" if !matches!(&*value, "false" | "off" | "no" | "0") => {
                            return Err(REPLICATION);
                        }
                        _ => {}
                    }
                }
                // The server, too, takes the user's name where there is no other.
                self.session.begin(database.unwrap_or(user));
                self.phase = Phase::Messages;
            }
            _ => return Err(FOREIGN),
        }
        Ok(())
    }

    /// Takes the server's answer to a wish for encryption.
    fn encrypted_or_not<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], &'static str> {
        let (answer, rest) = bytes.split_first().ok_or(FOREIGN)?;
        match answer {
            b'N' => self.phase = Phase::Greeting,
            b'S' | b'G' => return Err(ENCRYPTED),
            // An error: the server ends the connection.
            b'E' => self.phase = Phase::Over,
            _ => return Err(FOREIGN),
        }
        Ok(rest)
    }
}

/// What is kept of a client's messages. Of passwords ('p'), nothing.
fn of_client(tag: u8) -> Option<Keep> {
    Some(match tag {
        b'B' | b'P' | b'Q' => Keep::All,
        b'C' | b'D' | b'E' => Keep::Beginning,
        b'F' | b'H' | b'S' | b'X' | b'c' | b'd' | b'f' | b'p' => Keep::Type,
        _ => return None,
    })
}

/// What is kept of a server's messages.
fn of_server(tag: u8) -> Option<Keep> {
    Some(match tag {
        b't' => Keep::All,
        b'C' | b'E' | b'Z' => Keep::Beginning,
        b'1' | b'2' | b'3' | b'A' | b'D' | b'G' | b'H' | b'I' | b'K' | b'N' | b'R' | b'S' | b'T' | b'V'
        | b'W' | b'c' | b'd' | b'n' | b's' | b'v' => Keep::Type,
        _ => return None,
    })
}
