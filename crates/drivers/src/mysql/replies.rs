//! Commands and their answers one after the other, outside the measured load: set-up, preparation, administration.

use crate::contract::bulk::Table;
use crate::contract::error::Error;
use crate::mysql::wire::{self, End, Fields, Frame, capability, command, status};
use crate::net::channel::Channel;
use crate::net::frame::make_room;

/// The most memory that a result may take, in bytes.
const LARGEST: usize = 256 << 20;

/// A channel, and what the protocol keeps beside it.
pub(crate) struct Link {
    pub(crate) channel: Channel,
    /// The sequence number of the next packet, whoever sends it.
    pub(crate) sequence: u8,
    pub(crate) capabilities: u32,
    pub(crate) more_capabilities: u32,
    /// The server's status when it was last heard of.
    pub(crate) status: u16,
    /// How many warnings the last statement has left.
    pub(crate) warnings: u16,
}

impl Link {
    pub(crate) fn new(channel: Channel) -> Self {
        Self { channel, sequence: 0, capabilities: 0, more_capabilities: 0, status: 0, warnings: 0 }
    }

    /// Sets what client and server have agreed on.
    pub(crate) fn agree(&mut self, capabilities: u32, more_capabilities: u32) {
        (self.capabilities, self.more_capabilities) = (capabilities, more_capabilities);
    }

    /// Whether `OK_Packet` ends rows.
    pub(crate) fn deprecates_eof(&self) -> bool {
        self.capabilities & capability::DEPRECATE_EOF != 0
    }

    /// Whether the server may leave out the description of columns.
    pub(crate) fn caches_metadata(&self) -> bool {
        self.more_capabilities & capability::CACHE_METADATA != 0
    }

    /// Writes a packet that continues the exchange.
    pub(crate) fn packet(&mut self, body: impl FnOnce(&mut Vec<u8>)) {
        let out = self.channel.out();
        let start = wire::begin_packet(out);
        body(out);
        self.sequence = wire::end_packet(out, start, self.sequence);
    }

    /// Writes a command: a new exchange.
    pub(crate) fn command(&mut self, kind: u8, body: &[u8]) {
        self.sequence = 0;
        self.packet(|out| {
            out.push(kind);
            out.extend_from_slice(body);
        });
    }

    /// The next message, whole.
    pub(crate) async fn next(&mut self) -> Result<Vec<u8>, Error> {
        self.next_within(wire::LONGEST).await
    }

    /// The next message, if it is not longer than `longest`.
    pub(crate) async fn next_within(&mut self, longest: usize) -> Result<Vec<u8>, Error> {
        loop {
            let inbox = self.channel.inbox();
            let (payload, last, size) = match wire::frame(inbox.bytes(), longest)? {
                Frame::Packet(payload, sequence, size) => (payload.to_vec(), sequence, size),
                Frame::Packets(last, size) => {
                    let mut joined = Vec::new();
                    wire::join(&inbox.bytes()[..size], &mut joined);
                    (joined, last, size)
                }
                Frame::Partial(size) => {
                    make_room(inbox, size);
                    self.channel.fill().await?;
                    continue;
                }
            };
            let packets = payload.len() / wire::FULL;
            inbox.consume(size);
            // An error may come out of turn: the server had it to say before it was asked.
            if last != self.sequence.wrapping_add(packets as u8) && payload.first() != Some(&0xff) {
                return Err(wire::garbage("the order of its packets"));
            }
            self.sequence = last.wrapping_add(1);
            return Ok(payload);
        }
    }

    /// The next message; an `ERR_Packet` is an error.
    pub(crate) async fn next_good(&mut self) -> Result<Vec<u8>, Error> {
        let payload = self.next().await?;
        if payload.first() == Some(&0xff) {
            return Err(wire::error(&payload));
        }
        Ok(payload)
    }

    /// Notes what the end of a statement says.
    fn ended(&mut self, end: End<'_>) -> bool {
        (self.status, self.warnings) = (end.status, end.warnings);
        end.status & status::MORE_RESULTS != 0
    }

