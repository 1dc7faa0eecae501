//! The connection for set-up, loading and checks: it blocks, on a runtime of its own.

use std::sync::Arc;

use nephoscope_runtime::Runtime;
use nephoscope_runtime::clock::{self, Nanos, SECOND};

use crate::bulk::{Admin, RowEncoder, RowSource, Table};
use crate::channel::Channel;
use crate::error::Error;
use crate::postgres::startup::{Endpoint, next_message};
use crate::postgres::types::{self, Type};
use crate::postgres::wire::{self, Fields};
use crate::value::Value;

/// How long a statement of the set-up may be silent: an index on a large table takes its time.
const PATIENCE: Nanos = 24 * 3600 * SECOND;
/// Rows are sent when so many bytes of them are ready.
const CHUNK: usize = 256 * 1024;
/// The header of COPY's binary format: signature, flags, no extension (manual, COPY, "Binary Format").
const COPY_HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The settings that say most about how a server performs.
const FACTS: &str = "SELECT name, setting || COALESCE(unit, '') FROM pg_catalog.pg_settings WHERE name IN (
  'server_version', 'shared_buffers', 'effective_cache_size', 'work_mem', 'maintenance_work_mem', 'max_connections',
  'fsync', 'synchronous_commit', 'full_page_writes', 'wal_level', 'wal_compression', 'wal_buffers', 'max_wal_size',
  'checkpoint_timeout', 'checkpoint_completion_target', 'random_page_cost', 'effective_io_concurrency', 'jit',
  'autovacuum', 'default_transaction_isolation', 'synchronous_standby_names', 'huge_pages', 'data_checksums',
  'server_encoding', 'block_size', 'io_method') ORDER BY name";

pub(crate) struct PostgresAdmin {
    runtime: Runtime,
    channel: Channel,
}

impl PostgresAdmin {
    /// Connects and runs the set-up that every connection gets.
    pub(crate) fn connect(endpoint: &Arc<Endpoint>, on_connect: &[String]) -> Result<Self, Error> {
        let runtime = Runtime::new()?;
        let channel = runtime.block_on(async {
            let mut established = endpoint.establish(&runtime).await?;
            for sql in on_connect {
                simple_query(&mut established.channel, sql).await?;
            }
            Ok::<_, Error>(established.channel)
        })?;
        Ok(Self { runtime, channel })
    }
}

impl Drop for PostgresAdmin {
    fn drop(&mut self) {
        self.channel.out().extend_from_slice(&wire::TERMINATE);
        let Self { runtime, channel } = self;
        channel.set_deadline(clock::now() + SECOND);
        // A polite end; closing the socket says the same.
        let _ = runtime.block_on(channel.flush());
    }
}

impl Admin for PostgresAdmin {
    fn query(&mut self, sql: &str) -> Result<Table, Error> {
        let Self { runtime, channel } = self;
        channel.set_deadline(clock::now() + PATIENCE);
        runtime.block_on(simple_query(channel, sql))
    }

    fn bulk_load(&mut self, table: &str, columns: &[String], rows: &mut dyn RowSource) -> Result<u64, Error> {
        let Self { runtime, channel } = self;
        channel.set_deadline(clock::now() + PATIENCE);
        runtime.block_on(copy_in(channel, table, columns, rows))
    }

    fn server_facts(&mut self) -> Result<Vec<(String, String)>, Error> {
        let version = self.query("SELECT version()")?;
        let settings = self.query(FACTS)?;
        let pair = |row: Vec<Option<String>>| {
            let mut cells = row.into_iter().flatten();
            Some((cells.next()?, cells.next()?))
        };
        let version = version.rows.into_iter().next().and_then(|row| row.into_iter().next().flatten());
        let version = version.map(|version| ("version".to_owned(), version));
        Ok(version.into_iter().chain(settings.rows.into_iter().filter_map(pair)).collect())
    }
}

/// Runs one or several statements by the simple protocol and gives the last result.
pub(crate) async fn simple_query(channel: &mut Channel, sql: &str) -> Result<Table, Error> {
    wire::query(channel.out(), sql);
    channel.flush().await?;
    let (mut table, mut failed) = (Table::default(), None);
    loop {
        let (tag, body) = next_message(channel).await?;
        match tag {
            b'T' => table = Table { columns: column_names(&body)?, rows: Vec::new() },
            b'D' => table.rows.push(text_row(&body)?),
            b'E' => failed = Some(wire::error(&body)),
            b'Z' => return failed.map_or(Ok(table), Err),
            _ => {}
        }
    }
}

fn column_names(body: &[u8]) -> Result<Vec<String>, Error> {
    described_columns(body).map(|columns| columns.into_iter().map(|(name, _)| name).collect())
}

/// Reads a `RowDescription`: names and types.
pub(crate) fn described_columns(body: &[u8]) -> Result<Vec<(String, Type)>, Error> {
    let mut fields = Fields(body);
    let count = fields.i16()?;
    let column = |_| {
        let name = fields.text()?.to_owned();
        // The table, the column's number in it; then the type; then its size, modifier and format.
        fields.take::<6>()?;
        let of = Type::of(fields.u32()?);
        fields.take::<8>()?;
        Ok((name, of))
    };
    (0..count.max(0)).map(column).collect()
}

fn text_row(body: &[u8]) -> Result<Vec<Option<String>>, Error> {
    let mut fields = Fields(body);
    let count = fields.i16()?;
    let cell = |_| {
        let length = i32::from_be_bytes(fields.take()?);
        let Ok(size) = usize::try_from(length) else { return Ok(None) };
        let (cell, rest) = fields.0.split_at_checked(size).ok_or_else(|| wire::garbage("DataRow"))?;
        fields.0 = rest;
        Ok(Some(String::from_utf8_lossy(cell).into_owned()))
    };
    (0..count.max(0)).map(cell).collect()
}

