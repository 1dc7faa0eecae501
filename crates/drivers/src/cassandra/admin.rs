//! The connection for set-up, loading and checks: it blocks, on a runtime of its own.

use std::sync::Arc;

use nephoscope_runtime::Yield;
use nephoscope_runtime::clock::Nanos;

use super::levels::Levels;
use super::machine::Clock;
use super::prepared::Prepared;
use super::startup::{Endpoint, Link};
use super::tables::table;
use super::wire::{garbage, opcode};
use crate::contract::bulk::{Admin, RowEncoder, RowSource, Table};
use crate::contract::driver::Settings;
use crate::contract::error::Error;
use crate::contract::statement::Statement;
use crate::contract::value::Value;
use crate::net::asking::Asking;
use crate::net::reach::not_in_time;

/// How many rows of a load are on their way at a time.
const FLYING: usize = 128;

/// What a manifest says of a node: columns of `system.local`, and settings.
const LOCAL: &str = "SELECT release_version, cluster_name, data_center, partitioner FROM system.local";
const SETTINGS: &str = "SELECT name, value FROM system_views.settings WHERE name IN ('concurrent_reads', \
    'concurrent_writes', 'commitlog_sync', 'commitlog_sync_period', 'memtable_allocation_type', 'num_tokens', \
    'hinted_handoff_enabled', 'read_request_timeout', 'write_request_timeout', 'key_cache_size', 'row_cache_size')";

pub(super) struct CassandraAdmin {
    link: Link,
    asking: Asking,
    levels: Levels,
}

impl CassandraAdmin {
    pub(super) fn connect(
        endpoint: &Arc<Endpoint>,
        settings: &Settings,
        levels: Levels,
    ) -> Result<Self, Error> {
        let asking = Asking::new(settings)?;
        let Asking { runtime, interrupt, .. } = &asking;
        let link = runtime.block_on(interrupt.or(async {
            let deadline = endpoint.deadline();
            let mut link = endpoint.establish(runtime, deadline).await?;
            link.channel.set_deadline(deadline);
            link.set_up(&settings.on_connect).await.map_err(not_in_time)?;
            Ok(link)
        }))?;
        Ok(Self { link, asking, levels })
    }

    fn ask<T>(&mut self, question: impl AsyncFnOnce(&mut Link) -> Result<T, Error>) -> Result<T, Error> {
        self.asking.ask(&mut self.link, |link| &mut link.channel, question)
    }
}

impl Admin for CassandraAdmin {
    fn limit_answers(&mut self, limit: Nanos) {
        self.asking.answer_timeout = limit;
    }

    /// Runs one statement.
    fn query(&mut self, sql: &str) -> Result<Table, Error> {
        let level = self.levels.write;
        let body = self.ask(async |link| link.run(sql, level).await)?;
        table(&body)
    }

    /// Stores rows, each by an insert of its own. Rows that were stored before an error stay.
    fn bulk_load(&mut self, table: &str, columns: &[String], rows: &mut dyn RowSource) -> Result<u64, Error> {
        let levels = self.levels;
        self.ask(async |link| load(link, levels, table, columns, rows).await)
    }

    fn server_facts(&mut self) -> Result<Vec<(String, String)>, Error> {
        let local = self.query(LOCAL)?;
        let values = local.rows.into_iter().flatten();
        let mut facts: Vec<(String, String)> =
            local.columns.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?))).collect();
        facts.push(("protocol_version".to_owned(), self.link.speech.form.version.to_string()));
        let peers = self.query("SELECT count(*) FROM system.peers")?;
        if let Some(Some(count)) = peers.rows.into_iter().flatten().next() {
            facts.push(("other_nodes".to_owned(), count));
        }
        // Nodes before version 4 have no such table.
        let settings = self.query(SETTINGS).map(|table| table.rows).unwrap_or_default();
        facts.extend(settings.into_iter().filter_map(|row| {
            let mut cells = row.into_iter().flatten();
            Some((cells.next()?, cells.next()?))
        }));
        Ok(facts)
    }
}

async fn load(
    link: &mut Link,
    levels: Levels,
    table: &str,
    columns: &[String],
    rows: &mut dyn RowSource,
) -> Result<u64, Error> {
    let params = columns.join(", :");
    let insert = format!("INSERT INTO {table} ({}) VALUES (:{params})", columns.join(", "));
    let named = |error: Error| error.context(&format!("table {table}"));
    let mut all = link.prepare(&[Statement::new("load", &insert)], levels).await.map_err(named)?;
    let Some(insert) = all.pop() else { return Err(garbage("the answer to a preparation")) };
    let mut encoder = Encoder {
        table,
        columns,
        insert,
        cells: Vec::new(),
        count: 0,
        clock: Clock::default(),
        out: Vec::new(),
        ends: Vec::new(),
    };
    let mut stored = 0;
    loop {
        encoder.out.clear();
        encoder.ends.clear();
        let (more, mut start) = (rows.fill(&mut encoder)?, 0);
        for ends in encoder.ends.chunks(FLYING) {
            let end = ends.last().copied().unwrap_or(start);
            link.channel.out().extend_from_slice(&encoder.out[start..end]);
            start = end;
            for _ in ends {
                match link.answer().await.map_err(named)? {
                    (_, opcode::RESULT, _) => stored += 1,
                    _ => return Err(garbage("the answer to an insert")),
                }
            }
        }
        if !more {
            return Ok(stored);
        }
        Yield::default().await;
    }
}

/// Makes a request of each row.
struct Encoder<'a> {
    table: &'a str,
    columns: &'a [String],
    insert: Prepared,
    cells: Vec<u8>,
    count: usize,
    clock: Clock,
    /// The requests, and where each ends.
    out: Vec<u8>,
    ends: Vec<usize>,
}

impl RowEncoder for Encoder<'_> {
    fn push(&mut self, value: Value<'_>) -> Result<(), Error> {
        let place = self.count;
        self.count += 1;
        let put = self.insert.put_cell(place, value, &mut self.cells);
        put.map_err(|why| {
            let column = self.columns.get(place).map_or("?", String::as_str);
            Error::other(format!("table {}, column {column}: {why}", self.table))
        })
    }

    fn end_row(&mut self) -> Result<(), Error> {
        let got = std::mem::take(&mut self.count);
        if got != self.columns.len() {
            let (table, wanted) = (self.table, self.columns.len());
            return Err(Error::other(format!("table {table}: a row has {got} values for {wanted} columns")));
        }
        let stream = (self.ends.len() % FLYING) as i16;
        self.insert.write_row(&self.cells, stream, self.clock.next(), &mut self.out);
        self.cells.clear();
        self.ends.push(self.out.len());
        Ok(())
    }
}
