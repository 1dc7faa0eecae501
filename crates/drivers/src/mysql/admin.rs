//! The connection for set-up, loading and checks: it blocks, on a runtime of its own.

use std::sync::Arc;

use nephoscope_runtime::Runtime;
use nephoscope_runtime::clock::{self, Nanos, SECOND};

use crate::contract::bulk::{Admin, RowSource, Table};
use crate::contract::driver::Settings;
use crate::contract::error::{Error, ErrorClass};
use crate::contract::interrupt::Interrupt;
use crate::mysql::bulk;
use crate::mysql::replies::{Link, query};
use crate::mysql::startup::{CancelKey, Endpoint, Purpose};
use crate::mysql::wire;
use crate::net::reach::{is_time_out, not_in_time};
use crate::net::session::Cancel;

/// The settings that say most about how a server performs. A server shows those that it has.
const FACTS: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN (
  'version', 'version_comment', 'innodb_buffer_pool_size', 'innodb_flush_log_at_trx_commit', 'innodb_flush_method',
  'innodb_log_file_size', 'innodb_redo_log_capacity', 'innodb_doublewrite', 'innodb_io_capacity', 'innodb_page_size',
  'innodb_snapshot_isolation', 'innodb_lock_wait_timeout', 'sync_binlog', 'log_bin', 'binlog_format', 'gtid_mode',
  'max_connections', 'max_allowed_packet', 'thread_handling', 'transaction_isolation', 'tx_isolation', 'sql_mode',
  'character_set_server', 'query_cache_type', 'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled',
  'read_only', 'super_read_only', 'wsrep_on', 'tidb_txn_mode')";

/// How long the server may take to tell them.
const FACTS_LIMIT: Nanos = 10 * SECOND;

pub(crate) struct MysqlAdmin {
    runtime: Runtime,
    link: Link,
    cancel_key: CancelKey,
    interrupt: Interrupt,
    answer_timeout: Nanos,
    /// Whether a question was given up: its answer may still come, and would be taken for that of the next.
    is_given_up: bool,
}

impl MysqlAdmin {
    /// Connects and runs the set-up that every connection gets.
    pub(crate) fn connect(endpoint: &Arc<Endpoint>, settings: &Settings) -> Result<Self, Error> {
        let runtime = Runtime::new()?;
        let interrupt = settings.interrupt.clone();
        let (link, cancel_key) = runtime.block_on(interrupt.or(async {
            let deadline = endpoint.deadline();
            let mut established = endpoint.establish(&runtime, deadline, Purpose::Admin).await?;
            established.link.channel.set_deadline(deadline);
            set_up(&mut established.link, &settings.on_connect).await.map_err(not_in_time)?;
            Ok((established.link, established.cancel_key))
        }))?;
        let answer_timeout = settings.answer_timeout;
        Ok(Self { runtime, link, cancel_key, interrupt, answer_timeout, is_given_up: false })
    }

    /// Begins a question, which has so long from now on.
    fn begin(&mut self) -> Result<(), Error> {
        if self.is_given_up {
            return Err(Error::connection_lost("an answer on this connection was given up"));
        }
        self.link.channel.set_deadline(clock::now().saturating_add(self.answer_timeout));
        Ok(())
    }

    fn end<T>(&mut self, found: Result<T, Error>) -> Result<T, Error> {
        let left = |error: &Error| is_time_out(error) || error.class() == ErrorClass::ConnectionLost;
        self.is_given_up = self.interrupt.has_struck() || found.as_ref().is_err_and(left);
        found
    }
}

impl Drop for MysqlAdmin {
    fn drop(&mut self) {
        let Self { runtime, link, cancel_key, .. } = self;
        if self.is_given_up {
            // A server that waits for a lock does not see that nobody waits for it any more, and does its work later.
            runtime.block_on(cancel_key.cancel(runtime));
            return;
        }
        link.channel.out().extend_from_slice(&wire::GOODBYE);
        link.channel.set_deadline(clock::now() + SECOND);
        // A polite end; closing the socket says the same.
        let _ = runtime.block_on(link.channel.flush());
    }
}

impl Admin for MysqlAdmin {
    fn limit_answers(&mut self, limit: Nanos) {
        self.answer_timeout = limit;
    }

    fn query(&mut self, sql: &str) -> Result<Table, Error> {
        self.begin()?;
        let found = self.runtime.block_on(self.interrupt.or(query(&mut self.link, sql)));
        self.end(found)
    }

    fn bulk_load(&mut self, table: &str, columns: &[String], rows: &mut dyn RowSource) -> Result<u64, Error> {
        self.begin()?;
        let loaded = bulk::load(&mut self.link, table, columns, rows);
        let found = self.runtime.block_on(self.interrupt.or(loaded));
        self.end(found)
    }

    fn server_facts(&mut self) -> Result<Vec<(String, String)>, Error> {
        let limit = self.answer_timeout;
        self.answer_timeout = limit.min(FACTS_LIMIT);
        let asked = self.query(FACTS);
        self.answer_timeout = limit;
        let pair = |row: Vec<Option<String>>| {
            let mut cells = row.into_iter().flatten();
            Some((cells.next()?, cells.next()?))
        };
        Ok(asked?.rows.into_iter().filter_map(pair).collect())
    }
}

/// Runs the SQL that every connection begins with. Times are told in UTC, unless the user asks for another zone.
pub(crate) async fn set_up(link: &mut Link, on_connect: &[String]) -> Result<(), Error> {
    query(link, "SET time_zone = '+00:00'").await?;
    for sql in on_connect {
        let done = query(link, sql).await;
        done.map_err(|error| error.context(&format!("on_connect {sql:?}")))?;
    }
    Ok(())
}
