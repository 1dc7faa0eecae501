//! The connection for set-up, loading and checks: it blocks, on a runtime of its own.

use std::sync::Arc;

use nephoscope_runtime::Runtime;
use nephoscope_runtime::clock::{self, Nanos, SECOND};

use crate::contract::bulk::{Admin, RowSource, Table};
use crate::contract::driver::Settings;
use crate::contract::error::{Error, ErrorClass};
use crate::contract::interrupt::Interrupt;
use crate::net::channel::Channel;
use crate::net::reach::{is_time_out, not_in_time};
use crate::net::session::Cancel;
use crate::postgres::copy;
use crate::postgres::startup::{CancelKey, Endpoint, Established, next_message};
use crate::postgres::types::Type;
use crate::postgres::wire::{self, Fields};

/// The settings that say most about how a server performs.
const FACTS: &str = "SELECT name, current_setting(name) FROM pg_catalog.pg_settings WHERE name IN (
  'server_version', 'shared_buffers', 'effective_cache_size', 'work_mem', 'maintenance_work_mem', 'max_connections',
  'fsync', 'synchronous_commit', 'full_page_writes', 'wal_level', 'wal_compression', 'wal_buffers', 'max_wal_size',
  'checkpoint_timeout', 'checkpoint_completion_target', 'random_page_cost', 'effective_io_concurrency', 'jit',
  'autovacuum', 'default_transaction_isolation', 'synchronous_standby_names', 'huge_pages', 'data_checksums',
  'server_encoding', 'block_size', 'io_method') ORDER BY name";

/// How long the server may take to tell them.
const FACTS_LIMIT: Nanos = 10 * SECOND;
/// The most memory that a result may take, in bytes.
const LARGEST: usize = 256 << 20;

pub(crate) struct PostgresAdmin {
    runtime: Runtime,
    channel: Channel,
    cancel_key: CancelKey,
    interrupt: Interrupt,
    answer_timeout: Nanos,
    /// Whether a question was given up: its answer may still come, and would be taken for that of the next.
    is_given_up: bool,
}

impl PostgresAdmin {
    /// Connects and runs the set-up that every connection gets.
    pub(crate) fn connect(endpoint: &Arc<Endpoint>, settings: &Settings) -> Result<Self, Error> {
        let runtime = Runtime::new()?;
        let interrupt = settings.interrupt.clone();
        let (channel, cancel_key) = runtime.block_on(interrupt.or(async {
            let deadline = endpoint.deadline();
            let mut established = endpoint.establish(&runtime, deadline).await?;
            established.channel.set_deadline(deadline);
            set_up(&mut established, &settings.on_connect).await.map_err(not_in_time)?;
            Ok((established.channel, established.cancel_key))
        }))?;
        let answer_timeout = settings.answer_timeout;
        Ok(Self { runtime, channel, cancel_key, interrupt, answer_timeout, is_given_up: false })
    }

    /// Begins a question, which has so long from now on.
    fn begin(&mut self) -> Result<(), Error> {
        if self.is_given_up {
            return Err(Error::connection_lost("an answer on this connection was given up"));
        }
        self.channel.set_deadline(clock::now().saturating_add(self.answer_timeout));
        Ok(())
    }

    fn end<T>(&mut self, found: Result<T, Error>) -> Result<T, Error> {
        let left = |error: &Error| is_time_out(error) || error.class() == ErrorClass::ConnectionLost;
        self.is_given_up = self.interrupt.has_struck() || found.as_ref().is_err_and(left);
        found
    }
}

impl Drop for PostgresAdmin {
    fn drop(&mut self) {
        let Self { runtime, channel, cancel_key, .. } = self;
        if self.is_given_up {
            // A server that waits for a lock does not see that nobody waits for it any more, and does its work later.
            runtime.block_on(cancel_key.cancel(runtime));
            return;
        }
        channel.out().extend_from_slice(&wire::TERMINATE);
        channel.set_deadline(clock::now() + SECOND);
        // A polite end; closing the socket says the same.
        let _ = runtime.block_on(channel.flush());
    }
}

impl Admin for PostgresAdmin {
    fn limit_answers(&mut self, limit: Nanos) {
        self.answer_timeout = limit;
    }

    fn query(&mut self, sql: &str) -> Result<Table, Error> {
        self.begin()?;
        let found = self.runtime.block_on(self.interrupt.or(simple_query(&mut self.channel, sql)));
        self.end(found)
    }

    fn bulk_load(&mut self, table: &str, columns: &[String], rows: &mut dyn RowSource) -> Result<u64, Error> {
        self.begin()?;
        let copied = copy::copy_in(&mut self.channel, table, columns, rows);
        let found = self.runtime.block_on(self.interrupt.or(copied));
        self.end(found)
    }

