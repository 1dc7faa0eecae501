//! One connection from its first byte: the greeting, the client's answer, and then messages in both directions.

use nephoscope_drivers::mysql::capability::{
    CONNECT_WITH_DB, PLUGIN_AUTH_LENENC_DATA, PROTOCOL_41, SECURE_CONNECTION, SSL,
};
use nephoscope_drivers::mysql::{Fields, Greeting};

use super::packets::{Message, Packets};
use super::session::Session;
use super::{Agreed, COMPRESSED, ENCRYPTED, capability};
use crate::reader::LONGEST;
use crate::wire::kept::Foreign;
use crate::wire::{Common, Conversation, FOREIGN, MOST, Side, TOO_MUCH};

/// What is kept of a server's message: of rows, nothing is looked at but how they begin.
const BEGINNING: usize = 1024;
/// The length of an `SSLRequest`: a `HandshakeResponse41` up to its user.
const SETTINGS: usize = 32;

#[derive(Debug)]
enum Phase {
    /// The server is to greet.
    Greeting,
    /// The client is to answer a server that can do this.
    Answer {
        capabilities: u32,
        more: u32,
    },
    Messages,
    /// The server has refused the connection.
    Over,
}

#[derive(Debug)]
pub(super) struct Connection {
    phase: Phase,
    up: Packets,
    down: Packets,
    session: Session,
}

impl Connection {
    pub(super) fn new(name: String) -> Self {
        let (up, down) = (Packets::default(), Packets::default());
        Self { phase: Phase::Greeting, up, down, session: Session::new(name) }
    }

    fn message(&mut self, side: Side, at: i64, bytes: &[u8], to: &mut Common) -> Result<usize, &'static str> {
        let (used, message) = match side {
            Side::Client => self.up.next(bytes, LONGEST),
            Side::Server => self.down.next(bytes, BEGINNING),
        };
        let Some(message) = message else { return Ok(used) };
        match (&self.phase, side) {
            (Phase::Over, _) => {}
            (Phase::Greeting, Side::Server) => self.phase = greeted(message).map_err(|Foreign| FOREIGN)?,
            (Phase::Answer { capabilities, more }, Side::Client) => {
                let (capabilities, more) = (*capabilities, *more);
                let answer = Answer::read(message, capabilities, more)?;
                self.session.begin(answer.database, answer.agreed);
                self.phase = Phase::Messages;
            }
            (Phase::Messages, Side::Client) => self.session.asked(message, at, to)?,
            (Phase::Messages, Side::Server) => {
                self.session.answered(message, at, to).map_err(|Foreign| FOREIGN)?;
            }
            (Phase::Greeting, Side::Client) | (Phase::Answer { .. }, Side::Server) => return Err(FOREIGN),
        }
        Ok(used)
    }
}

impl Conversation for Connection {
    fn passed(&mut self, side: Side, at: i64, mut bytes: &[u8], to: &mut Common) -> Result<(), &'static str> {
        while !bytes.is_empty() {
            let used = self.message(side, at, bytes, to)?;
            if self.session.size() > MOST {
                return Err(TOO_MUCH);
            }
            bytes = &bytes[used..];
        }
        Ok(())
    }

    fn end(&mut self, to: &mut Common) {
        self.session.end(to);
    }
}

fn greeted(message: Message<'_>) -> Result<Phase, Foreign> {
    // A server that has no place for a connection says so, and ends it.
    if message.body.first() == Some(&0xff) {
        return Ok(Phase::Over);
    }
    let Greeting { capabilities, more_capabilities, .. } = Greeting::read(message.body)?;
    Ok(Phase::Answer { capabilities, more: more_capabilities })
}

/// A client's first message ("`HandshakeResponse41`"), without what it proves itself by.
struct Answer {
    database: Box<str>,
    agreed: Agreed,
}

impl Answer {
    fn read(message: Message<'_>, capabilities: u32, more: u32) -> Result<Self, &'static str> {
        let mut fields = Fields(message.body);
        let own = fields.u32().map_err(|_| FOREIGN)?;
        let both = own & capabilities;
        if own & PROTOCOL_41 == 0 {
            return Err(FOREIGN);
        }
        if own & SSL != 0 && message.length == SETTINGS {
            return Err(ENCRYPTED);
        }
        if both & (capability::COMPRESS | capability::COMPRESS_ZSTD) != 0 {
            return Err(COMPRESSED);
        }
        let database = Self::database(fields, own).map_err(|Foreign| FOREIGN)?;
        let own_more = Fields(message.body.get(SETTINGS - 4..).unwrap_or_default()).u32().unwrap_or(0);
        Ok(Self { database, agreed: Agreed::of(both, own_more & more) })
    }

    fn database(mut fields: Fields<'_>, own: u32) -> Result<Box<str>, Foreign> {
        fields.bytes(SETTINGS - 4)?;
        let _user = fields.until_zero();
        let _proof = if own & PLUGIN_AUTH_LENENC_DATA != 0 {
            fields.string()?
        } else if own & SECURE_CONNECTION != 0 {
            let length = fields.u8()?;
            fields.bytes(length.into())?
        } else {
            fields.until_zero()
        };
        let database = if own & CONNECT_WITH_DB != 0 { fields.until_zero() } else { &[] };
        Ok(String::from_utf8_lossy(database).into())
    }
}