    /// Reads the description of so many columns.
    pub(crate) async fn definitions(&mut self, count: usize) -> Result<Vec<Vec<u8>>, Error> {
        let mut definitions = Vec::new();
        for _ in 0..count {
            definitions.push(self.next_good().await?);
        }
        if count > 0 && !self.deprecates_eof() {
            wire::eof(&self.next_good().await?)?;
        }
        Ok(definitions)
    }

    /// Reads the answer to a command that gives no rows.
    pub(crate) async fn finish(&mut self) -> Result<u64, Error> {
        let payload = self.next_good().await?;
        if payload.first() != Some(&0) {
            return Err(wire::garbage("the answer to a command"));
        }
        let end = wire::ok(&payload)?;
        self.ended(end);
        Ok(end.affected)
    }
}

/// What a statement of a text has come to.
pub(crate) enum Outcome {
    /// No rows.
    Done,
    /// The server asks for the content of a file.
    File,
    /// Rows, as text.
    Rows(Table),
}

/// Sends SQL, without waiting for what comes of it.
pub(crate) async fn send(link: &mut Link, sql: &str) -> Result<(), Error> {
    link.command(command::QUERY, sql.as_bytes());
    Ok(link.channel.flush().await?)
}

/// Reads what has come of the next statement, and whether there are more.
pub(crate) async fn outcome(link: &mut Link) -> Result<(Outcome, bool), Error> {
    let payload = link.next_good().await?;
    match payload.first() {
        Some(0) => {
            let end = wire::ok(&payload)?;
            Ok((Outcome::Done, link.ended(end)))
        }
        Some(0xfb) => Ok((Outcome::File, false)),
        _ => rows(link, &payload).await,
    }
}

async fn rows(link: &mut Link, header: &[u8]) -> Result<(Outcome, bool), Error> {
    let mut fields = Fields(header);
    let count = fields.number()?;
    let count = u16::try_from(count).map_err(|_| wire::garbage("a result"))?;
    let definitions = link.definitions(count.into()).await?;
    let mut table = Table::default();
    for definition in &definitions {
        let name = wire::definition(definition)?.name;
        table.columns.push(String::from_utf8_lossy(name).into_owned());
    }
    let mut size = 0;
    loop {
        let payload = link.next_good().await?;
        if wire::is_end(&payload, link.deprecates_eof()) {
            let end = wire::end(&payload, link.deprecates_eof())?;
            return Ok((Outcome::Rows(table), link.ended(end)));
        }
        let row = text_row(&payload, definitions.len())?;
        size += payload.len() + size_of_val(&row) + size_of_val(row.as_slice());
        if size > LARGEST {
            let (rows, megabytes) = (table.rows.len(), LARGEST >> 20);
            return Err(Error::connection_lost(format!(
                "the result was given up after {rows} rows: it takes more than {megabytes} MiB"
            )));
        }
        table.rows.push(row);
    }
}

fn text_row(payload: &[u8], columns: usize) -> Result<Vec<Option<String>>, Error> {
    let mut fields = Fields(payload);
    (0..columns)
        .map(|_| Ok(fields.text_cell()?.map(|cell| String::from_utf8_lossy(cell).into_owned())))
        .collect()
}

/// Runs one or several statements and gives the last result.
pub(crate) async fn query(link: &mut Link, sql: &str) -> Result<Table, Error> {
    send(link, sql).await?;
    loop {
        let (found, more) = outcome(link).await?;
        let table = match found {
            Outcome::Done => Table::default(),
            Outcome::Rows(table) => table,
            Outcome::File => {
                // An empty packet is an empty file.
                link.packet(|_| {});
                link.channel.flush().await?;
                link.finish().await?;
                return Err(Error::other("LOAD DATA LOCAL cannot be run as a query; use bulk_load"));
            }
        };
        if !more {
            return Ok(table);
        }
    }
}
