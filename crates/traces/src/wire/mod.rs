//! Statements as they pass between clients and a server. Takes bytes of both directions and does no I/O; memory is bounded
//! for each connection. A protocol is a folder, and a line in the table of [`PROTOCOLS`].

mod kept;
mod mysql;
mod postgres;
mod target;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, HashMap};

use nephoscope_drivers::Lexer;

use crate::batch::Batch;
use crate::intake::{Event, Intake, WINDOW};
use crate::mask::Mask;
use crate::reader::Options;
use kept::Text;

pub use target::{Target, target};

/// How clients and servers of a family speak.
pub struct Protocol {
    /// The schemes of URLs.
    schemes: &'static [&'static str],
    /// The port of servers that are not told to use another.
    port: u16,
    lexer: Lexer,
    /// What a trace says of itself: its format, the dialect of its statements, how fine its times are in microseconds.
    pub kind: (&'static str, &'static str, u64),
    /// The command of a client that connects to `{host}` and `{port}` without encryption.
    connect: &'static str,
    /// Follows a connection, whose session has this name, from its first byte.
    follow: fn(String) -> Box<dyn Conversation>,
}

/// Every protocol.
pub const PROTOCOLS: [&Protocol; 2] = [&postgres::PROTOCOL, &mysql::PROTOCOL];

impl Protocol {
    /// The command of a client that connects to an address, as `host:port`.
    #[must_use]
    pub fn connect(&self, address: &str) -> String {
        let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
        self.connect.replace("{host}", host.trim_matches(['[', ']'])).replace("{port}", port)
    }
}

/// What may be remembered of a connection, in bytes.
const MOST: usize = 32 << 20;
/// Room that has been larger is given back.
const ROOM: usize = 64 * 1024;

const FOREIGN: &str = "connections that do not speak the protocol, from there on";
const TOO_MUCH: &str = "connections with more than 32 MiB of statements, from there on";
const REPLICATION: &str = "connections of replication";
const FETCHES: &str = "fetches of further rows";
const NOT_UTF8: &str = "statements that are not UTF-8";
const NOT_READ: &str = "statements whose values cannot be read";
const TYPES: &str = "statements with a value in binary whose type is not known here";
const UNKNOWN: &str = "executions of statements that were not seen";

/// Who sends bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// What all connections share.
struct Common {
    intake: Intake,
    /// What servers of `PostgreSQL` have said of parameters.
    described: postgres::Described,
}

/// How a statement ended.
struct Ended<'a> {
    at: Option<i64>,
    rows: Option<u64>,
    error: Option<&'a str>,
}

impl Common {
    /// Takes a statement that began at a time, or why its text is not known.
    fn give(
        &mut self,
        session: &str,
        database: &str,
        text: &Text,
        bound: Vec<Option<String>>,
        at: i64,
        ended: &Ended<'_>,
    ) {
        match text {
            Ok(text) => self.intake.take(Event {
                session,
                database,
                time_us: at,
                duration_us: ended.at.map(|end| (end - at).max(0)),
                text,
                rows: ended.rows,
                bound,
                beside: "",
                error: ended.error,
            }),
            Err(why) => self.intake.miss(session, database, why),
        }
    }
}

/// One connection from its first byte.
trait Conversation: Send {
    /// Takes bytes that passed at a time, in microseconds since 1970; or says why it is followed no more.
    fn passed(&mut self, side: Side, at: i64, bytes: &[u8], to: &mut Common) -> Result<(), &'static str>;

    /// The connection has ended.
    fn end(&mut self, to: &mut Common);
}

/// Makes a trace of what passes between clients and a server.
pub struct Recorder {
    common: Common,
    protocol: &'static Protocol,
    /// Nothing of those that are followed no more.
    connections: HashMap<u64, Option<Box<dyn Conversation>>>,
    /// How many connections there were.
    seen: u64,
    /// A time of the monotonic clock in nanoseconds, and the same in microseconds since 1970.
    anchor: (u64, i64),
    ended: bool,
}

impl Recorder {
    /// A recorder whose times are told by one time on both clocks: the monotonic one in nanoseconds, and the time of day in
    /// microseconds since 1970.
    ///
    /// # Errors
    ///
    /// If values are to be masked, and the system has no random numbers.
    pub fn new(
        protocol: &'static Protocol,
        options: &Options,
        monotonic_ns: u64,
        unix_us: i64,
    ) -> Result<Self, String> {
        let mask = if options.mask { Some(Mask::new()?) } else { None };
        let intake = Intake::new(protocol.lexer, mask, options.database.clone());
        Ok(Self {
            common: Common { intake, described: postgres::Described::default() },
            protocol,
            connections: HashMap::new(),
            seen: 0,
            anchor: (monotonic_ns, unix_us),
            ended: false,
        })
    }

    /// Takes bytes that somebody has sent, at a time of the monotonic clock.
    pub fn passed(&mut self, connection: u64, side: Side, at_ns: u64, bytes: &[u8]) {
        let (monotonic, unix) = self.anchor;
        let at = unix + (at_ns as i64).wrapping_sub(monotonic as i64).div_euclid(1000);
        let followed = self.connections.entry(connection).or_insert_with(|| {
            self.seen += 1;
            Some((self.protocol.follow)(connection.to_string()))
        });
        let Some(conversation) = followed else { return };
        if let Err(why) = conversation.passed(side, at, bytes, &mut self.common) {
            self.common.intake.leave_out(why);
            *followed = None;
        }
    }

    /// Takes the end of a connection.
    pub fn ended(&mut self, connection: u64) {
        if let Some(Some(mut conversation)) = self.connections.remove(&connection) {
            conversation.end(&mut self.common);
        }
        self.common.intake.end_session(&connection.to_string());
    }

    /// Takes the end of the recording, and with it of every connection.
    pub fn end(&mut self) {
        let mut left: Vec<u64> = self.connections.keys().copied().collect();
        left.sort_unstable();
        for connection in left {
            self.ended(connection);
        }
        self.common.intake.end();
        self.ended = true;
    }

    /// Statements in the order of their beginnings as far as a window of them tells, once there are enough or the recording
    /// has ended.
    pub fn ready(&mut self) -> Option<Batch> {
        if self.ended || self.common.intake.waiting() >= WINDOW { self.common.intake.ready() } else { None }
    }

    /// What was left out so far: why, and how often.
    #[must_use]
    pub fn left_out(&self) -> &BTreeMap<&'static str, u64> {
        self.common.intake.left_out()
    }

    /// How many connections there were.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.seen
    }
}