    fn server_facts(&mut self) -> Result<Vec<(String, String)>, Error> {
        let limit = self.answer_timeout;
        self.answer_timeout = limit.min(FACTS_LIMIT);
        let asked = self.query("SELECT version()").and_then(|version| Ok((version, self.query(FACTS)?)));
        self.answer_timeout = limit;
        let (version, settings) = asked?;
        let pair = |row: Vec<Option<String>>| {
            let mut cells = row.into_iter().flatten();
            Some((cells.next()?, cells.next()?))
        };
        let version = version.rows.into_iter().next().and_then(|row| row.into_iter().next().flatten());
        let version = version.map(|version| ("version".to_owned(), version));
        Ok(version.into_iter().chain(settings.rows.into_iter().filter_map(pair)).collect())
    }
}

/// Runs the SQL that every connection begins with.
pub(crate) async fn set_up(established: &mut Established, on_connect: &[String]) -> Result<(), Error> {
    for sql in on_connect {
        let mut replies = Replies::new(&mut established.channel);
        let done = replies.query(sql).await;
        done.map_err(|error| error.context(&format!("on_connect {sql:?}")))?;
        established.status = replies.status;
    }
    Ok(())
}

/// What the server answers, up to the next `ReadyForQuery`.
pub(super) struct Replies<'a> {
    pub(super) channel: &'a mut Channel,
    /// The first error among them.
    pub(super) failed: Option<Error>,
    /// The server's notice that it is about to end the connection.
    warned: Option<Error>,
    /// The transaction status of the last `ReadyForQuery`.
    status: u8,
}

impl<'a> Replies<'a> {
    pub(super) fn new(channel: &'a mut Channel) -> Self {
        Self { channel, failed: None, warned: None, status: b'I' }
    }

    /// The next message that is no error and no notice; `None` when the server is ready again and nothing has
    /// failed. A server that ends the connection is believed the reason that it gave.
    pub(super) async fn next(&mut self) -> Result<Option<(u8, Vec<u8>)>, Error> {
        loop {
            let (tag, body) = match next_message(self.channel).await {
                Ok(message) => message,
                Err(lost) => return Err(self.reason(lost)),
            };
            match tag {
                b'E' => self.fail(wire::error(&body)),
                b'N' => {
                    let notice = wire::error(&body);
                    self.warned = Some(notice).filter(|it| it.class() == ErrorClass::ShuttingDown);
                }
                b'Z' => {
                    self.status = wire::status(&body);
                    return self.failed.take().map_or(Ok(None), Err);
                }
                _ => return Ok(Some((tag, body))),
            }
        }
    }

    /// Remembers an error, if it is the first.
    pub(super) fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
    }

    /// Why the connection is lost.
    fn reason(&mut self, lost: Error) -> Error {
        self.failed.take().or_else(|| self.warned.take()).unwrap_or(lost)
    }

    /// Reads to the next `ReadyForQuery`; gives the rows of the last command.
    pub(super) async fn finish(&mut self) -> Result<u64, Error> {
        let mut rows = 0;
        while let Some((tag, body)) = self.next().await? {
            if tag == b'C' {
                rows = wire::affected(&body);
            }
        }
        Ok(rows)
    }

    /// Runs one or several statements by the simple protocol and gives the last result.
    async fn query(&mut self, sql: &str) -> Result<Table, Error> {
        const COPY: &str = "COPY to or from the client cannot be run as a query; use bulk_load";
        wire::query(self.channel.out(), sql);
        self.channel.flush().await?;
        let (mut table, mut has_columns, mut size) = (Table::default(), false, 0);
        while let Some((tag, body)) = self.next().await? {
            match tag {
                b'T' => {
                    (table, has_columns) = (Table { columns: column_names(&body)?, rows: Vec::new() }, true);
                    size = 0;
                }
                b'D' => {
                    let row = text_row(&body)?;
                    size += body.len() + size_of_val(&row) + size_of_val(row.as_slice());
                    if size > LARGEST {
                        let (rows, megabytes) = (table.rows.len(), LARGEST >> 20);
                        return Err(Error::connection_lost(format!(
                            "the result was given up after {rows} rows: it takes more than {megabytes} MiB"
                        )));
                    }
                    table.rows.push(row);
                }
                // The end of a statement that had no columns: what an earlier one gave is not its result.
                b'C' | b'I' if !std::mem::take(&mut has_columns) => table = Table::default(),
                b'G' | b'H' => {
                    self.fail(Error::other(COPY));
                    if tag == b'G' {
                        wire::message(self.channel.out(), b'f', |out| wire::put_text(out, COPY));
                        self.channel.flush().await?;
                    }
                }
                _ => {}
            }
        }
        Ok(table)
    }
}

/// Runs one or several statements by the simple protocol and gives the last result.
pub(crate) async fn simple_query(channel: &mut Channel, sql: &str) -> Result<Table, Error> {
    Replies::new(channel).query(sql).await
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

pub(super) fn text_row(body: &[u8]) -> Result<Vec<Option<String>>, Error> {
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
