//! A conversation with a server whose bytes are given: what fuzz targets of drivers hold together.

use std::slice::Chunks;

use nephoscope_runtime::Inbox;

use crate::contract::driver::{ConnectionState, Reply};
use crate::contract::error::ErrorClass;
use crate::contract::rows::{ResultIndex, Rows};
use crate::net::session::{Machine, Progress};

/// How a flush ended, and where that left the connection.
type Outcome = (Result<Reply, (ErrorClass, String)>, ConnectionState);

/// How each flush ended, what was sent, how many rows each result has.
pub(crate) type Transcript = (Vec<Outcome>, Vec<u8>, Vec<usize>);

/// A conversation that goes on.
pub(crate) struct Conversation<'a> {
    size: usize,
    pieces: Chunks<'a, u8>,
    inbox: Inbox,
    rows: Rows,
    outcomes: Vec<Outcome>,
    /// What the machine sends.
    pub(crate) sent: Vec<u8>,
}

impl<'a> Conversation<'a> {
    /// With a server that sends these bytes, in pieces of `cut`.
    pub(crate) fn new(bytes: &'a [u8], cut: usize) -> Self {
        Self {
            size: bytes.len(),
            pieces: bytes.chunks(cut),
            inbox: Inbox::default(),
            rows: Rows::default(),
            outcomes: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// Gives the machine pieces until its flush has ended, and tells where that left the connection; None where the
    /// bytes end before.
    ///
    /// # Panics
    /// If a claimed length costs memory.
    pub(crate) fn hear(&mut self, machine: &mut impl Machine) -> Option<ConnectionState> {
        let outcome = loop {
            match machine.feed(&mut self.inbox, &mut self.sent, &mut self.rows) {
                Ok(Progress::Done(reply)) => break Ok(reply),
                Err(error) => break Err((error.class(), error.code().to_owned())),
                Ok(Progress::More) => {}
            }
            self.inbox.extend(self.pieces.next()?);
            let room = self.inbox.room().len();
            assert!(room <= 4 * self.size + (1 << 18), "{room} bytes of room for {}", self.size);
        };
        self.outcomes.push((outcome, machine.state()));
        Some(machine.state())
    }

    /// Ends it.
    pub(crate) fn end(self) -> Transcript {
        let rows = self.rows;
        let counts = (0..u32::MAX)
            .map(ResultIndex::from)
            .take_while(|result| rows.columns(*result).is_some())
            .map(|result| rows.count(result))
            .collect();
        (self.outcomes, self.sent, counts)
    }
}
