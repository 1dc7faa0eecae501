//! Statements as they pass between clients and a `PostgreSQL` server (manual, chapter 53 "Frontend/Backend Protocol").
//! Takes bytes of both directions and does no I/O; memory is bounded for each connection.

mod connection;
mod described;
mod frames;
mod kept;
mod session;
mod statement;
mod target;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, HashMap};

use nephoscope_drivers::Lexer;

use crate::batch::Batch;
use crate::intake::{Intake, WINDOW};
use crate::mask::Mask;
use crate::reader::Options;
use connection::Connection;
use described::Described;

pub use target::target;

/// What a trace says of itself: its format, the dialect of its statements, how fine its times are in microseconds.
pub const KIND: (&str, &str, u64) = ("postgresql-wire", "postgres", 1);

const ENCRYPTED: &str = "connections that are encrypted: connect with sslmode=disable";
const FOREIGN: &str = "connections that do not speak PostgreSQL's protocol, version 3, from there on";
const TOO_MUCH: &str = "connections with more than 32 MiB of statements, from there on";
const WALSENDERS: &str = "connections of replication";
const FETCHES: &str = "fetches of further rows";
const FUNCTIONS: &str = "calls of functions by the protocol";
const NOT_UTF8: &str = "statements that are not UTF-8";
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
    described: Described,
}

/// Makes a trace of what passes between clients and a server.
pub struct Recorder {
    common: Common,
    connections: HashMap<u64, Connection>,
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
    pub fn new(options: &Options, monotonic_ns: u64, unix_us: i64) -> Result<Self, String> {
        let mask = if options.mask { Some(Mask::new()?) } else { None };
        let intake = Intake::new(Lexer::POSTGRES, mask, options.database.clone());
        Ok(Self {
            common: Common { intake, described: Described::default() },
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
        let found = self.connections.entry(connection).or_insert_with(|| {
            self.seen += 1;
            Connection::new(connection.to_string())
        });
        found.passed(side, at, bytes, &mut self.common);
    }

    /// Takes the end of a connection.
    pub fn ended(&mut self, connection: u64) {
        if let Some(mut found) = self.connections.remove(&connection) {
            found.end(&mut self.common);
        }
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