/// A name as SQL takes it whatever it is.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Loads rows by COPY in its binary form. What the server has to say it says at the end, or at once if it is an error.
async fn copy_in(
    channel: &mut Channel,
    table: &str,
    columns: &[String],
    rows: &mut dyn RowSource,
) -> Result<u64, Error> {
    let list = columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let types = column_types(channel, &format!("SELECT {list} FROM {} LIMIT 0", quoted(table))).await?;
    wire::query(channel.out(), &format!("COPY {} ({list}) FROM STDIN (FORMAT binary)", quoted(table)));
    channel.flush().await?;
    loop {
        let (tag, body) = next_message(channel).await?;
        match tag {
            b'G' => break,
            b'E' => {
                let error = wire::error(&body);
                await_ready(channel).await?;
                return Err(error);
            }
            _ => {}
        }
    }
    let mut encoder =
        CopyEncoder { table, columns, types: &types, out: COPY_HEADER.to_vec(), row: 0, cells: 0 };
    let outcome = loop {
        let more = match rows.fill(&mut encoder) {
            Ok(more) => more,
            Err(error) => break Err(error),
        };
        if !more {
            encoder.out.extend_from_slice(&(-1_i16).to_be_bytes());
        }
        if !more || encoder.out.len() >= CHUNK {
            wire::message(channel.out(), b'd', |out| out.extend_from_slice(&encoder.out));
            encoder.out.clear();
            if let Err(error) = channel.flush().await {
                break Err(error.into());
            }
        }
        if !more {
            break Ok(());
        }
    };
    match outcome {
        Ok(()) => channel.out().extend_from_slice(&wire::COPY_DONE),
        Err(ref error) => wire::message(channel.out(), b'f', |out| wire::put_text(out, &error.to_string())),
    }
    channel.flush().await?;
    let loaded = await_ready(channel).await;
    outcome.and(loaded)
}

/// Reads to the next `ReadyForQuery`; gives the rows of the last command, or its error.
async fn await_ready(channel: &mut Channel) -> Result<u64, Error> {
    let (mut rows, mut failed) = (0, None);
    loop {
        let (tag, body) = next_message(channel).await?;
        match tag {
            b'C' => rows = wire::affected(&body),
            b'E' => failed = Some(wire::error(&body)),
            b'Z' => return failed.map_or(Ok(rows), Err),
            _ => {}
        }
    }
}

/// The types of a query's columns.
async fn column_types(channel: &mut Channel, sql: &str) -> Result<Vec<Type>, Error> {
    wire::parse(channel.out(), "", sql);
    wire::describe(channel.out(), "");
    channel.out().extend_from_slice(&wire::SYNC);
    channel.flush().await?;
    let (mut types, mut failed) = (Vec::new(), None);
    loop {
        let (tag, body) = next_message(channel).await?;
        match tag {
            b'T' => types = described_columns(&body)?.into_iter().map(|(_, of)| of).collect(),
            b'E' => failed = Some(wire::error(&body)),
            b'Z' => return failed.map_or(Ok(types), Err),
            _ => {}
        }
    }
}

/// Encodes rows as COPY's binary form wants them.
struct CopyEncoder<'a> {
    table: &'a str,
    columns: &'a [String],
    types: &'a [Type],
    out: Vec<u8>,
    /// Where the present row's count of cells lies.
    row: usize,
    cells: usize,
}

impl RowEncoder for CopyEncoder<'_> {
    #[inline]
    fn push(&mut self, value: Value<'_>) -> Result<(), Error> {
        if self.cells == 0 {
            self.row = self.out.len();
            self.out.extend_from_slice(&[0, 0]);
        }
        let place = self.cells;
        self.cells += 1;
        let Some(of) = self.types.get(place) else {
            return Err(Error::other(format!("{}: a row has more values than columns", self.table)));
        };
        if value == Value::Null {
            self.out.extend_from_slice(&(-1_i32).to_be_bytes());
            return Ok(());
        }
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        let fits = match (*of, value) {
            // COPY has one form for all cells: what has no binary form of its own here is made to have one.
            (Type::Numeric, Value::Int(units)) => {
                types::numeric_binary(units, 0, &mut self.out);
                Ok(true)
            }
            (Type::Jsonb, _) => {
                // The version of jsonb's binary form; the rest is the text.
                self.out.push(1);
                types::encode(*of, value, &mut self.out).map(|_| true)
            }
            (Type::Text | Type::Json, _) => types::encode(*of, value, &mut self.out).map(|_| true),
            _ => types::encode(*of, value, &mut self.out),
        };
        match fits {
            Ok(true) => {}
            Ok(false) => return Err(self.misfit(place, "it has no binary form")),
            Err(why) => return Err(self.misfit(place, &why.to_string())),
        }
        let size = (self.out.len() - start - 4) as u32;
        self.out[start..start + 4].copy_from_slice(&size.to_be_bytes());
        Ok(())
    }

    #[inline]
    fn end_row(&mut self) -> Result<(), Error> {
        let cells = (std::mem::take(&mut self.cells) as i16).to_be_bytes();
        self.out[self.row..self.row + 2].copy_from_slice(&cells);
        Ok(())
    }
}

impl CopyEncoder<'_> {
    fn misfit(&self, place: usize, why: &str) -> Error {
        let column = self.columns.get(place).map_or("?", String::as_str);
        Error::other(format!("table {}, column {column}: {why}", self.table))
    }
}
